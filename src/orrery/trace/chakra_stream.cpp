#include <utility>

#include <fmt/format.h>

#include "orrery/trace/chakra.hpp"
#include "orrery/trace/decode.hpp"
#include "orrery/trace/foreign.hpp"
#include "orrery/trace/framing.hpp"
#include "orrery/trace/notes.hpp"
#include "orrery/trace/source.hpp"

namespace orrery::trace {

using graph::Metadata;
using graph::NodeRecord;

namespace {

// How much of a file is examined to infer its version.
constexpr std::size_t kSniffBytes = std::size_t{1} << 20;
constexpr std::size_t kSniffRecords = 256;

std::vector<std::string_view> first_records(std::string_view bytes) {
  std::vector<std::string_view> records;
  while (!bytes.empty() && records.size() < kSniffRecords) {
    const auto frame = frame_of(bytes);
    if (!frame || frame->record_bytes > bytes.size() - frame->length_bytes) { break; }
    records.push_back(bytes.substr(frame->length_bytes, frame->record_bytes));
    bytes.remove_prefix(frame->length_bytes + static_cast<std::size_t>(frame->record_bytes));
  }
  return records;
}

}  // namespace

struct ChakraStream::State {
  State(std::unique_ptr<Source> from, ReadOptions how, std::string name)
      : source(std::move(from)), options(how), decoder(ChakraVersion::v0_0_4), metadata_decoder(ChakraVersion::v0_0_4) {
    report.file = std::move(name);
    report.compression = source->compression();
  }

  std::unique_ptr<Source> source;
  ReadOptions options;
  Decoder decoder;
  Decoder metadata_decoder;  // its scratch owns the texts of the metadata
  std::string metadata_bytes;
  Metadata metadata;
  NodeRecord node;
  Notes notes;
  ReadReport report;
  std::uint64_t position = 0;  // of the next record
  std::uint64_t offset = 0;    // of the record that was read last
  std::size_t unconsumed = 0;  // bytes of the record that was read last, not yet consumed
  bool ended = false;
  bool in_order = true;  // no seek so far: records can be counted

  [[nodiscard]] tl::unexpected<Failure> failure(std::uint64_t at, const std::string& what) const {
    std::string where = fmt::format("byte {}", at);
    if (in_order) { where += fmt::format(", record {}", report.records); }
    if (node.id != 0) { where += fmt::format(", node {}", node.id); }
    return fail(Place{report.file, 0, 0, {}}, fmt::format("{}: {}", where, what));
  }

  void note(NoteKind kind, const std::string& what, std::uint64_t at, std::optional<std::uint64_t> id) {
    notes.add(kind, what, at, id);
  }

  // The next record cannot be located after this place.
  Result<std::optional<std::string_view>> broken(const std::string& what) {
    node.id = 0;
    ended = true;
    if (report.records == 0) { return failure(position, what + ". Is this a Chakra trace?"); }
    if (!options.tolerant) { return failure(position, what); }
    note(NoteKind::lost_record, what + "; the rest of the file is skipped", position, std::nullopt);
    return std::nullopt;
  }

  Result<std::optional<std::string_view>> damaged() {
    const Failure& failed = *source->damage();
    const std::string why = failed.diagnostics.empty() ? "" : failed.diagnostics.front().message;
    return broken(why);
  }

  // The bytes of the next record; nothing at the end of the file.
  Result<std::optional<std::string_view>> next_record() {
    if (ended) { return std::nullopt; }
    source->consume(std::exchange(unconsumed, 0));
    std::string_view ahead = source->ahead(kMostLengthBytes);
    if (ahead.empty()) {
      if (source->damage()) { return damaged(); }
      ended = true;
      return std::nullopt;
    }
    const auto frame = frame_of(ahead);
    if (!frame) { return source->damage() ? damaged() : broken(frame.error()); }
    if (frame->record_bytes > kMostRecordBytes) {
      return broken(
          fmt::format("the record claims {} bytes; the maximum is {}", frame->record_bytes, kMostRecordBytes));
    }
    const std::size_t size = frame->length_bytes + static_cast<std::size_t>(frame->record_bytes);
    ahead = source->ahead(size);
    if (ahead.size() < size) {
      if (source->damage()) { return damaged(); }
      return broken(fmt::format("the record claims {} bytes, but the file ends after {}", frame->record_bytes,
                                ahead.size() - frame->length_bytes));
    }
    offset = position;
    position += size;
    unconsumed = size;
    if (position > report.bytes) {
      ++report.records;
      report.bytes = position;
    }
    report.file_bytes = source->compression() == Compression::none ? report.bytes : source->file_bytes();
    return ahead.substr(frame->length_bytes, static_cast<std::size_t>(frame->record_bytes));
  }

  void note_anomalies(const Decoder& from, std::optional<std::uint64_t> id) {
    for (const Anomaly& anomaly : from.anomalies()) { note(NoteKind::anomaly, anomaly.text(), offset, id); }
  }

  void seek(std::uint64_t to) {
    unconsumed = 0;
    source->seek(static_cast<std::size_t>(to));
    position = to;
    ended = false;
    in_order = false;
  }

  // False if the record had to be skipped.
  Result<bool> decode(std::string_view bytes) {
    try {
      decoder.decode_node(bytes, node);
    } catch (const WireError& error) {
      if (!options.tolerant) {
        --report.records;
        ended = true;
        return failure(offset, error.what());
      }
      note(NoteKind::lost_record, fmt::format("{}; the record is skipped", error.what()), offset,
           node.id != 0 ? std::optional(node.id) : std::nullopt);
      return false;
    }
    if (bytes.empty()) { note(NoteKind::anomaly, kEmptyRecord, offset, node.id); }
    if (!decoder.anomalies().empty()) { note_anomalies(decoder, node.id); }
    return true;
  }

  Result<void> begin() {
    if (auto ok = refuse_foreign(*source, report.file); !ok) { return ok; }
    std::string_view ahead = source->ahead(kSniffBytes);
    // Some converters put their whole input into the first record.
    if (const auto first = ahead.empty() ? tl::make_unexpected("") : frame_of(ahead);
        first && first->record_bytes <= kMostRecordBytes) {
      ahead = source->ahead(kSniffBytes + static_cast<std::size_t>(first->record_bytes));
    }
    const auto records = first_records(ahead);
    if (records.empty() || (records.size() == 1 && ahead.size() == 1)) { return no_trace(ahead); }
    report.has_metadata = is_metadata(records[0]);
    report.version = options.version ? *options.version : sniffed_version(records, report.has_metadata);
    decoder = Decoder(report.version);
    metadata_decoder = Decoder(report.version);
    if (!report.has_metadata) {
      note(NoteKind::anomaly, "the file has no metadata; its first record is a node", 0, std::nullopt);
      return {};
    }
    ORRERY_TRY(record, next_record());
    metadata_bytes = *record;
    try {
      metadata_decoder.decode_metadata(metadata_bytes, metadata);
    } catch (const WireError& error) { return failure(0, error.what()); }
    report.claimed_version = metadata.version;
    note_anomalies(metadata_decoder, std::nullopt);
    return {};
  }

  // The reason why nothing could be read.
  Result<void> no_trace(std::string_view ahead) {
    if (ahead.size() == 1 && ahead[0] == '\0') {
      return fail(Place{report.file, 0, 0, {}}, "byte 0: the file is a single zero byte, not a Chakra trace");
    }
    if (ahead.empty() && !source->damage()) {
      return fail(Place{report.file, 0, 0, {}}, "is empty; a Chakra trace has at least a metadata record");
    }
    const auto record = next_record();
    if (!record) { return tl::make_unexpected(record.error()); }
    return fail(Place{report.file, 0, 0, {}}, "byte 0: is not a Chakra trace");
  }
};

ChakraStream::ChakraStream(std::unique_ptr<State> state) : state_(std::move(state)) {}
ChakraStream::ChakraStream(ChakraStream&&) noexcept = default;
ChakraStream& ChakraStream::operator=(ChakraStream&&) noexcept = default;
ChakraStream::~ChakraStream() = default;

Result<ChakraStream> ChakraStream::of_source(std::unique_ptr<Source> source, const std::string& name,
                                             const ReadOptions& options) {
  auto state = std::make_unique<State>(std::move(source), options, name);
  if (auto begun = state->begin(); !begun) { return tl::make_unexpected(std::move(begun).error()); }
  return ChakraStream(std::move(state));
}

Result<ChakraStream> ChakraStream::open(const std::string& path, const ReadOptions& options) {
  ORRERY_TRY(source, open_source(path));
  return of_source(std::move(source), path, options);
}

Result<ChakraStream> ChakraStream::of_bytes(std::string_view bytes, const std::string& name,
                                            const ReadOptions& options) {
  ORRERY_TRY(source, source_of_bytes(bytes, name));
  return of_source(std::move(source), name, options);
}

const Metadata& ChakraStream::metadata() const { return state_->metadata; }

Result<const NodeRecord*> ChakraStream::next() {
  for (;;) {
    ORRERY_TRY(record, state_->next_record());
    if (!record) { return nullptr; }
    ORRERY_TRY(good, state_->decode(*record));
    if (good) { return &state_->node; }
  }
}

std::uint64_t ChakraStream::offset() const { return state_->offset; }

bool ChakraStream::seekable() const { return state_->source->whole().has_value(); }

Result<const NodeRecord*> ChakraStream::at(std::uint64_t offset) {
  ORRERY_ASSERT(seekable());
  state_->seek(offset);
  return next();
}

const ReadReport& ChakraStream::report() const {
  state_->report.notes = state_->notes.all();
  return state_->report;
}

}  // namespace orrery::trace
