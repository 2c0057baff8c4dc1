#include "apps/cli/plan_serve.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "apps/cli/commands.hpp"
#include "apps/cli/counts.hpp"
#include "apps/cli/serve_flags.hpp"
#include "apps/cli/terminal.hpp"
#include "orrery/api/serve_plan.hpp"
#include "orrery/config/record.hpp"
#include "orrery/config/units_text.hpp"
#include "orrery/core/text.hpp"
#include "orrery/hardware/catalogue.hpp"
#include "orrery/launch/launch.hpp"
#include "orrery/launch/serving.hpp"
#include "orrery/report/serving_plan.hpp"
#include "orrery/serving/engine_settings.hpp"
#include "orrery/workload/catalogue.hpp"

namespace orrery::cli {

namespace of_plan_serve {
namespace {

constexpr const char* kExample =
    "orrery plan --task serve --model llama-3.1-8b --cluster dgx-h100 --devices 8 --isl 2048 --osl 256 "
    "--slo \"ttft_p99=2s tpot_p99=50ms\"";

constexpr const char* kFooter = R"(Examples
  orrery plan --task serve --model llama-3.1-8b --cluster dgx-h100 --devices 8 --isl 2048 --osl 256 \
              --slo "ttft_p99=2s tpot_p99=50ms"
  orrery plan --task serve --model llama-3.1-70b --cluster dgx-h100 --precision fp8 --isl 2048 --osl 256 --rate 40 \
              --slo "ttft_p99=2s tpot_p99=50ms"
  orrery plan --task serve --model llama-3.1-70b --cluster dgx-h100 --devices 16 --precision fp8 --isl 4096 \
              --osl 512 --slo "ttft_p99=2s tpot_p99=25ms" --explain
  orrery plan --task serve --model deepseek-v3 --cluster dgx-h200 --devices 32 --precision fp8 --pools disaggregated \
              --isl 4096 --osl 1024 --slo "ttft_p90=5s tpot_mean=40ms" --objective usd
  orrery plan --task serve --model llama-3.1-70b --cluster dgx-h100 --devices 8 --trace requests.csv --tp 4,8 \
              --slo "ttft_p99=3s" --emit vllm > serve.sh

Every deployment is simulated at the loads of a bisection, until it cannot be among the best; the best ones again as
whole fleets. --explain and --json show the front, which takes more simulations. With --rate (or --trace without
--devices) the load is given: the answer is the smallest fleet that serves it; --devices is then a limit. Without --slo
the highest sustained load counts: requests may wait, but are completed as fast as they arrive.
Exit codes: 0 done, 1 no deployment meets the service level or sustains a load, 2 bad input, 3 internal error.
)";

struct Choices {
  std::string tp, pp, ep, attention_dp, max_batched_tokens, max_sequences;
  std::string speculative_tokens, two_batch_decodes, two_batch_prompts;
  api::Pools pools = api::Pools::both;
  api::ServeObjective objective = api::ServeObjective::gpu;
  std::int64_t top = 5;
  std::int32_t threads = 0;
  bool explain = false;
};

const config::Record<Choices>& choices_record() {
  static const auto record = [] {
    config::Record<Choices> fields("search", "How deployments are searched.");
    fields.optional("tp", &Choices::tp, "tensor-parallel degrees to try, such as 4,8; default: powers of two in a node")
        .optional("pp", &Choices::pp, "numbers of pipeline stages to try; default: 1,2,4")
        .optional("ep", &Choices::ep, "expert-parallel degrees to try; default: 1 and all ranks of an engine")
        .optional(
            "attention_dp", &Choices::attention_dp,
            "degrees of data-parallel attention to try, in engines of tp x pp x attention_dp accelerators; default: "
            "powers of two for mixtures, else 1")
        .optional("max_batched_tokens", &Choices::max_batched_tokens,
                  "most tokens of an iteration, values to try; default: 2048, the profile's and 16384")
        .optional("max_sequences", &Choices::max_sequences, "most sequences at a time, values to try")
        .optional("speculative_tokens", &Choices::speculative_tokens,
                  "drafts that a decode iteration verifies, numbers to try, such as 0,1,3; default: the profile's")
        .optional("two_batch_decodes", &Choices::two_batch_decodes,
                  "sequences of a rank from which a decode iteration is two batches that overlap (see orrery serve "
                  "--help), values to try, such as 0,64; default: the profile's")
        .optional("two_batch_prompts", &Choices::two_batch_prompts,
                  "the same for tokens of a rank in an iteration with prompts, such as 0,512")
        .optional("pools", &Choices::pools, "one pool for prefill and decode, a pool for each, or both kinds")
        .optional("objective", &Choices::objective,
                  "maximise goodput per gpu, tokens per usd (dollar) or per watt (joule)")
        .optional("top", &Choices::top, "number of deployments to show", {.min = 1, .max = 1000})
        .optional("threads", &Choices::threads, "0: one per hardware thread", {.min = 0, .max = 1024})
        .optional("explain", &Choices::explain,
                  "what limits the best one, what others lose, and the front of throughput and speed for a user");
    return fields;
  }();
  return record;
}

struct Options {
  ServeFlags serve;
  RecordFlags choices{choices_record().fields()};
  std::string emit;
  bool json = false;
};

Result<void> check_lists(const api::ServePlanRequest& request) {
  if (!request.speculative_tokens.empty() && request.speculative_tokens.back() > serving::kMostDrafts) {
    return fail(
        flag_place("--speculative-tokens"),
        fmt::format("\"{}\" is too large; at most {}", request.speculative_tokens.back(), serving::kMostDrafts));
  }
  constexpr double kMostSettings = 1000;
  double settings = 1;
  for (const auto* list : {&request.max_batched_tokens, &request.max_sequences, &request.speculative_tokens,
                           &request.two_batch_decodes, &request.two_batch_prompts}) {
    settings *= std::max(1.0, static_cast<double>(list->size()));
  }
  if (settings > kMostSettings) {
    return fail(flag_place("--max-batched-tokens"),
                fmt::format("{} combinations with --max-sequences, --speculative-tokens and two batches; at most {}",
                            settings, kMostSettings));
  }
  return {};
}

Result<api::ServePlanRequest> plan_request(const Options& options) {
  api::ServePlanRequest request;
  ORRERY_TRY(base, options.serve.read(kExample));
  config::Node fields = config::mapping_node();
  options.choices.lay_over(fields);
  ORRERY_TRY(choices, choices_record().read_over(Choices{}, fields));
  const serving::Scenario& s = base.scenario;
  if (s.concurrency) {
    return fail(flag_place("--concurrency"),
                "is not valid here; give --rate or a trace to get the number of "
                "accelerators, or --devices to get the highest rate");
  }
  if (s.admission().refuses() || s.autoscale_min || s.prefill_autoscale_min) {
    return fail(flag_place(s.autoscale_min           ? "--autoscale-min"
                           : s.prefill_autoscale_min ? "--prefill-autoscale-min"
                           : s.admission_limit > 0   ? "--admission-limit"
                           : s.admission_rate        ? "--admission-rate"
                                                     : "--admission-wait"),
                "is not valid here: the search has fixed fleets that serve every request");
  }
  if (s.branches > 1 && choices.pools == api::Pools::disaggregated) {
    return fail(flag_place("--branches"),
                "is not valid with --pools disaggregated: branches share the prompt in the "
                "cache of one engine");
  }
  request.for_traffic = s.rate || (!s.trace.empty() && !s.devices);
  if (!s.devices && !request.for_traffic) {
    return fail(flag_place("--devices"), fmt::format("is missing; give --devices to get the highest rate, or --rate to "
                                                     "get the number of accelerators; for example: {}",
                                                     kExample));
  }
  request.devices = s.devices.value_or(0);
  const auto take = [](std::vector<std::int64_t>& to, const char* flag, const std::string& text,
                       std::int64_t least = 1) -> Result<void> {
    ORRERY_TRY(list, counts(flag, text, least));
    to = std::move(list);
    return {};
  };
  const std::array lists = {take(request.tp, "--tp", choices.tp),
                            take(request.pp, "--pp", choices.pp),
                            take(request.ep, "--ep", choices.ep),
                            take(request.attention_dp, "--attention-dp", choices.attention_dp),
                            take(request.max_batched_tokens, "--max-batched-tokens", choices.max_batched_tokens),
                            take(request.max_sequences, "--max-sequences", choices.max_sequences),
                            take(request.speculative_tokens, "--speculative-tokens", choices.speculative_tokens, 0),
                            take(request.two_batch_decodes, "--two-batch-decodes", choices.two_batch_decodes, 0),
                            take(request.two_batch_prompts, "--two-batch-prompts", choices.two_batch_prompts, 0)};
  for (const auto& list : lists) {
    if (!list) { return tl::make_unexpected(list.error()); }
  }
  request.base = std::move(base);
  if (auto ok = check_lists(request); !ok) { return tl::make_unexpected(ok.error()); }
  // What has an effect with any of the numbers is checked with the largest one.
  if (!request.speculative_tokens.empty()) {
    config::Node largest = config::integer_node(request.speculative_tokens.back());
    if (config::Node* known = request.base.engine.find("speculative_tokens")) {
      *known = std::move(largest);
    } else {
      config::add(request.base.engine, "speculative_tokens", std::move(largest));
    }
  }
  request.pools = choices.pools;
  request.objective = choices.objective;
  request.top = static_cast<std::size_t>(choices.top);
  request.front = choices.explain || options.json;
  request.threads = choices.threads;
  return request;
}

launch::ServedPool served_pool(const char* role, const results::ServingDegrees& d, const results::ServingPool& pool) {
  return {role, d.tp, d.pp, d.ep, d.attention_dp, d.replicas, pool.redundant_experts, pool.overlaps_batches};
}

// Of a scenario: what changes the prediction, and no server line says.
std::vector<std::string> simulated_only(const serving::Scenario& s) {
  std::vector<std::string> list;
  const auto add = [&](bool is_given, const char* key, std::string_view value) {
    if (is_given) { list.push_back(fmt::format("{} {}", key, value)); }
  };
  const bool is_wide = hardware::element_size(s.precision) >= Bytes(2.0) && s.precision != hardware::Precision::bf16;
  add(hardware::is_integer(s.precision) || is_wide, "precision", hardware::name_of(s.precision));
  if (s.kv_format && *s.kv_format != hardware::CacheFormat::fp8) {
    add(true, "kv_format", hardware::name_of(*s.kv_format));
  }
  if (s.attention_precision) { add(true, "attention_precision", hardware::name_of(*s.attention_precision)); }
  add(!s.stack.empty() && s.stack != "sglang-deepep", "stack", s.stack);
  add(!s.prefill_cluster.empty(), "prefill_cluster", s.prefill_cluster);
  add(s.host_cache > Bytes(0), "host_cache", config::format_bytes(s.host_cache));
  add(s.remote_cache > Bytes(0), "remote_cache", config::format_bytes(s.remote_cache));
  return list;
}

// Whether the script's router distributes requests as they were simulated.
bool routes_alike(launch::Server server, serving::Routing routing, bool has_pools) {
  using serving::Routing;
  switch (server) {
    case launch::Server::sglang: return routing != Routing::least_tokens && routing != Routing::session;
    case launch::Server::vllm:
      return routing == Routing::round_robin || (!has_pools && routing == Routing::least_outstanding);
    case launch::Server::dynamo:
      return routing == Routing::round_robin || routing == Routing::random || routing == Routing::prefix_aware;
  }
  return false;
}

// Most tokens of a request where the cache of a rank has fewer than the model allows, in which case servers refuse to
// start; else 0.
std::int64_t longest_request(const results::ServingCandidate& best, std::int64_t allowed) {
  const std::int64_t fewest = std::min(best.result.pools.front().longest, best.result.pools.back().longest);
  return fewest < allowed ? std::max<std::int64_t>(1, fewest) : 0;
}

// What the checkpoint has to be.
std::string weights_of(const serving::Scenario& s, const results::Serving& result) {
  std::string text(s.weight_format ? hardware::name_of(*s.weight_format) : hardware::name_of(s.precision));
  if (!s.weight_format && hardware::element_size(s.precision) >= Bytes(2.0)) { return {}; }
  return result.quantized.empty() ? text : fmt::format("{} (quantized: {})", text, result.quantized);
}

// Which server runs an engine: by the stack of its profile, which a file has, too.
enum class Family : std::uint8_t { vllm, sglang, other };

Family family_of(const serving::EngineSettings& profile) {
  if (profile.stack.starts_with("sglang")) { return Family::sglang; }
  return profile.stack.starts_with("vllm") ? Family::vllm : Family::other;
}

struct NodeFacts {
  std::int64_t accelerators = 0;
  bool is_amd = false;
  std::int64_t longest = 0;  // tokens that the model allows
  bool is_sglang = false;    // the engine
  std::string stack;         // of its profile
};

NodeFacts node_of(const std::string& data, const serving::Scenario& s) {
  const auto described = hardware::Catalogue(data).cluster(s.cluster, 0);
  if (!described) { return {}; }
  const auto model = workload::load_model(data, s.model, s.as);
  const auto profile = serving::load_engine(data, s.engine);
  return {launch::devices_per_node(*described), described->accelerator.maker == "AMD", model ? model->max_seq : 0,
          profile && family_of(*profile) == Family::sglang, profile ? profile->stack : std::string()};
}

// What lines of servers that overlap batches do otherwise than was simulated.
std::vector<std::string> overlap_notes(launch::Server server, launch::ServedFleet& fleet, const std::string& stack) {
  std::vector<std::string> notes;
  const bool has_prefill = fleet.prefill.has_value();
  const bool decodes = fleet.engine.overlaps_batches && fleet.two_batch_decodes > 0;
  const bool prompts =
      (has_prefill ? fleet.prefill->overlaps_batches : fleet.engine.overlaps_batches) && fleet.two_batch_prompts > 0;
  if (!decodes && !prompts) { return notes; }
  const bool is_sglang = server == launch::Server::sglang || fleet.workers_are_sglang;
  // SGLang divides every batch of two and more on an engine, or none.
  const bool one_kind = !has_prefill && decodes != prompts;
  if (is_sglang && (one_kind || (decodes && fleet.two_batch_decodes > 2) || (prompts && fleet.two_batch_prompts > 2))) {
    notes.push_back(
        fmt::format("two_batch_decodes {}, two_batch_prompts {}", fleet.two_batch_decodes, fleet.two_batch_prompts));
  }
  if (is_sglang) { fleet.expert_backend = "deepep"; }  // it needs one
  if (stack != "sglang-deepep") { notes.push_back(fmt::format("stack {} (the lines have DeepEP)", stack)); }
  return notes;
}

std::string script(launch::Server server, const api::ServePlanRequest& request, const results::ServingCandidate& best,
                   const NodeFacts& node) {
  const serving::Scenario& s = request.base.scenario;
  launch::ServedFleet fleet;
  fleet.model = s.model;
  if (best.prefill) { fleet.prefill = served_pool("prefill", *best.prefill, best.result.pools.front()); }
  fleet.engine = served_pool(best.prefill ? "decode" : "engine", best.engine, best.result.pools.back());
  if ((s.stack.empty() ? node.stack : s.stack) == "sglang-deepep") { fleet.expert_backend = "deepep"; }
  fleet.workers_are_sglang = node.is_sglang;
  fleet.node_accelerators = node.accelerators;
  fleet.is_amd = node.is_amd;
  fleet.routing = config::enum_name(s.routing);
  fleet.max_batched_tokens = best.max_batched_tokens;
  fleet.max_sequences = best.max_sequences;
  fleet.stream_interval = best.stream_interval;
  fleet.drafts = best.drafts;
  fleet.two_batch_decodes = best.two_batch_decodes;
  fleet.two_batch_prompts = best.two_batch_prompts;
  if (best.memory_use > 0.0) {
    fleet.engine.memory_use = best.result.pools.back().memory_use;
    if (fleet.prefill) { fleet.prefill->memory_use = best.result.pools.front().memory_use; }
  }
  fleet.longest = longest_request(best, node.longest);
  fleet.weights = weights_of(s, best.result);
  if (s.precision == hardware::Precision::fp8 && !s.weight_format) { fleet.quantization = "fp8"; }
  if (s.kv_format == hardware::CacheFormat::fp8) { fleet.kv_format = "fp8"; }
  // The lines have these; others that are given change the prediction, too.
  constexpr std::array<std::string_view, 8> kEmitted = {"max_batched_tokens", "max_sequences",     "stream_interval",
                                                        "memory_use",         "redundant_experts", "speculative_tokens",
                                                        "two_batch_decodes",  "two_batch_prompts"};
  for (const config::Member& setting : request.base.engine.members) {
    const bool is_emitted = std::find(kEmitted.begin(), kEmitted.end(), setting.key) != kEmitted.end();
    if (is_emitted && (setting.key != "memory_use" || best.memory_use > 0.0)) { continue; }
    fleet.missing.push_back(setting.value.is_scalar() ? setting.key + " " + setting.value.scalar : setting.key);
  }
  for (std::string& note : overlap_notes(server, fleet, s.stack.empty() ? node.stack : s.stack)) {
    fleet.missing.push_back(std::move(note));
  }
  for (std::string& setting : simulated_only(s)) { fleet.missing.push_back(std::move(setting)); }
  if (!routes_alike(server, s.routing, best.prefill.has_value())) {
    fleet.missing.push_back(fmt::format("routing {}", config::enum_name(s.routing)));
  }
  fleet.note = fmt::format("{} ({}): predicted {:.4g} {}{}", best.text + best.settings, s.engine, best.load,
                           best.result.sessions ? "sessions/s" : "requests/s", s.slo.empty() ? "" : " within " + s.slo);
  return launch::serving_script(server, fleet);
}

// The prediction is that of the engine that a server runs: simulated by default, and another one is refused.
Result<void> match_engine(const std::string& data, api::ServeRequest& request, launch::Server server) {
  serving::Scenario& s = request.scenario;
  using launch::Server;
  if (!request.names_engine) {
    s.engine = server == Server::sglang ? "sglang" : "vllm-v1";
    return {};
  }
  ORRERY_TRY(profile, serving::load_engine(data, s.engine));
  const Family family = family_of(profile);
  const bool runs =
      (server != Server::vllm && family == Family::sglang) || (server != Server::sglang && family == Family::vllm);
  if (runs) { return {}; }
  const char* const engines = server == Server::vllm ? "vLLM" : server == Server::sglang ? "SGLang" : "vLLM or SGLang";
  return fail(flag_place("--emit"),
              fmt::format("{} runs {}, and --engine is {}", config::enum_name(server), engines, s.engine));
}

Result<std::optional<launch::Server>> server_of(const Options& options) {
  if (options.emit.empty()) { return std::optional<launch::Server>(); }
  if (options.json) { return fail(flag_place("--emit"), "is not valid with --json"); }
  std::vector<std::string> names;
  for (const auto& [server, name] : config::EnumNames<launch::Server>::value) {
    if (name == options.emit) { return std::optional(server); }
    names.emplace_back(name);
  }
  return fail(flag_place("--emit"), fmt::format("{} is unknown; valid: {}", quote(options.emit), join(names, ", ")));
}

Result<int> run(const Options& options) {
  ORRERY_TRY(server, server_of(options));
  ORRERY_TRY(request, plan_request(options));
  ORRERY_TRY(data, data_directory());
  if (server) {
    if (auto ok = match_engine(data, request.base, *server); !ok) { return tl::make_unexpected(ok.error()); }
  }
  Progress progress("deployments");
  request.progress = [&progress](std::int64_t done, std::int64_t all) { progress.update(done, all); };
  const auto start = std::chrono::steady_clock::now();
  auto plan = api::plan_serving(data, request);
  if (!plan) { return tl::make_unexpected(plan.error()); }
  plan->wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (options.json) { print(report::serving_plan_json(*plan)); }
  if (plan->best.empty()) { return tl::make_unexpected(Failure{{{{}, plan->nothing}}, true}); }
  if (server) {
    print(script(*server, request, plan->best.front(), node_of(data, request.base.scenario)));
  } else if (!options.json) {
    print(report::serving_plan_text(*plan, options.choices.has("explain"), terminal_style()));
  }
  return 0;
}

}  // namespace
}  // namespace of_plan_serve

bool is_serving_task(const std::vector<std::string>& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--task=serve") { return true; }
    if (arguments[i] == "--task" && i + 1 < arguments.size() && arguments[i + 1] == "serve") { return true; }
  }
  return false;
}

Command plan_serve_command() {
  using namespace of_plan_serve;
  Command command(
      "plan",
      "Search for the deployment of an inference engine with the most goodput within a service level, or the "
      "smallest one for a traffic.");
  const auto options = std::make_shared<Options>();
  command.positional({"SCENARIO", "[SCENARIO]", "a scenario, a YAML file with the fields below", ""},
                     [options](const std::string& text) { options->serve.file(text); });
  command.option({"--task", "NAME", "serve", "The search"}, [](const std::string&) {});
  constexpr std::array<std::string_view, 28> kSearched = {"tp",
                                                          "pp",
                                                          "ep",
                                                          "attention_dp",
                                                          "replicas",
                                                          "prefill_replicas",
                                                          "prefill_tp",
                                                          "prefill_ep",
                                                          "prefill_attention_dp",
                                                          "admission_limit",
                                                          "admission_rate",
                                                          "admission_burst",
                                                          "admission_wait",
                                                          "autoscale_min",
                                                          "autoscale_target",
                                                          "autoscale_signal",
                                                          "prefill_autoscale_min",
                                                          "prefill_autoscale_target",
                                                          "prefill_autoscale_signal",
                                                          "autoscale_interval",
                                                          "autoscale_start",
                                                          "autoscale_hold",
                                                          "max_batched_tokens",
                                                          "max_sequences",
                                                          "speculative_tokens",
                                                          "two_batch_decodes",
                                                          "two_batch_prompts",
                                                          "blocks"};
  options->serve.declare(command, [&](std::string_view field) {
    return std::find(kSearched.begin(), kSearched.end(), field) == kSearched.end();
  });
  options->choices.declare(command, [](const std::string&) { return std::string("The search"); });
  const std::string output(kOutputGroup);
  command.option({"--emit",
                  "NAME",
                  "print the best deployment as command lines of a server (vllm, sglang, dynamo)",
                  output,
                  {"vllm", "sglang", "dynamo"}},
                 [options](const std::string& text) { options->emit = text; });
  command.toggle({"--json", "", "one JSON document (orrery.plan/1), nothing else, on standard output", output},
                 [options](bool on) { options->json = on; });
  command.footer(kFooter);
  command.action([options] { return run(*options); });
  return command;
}

}  // namespace orrery::cli
