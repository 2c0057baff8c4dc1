// Chakra execution traces: reads every version of the schema that was ever in use, writes the current one.
//
// A file is a sequence of records, each a length (varint) and a protobuf message: first the metadata, then one node per
// record. Files may be compressed with gzip or zstd, which is recognized from their first bytes. The schema version is
// inferred from the records, because the version that files claim is usually empty or wrong. Whatever the version, the
// result has the numbers and names of the current schema.
//
// All fields of the schema are read, every attribute type, lists packed or not. Fields that are not in the schema are
// kept unchanged.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/graph/builder.hpp"
#include "orrery/graph/graph.hpp"

namespace orrery::trace {

// Schemas that differ on the wire. 0.0.3+ is the state between 0.0.3 and 0.0.4, named 0.0.3 as well: with metadata and
// unsigned attributes. 1.0.0 is another name of 0.0.4.
enum class ChakraVersion : std::uint8_t { v0_0_1, v0_0_2, v0_0_3, v0_0_3_plus, v0_0_4 };

// "0.0.1" … "0.0.3+", "0.0.4".
[[nodiscard]] std::string_view name_of(ChakraVersion version);

enum class Compression : std::uint8_t { none, gzip, zstd };

[[nodiscard]] std::string_view name_of(Compression compression);  // "none", "gzip", "zstd"

enum class NoteKind : std::uint8_t {
  anomaly,     // nothing is lost: a field that is not in the schema, a text that is not UTF-8, no metadata
  lost_record  // tolerant mode: a record, or the rest of the file, was skipped
};

// An observation about a file that could be read.
struct Note {
  NoteKind kind = NoteKind::anomaly;
  std::string message;                // without place
  std::uint64_t offset = 0;           // byte of the uncompressed file where the (first) record of this note starts
  std::optional<std::uint64_t> node;  // id of the node in that record, if it is known
  std::uint64_t count = 1;            // number of records

  // "byte 1234, node 7: …" and, if there are more, " (and 12 more)".
  [[nodiscard]] std::string text() const;
  friend bool operator==(const Note&, const Note&) = default;
};

// What is known of a file in addition to its graph.
struct ReadReport {
  std::string file;
  ChakraVersion version = ChakraVersion::v0_0_4;  // inferred, or that of the options
  std::string claimed_version;                    // as the file claims; often empty
  Compression compression = Compression::none;
  bool has_metadata = false;     // whether the first record is metadata
  std::uint64_t file_bytes = 0;  // on disk, as far as it was read
  std::uint64_t bytes = 0;       // uncompressed, as far as it was read
  std::uint64_t records = 0;     // nodes and metadata
  std::vector<Note> notes;       // one per message, in the order of first occurrence

  // Whether every record of the file was read.
  [[nodiscard]] bool complete() const;
};

struct ReadOptions {
  // Strict: the first malformed record is an error. Tolerant: it is skipped and noted; where the next record cannot be
  // located, reading ends. A file that is not a trace at all is an error in both modes.
  bool tolerant = false;
  std::optional<ChakraVersion> version;            // instead of the inferred one
  int threads = 0;                                 // 0 = all; the result does not depend on it
  std::size_t range_bytes = std::size_t{1} << 22;  // what a thread decodes at once; the result does not depend on it
};

class Source;  // where bytes come from; private to the room

struct Trace {
  graph::Graph graph;
  ReadReport report;
};

// A whole file. An error is one line with file, byte offset (of the uncompressed file), record and, where known, node
// id: the file cannot be opened, is empty, is not a Chakra trace, ends inside a record, or has a malformed record.
[[nodiscard]] Result<Trace> read_chakra(const std::string& path, const ReadOptions& options = {});

// The same for a file in memory; `name` is its name in errors.
[[nodiscard]] Result<Trace> read_chakra_bytes(std::string_view bytes, const std::string& name,
                                              const ReadOptions& options = {});

// Record by record, in memory that does not grow with the file:
//   ORRERY_TRY(stream, ChakraStream::open(path));
//   for (;;) {
//     ORRERY_TRY(node, stream.next());
//     if (node == nullptr) { break; }
//     … *node, stream.offset() …
//   }
class ChakraStream {
 public:
  // Opens the file, infers its version and reads the metadata.
  [[nodiscard]] static Result<ChakraStream> open(const std::string& path, const ReadOptions& options = {});
  [[nodiscard]] static Result<ChakraStream> of_bytes(std::string_view bytes, const std::string& name,
                                                     const ReadOptions& options = {});

  ChakraStream(ChakraStream&&) noexcept;
  ChakraStream& operator=(ChakraStream&&) noexcept;
  ~ChakraStream();

  // Empty if the file has none. Valid as long as the stream.
  [[nodiscard]] const graph::Metadata& metadata() const;

  // The next node, nullptr after the last. It and its texts are valid until the next call of next(), or at().
  [[nodiscard]] Result<const graph::NodeRecord*> next();

  // Byte of the uncompressed file where the record of the latest node starts.
  [[nodiscard]] std::uint64_t offset() const;

  // Whether at() works: uncompressed files on disk, and bytes.
  [[nodiscard]] bool seekable() const;

  // The node whose record starts at that byte, a value of offset(). next() continues after it.
  [[nodiscard]] Result<const graph::NodeRecord*> at(std::uint64_t offset);

  // The facts so far.
  [[nodiscard]] const ReadReport& report() const;

 private:
  friend Result<Trace> read_source(std::unique_ptr<Source> source, const std::string& name, const ReadOptions& options);

  struct State;
  explicit ChakraStream(std::unique_ptr<State> state);
  static Result<ChakraStream> of_source(std::unique_ptr<Source> source, const std::string& name,
                                        const ReadOptions& options);

  std::unique_ptr<State> state_;
};

struct WriteOptions {
  // The version to claim; without it, that of the metadata.
  std::optional<std::string> version;
  int compression_level = 6;  // of gzip, 1 to 9
};

// Writes the current schema; equal graphs give equal bytes. A name ending in ".gz" or ".zst" is compressed. The
// file appears under its name when it is complete. Process groups and exact times are attributes (graph/record.hpp), so
// that nothing is lost and other readers still load the file.
//
// No record is empty, because some readers stop at an empty one: the first field of a message is written even if all
// fields have their defaults. Returns the size of the file in bytes.
[[nodiscard]] Result<std::uint64_t> write_chakra(const graph::Graph& graph, const std::string& path,
                                                 const WriteOptions& options = {});

// The same, uncompressed, to memory.
[[nodiscard]] std::string chakra_bytes(const graph::Graph& graph, const WriteOptions& options = {});

// Record by record.
class ChakraWriter {
 public:
  [[nodiscard]] static Result<ChakraWriter> open(const std::string& path, const graph::Metadata& metadata,
                                                 const WriteOptions& options = {});

  ChakraWriter(ChakraWriter&&) noexcept;
  ChakraWriter& operator=(ChakraWriter&&) noexcept;
  ~ChakraWriter();  // without close() there is no file

  [[nodiscard]] Result<void> write(const graph::NodeRecord& node);

  // Everything is in the file partial_path() (output.hpp), which can be read before close(). Uncompressed files only.
  [[nodiscard]] Result<void> flush();

  // Renames the file to its final name; returns its bytes.
  [[nodiscard]] Result<std::uint64_t> close();

 private:
  struct State;
  explicit ChakraWriter(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace orrery::trace
