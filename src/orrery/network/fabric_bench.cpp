// One price as in a plan search: three protocols; between nodes rings and trees.
#include <cstdint>

#include <benchmark/benchmark.h>

#include "orrery/network/fabric.hpp"
#include "orrery/network/test_cluster.hpp"

namespace orrery::network {
namespace {

using namespace orrery::literals;

hardware::Cluster cluster() {
  hardware::Cluster cluster = test::plain_cluster({8, 64});
  for (auto& dimension : cluster.dimensions) {
    dimension.link.in_switch_efficiency = 0.0;
    dimension.link.protocols = {{"LL", 6.6_us, 0.6_us, 6.8_us, 0.6_us, 0.5},
                                {"LL128", 14_us, 1.9_us, 14_us, 1.25_us, 0.9375},
                                {"Simple", 8.4_us, 3.4_us, 8.4_us, 4_us, 1.0}};
  }
  cluster.dimensions[0].bandwidth = 300_GBps;
  cluster.dimensions[1].bandwidth = 25_GBps;
  cluster.accelerator.memory_bandwidth = BytesPerSecond(2e12);
  return cluster;
}

void all_reduce(benchmark::State& state, const Group& group) {
  const hardware::Cluster priced = cluster();
  const Fabric fabric(priced);
  const Bytes bytes(static_cast<double>(state.range(0)));
  for (auto unused : state) { benchmark::DoNotOptimize(fabric.price(Collective::all_reduce, bytes, group).time); }
}

void all_reduce_in_a_node(benchmark::State& state) { all_reduce(state, test::group_of({8})); }
void all_reduce_over_nodes(benchmark::State& state) { all_reduce(state, test::group_of({8, 16})); }

// Argument: bytes.
BENCHMARK(all_reduce_in_a_node)->Arg(1 << 13)->Arg(1 << 26);
BENCHMARK(all_reduce_over_nodes)->Arg(1 << 13)->Arg(1 << 26);

}  // namespace
}  // namespace orrery::network
