// The search that gives units up, against one that bisects all of them to the end.
#include "orrery/api/goodput_search.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace orrery::api::goodput_search_test {
namespace {

// A unit that carries `capacity`, but for loads at which chance decides; users get less the more it carries.
struct Made {
  double start = 1, capacity = 1, chance = 0, alone = 100;
  std::int64_t gpus = 1;
  std::size_t kind = 0, group = 0;

  [[nodiscard]] LoadTrial at(double load, Stops stops) const {
    LoadTrial trial;
    trial.load = load;
    trial.offered = 10 * load;
    const double noise = chance * std::sin(1000.0 * load);
    const bool is_good = load * (1.0 + noise) <= capacity;
    if (!is_good && stops == Stops::when_missed) { return trial; }
    results::Serving result;
    result.gpus = gpus;
    result.output_tokens_per_s = 10 * std::min(load, 1.5 * capacity);
    result.tpot.mean = (1.0 + load / capacity) / alone;
    result.slo.push_back({"ttft", "p99", 1.0, is_good ? 0.5 : 2.0});
    trial.result = result;
    return trial;
  }
};

std::vector<Made> random_units() {
  std::vector<Made> units(static_cast<std::size_t>(*rc::gen::inRange(1, 30)));
  for (Made& unit : units) {
    unit.start = *rc::gen::element(0.3, 1.0, 1.7, 20.0);
    unit.capacity = *rc::gen::element(0.1, 0.9, 1.0, 1.05, 1.1, 2.0, 1e-6);
    unit.chance = *rc::gen::element(0.0, 0.0, 0.1);
    unit.alone = *rc::gen::element(50.0, 80.0, 100.0);
    unit.gpus = *rc::gen::element<std::int64_t>(1, 2);
    unit.kind = static_cast<std::size_t>(*rc::gen::inRange(0, 8));
    unit.group = unit.kind % 3;
  }
  for (Made& unit : units) { unit.gpus = 1 + static_cast<std::int64_t>(unit.kind % 2); }
  return units;
}

struct Answer {
  std::vector<std::size_t> best;             // units, one of each kind
  std::map<std::size_t, std::size_t> group;  // its best unit
  std::vector<std::pair<double, double>> front;
  std::int64_t runs = 0;
};

Answer answer_of(const std::vector<Made>& made, const std::vector<GoodputKnown>& known, std::size_t most) {
  Answer answer;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < made.size(); ++i) {
    answer.runs += known[i].runs;
    if (known[i].is_good()) { order.push_back(i); }
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return known[a].bisection.good() / double(made[a].gpus) > known[b].bisection.good() / double(made[b].gpus);
  });
  std::map<std::size_t, bool> seen;
  for (const std::size_t i : order) {
    answer.group.try_emplace(made[i].group, i);
    if (!seen.try_emplace(made[i].kind, true).second) { continue; }
    if (answer.best.size() < most) { answer.best.push_back(i); }
  }
  std::vector<std::pair<double, double>> trades;
  for (const auto& unit : known) {
    for (const auto& probe : unit.probes) {
      if (unit.is_good() && probe.is_whole) { trades.push_back({probe.per_user, probe.per_gpu}); }
    }
  }
  std::sort(trades.begin(), trades.end(), std::greater<>());
  for (const auto& trade : trades) {
    if (answer.front.empty() || trade.second > answer.front.back().second) { answer.front.push_back(trade); }
  }
  return answer;
}

std::vector<GoodputKnown> searched(const std::vector<Made>& made, GoodputQuestion question, bool is_bounded) {
  std::vector<GoodputUnit> units;
  for (const Made& unit : made) {
    units.push_back({LoadBisection(unit.start, unit.start / 4096, false), unit.gpus, unit.kind, {unit.group}});
  }
  question.trial = [&](std::size_t i, double load, Stops stops) -> Result<LoadTrial> {
    return made[i].at(load, is_bounded ? stops : Stops::at_the_end);
  };
  if (is_bounded) {
    question.key = [&](std::size_t i, double load, const results::Serving&) {
      return GoodputKey{load / double(made[i].gpus), 0.0};
    };
  }
  return goodput_search(units, question);
}

RC_GTEST_PROP(GoodputSearch, finds_what_bisections_to_the_end_find, ()) {
  const auto made = random_units();
  GoodputQuestion question;
  question.best = static_cast<std::size_t>(*rc::gen::inRange(1, 4));
  question.front = *rc::gen::arbitrary<bool>();
  question.threads = 1;
  const auto known = searched(made, question, true), all = searched(made, question, false);
  const Answer bounded = answer_of(made, known, question.best), whole = answer_of(made, all, question.best);
  RC_ASSERT(bounded.best == whole.best);
  RC_ASSERT(bounded.group == whole.group);
  for (const std::size_t i : whole.best) { RC_ASSERT(known[i].bisection.good() == all[i].bisection.good()); }
  if (question.front) { RC_ASSERT(bounded.front == whole.front); }
  RC_ASSERT(bounded.runs <= whole.runs);
  for (std::size_t i = 0; i < made.size(); ++i) { RC_ASSERT(known[i].is_good() == all[i].is_good()); }
}

TEST(GoodputSearch, gives_up_what_cannot_be_the_best) {
  std::vector<Made> made(40);
  for (std::size_t i = 0; i < made.size(); ++i) {
    made[i].kind = i;
    made[i].capacity = 1.1 + 0.02 * double(i);
  }
  GoodputQuestion question;
  question.front = false;
  question.threads = 1;
  const Answer bounded = answer_of(made, searched(made, question, true), 1);
  const Answer whole = answer_of(made, searched(made, question, false), 1);
  EXPECT_EQ(bounded.best, std::vector<std::size_t>{39});
  EXPECT_LT(3 * bounded.runs, 2 * whole.runs);
}

}  // namespace
}  // namespace orrery::api::goodput_search_test
