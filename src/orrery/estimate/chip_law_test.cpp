// Laws of estimates in the figures of a chip: no better figure makes a job slower, nor does capturing its kernels; no
// decode is faster than the memory.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "orrery/core/test_effort.hpp"
#include "orrery/estimate/estimator.hpp"
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
      of_chip("matrix_peak", [](Accelerator& a) { for (auto& [name, peak] : a.matrix_peak) { peak *= 1.3; } }),
      of_chip("vector_peak", [](Accelerator& a) { a.vector_peak *= 1.3; }),
      of_chip("memory_bandwidth", [](Accelerator& a) { a.memory_bandwidth *= 1.3; }),
      of_chip("matrix_efficiency", [](Accelerator& a) { part(a.matrix_efficiency); }),
      of_chip("attention_efficiency", [](Accelerator& a) { part(a.attention_efficiency); }),
      of_chip("portable_attention", [](Accelerator& a) { part(a.portable_attention); }),
      of_chip("grouped_rate", [](Accelerator& a) { part(a.grouped_rate); }),
      of_chip("memory_efficiency", [](Accelerator& a) { part(a.memory_efficiency); }),
      of_chip("exponential_rate", [](Accelerator& a) { a.exponential_rate *= 1.3; }),
      of_chip("kernel_latency", [](Accelerator& a) { a.kernel_latency = a.kernel_latency / 1.3; }),
      of_chip("stream_latency", [](Accelerator& a) { if (a.stream_latency) { *a.stream_latency = *a.stream_latency / 1.3; } }),
      of_chip("power_slowdown", [](Accelerator& a) { a.power_slowdown /= 1.3; }),
      of_chip("slowdown", [](Accelerator& a) { a.slowdown = 1.0; }),
      of_links("efficiency", [](hardware::LinkClass& link) { part(link.efficiency); }),
      of_links("latency", [](hardware::LinkClass& link) { link.latency = link.latency / 2.0; }),
      of_links("in_switch", [](hardware::LinkClass& link) { link.in_switch_base = link.in_switch_base / 2.0; link.in_switch_step = link.in_switch_step / 2.0;}),
      of_links("protocols", [](hardware::LinkClass& link) { for (auto& p : link.protocols) { for (Seconds* t : {&p.ring_base, &p.ring_step, &p.tree_base, &p.tree_step}) { *t *= 0.5; } } }),
      {"bandwidth", [](Cluster& cluster) { for (auto& d : cluster.dimensions) { d.bandwidth *= 2.0; } }},
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

TEST(ChipLaw, no_better_figure_makes_a_step_slower) {
  const char* more = std::getenv("SEEDS");
  const std::uint64_t seeds = more ? std::stoul(more) : 100;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const Case c = case_of(seed);
    const Seconds before = step_time(c);
    for (const auto& improvement : improvements()) {
      Case better = c;
      improvement.apply(better.cluster);
      const Seconds after = step_time(better);
      EXPECT_TRUE(no_slower(after, before)) << "seed " << seed << " " << improvement.figure << " +" << (after.value()/before.value()-1)*100 << "% sched " << int(c.plan.schedule) << " zero " << c.plan.zero << " pp " << c.plan.pp;
    }
  }
}

}  // namespace
}  // namespace orrery::estimate::chip_law_test
