// Laws of every estimate: its parts sum to the total, and better hardware never makes it slower.
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/cost/kernel_cost.hpp"
#include "orrery/estimate/estimator.hpp"
#include "orrery/estimate/step.hpp"
#include "orrery/hardware/catalogue.hpp"
#include "orrery/network/fabric.hpp"
#include "orrery/parallel/lowerer.hpp"
#include "orrery/parallel/test_jobs.hpp"
#include "orrery/workload/catalogue.hpp"
#include "orrery/workload/operators.hpp"

namespace orrery::estimate::estimator_law_test {
namespace {

using parallel::Recompute;
using parallel::test::any_case;
using parallel::test::Case;
using parallel::test::SeededRandom;

Seconds step_time(const Case& c, Ports ports = Ports::shared) {
  return Estimator(c.model, c.cluster, c.stack, c.job).step_time(c.plan, ports);
}

// Tolerance for rounding: one tick per task.
bool no_slower(Seconds a, Seconds b) { return a.value() <= b.value() * (1.0 + 1e-9) + 1e-9; }

// What a faster machine may lose. With shared ports, a call with a shorter latency needs a larger share of its port and
// slows concurrent calls: seen 0.04 %.
double anomaly(Ports ports) { return ports == Ports::shared ? 1.001 : 1.0; }

// `improve`: makes a cluster faster.
void expect_no_slower(Case c, const std::function<void(hardware::Cluster&)>& improve, std::uint64_t seed) {
  Case better = c;
  improve(better.cluster);
  for (const Ports ports : {Ports::shared, Ports::separate}) {
    ASSERT_TRUE(no_slower(step_time(better, ports), anomaly(ports) * step_time(c, ports)))
        << "seed " << seed << "\n"
        << parallel::test::to_text(c);
  }
}

Seconds forward(const std::vector<workload::Operator>& operators, const hardware::Accelerator& accelerator) {
  Seconds sum;
  for (const auto& op : operators) { sum += cost::kernel_cost(op.forward, accelerator).time; }
  return sum;
}

Seconds backward(const std::vector<workload::Operator>& operators, const hardware::Accelerator& accelerator) {
  Seconds sum;
  for (const auto& op : operators) {
    sum += cost::kernel_cost(op.backward_input, accelerator).time;
    sum += cost::kernel_cost(op.backward_weight, accelerator).time;
  }
  return sum;
}

Seconds streamed(double bytes, const hardware::Accelerator& accelerator) {
  hardware::Kernel kernel;
  kernel.kind = hardware::KernelKind::stream;
  kernel.bytes = Bytes(bytes);
  return cost::kernel_cost(kernel, accelerator).time;
}

// On one device: the kernels of every operator once per micro-batch; accumulation of gradients where GEMMs do not do it
// (weight, read and write of the gradient); gradient norm (gradient); optimizer step (gradient in, master copy and
// moments in and out, weight out).
TEST(EstimatorLaw, one_device_takes_the_sum_of_its_kernels) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SeededRandom random(seed);
    Case c = any_case(random);
    c.plan = {};
    c.job.task = parallel::Task::pretrain;
    c.job.adapter = {};
    c.plan.micro_batch = random(1, 4);
    c.plan.recompute = random(0, 2) == 0 ? Recompute::none : Recompute::full;
    c.job.global_batch = c.plan.micro_batch * random(1, 6);
    c.cluster = parallel::test::cluster_of({1});
    c.stack.host.step_overhead = Seconds(3e-3);
    c.stack.host.launch_time = c.stack.host.kernel_launch_time = Seconds(0.0);

    const workload::Slice slice = parallel::slice_of(c.job, c.plan);
    const auto& gpu = c.cluster.accelerator;
    const double gradient = c.stack.gradients.element.value();
    const double table = c.model.tied_embeddings ? static_cast<double>(c.model.vocab * c.model.hidden) : 0.0;
    const auto m = static_cast<double>(parallel::micro_batches(c.job, c.plan));
    Seconds micro_batch;
    double weights = 0.0;
    const auto add = [&](const std::vector<workload::Operator>& operators, double times, double tied, bool again) {
      double part = 0.0;
      for (const auto& op : operators) { part += op.parameters; }
      micro_batch += times * (forward(operators, gpu) + backward(operators, gpu));
      if (again) { micro_batch += times * forward(operators, gpu); }
      const bool accumulates = !c.stack.fusion.gradient_accumulation && m > 1.0 && part + tied > 0.0;
      if (accumulates) { micro_batch += times * streamed((part + tied) * (2.0 + 2.0 * gradient), gpu); }
      weights += times * part;
    };
    parallel::test::for_each_tower_part(c.model, c.stack, slice, [&](const auto& part, bool is_layer) {
      add(part, 1.0, 0.0, is_layer && c.plan.recompute == Recompute::full);
    });
    add(workload::embedding_operators(c.model, c.stack, slice), 1.0, 0.0, false);
    for (std::int64_t layer = 0; layer < c.model.depth(); ++layer) {
      add(workload::layer_operators(c.model, c.stack, slice, workload::layer_kind(c.model, layer)), 1.0, 0.0,
          c.plan.recompute == Recompute::full);
    }
    add(workload::head_operators(c.model, c.stack, slice), 1.0, table, false);
    add(workload::mtp_operators(c.model, c.stack, slice), static_cast<double>(c.model.mtp_layers), 0.0, false);
    const Seconds optimizer =
        streamed(weights * gradient, gpu) + streamed(weights * (gradient + 2.0 * 12.0 + 2.0), gpu);
    const Seconds expected = m * micro_batch + optimizer + Seconds(3e-3);
    ASSERT_NEAR(step_time(c).value(), expected.value(), 1e-9 * expected.value() + 1e-10) << "seed " << seed;
  }
}

void links_of(hardware::Cluster& cluster, const std::function<void(hardware::NetworkDimension&)>& change) {
  for (auto& dimension : cluster.dimensions) { change(dimension); }
}

TEST(EstimatorLaw, doubling_the_bandwidth_of_every_link_never_slows_a_step) {
  for (std::uint64_t seed = 0; seed < 2600; ++seed) {
    SeededRandom random(seed);
    const auto faster = [](hardware::Cluster& cluster) {
      links_of(cluster, [](auto& dimension) { dimension.bandwidth *= 2.0; });
    };
    expect_no_slower(any_case(random), faster, seed);
    ASSERT_FALSE(HasFailure());
  }
}

// A pair takes no longer than its halves in sequence, and hides only what is not a kernel: waits for communication and
// for the host. With a pipeline, stages wait for pairs as a whole, and one more micro-batch fills it.
TEST(EstimatorLaw, pairs_that_overlap_dispatch_hide_waits_only) {
  int hid = 0, piped = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SeededRandom random(seed);
    Case c = parallel::test::any_case_of(random, true);
    const auto estimated = [](const Case& of) {
      return Estimator(of.model, of.cluster, of.stack, of.job).estimate(of.plan);
    };
    const auto apart = estimated(c);
    c.stack.overlap.dispatch = true;
    const auto overlapped = estimated(c);
    EXPECT_NEAR(overlapped.breakdown.total() / overlapped.step_time, 1.0, 1e-9) << "seed " << seed;
    Estimator estimator(c.model, c.cluster, c.stack, c.job);
    ASSERT_TRUE(no_slower(estimator.step_time_bound(c.plan), overlapped.step_time)) << "seed " << seed;
    if (!parallel::overlaps_dispatch(c.model, c.plan, c.stack)) {
      ASSERT_EQ(overlapped.step_time, apart.step_time) << "seed " << seed;
      continue;
    }
    piped += c.plan.pp > 1 ? 1 : 0;
    if (c.plan.pp > 1) { continue; }
    const auto& parts = apart.breakdown;
    const Seconds kernels = parts.compute + parts.optimizer;
    // Gathers and reductions share a pair's stream of collectives.
    const bool has_calls_beside = c.plan.zero >= 2 || c.plan.offload.any();
    ASSERT_TRUE(has_calls_beside || no_slower(overlapped.step_time, apart.step_time)) << "seed " << seed;
    ASSERT_TRUE(no_slower(kernels, overlapped.step_time)) << "seed " << seed;
    if (parallel::micro_batches(c.job, c.plan) == 1) { ASSERT_EQ(overlapped.step_time, apart.step_time); }
    hid += overlapped.step_time < apart.step_time ? 1 : 0;
  }
  EXPECT_GT(hid, 5);
  EXPECT_GT(piped, 10);
}

// Without overlap, gathers run on the compute stream. If gradients are reduced without overlap, or every rank has
// different weights, they always do.
TEST(EstimatorLaw, weights_gathered_without_overlap_change_steps_only_where_gathers_overlap) {
  int slower = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SeededRandom random(seed);
    Case c = any_case(random);
    if (c.plan.zero == 0) { continue; }
    const Seconds overlapped = step_time(c);
    c.plan.gather_overlap = false;
    ASSERT_TRUE(parallel::is_valid(c.model, c.job, c.plan, c.cluster.devices));
    Estimator estimator(c.model, c.cluster, c.stack, c.job);
    const Seconds apart = estimator.step_time(c.plan);
    ASSERT_TRUE(no_slower(estimator.step_time_bound(c.plan), apart)) << "seed " << seed;
    const bool has_copies = c.plan.replicas() > 1 || (c.model.has_experts() && c.plan.expert_replicas() > 1);
    if (!c.plan.dp_overlap || !has_copies) { ASSERT_EQ(apart, overlapped) << "seed " << seed; }
    slower += apart > overlapped ? 1 : 0;
  }
  EXPECT_GT(slower, 30);
}

// What a stage does once a step with its weights.
struct OnceAStep {
  Seconds gathers;  // before its first forwards, part by part
  Seconds gather;   // after its optimizer, all parts in one collective
  Seconds optimizer;
};

std::vector<OnceAStep> once_a_step(const Case& c) {
  const parallel::Program program = parallel::lower(c.model, c.job, c.plan, c.cluster, c.stack);
  const network::Fabric fabric(c.cluster);
  network::PriceCache prices(fabric);
  StepSolver solver(c.stack, prices);
  const Step& step = solver.solve(program);
  const auto time_of = [&](parallel::BlockId block) { return step.blocks[block.index()].time; };
  std::vector<OnceAStep> stages;
  for (const auto& rank_class : program.classes) {
    OnceAStep stage;
    for (const auto& chunk : rank_class.chunks) {
      for (const auto& use : program.program_of(chunk).first_forward) {
        if (use.gather) { stage.gathers += static_cast<double>(use.repeat) * time_of(*use.gather); }
      }
    }
    for (const auto& use : rank_class.finish) {
      (program.block(use.work).name == "weights.gather" ? stage.gather : stage.optimizer) += time_of(use.work);
    }
    stages.push_back(stage);
  }
  return stages;
}

// How much longer a step of ZeRO 1 or 2 can be where weights are gathered under the first forwards and not after the
// optimizer, although nothing else changes:
//  - parts are gathered one by one, each with the latency of a collective; after the optimizer all are one collective;
//  - a step begins when the last stage's optimizer has ended, and gathers with it; after the optimizer each stage
//  gathers
//    as soon as its own has ended;
//  - kernels are slower for as long as a gather runs under them.
Seconds longest_loss(const Case& overlapped, const Case& apart) {
  const auto before = once_a_step(overlapped), after = once_a_step(apart);
  Seconds latencies, slowest, fastest = infinite<Seconds>(), gathers;
  for (std::size_t i = 0; i < before.size(); ++i) {
    latencies = max(latencies, before[i].gathers - after[i].gather);
    gathers = max(gathers, before[i].gathers);
    slowest = max(slowest, before[i].optimizer);
    fastest = min(fastest, before[i].optimizer);
  }
  return latencies + (slowest - fastest) + overlapped.stack.overlap.interference * gathers;
}

TEST(EstimatorLaw, overlapped_gathers_never_slow_a_step_beyond_their_latencies_and_interference) {
  int sharded_weights = 0, sharded_state = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SeededRandom random(seed);
    Case c = any_case(random);
    if (c.plan.zero == 0 || !c.plan.dp_overlap) { continue; }
    // The gathers of a pair share one stream with the collectives inside its blocks, and change its order.
    if (c.plan.schedule == parallel::ScheduleKind::dualpipe && c.plan.zero == 3) { continue; }
    Case apart = c;
    apart.plan.gather_overlap = false;
    const Seconds time = step_time(c, Ports::separate), time_apart = step_time(apart, Ports::separate);
    if (c.plan.zero == 3) {
      ASSERT_TRUE(no_slower(time, time_apart)) << "seed " << seed;
      sharded_weights += time < time_apart ? 1 : 0;
    } else if (!no_slower(time, time_apart)) {
      ASSERT_TRUE(no_slower(time, time_apart + longest_loss(c, apart))) << "seed " << seed;
    } else {
      sharded_state += time < time_apart ? 1 : 0;
    }
  }
  EXPECT_GT(sharded_weights, 100);
  EXPECT_GT(sharded_state, 100);
}

// Calls that meet at a port are slower than alone.
TEST(EstimatorLaw, sharing_ports_never_speeds_up_a_step) {
  int slower = 0;
  for (std::uint64_t seed = 0; seed < 1600; ++seed) {
    SeededRandom random(seed);
    const Case c = any_case(random);
    const Seconds shared = step_time(c), apart = step_time(c, Ports::separate);
    ASSERT_TRUE(no_slower(apart, shared)) << "seed " << seed;
    slower += shared > apart ? 1 : 0;
  }
  EXPECT_GT(slower, 100);
}

TEST(EstimatorLaw, halving_the_latencies_of_every_link_never_slows_a_step) {
  const auto halve = [](hardware::NetworkDimension& dimension) {
    auto& link = dimension.link;
    for (Seconds* latency : {&link.latency, &link.in_switch_base, &link.in_switch_step}) { *latency *= 0.5; }
    for (auto& protocol : link.protocols) {
      for (Seconds* latency : {&protocol.ring_base, &protocol.ring_step, &protocol.tree_base, &protocol.tree_step}) {
        *latency *= 0.5;
      }
    }
  };
  for (std::uint64_t seed = 0; seed < 2600; ++seed) {
    SeededRandom random(seed);
    expect_no_slower(any_case(random), [&](hardware::Cluster& cluster) { links_of(cluster, halve); }, seed);
    ASSERT_FALSE(HasFailure());
  }
}

TEST(EstimatorLaw, twice_the_peak_or_the_memory_bandwidth_never_slows_a_step) {
  const auto quicker = [](hardware::Cluster& cluster) {
    for (auto& [name, peak] : cluster.accelerator.matrix_peak) { peak *= 2.0; }
  };
  for (std::uint64_t seed = 0; seed < 2600; ++seed) {
    SeededRandom random(seed);
    Case c = any_case(random);
    expect_no_slower(c, quicker, seed);
    quicker(c.cluster);
    expect_no_slower(c, [](hardware::Cluster& cluster) { cluster.accelerator.memory_bandwidth *= 2.0; }, seed);
    ASSERT_FALSE(HasFailure());
  }
}

// Rates doubled; launches, latencies and the fixed ramp of kernels unchanged.
TEST(EstimatorLaw, twice_the_rates_at_most_halve_a_step) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SeededRandom random(seed);
    Case c = any_case(random);
    const Seconds before = step_time(c);
    links_of(c.cluster, [](auto& dimension) { dimension.bandwidth *= 2.0; });
    for (auto& [name, peak] : c.cluster.accelerator.matrix_peak) { peak *= 2.0; }
    c.cluster.accelerator.memory_bandwidth *= 2.0;
    ASSERT_TRUE(no_slower(before, 2.0 * step_time(c))) << "seed " << seed;
  }
}

TEST(EstimatorLaw, swapping_two_inner_dimensions_that_differ_in_name_only_changes_nothing) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SeededRandom random(seed);
    Case c = any_case(random);
    c.job.global_batch = c.job.global_batch / c.plan.dp * 4;
    c.plan.dp = 4;
    c.plan.ep = c.plan.etp = 1;
    c.cluster = parallel::test::cluster_of({2, 2, c.plan.devices() / 4});
    c.plan.offload = {};
    c.plan.optimizer_device = parallel::OptimizerDevice::device;
    c.plan.shard = 0;
    c.cluster.dimensions[1] = c.cluster.dimensions[0];
    c.cluster.dimensions[1].name = "other";
    const Seconds before = step_time(c);
    std::swap(c.cluster.dimensions[0], c.cluster.dimensions[1]);
    ASSERT_EQ(step_time(c), before) << "seed " << seed;
  }
}

TEST(EstimatorLaw, an_additional_dimension_of_one_device_changes_nothing) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SeededRandom random(seed);
    Case c = any_case(random);
    const auto devices = c.plan.devices();
    c.plan.offload = {};
    c.plan.optimizer_device = parallel::OptimizerDevice::device;
    c.cluster = parallel::test::cluster_of({devices});  // all groups fill their dimensions evenly
    const Seconds before = step_time(c);
    c.cluster.dimensions.push_back(c.cluster.dimensions.front());
    c.cluster.dimensions.back().size = 1;
    ASSERT_EQ(step_time(c), before) << "seed " << seed;
  }
}

TEST(EstimatorLaw, price_is_step_time_and_memory_of_plans_that_fit) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SeededRandom random(seed);
    Case c = any_case(random);
    c.cluster.accelerator.memory = Bytes(8e9 * static_cast<double>(random(1, 4)));
    Estimator estimator(c.model, c.cluster, c.stack, c.job);
    const MemoryOutcome memory = estimator.memory(c.plan);
    ASSERT_EQ(memory.fits, memory.need <= estimator.capacity());
    const auto price = estimator.price(c.plan);
    ASSERT_EQ(price.has_value(), memory.fits);
    if (price) {
      ASSERT_EQ(price->step_time, estimator.step_time(c.plan));
      ASSERT_EQ(price->memory, memory.need);
    }
    const auto estimate = estimator.estimate(c.plan);
    ASSERT_EQ(estimate.step_time, estimator.step_time(c.plan));
    ASSERT_EQ(estimate.feasible, memory.fits);
    ASSERT_EQ(estimate.memory.total(), memory.need);
  }
}

// The estimator reuses buffers and caches slices; neither changes a result.
TEST(EstimatorLaw, earlier_estimates_change_nothing) {
  SeededRandom random(1);
  Case c = any_case(random);
  c.model = parallel::test::llama(12, 1024, 8, 4, 4096, 4096);
  c.job = {96, 512, hardware::Precision::bf16, parallel::Task::pretrain};
  c.cluster = parallel::test::cluster_of({4, 4});
  Estimator used(c.model, c.cluster, c.stack, c.job);
  int asked = 0;
  for (int i = 0; i < 500; ++i) {
    auto plan = parallel::test::any_plan(random);
    plan.dp = 16 / (plan.tp * plan.pp);
    plan.recompute = static_cast<Recompute>(random(0, 3));
    if (!parallel::is_valid(c.model, c.job, plan, c.cluster.devices)) { continue; }
    ++asked;
    Estimator fresh(c.model, c.cluster, c.stack, c.job);
    ASSERT_EQ(used.step_time_bound(plan), fresh.step_time_bound(plan));
    ASSERT_EQ(used.step_time(plan), fresh.step_time(plan));
  }
  EXPECT_GT(asked, 100);
}

// More micro-batches, each with a slice of its own, than the cache keeps.
TEST(EstimatorLaw, more_slices_than_the_cache_holds_change_nothing) {
  SeededRandom random(1);
  Case c = any_case(random);
  c.model = parallel::test::llama(1, 128, 2, 2, 256, 256);
  c.job = {1, 64, hardware::Precision::bf16, parallel::Task::pretrain};
  c.cluster = parallel::test::cluster_of({1});
  c.plan = {};
  Estimator used(c.model, c.cluster, c.stack, c.job);
  const auto ask = [&](Estimator& estimator, std::int64_t micro_batch) {
    c.plan.micro_batch = micro_batch;
    estimator.set_global_batch(micro_batch);
    return std::pair(estimator.step_time_bound(c.plan), estimator.step_time(c.plan));
  };
  const auto first = ask(used, 1);
  for (std::int64_t size = 2; size < 20'000; ++size) {
    const auto now = ask(used, size);
    if (size % 2'000 != 0) { continue; }
    Estimator fresh(c.model, c.cluster, c.stack, c.job);
    ASSERT_EQ(now, ask(fresh, size));
  }
  EXPECT_EQ(ask(used, 1), first);
}

}  // namespace
}  // namespace orrery::estimate::estimator_law_test
