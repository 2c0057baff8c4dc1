// A malformed file gives one line with file, offset and record, or a graph with a note. No part of a file is skipped
// without a message.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/trace/chakra.hpp"
#include "orrery/trace/test_records.hpp"
#include "orrery/trace/test_wire.hpp"

namespace orrery::trace::chakra_malformed_test {
namespace {

using test::bytes;
using test::file_of;
using test::number;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kMetadata = bytes(1, "0.0.4");  // 8 bytes with its length

std::string node(std::uint64_t id, const std::string& more = {}) {
  return number(1, id) + bytes(2, "n") + number(3, 4) + more;
}

std::string error_of(const std::string& file, bool tolerant = false) {
  ReadOptions options;
  options.tolerant = tolerant;
  const auto read = read_chakra_bytes(file, "t.et", options);
  return read ? "no error" : read.error().text();
}

Trace tolerated(const std::string& file) {
  ReadOptions options;
  options.tolerant = true;
  auto read = read_chakra_bytes(file, "t.et", options);
  EXPECT_TRUE(read) << read.error().text();
  return read ? std::move(*read) : Trace{};
}

std::vector<std::string> notes(const ReadReport& report) {
  std::vector<std::string> texts;
  for (const Note& note : report.notes) { texts.push_back(note.text()); }
  return texts;
}

// A record of node() has 7 bytes, 8 with its length. Three of them start at 8, 16, 24.
const std::string kThree = file_of({kMetadata, node(1), node(2), node(3)});

TEST(BrokenFile, that_ends_within_a_record) {
  const std::string cut = kThree.substr(0, 28);
  EXPECT_EQ(error_of(cut), "t.et: byte 24, record 3: the record claims 7 bytes, but the file ends after 3");
  const Trace some = tolerated(cut);
  EXPECT_EQ(some.graph.node_count(), 2U);
  EXPECT_FALSE(some.report.complete());
  EXPECT_THAT(notes(some.report), ElementsAre("byte 24: the record claims 7 bytes, but the file ends after 3; "
                                              "the rest of the file is skipped"));
}

TEST(BrokenFile, that_ends_within_a_length) {
  const std::string cut = kThree + "\x80";
  EXPECT_EQ(error_of(cut), "t.et: byte 32, record 4: the file ends inside the length of a record");
  EXPECT_EQ(tolerated(cut).graph.node_count(), 3U);
}

TEST(BrokenFile, that_is_empty_or_has_one_byte) {
  EXPECT_EQ(error_of(""), "t.et: is empty; a Chakra trace has at least a metadata record");
  EXPECT_EQ(error_of(std::string(1, '\0')), "t.et: byte 0: the file is a single zero byte, not a Chakra trace");
  EXPECT_EQ(error_of("\x05"),
            "t.et: byte 0, record 0: the record claims 5 bytes, but the file ends after 0. Is this a "
            "Chakra trace?");
  EXPECT_EQ(error_of("\x05", true), error_of("\x05"));
}

// Random bytes: none may give a graph without a note.
RC_GTEST_PROP(BrokenFile, that_is_random, (const std::vector<std::uint8_t>& random_bytes)) {
  const std::string file(random_bytes.begin(), random_bytes.end());
  const auto read = read_chakra_bytes(file, "t.et");
  if (read) {
    RC_ASSERT(!read->report.notes.empty() || chakra_bytes(read->graph).size() >= file.size());
  } else {
    RC_ASSERT(read.error().text().find('\n') == std::string::npos);
    RC_ASSERT(read.error().text().starts_with("t.et: "));
  }
}

// Whatever byte is flipped, either the file is refused, or what is read accounts for every byte of it.
TEST(BrokenFile, that_has_a_flipped_byte) {
  const std::string whole = chakra_bytes(test::random_records(5, 12).graph());
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 0xFF);
    const auto read = read_chakra_bytes(flipped, "t.et");
    if (!read) {
      EXPECT_THAT(read.error().text(), testing::StartsWith("t.et: byte "));
      continue;
    }
    EXPECT_EQ(read->report.bytes, flipped.size());
    EXPECT_TRUE(read->report.complete());
  }
}

TEST(BrokenFile, with_a_record_that_claims_4_gib) {
  const std::string file = kThree + "\xff\xff\xff\xff\x0f" + node(4);
  EXPECT_EQ(error_of(file), "t.et: byte 32, record 4: the record claims 4294967295 bytes; the maximum is 2147483647");
  EXPECT_EQ(tolerated(file).graph.node_count(), 3U);
  const std::string endless = kThree + std::string(11, '\x80') + node(4);
  EXPECT_EQ(error_of(endless), "t.et: byte 32, record 4: the length of a record has more than ten bytes");
}

TEST(BrokenFile, with_a_field_beyond_its_record) {
  const std::string file = file_of({kMetadata, node(1), node(2, "\x52\x7f"), node(3)});
  EXPECT_EQ(error_of(file), "t.et: byte 16, record 2, node 2: a field extends beyond the end of its record");
  const Trace some = tolerated(file);
  EXPECT_EQ(some.graph.node_count(), 2U);
  EXPECT_EQ(some.graph.id(1), 3U);
  EXPECT_THAT(notes(some.report),
              ElementsAre("byte 16, node 2: a field extends beyond the end of its record; the record "
                          "is skipped"));
}

TEST(BrokenFile, with_invalid_numbers_lengths_and_wire_types) {
  EXPECT_THAT(error_of(file_of({kMetadata, node(1, "\x30" + std::string(11, '\xff'))})),
              HasSubstr("more than ten bytes"));
  EXPECT_THAT(error_of(file_of({kMetadata, node(1, "\x33")})), HasSubstr("wire type that protobuf 3 does not define"));
  EXPECT_THAT(error_of(file_of({kMetadata, node(1, std::string(2, '\0'))})), HasSubstr("an invalid number"));
  const std::string incomplete = bytes(10, bytes(1, "a") + bytes(22, bytes(1, "1234567")));  // fixed64s of 7 bytes
  EXPECT_THAT(error_of(file_of({kMetadata, node(1, incomplete)})), HasSubstr("node 1: a field extends beyond the end"));
}

TEST(BrokenFile, whose_gzip_or_zstd_ends_early_or_is_damaged) {
  // kThree, packed.
  const std::string packed(
      "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x63\xe7\x62\x35\xd0\x33\xd0\x33\x61\xe7\x60\x14\x62\xcc\x93\x60\x61\xe7"
      "\x60\x82\xd2\xcc\x60\x1a\x00\xfd\x3a\x3c\x08\x20\x00\x00\x00",
      43);
  EXPECT_EQ(error_of(packed), "no error");
  EXPECT_THAT(error_of(packed.substr(0, packed.size() - 1)), HasSubstr("the gzip data are truncated"));
  EXPECT_THAT(error_of(packed.substr(0, 12)), HasSubstr("the gzip data are truncated"));
  std::string damaged = packed;
  damaged[10] = '\xff';
  EXPECT_THAT(error_of(damaged), testing::AllOf(HasSubstr("t.et: byte 0"), HasSubstr("the gzip data are damaged")));
  EXPECT_THAT(error_of("\x28\xb5\x2f\xfd"), HasSubstr("the zstd data are truncated"));
  EXPECT_THAT(error_of("\x28\xb5\x2f\xfd????????????"), HasSubstr("the zstd data are damaged"));
}

// The reader accepts invalid graphs; finding their mistakes is the task of graph/finding.hpp.
TEST(OddFile, cycles_self_dependencies_missing_parents_duplicates_are_read) {
  const std::string file = file_of({kMetadata, node(1, bytes(5, "\1\2\x2a\x2a")), node(2, bytes(5, "\1")), node(2)});
  const auto read = read_chakra_bytes(file, "t.et");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_THAT(read->graph.record(0).data_deps, ElementsAre(1, 2, 42, 42));
  EXPECT_THAT(read->graph.missing_ids(), ElementsAre(42));
  EXPECT_EQ(read->graph.node_count(), 3U);
  EXPECT_EQ(read->graph.find(2), graph::NodeIndex{1});
  EXPECT_EQ(read->graph.offset(1), 8U + 14U);
  EXPECT_THAT(read->report.notes, IsEmpty());
}

TEST(OddFile, an_empty_record_is_a_node_and_noted) {
  const auto read = read_chakra_bytes(file_of({kMetadata, node(1), "", node(2)}), "t.et");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->graph.node_count(), 3U);
  EXPECT_EQ(read->graph.id(1), 0U);
  EXPECT_THAT(notes(read->report), ElementsAre("byte 16, node 0: the record is empty; other readers stop here"));
  EXPECT_TRUE(read->report.complete());
}

TEST(OddFile, an_empty_first_record_is_metadata) {
  const auto read = read_chakra_bytes(file_of({"", node(7)}), "t.et");
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->report.has_metadata);
  EXPECT_EQ(read->graph.node_count(), 1U);
  EXPECT_THAT(read->report.notes, IsEmpty());
}

TEST(OddFile, without_metadata_is_noted) {
  const auto read = read_chakra_bytes(file_of({bytes(2, "aten::add") + number(3, 4), node(1, bytes(5, "\1"))}), "t.et");
  ASSERT_TRUE(read);
  EXPECT_FALSE(read->report.has_metadata);
  EXPECT_EQ(read->graph.node_count(), 2U);
  EXPECT_EQ(read->graph.name(0), "aten::add");
  EXPECT_THAT(notes(read->report), ElementsAre("byte 0: the file has no metadata; its first record is a node"));
}

TEST(OddFile, unknown_fields_types_and_versions_are_kept_and_noted) {
  const std::string strange = number(1, 5) + number(3, 42) + number(11, 1);
  const auto read = read_chakra_bytes(file_of({bytes(1, "9.9.9"), strange, strange}), "t.et");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->report.claimed_version, "9.9.9");
  EXPECT_EQ(read->report.version, ChakraVersion::v0_0_4);
  EXPECT_EQ(static_cast<int>(read->graph.type(0)), 42);
  EXPECT_EQ(read->graph.unknown(1), number(11, 1));
  EXPECT_THAT(
      notes(read->report),
      ElementsAre("byte 8, node 5: field 11 of a node is not in the schema; it is kept unchanged (and 1 more)"));
}

TEST(OddFile, a_field_of_another_wire_type_is_kept_and_not_interpreted) {
  const auto read = read_chakra_bytes(file_of({kMetadata, node(5, test::real64(7, 1.0))}), "t.et");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->graph.duration_us(0), 0U);
  EXPECT_EQ(read->graph.unknown(0), test::real64(7, 1.0));
  EXPECT_THAT(notes(read->report), ElementsAre(HasSubstr("field 7 of a node has the wrong wire type")));
}

TEST(OddFile, texts_that_are_not_utf8_are_kept_and_noted) {
  const auto read = read_chakra_bytes(file_of({kMetadata, number(1, 1) + bytes(2, "\xff")}), "t.et");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->graph.name(0), "\xff");
  EXPECT_THAT(notes(read->report), ElementsAre(HasSubstr("field 2 of a node is not UTF-8; other readers reject")));
}

// Generators write comm_size as int64 or as uint64; readers that expect one type read the other as 0.
TEST(OddFile, a_size_is_read_from_any_integer_type) {
  for (const std::uint32_t field : {7U, 9U, 11U, 13U}) {
    const std::string attribute = bytes(10, bytes(1, "comm_size") + number(field, 4096));
    const auto read = read_chakra_bytes(file_of({kMetadata, node(1, attribute)}), "t.et");
    ASSERT_TRUE(read);
    EXPECT_EQ(read->graph.value(0, "comm_size")->as_uint(), 4096U);
  }
}

TEST(BrokenFile, that_does_not_exist_or_is_a_directory) {
  EXPECT_EQ(read_chakra("/nowhere/a.et").error().text(), "/nowhere/a.et: does not exist");
  EXPECT_EQ(read_chakra("/").error().text(), "/: is a folder, not a file");
  EXPECT_EQ(read_chakra("").error().text(), "the file name is empty");
}

}  // namespace
}  // namespace orrery::trace::chakra_malformed_test
