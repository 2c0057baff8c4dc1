// One update of fair rates: a flow ends, another starts. Leaf-spine, 32 hosts per leaf, 16 spines (2:1). Each pattern
// with automatic choice, full solutions and local repair.
#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

#include "orrery/core/random.hpp"
#include "orrery/network/fair_rates.hpp"

namespace orrery::network {
namespace {

constexpr std::int64_t kLeaf = 32, kSpines = 16;

struct Traffic {
  std::int64_t hosts;
  std::int64_t job;  // hosts whose flows stay among themselves; 0: neighbours on a ring
  RandomStream random{1};

  std::vector<std::uint32_t> route() {
    const std::int64_t from = random.below(hosts);
    const std::int64_t to = job == 0 ? (from + 1) % hosts : from / job * job + random.below(job);
    const auto leaves = hosts / kLeaf, spine = random.below(kSpines);
    std::vector<std::uint32_t> links = {static_cast<std::uint32_t>(from)};
    if (from / kLeaf != to / kLeaf) {
      links.push_back(static_cast<std::uint32_t>(2 * hosts + from / kLeaf * kSpines + spine));
      links.push_back(static_cast<std::uint32_t>(2 * hosts + (leaves + to / kLeaf) * kSpines + spine));
    }
    links.push_back(static_cast<std::uint32_t>(hosts + to));
    return links;
  }
};

// Arguments: flows, hosts of a job (0: ring), method.
void update(benchmark::State& state) {
  const std::int64_t flows = state.range(0), hosts = 1024;
  Traffic traffic{hosts, state.range(1)};
  FairRates rates(std::vector<double>(static_cast<std::size_t>(2 * hosts + 2 * hosts / kLeaf * kSpines), 1e9),
                  static_cast<FairRates::Method>(state.range(2)));
  std::vector<std::uint32_t> live;
  for (std::int64_t i = 0; i < flows; ++i) { live.push_back(rates.add(traffic.route())); }
  rates.settle([](std::uint32_t, double) {});
  for (auto unused : state) {
    auto& flow = live[static_cast<std::size_t>(traffic.random.below(flows))];
    rates.remove(flow);
    flow = rates.add(traffic.route());
    rates.settle([](std::uint32_t, double) {});
  }
}

BENCHMARK(update)->ArgsProduct({{1000, 10'000}, {1024, 64, 0}, {0, 1, 2}})->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace orrery::network
