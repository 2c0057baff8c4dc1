// A given traffic: the fewest engines of each kind that meet the service level under it.
#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include <fmt/format.h>

#include "orrery/api/serve_search.hpp"
#include "orrery/core/parallel_for.hpp"

namespace orrery::api::serve_search {

namespace {

constexpr double kMostEngines = 16;  // times as many as the highest load of one unit promises

// A unit under the traffic, with any number of engines. Prices of iterations are computed once.
class Sizing {
 public:
  Sizing(PreparedServing prepared, serving::Scenario load) : prepared_(std::move(prepared)), load_(std::move(load)) {}

  // Whether the service level holds with the unit's engines.
  Result<bool> holds(const Unit& unit) {
    auto& pools = prepared_.deployment->pools;
    pools.back()->set_replicas(unit.engine.replicas);
    if (unit.prefill) { pools.front()->set_replicas(unit.prefill->replicas); }
    ++runs;
    ORRERY_TRY(result, serve_traffic(prepared_, load_));
    const bool good = result.is_sustained(!load_.concurrency);
    if (good) { best = std::move(result); }
    return good;
  }

  results::Serving best;  // the last one that held
  std::int64_t runs = 0;

 private:
  PreparedServing prepared_;
  serving::Scenario load_;
};

Unit copies(Unit unit, std::int64_t count) {
  unit.engine.replicas *= count;
  if (unit.prefill) { unit.prefill->replicas *= count; }
  return unit;
}

// The fewest copies, from a guess: up in growing steps until they hold, then down by bisection. 0: none up to `most`.
Result<std::int64_t> fewest_copies(Sizing& sizing, const Unit& unit, std::int64_t guess, std::int64_t most) {
  std::int64_t bad = 0, good = 0, step = 1;
  for (std::int64_t count = std::min(guess, most); good == 0;) {
    ORRERY_TRY(holds, sizing.holds(copies(unit, count)));
    (holds ? good : bad) = count;
    if (!holds && count == most) { return 0; }
    count = std::min(most, count + step);
    step *= 2;
  }
  // Most guesses are right or one too high: from there, single steps; then halves.
  for (std::int64_t next = good - 1; good - bad > 1; next = (good + bad) / 2) {
    ORRERY_TRY(holds, sizing.holds(copies(unit, std::max(next, bad + 1))));
    (holds ? good : bad) = std::max(next, bad + 1);
  }
  return good;
}

// Takes engines from one pool as long as the service level holds.
Result<void> take_away(Sizing& sizing, Unit& unit, const std::function<std::int64_t&(Unit&)>& engines) {
  while (engines(unit) > 1) {
    Unit fewer = unit;
    --engines(fewer);
    ORRERY_TRY(holds, sizing.holds(fewer));
    if (!holds) { break; }
    unit = std::move(fewer);
  }
  return {};
}

// A pair of pools: whole copies may have more engines of one pool than it needs.
Result<void> take_away(Sizing& sizing, Unit& unit) {
  if (!unit.prefill) { return {}; }
  auto done = take_away(sizing, unit, [](Unit& u) -> std::int64_t& { return u.prefill->replicas; });
  return done ? take_away(sizing, unit, [](Unit& u) -> std::int64_t& { return u.engine.replicas; }) : done;
}

}  // namespace

// What the objective counts: accelerators, dollars per hour, watts.
double Search::spent(const ServingCandidate& c) const {
  switch (request_.objective) {
    case ServeObjective::gpu: return static_cast<double>(c.gpus);
    case ServeObjective::usd: return c.usd_per_hour.value_or(0.0);
    case ServeObjective::watt: return c.watts.value_or(0.0);
  }
  return 0.0;
}

// The same of as many as the traffic needs by the highest load of one.
double Search::whole_spent(const ServingCandidate& c) const {
  return spent(c) * std::max(1.0, std::ceil(traffic_ / c.load));
}

// The units that promise the smallest fleets, the best settings of each combination of degrees.
std::vector<Search::Ranked> Search::to_size(std::vector<Ranked> ranked) const {
  std::vector<Ranked> chosen;
  std::set<std::string> seen;
  for (Ranked& one : ranked) {
    if (seen.insert(one.candidate.text).second) { chosen.push_back(std::move(one)); }
  }
  std::stable_sort(chosen.begin(), chosen.end(), [&](const Ranked& a, const Ranked& b) {
    return whole_spent(a.candidate) < whole_spent(b.candidate);
  });
  chosen.resize(std::min(chosen.size(), most_sized()));
  return chosen;
}

ServingCandidate Search::sized_candidate(const Unit& unit, results::Serving result) const {
  ServingCandidate found = candidate_of(unit, 1, traffic_, std::move(result));
  found.value = -spent(found);
  return found;
}

Result<Search::Sized> Search::smallest(const Ranked& one) const {
  const Unit& base = units_[one.unit];
  ServeRequest request = request_of(base, 1);
  ORRERY_TRY(prepared, prepare_serving(inputs_, request, &base.settings));
  request.scenario.rate = request_.base.scenario.rate;
  request.scenario.trace_speed = request_.base.scenario.trace_speed;
  Sizing sizing(std::move(prepared), request.scenario);
  Sized sized;
  const double promised = std::max(1.0, std::ceil(traffic_ / one.candidate.load));
  const auto most = request_.devices > 0 ? request_.devices / base.gpus()
                                         : static_cast<std::int64_t>(std::ceil(promised * kMostEngines));
  ORRERY_TRY(count, fewest_copies(sizing, base, static_cast<std::int64_t>(promised), most));
  if (count > 0) {
    Unit unit = copies(base, count);
    if (auto done = take_away(sizing, unit); !done) { return tl::make_unexpected(done.error()); }
    sized.candidate = sized_candidate(unit, std::move(sizing.best));
  }
  sized.runs = sizing.runs;
  return sized;
}

void Search::size_for_traffic(std::vector<Ranked> ranked, ServingPlan& plan) const {
  const std::vector<Ranked> chosen = to_size(std::move(ranked));
  std::vector<std::optional<Sized>> all(chosen.size());
  parallel_for(chosen.size(), request_.threads, [&](std::size_t i) {
    if (auto sized = smallest(chosen[i])) { all[i] = std::move(*sized); }
  });
  for (auto& one : all) {
    if (!one) { continue; }
    plan.simulated_runs += one->runs;
    if (one->candidate) { plan.best.push_back(std::move(*one->candidate)); }
  }
  std::stable_sort(plan.best.begin(), plan.best.end(), [](const auto& a, const auto& b) {
    if (a.value != b.value) { return a.value > b.value; }
    return a.gpus != b.gpus ? a.gpus < b.gpus : a.result.tightest() < b.result.tightest();
  });
  std::set<std::string> seen;  // pairs in different ratios may shrink to the same fleet
  std::erase_if(plan.best, [&](const ServingCandidate& c) { return !seen.insert(c.text).second; });
  if (plan.best.empty()) {
    const Ranked& nearest = chosen.front();
    const char* const unit = nearest.candidate.result.sessions ? "sessions/s" : "requests/s";
    plan.nothing = fmt::format(
        "{} not sustain {:.4g} {}{}; nearest: {} sustains {:.4g} {}, about {} accelerators of it are needed{}",
        request_.devices > 0 ? fmt::format("{} accelerators do", request_.devices) : "fleets of these degrees do",
        traffic_, unit, request_.base.scenario.slo.empty() ? "" : " within the service level",
        nearest.candidate.text + nearest.candidate.settings, nearest.candidate.load, unit,
        static_cast<std::int64_t>(std::ceil(traffic_ / nearest.candidate.load)) * units_[nearest.unit].gpus(),
        request_.base.scenario.stages.empty() ? "" : ", if no stage is full (orrery serve says which)");
    return;
  }
  explain_best(plan.best.front(), plan.explanation);
  if (plan.best.size() > request_.top) { plan.best.resize(request_.top); }
}

}  // namespace orrery::api::serve_search
