// Generated graphs against the program that they are made of: the same work, the same bytes over the same groups, the
// same messages, and no rank that waits for ever.
#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "orrery/core/test_effort.hpp"
#include "orrery/cost/kernel_cost.hpp"
#include "orrery/generate/graph_sink.hpp"
#include "orrery/generate/job_graphs.hpp"
#include "orrery/generate/test_sinks.hpp"
#include "orrery/graph/chakra_collective.hpp"
#include "orrery/graph/job_check.hpp"
#include "orrery/parallel/calls.hpp"
#include "orrery/parallel/test_jobs.hpp"
#include "orrery/parallel/test_totals.hpp"

namespace orrery::generate::job_graphs_test {

using parallel::GroupKind;
using parallel::Program;
using parallel::Route;
using parallel::test::any_case;
using parallel::test::any_inference_case;
using parallel::test::Case;
using parallel::test::SeededRandom;
using test::Totals;

Program program_of(const Case& c) { return parallel::lower(c.model, c.job, c.plan, c.cluster, c.stack); }

// What one rank of each stage does in a step, counted from the program without its order.
struct Expected {
  double flops = 0, memory_bytes = 0, kernels = 0, time = 0, host_time = 0;
  std::map<std::tuple<GroupKind, bool, Collective>, double> collective_bytes;  // overlapped with blocks?
  double loaded = 0, stored = 0;
  double ring_bytes = 0, ring_sends = 0;
  double calls = 0;
};

class Counting {
 public:
  explicit Counting(const Case& c, const Program& program) : case_(c), program_(program) {
    for (const auto& rank_class : program.classes) { add(rank_class); }
  }
  Expected sum;

 private:
  void add(const parallel::RankClass& rank_class) {
    const auto stages = static_cast<double>(rank_class.stages);
    for (const auto& place : rank_class.chunks) {
      const auto& chunk = program_.program_of(place);
      if (program_.job.is_inference()) {
        const auto m = static_cast<double>(program_.pipeline.micro_batches);
        const auto passes = static_cast<double>(parallel::decode_passes(program_.job, program_.plan));
        add(chunk.forward, stages * m, 0);
        for (std::int64_t token = 1; token < program_.job.generate; ++token) {
          add(chunk.decode, stages * passes, token - 1);
        }
        continue;
      }
      const double m = parallel::test::micro_batches_of_chunk(program_);
      const bool splits = !chunk.weight.empty();
      add(chunk.first_forward, stages, 0);
      add(chunk.forward, stages * (m - 1.0), 0);
      add(splits ? chunk.weight : chunk.backward, stages * (m - 1.0), 0);
      add(chunk.last_backward, stages, 0);
      if (splits) { add(chunk.backward, stages * m, 0); }
    }
    add(rank_class.finish_reduce, stages, 0);
    add(rank_class.finish, stages, 0);
    if (!program_.job.is_inference()) { sum.host_time += stages * case_.stack.host.step_overhead.value(); }
  }

  void add(const parallel::Segment& segment, double count, std::int64_t grown) {
    for (const auto& use : segment) {
      const double times = count * static_cast<double>(use.repeat);
      add(program_.block(use.work), times, false, grown);
      if (use.gather) { add(program_.block(*use.gather), times, true, grown); }
      if (use.reduce) { add(program_.block(*use.reduce), times, true, grown); }
    }
  }

  void add(const parallel::Block& block, double count, bool overlapped, std::int64_t grown) {
    if (!overlapped) { sum.host_time += count * block.launch.value(); }
    for (const auto& item : block.items) {
      if (const auto* launch = item.kernel()) {
        const auto kernel = parallel::grown_kernel(*launch, grown);
        sum.flops += count * kernel.flops.value();
        sum.memory_bytes += count * (kernel.bytes + kernel.casts).value();
        sum.time += count * cost::kernel_cost(kernel, case_.cluster.accelerator).time.value();
        sum.kernels += count;
      } else if (const auto* collective = item.collective()) {
        add(collective->call, count, overlapped);
      }
    }
  }

  void add(const parallel::CollectiveCall& call, double count, bool overlapped) {
    const double bytes = count * call.bytes.value();
    sum.calls += count;
    const auto add_group = [&](GroupKind group, double size) {
      if (program_.mesh.group(group).size() > 1) { sum.collective_bytes[{group, overlapped, call.collective}] += size; }
    };
    switch (route_of(call, program_.mesh)) {
      case Route::collective: return add_group(call.group, bytes);
      case Route::node_dispatch: {
        const auto sizes = node_dispatch_bytes(call, program_.mesh);
        add_group(sizes.inside_group, count * sizes.inside.value());
        return add_group(GroupKind::ep_across, count * sizes.across.value());
      }
      case Route::ring_steps: {
        const auto members = static_cast<double>(program_.plan.cp);
        if (bytes == 0.0) { return; }
        sum.ring_bytes += bytes * (members - 1.0) / members;
        sum.ring_sends += count * (members - 1.0);
        return;
      }
      case Route::host:
        if (call.transfer == parallel::TierTransfer::update) {
          sum.stored += count * call.update.gradients.value();
          sum.loaded += count * call.update.weights.value();
          sum.host_time += count * host_update_time(call, case_.cluster.second_tier).value();
          return;
        }
        if (call.transfer != parallel::TierTransfer::store) { sum.loaded += bytes; }
        if (call.transfer != parallel::TierTransfer::load) { sum.stored += bytes; }
    }
  }

  const Case& case_;
  const Program& program_;
};

// Sums of the graphs of the first rank of every stage.
void add_up(const JobGraphs& graphs, Totals& totals) {
  for (std::int64_t stage = 0; stage < graphs.stages(); ++stage) {
    totals.rank = graphs.first_rank(stage);
    ORRERY_ASSERT(graphs.write(totals.rank, Naming::ranks, totals).has_value());
  }
}

// The kind and the lane of a group by its name.
const GroupFamily& family_of(const JobGraphs& graphs, const std::string& name) {
  const std::int64_t number = std::stoll(name);
  for (const GroupFamily& family : graphs.groups().families()) {
    if (number >= family.first_name && number < family.first_name + family.count) { return family; }
  }
  throw InternalError("no such group");
}

// nccl-tests sizes.
std::map<std::tuple<GroupKind, bool, Collective>, double> collective_bytes_of(const JobGraphs& graphs,
                                                                              const Totals& totals) {
  std::map<std::tuple<GroupKind, bool, Collective>, double> sums;
  for (const auto& [key, bytes] : totals.collective_bytes) {
    const GroupFamily& family = family_of(graphs, key.first);
    if (family.lane == Lane::transfer) { continue; }
    const auto collective = graph::collective_of(static_cast<graph::CollectiveType>(key.second)).value();
    const auto members = static_cast<double>(graphs.groups().group(family, 0).degree);
    const bool overlapped = family.lane == Lane::overlapped;
    sums[{family.kind, overlapped, collective}] += bytes * (collective == Collective::all_gather ? members : 1.0);
  }
  return sums;
}

void expect_near(double actual, double expected, double tolerance, const char* what) {
  EXPECT_NEAR(actual, expected, tolerance + 1e-12 * expected) << what;
}

// Sizes of a node are rounded to whole bytes, durations to whole nanoseconds.
void expect_same_sums(const Case& c, Granularity granularity) {
  const Program program = program_of(c);
  const JobGraphs graphs(program, c.cluster, c.stack, {granularity, 1});
  Totals totals;
  add_up(graphs, totals);
  const Expected expected = Counting(c, program).sum;
  const auto nodes = static_cast<double>(totals.computes);
  expect_near(totals.flops, expected.flops, nodes, "FLOPs");
  expect_near(totals.memory_bytes, expected.memory_bytes, nodes, "bytes of kernels");
  if (granularity == Granularity::operators) {
    EXPECT_EQ(nodes, expected.kernels);
    expect_near(static_cast<double>(totals.duration_ns), 1e9 * expected.time, nodes, "time of kernels");
    expect_near(static_cast<double>(totals.host_ns), 1e9 * expected.host_time, static_cast<double>(totals.nodes),
                "host time");
  } else {
    EXPECT_LE(nodes, expected.kernels);
  }
  const double calls = static_cast<double>(c.plan.devices()) * (1.0 + expected.calls);
  expect_near(totals.loaded, expected.loaded, calls, "loaded");
  expect_near(totals.stored, expected.stored, calls, "stored");
  EXPECT_EQ(static_cast<double>(totals.ring_sends), expected.ring_sends);
  expect_near(totals.ring_bytes, expected.ring_bytes, expected.ring_sends, "ring");
  auto actual = collective_bytes_of(graphs, totals);
  for (const auto& [key, bytes] : expected.collective_bytes) {
    expect_near(actual[key], bytes, calls, std::string(name_of(std::get<GroupKind>(key))).c_str());
    actual.erase(key);
  }
  EXPECT_TRUE(actual.empty()) << "collectives that the program does not have";
}

TEST(JobGraphs, flops_bytes_and_times_are_those_of_the_program) {
  for (std::uint64_t seed = 0; seed < orrery::test::cases(500U); ++seed) {
    SeededRandom random(seed);
    Case c = any_case(random);
    c.stack.overlap.dispatch = seed % 2 == 1;
    expect_same_sums(c, static_cast<Granularity>(seed % 3));
    ASSERT_FALSE(HasFailure()) << "seed " << seed << "\n" << parallel::test::to_text(c);
  }
}

TEST(JobGraphs, flops_bytes_and_times_of_inference_are_those_of_the_program) {
  for (std::uint64_t seed = 0; seed < orrery::test::cases(200U); ++seed) {
    SeededRandom random(seed);
    const Case c = any_inference_case(random);
    expect_same_sums(c, static_cast<Granularity>(seed % 3));
    ASSERT_FALSE(HasFailure()) << "seed " << seed << "\n" << parallel::test::to_text(c);
  }
}

// Every rank of small jobs: checked as `orrery trace check` does, all sends and receives paired by (from, to, tag).
void expect_sound(const Case& c, std::int64_t steps) {
  const Program program = program_of(c);
  const JobGraphs graphs(program, c.cluster, c.stack, {Granularity::block, steps});
  graph::JobCheck check;
  Totals totals;
  for (std::int64_t rank = 0; rank < graphs.ranks(); ++rank) {
    GraphSink sink;
    totals.rank = rank;
    ASSERT_TRUE(graphs.write(rank, Naming::ranks, sink).has_value());
    ASSERT_TRUE(graphs.write(rank, Naming::ranks, totals).has_value());
    for (const GroupFamily& family : graphs.groups().families()) {
      const RankSet members = graphs.groups().members(family, rank);
      if (members.degree <= 1) { continue; }
      graph::ProcessGroup group{std::to_string(family.first_name + graphs.groups().position(family.kind, rank)), {}};
      for (std::int64_t i = 0; i < members.degree; ++i) {
        group.ranks.push_back(static_cast<std::uint64_t>(members.rank(i)));
      }
      sink.builder.add_group(group);
    }
    const auto graph = sink.builder.finish();
    ASSERT_TRUE(graph.has_value());
    check.add(static_cast<std::uint64_t>(rank), *graph);
  }
  for (const auto& finding : check.findings()) {
    EXPECT_FALSE(finding.unsound) << name_of(finding.problem) << ": " << finding.examples.front().message;
  }
  EXPECT_EQ(totals.sent, totals.received);
}

TEST(JobGraphs, jobs_of_all_ranks_are_sound_and_every_send_has_its_receive) {
  int jobs = 0;
  for (std::uint64_t seed = 0; jobs < orrery::test::cases(150); ++seed) {
    SeededRandom random(seed);
    Case c = seed % 4 == 3 ? any_inference_case(random) : any_case(random);
    c.stack.overlap.dispatch = seed % 3 == 1;
    if (c.plan.devices() > 16) { continue; }
    ++jobs;
    expect_sound(c, 1 + static_cast<std::int64_t>(seed % 2));
    ASSERT_FALSE(HasFailure()) << "seed " << seed << "\n" << parallel::test::to_text(c);
  }
}

// Activations go from each virtual stage to the next, gradients back, once per micro-batch. Under DualPipe half of the
// micro-batches go each way.
TEST(JobGraphs, every_stage_border_is_crossed_once_per_micro_batch_and_direction) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SeededRandom random(seed);
    Case c = any_case(random);
    c.stack.overlap.dispatch = seed % 2 == 1;
    const Program program = program_of(c);
    Totals totals;
    add_up(JobGraphs(program, c.cluster, c.stack, {Granularity::segment, 1}), totals);
    const std::int64_t p = c.plan.pp, m = program.pipeline.micro_batches;
    const bool dual = c.plan.schedule == parallel::ScheduleKind::dualpipe;
    const std::int64_t borders = p == 1 ? 0 : (dual ? p - 1 : p * c.plan.vpp - 1);
    ASSERT_EQ(totals.stage_sends, static_cast<std::uint64_t>(2 * borders * m)) << "seed " << seed;
  }
}

TEST(JobGraphs, groups_of_a_kind_have_every_rank_once) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SeededRandom random(seed);
    const Case c = parallel::test::pinned(random, any_case(random));
    const Program program = program_of(c);
    const ProcessGroups groups(program, c.cluster);
    std::int64_t name = 1;
    for (const GroupFamily& family : groups.families()) {
      EXPECT_EQ(family.first_name, name);
      name += family.count;
      std::set<std::int64_t> seen;
      for (std::int64_t i = 0; i < family.count; ++i) {
        const RankSet set = groups.group(family, i);
        for (std::int64_t k = 0; k < set.degree; ++k) {
          EXPECT_TRUE(seen.insert(set.rank(k)).second);
          EXPECT_EQ(groups.position(family.kind, set.rank(k)), i);
          EXPECT_EQ(groups.members(family, set.rank(k)).first, set.first);
        }
      }
      const bool ends = family.kind == GroupKind::embedding;
      EXPECT_EQ(static_cast<std::int64_t>(seen.size()), ends ? 2 * c.plan.stage_ranks() : c.plan.devices());
    }
    ASSERT_FALSE(HasFailure()) << "seed " << seed << "\n" << parallel::test::to_text(c);
  }
}

TEST(JobGraphs, too_many_messages_are_refused) {
  SeededRandom random(1);
  const Case c = any_case(random);
  const Program program = program_of(c);
  EXPECT_TRUE(JobGraphs::writable(program, {}).has_value());
  EXPECT_FALSE(JobGraphs::writable(program, {Granularity::block, 1'000'000'000}).has_value());
}

// Members on each dimension, the outermost first.
std::vector<std::int64_t> from_outermost(const network::Group& shape) {
  constexpr auto kDimensions = static_cast<std::size_t>(hardware::kMaxDimensions);
  std::vector<std::int64_t> members(kDimensions, 1);
  for (const network::Extent& extent : shape.extents) {
    members[kDimensions - 1 - static_cast<std::size_t>(extent.dimension)] = extent.members;
  }
  return members;
}

// The price of a family assumes the shape of its slowest groups: none has more members farther out, and some have it.
TEST(JobGraphs, groups_are_where_the_placement_has_them) {
  int placed = 0, split = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    SeededRandom random(seed);
    const Case c = parallel::test::pinned(random, any_case(random));
    const Program program = program_of(c);
    const ProcessGroups groups(program, c.cluster);
    std::set<std::int64_t> devices;
    for (std::int64_t rank = 0; rank < c.plan.devices(); ++rank) {
      devices.insert(groups.device(rank));
      EXPECT_EQ(groups.rank_on(groups.device(rank)), rank);
    }
    EXPECT_EQ(*devices.rbegin(), c.plan.devices() - 1);
    for (const GroupFamily& family : groups.families()) {
      const network::Group& shape = program.mesh.group(family.kind);
      if (!shape.regular || family.kind == GroupKind::embedding || family.kind == GroupKind::mirror) { continue; }
      bool is_met = false;
      for (std::int64_t i = 0; i < family.count; ++i) {
        const RankSet set = groups.group(family, i);
        split += set.inner < set.degree ? 1 : 0;
        std::vector<std::uint32_t> ranks;
        for (std::int64_t k = 0; k < set.degree; ++k) { ranks.push_back(static_cast<std::uint32_t>(set.rank(k))); }
        const network::Group own = parallel::shape_of(groups.layout(), ranks);
        EXPECT_TRUE(own.regular) << name_of(family);
        EXPECT_LE(from_outermost(own), from_outermost(shape)) << name_of(family) << " " << i;
        is_met = is_met || own == shape;
      }
      EXPECT_TRUE(is_met) << name_of(family);
    }
    placed += c.plan.placement.any() ? 1 : 0;
    ASSERT_FALSE(HasFailure()) << "seed " << seed << "\n" << parallel::test::to_text(c);
  }
  EXPECT_GT(placed, 300);
  EXPECT_GT(split, 0);
}

}  // namespace orrery::generate::job_graphs_test
