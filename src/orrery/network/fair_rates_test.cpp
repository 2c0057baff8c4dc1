// Laws of fair rates; progressive filling in its slow, obvious form as the reference.
#include "orrery/network/fair_rates.hpp"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "orrery/core/random.hpp"
#include "orrery/core/test_effort.hpp"

namespace orrery::network::fair_rates_test {
namespace {

struct Problem {
  std::vector<double> bandwidths;
  std::vector<std::vector<std::uint32_t>> routes;
  std::vector<double> weights;
};

// All rates rise together until a link is full; its flows stop there. O(links x uses).
std::vector<double> reference(const Problem& problem) {
  std::vector<double> rest = problem.bandwidths, rates(problem.routes.size(), -1.0);
  for (std::size_t left = rates.size(); left > 0;) {
    std::vector<double> weight(rest.size(), 0.0);
    for (std::size_t f = 0; f < rates.size(); ++f) {
      for (const std::uint32_t link : problem.routes[f]) { weight[link] += rates[f] < 0 ? problem.weights[f] : 0.0; }
    }
    std::size_t least = rest.size();
    for (std::size_t link = 0; link < rest.size(); ++link) {
      const bool is_less = least == rest.size() || rest[link] * weight[least] < rest[least] * weight[link];
      if (weight[link] > 0 && is_less) { least = link; }
    }
    const double level = rest[least] / weight[least];
    for (std::size_t f = 0; f < rates.size(); ++f) {
      const auto& route = problem.routes[f];
      if (rates[f] >= 0 || std::find(route.begin(), route.end(), least) == route.end()) { continue; }
      rates[f] = level * problem.weights[f];
      for (const std::uint32_t link : route) { rest[link] -= rates[f]; }
      --left;
    }
  }
  return rates;
}

Problem random_problem(RandomStream& random, bool weighted) {
  Problem problem;
  const auto links = 1 + random.below(20), flows = 1 + random.below(60);
  for (std::int64_t i = 0; i < links; ++i) {
    problem.bandwidths.push_back(static_cast<double>(1 + random.below(random.below(2) == 0 ? 3 : 1000)));
  }
  for (std::int64_t f = 0; f < flows; ++f) {
    auto& route = problem.routes.emplace_back();
    for (std::int64_t i = random.below(4); i >= 0; --i) {
      route.push_back(static_cast<std::uint32_t>(random.below(links)));  // the same link may come twice
    }
    problem.weights.push_back(weighted ? 0.01 * static_cast<double>(1 + random.below(1000)) : 1.0);
  }
  return problem;
}

TEST(FairRates, a_flow_alone_has_the_bandwidth_of_its_slowest_link) {
  FairRates rates({3e9, 1e9, 2e9});
  const auto flow = rates.add(std::vector<std::uint32_t>{0, 1, 2});
  rates.settle([](std::uint32_t, double) {});
  EXPECT_EQ(rates.rate(flow), 1e9);
}

// Two links of 1: a flow over both and one on each share 1/2. If the second link has 2, its own flow has 3/2.
TEST(FairRates, a_parking_lot_by_hand) {
  FairRates rates({1, 2});
  const auto both = rates.add(std::vector<std::uint32_t>{0, 1});
  const auto first = rates.add(std::vector<std::uint32_t>{0});
  const auto second = rates.add(std::vector<std::uint32_t>{1});
  rates.settle([](std::uint32_t, double) {});
  EXPECT_DOUBLE_EQ(rates.rate(both), 0.5);
  EXPECT_DOUBLE_EQ(rates.rate(first), 0.5);
  EXPECT_DOUBLE_EQ(rates.rate(second), 1.5);
}

// Weights 1 and 3 on a link of 8: 2 and 6. A route that uses the link twice takes twice its rate: 8 = r + 2 r.
TEST(FairRates, weights_and_repeated_links_by_hand) {
  FairRates weighted({8});
  const auto one = weighted.add(std::vector<std::uint32_t>{0}, 1),
             three = weighted.add(std::vector<std::uint32_t>{0}, 3);
  weighted.settle([](std::uint32_t, double) {});
  EXPECT_DOUBLE_EQ(weighted.rate(one), 2);
  EXPECT_DOUBLE_EQ(weighted.rate(three), 6);
  FairRates repeated({9});
  const auto once = repeated.add(std::vector<std::uint32_t>{0}), twice = repeated.add(std::vector<std::uint32_t>{0, 0});
  repeated.settle([](std::uint32_t, double) {});
  EXPECT_DOUBLE_EQ(repeated.rate(once), 3);
  EXPECT_DOUBLE_EQ(repeated.rate(twice), 3);
}

class FairRatesByMethod : public testing::TestWithParam<FairRates::Method> {};

// Flows come and go one by one and in groups; after each update the rates are those of the reference.
TEST_P(FairRatesByMethod, rates_are_those_of_the_reference_while_flows_come_and_go) {
  RandomStream random(21);
  for (int round = 0; round < orrery::test::cases(200); ++round) {
    const Problem problem = random_problem(random, round % 2 == 1);
    FairRates rates(problem.bandwidths, GetParam());
    std::vector<std::pair<std::uint32_t, std::size_t>> live;  // number, index in the problem
    std::vector<double> last(problem.routes.size() + 1, -1.0);
    for (int update = 0; update < 20; ++update) {
      for (auto changes = random.below(4); changes >= 0; --changes) {
        if (!live.empty() && random.below(2) == 0) {
          const auto i = static_cast<std::size_t>(random.below(static_cast<std::int64_t>(live.size())));
          rates.remove(live[i].first);
          live.erase(live.begin() + static_cast<std::ptrdiff_t>(i));
        } else {
          const auto f = static_cast<std::size_t>(random.below(static_cast<std::int64_t>(problem.routes.size())));
          live.emplace_back(rates.add(problem.routes[f], problem.weights[f]), f);
        }
      }
      rates.settle([&](std::uint32_t flow, double rate) { EXPECT_EQ(rate, rates.rate(flow)); });
      ASSERT_EQ(rates.flow_count(), live.size());
      ASSERT_FALSE(rates.uncertified(1e-10));
      Problem now{problem.bandwidths, {}, {}};
      for (const auto& [number, f] : live) {
        now.routes.push_back(problem.routes[f]);
        now.weights.push_back(problem.weights[f]);
      }
      const auto expected = reference(now);
      for (std::size_t i = 0; i < live.size(); ++i) {
        ASSERT_NEAR(rates.rate(live[i].first), expected[i], 1e-9 * expected[i]) << "round " << round;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, FairRatesByMethod,
                         testing::Values(FairRates::Method::automatic, FairRates::Method::full,
                                         FairRates::Method::local));

TEST(FairRates, changed_is_called_exactly_for_the_flows_whose_rate_differs) {
  FairRates rates({1, 1, 1}, FairRates::Method::local);
  const auto left = rates.add(std::vector<std::uint32_t>{0});
  const auto right = rates.add(std::vector<std::uint32_t>{2});
  rates.settle([](std::uint32_t, double) {});
  std::vector<std::pair<std::uint32_t, double>> changes;
  const auto next = rates.add(std::vector<std::uint32_t>{0, 1});
  rates.settle([&](std::uint32_t flow, double rate) { changes.emplace_back(flow, rate); });
  std::sort(changes.begin(), changes.end());
  EXPECT_EQ(changes, (std::vector<std::pair<std::uint32_t, double>>{{left, 0.5}, {next, 0.5}}));
  EXPECT_EQ(rates.rate(right), 1);
}

// Neighbours on a ring of 1,000 links: a change reaches a few flows, so an update costs far less than all uses.
TEST(FairRates, an_update_among_ring_neighbours_costs_a_few_uses) {
  constexpr std::uint32_t kLinks = 1000;
  FairRates rates(std::vector<double>(kLinks, 1.0));
  std::vector<std::uint32_t> flows;
  for (std::uint32_t i = 0; i < kLinks; ++i) {
    flows.push_back(rates.add(std::vector<std::uint32_t>{i, (i + 1) % kLinks}));
  }
  rates.settle([](std::uint32_t, double) {});
  const auto before = rates.counts();
  for (std::uint32_t i = 0; i < kLinks; i += 10) {
    rates.remove(flows[i]);
    rates.settle([](std::uint32_t, double) {});
    flows[i] = rates.add(std::vector<std::uint32_t>{i});
    rates.settle([](std::uint32_t, double) {});
  }
  EXPECT_EQ(rates.counts().repairs - before.repairs, 200U);
  EXPECT_LT(rates.counts().work - before.work, 200U * 200U);
}

// Random traffic: repairs do not pay, and the budget keeps the whole near the cost of full solutions.
TEST(FairRates, random_traffic_costs_little_more_than_the_better_method) {
  const auto work = [](FairRates::Method method) {
    RandomStream random(5);
    const std::int64_t links = 400, flows = orrery::test::kSanitizers ? 300 : 2000;
    FairRates rates(std::vector<double>(links, 1.0), method);
    const auto add = [&] {
      std::vector<std::uint32_t> route(4);
      for (auto& link : route) { link = static_cast<std::uint32_t>(random.below(links)); }
      return rates.add(route);
    };
    std::vector<std::uint32_t> live(static_cast<std::size_t>(flows));
    for (auto& flow : live) { flow = add(); }
    for (int update = 0; update < 200; ++update) {
      rates.settle([](std::uint32_t, double) {});
      auto& flow = live[static_cast<std::size_t>(random.below(flows))];
      rates.remove(flow);
      flow = add();
    }
    return rates.counts().work;
  };
  const auto best = std::min(work(FairRates::Method::full), work(FairRates::Method::local));
  EXPECT_LE(work(FairRates::Method::automatic), best * 13 / 10);
}

TEST(FairRates, renamed_links_and_flows_have_the_same_rates) {
  RandomStream random(8);
  for (int round = 0; round < orrery::test::cases(100); ++round) {
    const Problem problem = random_problem(random, false);
    const auto links = static_cast<std::uint32_t>(problem.bandwidths.size());
    std::vector<double> reversed(problem.bandwidths.rbegin(), problem.bandwidths.rend());
    FairRates rates(problem.bandwidths), renamed(reversed);
    for (std::size_t f = 0; f < problem.routes.size(); ++f) { (void)rates.add(problem.routes[f]); }
    for (std::size_t f = problem.routes.size(); f-- > 0;) {
      auto route = problem.routes[f];
      for (auto& link : route) { link = links - 1 - link; }
      (void)renamed.add(route);
    }
    rates.settle([](std::uint32_t, double) {});
    renamed.settle([](std::uint32_t, double) {});
    for (std::uint32_t f = 0; f < problem.routes.size(); ++f) {
      const auto other = static_cast<std::uint32_t>(problem.routes.size() - 1 - f);
      ASSERT_NEAR(rates.rate(f), renamed.rate(other), 1e-11 * rates.rate(f));
    }
  }
}

TEST(FairRates, the_certificate_finds_rates_that_are_not_fair) {
  FairRates rates({1, 1});
  (void)rates.add(std::vector<std::uint32_t>{0});
  EXPECT_TRUE(rates.uncertified());  // not settled: no link is full
  rates.settle([](std::uint32_t, double) {});
  EXPECT_FALSE(rates.uncertified());
  rates.set_bandwidth(0, 2);
  EXPECT_TRUE(rates.uncertified());
  rates.settle([](std::uint32_t, double) {});
  EXPECT_EQ(rates.rate(0), 2);
}

// Two flows on a link, one of them on a second one as well.
TEST(FairRates, flows_of_a_link_that_changes_are_solved_again) {
  for (const auto method : {FairRates::Method::local, FairRates::Method::full, FairRates::Method::automatic}) {
    FairRates rates({2, 2}, method);
    (void)rates.add(std::vector<std::uint32_t>{0});
    (void)rates.add(std::vector<std::uint32_t>{0, 1});
    const auto after = [&](std::uint32_t link, double bandwidth) {
      rates.set_bandwidth(link, bandwidth);
      rates.settle([](std::uint32_t, double) {});
      EXPECT_FALSE(rates.uncertified());
      return std::vector<double>{rates.rate(0), rates.rate(1)};
    };
    EXPECT_EQ(after(0, 1), (std::vector<double>{0.5, 0.5}));
    EXPECT_EQ(after(1, 0.25), (std::vector<double>{0.75, 0.25}));
    EXPECT_EQ(after(0, 4), (std::vector<double>{3.75, 0.25}));
  }
}

}  // namespace
}  // namespace orrery::network::fair_rates_test
