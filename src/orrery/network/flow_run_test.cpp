// Flows in time: cases by hand, laws, SimGrid's finish times where they are at hand.
#include "orrery/network/flow_run.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "orrery/core/random.hpp"
#include "orrery/core/test_effort.hpp"
#include "orrery/network/flow_file.hpp"
#include "orrery/network/flow_network.hpp"

namespace orrery::network::flow_run_test {
namespace {

FlowList list_of(const std::string& text) {
  auto flows = read_flows(text, "test.txt");
  EXPECT_TRUE(flows) << (flows ? "" : flows.error().text());
  return *flows;
}

std::vector<double> finish_of(const std::string& text) { return run_flows(list_of(text)).finish; }

std::string error_of(const std::string& text) {
  const auto flows = read_flows(text, "f.txt");
  return flows ? "" : flows.error().text();
}

// 4 B at 2 B/s; from 1 s on a second flow of 3 B takes half: the first has 2 B left and needs 2 s, the second then has
// 1 B left at full speed.
TEST(FlowRun, two_flows_on_a_link_by_hand) {
  EXPECT_EQ(finish_of("link 0 l 2 0\nflow 0 0 4 - 0\nflow 1 1 3 - 0\n"), (std::vector<double>{3, 3.5}));
}

// The second depends on the first, starts at its end, and waits 0.5 + 0.25 s of latency.
TEST(FlowRun, dependencies_and_latency_by_hand) {
  EXPECT_EQ(finish_of("link 0 a 1 0.5\nlink 1 b 1 0.25\nflow 7 0 2 - 0\nflow 3 1 4 7,7 0,1\n"),
            (std::vector<double>{2.5, 7.25}));
  EXPECT_EQ(finish_of("link 0 a 1 0\nflow 0 5 2 1 0\nflow 1 0 2 - 0\n"), (std::vector<double>{7, 2}));
}

// Flows of no bytes end after their latency, also in chains and without links.
TEST(FlowRun, flows_without_bytes_or_links_take_no_bandwidth) {
  EXPECT_EQ(finish_of("link 0 a 1 0.5\nflow 0 1 0 - 0\nflow 1 0 9 0 -\nflow 2 0 1 1 0\n"),
            (std::vector<double>{1.5, 1.5, 3}));
}

// Weights 1 / latency: 1 / 1 and 1 / 3 on a link of 4: 3 and 1 B/s. Both start after their latency: the first shares
// from 1 s, alone until 3 s (8 B); it has 3 B left, which take 1 s; the second then has 1 B, of 2 B.
TEST(FlowRun, weighted_flows_share_by_latency) {
  EXPECT_EQ(finish_of("topo explicit weighted=1\nlink 0 l 4 1\nlink 1 far 100 2\nflow 0 0 11 - 0\nflow 1 0 2 - 0,1\n"),
            (std::vector<double>{4, 4.25}));
}

// 8 B at 2 B/s; from 1 s on at 1 B/s, from 3 s on not at all, from 5 s on at 4 B/s: 2 B, 2 B, nothing, 4 B in 1 s.
TEST(FlowRun, links_slow_down_fail_and_come_back) {
  EXPECT_NEAR(finish_of("link 0 l 2 0\nflow 0 0 8 - 0\nchange 0 5 4\nchange 0 1 1\nchange 0 3 0\n").front(), 6, 1e-9);
  // A flow on another link takes no notice.
  EXPECT_EQ(finish_of("link 0 l 2 0\nlink 1 m 2 0\nflow 0 0 2 - 0\nflow 1 0 8 - 1\nchange 0 1 0\n").back(), 4.0);
  const FlowTimes times = run_flows(list_of("link 0 l 2 0\nflow 4 0 8 - 0\nchange 0 1 0\n"));
  EXPECT_EQ(times.stuck, 0U);
  EXPECT_EQ(error_of("link 0 l 2 0\nflow 0 0 8 - 0\nchange 1 1 0\n"), "f.txt:3: change: no earlier line has link 1");
}

// n hosts, leaves of `leaf` hosts with half as many uplinks, one flow for every pair; spine by destination.
FlowList all_to_all(std::uint32_t n, std::uint32_t leaf, double bytes, double bandwidth) {
  const std::uint32_t uplinks = leaf / 2, fabric = n / leaf * uplinks;
  FlowList flows;
  for (std::uint32_t i = 0; i < 2 * n + 2 * fabric; ++i) { flows.links.push_back({i, "l", bandwidth, 0}); }
  for (std::uint32_t a = 0; a < n; ++a) {
    for (std::uint32_t b = 0; b < n; ++b) {
      if (a == b) { continue; }
      flows.ids.push_back(flows.ids.size());
      flows.starts.push_back(0);
      flows.bytes.push_back(bytes);
      flows.dependencies.close();
      flows.routes.items.push_back(a);
      if (a / leaf != b / leaf) {
        flows.routes.items.push_back(2 * n + a / leaf * uplinks + b % uplinks);
        flows.routes.items.push_back(2 * n + fabric + b / leaf * uplinks + b % uplinks);
      }
      flows.routes.items.push_back(n + b);
      flows.routes.close();
    }
  }
  return flows;
}

// Closed form of a 2:1 tree: the uplinks of a leaf take leaf x (n - leaf) flows' bytes at leaf / 2 links' bandwidth.
TEST(FlowRun, all_to_all_on_an_oversubscribed_tree_is_the_closed_form) {
  for (const std::uint32_t n : {64U, orrery::test::kSanitizers ? 96U : 256U}) {
    const auto times = run_flows(all_to_all(n, 32, 1e6, 25e9));
    const double uplinks = 32.0 * (n - 32) * 1e6 / (16 * 25e9);
    EXPECT_NEAR(*std::max_element(times.finish.begin(), times.finish.end()), uplinks, 1e-12 * uplinks);
    EXPECT_LE(times.updates, 4U);  // all flows of a kind end at once
  }
}

// ---- laws ----------------------------------------------------------------------------------------------------------

std::string random_text(RandomStream& random, double bandwidth_factor = 1) {
  std::string text;
  const auto links = 1 + random.below(12), flows = 1 + random.below(50);
  const double latency = random.below(2) == 0 ? 0 : 1e-3;
  for (std::int64_t i = 0; i < links; ++i) {
    text += fmt::format("link {} l{} {} {}\n", i, i, bandwidth_factor * std::pow(10.0, 6 + random.below(6)), latency);
  }
  for (std::int64_t f = 0; f < flows; ++f) {
    std::string on = "-", route;
    if (f > 0 && random.below(3) == 0) { on = std::to_string(random.below(f)); }
    for (auto i = random.below(4); i >= 0; --i) {
      route += (route.empty() ? "" : ",") + std::to_string(random.below(links));
    }
    text += fmt::format("flow {} {} {} {} {}\n", f, 1e-3 * static_cast<double>(random.below(1000)),
                        std::pow(10.0, 3 + random.below(6)), on, route);
  }
  return text;
}

TEST(FlowRun, methods_agree_bytes_are_conserved_and_no_link_exceeds_its_bandwidth) {
  RandomStream random(3);
  for (int round = 0; round < orrery::test::cases(150); ++round) {
    const FlowList flows = list_of(random_text(random));
    const auto times = run_flows(flows), full = run_flows(flows, FairRates::Method::full),
               local = run_flows(flows, FairRates::Method::local);
    std::vector<double> carried(flows.links.size(), 0.0);
    for (std::size_t f = 0; f < flows.size(); ++f) {
      ASSERT_NEAR(times.finish[f], full.finish[f], 1e-10 * full.finish[f]);
      ASSERT_NEAR(local.finish[f], full.finish[f], 1e-10 * full.finish[f]);
      double bound = 0, latency = 0;  // never faster than the slowest link alone
      std::map<std::uint32_t, int> uses;
      for (const std::uint32_t link : flows.routes[f]) {
        carried[link] += flows.bytes[f];
        latency += flows.links[link].latency;
        bound = std::max(bound, ++uses[link] * flows.bytes[f] / flows.links[link].bandwidth);
      }
      ASSERT_GE(times.finish[f], (flows.starts[f] + latency + bound) * (1 - 1e-12));
    }
    const double makespan = *std::max_element(times.finish.begin(), times.finish.end());
    for (std::size_t link = 0; link < carried.size(); ++link) {
      ASSERT_NEAR(times.carried[link], carried[link], 1e-9 * carried[link]);
      ASSERT_LE(carried[link], flows.links[link].bandwidth * makespan * (1 + 1e-9));
    }
  }
}

// Work is conserved: on one link the last flow ends when all bytes have passed without a pause.
TEST(FlowRun, one_link_ends_when_its_bytes_have_passed) {
  RandomStream random(4);
  for (int round = 0; round < orrery::test::cases(100); ++round) {
    std::string text = "link 0 l 1000 0\n";
    std::vector<std::pair<double, double>> flows;  // start, bytes
    for (auto f = 1 + random.below(30); f > 0; --f) {
      flows.emplace_back(static_cast<double>(random.below(20)), static_cast<double>(1 + random.below(5000)));
      text += fmt::format("flow {} {} {} - 0\n", flows.size(), flows.back().first, flows.back().second);
    }
    std::sort(flows.begin(), flows.end());
    double end = 0;
    for (const auto& [start, bytes] : flows) { end = std::max(end, start) + bytes / 1000; }
    const auto finish = finish_of(text);
    ASSERT_NEAR(*std::max_element(finish.begin(), finish.end()), end, 1e-9 * end);
  }
}

// All bandwidths times k: all transfers take 1 / k of the time (starts at 0, no latency). More bandwidth on a single
// link may end a flow later: see docs/models/fair-rates.md.
TEST(FlowRun, flows_scale_with_all_bandwidths) {
  RandomStream random(6);
  for (int round = 0; round < orrery::test::cases(50); ++round) {
    FlowList flows = list_of(random_text(random));
    std::fill(flows.starts.begin(), flows.starts.end(), 0.0);
    for (FlowLink& link : flows.links) { link.latency = 0; }
    const auto slow = run_flows(flows);
    for (FlowLink& link : flows.links) { link.bandwidth *= 4; }
    const auto fast = run_flows(flows);
    for (std::size_t f = 0; f < flows.size(); ++f) {
      ASSERT_NEAR(fast.finish[f], slow.finish[f] / 4, 1e-10 * slow.finish[f]);
    }
  }
}

// Links of 1 and 2: flow 0 over both, flow 1 on the first, flow 2 on the second: rates 1/2, 1/2, 3/2. With 10 on the
// first link, flow 0 takes 1 of the second, and flow 2, of 3 B, ends later: 1 B/s until 2 B/s are free.
TEST(FlowRun, a_faster_link_can_delay_another_links_flow) {
  const std::string flows = "flow 0 0 9 - 0,1\nflow 1 0 9 - 0\nflow 2 0 3 - 1\n";
  EXPECT_EQ(finish_of("link 0 a 1 0\nlink 1 b 2 0\n" + flows)[2], 2);
  EXPECT_EQ(finish_of("link 0 a 10 0\nlink 1 b 2 0\n" + flows)[2], 3);
}

// ---- bad files -----------------------------------------------------------------------------------------------------

TEST(FlowRun, bad_files_have_one_line_for_each_error) {
  EXPECT_EQ(error_of(""), "f.txt: has no line \"flow ...\"");
  EXPECT_EQ(error_of("lnik 0 a 1 0"), "f.txt:1: \"lnik\" is not a kind of line; did you mean link?");
  EXPECT_EQ(error_of("link 0 a 0 0"), "f.txt:1: bandwidth \"0\": valid: a number greater than 0");
  EXPECT_EQ(error_of("link 0 a 1 -1"), "f.txt:1: latency \"-1\": valid: a number from 0");
  EXPECT_EQ(error_of("link 0 a inf 0"), "f.txt:1: bandwidth \"inf\": valid: a number greater than 0");
  EXPECT_EQ(error_of("link 0 a 1 0\nlink 0 b 1 0"), "f.txt:2: link 0: the id is taken by an earlier line");
  EXPECT_EQ(error_of("link 0 a 1 0\nflow 0 0 1 - 1"), "f.txt:2: flow 0: no earlier line has link 1");
  EXPECT_EQ(error_of("link 0 a 1 0\nflow 0 0 1 - 0\nflow 0 0 1 - 0"), "f.txt:3: flow 0: the id is taken by line 2");
  EXPECT_EQ(error_of("link 0 a 1 0\nflow 0 0 1 5 0"), "f.txt:2: flow 0: depends on flow 5, which no line has");
  EXPECT_EQ(error_of("link 0 a 1 0\nflow 0 0 1 1 0\nflow 1 0 1 0 0\nflow 2 0 1 0 0"),
            "f.txt:2: flow 0: cycle of dependencies: 0 waits for 1 waits for 0");
  EXPECT_EQ(error_of("link 0 a 1 0\nflow 0 0 1 0 0"), "f.txt:2: flow 0: cycle of dependencies: 0 waits for 0");
  EXPECT_EQ(error_of("link 0 a 1 0\nflow 0 0 1 -"), "f.txt:2: no route; \"-\" means none");
  EXPECT_EQ(error_of("link 0 a 1 0\nflow 0 0 1 - 0;1"),
            "f.txt:2: \"0;1\" in the route: valid: whole numbers a,b,c, or - for none");
  EXPECT_EQ(error_of("link 0 a 1 0 9"), "f.txt:1: \"9\": the line has too many words");
}

// ---- SimGrid -------------------------------------------------------------------------------------------------------

// Finish times of SimGrid 3.32 (the last word of each flow's line), to 1e-9 relative.
TEST(FlowRun, finish_times_are_those_of_simgrid) {
  const std::filesystem::path folder = "../shared/data/simgrid_oracle/cases";
  if (!std::filesystem::exists(folder)) { GTEST_SKIP() << folder << " is not there"; }
  int cases = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream stream(entry.path());
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    if (orrery::test::kSanitizers && text.size() > 50'000) { continue; }
    std::vector<double> expected;
    std::istringstream lines(text);
    for (std::string line, word; std::getline(lines, line);) {
      if (!line.starts_with("flow ")) { continue; }
      std::istringstream words(line);
      while (words >> word) {}
      expected.push_back(std::stod(word));
    }
    const auto finish = finish_of(text);
    ASSERT_EQ(finish.size(), expected.size());
    for (std::size_t f = 0; f < expected.size(); ++f) {
      ASSERT_NEAR(finish[f], expected[f], 1e-9 * expected[f]) << entry.path() << " flow " << f;
    }
    ++cases;
  }
  EXPECT_GE(cases, 20);
}

// ---- ends ----------------------------------------------------------------------------------------------------------

TEST(FlowEnds, the_first_end_is_the_least_whatever_the_order_of_changes) {
  RandomStream random(9);
  FlowEnds ends;
  std::map<std::uint32_t, double> reference;
  std::vector<std::pair<std::uint32_t, double>> taken;
  for (int step = 0; step < 20'000; ++step) {
    const auto flow = static_cast<std::uint32_t>(random.below(100));
    switch (random.below(5)) {
      case 0:
        if (reference.erase(flow) > 0) { ends.remove(flow); }
        break;
      case 1: ends.expect_changes(static_cast<std::size_t>(random.below(60))); break;
      case 2: {
        if (reference.empty()) { break; }
        const double time = ends.first();
        taken.clear();
        ends.take(time, taken);
        for (const auto& [one, end] : taken) {
          ASSERT_EQ(reference.at(one), end);
          ASSERT_EQ(end, time);
          reference.erase(one);
        }
        break;
      }
      default: reference[flow] = static_cast<double>(random.below(50)); ends.set(flow, reference[flow]);
    }
    ASSERT_EQ(ends.empty(), reference.empty());
    if (reference.empty()) { continue; }
    const auto least = std::min_element(reference.begin(), reference.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
    ASSERT_EQ(ends.first(), least->second);
  }
}

}  // namespace
}  // namespace orrery::network::flow_run_test
