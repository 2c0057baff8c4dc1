// Laws of estimates in the figures of a chip: no better figure makes a job slower, nor does capturing its kernels; no
// decode is faster than the memory.
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "orrery/core/test_effort.hpp"
#include "orrery/estimate/estimator.hpp"
#include "orrery/estimate/request.hpp"
#include "orrery/estimate/stack_choice.hpp"
#include "orrery/hardware/catalogue.hpp"
#include "orrery/parallel/test_jobs.hpp"
#include "orrery/workload/catalogue.hpp"

namespace orrery::estimate::chip_law_test {
namespace {

using hardware::Accelerator;
using hardware::Cluster;
using parallel::test::any_case;
using parallel::test::Case;
using parallel::test::SeededRandom;

Seconds step_time(const Case& c) { return Estimator(c.model, c.cluster, c.stack, c.job).step_time(c.plan); }

// Tolerance for rounding: one tick per task.
bool no_slower(Seconds a, Seconds b) { return a.value() <= b.value() * (1.0 + 1e-9) + 1e-9; }

struct Improvement {
  const char* figure;
  std::function<void(Cluster&)> apply;
};

Improvement of_chip(const char* figure, const std::function<void(Accelerator&)>& change) {
  return {figure, [change](Cluster& cluster) { change(cluster.accelerator); }};
}

Improvement of_links(const char* figure, const std::function<void(hardware::LinkClass&)>& change) {
  return {figure, [change](Cluster& cluster) {
            for (auto& dimension : cluster.dimensions) { change(dimension.link); }
          }};
}

const std::vector<Improvement>& improvements() {
  static const auto part = [](double& value) { value = std::min(1.0, 1.3 * value); };
  static const std::vector<Improvement> kAll = {
      of_chip("matrix_peak",
              [](Accelerator& a) {
                for (auto& [name, peak] : a.matrix_peak) { peak *= 1.3; }
              }),
      of_chip("vector_peak", [](Accelerator& a) { a.vector_peak *= 1.3; }),
      of_chip("memory_bandwidth", [](Accelerator& a) { a.memory_bandwidth *= 1.3; }),
      of_chip("matrix_efficiency", [](Accelerator& a) { part(a.matrix_efficiency); }),
      of_chip("attention_efficiency", [](Accelerator& a) { part(a.attention_efficiency); }),
      of_chip("portable_attention", [](Accelerator& a) { part(a.portable_attention); }),
      of_chip("grouped_rate", [](Accelerator& a) { part(a.grouped_rate); }),
      of_chip("memory_efficiency", [](Accelerator& a) { part(a.memory_efficiency); }),
      of_chip("exponential_rate", [](Accelerator& a) { a.exponential_rate *= 1.3; }),
      of_chip("kernel_latency", [](Accelerator& a) { a.kernel_latency = a.kernel_latency / 1.3; }),
      of_chip("stream_latency",
              [](Accelerator& a) {
                if (a.stream_latency) { *a.stream_latency = *a.stream_latency / 1.3; }
              }),
      of_chip("power_slowdown", [](Accelerator& a) { a.power_slowdown /= 1.3; }),
      of_chip("slowdown", [](Accelerator& a) { a.slowdown = 1.0; }),
      of_links("efficiency", [](hardware::LinkClass& link) { part(link.efficiency); }),
      of_links("latency", [](hardware::LinkClass& link) { link.latency = link.latency / 2.0; }),
      of_links("in_switch",
               [](hardware::LinkClass& link) {
                 link.in_switch_base = link.in_switch_base / 2.0;
                 link.in_switch_step = link.in_switch_step / 2.0;
               }),
      of_links("protocols",
               [](hardware::LinkClass& link) {
                 for (auto& p : link.protocols) {
                   for (Seconds* t : {&p.ring_base, &p.ring_step, &p.tree_base, &p.tree_step}) { *t *= 0.5; }
                 }
               }),
      {"bandwidth",
       [](Cluster& cluster) {
         for (auto& d : cluster.dimensions) { d.bandwidth *= 2.0; }
       }},
      {"memory_bandwidth x 2", [](Cluster& cluster) { cluster.accelerator.memory_bandwidth *= 2.0; }},
  };
  return kAll;
}

Case case_of(std::uint64_t seed) {
  SeededRandom random(seed);
  Case c = any_case(random);
  Accelerator& a = c.cluster.accelerator;
  a.matrix_efficiency = a.attention_efficiency = 0.6;
  a.memory_efficiency = 0.7;
  a.portable_attention = 0.5;
  a.grouped_rate = 0.7;
  a.exponential_rate = FlopsPerSecond(a.peak(hardware::Precision::bf16).value() / 200.0);
  a.kernel_latency = Seconds(4e-6);
  a.stream_latency = Seconds(2e-6);
  a.power_slowdown = 0.2;
  c.stack.attention.native = random(0, 2) == 1;
  return c;
}

TEST(ChipLaw, no_better_figure_of_the_machine_makes_a_step_slower) {
  for (std::uint64_t seed = 0; seed < test::cases<std::uint64_t>(300); ++seed) {
    const Case c = case_of(seed);
    const Seconds before = step_time(c);
    for (const auto& improvement : improvements()) {
      Case better = c;
      improvement.apply(better.cluster);
      const Seconds after = step_time(better);
      ASSERT_TRUE(no_slower(after, before)) << "seed " << seed << ": " << improvement.figure;
    }
  }
}

// Of training steps and of batches of requests.
TEST(ChipLaw, a_stack_that_captures_its_kernels_is_never_slower_than_an_eager_one) {
  int slower = 0;
  for (std::uint64_t seed = 0; seed < test::cases<std::uint64_t>(400); ++seed) {
    Case captured = case_of(seed), eager = captured;
    captured.stack.host.launch_time = captured.stack.host.kernel_launch_time = Seconds(0.0);
    captured.stack.host.kernel_gap = Seconds(0.0);
    eager.stack.host.kernel_gap = Seconds(6e-6);
    eager.stack.host.captures_requests = false;
    const Seconds first = step_time(captured), second = step_time(eager);
    ASSERT_TRUE(no_slower(first, second)) << "seed " << seed;
    slower += second > first ? 1 : 0;
  }
  EXPECT_GT(slower, test::cases(300));
}

struct Machine {
  const char* cluster;
  std::int64_t tp;
};
constexpr std::array kMachines = {Machine{"dgx-a100", 8},   Machine{"dgx-h100", 4},        Machine{"dgx-b200", 2},
                                  Machine{"hls-gaudi2", 4}, Machine{"aws-trn1-cores", 32}, Machine{"mi300x-node", 1}};

// Every generated token reads the layers and the head once; the embedding is a lookup.
TEST(ChipLaw, decode_takes_at_least_the_time_of_reading_the_weights) {
  const hardware::Catalogue catalogue(ORRERY_DATA_DIR);
  const auto model = workload::load_model(ORRERY_DATA_DIR, "llama-2-7b").value();
  const double read = 2.0 * 6.6e9;  // bytes: 6.74 billion weights in 16 bits, less the embedding of 0.13
  for (const auto& machine : kMachines) {
    for (const std::int64_t batch : {1, 16}) {
      Request request;
      request.task = parallel::Task::inference;
      request.cluster = machine.cluster;
      request.batch = batch;
      request.prompt = 128;
      request.generate = 65;
      request.tp = machine.tp;
      const auto cluster = catalogue.cluster(machine.cluster, machine.tp).value();
      const auto name = stack_name(request, model, cluster.accelerator);
      const auto stack = catalogue.stack_on(name, cluster.accelerator).value();
      const auto plan = resolve(request, model, cluster, stack).value().plan;
      Estimator estimator(model, cluster, stack, job_of(request, model, stack));
      const Seconds all = estimator.step_time(plan);
      request.generate = 1;
      Estimator of_first(model, cluster, stack, job_of(request, model, stack));
      const Seconds decode = all - of_first.step_time(plan);
      const double rate = cluster.accelerator.memory_bandwidth.value() * static_cast<double>(machine.tp);
      EXPECT_GE(decode.value(), 64.0 * read / rate) << machine.cluster << ", batch " << batch;
      EXPECT_LE(decode.value(), 20.0 * 64.0 * read / rate) << machine.cluster << ", batch " << batch;
    }
  }
}

struct Training {
  const char* model;
  const char* cluster;
  const char* stack;
  std::int64_t devices, tp, pp, micro_batch;
};
constexpr std::array kTrainings = {
    Training{"llama-3.1-8b", "dgx-h100", "nemo", 8, 1, 1, 1},
    Training{"llama-2-70b", "dgx-h100", "megatron-core", 64, 4, 4, 1},
    Training{"llama-3.1-405b", "dgx-h200", "nemo", 512, 8, 8, 1},
    Training{"gpt3-175b", "dgx-h100", "nemo", 128, 4, 8, 1},
    Training{"gpt3-175b", "dgx-b200", "nemo", 128, 4, 8, 1},
    Training{"llama-2-70b", "gb200-nvl72", "megatron-core", 64, 4, 4, 1},
    Training{"llama-2-70b", "mi300x-node", "megatron-core", 64, 8, 1, 2},
    Training{"llama-2-7b", "hls-gaudi2", "megatron-core", 8, 1, 1, 1},
    Training{"mixtral-8x22b", "dgx-h100", "nemo", 128, 4, 4, 1},
};

Request request_of(const Training& job, parallel::TpOverlap overlap) {
  Request request;
  request.seq = 2048;
  request.global_batch = 4 * job.devices;
  request.tp = job.tp;
  request.pp = job.pp;
  request.micro_batch = job.micro_batch;
  request.sequence_parallel = job.tp > 1;
  request.recompute = parallel::Recompute::none;
  request.tp_overlap = overlap;
  return request;
}

// Layers of these widths take longer in bf16 than in fp8 with its casts. Casts are kernels that the host issues, so the
// law is one of the device: of stacks that capture their kernels, and of eager ones whose host keeps up.
TEST(ChipLaw, fp8_is_never_slower_than_bf16_for_the_same_plan_unless_the_host_is) {
  const hardware::Catalogue catalogue(ORRERY_DATA_DIR);
  int eager = 0;
  for (const auto& job : kTrainings) {
    const auto model = workload::load_model(ORRERY_DATA_DIR, job.model).value();
    const auto cluster = catalogue.cluster(job.cluster, job.devices).value();
    auto stack = catalogue.stack_on(job.stack, cluster.accelerator).value();
    for (const auto overlap : {parallel::TpOverlap::none, parallel::TpOverlap::ring}) {
      if (overlap == parallel::TpOverlap::ring && job.tp == 1) { continue; }
      const Request request = request_of(job, overlap);
      const auto plan = resolve(request, model, cluster, stack).value().plan;
      const auto estimate_in = [&](hardware::Precision precision) {
        Request one = request;
        one.precision = precision;
        Estimator estimator(model, cluster, stack, job_of(one, model, stack));
        return estimator.estimate(plan);
      };
      const auto expect_law = [&](const char* host) {
        const auto wide = estimate_in(hardware::Precision::bf16), narrow = estimate_in(hardware::Precision::fp8);
        const Seconds waiting = narrow.breakdown.host - stack.host.step_overhead;
        if (waiting > 1e-6 * narrow.step_time) { return false; }
        EXPECT_TRUE(no_slower(narrow.step_time, wide.step_time))
            << job.model << " on " << job.cluster << " with " << job.stack << ", " << host << ", overlap "
            << static_cast<int>(overlap) << ": " << wide.step_time / narrow.step_time;
        return true;
      };
      eager += expect_law("eager") ? 1 : 0;
      const auto host = std::exchange(stack.host, {});
      EXPECT_TRUE(expect_law("captured"));
      stack.host = host;
    }
  }
  EXPECT_GT(eager, 5);
}

}  // namespace
}  // namespace orrery::estimate::chip_law_test
