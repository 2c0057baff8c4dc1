// The closed form equals the simulation of every transfer over ports.

#include "orrery/network/step_simulator.hpp"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "orrery/network/chunking.hpp"
#include "orrery/network/test_cluster.hpp"
#include "orrery/network/test_collectives.hpp"

namespace orrery::network::step_simulator_test {
namespace {

using namespace orrery::literals;  // NOLINT(google-build-using-namespace): literals need it
using test::group_of;

Seconds closed_form(const Fabric& fabric, const Schedule& schedule, std::size_t protocol) {
  const ChunkedSchedule chunked = chunked_schedule(fabric, shape_of(schedule), protocol);
  return chunked.base + chunked_time(chunked, schedule.chunks).total();
}

// A cluster whose constants are all different. Memory is sometimes slow enough for reductions to have an effect; some
// dimensions are meshes or rings of which a group is a part.
hardware::Cluster random_cluster(const std::vector<std::int64_t>& sizes) {
  const auto figure = [] { return static_cast<double>(*rc::gen::inRange(1, 1000)); };
  hardware::Cluster cluster = test::plain_cluster(sizes);
  for (auto& dimension : cluster.dimensions) {
    dimension.bandwidth = BytesPerSecond(figure() * 1e9);
    dimension.wiring = *rc::gen::element(hardware::Wiring::switched, hardware::Wiring::ring, hardware::Wiring::mesh);
    dimension.size += *rc::gen::inRange(0, 3);
    dimension.link.efficiency = figure() / 1000.0;
    dimension.link.in_switch_efficiency = figure() / 1000.0;
    dimension.link.in_switch_step = Seconds(figure() * 1e-8);
    auto& protocol = dimension.link.protocols.front();
    protocol.ring_step = Seconds(figure() * 1e-8);
    protocol.tree_step = Seconds(figure() * 1e-8);
    protocol.tree_base = Seconds(figure() * 1e-8);
    protocol.own_share = figure() / 1000.0;
    protocol.exchange_base = Seconds(figure() * 1e-8);
  }
  cluster.accelerator.memory_bandwidth = BytesPerSecond(figure() * 1e10);
  return cluster;
}

std::vector<std::int64_t> random_shape() {
  if (*rc::gen::inRange(0, 2) == 0) { return {*rc::gen::inRange<std::int64_t>(1, 10)}; }
  return *rc::gen::elementOf(std::vector<std::vector<std::int64_t>>{
      {2, 2}, {2, 4}, {3, 2}, {4, 3}, {8, 2}, {2, 5}, {5, 3}, {2, 2, 2}, {2, 3, 2}});
}

TEST(StepSimulator, closed_form_equals_the_simulation_for_any_shape_size_and_constants) {
  EXPECT_TRUE(rc::check([] {
    const auto shape = random_shape();
    const hardware::Cluster cluster = random_cluster(shape);
    const Fabric fabric(cluster);
    const Group group = group_of(shape);
    const Bytes bytes(static_cast<double>(*rc::gen::inRange(1, 1 << 30)));
    for (const Collective collective : test::kPricedCollectives) {
      for (const CollectiveAlgorithm algorithm : test::kScheduleAlgorithms) {
        Schedule schedule = make_schedule(collective, algorithm, bytes, group);
        schedule.chunks = *rc::gen::inRange(1, 9);
        const double simulated = simulated_time(fabric, schedule, group, 0).value();
        const double priced = closed_form(fabric, schedule, 0).value();
        RC_LOG() << "collective " << static_cast<int>(collective) << " algorithm " << static_cast<int>(algorithm)
                 << " chunks " << schedule.chunks << " simulated " << simulated << " priced " << priced << '\n';
        RC_ASSERT(std::abs(simulated - priced) <= 1e-9 * priced);
      }
    }
  }));
}

TEST(StepSimulator, closed_form_equals_the_simulation_for_mixed_recipes) {
  EXPECT_TRUE(rc::check([] {
    const std::vector<std::int64_t> shape = {*rc::gen::inRange<std::int64_t>(2, 6),
                                             *rc::gen::inRange<std::int64_t>(2, 5)};
    const hardware::Cluster cluster = random_cluster(shape);
    const Fabric fabric(cluster);
    const Group group = group_of(shape);
    Recipe recipe{};
    recipe[0] =
        *rc::gen::element(CollectiveAlgorithm::ring, CollectiveAlgorithm::direct, CollectiveAlgorithm::in_switch);
    recipe[1] = *rc::gen::elementOf(test::kScheduleAlgorithms);
    for (const Collective collective : test::kPricedCollectives) {
      Schedule schedule = make_schedule(collective, recipe, Bytes(1e7), group);
      schedule.chunks = *rc::gen::inRange(1, 7);
      const double simulated = simulated_time(fabric, schedule, group, 0).value();
      const double priced = closed_form(fabric, schedule, 0).value();
      RC_LOG() << "collective " << static_cast<int>(collective) << " recipe " << static_cast<int>(recipe[0])
               << static_cast<int>(recipe[1]) << " simulated " << simulated << " priced " << priced << '\n';
      RC_ASSERT(std::abs(simulated - priced) <= 1e-9 * priced);
    }
  }));
}

TEST(StepSimulator, chunks_through_two_dimensions_take_what_the_busiest_port_takes) {
  // 4 MB over 2 x 2 at 1 GB/s, 1 us a step, base 1 us, 2 chunks of 2 MB. Inner reduce_scatter or all_gather: 1 step,
  // 1 us + 1 ms. Outer: 2 steps of 1 us + 0.5 ms = 1.002 ms. Rounds: RS | RS + outer | outer + AG | AG, and the longest
  // port of every round: 1.001, 1.002, 1.002, 1.001 ms. In all 4.006 ms + 1 us.
  const hardware::Cluster cluster = test::plain_cluster({2, 2});
  const Fabric fabric(cluster);
  Schedule schedule = make_schedule(Collective::all_reduce, CollectiveAlgorithm::ring, Bytes(4e6), group_of({2, 2}));
  schedule.chunks = 2;
  EXPECT_NEAR(simulated_time(fabric, schedule, group_of({2, 2}), 0).value(), 4.007e-3, 1e-12);
  EXPECT_NEAR(fabric.price(schedule).time.value(), 4.007e-3, 1e-12);
}

}  // namespace
}  // namespace orrery::network::step_simulator_test
