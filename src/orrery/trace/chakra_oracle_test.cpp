// Our reader and writer agree with libprotobuf.
#include <string>

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <gtest/gtest.h>
#include <oracle/chakra.pb.h>
#include <rapidcheck/gtest.h>

#include "orrery/trace/chakra.hpp"
#include "orrery/trace/test_records.hpp"
#include "orrery/trace/test_wire.hpp"

namespace orrery::trace::chakra_oracle_test {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using graph::Value;
using graph::ValueType;

// Sets a field, or adds to a repeated one: bits as in graph::Value, or a text.
void put(Message& message, const FieldDescriptor* field, std::uint64_t bits, std::string_view text) {
  const auto* reflection = message.GetReflection();
  const auto with = [&](auto set, auto add, const auto& value) {
    field->is_repeated() ? (reflection->*add)(&message, field, value) : (reflection->*set)(&message, field, value);
  };
  using R = google::protobuf::Reflection;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return with(&R::SetInt32, &R::AddInt32, static_cast<std::int32_t>(static_cast<std::uint32_t>(bits)));
    case FieldDescriptor::CPPTYPE_INT64: return with(&R::SetInt64, &R::AddInt64, static_cast<std::int64_t>(bits));
    case FieldDescriptor::CPPTYPE_UINT32: return with(&R::SetUInt32, &R::AddUInt32, static_cast<std::uint32_t>(bits));
    case FieldDescriptor::CPPTYPE_UINT64: return with(&R::SetUInt64, &R::AddUInt64, bits);
    case FieldDescriptor::CPPTYPE_DOUBLE: return with(&R::SetDouble, &R::AddDouble, std::bit_cast<double>(bits));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return with(&R::SetFloat, &R::AddFloat, std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    case FieldDescriptor::CPPTYPE_BOOL: return with(&R::SetBool, &R::AddBool, bits != 0);
    case FieldDescriptor::CPPTYPE_STRING: return with(&R::SetString, &R::AddString, std::string(text));
    case FieldDescriptor::CPPTYPE_ENUM:
    case FieldDescriptor::CPPTYPE_MESSAGE: FAIL();
  }
}

void put_attribute(chakra::Attribute& message, const graph::Attribute& attribute) {
  message.set_name(std::string(attribute.name));
  message.set_doc_string(std::string(attribute.doc));
  const Value& value = attribute.value;
  if (value.type() == ValueType::none) { return; }
  const auto* field = message.GetDescriptor()->FindFieldByNumber(static_cast<int>(value.type()));
  if (!graph::is_list(value.type())) { return put(message, field, value.bits(), value.payload()); }
  Message* list = message.GetReflection()->MutableMessage(&message, field);
  const auto* values = list->GetDescriptor()->FindFieldByNumber(1);
  const auto texts = value.texts();
  for (std::size_t i = 0; i < value.size(); ++i) {
    put(*list, values, value.bits_at(i), texts.empty() ? std::string_view() : texts[i]);
  }
}

chakra::GlobalMetadata message_of(const graph::Metadata& metadata) {
  chakra::GlobalMetadata message;
  message.set_version(std::string(metadata.version));
  for (const auto& attribute : metadata.attributes) { put_attribute(*message.add_attr(), attribute); }
  return message;
}

void put_io(chakra::IOInfo& message, const graph::IoInfo& io) {
  message.set_values(std::string(io.values));
  message.set_shapes(std::string(io.shapes));
  message.set_types(std::string(io.types));
}

chakra::Node message_of(const graph::NodeRecord& node) {
  chakra::Node message;
  message.set_id(node.id);
  message.set_name(std::string(node.name));
  message.set_type(static_cast<std::int32_t>(node.type));
  for (const auto id : node.ctrl_deps) { message.add_ctrl_deps(id); }
  for (const auto id : node.data_deps) { message.add_data_deps(id); }
  message.set_start_time_micros(node.start_us);
  message.set_duration_micros(node.duration_us);
  if (node.inputs) { put_io(*message.mutable_inputs(), *node.inputs); }
  if (node.outputs) { put_io(*message.mutable_outputs(), *node.outputs); }
  for (const auto& attribute : node.attributes) { put_attribute(*message.add_attr(), attribute); }
  return message;
}

// Whether libprotobuf parses our bytes to the message and serializes it to the same bytes. Comparing bytes includes
// NaNs, order and presence, which comparing fields does not. If all fields have their defaults, we write one of them
// nevertheless, so that no record is empty.
template <class T>
bool is_written_as(const std::string& ours, const T& message, const std::string& instead_of_empty) {
  T parsed;
  if (!parsed.ParseFromString(ours)) { return false; }
  const std::string theirs = message.SerializeAsString();
  return parsed.SerializeAsString() == theirs && ours == (theirs.empty() ? instead_of_empty : theirs);
}

RC_GTEST_PROP(ChakraOracle, libprotobuf_parses_what_we_write_and_would_write_the_same, (std::uint64_t seed)) {
  const auto records = test::random_records(seed, *rc::gen::inRange<std::size_t>(0, 30));
  const auto messages = test::messages_of(chakra_bytes(records.graph()));
  RC_ASSERT(messages.size() == records.nodes.size() + 1);
  RC_ASSERT(is_written_as(messages[0], message_of(records.metadata), test::bytes(1, "")));
  for (std::size_t i = 0; i < records.nodes.size(); ++i) {
    RC_ASSERT(is_written_as(messages[i + 1], message_of(records.nodes[i]), test::number(1, 0)));
  }
}

RC_GTEST_PROP(ChakraOracle, we_read_what_libprotobuf_writes, (std::uint64_t seed)) {
  const auto records = test::random_records(seed, *rc::gen::inRange<std::size_t>(0, 30));
  std::string file = test::framed(message_of(records.metadata).SerializeAsString());
  for (const auto& node : records.nodes) { file += test::framed(message_of(node).SerializeAsString()); }
  if (file.size() == 1) { return; }  // a single zero byte, which we refuse
  ReadOptions options;
  options.version = ChakraVersion::v0_0_4;
  const auto read = read_chakra_bytes(file, "written by libprotobuf", options);
  RC_ASSERT(read.has_value());
  RC_ASSERT(read->graph == records.graph());
}

TEST(ChakraOracle, an_empty_record_is_never_written) {
  graph::GraphBuilder builder;
  builder.add({});
  const auto messages = test::messages_of(chakra_bytes(builder.finish().value()));
  ASSERT_EQ(messages.size(), 2U);
  EXPECT_TRUE(is_written_as(messages[0], chakra::GlobalMetadata(), test::bytes(1, "")));
  EXPECT_TRUE(is_written_as(messages[1], chakra::Node(), test::number(1, 0)));
}

// libprotobuf and we keep fields that are not in the schema, at the end.
TEST(ChakraOracle, unknown_fields_are_kept_as_libprotobuf_keeps_them) {
  const std::string unknown = test::bytes(11, "storage") + test::real64(40, 0.5) + test::number(12, 3);
  const std::string attribute = test::bytes(1, "any") + test::bytes(33, "any value");
  const std::string node = test::number(1, 5) + unknown + test::bytes(2, "name") + test::bytes(10, attribute);
  const std::string file = test::file_of({test::bytes(1, "0.0.4") + test::number(9, 1), node});
  const auto read = read_chakra_bytes(file, "file");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->graph.unknown(0), unknown);
  EXPECT_EQ(read->report.notes.size(), 5U);
  EXPECT_TRUE(read->report.complete());
  chakra::Node theirs;
  ASSERT_TRUE(theirs.ParseFromString(node));
  const auto ours = test::messages_of(chakra_bytes(read->graph));
  EXPECT_EQ(ours[1], theirs.SerializeAsString());
  EXPECT_EQ(ours[0], test::bytes(1, "0.0.4") + test::number(9, 1));
}

}  // namespace
}  // namespace orrery::trace::chakra_oracle_test
