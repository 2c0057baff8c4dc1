// Any bytes that are a trace: every analysis of its graph ends with a result, however invalid the graph is.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "orrery/graph/anonymize.hpp"
#include "orrery/graph/check.hpp"
#include "orrery/graph/difference.hpp"
#include "orrery/graph/fold.hpp"
#include "orrery/graph/job_check.hpp"
#include "orrery/graph/statistics.hpp"
#include "orrery/trace/chakra.hpp"

namespace {

using namespace orrery;

void expect(bool holds) {
  if (!holds) { __builtin_trap(); }
}

std::uint64_t boxes(const graph::Graph& graph, graph::Fold::By by) {
  std::uint64_t count = 0;
  for (const graph::FoldedNode& box : graph::folded(graph, {by, 2}).nodes) { count += box.count; }
  return count;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  trace::ReadOptions options;
  options.threads = 1;
  options.tolerant = true;
  const auto read = trace::read_chakra_bytes(bytes, "fuzz", options);
  if (!read) { return 0; }
  const graph::Graph& graph = read->graph;
  const auto findings = graph::check(graph, {3, 0});
  for (const graph::Finding& finding : findings) { expect(finding.count > 0 && !finding.examples.empty()); }
  const auto statistics = graph::statistics(graph);
  expect(statistics.all.count == graph.node_count());
  expect(boxes(graph, graph::Fold::By::none) == graph.node_count());
  expect(boxes(graph, graph::Fold::By::name) == graph.node_count());
  expect(boxes(graph, graph::Fold::By::depth) == graph.node_count());
  expect(graph::difference(graph, graph).none());
  const auto plain = graph::Anonymizer().anonymized(graph);
  expect(plain && plain->node_count() == graph.node_count());
  graph::JobCheck job;
  job.add(0, graph);
  job.add(1, *plain);
  (void)job.findings();
  return 0;
}
