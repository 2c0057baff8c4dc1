// Units of a search as far as they can be among the answers.
#include <algorithm>
#include <map>
#include <string>

#include "orrery/api/serve_search.hpp"

namespace orrery::api::serve_search {

// One pool, pools of their own, and each tp.
std::vector<std::size_t> Search::groups_of(const Unit& unit) const {
  constexpr std::size_t kOnePool = 0, kPools = 1, kFirstTp = 2;
  if (request_.for_traffic) { return {}; }
  std::vector<std::size_t> groups = {unit.prefill ? kPools : kOnePool,
                                     kFirstTp + static_cast<std::size_t>(unit.engine.tp)};
  std::size_t first = 0;  // number of a setting's value 0
  for (const VariedSetting& setting : varied_settings()) {
    constexpr std::size_t kMostValues = 1'000'000'000;
    first += kMostValues;
    if (setting.values->size() > 1) {
      groups.push_back(first + static_cast<std::size_t>(unit.settings.*setting.field));
    }
  }
  return groups;
}

// Sorts as the ranking does: what the objective counts, or the smallest whole fleets for a traffic first.
GoodputKey Search::key_of(std::size_t unit, double load, const results::Serving& result) const {
  ServingCandidate candidate;
  candidate.load = load;
  candidate.gpus = result.gpus;
  candidate.result.output_tokens_per_s = result.output_tokens_per_s;
  candidate.result.usd_per_million_tokens = result.usd_per_million_tokens;
  candidate.result.joules_per_token = result.joules_per_token;
  add_hourly(candidate);
  if (request_.for_traffic) { return {-whole_spent(candidate), value_of(candidate)}; }
  candidate.load *= static_cast<double>(request_.devices / units_[unit].gpus());
  return {value_of(candidate), 0.0};
}

// [unit]: a number for each text.
std::vector<std::size_t> Search::numbered(const std::function<std::string(const Unit&)>& text) const {
  std::map<std::string, std::size_t> known;
  std::vector<std::size_t> numbers;
  for (const Unit& unit : units_) { numbers.push_back(known.try_emplace(text(unit), known.size()).first->second); }
  return numbers;
}

std::vector<GoodputUnit> Search::goodput_units() const {
  std::vector<GoodputUnit> list;
  const std::vector<std::size_t> kinds = numbered([this](const Unit& unit) { return text_of(unit, 1); });
  for (std::size_t i = 0; i < units_.size(); ++i) {
    GoodputUnit one{bisection_of(request_of(units_[i], 1).scenario), units_[i].gpus()};
    one.kind = kinds[i];
    one.groups = groups_of(units_[i]);
    list.push_back(std::move(one));
  }
  return list;
}

Result<LoadTrial> Search::unit_trial(std::size_t unit, std::size_t kind, double load, Stops stops,
                                     SharedTrials& shared) const {
  const ServeRequest request = request_of(units_[unit], 1);
  ORRERY_TRY(prepared, prepare_serving(inputs_, request, &units_[unit].settings));
  const PoolLimits limits = limits_of(prepared);
  if (auto known = shared.find(kind, load, stops, limits)) { return std::move(*known); }
  ORRERY_TRY(trial, load_trial(prepared, request.scenario, load, stops));
  shared.add(kind, stops, limits, trial);
  return trial;
}

Tried Search::tried_of(std::size_t unit, GoodputKnown known) const {
  Tried result;
  result.runs = known.runs;
  result.why = known.why;
  result.is_missed = known.why.empty() && known.bisection.good() == 0;
  if (!known.is_good()) { return result; }
  std::sort(known.probes.begin(), known.probes.end(), [](const auto& a, const auto& b) { return a.load < b.load; });
  for (const GoodputProbe& probe : known.probes) {
    if (!probe.is_whole || probe.per_user <= 0) { continue; }
    result.trades.push_back({probe.per_gpu, probe.per_user, probe.meets_slo,
                             text_of(units_[unit], 1) + settings_text(units_[unit].settings)});
  }
  result.candidate = candidate_of(units_[unit], 1, known.bisection.good(), std::move(*known.best));
  return result;
}

std::vector<Tried> Search::bounded_units() const {
  GoodputQuestion question;
  question.best = request_.for_traffic ? most_sized() : request_.top;
  question.best_of_group = kBestOfGroup;
  // Tokens for a dollar or a joule need not rise with the load.
  if (request_.for_traffic || request_.objective == ServeObjective::gpu) {
    question.key = [this](std::size_t unit, double load, const results::Serving& r) { return key_of(unit, load, r); };
  }
  const std::vector<GoodputUnit> units = goodput_units();
  SharedTrials shared;
  const std::vector<std::size_t> kind_of = numbered([this](const Unit& unit) {  // that differ only in limits
    return text_of(unit, 1) + settings_text(unit.settings);
  });
  question.trial = [&](std::size_t unit, double load, Stops stops) {
    return unit_trial(unit, kind_of[unit], load, stops, shared);
  };
  question.front = request_.front;
  question.threads = request_.threads;
  question.progress = [this](std::int64_t done) { report(done); };
  std::vector<Tried> all;
  std::vector<GoodputKnown> known = goodput_search(units, question);
  for (std::size_t i = 0; i < known.size(); ++i) { all.push_back(tried_of(i, std::move(known[i]))); }
  return all;
}

}  // namespace orrery::api::serve_search
