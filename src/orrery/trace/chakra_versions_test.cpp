// Files of every version of the schema, encoded by hand as proto2 does, give the same graph.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/trace/chakra.hpp"
#include "orrery/trace/test_wire.hpp"

namespace orrery::trace::chakra_versions_test {
namespace {

using graph::NodeType;
using test::bytes;
using test::file_of;
using test::number;
using test::real32;
using testing::ElementsAre;
using testing::IsEmpty;

Trace read(const std::string& file) {
  auto trace = read_chakra_bytes(file, "t.et");
  EXPECT_TRUE(trace) << trace.error().text();
  return trace ? std::move(*trace) : Trace{};
}

std::string old_attribute(const std::string& name, std::uint64_t type, const std::string& value) {
  return bytes(11, bytes(1, name) + number(2, type) + value);
}

// A compute node of 5 us, then an all-gather of 4096 bytes that depends on it: every version can express this graph.
void expect_the_common_graph(const Trace& trace, ChakraVersion version) {
  EXPECT_EQ(trace.report.version, version);
  ASSERT_EQ(trace.graph.node_count(), 2U);
  EXPECT_EQ(trace.graph.name(0), "comp");
  EXPECT_EQ(trace.graph.type(0), NodeType::comp);
  EXPECT_EQ(trace.graph.duration_us(0), 5U);
  EXPECT_EQ(trace.graph.id(1), 4U);
  EXPECT_EQ(trace.graph.type(1), NodeType::comm_coll);
  EXPECT_THAT(trace.graph.data_deps(1), ElementsAre(0));
  EXPECT_EQ(trace.graph.value(1, "comm_type")->as_int(), static_cast<int>(graph::CollectiveType::all_gather));
  EXPECT_EQ(trace.graph.value(1, "comm_size")->as_int(), 4096);
}

TEST(ChakraVersions, 0_0_1_has_fields_for_collectives) {
  const std::string comp = number(1, 3) + bytes(2, "comp") + number(3, 3) + number(7, 5) + number(12, 99);
  const std::string coll = number(1, 4) + bytes(2, "coll") + number(3, 6) + number(4, 3) + number(13, 3) +
                           number(14, 1) + number(14, 0) + number(18, 4096);
  const Trace trace = read(file_of({comp, coll}));
  expect_the_common_graph(trace, ChakraVersion::v0_0_1);
  EXPECT_FALSE(trace.report.has_metadata);
  EXPECT_EQ(trace.graph.value(0, "num_ops")->as_int(), 99);
  const auto dims = trace.graph.value(1, "involved_dim");
  EXPECT_EQ(dims->type(), graph::ValueType::bool_list);
  EXPECT_EQ(dims->as_bool(0), true);
  EXPECT_EQ(dims->as_bool(1), false);
}

TEST(ChakraVersions, 0_0_1_memory_and_messages_become_attributes) {
  const std::string load = number(1, 0) + bytes(2, "load") + number(3, 1) + number(5, 2) + number(6, 1024);
  const std::string send = number(1, 1) + bytes(2, "send") + number(3, 4) + number(4, 0) + number(16, 1) +
                           number(17, 2) + number(18, 8) + number(19, 3) + number(20, 4) + number(15, 5);
  const std::string recv = number(1, 2) + bytes(2, "recv") + number(3, 5) + number(8, 1) + number(9, 7);
  const Trace trace = read(file_of({load, send, recv}));
  EXPECT_EQ(trace.report.version, ChakraVersion::v0_0_1);
  EXPECT_EQ(trace.graph.type(0), NodeType::mem_load);
  EXPECT_EQ(trace.graph.type(1), NodeType::comm_send);
  EXPECT_EQ(trace.graph.type(2), NodeType::comm_recv);
  EXPECT_EQ(trace.graph.value(0, "tensor_size")->as_uint(), 1024U);
  EXPECT_EQ(trace.graph.value(0, "tensor_loc")->as_uint(), 2U);
  EXPECT_EQ(trace.graph.value(1, "comm_src")->type(), graph::ValueType::int32_val);
  EXPECT_EQ(trace.graph.value(1, "comm_dst")->as_int(), 2);
  EXPECT_EQ(trace.graph.value(1, "comm_tag")->as_int(), 3);
  EXPECT_EQ(trace.graph.value(1, "comm_priority")->as_int(), 4);
  EXPECT_EQ(trace.graph.value(1, "communicator_id")->as_int(), 5);
  EXPECT_EQ(trace.graph.value(2, "input_tensor_size")->as_int(), 7);
  EXPECT_EQ(trace.graph.value(2, "comm_type"), std::nullopt);
}

// A varint may have more bits than its field; they are ignored.
TEST(ChakraVersions, 0_0_1_numbers_of_32_bits_are_truncated) {
  const std::string wide = number(1, 0) + bytes(2, "load") + number(3, 1) + number(5, (std::uint64_t{1} << 40) + 2) +
                           number(16, 0xFFFFFFFF) + number(12, ~std::uint64_t{0});
  const Trace trace = read(file_of({wide}));
  EXPECT_EQ(trace.graph.value(0, "tensor_loc")->as_uint(), 2U);
  EXPECT_EQ(trace.graph.value(0, "comm_src")->type(), graph::ValueType::uint32_val);
  EXPECT_EQ(trace.graph.value(0, "comm_src")->as_uint(), 0xFFFFFFFFU);
  EXPECT_EQ(trace.graph.value(0, "num_ops")->as_uint(), ~std::uint64_t{0});
}

// 0.0.2: types without METADATA; float 0, int 1, string 2, then their lists, with values from field 4 on.
TEST(ChakraVersions, 0_0_2_adds_attributes) {
  const std::string comp = number(1, 3) + bytes(2, "comp") + number(3, 3) + bytes(5, "[1]") + bytes(9, "[[2]]") +
                           old_attribute("runtime", 1, number(5, 5)) + old_attribute("weight", 0, real32(4, 0.5F)) +
                           old_attribute("scope", 2, bytes(6, "x"));
  const std::string coll = number(1, 4) + bytes(2, "coll") + number(3, 6) + number(4, 3) +
                           old_attribute("comm_type", 1, number(5, 2)) +
                           old_attribute("comm_size", 1, number(5, 4096)) +
                           old_attribute("dims", 4, number(8, 1) + number(8, 7)) + old_attribute("none", 5, "");
  const Trace trace = read(file_of({comp, coll}));
  expect_the_common_graph(trace, ChakraVersion::v0_0_2);
  EXPECT_EQ(trace.graph.inputs(0)->values, "[1]");
  EXPECT_EQ(trace.graph.outputs(0)->shapes, "[[2]]");
  EXPECT_EQ(trace.graph.value(0, "runtime"), std::nullopt);
  EXPECT_EQ(trace.graph.value(0, "weight")->as_double(), 0.5);
  EXPECT_EQ(trace.graph.value(0, "scope")->as_text(), "x");
  EXPECT_EQ(trace.graph.value(1, "dims")->as_int(1), 7);
  EXPECT_EQ(trace.graph.value(1, "none")->type(), graph::ValueType::string_list);
}

// 0.0.3: METADATA is 1; bool 0, float 1, int 2, string 3, then their lists.
TEST(ChakraVersions, 0_0_3_adds_metadata_nodes_and_bools) {
  const std::string comp = number(1, 3) + bytes(2, "comp") + number(3, 4) +
                           old_attribute("simulated_run_time", 2, number(6, 5)) +
                           old_attribute("is_cpu_op", 0, number(4, 1));
  const std::string coll =
      number(1, 4) + bytes(2, "coll") + number(3, 7) + number(4, 3) + old_attribute("comm_type", 2, number(6, 2)) +
      old_attribute("comm_size", 2, number(6, 4096)) + old_attribute("involved_dim", 4, number(8, 1) + number(8, 0)) +
      old_attribute("pg_name", 3, bytes(7, "dp"));
  const Trace trace = read(file_of({comp, coll}));
  expect_the_common_graph(trace, ChakraVersion::v0_0_3);
  EXPECT_EQ(trace.graph.value(0, "is_cpu_op")->as_bool(), true);
  EXPECT_EQ(trace.graph.value(1, "involved_dim")->as_bool(1), false);
  EXPECT_EQ(trace.graph.value(1, "pg_name")->as_text(), "dp");
}

// 0.0.3+: bool 0, float 1, uint 2, int 3, string 4, then their lists; metadata without a version.
TEST(ChakraVersions, after_0_0_3_files_have_metadata) {
  const auto metadata = [](const std::string& name, const std::string& value) {
    return bytes(1, bytes(1, name) + number(2, 4) + bytes(8, value));
  };
  const std::string comp = number(1, 3) + bytes(2, "comp") + number(3, 4) + old_attribute("runtime", 3, number(7, 5)) +
                           old_attribute("rf_id", 2, number(6, ~std::uint64_t{0})) +
                           old_attribute("negative", 3, number(7, ~std::uint64_t{0}));
  const std::string coll = number(1, 4) + bytes(2, "coll") + number(3, 7) + number(4, 3) +
                           old_attribute("comm_type", 3, number(7, 2)) +
                           old_attribute("comm_size", 2, number(6, 4096)) + old_attribute("ids", 7, number(11, 8));
  const Trace trace = read(file_of({metadata("schema", "1.0.1"), comp, coll}));
  expect_the_common_graph(trace, ChakraVersion::v0_0_3_plus);
  EXPECT_TRUE(trace.report.has_metadata);
  EXPECT_EQ(trace.graph.metadata().find("schema")->value.as_text(), "1.0.1");
  EXPECT_EQ(trace.graph.value(0, "rf_id")->as_uint(), ~std::uint64_t{0});
  EXPECT_EQ(trace.graph.value(0, "negative")->as_int(), -1);
  EXPECT_EQ(trace.graph.value(1, "ids")->as_uint(0), 8U);
}

std::string attribute(const std::string& name, const std::string& value) { return bytes(10, bytes(1, name) + value); }

std::string current_comp() { return number(1, 3) + bytes(2, "comp") + number(3, 4) + number(7, 5); }

std::string current_coll() {
  return number(1, 4) + bytes(2, "coll") + number(3, 7) + bytes(5, "\3") + attribute("comm_type", number(9, 2)) +
         attribute("comm_size", number(9, 4096));
}

TEST(ChakraVersions, 0_0_4_is_recognized_whatever_version_it_claims) {
  for (const char* claim : {"", "0.0.4", "1.0.0", "0.0.1", "9.9.9"}) {
    const std::string metadata = *claim == '\0' ? "" : bytes(1, claim);
    const Trace trace = read(file_of({metadata, current_comp(), current_coll()}));
    expect_the_common_graph(trace, ChakraVersion::v0_0_4);
    EXPECT_EQ(trace.report.claimed_version, claim);
    EXPECT_THAT(trace.report.notes, IsEmpty());
  }
}

// In its first weeks, the metadata of 0.0.4 had no version; the field number was that of the attributes.
TEST(ChakraVersions, 0_0_4_before_it_had_a_version) {
  const std::string metadata = bytes(1, bytes(1, "schema") + bytes(29, "1.0.2"));
  const Trace trace = read(file_of({metadata, current_comp(), current_coll()}));
  expect_the_common_graph(trace, ChakraVersion::v0_0_4);
  EXPECT_EQ(trace.report.claimed_version, "");
  EXPECT_EQ(trace.graph.metadata().find("schema")->value.as_text(), "1.0.2");
}

TEST(ChakraVersions, an_invalid_old_collective_is_kept_under_another_name) {
  const std::string coll = number(1, 4) + bytes(2, "coll") + number(3, 7) + old_attribute("comm_type", 2, number(6, 9));
  const Trace trace = read(file_of({coll}));
  EXPECT_EQ(trace.graph.value(0, "comm_type"), std::nullopt);
  EXPECT_EQ(trace.graph.value(0, "comm_type_of_old_schema")->as_int(), 9);
}

// Of versions that match equally, the newest is chosen, unless the caller states the version.
TEST(ChakraVersions, the_caller_may_state_the_version) {
  const std::string file = file_of({number(1, 1) + bytes(2, "n") + number(3, 3)});
  EXPECT_EQ(read(file).report.version, ChakraVersion::v0_0_4);
  ReadOptions options;
  options.version = ChakraVersion::v0_0_2;
  EXPECT_EQ(read_chakra_bytes(file, "t.et", options)->graph.type(0), NodeType::comp);
}

TEST(ChakraVersions, every_version_is_written_as_the_current_one) {
  const std::string comp = number(1, 3) + bytes(2, "comp") + number(3, 3) + number(7, 5);
  const std::string coll =
      number(1, 4) + bytes(2, "coll") + number(3, 6) + number(4, 3) + number(13, 3) + number(18, 4096);
  const std::string written = chakra_bytes(read(file_of({comp, coll})).graph);
  expect_the_common_graph(read(written), ChakraVersion::v0_0_4);
  EXPECT_EQ(chakra_bytes(read(written).graph), written);
}

}  // namespace
}  // namespace orrery::trace::chakra_versions_test
