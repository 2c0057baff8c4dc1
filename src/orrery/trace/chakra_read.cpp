#include <utility>

#include <fmt/format.h>

#include "orrery/trace/chakra.hpp"
#include "orrery/trace/notes.hpp"
#include "orrery/trace/ranges.hpp"
#include "orrery/trace/source.hpp"

namespace orrery::trace {

namespace {

// Reads node by node: where the file is not in memory as one block, and where the parallel read finds a mistake. Its
// result defines the correct one.
Result<Trace> read_in_order(ChakraStream stream) {
  graph::GraphBuilder builder;
  builder.set_metadata(stream.metadata());
  for (;;) {
    ORRERY_TRY(node, stream.next());
    if (node == nullptr) { break; }
    builder.add(*node, stream.offset());
  }
  ReadReport report = stream.report();
  if (builder.node_count() == 0 && !report.complete()) {
    return fail(Place{report.file, 0, 0, {}}, fmt::format("no node could be read; {}", report.notes.front().text()));
  }
  auto graph = builder.finish();
  if (!graph) { return fail(Place{report.file, 0, 0, {}}, graph.error().diagnostics.front().message); }
  return Trace{std::move(*graph), std::move(report)};
}

// All ranges in parallel; nothing if the file has a mistake.
std::optional<Trace> read_at_once(const ChakraStream& stream, Source& source, std::string_view whole,
                                  const ReadOptions& options) {
  ReadReport report = stream.report();
  auto read = read_ranges(source, whole, report.bytes, stream.metadata(), report.version, options);
  if (!read) { return std::nullopt; }
  Notes notes;
  for (const Note& note : report.notes) { notes.add(note.kind, note.message, note.offset, note.node); }
  notes.add_all(read->notes);
  report.notes = notes.all();
  report.records += read->graph.node_count();
  report.bytes = whole.size();
  report.file_bytes = whole.size();
  return Trace{std::move(read->graph), std::move(report)};
}

}  // namespace

Result<Trace> read_source(std::unique_ptr<Source> source, const std::string& name, const ReadOptions& options) {
  if (const auto whole = source->whole()) {
    ORRERY_TRY(stream, ChakraStream::of_bytes(*whole, name, options));
    if (auto trace = read_at_once(stream, *source, *whole, options)) { return std::move(*trace); }
  }
  ORRERY_TRY(stream, ChakraStream::of_source(std::move(source), name, options));
  return read_in_order(std::move(stream));
}

Result<Trace> read_chakra(const std::string& path, const ReadOptions& options) {
  ORRERY_TRY(source, open_source(path));
  return read_source(std::move(source), path, options);
}

Result<Trace> read_chakra_bytes(std::string_view bytes, const std::string& name, const ReadOptions& options) {
  ORRERY_TRY(source, source_of_bytes(bytes, name));
  return read_source(std::move(source), name, options);
}

}  // namespace orrery::trace
