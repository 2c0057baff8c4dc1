// The order of a pair.
#include "orrery/parallel/pair_order.hpp"

#include <algorithm>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "orrery/parallel/test_jobs.hpp"

namespace orrery::parallel::pair_order_test {
namespace {

using test::any_case;
using test::Case;
using test::SeededRandom;

// A case that runs pairs.
struct Made {
  explicit Made(const Case& c)
      : cluster(c.cluster),
        program(lower(c.model, c.job, c.plan, c.cluster, c.stack)),
        fabric(cluster),
        prices(fabric),
        times(program, fabric, prices) {}

  hardware::Cluster cluster;
  Program program;
  network::Fabric fabric;
  network::PriceCache prices;
  ItemTimes times;
};

// Time of the kernels and of the calls of a segment, gathers and reductions included.
struct Sums {
  Seconds kernels, calls, launches;
};
Sums sums_of(Made& made, const Segment& segment) {
  Sums sums;
  const auto add = [&](BlockId id, double count, bool is_work) {
    const Block& block = made.program.block(id);
    if (is_work) { sums.launches += count * block.launch; }
    for (std::size_t i = 0; i < block.items.size(); ++i) {
      (block.items[i].kernel() != nullptr ? sums.kernels : sums.calls) += count * made.times.of(id)[i];
    }
  };
  for (const BlockUse& use : segment) {
    const auto count = static_cast<double>(use.repeat);
    add(use.work, count, true);
    if (use.gather) { add(*use.gather, count, false); }
    if (use.reduce) { add(*use.reduce, count, false); }
  }
  return sums;
}

template <class Use>
void each_pair(Use use) {
  int cases = 0, dispatch = 0;
  for (std::uint64_t seed = 0; cases < 60; ++seed) {
    SeededRandom random(seed);
    Case c = any_case(random);
    c.stack.overlap.dispatch = true;
    Made made(c);
    if (!has_pairs(made.program.pipeline)) { continue; }
    ++cases;
    dispatch += made.program.pipeline.pairs ? 1 : 0;
    for (const RankClass& rank_class : made.program.classes) {
      for (const auto& [forward, backward] : paired_chunks(made.program.pipeline, rank_class.first_stage)) {
        use(made, made.program.program_of(rank_class.chunks[forward]),
            made.program.program_of(rank_class.chunks[backward]));
      }
    }
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(dispatch, 5);
  EXPECT_LT(dispatch, 55);
}

TEST(PairOrder, takes_at_least_its_kernels_and_launches_and_at_most_everything_in_sequence) {
  each_pair([](Made& made, const ChunkProgram& forward, const ChunkProgram& backward) {
    Sums all;
    for (const Segment* segment : {&forward.forward, &backward.backward, &backward.weight}) {
      const Sums sums = sums_of(made, *segment);
      all.kernels += sums.kernels, all.calls += sums.calls, all.launches += sums.launches;
    }
    const double time = pair_order(made.program, made.times, forward, backward).time.value(), rounding = 1e-12 * time;
    EXPECT_GE(time, max(all.kernels, all.launches).value() - rounding);
    EXPECT_LE(time, (all.kernels + all.calls + all.launches).value() + rounding);
  });
}

// The begin and the end of every segment; for every execution its begin, its end and its items.
TEST(PairOrder, has_every_step_of_both_halves_once) {
  each_pair([](Made& made, const ChunkProgram& forward, const ChunkProgram& backward) {
    const auto steps_of = [&](const Segment& segment) {
      std::int64_t steps = 2;
      for (const BlockUse& use : segment) {
        steps += use.repeat * (2 + static_cast<std::int64_t>(made.program.block(use.work).items.size()));
      }
      return steps;
    };
    const PairOrder order = pair_order(made.program, made.times, forward, backward);
    const std::int64_t weight = backward.weight.empty() ? 0 : steps_of(backward.weight);
    EXPECT_EQ(std::count(order.halves.begin(), order.halves.end(), 0), steps_of(forward.forward));
    EXPECT_EQ(std::count(order.halves.begin(), order.halves.end(), 1), steps_of(backward.backward) + weight);
  });
}

// Figures of the machine, one at a time.
const std::vector<std::function<void(hardware::Cluster&)>>& improvements() {
  static const std::vector<std::function<void(hardware::Cluster&)>> kAll = {
      [](hardware::Cluster& c) {
        for (auto& [name, peak] : c.accelerator.matrix_peak) { peak *= 1.3; }
      },
      [](hardware::Cluster& c) { c.accelerator.memory_bandwidth *= 1.3; },
      [](hardware::Cluster& c) { c.accelerator.kernel_latency = c.accelerator.kernel_latency / 1.3; },
      [](hardware::Cluster& c) { c.dimensions.front().bandwidth *= 2.0; },
      [](hardware::Cluster& c) { c.dimensions.back().bandwidth *= 1.1; },
      [](hardware::Cluster& c) { c.dimensions.back().link.latency = c.dimensions.back().link.latency / 2.0; },
      [](hardware::Cluster& c) { c.second_tier.bandwidth *= 1.5; },
  };
  return kAll;
}

TEST(PairOrder, a_shorter_kernel_or_call_never_makes_a_pair_longer) {
  int cases = 0, shorter = 0;
  for (std::uint64_t seed = 0; cases < 60; ++seed) {
    SeededRandom random(seed);
    const Case c = any_case(random);
    if (c.plan.schedule != ScheduleKind::dualpipe) { continue; }
    ++cases;
    Made made(c);
    const auto before = pair_orders(made.program, made.times);
    for (std::size_t i = 0; i < improvements().size(); ++i) {
      Case faster = c;
      improvements()[i](faster.cluster);
      Made other(faster);
      const auto after = pair_orders(other.program, other.times);
      ASSERT_EQ(before.size(), after.size());
      for (std::size_t pair = 0; pair < before.size(); ++pair) {
        EXPECT_LE(after[pair].time.value(), before[pair].time.value() * (1.0 + 1e-12)) << "seed " << seed << ": " << i;
        shorter += after[pair].time < before[pair].time ? 1 : 0;
      }
    }
  }
  EXPECT_GT(shorter, cases);
}

// Both halves: a kernel of 1 s, an all-gather of 2 s (4 GB over two devices at 1 GB/s), a kernel of 1 s.
//   one    kernel 0-1, all-gather 1-3, kernel 3-4
//   other  kernel 1-2, all-gather 3-5, kernel 5-6
// In sequence they take 8 s.
// Where only dispatch and combine overlap, gathers of other groups keep both halves from computing.
TEST(PairOrder, one_half_computes_while_the_other_communicates) {
  hardware::Cluster cluster = network::test::plain_cluster({2});
  cluster.accelerator.memory_bandwidth = BytesPerSecond(1e9);
  cluster.accelerator.memory_efficiency = 1.0;
  auto& link = cluster.dimensions.front().link;
  link.latency = Seconds();
  link.protocols = {{"only", Seconds(), Seconds(), Seconds(), Seconds(), 1.0}};
  link.in_switch_efficiency = 0.0;
  hardware::Kernel kernel;
  kernel.kind = hardware::KernelKind::stream;
  kernel.bytes = Bytes(1e9);
  kernel.launches = 0;
  const Item compute{"kernel", Purpose::forward, KernelLaunch{kernel}};
  const CollectiveCall gather{Collective::all_gather, GroupKind::ep, Bytes(4e9)};
  Program program;
  program.mesh.group(GroupKind::ep) = {{{0, 2}}, true};
  program.blocks.emplace_back(
      Block{"work", {compute, {"gather", Purpose::forward, CollectiveLaunch{gather}}, compute}, {}});
  ChunkProgram chunk;
  chunk.forward = chunk.backward = {{BlockId(0), 1}};
  const network::Fabric fabric(cluster);
  network::PriceCache prices(fabric);
  ItemTimes times(program, fabric, prices);
  EXPECT_NEAR(pair_order(program, times, chunk, chunk).time.value(), 6.0, 1e-9);
  program.pipeline.pairs = true;
  EXPECT_NEAR(pair_order(program, times, chunk, chunk).time.value(), 6.0, 1e-9);
  const CollectiveCall other{Collective::all_gather, GroupKind::tp, Bytes(4e9)};
  program.mesh.group(GroupKind::tp) = program.mesh.group(GroupKind::ep);
  program.blocks[BlockId(0)] =
      Block{"work", {compute, {"gather", Purpose::forward, CollectiveLaunch{other}}, compute}, {}};
  ItemTimes times_of_other(program, fabric, prices);
  EXPECT_NEAR(pair_order(program, times_of_other, chunk, chunk).time.value(), 8.0, 1e-9);
}

}  // namespace
}  // namespace orrery::parallel::pair_order_test
