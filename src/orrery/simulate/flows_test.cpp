// Laws of shared ports, and a slow reference solver in real numbers.
#include "orrery/simulate/flows.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

namespace orrery::simulate::test::flows_test {
namespace {

constexpr std::uint64_t kMicrosecond = 1'000'000;  // picoseconds

struct Wanted {
  std::uint64_t start = 0, alone = 0;
  std::vector<PortDemand> demands;
};

std::uint64_t below(std::uint64_t end) { return *rc::gen::inRange<std::uint64_t>(0, end); }

// Runs flows on ports to their ends; calls at every instant with the speeds of the flows that run (0: does not run).
template <class See>
std::vector<std::uint64_t> ends_of(const std::vector<Wanted>& wanted, std::uint32_t ports, See&& see,
                                   bool shared = true) {
  Flows flows(ports, 1, shared);
  constexpr std::uint64_t kNever = ~std::uint64_t{0};
  std::vector<std::uint64_t> ends(wanted.size(), kNever), done(wanted.size(), kNever);
  std::vector<std::optional<std::uint32_t>> number(wanted.size());
  std::uint64_t now = 0;
  for (;;) {
    std::uint64_t next = kNever;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (done[i] != kNever) { continue; }
      next = std::min(next, number[i] ? ends[i] : std::max(now, wanted[i].start));
    }
    if (next == kNever) { return done; }
    now = next;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (done[i] != kNever || !number[i] || ends[i] != now) { continue; }
      flows.end(now, *number[i]);
      done[i] = now;
    }
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (!number[i] && wanted[i].start <= now) { number[i] = flows.start(now, wanted[i].alone, 0, wanted[i].demands); }
    }
    flows.settle(now, [&](std::uint32_t flow, std::uint64_t end) {
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        if (done[i] == kNever && number[i] == flow) { ends[i] = end; }
      }
    });
    see(now, done, number);
  }
}

std::vector<std::uint64_t> ends_of(const std::vector<Wanted>& wanted, std::uint32_t ports) {
  return ends_of(wanted, ports, [](auto&&...) {});
}

constexpr FlowShare part(double share) { return static_cast<FlowShare>(share * static_cast<double>(kWholeShare)); }

TEST(Flows, a_flow_alone_takes_its_time) {
  EXPECT_EQ(ends_of({{5, 7, {{0, kWholeShare}, {1, part(0.5)}}}}, 2), (std::vector<std::uint64_t>{12}));
}

TEST(Flows, flows_that_fit_a_port_do_not_slow_each_other) {
  const std::vector<PortDemand> half = {{0, part(0.5)}};
  EXPECT_EQ(ends_of({{0, 1000, half}, {300, 1000, half}}, 1), (std::vector<std::uint64_t>{1000, 1300}));
}

TEST(Flows, two_flows_that_need_a_whole_port_take_twice_the_time) {
  const std::vector<PortDemand> whole = {{0, kWholeShare}};
  EXPECT_EQ(ends_of({{0, 1000, whole}, {0, 1000, whole}}, 1), (std::vector<std::uint64_t>{2000, 2000}));
  // The second one joins after 500; then both have half; the first ends, and the second has it alone.
  EXPECT_EQ(ends_of({{0, 1000, whole}, {500, 1000, whole}}, 1), (std::vector<std::uint64_t>{1500, 2000}));
}

TEST(Flows, a_flow_that_needs_little_keeps_its_speed) {
  EXPECT_EQ(ends_of({{0, 900, {{0, kWholeShare}}}, {0, 1000, {{0, part(0.25)}}}}, 1),
            (std::vector<std::uint64_t>{1150, 1000}));  // 0.75 until 1000, then the rest of 150 alone
}

TEST(Flows, without_sharing_all_have_full_speed) {
  const std::vector<PortDemand> whole = {{0, kWholeShare}};
  EXPECT_EQ(ends_of(
                {{0, 1000, whole}, {0, 1000, whole}}, 1, [](auto&&...) {}, false),
            (std::vector<std::uint64_t>{1000, 1000}));
}

std::vector<Wanted> any_flows(std::uint32_t ports) {
  std::vector<Wanted> wanted;
  const std::uint64_t count = 1 + below(8);
  for (std::uint64_t i = 0; i < count; ++i) {
    Wanted one{below(4) * kMicrosecond, 1 + below(5 * kMicrosecond), {}};
    for (std::uint32_t port = 0; port < ports; ++port) {
      if (below(2) == 0) { one.demands.push_back({port, below(4) == 0 ? kWholeShare : below(kWholeShare)}); }
    }
    wanted.push_back(std::move(one));
  }
  return wanted;
}

// The levels in real numbers, from scratch, by the definition in flows.hpp.
std::vector<double> reference_speeds(const std::vector<Wanted>& running, std::uint32_t ports) {
  std::vector<double> speed(running.size(), -1.0), largest(running.size(), 0.0);
  for (std::size_t i = 0; i < running.size(); ++i) {
    for (const PortDemand& demand : running[i].demands) {
      largest[i] = std::max(largest[i], std::ldexp(static_cast<double>(std::max(demand.share, kLeastShare)), -32));
    }
    if (running[i].demands.empty()) { speed[i] = 1.0; }
  }
  const auto share = [&](std::size_t i, std::uint32_t port) {
    for (const PortDemand& demand : running[i].demands) {
      if (demand.port == port) { return std::ldexp(static_cast<double>(std::max(demand.share, kLeastShare)), -32); }
    }
    return 0.0;
  };
  for (;;) {
    double level = 2.0;
    const auto level_of = [&](std::uint32_t port) {
      double rest = 1.0, rise = 0.0;
      for (std::size_t i = 0; i < running.size(); ++i) {
        if (speed[i] >= 0) {
          rest -= speed[i] * share(i, port);
        } else {
          rise += share(i, port) / largest[i];
        }
      }
      return rise > 0 ? rest / rise : 2.0;
    };
    for (std::uint32_t port = 0; port < ports; ++port) { level = std::min(level, level_of(port)); }
    for (std::size_t i = 0; i < running.size(); ++i) {
      if (speed[i] < 0) { level = std::min(level, largest[i]); }
    }
    if (level > 1.5) { return speed; }
    std::vector<std::uint32_t> full;
    for (std::uint32_t port = 0; port < ports; ++port) {
      if (level_of(port) < level + 1e-12) { full.push_back(port); }
    }
    for (std::size_t i = 0; i < running.size(); ++i) {
      if (speed[i] >= 0) { continue; }
      const bool stops = std::any_of(full.begin(), full.end(), [&](std::uint32_t port) { return share(i, port) > 0; });
      if (stops || largest[i] < level + 1e-12) { speed[i] = std::min(1.0, level / largest[i]); }
    }
  }
}

RC_GTEST_PROP(FlowsLaw, speeds_are_those_of_the_definition, ()) {
  constexpr std::uint32_t kPorts = 4;
  std::vector<Wanted> wanted = any_flows(kPorts);
  for (Wanted& one : wanted) { one.start = 0; }
  // Speeds from ends: every flow has kMicrosecond to do.
  for (Wanted& one : wanted) { one.alone = 1'000 * kMicrosecond; }
  Flows flows(kPorts, 1, true);
  std::vector<std::uint64_t> ends(wanted.size());
  for (const Wanted& one : wanted) { (void)flows.start(0, one.alone, 0, one.demands); }
  flows.settle(0, [&](std::uint32_t flow, std::uint64_t end) { ends[flow] = end; });
  const std::vector<double> speeds = reference_speeds(wanted, kPorts);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const double found = static_cast<double>(wanted[i].alone) / static_cast<double>(ends[i]);
    RC_ASSERT(std::abs(found - speeds[i]) < 1e-5);
  }
}

RC_GTEST_PROP(FlowsLaw, no_port_carries_more_than_its_bandwidth, ()) {
  constexpr std::uint32_t kPorts = 3;
  const std::vector<Wanted> wanted = any_flows(kPorts);
  const auto ends = ends_of(wanted, kPorts);
  for (std::uint32_t port = 0; port < kPorts; ++port) {
    // The work of a port, of flows that start at `from` or later, fits between `from` and the last of their ends.
    for (const Wanted& first : wanted) {
      double work = 0;
      std::uint64_t last = first.start;
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        if (wanted[i].start < first.start) { continue; }
        for (const PortDemand& demand : wanted[i].demands) {
          if (demand.port != port) { continue; }
          work += static_cast<double>(wanted[i].alone) * std::ldexp(static_cast<double>(demand.share), -32);
          last = std::max(last, ends[i]);
        }
      }
      RC_ASSERT(work <= static_cast<double>(last - first.start) * (1 + 1e-6) + 1.0);
    }
  }
}

RC_GTEST_PROP(FlowsLaw, no_flow_is_faster_than_alone_and_one_always_has_full_speed_or_a_full_port, ()) {
  constexpr std::uint32_t kPorts = 3;
  const std::vector<Wanted> wanted = any_flows(kPorts);
  const auto ends = ends_of(wanted, kPorts);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    RC_ASSERT(ends[i] >= wanted[i].start + wanted[i].alone);
    sum += wanted[i].alone + 1;
  }
  std::uint64_t last = 0;
  for (const Wanted& one : wanted) { last = std::max(last, one.start); }
  RC_ASSERT(*std::max_element(ends.begin(), ends.end()) <= last + sum + sum / 1000 + 16);
}

RC_GTEST_PROP(FlowsLaw, the_order_of_starts_does_not_matter, ()) {
  constexpr std::uint32_t kPorts = 3;
  const std::vector<Wanted> wanted = any_flows(kPorts);
  std::vector<std::size_t> order(wanted.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = order.size(); i > 1; --i) { std::swap(order[i - 1], order[below(i)]); }
  std::vector<Wanted> shuffled;
  for (const std::size_t i : order) { shuffled.push_back(wanted[i]); }
  const auto ends = ends_of(wanted, kPorts), others = ends_of(shuffled, kPorts);
  for (std::size_t i = 0; i < order.size(); ++i) { RC_ASSERT(others[i] == ends[order[i]]); }
}

// Copies of a set of flows on ports of their own end when the set does.
RC_GTEST_PROP(FlowsLaw, copies_on_other_ports_change_nothing, ()) {
  constexpr std::uint32_t kPorts = 3;
  const std::vector<Wanted> wanted = any_flows(kPorts);
  std::vector<Wanted> twice = wanted;
  for (Wanted one : wanted) {
    for (PortDemand& demand : one.demands) { demand.port += kPorts; }
    twice.push_back(std::move(one));
  }
  const auto ends = ends_of(wanted, kPorts), others = ends_of(twice, 2 * kPorts);
  for (std::size_t i = 0; i < twice.size(); ++i) { RC_ASSERT(others[i] == ends[i % wanted.size()]); }
}

// ... and so do copies that are one flow: a group on the ports of all its members.
RC_GTEST_PROP(FlowsLaw, a_flow_on_equal_ports_is_one_on_a_single_port, ()) {
  constexpr std::uint32_t kPorts = 3, kCopies = 3;
  const std::vector<Wanted> wanted = any_flows(kPorts);
  std::vector<Wanted> wide = wanted;
  for (Wanted& one : wide) {
    const std::vector<PortDemand> demands = one.demands;
    for (std::uint32_t copy = 1; copy < kCopies; ++copy) {
      for (const PortDemand& demand : demands) { one.demands.push_back({demand.port + copy * kPorts, demand.share}); }
    }
  }
  RC_ASSERT(ends_of(wide, kCopies * kPorts) == ends_of(wanted, kPorts));
}

}  // namespace
}  // namespace orrery::simulate::test::flows_test
