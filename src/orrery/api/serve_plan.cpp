#include "orrery/api/serve_plan.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "orrery/api/serve_search.hpp"
#include "orrery/launch/launch.hpp"
#include "orrery/serving/growth.hpp"
#include "orrery/serving/summary.hpp"

namespace orrery::api::serve_search {

namespace {

constexpr std::int64_t kMostNodes = 4;  // of a unit, if the number of accelerators is not given
constexpr std::size_t kMostPairs = 200, kFewestPairs = 48;
constexpr std::size_t kMostVariants = 1200;                  // of pairs, with all limits that are tried
constexpr std::int64_t kMostOfAPool = 16, kMostOfACopy = 8;  // engines of one pool of a pair; for a traffic
constexpr double kStart = 0.5;                               // of the estimated capacity: where the bisection starts

std::vector<std::int64_t> powers_up_to(std::int64_t most) {
  std::vector<std::int64_t> list;
  for (std::int64_t n = 1; n <= most; n *= 2) { list.push_back(n); }
  return list;
}

EngineUses uses_of_search(const ServePlanRequest& request) {
  const auto varies = [](const std::vector<std::int64_t>& degrees) {
    return degrees.empty() || *std::max_element(degrees.begin(), degrees.end()) > 1;
  };
  const bool pools = request.pools != Pools::aggregated && request.base.scenario.branches == 1;
  EngineUses uses = uses_of(request.base.scenario);
  uses.single = request.pools != Pools::disaggregated;
  uses.pools = pools;
  uses.attention_dp = varies(request.attention_dp);
  uses.ep = varies(request.ep);
  return uses;
}

}  // namespace

// What is wrong with the load or with the settings that all deployments share.
Result<void> Search::check_base(serving::Scenario scenario) const {
  scenario.devices.reset();
  if (!request_.for_traffic && !scenario.rate) { scenario.rate = 1.0; }  // the search varies it
  scenario.prefill_replicas = request_.pools != Pools::aggregated && scenario.branches == 1 ? 1 : 0;
  auto wrong = serving::problems(scenario);
  if (!wrong.empty()) { return tl::make_unexpected(Failure{std::move(wrong)}); }
  const auto most = std::max_element(request_.ep.begin(), request_.ep.end());
  return check_expert_degree(model(), most == request_.ep.end() ? 1 : *most, "--ep");
}

// Mean lengths, and the strictest limit on TPOT.
Result<void> Search::read_load() {
  serving::Scenario scenario = request_.base.scenario;
  scenario.concurrency.reset();
  if (scenario.trace.empty() && !scenario.rate) { scenario.rate = 1.0; }
  if (auto ok = check_base(scenario); !ok) { return ok; }
  ORRERY_TRY(load, serving::workload_of(scenario));
  if (!scenario.trace.empty()) { requests_of_trace_ = load.arriving(); }
  if (request_.for_traffic) { traffic_ = scenario.rate.value_or(mean_rate(load)); }
  double input = 0, output = 0;
  for (const auto& one : load.requests) {
    input += static_cast<double>(one.input);
    output += static_cast<double>(one.output);
  }
  input_ = input / static_cast<double>(load.requests.size());
  output_ = output / static_cast<double>(load.requests.size());
  for (const serving::Stage& stage : scenario.stages) {
    if (stage.kind != serving::StageKind::kv_retrieval) { continue; }
    const auto found = serving::tokens_of_hits(stage.prefix_tokens, load);
    const double mean = std::accumulate(found.begin(), found.end(), 0.0) / static_cast<double>(found.size());
    retrieved_ = std::max(retrieved_, stage.hit_rate.value_or(0.0) * mean);
  }
  std::vector<results::ServiceLevel> slo;
  if (!scenario.slo.empty()) {
    ORRERY_TRY(levels, serving::read_slo(scenario.slo));
    slo = std::move(levels);
  }
  if (auto ok = check_service_level(slo, load); !ok) { return ok; }
  for (const auto& level : slo) {
    if (level.metric == "tpot") { tpot_limit_ = std::min(tpot_limit_.value_or(level.limit_s), level.limit_s); }
  }
  return {};
}

Result<void> Search::find_shapes() {
  const auto& s = request_.base.scenario;
  ORRERY_TRY(cluster, inputs_.cluster(s.cluster, request_.devices));
  const std::int64_t node = launch::devices_per_node(cluster);
  const bool has_nodes = inputs_.cluster(s.cluster, kMostNodes * node).has_value();
  most_ = request_.devices > 0 ? request_.devices : has_nodes ? kMostNodes * node : cluster.devices;
  const std::int64_t devices = most_;
  const auto or_else = [](const std::vector<std::int64_t>& given, const std::vector<std::int64_t>& usual) {
    return given.empty() ? usual : given;
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

// What an engine can do alone, with the number of drafts that is best for it.
void Search::add_shape(const Degrees& degrees) {
  if (degrees.gpus_of_engine() > most_) { return; }
  std::optional<Shape> shape;
  std::vector<std::int64_t> drafts = request_.speculative_tokens;
  if (drafts.empty()) { drafts.push_back(inputs_.engine().speculative_tokens); }
  for (const std::int64_t number : drafts) {
    Unit unit{degrees, {}, inputs_.engine(), 1};
    unit.settings.speculative_tokens = number;
    auto one = shape_of(unit);
    if (!one) { continue; }
    if (!shape) {
      shape = std::move(one);
    } else {
      shape->prefill_rate = std::max(shape->prefill_rate, one->prefill_rate);
      shape->decode_rate = std::max(shape->decode_rate, one->decode_rate);
    }
  }
  if (shape) {
    shapes_.push_back(std::move(*shape));
  } else {
    ++infeasible_;
  }
}

// Prompts that fill its iterations, and the largest batch within the limit on TPOT. None: it cannot run.
std::optional<Shape> Search::shape_of(const Unit& unit) {
  const Degrees& degrees = unit.engine;
  auto prepared = prepare_serving(inputs_, request_of(unit, 1), &unit.settings);
  if (!prepared) {
    const auto& first = prepared.error().diagnostics.front();
    why_infeasible_ = first.place.path.empty() ? first.message : first.place.path + ": " + first.message;
    return std::nullopt;
  }
  serving::BuiltPool& pool = *prepared->deployment->pools.front();
  const auto ranks = static_cast<double>(degrees.attention_dp);
  const auto budget = static_cast<double>(unit.settings.max_batched_tokens);
  const double computed = std::max(1.0, input_ - retrieved_);
  const double length = std::min(computed, budget);
  const double batches = ranks * static_cast<double>(degrees.pp);
  const auto prompts = static_cast<std::size_t>(std::max(1.0, std::floor(budget / length)) * batches);
  const std::vector<serving::Chunk> chunks(prompts,
                                           {std::max<std::int64_t>(1, std::llround(length)), std::llround(retrieved_)});
  const auto count = static_cast<std::int64_t>(prompts);
  const double prefill = serving::seconds_of(pool.price().mixed({chunks, 0, 0, count})) * (computed / length);
  const double context = input_ + output_ / 2;
  const double room = pool.whole_positions() / (input_ + output_);  // in a pool that decodes only
  double decode_rate = 0;
  const auto most = std::min(room, static_cast<double>(unit.settings.max_sequences) * ranks);
  for (std::int64_t batch = 1; static_cast<double>(batch) <= most; batch *= 2) {
    const auto contexts = static_cast<std::int64_t>(static_cast<double>(batch) * context);
    const double step = serving::seconds_of(pool.price().decode(batch, contexts).at);
    if (tpot_limit_ && step > *tpot_limit_) { break; }
    const double sequences = static_cast<double>(batch) / (step * output_);
    decode_rate = std::max(decode_rate, sequences / static_cast<double>(branches()));
  }
  return Shape{degrees, static_cast<double>(prompts) / prefill, decode_rate, pool.price().dispatches(),
               std::move(prepared->deployment)};
}

std::vector<EngineSettings> Search::knobs(bool all) const {
  const EngineSettings& profile = inputs_.engine();
  std::set<std::int64_t> tokens = {profile.max_batched_tokens}, sequences = {profile.max_sequences};
  if (all && profile.chunked_prefill) { tokens.insert({2048, 16384}); }
  if (!request_.max_batched_tokens.empty()) {
    tokens = {request_.max_batched_tokens.begin(), request_.max_batched_tokens.end()};
  }
  if (!request_.max_sequences.empty()) { sequences = {request_.max_sequences.begin(), request_.max_sequences.end()}; }
  std::vector<EngineSettings> list = {profile};
  const auto vary = [&](std::int64_t EngineSettings::* field, const auto& values) {
    std::vector<EngineSettings> varied;
    for (const EngineSettings& one : list) {
      for (const std::int64_t value : values) { varied.emplace_back(one).*field = value; }
    }
    if (!values.empty()) { list = std::move(varied); }
  };
  vary(&EngineSettings::max_batched_tokens, tokens);
  vary(&EngineSettings::max_sequences, sequences);
  vary(&EngineSettings::speculative_tokens, request_.speculative_tokens);
  vary(&EngineSettings::two_batch_decodes, request_.two_batch_decodes);
  vary(&EngineSettings::two_batch_prompts, request_.two_batch_prompts);
  return list;
}

// Without two batches where nothing is divided; settings that then are the same once.
std::vector<EngineSettings> Search::effective(std::vector<EngineSettings> list, const Shape& prompts,
                                              const Shape& decodes) {
  std::vector<EngineSettings> kept;
  for (EngineSettings& one : list) {
    const bool is_static = one.scheduler == serving::Scheduler::static_batch;
    if (is_static || !prompts.dispatches) { one.two_batch_prompts = 0; }
    if (is_static || !decodes.dispatches) { one.two_batch_decodes = 0; }
    const bool is_known = std::any_of(kept.begin(), kept.end(), [&](const EngineSettings& known) {
      return known.max_batched_tokens == one.max_batched_tokens && known.max_sequences == one.max_sequences &&
             known.speculative_tokens == one.speculative_tokens && known.two_batch_prompts == one.two_batch_prompts &&
             known.two_batch_decodes == one.two_batch_decodes;
    });
    if (!is_known) { kept.push_back(std::move(one)); }
  }
  return kept;
}

void Search::add_engines() {
  for (const Shape& shape : shapes_) {
    const double both = shape.prefill_rate * shape.decode_rate / (shape.prefill_rate + shape.decode_rate);
    for (EngineSettings& settings : effective(knobs(true), shape, shape)) {
      units_.push_back({shape.degrees, {}, std::move(settings), kStart * std::max(both, 1e-3)});
    }
  }
}

// Pairs of pools in all ratios, by what rate matching promises: the best ones.
void Search::add_pairs() {
  struct Pair {
    Degrees prefill, decode;
    double rate = 0, promise = 0;
    const Shape *prompts = nullptr, *decodes = nullptr;
  };
  std::vector<Pair> pairs;
  // A fleet for a traffic has as many copies as it takes, of which engines are taken in the end.
  const std::int64_t longest = request_.for_traffic ? kMostOfACopy : kMostOfAPool;
  for (const Shape& prefill : shapes_) {
    for (const Shape& decode : shapes_) {
      if (prefill.degrees.pp != decode.degrees.pp || decode.decode_rate <= 0) { continue; }
      const auto transfer = serving::transfer_of(*prefill.deployment->pools.front(), *decode.deployment->pools.front());
      const double host = prefill.deployment->pools.front()->transfer_host().value() /
                          static_cast<double>(prefill.degrees.attention_dp);
      const double computes = 1.0 / (1.0 / prefill.prefill_rate + host);
      const double sent = input_ * serving::seconds_of(transfer.token);  // time of a request's links
      const double sends = static_cast<double>(transfer.sends) / sent;
      const double receives = static_cast<double>(transfer.receives) / sent;
      for (std::int64_t x = 1; x <= longest; ++x) {
        for (std::int64_t y = 1; y <= longest; ++y) {
          Pair pair{prefill.degrees, decode.degrees, 0, 0, &prefill, &decode};
          pair.prefill.replicas = x;
          pair.decode.replicas = y;
          const std::int64_t gpus = pair.prefill.gpus() + pair.decode.gpus();
          if (std::gcd(x, y) != 1 || gpus > most_) { continue; }
          pair.rate = std::min(static_cast<double>(x) * std::min(computes, sends),
                               static_cast<double>(y) * std::min(decode.decode_rate, receives));
          const std::int64_t copies = most_ / gpus;
          pair.promise =
              request_.for_traffic ? pair.rate / static_cast<double>(gpus) : pair.rate * static_cast<double>(copies);
          pairs.push_back(pair);
        }
      }
    }
  }
  std::stable_sort(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) { return a.promise > b.promise; });
  const std::vector<EngineSettings> limits = knobs(false);
  const std::size_t wanted = request_.for_traffic ? kFewestPairs : kMostPairs;
  const std::size_t most = std::clamp(kMostVariants / limits.size(), kFewestPairs, wanted);
  if (pairs.size() > most) {
    matched_out_ += static_cast<std::int64_t>(pairs.size() - most);
    pairs.resize(most);
  }
  for (const Pair& pair : pairs) {
    for (EngineSettings& settings : effective(limits, *pair.prompts, *pair.decodes)) {
      units_.push_back({pair.decode, pair.prefill, std::move(settings), kStart * std::max(pair.rate, 1e-3)});
    }
  }
}

// Two batches to try, and no engine whose tokens travel.
Result<void> Search::check_overlaps() const {
  for (const auto& [values, flag] : {std::pair{&request_.two_batch_decodes, "--two-batch-decodes"},
                                     std::pair{&request_.two_batch_prompts, "--two-batch-prompts"}}) {
    const bool is_tried = !values->empty() && values->back() > 0;
    const bool travels =
        std::any_of(shapes_.begin(), shapes_.end(), [](const Shape& shape) { return shape.dispatches; });
    if (is_tried && !shapes_.empty() && !travels) {
      return fail({{}, 0, 0, flag},
                  "two batches need a model with experts, and --ep and --attention-dp above 1: none of these engines "
                  "is divided");
    }
  }
  return {};
}

Result<ServingPlan> Search::run() {
  if (auto read = read_load(); !read) { return tl::make_unexpected(read.error()); }
  if (auto found = find_shapes(); !found) { return tl::make_unexpected(found.error()); }
  if (auto ok = check_overlaps(); !ok) { return tl::make_unexpected(ok.error()); }
  if (request_.pools != Pools::disaggregated) { add_engines(); }
  if (request_.pools != Pools::aggregated && branches() == 1) { add_pairs(); }
  ServingPlan plan;
  plan.model = model().name;
  plan.cluster = request_.base.scenario.cluster;
  plan.engine = inputs_.engine().name;
  plan.devices = request_.devices;
  plan.objective = config::enum_name(request_.objective);
  if (request_.for_traffic) { plan.traffic = {traffic_, serving::load_text(request_.base.scenario)}; }
  plan.candidates = static_cast<std::int64_t>(units_.size());
  plan.infeasible = infeasible_;
  plan.matched_out = matched_out_;
  plan.not_searched = {"tp above the accelerators of a node (--tp)", "other engines (--engine)",
                       "formats of weights and cache (--weight-format, --kv-format)",
                       "several kinds of engines in one fleet"};
  if (request_.speculative_tokens.empty()) { plan.not_searched.emplace_back("drafts (--speculative-tokens)"); }
  if (branches() > 1) {
    plan.not_searched.emplace_back("pools for prefill and decode (branches share the prompt on one engine)");
  }
  const serving::Scenario& own = request_.base.scenario;
  if (model().has_experts() && inputs_.stack().name == "sglang") {
    plan.not_searched.emplace_back("all-to-all of experts with DeepEP (--engine sglang-deepep)");
  }
  const bool overlaps = !request_.two_batch_decodes.empty() || !request_.two_batch_prompts.empty();
  if (!overlaps && std::any_of(shapes_.begin(), shapes_.end(), [](const Shape& shape) { return shape.dispatches; })) {
    plan.not_searched.emplace_back("two batches that overlap (--two-batch-decodes, --two-batch-prompts)");
  }
  if (own.tp > 1 || own.pp > 1 || own.ep > 1 || own.attention_dp > 1 || own.replicas || own.disaggregated()) {
    plan.not_searched.emplace_back("the scenario's own degrees and engines alone (--tp, --pp restrict the search)");
  }
  if (units_.empty()) {
    plan.nothing =
        infeasible_ > 0 ? fmt::format("no engine can run: {}", why_infeasible_) : "no deployment fits the devices";
    return plan;
  }
  if (!request_.exhaustive) {
    if (auto found = answer(plan, true)) { return std::move(*found); }
  }
  return std::move(*answer(std::move(plan), false));
}

std::optional<ServingPlan> Search::answer(ServingPlan plan, bool is_bounded) const {
  std::vector<Ranked> ranked = ranked_units(is_bounded ? bounded_units() : tried_units(), plan);
  if (ranked.empty()) { return is_bounded ? std::nullopt : std::optional(std::move(plan)); }
  if (request_.for_traffic) {
    size_for_traffic(std::move(ranked), plan);
    return plan;
  }
  const Fleets found = fleets(std::move(ranked), plan);
  if (is_bounded && !found.are_all_whole) { return std::nullopt; }  // others come up that were given up
  if (plan.best.empty()) {
    plan.nothing = request_.base.scenario.slo.empty() ? "every whole fleet is overloaded"
                                                      : "no whole fleet meets the service level";
  } else {
    plan.explanation = explanation(found.all);
  }
  return plan;
}

}  // namespace orrery::api::serve_search

namespace orrery::api {

Result<results::ServingPlan> plan_serving(const std::string& data_directory, const ServePlanRequest& request) {
  if (request.devices < 1 && !request.for_traffic) {
    return fail({{}, 0, 0, "--devices"}, "is missing: the accelerators to serve with");
  }
  ORRERY_TRY(inputs, ServingInputs::read(data_directory, request.base, serve_search::uses_of_search(request)));
  ORRERY_TRY(cluster, inputs->cluster(request.base.scenario.cluster, request.devices));
  (void)cluster;
  ORRERY_TRY(ranges, serving_ranges(data_directory));
  ORRERY_TRY(plan, serve_search::Search(*inputs, request).run());
  std::erase_if(ranges, [](const auto& range) { return range.metric == "throughput"; });  // of closed loops
  for (results::ServingCandidate& candidate : plan.best) {
    results::Serving& result = candidate.result;
    result.ranges = ranges;
    if (result.growth.is_short || result.growth.is_burst) { result.warnings.emplace_back(serving::kTooFewRequests); }
  }
  return plan;
}

}  // namespace orrery::api
