#include <fmt/format.h>

#include "orrery/api/trace.hpp"
#include "orrery/api/trace_names.hpp"
#include "orrery/api/trace_read.hpp"
#include "orrery/core/text.hpp"
#include "orrery/graph/anonymize.hpp"
#include "orrery/trace/drawing.hpp"
#include "orrery/trace/json_lines.hpp"
#include "orrery/trace/output.hpp"
#include "orrery/trace/timeline.hpp"

namespace orrery::api {

namespace {

enum class OutputFormat : std::uint8_t { chakra, json_lines, dot, graphml };

Result<OutputFormat> output_format(const std::string& path) {
  const TraceName name = trace_name(path);
  std::string suffix = name.suffix;
  for (const std::string_view packed : {".gz", ".zst"}) {
    if (suffix.ends_with(packed)) { suffix.resize(suffix.size() - packed.size()); }
  }
  if (suffix == ".et") { return OutputFormat::chakra; }
  if (suffix == ".jsonl" || suffix == ".json") { return OutputFormat::json_lines; }
  if (suffix == ".dot" || suffix == ".gv") { return OutputFormat::dot; }
  if (suffix == ".graphml") { return OutputFormat::graphml; }
  return fail(Place{path, 0, 0, {}},
              "unknown suffix; valid are .et, .jsonl, .dot and .graphml, each with or without "
              ".gz or .zst");
}

// The version to claim when a file of an older schema is written in the current one.
std::optional<std::string> new_claim(const results::TraceFile& file) {
  return file.schema.empty() || file.schema == "0.0.4" ? std::nullopt : std::optional<std::string>("0.0.4");
}

Result<void> write_json_lines(const graph::Graph& graph, const std::string& path,
                              const std::optional<std::string>& claim) {
  ORRERY_TRY(out, trace::Output::open(path));
  graph::Metadata metadata = graph.metadata();
  if (claim) { metadata.version = *claim; }
  std::string line;
  trace::append_json_line(line, metadata);
  graph::NodeRecord record;
  for (graph::NodeIndex node = 0; node < graph.node_count(); ++node) {
    graph.copy_record(node, record);
    trace::append_json_line(line, record);
    if (auto put = out.put(line); !put) { return put; }
    line.clear();
  }
  if (auto put = out.put(line); !put) { return put; }
  return out.close().map([](std::uint64_t) {});
}

Result<void> write_graph(const graph::Graph& graph, const std::string& path, OutputFormat format,
                         const graph::Fold& fold, const std::optional<std::string>& claim) {
  const auto done = [](std::uint64_t) {};
  switch (format) {
    case OutputFormat::chakra: return trace::write_chakra(graph, path, {claim, 6}).map(done);
    case OutputFormat::json_lines: return write_json_lines(graph, path, claim);
    case OutputFormat::dot: return trace::write_dot(graph::folded(graph, fold), path).map(done);
    case OutputFormat::graphml: return trace::write_graphml(graph::folded(graph, fold), path).map(done);
  }
  return {};
}

void append(std::vector<std::string>& to, std::vector<std::string> more) {
  for (std::string& one : more) { to.push_back(std::move(one)); }
}

}  // namespace

Result<TraceWritten> trace_convert(const std::vector<std::string>& files, const std::string& out,
                                   const graph::Fold& fold, const TraceOptions& options) {
  ORRERY_TRY(format, output_format(out));
  if (fold.by != graph::Fold::By::none && format != OutputFormat::dot && format != OutputFormat::graphml) {
    return fail(Place{out, 0, 0, {}}, "--fold applies to drawings only (.dot, .graphml)");
  }
  TraceWritten written;
  written.files = output_names(files, out);
  auto read = for_each_graph(files, options, [&](std::size_t i, const graph::Graph& graph, results::TraceFile facts) {
    append(written.notes, placed_notes(facts));
    return write_graph(graph, written.files[i], format, fold, new_claim(facts));
  });
  if (!read) { return tl::make_unexpected(std::move(read).error()); }
  return written;
}

Result<TraceWritten> trace_anonymize(const std::vector<std::string>& files, const std::string& out,
                                     const TraceOptions& options) {
  ORRERY_TRY(format, output_format(out));
  if (format != OutputFormat::chakra && format != OutputFormat::json_lines) {
    return fail(Place{out, 0, 0, {}}, "anonymized traces are written as .et or .jsonl only");
  }
  TraceWritten written;
  written.files = output_names(files, out);
  graph::Anonymizer anonymizer;
  auto read = for_each_graph(files, options,
                             [&](std::size_t i, const graph::Graph& graph, results::TraceFile facts) -> Result<void> {
                               append(written.notes, placed_notes(facts));
                               ORRERY_TRY(plain, anonymizer.anonymized(graph));
                               return write_graph(plain, written.files[i], format, {}, new_claim(facts));
                             });
  if (!read) { return tl::make_unexpected(std::move(read).error()); }
  return written;
}

Result<TraceWritten> trace_timeline(const std::vector<std::string>& files, const std::string& out,
                                    const TraceOptions& options) {
  TraceWritten written;
  written.files = {out};
  ORRERY_TRY(writer, trace::TimelineWriter::open(out));
  const std::vector<std::uint64_t> ranks = ranks_of(files);
  auto read = for_each_graph(
      files, options, [&](std::size_t i, const graph::Graph& graph, results::TraceFile facts) -> Result<void> {
        append(written.notes, placed_notes(facts));
        const std::uint64_t rank = ranks[i];
        auto added = writer.add(rank, fmt::format("rank {}: {}", rank, files[i]), graph);
        if (!added) { return fail(Place{files[i], 0, 0, {}}, added.error().diagnostics.front().message); }
        if (added->placed > 0) {
          written.notes.push_back(
              fmt::format("{}: {} of {} nodes have no start time; they are placed by their dependencies and durations",
                          files[i], added->placed, added->placed + added->recorded));
        }
        return {};
      });
  if (!read) { return tl::make_unexpected(std::move(read).error()); }
  if (auto closed = writer.close(); !closed) { return tl::make_unexpected(std::move(closed).error()); }
  return written;
}

std::vector<std::string> partial_files(const std::vector<std::string>& files, const std::string& out) {
  std::vector<std::string> names;
  for (const std::string& name : output_names(files, out)) {
    if (std::string partial = trace::partial_path(name); !partial.empty()) { names.push_back(std::move(partial)); }
  }
  return names;
}

}  // namespace orrery::api
