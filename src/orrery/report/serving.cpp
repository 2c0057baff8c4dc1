#include "orrery/report/serving.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "orrery/config/units_text.hpp"
#include "orrery/core/text.hpp"
#include "orrery/report/style.hpp"
#include "orrery/report/table.hpp"

namespace orrery::report {

namespace {

using results::Distribution;
using results::Serving;

std::string time(double seconds) { return config::format_seconds(Seconds(seconds)); }

void add_times(Table& table, const std::string& name, const Distribution& d) {
  table.row({name, time(d.mean), time(d.p50), time(d.p90), time(d.p99), time(d.max)});
}

std::string per_gpu(double rate, std::int64_t gpus) {
  return fmt::format("{:.4g} tokens/s ({:.4g} per GPU)", rate, rate / static_cast<double>(gpus));
}

// Indented rows are parts of TTFT, in the order of a request; their means add up to its mean.
std::string latency_table(const Serving& s) {
  Table table;
  table.column("", Table::Align::left).column("mean").column("p50").column("p90").column("p99").column("max");
  add_times(table, "TTFT", s.ttft);
  for (const auto& part : s.ttft_parts()) {
    const std::string name = fmt::format("  {}", part.name);
    if (part.times != nullptr) {
      add_times(table, name, *part.times);
    } else if (part.s > 0) {
      table.row({name, time(part.s), "", "", "", ""});
    }
  }
  add_times(table, "TPOT", s.tpot);
  add_times(table, "E2E", s.e2e);
  return table.text();
}

// Requests by priority, the first to be served first.
std::string class_table(const Serving& s) {
  if (s.classes.empty()) { return {}; }
  constexpr std::size_t kMost = 10;
  Table table;
  table.column("priority").column("requests").column("TTFT mean").column("p50").column("p99");
  table.column("TPOT p50").column("p99").column("E2E p50").column("p99");
  for (std::size_t i = 0; i < std::min(kMost, s.classes.size()); ++i) {
    const auto& one = s.classes[i];
    table.row({std::to_string(one.priority), grouped(one.answered), time(one.ttft.mean), time(one.ttft.p50),
               time(one.ttft.p99), time(one.tpot.p50), time(one.tpot.p99), time(one.e2e.p50), time(one.e2e.p99)});
  }
  const std::size_t more = s.classes.size() - std::min(kMost, s.classes.size());
  return "\n" + table.text() + (more > 0 ? fmt::format("and {} more (--json)\n", more) : "");
}

// Parts of the time between tokens, in percent: those that are not nothing.
std::string token_time_lines(const Serving& s) {
  if (!s.token_time) { return {}; }
  std::vector<std::string> parts;
  for (const auto& part : s.token_time->parts()) {
    constexpr double kLeast = 0.0005;  // 0.1 %, rounded
    const double share = part.s / s.token_time->mean_s;
    if (std::abs(share) >= kLeast) { parts.push_back(fmt::format("{} {}", part.name, percent(share))); }
  }
  return wrapped_list("TPOT parts  ", parts);
}

std::string pool_table(const Serving& s) {
  Table table;
  table.column("pool", Table::Align::left).column("engines", Table::Align::left).column("busy").column("of it prefill");
  table.column("mean batch").column("KV peak").column("KV mean").column("KV tokens").column("requests fit");
  for (const auto& pool : s.pools) {
    table.row({pool.name, fmt::format("{} x {} ({}, {})", pool.replicas, pool.engine, pool.plan, pool.accelerator),
               percent(pool.utilisation), percent(pool.prefill_share), fmt::format("{:.1f}", pool.mean_batch),
               percent(pool.kv_peak), percent(pool.kv_mean), grouped(pool.blocks * pool.block_tokens),
               grouped(static_cast<std::int64_t>(pool.fitting))});
  }
  std::string text = table.text();
  for (const auto& pool : s.pools) {
    if (pool.window_blocks == 0) { continue; }
    text += wrapped(
        "", fmt::format("KV tokens of the {} counts layers without sliding windows; layers with windows take the "
                        "memory of up to {} tokens more for each sequence",
                        pool.name, grouped(pool.window_blocks * pool.block_tokens)));
  }
  return text;
}

void add_stages(Table& table, const Serving& s, std::string_view place) {
  for (const auto& stage : s.stages) {
    if (stage.place != place) { continue; }
    const bool queues = stage.servers > 0;
    table.row({stage.name, queues ? std::to_string(stage.servers) : "-", queues ? percent(stage.utilisation) : "-",
               fmt::format("{:.1f}", stage.mean_batch), fmt::format("{:.1f}", stage.mean_inside), time(stage.wait.mean),
               time(stage.time.mean), time(stage.time.p99), stage.share ? percent(*stage.share) : "-"});
  }
}

// Where the time of a request goes, in its order: stages and the parts of the engines. Last, the time between turns.
std::string stage_table(const Serving& s) {
  if (s.stages.empty()) { return {}; }
  Table table;
  table.column("stage", Table::Align::left).column("servers").column("busy").column("mean batch").column("inside");
  table.column("wait").column("mean").column("p99").column("part of E2E");
  const auto add = [&](const char* name, double mean, double p99) {
    table.row({name, "", "", "", "", "", time(mean), p99 > 0 ? time(p99) : "", percent(mean / s.e2e.mean)});
  };
  double after = 0;
  for (const auto& stage : s.stages) { after += stage.place == "after-answer" ? stage.time.mean : 0.0; }
  if (s.request_overhead_s > 0) { add("request overhead", s.request_overhead_s, 0.0); }
  add_stages(table, s, "before-prefill");
  if (s.tokenisation_s > 0) { add("tokenisation", s.tokenisation_s, 0.0); }
  if (s.place) { add("place on a decode engine", s.place->mean, s.place->p99); }
  add("queue of the engine", s.queue.mean, s.queue.p99);
  add("prefill", s.prefill.mean, s.prefill.p99);
  if (s.transfer) { add("transfer", s.transfer->mean, s.transfer->p99); }
  if (s.sending) { add("for the server", s.sending->mean, s.sending->p99); }
  add("decode", s.e2e.mean - s.ttft.mean - after, 0.0);
  add_stages(table, s, "after-answer");
  add_stages(table, s, "between-turns");
  std::string text = "\n" + table.text();
  for (const auto& stage : s.stages) {
    if (!stage.hits) { continue; }
    text += fmt::format("{}: prefix found for {}, {} tokens retrieved\n", stage.name, counted(*stage.hits, "request"),
                        grouped(*stage.retrieved_tokens));
  }
  return text;
}

std::string branches_lines(const Serving& s) {
  if (!s.branches) { return {}; }
  const results::ServingBranches& b = *s.branches;
  const auto generated = static_cast<double>(b.generated_tokens);
  const std::string waits = b.join < b.count ? fmt::format("the first {}", b.join) : "all";
  std::string text = fmt::format(
      "Branches    {} of each request, an answer waits for {}; {} tokens generated, {} tokens of prompts shared\n",
      b.count, waits, grouped(b.generated_tokens), grouped(b.cached_tokens));
  if (b.join < b.count) {
    text += fmt::format("            {} branches cut, with {} tokens ({})\n", grouped(b.cut), grouped(b.cut_tokens),
                        percent(static_cast<double>(b.cut_tokens) / generated));
  }
  return text;
}

std::string hits_text(const Serving& s) {
  const std::string tokens = percent(s.prefix_hit_rate);
  return s.prefix_block_hit_rate
             ? fmt::format("{} of tokens and {} of blocks", tokens, percent(*s.prefix_block_hit_rate))
             : tokens;
}

// Medians, and throughput, times the interval of measured / predicted.
std::string range_line(const Serving& s) {
  if (s.ranges.empty()) { return {}; }
  std::vector<std::string> parts;
  for (const auto& range : s.ranges) {
    if (range.metric == "throughput") {
      parts.push_back(fmt::format("output {:.4g} to {:.4g} tokens/s", range.p10 * s.output_tokens_per_s,
                                  range.p90 * s.output_tokens_per_s));
    } else {
      const bool is_first = range.metric == "ttft";
      const double median = is_first ? s.ttft.p50 : s.tpot.p50;
      parts.push_back(fmt::format("{} p50 {} to {}", is_first ? "TTFT" : "TPOT", time(range.p10 * median),
                                  time(range.p90 * median)));
    }
  }
  return fmt::format("Range       {} (80 % interval)\n", join(parts, ", "));
}

std::string slo_lines(const Serving& s) {
  std::string text;
  const results::ServiceLevel* binding = nullptr;
  bool refused = false;  // a limit is missed by refusals alone
  for (const auto& level : s.slo) {
    const bool is_tighter =
        binding == nullptr || level.reached_s / level.limit_s > binding->reached_s / binding->limit_s;
    if (is_tighter) { binding = &level; }
    const bool by_refusals = level.missed_by_refusals && level.reached_s <= level.limit_s;
    refused = refused || by_refusals;
    text += fmt::format("SLO         {}_{} {} (limit {}): {}; {} of requests within\n", level.metric, level.measure,
                        time(level.reached_s), time(level.limit_s),
                        level.holds() ? "met"
                        : by_refusals ? "missed by refusals"
                                      : "missed",
                        percent(level.attained));
  }
  if (refused) {
    text += "            times are those of admitted requests; refused ones are within no limit\n";
  } else if (s.slo.size() > 1) {
    text += fmt::format("            {}_{} is the binding limit\n", binding->metric, binding->measure);
  }
  return text;
}

// What a GPU-hour costs, of all pools; empty: not known.
std::string hourly_price(const Serving& s) {
  double usd = 0, hours = 0;
  for (const auto& pool : s.pools) {
    if (!pool.usd) { return {}; }
    usd += *pool.usd;
    hours += pool.gpu_hours;
  }
  if (!(hours > 0)) { return {}; }
  return fmt::format(" ({} per GPU-hour{}{})", dollars(usd / hours), s.price_basis.empty() ? "" : ": ", s.price_basis);
}

std::string tier_lines(const Serving& s) {
  std::string text;
  for (const auto& tier : s.tiers) {
    const std::string peak = tier.peak ? fmt::format(", {} full at most", percent(*tier.peak)) : "";
    const std::string busy = tier.busy ? fmt::format(", the store's {} of the time", percent(*tier.busy)) : "";
    text += fmt::format("            {} cache: {} tokens loaded, links in use for {}{}{}\n", tier.name,
                        grouped(tier.tokens), time(tier.links_in_use_s), busy, peak);
  }
  if (s.loads > 0) {
    text += fmt::format("            {} waited for loads, {} on average\n", counted(s.loads, "request"),
                        time(s.load_wait_s / static_cast<double>(s.loads)));
  }
  return text;
}

// Engines of the pools that scale; GPU-hours and price of all pools.
std::string autoscale_lines(const Serving& s) {
  std::string text;
  std::vector<std::string> expenses;
  for (const auto& pool : s.pools) {
    const std::string name = s.pools.size() > 1 ? pool.name + " " : "";
    const std::string usd = pool.usd ? fmt::format(" ({})", dollars(*pool.usd)) : "";
    expenses.push_back(fmt::format("{}{:.4g} GPU-hours{}", name, pool.gpu_hours, usd));
    if (!pool.autoscale) { continue; }
    const results::ServingAutoscale& a = *pool.autoscale;
    text += fmt::format("{:<12}{}{} to {} engines, {:.2f} on average, {} at most; {} starts, {} stops\n",
                        text.empty() ? "Autoscaling" : "", name, a.least, a.most, a.mean_engines, a.peak, a.starts,
                        a.stops);
  }
  return text.empty() ? text : text + fmt::format("            {}\n", join(expenses, ", "));
}

// Accelerators from the first arrival to the last answer; with autoscaling its lines have it.
std::string whole_run(const Serving& s) {
  double hours = 0, usd = 0;
  bool is_priced = true;
  for (const auto& pool : s.pools) {
    if (pool.autoscale) { return {}; }
    hours += pool.gpu_hours;
    usd += pool.usd.value_or(0.0);
    is_priced = is_priced && pool.usd;
  }
  return fmt::format("Whole run   {:.4g} GPU-hours{}\n", hours, is_priced ? ", " + dollars(usd) : std::string());
}

}  // namespace

std::string serving_title(const Serving& s) {
  return fmt::format("{} on {} of {}, {}{}", s.model, counted(s.gpus, "GPU"), s.cluster, s.precision,
                     formats_text(s.weight_format, s.kv_format, s.attention_precision, s.quantized));
}

std::string serving_text(const Serving& s, TextStyle style) {
  std::string text = bold(serving_title(s), style) + "\n";
  text += fmt::format("Load        {}; {}, {} measured, in {}\n", s.load, counted(s.requests, "request"),
                      grouped(s.measured), time(s.duration_s));
  for (const auto& warning : s.warnings) { text += wrapped("warning: ", warning); }
  text += "\n" + latency_table(s) + class_table(s) + "\n" + token_time_lines(s);
  text += fmt::format("Output      {}\n", per_gpu(s.output_tokens_per_s, s.gpus));
  text += fmt::format("Total       {}\n", per_gpu(s.total_tokens_per_s, s.gpus));
  text +=
      fmt::format("Requests    {:.4g} per second; {:.1f} in the system on average", s.requests_per_s, s.mean_in_system);
  text += s.slo.empty() ? "\n" : fmt::format("; {:.4g} per second within the SLO\n", s.goodput_rps);
  text += range_line(s);
  text += slo_lines(s);
  if (s.refused) {
    text += fmt::format("Admission   {} refused ({}); they count as outside the SLO\n", counted(*s.refused, "request"),
                        percent(static_cast<double>(*s.refused) / static_cast<double>(s.requests)));
  }
  text += fmt::format("Cache       peak {}, prefix hits {}, {} preemptions, {} tokens computed again\n",
                      percent(s.kv_peak), hits_text(s), grouped(s.preemptions), grouped(s.recomputed_tokens));
  text += tier_lines(s);
  text += branches_lines(s);
  text += autoscale_lines(s);
  if (s.usd_per_million_tokens) {
    text += fmt::format("Price       {} per million output tokens{}\n", dollars(*s.usd_per_million_tokens),
                        hourly_price(s));
  }
  if (s.joules_per_token) {
    text += fmt::format("Energy      {} per output token ({})\n", joules(*s.joules_per_token), s.power_basis);
  }
  text += whole_run(s) + stage_table(s) + "\n" + pool_table(s) + "\n";
  text += wrapped_list("Not modelled: ", s.not_modelled);
  return text;
}

namespace {

// Of the first point with warnings, and of later ones with more of them.
std::string curve_warnings(const results::ServingCurve& curve, const char* unit) {
  std::string text;
  std::size_t shown = 0;
  for (const auto& [load, s] : curve.points) {
    if (s.warnings.size() <= shown) { continue; }
    shown = s.warnings.size();
    for (const auto& warning : s.warnings) {
      text += wrapped("warning: ", fmt::format("from {:.4g} {}: {}", load, unit, warning));
    }
  }
  return text;
}

}  // namespace

std::string serving_curve_text(const results::ServingCurve& curve, TextStyle style) {
  if (curve.points.empty()) { return {}; }
  const Serving& first = curve.points.front().result;
  std::string text = bold(serving_title(first), style) + "\n\n";
  const bool is_rate = curve.axis == "rate";
  const char* const unit = !is_rate ? "clients" : first.sessions ? "sessions/s" : "requests/s";
  Table table;
  table.column(unit).column("TTFT p50").column("TTFT p99").column("TPOT p50");
  table.column("TPOT p99")
      .column("tokens/s/GPU")
      .column("tokens/s/user")
      .column("KV peak")
      .column(first.slo.empty() && is_rate ? "sustained" : "SLO", Table::Align::left);
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    const auto& [load, s] = curve.points[i];
    const double user = s.tpot.mean > 0 ? 1.0 / s.tpot.mean : 0.0;
    const auto* full = is_rate ? s.full_stage() : nullptr;
    std::string slo = s.slo.empty() && !is_rate ? ""
                      : !s.meets_slo()          ? "missed"
                      : full                    ? full->name + " is full"
                      : s.overloaded            ? "overloaded"
                      : s.is_sustained(true)    ? (s.slo.empty() ? "yes" : "met")
                      : s.refused.value_or(0)   ? "refuses"
                                                : "too short";
    if (curve.best == i) { slo += " <- highest"; }
    table.row({fmt::format("{:.4g}", load), time(s.ttft.p50), time(s.ttft.p99), time(s.tpot.p50), time(s.tpot.p99),
               fmt::format("{:.4g}", s.output_tokens_per_s / static_cast<double>(s.gpus)), fmt::format("{:.4g}", user),
               percent(s.kv_peak), slo});
  }
  text += table.text();
  text += curve_warnings(curve, unit);
  if (curve.best) {
    const auto& best = curve.points[*curve.best];
    // A rate is carried: the drain of a run is no part of it. Clients and sessions send as many requests as are served.
    const double requests = is_rate && !first.sessions ? best.load : best.result.requests_per_s;
    text += fmt::format("\n{}: {:.4g} {}, {:.4g} requests/s per GPU\n",
                        first.slo.empty() ? "Highest sustained load" : "Highest load within the SLO", best.load, unit,
                        requests / static_cast<double>(best.result.gpus));
  } else if (!first.slo.empty()) {
    text += "\nNo load of the table is within the SLO\n";
  }
  return text;
}

}  // namespace orrery::report
