#include "orrery/report/serving_plan.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "orrery/config/json.hpp"
#include "orrery/config/units_text.hpp"
#include "orrery/report/serving_fields.hpp"
#include "orrery/report/style.hpp"
#include "orrery/report/table.hpp"

namespace orrery::report {

namespace {

using config::Node;
using results::ServingCandidate;
using results::ServingDegrees;
using results::ServingPlan;

std::string shown_time(double seconds) { return config::format_seconds(Seconds(seconds)); }

// Of a load in sessions, rates are those of sessions.
bool counts_sessions(const ServingPlan& plan) { return !plan.best.empty() && plan.best.front().result.sessions; }

// What the service level limits of a metric, or p99: as a title, and its value for a deployment.
std::string measure_of(const ServingPlan& plan, std::string_view metric) {
  for (const auto& level : plan.best.front().result.slo) {
    if (level.metric == metric) { return level.measure; }
  }
  return "p99";
}

bool has_slo(const ServingPlan& plan) { return !plan.best.empty() && !plan.best.front().result.slo.empty(); }

// Columns of TTFT and TPOT.
struct Measures {
  std::string ttft, tpot;

  explicit Measures(const ServingPlan& plan) : ttft(measure_of(plan, "ttft")), tpot(measure_of(plan, "tpot")) {}
  void name(Table& table) const { table.column("TTFT " + ttft).column("TPOT " + tpot); }
};

std::string best_table(const ServingPlan& plan) {
  const Measures measures(plan);
  Table table;
  table.column("#")
      .column(counts_sessions(plan) ? "sessions/s" : "req/s")
      .column("per GPU")
      .column("GPUs")
      .column("USD/M tokens")
      .column("J/token");
  measures.name(table);
  table.column("tokens").column("deployment", Table::Align::left);
  for (std::size_t i = 0; i < plan.best.size(); ++i) {
    const ServingCandidate& c = plan.best[i];
    const auto& s = c.result;
    table.row({std::to_string(i + 1), fmt::format("{:.4g}", c.load),
               fmt::format("{:.3g}", c.load / static_cast<double>(plan.devices)), std::to_string(c.gpus),
               s.usd_per_million_tokens ? fmt::format("{:.3g}", *s.usd_per_million_tokens) : "-",
               s.joules_per_token ? fmt::format("{:.3g}", *s.joules_per_token) : "-",
               shown_time(s.ttft.at(measures.ttft)), shown_time(s.tpot.at(measures.tpot)),
               std::to_string(c.max_batched_tokens), c.text + c.settings});
  }
  return table.text();
}

std::string optional_number(const std::optional<double>& value) { return value ? fmt::format("{:.3g}", *value) : "-"; }

// The smallest fleets for a traffic.
std::string traffic_table(const ServingPlan& plan) {
  const Measures measures(plan);
  Table table;
  table.column("#").column("GPUs").column("USD/hour").column("kW").column("USD/M tokens");
  measures.name(table);
  table.column("tokens").column("deployment", Table::Align::left);
  for (std::size_t i = 0; i < plan.best.size(); ++i) {
    const ServingCandidate& c = plan.best[i];
    const auto& s = c.result;
    const auto kilowatts = c.watts ? std::optional(1e-3 * *c.watts) : std::nullopt;
    table.row({std::to_string(i + 1), std::to_string(c.gpus), optional_number(c.usd_per_hour),
               optional_number(kilowatts), optional_number(s.usd_per_million_tokens),
               shown_time(s.ttft.at(measures.ttft)), shown_time(s.tpot.at(measures.tpot)),
               std::to_string(c.max_batched_tokens), c.text + c.settings});
  }
  return table.text();
}

// What prices are, of the best deployment; empty: not known.
std::string price_note(const ServingPlan& plan) {
  const std::string& basis = plan.best.front().result.price_basis;
  const std::string& power = plan.best.front().result.power_basis;
  return (basis.empty() ? std::string() : "; USD: " + basis) + (power.empty() ? std::string() : "; J: " + power);
}

std::string header_text(const ServingPlan& plan, TextStyle style) {
  if (!plan.traffic) {
    const auto text =
        fmt::format("{} on {} of {}, {}", plan.model, counted(plan.devices, "GPU"), plan.cluster, plan.engine);
    const char* const title = has_slo(plan) ? "Most goodput per {} within the service level\n\n"
                                            : "Most requests per {}, without a service level (--slo)\n\n";
    const char* const load = has_slo(plan) ? "highest load within the service level" : "highest sustained load";
    return bold(text, style) + "\n" + fmt::format(fmt::runtime(title), plan.objective) + best_table(plan) +
           wrapped("", fmt::format("{}: the {}, of the whole fleet; per GPU: idle ones count; tokens: most "
                                   "in an iteration (max_batched_tokens){}",
                                   counts_sessions(plan) ? "sessions/s" : "req/s", load, price_note(plan)));
  }
  std::string text = bold(fmt::format("{} on GPUs of {}, {}", plan.model, plan.cluster, plan.engine), style) + "\n";
  text += fmt::format("Load        {}\n", plan.traffic->text);
  const ServingCandidate& best = plan.best.front();
  text += fmt::format("Needed      {}: {}\n\n", counted(best.gpus, "GPU"), best.text + best.settings);
  text += traffic_table(plan);
  return text +
         wrapped("", fmt::format("Fewest {} first; one engine less of any pool {}; tokens: most in an iteration "
                                 "(max_batched_tokens){}",
                                 plan.objective == "gpu"   ? "GPUs"
                                 : plan.objective == "usd" ? "dollars per hour"
                                                           : "watts",
                                 has_slo(plan) ? "misses the service level" : "is overloaded", price_note(plan)));
}

std::string front_table(const ServingPlan& plan) {
  Table table;
  const bool limited = has_slo(plan);
  table.column("tokens/s/user").column("tokens/s/GPU").column(limited ? "SLO" : "sustained");
  table.column("deployment", Table::Align::left);
  for (const auto& trade : plan.front) {
    table.row({fmt::format("{:.4g}", trade.tokens_per_s_per_user), fmt::format("{:.4g}", trade.tokens_per_s_per_gpu),
               limited ? (trade.meets_slo ? "met" : "missed") : (trade.meets_slo ? "yes" : "no"), trade.text});
  }
  return table.text();
}

// Of the deployments in the table, each with the numbers of its rows.
std::string best_warnings(const ServingPlan& plan) {
  std::vector<std::pair<std::string, std::string>> warnings;
  for (std::size_t i = 0; i < plan.best.size(); ++i) {
    for (const auto& warning : plan.best[i].result.warnings) {
      const auto known =
          std::find_if(warnings.begin(), warnings.end(), [&](const auto& one) { return one.first == warning; });
      if (known == warnings.end()) {
        warnings.emplace_back(warning, fmt::format("#{}", i + 1));
      } else {
        known->second += fmt::format(", #{}", i + 1);
      }
    }
  }
  std::string text;
  for (const auto& [warning, rows] : warnings) { text += wrapped("warning: ", rows + ": " + warning); }
  return text;
}

Node of_degrees(const ServingDegrees& d) {
  return config::json_object(
      {{"tp", d.tp}, {"pp", d.pp}, {"ep", d.ep}, {"attention_dp", d.attention_dp}, {"replicas", d.replicas}});
}

// Requests per second: of sessions, those of all their turns.
double requests_of(const ServingCandidate& c) { return c.load * c.result.requests_per_session; }

Node of_candidate(const ServingPlan& plan, const ServingCandidate& c) {
  Node json = config::json_object(
      {{"deployment", c.text + c.settings},
       {"goodput_rps_at_slo", requests_of(c)},
       {"sessions_per_s_at_slo", c.result.sessions ? std::optional(c.load) : std::nullopt},
       {"goodput_rps_per_gpu", requests_of(c) / static_cast<double>(plan.traffic ? c.gpus : plan.devices)},
       {"value", c.value},
       {"gpus_used", c.gpus},
       {"usd_per_hour", c.usd_per_hour},
       {"power_W", c.watts},
       {"max_batched_tokens", c.max_batched_tokens},
       {"max_sequences", c.max_sequences},
       {"speculative_tokens", c.drafts},
       {"two_batch_decodes", c.two_batch_decodes},
       {"two_batch_prompts", c.two_batch_prompts}});
  config::add(json, c.prefill ? "decode" : "engine", of_degrees(c.engine));
  if (c.prefill) { config::add(json, "prefill", of_degrees(*c.prefill)); }
  Node serving = config::mapping_node();
  add_serving(serving, c.result);
  config::add(json, "serve", std::move(serving));
  return json;
}

// What the answer rests on.
std::string range_lines(const ServingPlan& plan) {
  std::vector<std::string> parts;
  if (plan.best.empty()) { return {}; }
  for (const auto& range : plan.best.front().result.ranges) {
    parts.push_back(fmt::format("{} {:.2f} to {:.2f}", range.metric == "ttft" ? "TTFT" : "TPOT", range.p10, range.p90));
  }
  if (parts.empty()) { return {}; }
  return wrapped("Range: ",
                 fmt::format("measured / predicted is {} (80 % interval of measured deployments); one random sequence "
                             "of requests; another --seed gives another",
                             join(parts, ", ")));
}

}  // namespace

std::string serving_plan_text(const ServingPlan& plan, bool explain, TextStyle style) {
  std::string text = header_text(plan, style) + best_warnings(plan);
  if (explain && !plan.explanation.empty()) {
    text += "\n";
    for (const auto& line : plan.explanation) { text += wrapped("- ", line); }
    text += "\nThroughput per GPU against speed for a user: no deployment that was tried has more of both\n\n";
    text += front_table(plan);
  }
  text += "\n" +
          wrapped("", fmt::format("{} deployments simulated at {} loads: {} cannot run, {} {} at any load. {} pairs of "
                                  "pools were left out because their rates do not match.",
                                  grouped(plan.candidates), grouped(plan.simulated_runs), grouped(plan.infeasible),
                                  grouped(plan.missed), has_slo(plan) ? "miss the service level" : "are overloaded",
                                  grouped(plan.matched_out)));
  return text + range_lines(plan) + wrapped_list("Not searched: ", plan.not_searched);
}

std::string serving_plan_json(const ServingPlan& plan) {
  Node json = config::json_object({{"schema", "orrery.plan/1"},
                                   {"task", "serve"},
                                   {"model", plan.model},
                                   {"cluster", plan.cluster},
                                   {"engine", plan.engine},
                                   {"devices", plan.devices},
                                   {"objective", plan.objective}});
  if (plan.traffic) {
    config::add(json, "traffic",
                config::json_object({{"requests_per_s", plan.traffic->rate}, {"load", plan.traffic->text}}));
  }
  config::add(json, "space",
              config::json_object({{"points", plan.candidates},
                                   {"infeasible", plan.infeasible},
                                   {"missed", plan.missed},
                                   {"matched_out", plan.matched_out},
                                   {"simulated_loads", plan.simulated_runs}}));
  Node best = config::sequence_node(), front = config::sequence_node();
  for (const auto& candidate : plan.best) { append(best, of_candidate(plan, candidate)); }
  for (const auto& trade : plan.front) {
    append(front, config::json_object({{"tokens_per_s_per_user", trade.tokens_per_s_per_user},
                                       {"tokens_per_s_per_gpu", trade.tokens_per_s_per_gpu},
                                       {"meets_slo", trade.meets_slo},
                                       {"deployment", trade.text}}));
  }
  config::add(json, "best", std::move(best));
  config::add(json, "front", std::move(front));
  config::add_fields(
      json, {{"explanation", plan.explanation},
             {"not_searched", plan.not_searched},
             {"nothing_fits", plan.nothing.empty() ? config::JsonValue(nullptr) : config::JsonValue(plan.nothing)},
             {"wall_s", plan.wall_s}});
  return config::json_document(json);
}

}  // namespace orrery::report
