#include "orrery/api/serve_plan.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "orrery/api/serve_run.hpp"
#include "orrery/config/units_text.hpp"
#include "orrery/core/parallel_for.hpp"
#include "orrery/core/text.hpp"
#include "orrery/launch/launch.hpp"
#include "orrery/serving/summary.hpp"

namespace orrery::api {

namespace {

using results::ServingCandidate;
using results::ServingPlan;
using serving::Degrees;
using serving::EngineSettings;

constexpr std::size_t kMostPairs = 48;
constexpr std::int64_t kMostOfAPool = 8;  // engines of one pool of a pair
constexpr double kStart = 0.5;            // of the estimated capacity: where the bisection starts

// Engines of one kind that fit, and what one of them can do by its prices alone.
struct Shape {
  Degrees degrees;
  double prefill_rate = 0, decode_rate = 0;  // requests per second
};

// The unit that is simulated, and how often the devices hold it.
struct Unit {
  Degrees engine;
  std::optional<Degrees> prefill;
  EngineSettings settings;
  double start = 1;  // load at which the bisection begins

  [[nodiscard]] std::int64_t gpus() const { return engine.gpus() + (prefill ? prefill->gpus() : 0); }
};

struct Tried {
  std::optional<ServingCandidate> candidate;
  std::vector<results::ServingTrade> trades;
  std::int64_t runs = 0;
  bool is_missed = false;
  double excess = 0;  // missed: by how much the worst limit is exceeded when hardly anything arrives, as a ratio
  std::string why;    // there is no candidate
};

std::vector<std::int64_t> powers_up_to(std::int64_t most) {
  std::vector<std::int64_t> list;
  for (std::int64_t n = 1; n <= most; n *= 2) { list.push_back(n); }
  return list;
}

std::string degrees_text(const Degrees& d, bool has_experts) {
  std::vector<std::string> parts = {fmt::format("tp {}", d.tp)};
  if (d.pp > 1) { parts.push_back(fmt::format("pp {}", d.pp)); }
  if (d.attention_dp > 1) { parts.push_back(fmt::format("attention dp {}", d.attention_dp)); }
  if (has_experts && d.ep > 1) { parts.push_back(fmt::format("ep {}", d.ep)); }
  return fmt::format("{} x ({})", d.replicas, join(parts, ", "));
}

results::ServingDegrees plain(const Degrees& d) { return {d.tp, d.pp, d.ep, d.attention_dp, d.replicas}; }

bool is_better(const ServingCandidate& a, const ServingCandidate& b) {
  return a.value != b.value ? a.value > b.value : a.gpus < b.gpus;
}

class Search {
 public:
  Search(ServingInputs& inputs, const ServePlanRequest& request) : inputs_(inputs), request_(request) {}

  Result<ServingPlan> run();

 private:
  [[nodiscard]] const workload::Model& model() const { return inputs_.model(); }
  Result<void> read_load();
  Result<void> find_shapes();
  void add_shape(const Degrees& degrees);
  [[nodiscard]] std::vector<EngineSettings> knobs(bool all) const;
  void add_engines();
  void add_pairs();
  [[nodiscard]] ServeRequest request_of(const Unit& unit, std::int64_t units) const;
  [[nodiscard]] Tried tried(const Unit& unit, std::int64_t units) const;
  [[nodiscard]] double value_of(const ServingCandidate& candidate) const;
  [[nodiscard]] std::string text_of(const Unit& unit, std::int64_t units) const;
  struct Ranked {
    ServingCandidate candidate;
    std::size_t unit = 0;  // of units_
  };
  [[nodiscard]] std::vector<Tried> tried_units() const;
  [[nodiscard]] std::vector<Ranked> ranked_units(std::vector<Tried> all, ServingPlan& plan) const;
  [[nodiscard]] std::vector<ServingCandidate> fleets(std::vector<Ranked> ranked, ServingPlan& plan) const;
  void report(std::int64_t done) const;
  [[nodiscard]] std::vector<std::string> explanation(const std::vector<ServingCandidate>& ranked) const;

  ServingInputs& inputs_;
  const ServePlanRequest& request_;
  double input_ = 1, output_ = 1;  // mean tokens
  std::optional<double> tpot_limit_;
  std::vector<Shape> shapes_;
  std::vector<Unit> units_;
  std::int64_t infeasible_ = 0, matched_out_ = 0;
  std::string why_infeasible_;
};

// Mean lengths, and the strictest limit on TPOT.
Result<void> Search::read_load() {
  serving::Scenario scenario = request_.base.scenario;
  scenario.concurrency.reset();
  if (scenario.trace.empty()) { scenario.rate = 1.0; }
  ORRERY_TRY(load, serving::workload_of(scenario));
  double input = 0, output = 0;
  for (const auto& one : load.requests) {
    input += static_cast<double>(one.input);
    output += static_cast<double>(one.output);
  }
  input_ = input / static_cast<double>(load.requests.size());
  output_ = output / static_cast<double>(load.requests.size());
  ORRERY_TRY(slo, serving::read_slo(scenario.slo));
  for (const auto& level : slo) {
    if (level.metric == "tpot") { tpot_limit_ = std::min(tpot_limit_.value_or(level.limit_s), level.limit_s); }
  }
  return {};
}

Result<void> Search::find_shapes() {
  const auto& s = request_.base.scenario;
  ORRERY_TRY(cluster, inputs_.cluster(s.cluster, request_.devices));
  const std::int64_t node = launch::devices_per_node(cluster), devices = request_.devices;
  const auto or_else = [](const std::vector<std::int64_t>& given, std::vector<std::int64_t> usual) {
    return given.empty() ? std::move(usual) : given;
  };
  const bool has_experts = model().has_experts();
  for (const std::int64_t tp : or_else(request_.tp, powers_up_to(std::min(node, devices)))) {
    for (const std::int64_t pp : or_else(request_.pp, powers_up_to(std::min<std::int64_t>(4, devices / tp)))) {
      const auto ranks = has_experts ? powers_up_to(devices / (tp * pp)) : std::vector<std::int64_t>{1};
      for (const std::int64_t attention_dp : or_else(request_.attention_dp, ranks)) {
        const std::int64_t most = tp * attention_dp;
        const auto usual = has_experts && most > 1 ? std::vector{std::int64_t{1}, most} : std::vector{std::int64_t{1}};
        for (const std::int64_t ep : or_else(request_.ep, usual)) { add_shape({tp, pp, ep, attention_dp, 1}); }
      }
    }
  }
  return {};
}

// What an engine can do alone: prompts that fill its iterations, and the largest batch within the limit on TPOT.
void Search::add_shape(const Degrees& degrees) {
  if (degrees.gpus_of_engine() > request_.devices) { return; }
  Unit unit{degrees, {}, inputs_.engine(), 1};
  auto prepared = prepare_serving(inputs_, request_of(unit, 1), &unit.settings);
  if (!prepared) {
    ++infeasible_;
    const auto& first = prepared.error().diagnostics.front();
    why_infeasible_ = first.place.path.empty() ? first.message : first.place.path + ": " + first.message;
    return;
  }
  serving::BuiltPool& pool = *prepared->deployment->pools.front();
  const double ranks = static_cast<double>(degrees.attention_dp);
  const double budget = static_cast<double>(unit.settings.max_batched_tokens);
  const double length = std::min(input_, budget);
  const auto prompts = static_cast<std::size_t>(std::max(1.0, std::floor(budget / length)) * ranks);
  const std::vector<serving::Chunk> chunks(prompts, {std::max<std::int64_t>(1, std::llround(length)), 0});
  const auto count = static_cast<std::int64_t>(prompts);
  const double prefill = serving::seconds_of(pool.price().mixed({chunks, 0, 0, count})) * (input_ / length);
  const double context = input_ + output_ / 2;
  const double room = static_cast<double>(pool.shape().blocks * unit.settings.block_tokens) / (input_ + output_);
  double decode_rate = 0;
  const auto most = std::min(room, static_cast<double>(unit.settings.max_sequences) * ranks);
  for (std::int64_t batch = 1; static_cast<double>(batch) <= most; batch *= 2) {
    const auto contexts = static_cast<std::int64_t>(static_cast<double>(batch) * context);
    const double step = serving::seconds_of(pool.price().decode(batch, contexts).at);
    if (tpot_limit_ && step > *tpot_limit_) { break; }
    decode_rate = std::max(decode_rate, static_cast<double>(batch) / (step * output_));
  }
  shapes_.push_back({degrees, static_cast<double>(prompts) / prefill, decode_rate});
}

std::vector<EngineSettings> Search::knobs(bool all) const {
  const EngineSettings& profile = inputs_.engine();
  std::set<std::int64_t> tokens = {profile.max_batched_tokens}, sequences = {profile.max_sequences};
  if (all && profile.chunked_prefill) { tokens.insert({2048, 16384}); }
  if (!request_.max_batched_tokens.empty()) {
    tokens = {request_.max_batched_tokens.begin(), request_.max_batched_tokens.end()};
  }
  if (!request_.max_sequences.empty()) { sequences = {request_.max_sequences.begin(), request_.max_sequences.end()}; }
  std::vector<EngineSettings> list;
  for (const std::int64_t most_tokens : tokens) {
    for (const std::int64_t most_sequences : sequences) {
      EngineSettings one = profile;
      one.max_batched_tokens = most_tokens;
      one.max_sequences = most_sequences;
      list.push_back(std::move(one));
    }
  }
  return list;
}

void Search::add_engines() {
  for (const Shape& shape : shapes_) {
    const double both = shape.prefill_rate * shape.decode_rate / (shape.prefill_rate + shape.decode_rate);
    for (EngineSettings& settings : knobs(true)) {
      units_.push_back({shape.degrees, {}, std::move(settings), kStart * std::max(both, 1e-3)});
    }
  }
}

// Pairs of pools whose rates match: of each pair of shapes the two ratios that promise most, and of all pairs the best.
void Search::add_pairs() {
  struct Pair {
    Degrees prefill, decode;
    double rate = 0, promise = 0;
  };
  std::vector<Pair> pairs;
  for (const Shape& prefill : shapes_) {
    for (const Shape& decode : shapes_) {
      if (prefill.degrees.pp != decode.degrees.pp || decode.decode_rate <= 0) { continue; }
      std::vector<Pair> ratios;
      for (std::int64_t x = 1; x <= kMostOfAPool; ++x) {
        for (std::int64_t y = 1; y <= kMostOfAPool; ++y) {
          Pair pair{prefill.degrees, decode.degrees};
          pair.prefill.replicas = x;
          pair.decode.replicas = y;
          const std::int64_t gpus = pair.prefill.gpus() + pair.decode.gpus();
          if (std::gcd(x, y) != 1 || gpus > request_.devices) { continue; }
          pair.rate =
              std::min(static_cast<double>(x) * prefill.prefill_rate, static_cast<double>(y) * decode.decode_rate);
          pair.promise = pair.rate * static_cast<double>(request_.devices / gpus);
          ratios.push_back(pair);
        }
      }
      std::stable_sort(ratios.begin(), ratios.end(),
                       [](const auto& a, const auto& b) { return a.promise > b.promise; });
      const std::size_t kept = std::min<std::size_t>(2, ratios.size());
      pairs.insert(pairs.end(), ratios.begin(), ratios.begin() + static_cast<std::ptrdiff_t>(kept));
      matched_out_ += static_cast<std::int64_t>(ratios.size() - kept);
    }
  }
  std::stable_sort(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) { return a.promise > b.promise; });
  if (pairs.size() > kMostPairs) {
    matched_out_ += static_cast<std::int64_t>(pairs.size() - kMostPairs);
    pairs.resize(kMostPairs);
  }
  for (const Pair& pair : pairs) {
    for (EngineSettings& settings : knobs(false)) {
      units_.push_back({pair.decode, pair.prefill, std::move(settings), kStart * std::max(pair.rate, 1e-3)});
    }
  }
}

ServeRequest Search::request_of(const Unit& unit, std::int64_t units) const {
  ServeRequest request = request_.base;
  serving::Scenario& s = request.scenario;
  s.devices.reset();
  s.concurrency.reset();
  s.rate = unit.start * static_cast<double>(units);
  const Degrees& d = unit.engine;
  s.tp = d.tp, s.pp = d.pp, s.ep = d.ep, s.attention_dp = d.attention_dp;
  s.replicas = d.replicas * units;
  s.prefill_replicas = 0;
  if (unit.prefill) {
    s.prefill_replicas = unit.prefill->replicas * units;
    s.prefill_tp = unit.prefill->tp, s.prefill_ep = unit.prefill->ep;
    s.prefill_attention_dp = unit.prefill->attention_dp;
  }
  return request;
}

std::string Search::text_of(const Unit& unit, std::int64_t units) const {
  const auto times = [&](Degrees d) {
    d.replicas *= units;
    return degrees_text(d, model().has_experts());
  };
  if (!unit.prefill) { return times(unit.engine); }
  return fmt::format("prefill {}, decode {}", times(*unit.prefill), times(unit.engine));
}

double Search::value_of(const ServingCandidate& c) const {
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
    const auto idle = serving_probe(*prepared, request.scenario, kHardlyAny * load_of(request.scenario));
    for (const auto& level : idle ? idle->result.slo : std::vector<results::ServiceLevel>{}) {
      result.excess = std::max(result.excess, level.reached_s / level.limit_s);
    }
    return result;
  }
  result.runs = static_cast<std::int64_t>(curve->points.size());
  for (const auto& [load, s] : curve->points) {
    if (s.tpot.mean <= 0) { continue; }
    result.trades.push_back(
        {s.output_tokens_per_s / static_cast<double>(s.gpus), 1.0 / s.tpot.mean, s.meets_slo(), text_of(unit, units)});
  }
  auto& best = curve->points[*curve->best];
  ServingCandidate found;
  found.engine = plain(unit.engine);
  found.engine.replicas *= units;
  if (unit.prefill) {
    found.prefill = plain(*unit.prefill);
    found.prefill->replicas *= units;
  }
  found.max_batched_tokens = unit.settings.max_batched_tokens;
  found.max_sequences = unit.settings.max_sequences;
  found.units = units;
  found.gpus = best.result.gpus;
  found.load = best.load;
  found.text = text_of(unit, units);
  found.result = std::move(best.result);
  result.candidate = std::move(found);
  return result;
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

std::vector<std::string> Search::explanation(const std::vector<ServingCandidate>& ranked) const {
  std::vector<std::string> lines;
  const ServingCandidate& best = ranked.front();
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
  const auto compare = [&](const std::string& what, const auto& is_one) {
    const auto other = std::find_if(ranked.begin(), ranked.end(), is_one);
    if (other == ranked.end()) {
      lines.push_back(fmt::format("{}: no deployment meets the service level", what));
    } else {
      lines.push_back(fmt::format("{}: {}, {:.1f} % less", what, other->text, 100 * (1 - other->value / best.value)));
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
    compare(fmt::format("best with tp {}", tp), [&](const auto& c) { return c.engine.tp == tp; });
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
      candidate.units = request_.devices / units_[i].gpus();
      candidate.load *= static_cast<double>(candidate.units);
      candidate.text = text_of(units_[i], candidate.units);
      candidate.value = value_of(candidate);
      ranked.push_back({std::move(candidate), i});
      continue;
    }
    ++(one.is_missed ? plan.missed : plan.infeasible);
    if (!one.is_missed) {
      why = one.why;
    } else if (nearest.empty() || one.excess < least_excess) {
      nearest = text_of(units_[i], 1) + ": " + one.why;
      least_excess = one.excess;
    }
  }
  plan.front = front_of(std::move(trades));
  if (ranked.empty()) {
    plan.nothing = nearest.empty() ? fmt::format("no deployment can run: {}", why)
                                   : fmt::format("no deployment meets the service level; {}", nearest);
  }
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const Ranked& a, const Ranked& b) { return is_better(a.candidate, b.candidate); });
  return ranked;
}

// The best settings of each combination of degrees; the first `top` of them simulated as whole fleets, then the others.
std::vector<ServingCandidate> Search::fleets(std::vector<Ranked> ranked, ServingPlan& plan) const {
  std::vector<ServingCandidate> others;
  std::set<std::string> seen;
  for (Ranked& one : ranked) {
    if (!seen.insert(one.candidate.text).second) { continue; }
    if (plan.best.size() >= request_.top) {
      others.push_back(std::move(one.candidate));
      continue;
    }
    if (one.candidate.units == 1) {
      plan.best.push_back(std::move(one.candidate));
      continue;
    }
    Unit unit = units_[one.unit];
    unit.start = one.candidate.load / static_cast<double>(one.candidate.units);
    Tried fleet = tried(unit, one.candidate.units);
    plan.simulated_runs += fleet.runs;
    if (fleet.candidate) {
      fleet.candidate->value = value_of(*fleet.candidate);
      plan.best.push_back(std::move(*fleet.candidate));
    }
  }
  std::stable_sort(plan.best.begin(), plan.best.end(), is_better);
  std::vector<ServingCandidate> all = plan.best;
  all.insert(all.end(), std::make_move_iterator(others.begin()), std::make_move_iterator(others.end()));
  return all;
}

Result<ServingPlan> Search::run() {
  if (auto read = read_load(); !read) { return tl::make_unexpected(read.error()); }
  if (auto found = find_shapes(); !found) { return tl::make_unexpected(found.error()); }
  if (request_.pools != Pools::disaggregated) { add_engines(); }
  if (request_.pools != Pools::aggregated) { add_pairs(); }
  ServingPlan plan;
  plan.model = model().name;
  plan.cluster = request_.base.scenario.cluster;
  plan.engine = inputs_.engine().name;
  plan.devices = request_.devices;
  plan.objective = config::EnumNames<ServeObjective>::value[static_cast<std::size_t>(request_.objective)].second;
  plan.candidates = static_cast<std::int64_t>(units_.size());
  plan.infeasible = infeasible_;
  plan.matched_out = matched_out_;
  plan.not_searched = {"tp above the accelerators of a node (--tp)", "other engines (--engine)",
                       "formats of weights and cache (--weight-format, --kv-format)",
                       "speculation (--speculative-tokens)", "several kinds of engines in one fleet"};
  if (units_.empty()) {
    plan.nothing =
        infeasible_ > 0 ? fmt::format("no engine can run: {}", why_infeasible_) : "no deployment fits the devices";
    return plan;
  }
  std::vector<Ranked> ranked = ranked_units(tried_units(), plan);
  if (ranked.empty()) { return plan; }
  const auto all = fleets(std::move(ranked), plan);
  if (plan.best.empty()) {
    plan.nothing = "no whole fleet meets the service level";
  } else {
    plan.explanation = explanation(all);
  }
  return plan;
}

}  // namespace

Result<ServingPlan> plan_serving(const std::string& data_directory, const ServePlanRequest& request) {
  if (request.base.scenario.slo.empty()) {
    return fail({{}, 0, 0, "--slo"},
                "is missing: a search needs a service level, for example \"ttft_p99=2s tpot_p99=50ms\"");
  }
  if (request.devices < 1) { return fail({{}, 0, 0, "--devices"}, "is missing: the accelerators to serve with"); }
  ORRERY_TRY(inputs, ServingInputs::read(data_directory, request.base));
  ORRERY_TRY(cluster, inputs->cluster(request.base.scenario.cluster, request.devices));
  (void)cluster;
  return Search(*inputs, request).run();
}

}  // namespace orrery::api
