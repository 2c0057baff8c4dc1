#include "orrery/trace/chakra.hpp"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <zstd.h>

#include "orrery/trace/test_folder.hpp"
#include "orrery/trace/test_records.hpp"
#include "orrery/trace/test_wire.hpp"

namespace orrery::trace::chakra_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string zstd_of(const std::string& content) {
  std::string packed(ZSTD_compressBound(content.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), content.data(), content.size(), 3));
  return packed;
}

RC_GTEST_PROP(Chakra, a_written_file_is_read_back_equal, (std::uint64_t seed)) {
  const auto records = test::random_records(seed, *rc::gen::inRange<std::size_t>(0, 30));
  const std::string written = chakra_bytes(records.graph());
  ReadOptions options;
  options.version = ChakraVersion::v0_0_4;
  const auto read = read_chakra_bytes(written, "written", options);
  RC_ASSERT(read.has_value());
  RC_ASSERT(read->graph == records.graph());
  RC_ASSERT(chakra_bytes(read->graph) == written);
  RC_ASSERT(read->report.bytes == written.size());
  RC_ASSERT(read->report.records == records.nodes.size() + 1);
}

RC_GTEST_PROP(Chakra, a_stream_has_the_nodes_of_the_graph_and_random_access, (std::uint64_t seed)) {
  const auto records = test::random_records(seed, *rc::gen::inRange<std::size_t>(1, 30));
  const std::string written = chakra_bytes(records.graph());
  ReadOptions options;
  options.version = ChakraVersion::v0_0_4;
  const auto read = read_chakra_bytes(written, "written", options);
  auto stream = ChakraStream::of_bytes(written, "written", options);
  RC_ASSERT(stream.has_value() && stream->seekable());
  RC_ASSERT(stream->metadata() == records.metadata);
  for (graph::NodeIndex i = 0; i < records.nodes.size(); ++i) {
    RC_ASSERT(*stream->next().value() == records.nodes[i]);
    RC_ASSERT(stream->offset() == read->graph.offset(i));
  }
  RC_ASSERT(stream->next().value() == nullptr);
  for (graph::NodeIndex i = 0; i < records.nodes.size(); i += 3) {
    RC_ASSERT(*stream->at(read->graph.offset(i)).value() == records.nodes[i]);
  }
}

// Only files of several ranges are read in parallel; with small ranges, every file has several.
RC_GTEST_PROP(Chakra, the_result_does_not_depend_on_the_number_of_threads, (std::uint64_t seed)) {
  const auto records = test::random_records(seed, *rc::gen::inRange<std::size_t>(0, 300));
  const std::string written = chakra_bytes(records.graph());
  ReadOptions options;
  options.version = ChakraVersion::v0_0_4;
  const auto expected = read_chakra_bytes(written, "written", options);
  for (const std::size_t range : {std::size_t{1}, std::size_t{1000}, std::size_t{1} << 22}) {
    options.range_bytes = range;
    const auto read = read_chakra_bytes(written, "written", options);
    RC_ASSERT(read.has_value());
    RC_ASSERT(read->graph == expected->graph);
    RC_ASSERT(chakra_bytes(read->graph) == written);
    RC_ASSERT(read->report.records == expected->report.records);
    for (graph::NodeIndex i = 0; i < records.nodes.size(); ++i) {
      RC_ASSERT(read->graph.offset(i) == expected->graph.offset(i));
    }
  }
}

TEST(Chakra, a_name_that_ends_in_gz_is_compressed_deterministically) {
  const test::Folder folder;
  const auto graph = test::random_records(1, 2000).graph();
  const auto plain = write_chakra(graph, folder.file("a.et"));
  const auto packed = write_chakra(graph, folder.file("a.et.gz"));
  ASSERT_TRUE(plain && packed);
  EXPECT_EQ(*plain, folder.content("a.et").size());
  EXPECT_EQ(*packed, folder.content("a.et.gz").size());
  EXPECT_LT(*packed, *plain);
  EXPECT_EQ(folder.content("a.et"), chakra_bytes(graph));
  const auto read = read_chakra(folder.file("a.et.gz"));
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->graph, graph);
  EXPECT_EQ(read->report.compression, Compression::gzip);
  EXPECT_EQ(read->report.bytes, *plain);
  EXPECT_EQ(read->report.file_bytes, *packed);
  const std::string before = folder.content("a.et.gz");
  ASSERT_TRUE(write_chakra(graph, folder.file("b.et.gz")));
  EXPECT_EQ(folder.content("b.et.gz"), before);
  EXPECT_EQ(folder.files(), 3U);
}

// From the first bytes, not from the name. A compressed file may have several members.
TEST(Chakra, compression_is_recognized_from_the_content) {
  const test::Folder folder;
  const auto graph = test::random_records(2, 3000).graph();
  const std::string bytes = chakra_bytes(graph);
  const auto packed = write_chakra(graph, folder.file("a.et.gz"));
  ASSERT_TRUE(packed);
  const std::size_t half = bytes.size() / 2;
  const std::array files = {folder.content("a.et.gz"), zstd_of(bytes),
                            zstd_of(bytes.substr(0, half)) + zstd_of(bytes.substr(half))};
  for (const std::string& file : files) {
    const auto mapped = read_chakra(folder.write("no-suffix", file));
    ASSERT_TRUE(mapped) << mapped.error().text();
    EXPECT_EQ(mapped->graph, graph);
    const auto held = read_chakra_bytes(file, "held");
    ASSERT_TRUE(held) << held.error().text();
    EXPECT_EQ(held->graph, graph);
    EXPECT_FALSE(ChakraStream::of_bytes(file, "held")->seekable());
  }
}

TEST(Chakra, a_file_may_be_overwritten_while_it_is_read) {
  const test::Folder folder;
  const auto graph = test::random_records(3, 500).graph();
  ASSERT_TRUE(write_chakra(graph, folder.file("a.et")));
  auto stream = ChakraStream::open(folder.file("a.et"));
  auto writer = ChakraWriter::open(folder.file("a.et"), stream->metadata());
  ASSERT_TRUE(stream && writer);
  for (auto node = stream->next(); *node != nullptr; node = stream->next()) { ASSERT_TRUE(writer->write(**node)); }
  ASSERT_TRUE(writer->close());
  EXPECT_EQ(read_chakra(folder.file("a.et"))->graph, graph);
}

TEST(Chakra, a_writer_that_is_not_closed_leaves_no_file) {
  const test::Folder folder;
  { ASSERT_TRUE(ChakraWriter::open(folder.file("a.et"), {})); }
  EXPECT_EQ(folder.files(), 0U);
}

TEST(Chakra, a_file_that_cannot_be_written_is_named) {
  const auto written = write_chakra({}, "/nowhere/a.et");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().text(), "/nowhere/a.et: cannot be written: No such file or directory");
}

TEST(Chakra, groups_and_exact_times_are_read_back) {
  graph::GraphBuilder builder;
  builder.add_group({"dp", {0, 8}});
  graph::NodeRecord node;
  node.id = 3;
  node.start_us = 12;
  node.attributes = {{graph::keys::start_time_ns, graph::Value::natural(12'345), {}, {}}};
  builder.add(node);
  const auto read = read_chakra_bytes(chakra_bytes(builder.finish().value()), "file");
  ASSERT_TRUE(read);
  EXPECT_THAT(read->graph.groups(), ElementsAre(graph::ProcessGroup{"dp", {0, 8}}));
  EXPECT_EQ(read->graph.start_ns(0), 12'345U);
}

TEST(Chakra, the_writer_may_claim_another_version) {
  WriteOptions options;
  options.version = "1.0.0";
  const auto read = read_chakra_bytes(chakra_bytes({}, options), "file");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->report.claimed_version, "1.0.0");
}

// Unpacked lists, as in proto2, and lists that are split over several fields.
TEST(Chakra, lists_may_be_packed_or_not_or_split) {
  const std::string packed = test::bytes(10, test::bytes(1, "a") + test::bytes(10, test::bytes(1, "\1\2\3")));
  const std::string single = test::bytes(
      10, test::bytes(1, "a") + test::bytes(10, test::number(1, 1) + test::number(1, 2) + test::number(1, 3)));
  const std::string pieces = test::bytes(
      10, test::bytes(10, test::number(1, 1)) + test::bytes(1, "a") + test::bytes(10, test::bytes(1, "\2\3")));
  const std::string deps = test::bytes(5, "\1\2") + test::number(5, 3) + test::number(4, 7) + test::bytes(4, "\x8");
  for (const std::string& attribute : {packed, single, pieces}) {
    const auto read =
        read_chakra_bytes(test::file_of({test::bytes(1, "0.0.4"), test::number(1, 9) + deps + attribute}), "file");
    ASSERT_TRUE(read) << read.error().text();
    const graph::NodeRecord node = read->graph.record(0);
    EXPECT_THAT(node.data_deps, ElementsAre(1, 2, 3));
    EXPECT_THAT(node.ctrl_deps, ElementsAre(7, 8));
    EXPECT_EQ(node.attributes.at(0).value.type(), graph::ValueType::int64_list);
    EXPECT_EQ(node.attributes.at(0).value.payload(),
              graph::packed_integers(graph::ValueType::int64_list, std::array<std::int64_t, 3>{1, 2, 3}));
    EXPECT_THAT(read->report.notes, IsEmpty());
  }
}

TEST(Chakra, the_first_record_may_be_larger_than_what_is_sniffed) {
  const std::string text(3 << 20, 'x');
  const std::string about = test::bytes(2, test::bytes(1, "input_file") + test::bytes(29, text));
  const std::string file = test::file_of({about, test::number(1, 1) + test::number(3, 4)});
  for (const std::string& given : {file, zstd_of(file)}) {
    const auto read = read_chakra_bytes(given, "file");
    ASSERT_TRUE(read) << read.error().text();
    EXPECT_EQ(read->graph.metadata().find("input_file")->value.as_text(), text);
    EXPECT_EQ(read->graph.node_count(), 1U);
  }
}

}  // namespace
}  // namespace orrery::trace::chakra_test
