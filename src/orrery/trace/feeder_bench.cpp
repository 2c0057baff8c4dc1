// Opening a graph and executing it, with each node completed when it is issued.
#include <cstdint>
#include <string>

#include <benchmark/benchmark.h>

#include "orrery/graph/builder.hpp"
#include "orrery/trace/feeder.hpp"

namespace orrery::trace {
namespace {

// A chain of compute nodes with three attributes, 80 bytes each in a file; `step`: how far ids are apart.
graph::Graph chain(std::uint64_t count, std::uint64_t step) {
  graph::GraphBuilder builder;
  graph::NodeRecord node;
  std::string name;
  for (std::uint64_t i = 0; i < count; ++i) {
    name = "n" + std::to_string(i);
    node.id = i * step;
    node.name = name;
    node.type = graph::NodeType::comp;
    node.duration_us = 10;
    node.data_deps.clear();
    if (i > 0) { node.data_deps.push_back((i - 1) * step); }
    node.attributes = {{graph::keys::is_cpu_op, graph::Value::boolean(false), {}, {}},
                       {graph::keys::num_ops, graph::Value::integer(1'000'000'000), {}, {}},
                       {graph::keys::tensor_size, graph::Value::natural(4096 * i), {}, {}}};
    builder.add(node);
  }
  return builder.finish().value();
}

void feed(benchmark::State& state, std::uint64_t step) {
  const auto count = static_cast<std::uint64_t>(state.range(0));
  const std::string bytes = chakra_bytes(chain(count, step));
  for (auto unused : state) {
    auto feeder = Feeder::of_bytes(bytes, "chain");
    for (auto node = feeder->next(); *node != nullptr; node = feeder->next()) {
      if (!feeder->complete((*node)->id)) { state.SkipWithError("not completed"); }
    }
    if (!feeder->done()) { state.SkipWithError("not done"); }
    state.counters["index_bytes_a_node"] = static_cast<double>(feeder->index_memory()) / static_cast<double>(count);
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * bytes.size()));
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * count));
}

void feed_a_chain(benchmark::State& state) { feed(state, 1); }
void feed_a_chain_with_gaps_between_ids(benchmark::State& state) { feed(state, 3); }

// Argument: nodes.
BENCHMARK(feed_a_chain)->Arg(100'000)->Unit(benchmark::kMillisecond);
BENCHMARK(feed_a_chain_with_gaps_between_ids)->Arg(100'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orrery::trace
