#include "orrery/api/trace_read.hpp"

#include <filesystem>

#include <fmt/format.h>

namespace orrery::api {

namespace {

std::uint64_t size_of(const std::string& path) {
  std::error_code error;
  const std::uint64_t size = std::filesystem::file_size(path, error);
  return error ? 0 : size;
}

}  // namespace

trace::ReadOptions read_options(const TraceOptions& options) {
  trace::ReadOptions how;
  how.tolerant = options.tolerant;
  how.threads = options.threads;
  return how;
}

results::TraceFile trace_file(const std::string& path, trace::Format format, const trace::ReadReport& report,
                              std::uint64_t nodes) {
  results::TraceFile file;
  file.file = path;
  file.format = name_of(format);
  file.compression = name_of(report.compression);
  if (format == trace::Format::chakra) { file.schema = name_of(report.version); }
  file.claimed_version = report.claimed_version;
  file.size_B = size_of(path);
  if (file.size_B == 0) { file.size_B = report.file_bytes; }
  file.nodes = nodes;
  file.complete = report.complete();
  for (const trace::Note& note : report.notes) { file.notes.push_back(note.text()); }
  return file;
}

void collect(Failure& into, Failure failure) {
  for (Diagnostic& diagnostic : failure.diagnostics) { into.diagnostics.push_back(std::move(diagnostic)); }
}

Result<void> for_each_graph(const std::vector<std::string>& files, const TraceOptions& options, const UseGraph& use) {
  Failure failed;
  ReadProgress progress(files, options);
  for (std::size_t i = 0; i < files.size(); ++i) {
    auto loaded = trace::load(files[i], read_options(options));
    progress.next_file();
    if (!loaded) {
      collect(failed, std::move(loaded).error());
      continue;
    }
    auto facts = trace_file(files[i], loaded->format, loaded->report, loaded->graph.node_count());
    if (auto used = use(i, loaded->graph, std::move(facts)); !used) { collect(failed, std::move(used).error()); }
  }
  if (!failed.diagnostics.empty()) { return tl::make_unexpected(std::move(failed)); }
  return {};
}

ReadProgress::ReadProgress(const std::vector<std::string>& files, const TraceOptions& options) : options_(options) {
  if (!options.progress) { return; }
  for (const std::string& file : files) {
    sizes_.push_back(size_of(file));
    all_ += sizes_.back();
  }
}

void ReadProgress::within(std::uint64_t bytes) const {
  if (options_.progress) { options_.progress(done_ + bytes, all_); }
}

void ReadProgress::next_file() {
  if (!options_.progress) { return; }
  done_ += sizes_[file_++];
  options_.progress(done_, all_);
}

std::vector<std::string> placed_notes(const results::TraceFile& file) {
  std::vector<std::string> notes;
  for (const std::string& note : file.notes) { notes.push_back(fmt::format("{}: {}", file.file, note)); }
  return notes;
}

}  // namespace orrery::api
