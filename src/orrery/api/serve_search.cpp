// Units of a search at their highest loads, and as whole fleets.
#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "orrery/api/serve_search.hpp"
#include "orrery/config/units_text.hpp"
#include "orrery/core/parallel_for.hpp"
#include "orrery/core/text.hpp"

namespace orrery::api::serve_search {

namespace {

std::string degrees_text(const Degrees& d, bool has_experts) {
  std::vector<std::string> parts = {fmt::format("tp {}", d.tp)};
  if (d.pp > 1) { parts.push_back(fmt::format("pp {}", d.pp)); }
  if (d.attention_dp > 1) { parts.push_back(fmt::format("attention dp {}", d.attention_dp)); }
  if (has_experts && d.ep > 1) { parts.push_back(fmt::format("ep {}", d.ep)); }
  return fmt::format("{} x ({})", d.replicas, join(parts, ", "));
}

// Values that differ by rounding are the same; then fewer accelerators, and what is tried first: fewer drafts and
// undivided batches.
bool is_better(const ServingCandidate& a, const ServingCandidate& b) {
  constexpr double kRounding = 1e-9;
  const bool is_same = std::abs(a.value - b.value) <= kRounding * std::max(std::abs(a.value), std::abs(b.value));
  return is_same ? a.gpus < b.gpus : a.value > b.value;
}

}  // namespace

void add_hourly(ServingCandidate& candidate) {
  const results::Serving& s = candidate.result;
  constexpr double kSecondsPerHour = 3600.0, kMillion = 1e6;
  if (s.usd_per_million_tokens) {
    candidate.usd_per_hour = *s.usd_per_million_tokens / kMillion * s.output_tokens_per_s * kSecondsPerHour;
  }
  if (s.joules_per_token) { candidate.watts = *s.joules_per_token * s.output_tokens_per_s; }
}

results::ServingDegrees plain(const Degrees& d) { return {d.tp, d.pp, d.ep, d.attention_dp, d.replicas}; }

ServeRequest Search::request_of(const Unit& unit, std::int64_t units) const {
  ServeRequest request = request_.base;
  serving::Scenario& s = request.scenario;
  s.devices.reset();
  s.concurrency.reset();
  s.rate = unit.start * static_cast<double>(units);
  if (requests_of_trace_ > 0) { s.requests = requests_of_trace_; }
  s.trace_speed = 1.0;  // the rate replaces the arrivals of a trace
  const Degrees& d = unit.engine;
  s.tp = d.tp, s.pp = d.pp, s.ep = d.ep, s.attention_dp = d.attention_dp;
  s.replicas = d.replicas * units;
  s.prefill_replicas = 0;
  s.prefill_tp.reset(), s.prefill_ep.reset(), s.prefill_attention_dp.reset();
  if (!unit.prefill) { s.prefill_cluster.clear(); }
  if (unit.prefill) {
    s.prefill_replicas = unit.prefill->replicas * units;
    s.prefill_tp = unit.prefill->tp, s.prefill_ep = unit.prefill->ep;
    s.prefill_attention_dp = unit.prefill->attention_dp;
  }
  return request;
}

const char* Search::found_what() const {
  return request_.base.scenario.slo.empty() ? "sustains a load" : "meets the service level";
}

std::string Search::text_of(const Unit& unit, std::int64_t units) const {
  const auto times = [&](Degrees d) {
    d.replicas *= units;
    return degrees_text(d, model().has_experts());
  };
  if (!unit.prefill) { return times(unit.engine); }
  return fmt::format("prefill {}, decode {}", times(*unit.prefill), times(unit.engine));
}

std::string Search::settings_text(const EngineSettings& s) const {
  std::string text;
  if (!request_.speculative_tokens.empty()) { text += ", " + counted(s.speculative_tokens, "draft"); }
  const bool decodes = !request_.two_batch_decodes.empty() && s.two_batch_decodes > 0;
  const bool prompts = !request_.two_batch_prompts.empty() && s.two_batch_prompts > 0;
  if (decodes || prompts) {
    const std::string sequences = decodes ? counted(s.two_batch_decodes, "sequence") : std::string();
    const std::string tokens = prompts ? counted(s.two_batch_prompts, "token") : std::string();
    text += fmt::format(", two batches (from {}{}{})", sequences, decodes && prompts ? ", " : "", tokens);
  }
  return text;
}

double Search::value_of(const ServingCandidate& c) const {
  if (request_.for_traffic) { return -spent(c) / c.load; }
  switch (request_.objective) {
    case ServeObjective::gpu: return c.load / static_cast<double>(request_.devices);
    case ServeObjective::usd: return c.result.usd_per_million_tokens ? 1e6 / *c.result.usd_per_million_tokens : 0.0;
    case ServeObjective::watt: return c.result.joules_per_token ? 1.0 / *c.result.joules_per_token : 0.0;
  }
  return 0.0;
}

// `units` copies of the unit at the highest load that they carry within the service level.
Tried Search::tried(const Unit& unit, std::int64_t units) const {
  Tried result;
  const ServeRequest request = request_of(unit, units);
  const auto prepared = prepare_serving(inputs_, request, &unit.settings);
  if (!prepared) {
    result.why = prepared.error().text();
    return result;
  }
  auto curve = goodput_curve(*prepared, request.scenario);
  if (!curve) {
    result.is_missed = curve.error().answer_is_no;
    result.why = curve.error().diagnostics.front().message;
    constexpr double kHardlyAny = 1e-3;
    serving::Scenario scenario = request.scenario;
    scenario.rate = kHardlyAny * load_of(scenario);
    const auto idle = serving_probe(*prepared, scenario, *bisection_of(scenario).next());
    for (const auto& level : idle ? idle->result.slo : std::vector<results::ServiceLevel>{}) {
      result.excess = std::max(result.excess, level.reached_s / level.limit_s);
    }
    return result;
  }
  result.runs = static_cast<std::int64_t>(curve->points.size());
  for (const auto& [load, s] : curve->points) {
    if (s.tpot.mean <= 0) { continue; }
    result.trades.push_back({s.output_tokens_per_s / static_cast<double>(s.gpus), 1.0 / s.tpot.mean, s.meets_slo(),
                             text_of(unit, units) + settings_text(unit.settings)});
  }
  auto& best = curve->points[*curve->best];
  result.candidate = candidate_of(unit, units, best.load, std::move(best.result));
  return result;
}

ServingCandidate Search::candidate_of(const Unit& unit, std::int64_t units, double load,
                                      results::Serving result) const {
  ServingCandidate found;
  found.engine = plain(unit.engine);
  found.engine.replicas *= units;
  if (unit.prefill) {
    found.prefill = plain(*unit.prefill);
    found.prefill->replicas *= units;
  }
  found.max_batched_tokens = unit.settings.max_batched_tokens;
  found.max_sequences = result.pools.back().max_sequences;
  found.stream_interval = unit.settings.stream_interval;
  found.drafts = unit.settings.speculative_tokens;
  found.two_batch_decodes = unit.settings.two_batch_decodes;
  found.two_batch_prompts = unit.settings.two_batch_prompts;
  found.memory_use = unit.settings.memory_of_free || unit.settings.blocks > 0 ? 0.0 : result.pools.back().memory_use;
  found.units = units;
  found.gpus = result.gpus;
  found.load = load;
  found.text = text_of(unit, units);
  found.settings = settings_text(unit.settings);
  found.result = std::move(result);
  add_hourly(found);
  return found;
}

void Search::report(std::int64_t done) const {
  if (request_.progress) { request_.progress(done, static_cast<std::int64_t>(units_.size())); }
}

// A trade is on the front if no other one has more of both; points within 2 % of the one before are left out.
std::vector<results::ServingTrade> front_of(std::vector<results::ServingTrade> trades) {
  std::stable_sort(trades.begin(), trades.end(), [](const auto& a, const auto& b) {
    return a.tokens_per_s_per_user != b.tokens_per_s_per_user ? a.tokens_per_s_per_user > b.tokens_per_s_per_user
                                                              : a.tokens_per_s_per_gpu > b.tokens_per_s_per_gpu;
  });
  std::vector<results::ServingTrade> front;
  for (auto& trade : trades) {
    constexpr double kApart = 1.02;
    if (front.empty() || trade.tokens_per_s_per_gpu > kApart * front.back().tokens_per_s_per_gpu) {
      front.push_back(std::move(trade));
    }
  }
  return front;
}

namespace {

// The largest parts of a mean, those of at least a tenth of it: "prefill 58 %, in the queue 20 %".
std::string largest_parts(std::vector<results::TimePart> parts, double mean) {
  constexpr double kLeast = 0.1;
  std::erase_if(parts, [&](const auto& part) { return part.s < kLeast * mean; });
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.s > b.s; });
  std::vector<std::string> texts;
  for (const auto& part : parts) { texts.push_back(fmt::format("{} {:.0f} %", part.name, 100.0 * part.s / mean)); }
  return join(texts, ", ");
}

}  // namespace

// Which limit the deployment is closest to, and where its time goes.
void Search::explain_best(const ServingCandidate& best, std::vector<std::string>& lines) const {
  const results::ServiceLevel* binding = nullptr;
  for (const auto& level : best.result.slo) {
    const bool is_tighter =
        binding == nullptr || level.reached_s / level.limit_s > binding->reached_s / binding->limit_s;
    if (is_tighter) { binding = &level; }
  }
  if (binding != nullptr) {
    lines.push_back(fmt::format("{}_{} limits the best deployment: {} of {}", binding->metric, binding->measure,
                                config::format_seconds(Seconds(binding->reached_s)),
                                config::format_seconds(Seconds(binding->limit_s))));
  }
  lines.push_back(fmt::format("its mean TTFT: {}", largest_parts(best.result.ttft_parts(), best.result.ttft.mean)));
  if (const auto& token = best.result.token_time) {
    lines.push_back(fmt::format("its time between tokens: {}", largest_parts(token->parts(), token->mean_s)));
  }
}

std::array<Search::VariedSetting, 3> Search::varied_settings() const {
  using E = EngineSettings;
  using C = ServingCandidate;
  return {VariedSetting{&request_.speculative_tokens, &E::speculative_tokens, &C::drafts,
                        [](std::int64_t n) { return n == 0 ? "without drafts" : "with " + counted(n, "draft"); }},
          VariedSetting{&request_.two_batch_decodes, &E::two_batch_decodes, &C::two_batch_decodes,
                        [](std::int64_t n) {
                          return n == 0 ? std::string("whose decode iterations are not divided")
                                        : "with two batches from " + counted(n, "sequence");
                        }},
          VariedSetting{&request_.two_batch_prompts, &E::two_batch_prompts, &C::two_batch_prompts, [](std::int64_t n) {
                          return n == 0 ? std::string("whose prompts are not divided")
                                        : "with two batches from " + counted(n, "token");
                        }}};
}

std::vector<std::string> Search::explanation(const std::vector<ServingCandidate>& ranked) const {
  std::vector<std::string> lines;
  const ServingCandidate& best = ranked.front();
  explain_best(best, lines);
  const auto compare = [&](const std::string& what, const auto& is_one) {
    const auto other = std::find_if(ranked.begin(), ranked.end(), is_one);
    if (other == ranked.end()) {
      lines.push_back(fmt::format("{}: no deployment {}", what, found_what()));
    } else {
      lines.push_back(fmt::format("{}: {}, {:.1f} % less", what, other->text + other->settings,
                                  100 * (1 - other->value / best.value)));
    }
  };
  if (request_.pools == Pools::both) {
    const bool pair = best.prefill.has_value();
    compare(pair ? "best with one pool" : "best disaggregated one",
            [&](const auto& c) { return c.prefill.has_value() != pair; });
  }
  std::set<std::int64_t> degrees;
  for (const Shape& shape : shapes_) { degrees.insert(shape.degrees.tp); }
  degrees.erase(best.engine.tp);
  for (const std::int64_t tp : degrees) {
    compare(fmt::format("best with {}tp {}", request_.pools == Pools::aggregated ? "" : "decode ", tp),
            [&](const auto& c) { return c.engine.tp == tp; });
  }
  for (const VariedSetting& setting : varied_settings()) {
    for (const std::int64_t value : *setting.values) {
      if (setting.values->size() == 1 || value == best.*setting.found) { continue; }
      compare("best one " + setting.named(value), [&](const auto& c) { return c.*setting.found == value; });
    }
  }
  return lines;
}

// Every unit at its highest load, in the order of `units_`.
std::vector<Tried> Search::tried_units() const {
  std::vector<Tried> all(units_.size());
  std::mutex mutex;
  std::int64_t done = 0;
  parallel_for(units_.size(), request_.threads, [&](std::size_t i) {
    all[i] = tried(units_[i], 1);
    const std::lock_guard lock(mutex);
    report(++done);
  });
  return all;
}

// Counts and the front into `plan`; the units that meet the service level, best first, loads of all their copies.
std::vector<Search::Ranked> Search::ranked_units(std::vector<Tried> all, ServingPlan& plan) const {
  std::vector<Ranked> ranked;
  std::vector<results::ServingTrade> trades;
  std::string nearest, why = why_infeasible_;
  double least_excess = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    Tried& one = all[i];
    plan.simulated_runs += one.runs;
    trades.insert(trades.end(), one.trades.begin(), one.trades.end());
    if (one.candidate) {
      ServingCandidate candidate = std::move(*one.candidate);
      if (!request_.for_traffic) {
        candidate.units = request_.devices / units_[i].gpus();
        candidate.load *= static_cast<double>(candidate.units);
        candidate.text = text_of(units_[i], candidate.units);
      }
      candidate.value = value_of(candidate);
      ranked.push_back({std::move(candidate), i});
      continue;
    }
    ++(one.is_missed ? plan.missed : plan.infeasible);
    if (!one.is_missed) {
      why = one.why;
    } else if (nearest.empty() || one.excess < least_excess) {
      nearest = text_of(units_[i], 1) + settings_text(units_[i].settings) + ": " + one.why;
      least_excess = one.excess;
    }
  }
  if (request_.front) { plan.front = front_of(std::move(trades)); }
  if (ranked.empty()) {
    plan.nothing = nearest.empty() ? fmt::format("no deployment can run: {}", why)
                                   : fmt::format("no deployment {}; {}", found_what(), nearest);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const Ranked& a, const Ranked& b) { return is_better(a.candidate, b.candidate); });
  return ranked;
}

// The run at the candidate's load may be that of a unit with other limits: the same but for parts of limits.
ServingCandidate Search::own_result(ServingCandidate candidate, std::size_t unit) const {
  if (request_.exhaustive) { return candidate; }
  const ServeRequest request = request_of(units_[unit], 1);
  const auto prepared = prepare_serving(inputs_, request, &units_[unit].settings);
  if (!prepared) { return candidate; }
  if (auto trial = load_trial(*prepared, request.scenario, candidate.load, Stops::at_the_end)) {
    candidate.result = std::move(*trial->result);
  }
  return candidate;
}

// All copies of a unit at the highest load that they carry together; none if they carry none.
std::optional<ServingCandidate> Search::whole_fleet(const Ranked& one, std::int64_t& runs) const {
  const std::int64_t units = one.candidate.units;
  Unit unit = units_[one.unit];
  unit.start = one.candidate.load / static_cast<double>(units);
  const ServeRequest request = request_of(unit, units);
  const auto prepared = prepare_serving(inputs_, request, &unit.settings);
  if (!prepared) { return std::nullopt; }
  LoadBisection bisection = bisection_of(request.scenario);
  std::optional<results::Serving> best;
  while (const auto load = bisection.next()) {
    auto trial = load_trial(*prepared, request.scenario, *load, Stops::when_missed);
    if (!trial) { return std::nullopt; }
    ++runs;
    bisection.tell(trial->meets_slo());
    if (trial->meets_slo()) { best = std::move(trial->result); }
  }
  if (!best) { return std::nullopt; }
  ServingCandidate found = candidate_of(unit, units, bisection.good(), std::move(*best));
  found.value = value_of(found);
  return found;
}

// Of the best settings of each combination of degrees, those that are simulated as whole fleets: the first `top`, and
// the best of each group.
std::vector<std::size_t> Search::whole_ones(const std::vector<Ranked>& ranked) const {
  std::vector<std::size_t> list;
  std::set<std::string> in_all;
  std::map<std::size_t, std::set<std::string>> in_group;
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    const std::string& text = ranked[i].candidate.text;
    bool is_wanted = in_all.insert(text).second && in_all.size() <= request_.top;
    for (const std::size_t group : groups_of(units_[ranked[i].unit])) {
      std::set<std::string>& of_group = in_group[group];
      is_wanted = (of_group.insert(text).second && of_group.size() <= kBestOfGroup) || is_wanted;
    }
    if (is_wanted) { list.push_back(i); }
  }
  return list;
}

// Units that were simulated alone have the loads of their copies together.
Search::Fleets Search::fleets(std::vector<Ranked> ranked, ServingPlan& plan) const {
  // Of each combination of degrees the best, and the best with each value of a setting.
  std::set<std::pair<std::size_t, std::string>> seen;
  std::erase_if(ranked, [&](const Ranked& one) {
    bool is_new = false;
    for (const std::size_t group : groups_of(units_[one.unit])) {
      is_new = seen.emplace(group, one.candidate.text).second || is_new;
    }
    return !is_new;
  });
  const std::vector<std::size_t> chosen = whole_ones(ranked);
  std::vector<std::optional<ServingCandidate>> whole(chosen.size());
  std::vector<std::int64_t> runs(chosen.size(), 0);
  parallel_for(chosen.size(), request_.threads, [&](std::size_t i) {
    Ranked& one = ranked[chosen[i]];
    const bool is_whole = one.candidate.units == 1;
    whole[i] = is_whole ? own_result(std::move(one.candidate), one.unit) : whole_fleet(one, runs[i]);
  });
  Fleets found;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    plan.simulated_runs += runs[i];
    found.are_all_whole = found.are_all_whole && whole[i].has_value();
    if (whole[i]) { plan.best.push_back(std::move(*whole[i])); }
  }
  std::stable_sort(plan.best.begin(), plan.best.end(), [](const auto& a, const auto& b) {
    return is_better(a, b) || (!is_better(b, a) && a.result.tightest() < b.result.tightest());
  });
  found.all = plan.best;
  std::set<std::string> shown;
  std::erase_if(plan.best, [&](const ServingCandidate& one) { return !shown.insert(one.text).second; });
  plan.best.resize(std::min(plan.best.size(), request_.top));
  auto next = chosen.begin();
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    if (next != chosen.end() && *next == i) {
      ++next;
    } else {
      found.all.push_back(std::move(ranked[i].candidate));
    }
  }
  return found;
}

}  // namespace orrery::api::serve_search
