// Any bytes give a graph or an error of one line, never a crash. Reading record by record, on one thread and in ranges
// gives the same result; what strict mode accepts, tolerant mode reads equally; a graph that is written is read back
// equal.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "orrery/trace/chakra.hpp"

namespace {

using namespace orrery;
using namespace orrery::trace;

void expect(bool holds) {
  if (!holds) { __builtin_trap(); }
}

void expect_a_line(const Failure& failure) {
  const std::string text = failure.text();
  expect(text.starts_with("fuzz: ") && text.find('\n') == std::string::npos);
}

// Nodes that a stream gives before it ends or fails.
std::size_t nodes_in_order(std::string_view bytes, const ReadOptions& options) {
  auto stream = ChakraStream::of_bytes(bytes, "fuzz", options);
  std::size_t nodes = 0;
  while (stream) {
    const auto node = stream->next();
    if (!node) { expect_a_line(node.error()); }
    if (!node || *node == nullptr) { break; }
    ++nodes;
  }
  return nodes;
}

void expect_round_trip(const Trace& trace) {
  ReadOptions current;
  current.version = ChakraVersion::v0_0_4;
  const std::string written = chakra_bytes(trace.graph);
  const auto back = read_chakra_bytes(written, "fuzz", current);
  expect(back && back->graph == trace.graph && chakra_bytes(back->graph) == written);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  ReadOptions options;
  options.threads = 1;
  const auto whole = read_chakra_bytes(bytes, "fuzz", options);
  if (!whole) { expect_a_line(whole.error()); }
  options.range_bytes = 16;
  const auto ranges = read_chakra_bytes(bytes, "fuzz", options);
  expect(whole.has_value() == ranges.has_value());
  options.tolerant = true;
  const auto tolerant = read_chakra_bytes(bytes, "fuzz", options);
  if (whole) {
    expect(whole->graph == ranges->graph && whole->report.notes == ranges->report.notes);
    expect(nodes_in_order(bytes, {}) == whole->graph.node_count());
    expect(tolerant && tolerant->graph == whole->graph && tolerant->report.complete());
  } else if (tolerant) {
    expect(!tolerant->report.complete());
    expect(nodes_in_order(bytes, options) == tolerant->graph.node_count());
    nodes_in_order(bytes, {});
  }
  if (tolerant) { expect_round_trip(*tolerant); }
  return 0;
}
