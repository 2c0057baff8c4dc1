#include "orrery/trace/node_stream.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "orrery/trace/foreign.hpp"
#include "orrery/trace/json_lines.hpp"
#include "orrery/trace/notes.hpp"
#include "orrery/trace/source.hpp"

namespace orrery::trace {

using graph::Metadata;
using graph::NodeRecord;

namespace {

constexpr std::size_t kLookAhead = std::size_t{1} << 16;

class JsonLinesReader {
 public:
  JsonLinesReader(std::unique_ptr<Source> source, bool tolerant, std::string name)
      : source_(std::move(source)), tolerant_(tolerant) {
    report_.file = std::move(name);
    report_.compression = source_->compression();
  }

  Result<void> begin() {
    if (auto ok = refuse_foreign(*source_, report_.file); !ok) { return ok; }
    ORRERY_TRY(line, next_line());
    if (!line || !is_metadata_line(*line)) {
      first_ = line;
      return {};
    }
    first_line_ = *line;
    auto read = read_json_line(first_line_, metadata_, metadata_texts_);
    if (!read) { return placed(read.error()); }
    report_.has_metadata = true;
    report_.claimed_version = metadata_.version;
    return {};
  }

  Result<const NodeRecord*> next() {
    for (;;) {
      std::optional<std::string_view> line = std::exchange(first_, std::nullopt);
      if (!line) {
        ORRERY_TRY(found, next_line());
        if (!found) { return nullptr; }
        line = found;
      }
      texts_.clear();
      auto read = read_json_line(*line, node_, texts_);
      if (read) { return &node_; }
      if (!tolerant_) { return placed(read.error()); }
      notes_.add(NoteKind::lost_record, read.error().diagnostics.front().message + "; the line is skipped", offset_,
                 std::nullopt);
    }
  }

  [[nodiscard]] const Metadata& metadata() const { return metadata_; }
  [[nodiscard]] std::uint64_t offset() const { return offset_; }
  [[nodiscard]] const ReadReport& report() {
    report_.notes = notes_.all();
    return report_;
  }

 private:
  tl::unexpected<Failure> placed(Failure failure) const {
    Place& place = failure.diagnostics.front().place;
    place.file = report_.file;
    place.line = line_;
    return tl::make_unexpected(std::move(failure));
  }

  // The next line that is not empty, without its end.
  Result<std::optional<std::string_view>> next_line() {
    for (;;) {
      source_->consume(std::exchange(unconsumed_, 0));
      std::string_view ahead = source_->ahead(kLookAhead);
      std::size_t end = ahead.find('\n');
      for (std::size_t seen = ahead.size(); end == std::string_view::npos; seen = ahead.size()) {
        ahead = source_->ahead(2 * seen);
        if (ahead.size() == seen) { break; }
        end = ahead.find('\n', seen);
      }
      if (source_->damage() && end == std::string_view::npos) { return damaged(); }
      if (ahead.empty()) { return std::nullopt; }
      const std::string_view line = ahead.substr(0, end);
      unconsumed_ = std::min(line.size() + 1, ahead.size());
      offset_ = position_;
      position_ += unconsumed_;
      ++line_;
      if (line.find_first_not_of(" \t\r") == std::string_view::npos) { continue; }
      ++report_.records;
      report_.bytes = position_;
      report_.file_bytes = report_.compression == Compression::none ? position_ : source_->file_bytes();
      return line;
    }
  }

  Result<std::optional<std::string_view>> damaged() {
    const Failure& failed = *source_->damage();
    const std::string why = failed.diagnostics.empty() ? "" : failed.diagnostics.front().message;
    if (!tolerant_ || report_.records == 0) {
      return fail(Place{report_.file, 0, 0, {}}, fmt::format("byte {}: {}", position_, why));
    }
    notes_.add(NoteKind::lost_record, why + "; the rest of the file is skipped", position_, std::nullopt);
    return std::nullopt;
  }

  std::unique_ptr<Source> source_;
  bool tolerant_;
  std::string first_line_;
  std::optional<std::string_view> first_;  // a line that was read and not yet used
  Metadata metadata_;
  Scratch metadata_texts_;
  Scratch texts_;
  NodeRecord node_;
  Notes notes_;
  ReadReport report_;
  std::uint64_t position_ = 0;
  std::uint64_t offset_ = 0;
  std::size_t unconsumed_ = 0;
  int line_ = 0;
};

bool has_json_name(std::string path) {
  for (const char* packed : {".gz", ".zst"}) {
    if (path.ends_with(packed)) { path.resize(path.rfind('.')); }
  }
  return path.ends_with(".jsonl") || path.ends_with(".json");
}

Result<Format> format_of(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return has_json_name(path) ? Format::json_lines : Format::chakra;
  }
  ORRERY_TRY(source, open_source(path));
  return are_json_lines(source->ahead(2)) ? Format::json_lines : Format::chakra;
}

}  // namespace

std::string_view name_of(Format format) { return format == Format::chakra ? "chakra" : "json-lines"; }

struct NodeStream::State {
  std::optional<ChakraStream> chakra;
  std::optional<JsonLinesReader> json;
};

NodeStream::NodeStream(std::unique_ptr<State> state) : state_(std::move(state)) {}
NodeStream::NodeStream(NodeStream&&) noexcept = default;
NodeStream& NodeStream::operator=(NodeStream&&) noexcept = default;
NodeStream::~NodeStream() = default;

Result<NodeStream> NodeStream::open(const std::string& path, const ReadOptions& options) {
  ORRERY_TRY(format, format_of(path));
  auto state = std::make_unique<State>();
  if (format == Format::chakra) {
    ORRERY_TRY(stream, ChakraStream::open(path, options));
    state->chakra = std::move(stream);
    return NodeStream(std::move(state));
  }
  ORRERY_TRY(source, open_source(path));
  state->json.emplace(std::move(source), options.tolerant, path);
  if (auto begun = state->json->begin(); !begun) { return tl::make_unexpected(std::move(begun).error()); }
  return NodeStream(std::move(state));
}

Format NodeStream::format() const { return state_->chakra ? Format::chakra : Format::json_lines; }

const Metadata& NodeStream::metadata() const {
  return state_->chakra ? state_->chakra->metadata() : state_->json->metadata();
}

Result<const NodeRecord*> NodeStream::next() { return state_->chakra ? state_->chakra->next() : state_->json->next(); }

std::uint64_t NodeStream::offset() const { return state_->chakra ? state_->chakra->offset() : state_->json->offset(); }

const ReadReport& NodeStream::report() const {
  return state_->chakra ? state_->chakra->report() : state_->json->report();
}

Result<Loaded> load(const std::string& path, const ReadOptions& options) {
  ORRERY_TRY(format, format_of(path));
  if (format == Format::chakra) {
    ORRERY_TRY(trace, read_chakra(path, options));
    return Loaded{std::move(trace.graph), std::move(trace.report), format};
  }
  ORRERY_TRY(stream, NodeStream::open(path, options));
  graph::GraphBuilder builder;
  builder.set_metadata(stream.metadata());
  for (;;) {
    ORRERY_TRY(node, stream.next());
    if (node == nullptr) { break; }
    builder.add(*node, stream.offset());
  }
  ReadReport report = stream.report();
  if (builder.node_count() == 0 && !report.complete()) {
    return fail(Place{path, 0, 0, {}}, fmt::format("no node could be read; {}", report.notes.front().text()));
  }
  auto graph = builder.finish();
  if (!graph) { return fail(Place{path, 0, 0, {}}, graph.error().diagnostics.front().message); }
  return Loaded{std::move(*graph), std::move(report), format};
}

}  // namespace orrery::trace
