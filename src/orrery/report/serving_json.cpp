#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "orrery/config/json.hpp"
#include "orrery/report/serving.hpp"
#include "orrery/report/serving_fields.hpp"

namespace orrery::report {

namespace {

using config::JsonValue;
using config::Node;
using results::Distribution;
using results::Serving;

Node of_distribution(const Distribution& d) {
  return config::json_object(
      {{"mean", d.mean}, {"p50", d.p50}, {"p90", d.p90}, {"p95", d.p95}, {"p99", d.p99}, {"max", d.max}});
}

Node of_token_time(const results::TokenTime& t) {
  return config::json_object({{"mean", t.mean_s},
                              {"gemms", t.gemms_s},
                              {"attention", t.attention_s},
                              {"other_kernels", t.others_s},
                              {"collectives", t.collectives_s},
                              {"draft_model", t.drafts_s},
                              {"host", t.host_s},
                              {"prompts", t.prompts_s},
                              {"waits", t.waits_s}});
}

Node of_autoscale(const results::ServingAutoscale& a) {
  return config::json_object({{"least_engines", a.least},
                              {"most_engines", a.most},
                              {"peak_engines", a.peak},
                              {"mean_engines", a.mean_engines},
                              {"starts", a.starts},
                              {"stops", a.stops}});
}

Node of_pools(const Serving& s) {
  Node list = config::sequence_node();
  for (const auto& pool : s.pools) {
    Node json = config::json_object({{"name", pool.name},
                                     {"engine", pool.engine},
                                     {"accelerator", pool.accelerator},
                                     {"plan", pool.plan},
                                     {"replicas", pool.replicas},
                                     {"gpus", pool.gpus},
                                     {"kv_blocks", pool.blocks},
                                     {"block_tokens", pool.block_tokens},
                                     {"window_blocks_per_sequence", pool.window_blocks},
                                     {"requests_that_fit", pool.fitting},
                                     {"longest_request_tokens", pool.longest},
                                     {"kv_peak", pool.kv_peak},
                                     {"kv_mean", pool.kv_mean},
                                     {"utilisation", pool.utilisation},
                                     {"prefill_share", pool.prefill_share},
                                     {"mean_batch", pool.mean_batch},
                                     {"tokenising", pool.tokenising},
                                     {"streaming", pool.streaming},
                                     {"transferring", pool.transferring},
                                     {"iterations", pool.iterations},
                                     {"gpu_hours", pool.gpu_hours},
                                     {"usd", pool.usd}});
    if (pool.autoscale) { config::add(json, "autoscale", of_autoscale(*pool.autoscale)); }
    append(list, std::move(json));
  }
  return list;
}

// Measured / predicted.
Node of_ranges(const Serving& s) {
  Node node = config::sequence_node();
  for (const auto& range : s.ranges) {
    append(node, config::json_object({{"metric", range.metric}, {"p10", range.p10}, {"p90", range.p90}}));
  }
  return node;
}

Node of_slo(const Serving& s) {
  Node list = config::sequence_node();
  for (const auto& level : s.slo) {
    append(list, config::json_object({{"metric", level.metric},
                                      {"measure", level.measure},
                                      {"limit_s", level.limit_s},
                                      {"reached_s", level.reached_s},
                                      {"attained", level.attained},
                                      {"met", level.holds()}}));
  }
  return list;
}

Node of_classes(const Serving& s) {
  Node list = config::sequence_node();
  for (const auto& one : s.classes) {
    Node json = config::json_object({{"priority", one.priority}, {"answered_requests", one.answered}});
    config::add(json, "ttft_s", of_distribution(one.ttft));
    config::add(json, "tpot_s", of_distribution(one.tpot));
    config::add(json, "e2e_s", of_distribution(one.e2e));
    append(list, std::move(json));
  }
  return list;
}

Node of_stages(const Serving& s) {
  Node list = config::sequence_node();
  for (const auto& stage : s.stages) {
    Node json = config::json_object({{"name", stage.name},
                                     {"kind", stage.kind},
                                     {"place", stage.place},
                                     {"servers", stage.servers},
                                     {"requests", stage.passed},
                                     {"utilisation", stage.utilisation},
                                     {"mean_batch", stage.mean_batch},
                                     {"mean_inside", stage.mean_inside},
                                     {"share_of_e2e", stage.share},
                                     {"usd_per_s", stage.usd_per_second},
                                     {"power_W", stage.watts}});
    if (stage.hits) { config::add_fields(json, {{"hits", stage.hits}, {"retrieved_tokens", stage.retrieved_tokens}}); }
    config::add(json, "wait_s", of_distribution(stage.wait));
    config::add(json, "time_s", of_distribution(stage.time));
    append(list, std::move(json));
  }
  return list;
}

Node of_tiers(const Serving& s) {
  Node list = config::sequence_node();
  for (const auto& tier : s.tiers) {
    Node json = config::json_object(
        {{"name", tier.name}, {"loaded_tokens", tier.tokens}, {"links_in_use_s", tier.links_in_use_s}});
    if (tier.peak) { config::add_fields(json, {{"peak_use", *tier.peak}}); }
    if (tier.busy) { config::add_fields(json, {{"busy", *tier.busy}}); }
    append(list, std::move(json));
  }
  return list;
}

Node of_branches(const results::ServingBranches& b) {
  return config::json_object({{"branches", b.count},
                              {"join", b.join},
                              {"generated_tokens", b.generated_tokens},
                              {"cut_branches", b.cut},
                              {"cut_tokens", b.cut_tokens},
                              {"cached_prompt_tokens", b.cached_tokens}});
}

Node of_series(const results::ServingSeries& series) {
  const auto list_of = [](const auto& values) {
    Node list = config::sequence_node();
    for (const auto& value : values) { config::add_item(list, value); }
    return list;
  };
  Node json = config::json_object({{"interval_s", series.interval_s}});
  config::add(json, "arrivals_per_s", list_of(series.arrivals_per_s));
  config::add(json, "waiting", list_of(series.waiting));
  config::add(json, "in_system", list_of(series.in_system));
  config::add(json, "output_tokens_per_s", list_of(series.output_tokens_per_s));
  config::add(json, "ttft_p50_s", list_of(series.ttft_p50_s));
  config::add(json, "ttft_max_s", list_of(series.ttft_max_s));
  if (series.engines.empty()) { return json; }
  Node engines = config::json_object({});
  for (const auto& pool : series.engines) { config::add(engines, pool.pool, list_of(pool.on)); }
  config::add(json, "engines_on", std::move(engines));
  return json;
}

std::string microseconds(double seconds) { return fmt::format("{:.3f}", 1e6 * seconds); }

}  // namespace

void add_serving(Node& json, const Serving& s) {
  config::add_fields(json, {{"model", s.model}, {"cluster", s.cluster}, {"precision", s.precision}});
  const auto add_given = [&](const char* key, const std::string& format) {
    if (!format.empty()) { config::add_fields(json, {{key, format}}); }
  };
  add_given("weight_format", s.weight_format);
  add_given("kv_format", s.kv_format);
  add_given("attention_precision", s.attention_precision);
  add_given("quantized", s.quantized);
  config::add_fields(json, {{"load", s.load},
                            {"gpus", s.gpus},
                            {"requests", s.requests},
                            {"measured_requests", s.measured},
                            {"duration_s", s.duration_s}});
  config::add(json, "ttft_s", of_distribution(s.ttft));
  config::add(json, "tpot_s", of_distribution(s.tpot));
  config::add(json, "e2e_s", of_distribution(s.e2e));
  config::add(json, "queue_s", of_distribution(s.queue));
  config::add(json, "prefill_s", of_distribution(s.prefill));
  if (s.place) { config::add(json, "place_s", of_distribution(*s.place)); }
  if (s.transfer) { config::add(json, "transfer_s", of_distribution(*s.transfer)); }
  if (s.sending) { config::add(json, "sending_s", of_distribution(*s.sending)); }
  if (s.token_time) { config::add(json, "token_time_s", of_token_time(*s.token_time)); }
  config::add_fields(json, {{"request_overhead_s", s.request_overhead_s},
                            {"tokenisation_s", s.tokenisation_s},
                            {"output_tokens_per_s", s.output_tokens_per_s},
                            {"total_tokens_per_s", s.total_tokens_per_s},
                            {"requests_per_s", s.requests_per_s},
                            {"goodput_rps", s.goodput_rps},
                            {"mean_in_system", s.mean_in_system},
                            {"overloaded", s.overloaded},
                            {"kv_peak", s.kv_peak},
                            {"preemptions", s.preemptions},
                            {"recomputed_tokens", s.recomputed_tokens},
                            {"prefix_hit_rate", s.prefix_hit_rate},
                            {"prefix_block_hit_rate", s.prefix_block_hit_rate},
                            {"usd_per_million_output_tokens", s.usd_per_million_tokens},
                            {"price_basis", s.price_basis},
                            {"power_basis", s.power_basis},
                            {"energy_J_per_output_token", s.joules_per_token}});
  config::add(json, "ranges", of_ranges(s));
  if (s.refused) { config::add_fields(json, {{"refused_requests", *s.refused}}); }
  config::add(json, "slo", of_slo(s));
  config::add(json, "pools", of_pools(s));
  if (!s.tiers.empty()) {
    config::add(json, "cache_tiers", of_tiers(s));
    config::add(json, "cache_loads", config::json_object({{"requests", s.loads}, {"wait_s", s.load_wait_s}}));
  }
  if (!s.classes.empty()) { config::add(json, "priorities", of_classes(s)); }
  if (s.branches) { config::add(json, "branches", of_branches(*s.branches)); }
  if (!s.stages.empty()) { config::add(json, "stages", of_stages(s)); }
  if (s.series) { config::add(json, "series", of_series(*s.series)); }
  config::add_fields(json, {{"not_modelled", s.not_modelled}, {"warnings", s.warnings}});
}

std::string serving_json(const Serving& s) {
  Node json = config::json_object({{"schema", "orrery.serve/1"}});
  add_serving(json, s);
  config::add_fields(json, {{"wall_s", s.wall_s}});
  return config::json_document(json);
}

std::string serving_curve_json(const results::ServingCurve& curve) {
  Node json = config::json_object({{"schema", "orrery.serve/1"}});
  const std::size_t shown = curve.best.value_or(curve.points.size() - 1);
  add_serving(json, curve.points[shown].result);
  config::add_fields(json, {{"axis", curve.axis},
                            {"best_load", curve.best ? JsonValue(curve.points[*curve.best].load) : JsonValue(nullptr)},
                            {"wall_s", curve.wall_s}});
  Node points = config::sequence_node();
  for (const auto& [load, s] : curve.points) {
    const auto* full = curve.axis == "rate" ? s.full_stage() : nullptr;
    Node point = config::json_object({{"load", load},
                                      {"meets_slo", s.slo.empty() ? JsonValue(nullptr) : JsonValue(s.meets_slo())},
                                      {"full_stage", full ? JsonValue(full->name) : JsonValue(nullptr)},
                                      {"overloaded", s.overloaded},
                                      {"sustained", s.is_sustained(curve.axis == "rate")},
                                      {"output_tokens_per_s", s.output_tokens_per_s},
                                      {"requests_per_s", s.requests_per_s},
                                      {"goodput_rps", s.goodput_rps},
                                      {"kv_peak", s.kv_peak},
                                      {"preemptions", s.preemptions}});
    config::add(point, "ttft_s", of_distribution(s.ttft));
    config::add(point, "tpot_s", of_distribution(s.tpot));
    config::add(point, "e2e_s", of_distribution(s.e2e));
    append(points, std::move(point));
  }
  config::add(json, "points", std::move(points));
  return config::json_document(json);
}

std::string serving_requests_csv(const Serving& s) {
  std::string text =
      "request,engine,arrival_s,scheduled_s,first_token_s,last_token_s,input_tokens,output_tokens,cached_tokens,"
      "preemptions,answered_s,last_branch_first_token_s,last_branch_tokens,priority,session\n";
  for (std::size_t i = 0; i < s.each.size(); ++i) {
    const auto& r = s.each[i];
    const std::string session = r.session ? std::to_string(*r.session) : "";
    if (r.refused) {
      text +=
          fmt::format("{},,{:.9f},,,,{},{},,,,,,{},{}\n", i + 1, r.arrival_s, r.input, r.output, r.priority, session);
      continue;
    }
    text += fmt::format("{},{},{:.9f},{:.9f},{:.9f},{:.9f},{},{},{},{},{:.9f},{:.9f},{},{},{}\n", i + 1, r.engine,
                        r.arrival_s, r.scheduled_s, r.first_token_s, r.last_token_s, r.input, r.output, r.cached,
                        r.preemptions, r.answered_s, r.last_branch_first_token_s, r.last_branch_output, r.priority,
                        session);
  }
  return text;
}

namespace {

// Spans of Chrome's trace format: a process is an engine, a thread a request.
class Spans {
 public:
  void add(const std::string& name, std::int64_t engine, std::size_t request, double from, double to) {
    text_ += fmt::format(R"({}{{"name":{},"ph":"X","pid":{},"tid":{},"ts":{},"dur":{}}})", comma_, quoted(name), engine,
                         request + 1, microseconds(from), microseconds(to - from));
    comma_ = ",\n";
    if (seen_.emplace(engine, request).second) {
      title(engine, request, "thread_name", fmt::format("request {}", request + 1));
    }
  }
  // Engines have numbers over all pools.
  void name_engines(const std::vector<results::ServingPool>& pools) {
    std::int64_t engine = 0;
    for (const auto& pool : pools) {
      for (std::int64_t i = 1; i <= pool.replicas; ++i) {
        title(engine++, std::nullopt, "process_name",
              fmt::format("{} {} ({}, {}, {})", pool.name, i, pool.engine, pool.plan, pool.accelerator));
      }
    }
  }
  // The stages of a place, one after the other. When the last one ends.
  double add_stages(const Serving& s, std::string_view place, std::int64_t engine, std::size_t request, double from) {
    const auto& r = s.each[request];
    for (std::size_t k = 0; k < r.stage_s.size(); ++k) {
      if (s.stages[k].place != place || r.stage_s[k] < 0) { continue; }
      add(s.stages[k].name, engine, request, from, from + r.stage_s[k]);
      from += r.stage_s[k];
    }
    return from;
  }
  [[nodiscard]] std::string document() const { return R"({"displayTimeUnit":"ms","traceEvents":[)" + text_ + "\n]}\n"; }

 private:
  static std::string quoted(const std::string& name) {
    std::string text = config::print_json(config::text_node(name));
    text.erase(text.find_last_not_of('\n') + 1);
    return text;
  }
  void title(std::int64_t engine, std::optional<std::size_t> request, std::string_view kind, const std::string& name) {
    text_ += fmt::format(R"({}{{"name":"{}","ph":"M","pid":{},{}"args":{{"name":{}}}}})", comma_, kind, engine,
                         request ? fmt::format("\"tid\":{},", *request + 1) : "", quoted(name));
    comma_ = ",\n";
  }

  std::set<std::pair<std::int64_t, std::size_t>> seen_;  // engine, request
  std::string text_;
  const char* comma_ = "\n";
};

}  // namespace

std::string serving_timeline(const Serving& s) {
  constexpr double kLeast = 1e-9;  // of rounding
  Spans spans;
  spans.name_engines(s.pools);
  for (std::size_t i = 0; i < s.each.size(); ++i) {
    const auto& r = s.each[i];
    if (r.refused) { continue; }
    const std::int64_t first = r.prefilled_by.value_or(r.engine);
    const double sent = spans.add_stages(s, "before-prefill", first, i, r.arrival_s);
    if (r.ready_s - sent > kLeast) { spans.add("tokenisation", first, i, sent, r.ready_s); }
    if (r.placed_s > r.asked_s) { spans.add("place", r.engine, i, r.asked_s, r.placed_s); }
    const double queued = r.placed_s <= r.scheduled_s ? std::max(r.ready_s, r.placed_s) : r.ready_s;
    if (r.scheduled_s > queued) { spans.add("queue", first, i, queued, r.scheduled_s); }
    spans.add("prefill", first, i, r.scheduled_s, r.prefilled_by ? r.prefilled_s : r.first_token_s);
    if (r.prefilled_by) { spans.add("transfer", r.engine, i, std::max(r.prefilled_s, r.placed_s), r.first_token_s); }
    if (r.output > 1) { spans.add("decode", r.engine, i, r.first_token_s, r.last_token_s); }
    spans.add_stages(s, "after-answer", r.engine, i, r.last_token_s);
    spans.add_stages(s, "between-turns", r.engine, i, r.answered_s);
  }
  return spans.document();
}

}  // namespace orrery::report
