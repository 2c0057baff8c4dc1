#include "orrery/trace/foreign.hpp"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "orrery/trace/feeder.hpp"
#include "orrery/trace/node_stream.hpp"

namespace orrery::trace::foreign_test {
namespace {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kKineto = "\n{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [\n    {\n      \"id\": 0\n";
constexpr const char* kOneLineKineto = R"({"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "cpu_op"}]})";
constexpr const char* kLegacyProfiler = R"([{"name": "aten::randn", "ph": "X", "ts": 218, "dur": 249}])";
constexpr const char* kPyTorch =
    "{\n  \"schema\": \"1.1.0-chakra.0.0.4\", \"pid\": 17, \"start_ts\": 8,\n  \"nodes\": [\n    {\"id\": 2";
constexpr const char* kChakraJson = "{\n    \"workload_graph\": [\n        {\n            \"Id\": 216,\n";
constexpr const char* kResult = "{\n  \"schema\": \"orrery.trace-info/1\",\n  \"files\": []\n}\n";
constexpr const char* kWorkload =
    "HYBRID_TRANSFORMER\tmodel_parallel_NPU_group: 4\n1\nlayer -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n";
constexpr const char* kConfig = "topology: [ Ring ]\nnpus_count: [ 8 ]\n";

std::string message_of(std::string_view start) { return foreign_format(start).value_or("nothing"); }

TEST(Foreign, traces_of_pytorch_name_the_commands_that_read_them) {
  for (const char* chrome : {kKineto, kOneLineKineto, kLegacyProfiler}) {
    EXPECT_THAT(message_of(chrome), AllOf(HasSubstr("Kineto"), HasSubstr("\"orrery trace import\""))) << chrome;
    EXPECT_EQ(profile_format(chrome), ProfileFormat::kineto) << chrome;
  }
  EXPECT_THAT(message_of(kPyTorch), AllOf(HasSubstr("PyTorch execution trace (schema 1.1.0-chakra.0.0.4)"),
                                          HasSubstr("\"orrery trace link\"")));
  EXPECT_EQ(profile_format(kPyTorch), ProfileFormat::execution_trace);
  for (const char* other : {kChakraJson, kResult, kWorkload, kConfig}) {
    EXPECT_EQ(profile_format(other), ProfileFormat::none) << other;
  }
}

TEST(Foreign, the_kind_of_other_files_is_named) {
  EXPECT_THAT(message_of(kWorkload), HasSubstr("\"orrery trace convert FILE --dimensions N,... --out PREFIX\""));
  EXPECT_THAT(message_of(kChakraJson), HasSubstr("is a Chakra graph in JSON (\"workload_graph\")"));
  EXPECT_THAT(message_of(kResult), HasSubstr("is a result of orrery (orrery.trace-info/1), not a trace"));
  EXPECT_THAT(message_of("{\n  \"tp\": [0, 1]\n}\n"), HasSubstr("is JSON, but neither a supported trace format"));
  EXPECT_THAT(message_of("{\"tp\": [0, 1]}\n"), HasSubstr("is JSON, but neither a supported trace format"));
  EXPECT_THAT(message_of("[1, 2]"), HasSubstr("is a text file"));
  EXPECT_THAT(message_of(kConfig), HasSubstr("is a text file"));
  EXPECT_THAT(message_of("PK\x03\x04"), HasSubstr("is an archive"));
}

TEST(Foreign, json_lines_and_chakra_records_are_not_foreign) {
  EXPECT_EQ(message_of("{\"id\":1,\"name\":\"a\"}\n"), "nothing");
  EXPECT_EQ(message_of("{\"schema\":\"orrery.trace-nodes/1\"}\n"), "nothing");
  EXPECT_EQ(message_of("{\"id\":1,\"nodes\":1}\n"), "nothing");  // an unknown field of a node, which the reader names
  EXPECT_EQ(message_of(std::string_view("\x07\x0a\x05"
                                        "0.0.4",
                                        8)),
            "nothing");
  // The metadata of a trace without nodes, all of it characters: 34 bytes (a quotation mark), field 1, 32 characters.
  EXPECT_EQ(message_of("\"\n " + std::string(32, 'v')), "nothing");
}

// The length 123 is the byte "{", and the tag of packed parents is a quotation mark.
TEST(Foreign, a_record_of_123_bytes_that_begins_with_its_parents_is_chakra) {
  std::string record = "{\"\x02\x01\x02\x12";
  record += static_cast<char>(117);
  record += std::string(117, '"');
  ASSERT_EQ(record.size(), 124U);
  EXPECT_EQ(message_of(record), "nothing");
}

// All readers give the same message; a compressed file is recognized, too.
TEST(Foreign, every_reader_gives_the_same_message) {
  const fs::path path = fs::temp_directory_path() / ("orrery-foreign-" + std::to_string(::getpid()) + ".et");
  for (const char* text : {kKineto, kPyTorch, kChakraJson, kWorkload, kConfig}) {
    std::ofstream(path, std::ios::binary) << text;
    const std::string expected = path.string() + ": " + message_of(text);
    for (const bool tolerant : {false, true}) {
      ReadOptions options;
      options.tolerant = tolerant;
      EXPECT_EQ(load(path, options).error().text(), expected);
      EXPECT_EQ(NodeStream::open(path, options).error().text(), expected);
    }
    EXPECT_EQ(read_chakra_bytes(text, path).error().text(), expected);
    EXPECT_EQ(Feeder::open(path).error().text(), expected);
  }
  fs::remove(path);
}

// ---- files in use ----

TEST(SharedForeign, json_traces_of_pytorch_are_recognized) {
  const fs::path folder = fs::path(ORRERY_SOURCE_DATA_DIR).parent_path().parent_path() / "shared/data/traces";
  if (!fs::exists(folder)) { GTEST_SKIP() << folder << " is not here"; }
  int seen = 0;
  for (const char* part : {"param", "hta", "torch113", "derived"}) {
    for (const auto& entry : fs::recursive_directory_iterator(folder / part)) {
      const std::string name = entry.path().filename().string();
      if (!name.ends_with(".json") && !name.ends_with(".json.gz")) { continue; }
      const auto found = NodeStream::open(entry.path());
      ASSERT_FALSE(found) << name;
      EXPECT_THAT(found.error().text(), AllOf(HasSubstr("\"orrery trace "), Not(HasSubstr("record")))) << name;
      ++seen;
    }
  }
  EXPECT_GT(seen, 30);
}

}  // namespace
}  // namespace orrery::trace::foreign_test
