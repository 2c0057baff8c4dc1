#include "orrery/trace/json_lines.hpp"

#include <bit>
#include <cmath>
#include <filesystem>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/trace/json_text.hpp"
#include "orrery/trace/node_stream.hpp"
#include "orrery/trace/output.hpp"
#include "orrery/trace/test_folder.hpp"
#include "orrery/trace/test_records.hpp"

namespace orrery::trace::json_lines_test {
namespace {

namespace fs = std::filesystem;
using graph::Attribute;
using graph::NodeRecord;
using graph::Value;
using graph::ValueType;
using testing::HasSubstr;

std::string line_of(const NodeRecord& node) {
  std::string line;
  append_json_line(line, node);
  return line;
}

std::string error_of(const std::string& line) {
  NodeRecord node;
  Scratch store;
  const auto read = read_json_line(line, node, store);
  if (read) { return "no error"; }
  return std::to_string(read.error().diagnostics.front().place.column) + ": " +
         read.error().diagnostics.front().message;
}

RC_GTEST_PROP(JsonLines, a_node_is_read_back_equal, (std::uint64_t seed)) {
  auto records = test::random_records(seed, 10);
  for (NodeRecord& node : records.nodes) {
    if (node.id % 3 == 0) { node.unknown = std::string_view("\x98\x06\x05", 3); }
    if (node.id % 4 == 0) { node.name = "\xff not text"; }
    const std::string line = line_of(node);
    RC_ASSERT(line.find('\n') == line.size() - 1);
    NodeRecord back;
    Scratch store;
    RC_ASSERT(read_json_line(std::string_view(line).substr(0, line.size() - 1), back, store).has_value());
    RC_ASSERT(back == node);
  }
}

// A Chakra file of our writer, its JSON lines, and the file that is written from them.
RC_GTEST_PROP(JsonLines, a_converted_file_is_converted_back_byte_for_byte, (std::uint64_t seed)) {
  const test::Folder folder;
  const auto graph = test::random_records(seed, *rc::gen::inRange<std::size_t>(0, 30)).graph();
  std::string lines;
  append_json_line(lines, graph.metadata());
  for (graph::NodeIndex i = 0; i < graph.node_count(); ++i) { append_json_line(lines, graph.record(i)); }
  const auto loaded = load(folder.write("t.jsonl", lines));
  RC_ASSERT(loaded.has_value());
  RC_ASSERT(loaded->format == Format::json_lines);
  RC_ASSERT(loaded->report.bytes == lines.size());
  RC_ASSERT(chakra_bytes(loaded->graph) == chakra_bytes(graph));
}

TEST(JsonLines, limits_of_numbers_of_every_width) {
  using Limits32 = std::numeric_limits<std::int32_t>;
  using Limits64 = std::numeric_limits<std::int64_t>;
  NodeRecord node;
  node.attributes = {
      {"a", Value::scalar(ValueType::int32_val, static_cast<std::uint64_t>(std::int64_t{Limits32::min()})), {}, {}},
      {"b", Value::scalar(ValueType::sfixed64_val, static_cast<std::uint64_t>(Limits64::min())), {}, {}},
      {"c", Value::natural(std::numeric_limits<std::uint64_t>::max()), {}, {}},
      {"d", Value::real(-0.0), {}, {}},
      {"e", Value::real(std::bit_cast<double>(std::uint64_t{0x7ff8000000000001})), {}, {}},
      {"f", Value::real32(std::numeric_limits<float>::denorm_min()), {}, {}},
      {"g", Value::real(std::numeric_limits<double>::infinity()), {}, {}}};
  const std::string line = line_of(node);
  EXPECT_THAT(line, HasSubstr(R"("int32_val":-2147483648)"));
  EXPECT_THAT(line, HasSubstr(R"("sfixed64_val":-9223372036854775808)"));
  EXPECT_THAT(line, HasSubstr(R"("uint64_val":18446744073709551615)"));
  EXPECT_THAT(line, HasSubstr(R"("double_val":-0)"));
  EXPECT_THAT(line, HasSubstr(R"("double_val":"NaN:7ff8000000000001")"));
  EXPECT_THAT(line, HasSubstr(R"("double_val":"Infinity")"));
  NodeRecord back;
  Scratch store;
  const std::string_view body = std::string_view(line).substr(0, line.size() - 1);  // which `back` views
  ASSERT_TRUE(read_json_line(body, back, store));
  EXPECT_EQ(back, node);
}

TEST(JsonLines, texts_with_escapes_and_surrogate_pairs) {
  NodeRecord node;
  Scratch store;
  ASSERT_TRUE(read_json_line(R"( { "id" : 1 , "name" : "a\u0041\u00e9\ud83c\udf0d\n\"\\\/" } )", node, store));
  EXPECT_EQ(node.name, "aA\u00e9\U0001F30D\n\"\\/");
}

TEST(JsonLines, mistakes_are_named_with_their_column) {
  EXPECT_EQ(error_of(R"({"id":1,"nam":"x"})"), R"(9: unknown field "nam"; did you mean "name"?)");
  EXPECT_THAT(error_of(R"({"name":"x"})"), HasSubstr("the node has no \"id\""));
  EXPECT_THAT(error_of(R"({"id":-1})"), HasSubstr("\"-1\" is not a whole number from 0 to 18446744073709551615"));
  EXPECT_THAT(error_of(R"({"id":18446744073709551616})"), HasSubstr("is not a whole number"));
  EXPECT_THAT(error_of(R"({"id":1,"attr":[{"name":"x","int32_val":2147483648}]})"), HasSubstr("to 2147483647"));
  EXPECT_THAT(error_of(R"({"id":1,"attr":[{"name":"x","int33_val":1}]})"), HasSubstr("did you mean \"int32_val\"?"));
  EXPECT_THAT(error_of(R"({"id":1,"attr":[{"name":"x","bytes_val":"?"}]})"), HasSubstr("not valid base64"));
  EXPECT_THAT(error_of(R"({"id":1,"attr":[{"name":"x","double_val":"nan"}]})"), HasSubstr("is not a number"));
  EXPECT_THAT(error_of(R"({"id":1} x)"), HasSubstr("unexpected characters after the object"));
  EXPECT_THAT(error_of(R"({"id":1,"name":"\ud83c"})"), HasSubstr("half of a \\u surrogate pair"));
  EXPECT_THAT(error_of("{\"id\":1,\"name\":\"\xff\"}"), HasSubstr("not UTF-8"));
  EXPECT_THAT(error_of(R"({"id":1)"), HasSubstr("the line ends, expected '}'"));
  EXPECT_THAT(error_of(R"([1])"), HasSubstr("expected '{'"));
}

// A line with bytes removed or inserted is read, or refused with a column.
RC_GTEST_PROP(JsonLines, damaged_lines_are_refused_or_read, (std::uint64_t seed)) {
  std::string line = line_of(test::random_records(seed, 1).nodes[0]);
  line.pop_back();
  const std::size_t at = *rc::gen::inRange<std::size_t>(0, line.size());
  if (*rc::gen::arbitrary<bool>()) {
    line.resize(at);
    RC_ASSERT(error_of(line) != "no error");
  } else {
    line[at] = *rc::gen::arbitrary<char>();
    RC_ASSERT(!error_of(line).empty());
  }
}

RC_GTEST_PROP(Base64, reads_back, (const std::vector<std::uint8_t>& random_bytes)) {
  const std::string bytes(random_bytes.begin(), random_bytes.end());
  std::string text;
  append_base64(text, bytes);
  RC_ASSERT(decoded_base64(std::string_view(text).substr(1, text.size() - 2)) == bytes);
}

TEST(Base64, known_texts) {
  for (const auto& [bytes, text] :
       {std::pair<std::string_view, std::string_view>("", ""), {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}}) {
    std::string made;
    append_base64(made, bytes);
    EXPECT_EQ(made, "\"" + std::string(text) + "\"");  // RFC 4648, section 10
  }
  for (const char* wrong : {"Zg=", "Z", "Zg=a", "Z===", "Zm9?"}) { EXPECT_FALSE(decoded_base64(wrong)) << wrong; }
}

TEST(NodeStream, recognizes_the_format_from_the_first_bytes) {
  const test::Folder folder;
  const auto graph = test::random_records(7, 20).graph();
  ReadOptions options;
  options.version = ChakraVersion::v0_0_4;
  ASSERT_TRUE(write_chakra(graph, folder.file("a.gz")));
  EXPECT_EQ(load(folder.file("a.gz"), options)->format, Format::chakra);
  auto out = Output::open(folder.file("b.gz"));
  std::string lines;
  append_json_line(lines, graph.metadata());
  for (graph::NodeIndex i = 0; i < graph.node_count(); ++i) { append_json_line(lines, graph.record(i)); }
  ASSERT_TRUE(out && out->put(lines) && out->close());
  const auto loaded = load(folder.file("b.gz"));
  ASSERT_TRUE(loaded) << loaded.error().text();
  EXPECT_EQ(loaded->format, Format::json_lines);
  EXPECT_EQ(loaded->report.compression, Compression::gzip);
  EXPECT_EQ(loaded->graph, graph);
}

TEST(NodeStream, metadata_are_optional_and_empty_lines_are_skipped) {
  const test::Folder folder;
  const auto loaded = load(folder.write("a.jsonl", "{\"id\":1}\r\n\n  \n{\"id\":2,\"data_deps\":[1]}"));
  ASSERT_TRUE(loaded) << loaded.error().text();
  EXPECT_EQ(loaded->graph.node_count(), 2U);
  EXPECT_FALSE(loaded->report.has_metadata);
  EXPECT_EQ(loaded->graph.offset(1), 14U);
}

TEST(NodeStream, a_malformed_line_is_an_error_or_skipped) {
  const test::Folder folder;
  const std::string path = folder.write("a.jsonl", "{\"id\":1}\n{\"id\":x}\n{\"id\":3}\n");
  EXPECT_EQ(load(path).error().text(), path + ":2:7: \"\" is not a whole number from 0 to 18446744073709551615");
  ReadOptions tolerant;
  tolerant.tolerant = true;
  const auto loaded = load(path, tolerant);
  ASSERT_TRUE(loaded) << loaded.error().text();
  EXPECT_EQ(loaded->graph.node_count(), 2U);
  EXPECT_FALSE(loaded->report.complete());
}

TEST(Output, appears_only_when_it_is_closed) {
  const test::Folder folder;
  {
    auto out = Output::open(folder.file("a"));
    ASSERT_TRUE(out && out->put("half"));
    EXPECT_FALSE(fs::exists(folder.file("a")));
    EXPECT_TRUE(fs::exists(partial_path(folder.file("a"))));
  }
  EXPECT_EQ(folder.files(), 0U);
  auto out = Output::open(folder.file("a"));
  ASSERT_TRUE(out && out->put("whole"));
  EXPECT_EQ(out->close().value(), 5U);
  EXPECT_EQ(folder.content("a"), "whole");
  EXPECT_EQ(folder.files(), 1U);
}

TEST(Output, follows_links_keeps_the_mode_and_writes_to_devices_directly) {
  const test::Folder folder;
  const std::string target = folder.write("target", "old");
  fs::permissions(target, fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("target", folder.file("link"));
  auto out = Output::open(folder.file("link"));
  ASSERT_TRUE(out && out->put("new") && out->close());
  EXPECT_TRUE(fs::is_symlink(folder.file("link")));
  EXPECT_EQ(folder.content("target"), "new");
  EXPECT_EQ(fs::status(target).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(partial_path("/dev/null"), "");
  auto null = Output::open("/dev/null");
  ASSERT_TRUE(null && null->put("x") && null->close());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_THAT(Output::open(folder.file("no/where")).error().text(), HasSubstr("cannot be written: No such file"));
}

}  // namespace
}  // namespace orrery::trace::json_lines_test
