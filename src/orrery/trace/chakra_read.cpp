#include <utility>

#include <fmt/format.h>

#include "orrery/trace/chakra.hpp"

namespace orrery::trace {

namespace {

// Node by node. Slower than decoding ranges at once, and what that has to equal.
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

}  // namespace

Result<Trace> read_chakra(const std::string& path, const ReadOptions& options) {
  ORRERY_TRY(stream, ChakraStream::open(path, options));
  return read_in_order(std::move(stream));
}

Result<Trace> read_chakra_bytes(std::string_view bytes, const std::string& name, const ReadOptions& options) {
  ORRERY_TRY(stream, ChakraStream::of_bytes(bytes, name, options));
  return read_in_order(std::move(stream));
}

}  // namespace orrery::trace
