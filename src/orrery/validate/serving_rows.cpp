#include "orrery/validate/serving_rows.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include <fmt/format.h>

#include "orrery/hardware/catalogue.hpp"
#include "orrery/serving/deployment.hpp"
#include "orrery/validate/facts.hpp"
#include "orrery/validate/formats.hpp"
#include "orrery/validate/pool_recipes.hpp"
#include "orrery/validate/serving_launch.hpp"
#include "orrery/validate/serving_software.hpp"
#include "orrery/validate/spelling.hpp"
#include "orrery/workload/catalogue.hpp"

namespace orrery::validate {

namespace {

using R = ServingRow;

const std::array kFields = {
    Field<R>{"family", &R::family, true},
    Field<R>{"model", &R::model},
    Field<R>{"model_key", &R::model_key, true},
    Field<R>{"precision", &R::precision},
    Field<R>{"gpus", &R::gpus, true},
    Field<R>{"gpu_type", &R::gpu_type, true},
    Field<R>{"mode", &R::mode},
    Field<R>{"tp", &R::tp},
    Field<R>{"pp", &R::pp},
    Field<R>{"ep", &R::ep},
    Field<R>{"dp_attn", &R::dp_attn},
    Field<R>{"replicas", &R::replicas},
    Field<R>{"prefill_workers", &R::prefill_workers},
    Field<R>{"prefill_gpus", &R::prefill_gpus},
    Field<R>{"prefill_tp", &R::prefill_tp},
    Field<R>{"prefill_ep", &R::prefill_ep},
    Field<R>{"prefill_dp_attn", &R::prefill_dp_attn},
    Field<R>{"decode_workers", &R::decode_workers},
    Field<R>{"decode_gpus", &R::decode_gpus},
    Field<R>{"decode_tp", &R::decode_tp},
    Field<R>{"decode_ep", &R::decode_ep},
    Field<R>{"decode_dp_attn", &R::decode_dp_attn},
    Field<R>{"spec_method", &R::spec_method},
    Field<R>{"isl", &R::isl},
    Field<R>{"osl", &R::osl, true},
    Field<R>{"length_dist", &R::length_dist},
    Field<R>{"load_kind", &R::load_kind, true},
    Field<R>{"load", &R::load, true},
    Field<R>{"num_requests", &R::num_requests},
    Field<R>{"max_batch", &R::max_batch},
    Field<R>{"max_batched_tokens", &R::max_batched_tokens},
    Field<R>{"engine", &R::engine},
    Field<R>{"engine_version", &R::engine_version},
    Field<R>{"measured", &R::measured},
};

constexpr double kMilli = 1e3;
using results::Serving;
constexpr std::array kMetrics = {
    ServingMetric{"ttft_mean_ms", [](const Serving& s) { return kMilli * s.ttft.mean; }, "serving ttft"},
    ServingMetric{"ttft_p50_ms", [](const Serving& s) { return kMilli * s.ttft.p50; }, "serving ttft"},
    ServingMetric{"ttft_p90_ms", [](const Serving& s) { return kMilli * s.ttft.p90; }},
    ServingMetric{"ttft_p99_ms", [](const Serving& s) { return kMilli * s.ttft.p99; }},
    ServingMetric{"tpot_mean_ms", [](const Serving& s) { return kMilli * s.tpot.mean; }, "serving tpot"},
    ServingMetric{"tpot_p50_ms", [](const Serving& s) { return kMilli * s.tpot.p50; }, "serving tpot"},
    ServingMetric{"tpot_p90_ms", [](const Serving& s) { return kMilli * s.tpot.p90; }},
    ServingMetric{"tpot_p99_ms", [](const Serving& s) { return kMilli * s.tpot.p99; }},
    ServingMetric{"e2e_mean_ms", [](const Serving& s) { return kMilli * s.e2e.mean; }},
    ServingMetric{"e2e_p50_ms", [](const Serving& s) { return kMilli * s.e2e.p50; }},
    ServingMetric{"e2e_p99_ms", [](const Serving& s) { return kMilli * s.e2e.p99; }},
    ServingMetric{"output_tokens_per_s", [](const Serving& s) { return s.output_tokens_per_s; }, "serving throughput"},
    ServingMetric{"total_tokens_per_s", [](const Serving& s) { return s.total_tokens_per_s; }, "serving throughput"},
    ServingMetric{"requests_per_s", [](const Serving& s) { return s.requests_per_s; }, "serving throughput"},
};

// The first version of vLLM whose engine is V1 by default.
bool is_old_vllm(const ServingRow& row) {
  if (row.family.starts_with("splitwise")) { return true; }  // of 2023
  return is_older(row.engine_version, {0, 8});
}

// The profile of an engine by its name in tables.
std::string profile_of(const ServingRow& row) {
  const std::string name = letters_and_digits(row.engine);
  const auto has = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  if (has("sglang")) { return row.family == kWideExperts ? "sglang-deepep" : "sglang"; }
  if (has("trt") || has("tensorrt")) { return "tensorrt-llm"; }
  return is_old_vllm(row) ? "vllm-v0" : "vllm-v1";
}

constexpr std::int64_t kMostDevices = 100'000;

std::string too_many(const char* what, std::int64_t count) {
  return fmt::format("{} {} are more than the {} that are simulated", count, what, kMostDevices);
}

// Degrees of a worker on `gpus` devices. dp_attn is a flag in tables of InferenceX and LMSYS, and else a degree.
serving::Degrees degrees_of(const ServingRow& row, std::int64_t gpus, std::optional<std::int64_t> tp,
                            std::optional<std::int64_t> ep, std::optional<std::int64_t> dp_attn) {
  serving::Degrees d;
  d.pp = row.pp.value_or(1);
  const std::int64_t ranks = std::max<std::int64_t>(1, gpus / d.pp);
  d.tp = tp.value_or(ranks);
  if (row.family.starts_with("inferencex") || row.family == kWideExperts) {
    d.attention_dp = dp_attn.value_or(0) > 0 ? ranks : 1;
    // Degrees that do not give the worker's devices are not those of the run: its recipes share out experts over all.
    if (d.attention_dp > 1 && d.tp != ranks) { ep = ranks; }
  } else {
    d.attention_dp = std::max<std::int64_t>(1, dp_attn.value_or(1));
  }
  if (d.tp * d.attention_dp != ranks) {
    if (d.attention_dp > 1) {
      d.attention_dp = std::gcd(ranks, d.attention_dp);
      d.tp = ranks / d.attention_dp;
    } else {
      d.tp = ranks;
    }
  }
  d.ep = std::gcd(ranks, std::max<std::int64_t>(1, ep.value_or(1)));
  return d;
}

// Degrees that the names of recipes in InferenceX's lists, or its launch files, contradict.
ServingRow with_degrees_of_recipe(ServingRow row) {
  // Pools of vLLM on GB200, as AIConfigurator states them: ..._dep4_dep16, ..._dep4_tep4.
  if (row.family == "aic_silicon" && row.engine == "vllm" && row.gpu_type == "GB200" && row.mode == "disagg") {
    const auto of_all_ranks = [](auto& tp, auto& dp) { dp = std::exchange(tp, 1); };
    of_all_ranks(row.prefill_tp, row.prefill_dp_attn);
    if (row.decode_workers == 1) { of_all_ranks(row.decode_tp, row.decode_dp_attn); }
  }
  // Lists of January 2026 have attention dp for recipes of TensorRT-LLM whose names have none (ctx1_gen4_tep8).
  if (const auto recipe = trtllm_recipe(row); recipe && row.engine == "dynamo-trt") {
    row.decode_dp_attn = recipe->attention_dp ? 1 : 0;
  }
  // Pools of SGLang with several decode engines on GB200 and GB300 are those of the low-latency recipes, which have no
  // attention dp; the table's flag comes from degrees that do not give the devices.
  if (row.engine == "dynamo-sglang" && row.gpu_type.starts_with("GB") && row.decode_workers.value_or(1) > 1) {
    row.prefill_dp_attn = row.decode_dp_attn = 0;
  }
  // Pools of SGLang on AMD GPUs: their launch file for fp4 shared out the experts in any case until March 2026.
  if (row.engine == "mori-sglang" && row.precision == "fp4" && row.measured < "2026-03-03") {
    row.prefill_ep = row.decode_ep = 8;
  }
  // dstack's files give servers of tp 2 for pools of four engines, and none for one pair on the same 8 GPUs, whose
  // decode engine takes 0.7 of the time per token of theirs with as many sequences: tp 4.
  if (row.family == kPoolRatios && row.prefill_workers == 1 && row.decode_workers == 1) {
    row.prefill_gpus = row.decode_gpus = row.prefill_tp = row.decode_tp = 4;
  }
  return row;
}

// AIConfigurator's copies of InferenceX's rows multiply tp by ep where experts are shared out over all ranks (tp 16, ep
// 4 is tp 4, ep 4: the times are those of tp 4), and state attention dp over all ranks as tp x dp GPUs. Of vLLM, tp 4,
// ep 4 without attention dp is stated so: the list of that day has nothing else (kimik2.5-fp4-b200-vllm, 26 March
// 2026).
ServingRow with_true_degrees(ServingRow row) {
  row = with_degrees_of_recipe(std::move(row));
  if (row.family != "aic_silicon" || row.mode != "agg" || !is_of_inferencex(row) || !row.tp || !row.ep) { return row; }
  const std::int64_t tp = *row.tp, ep = *row.ep, dp = row.dp_attn.value_or(1);
  if (dp == 1 && ep > 1 && tp == ep * ep) {
    row.tp = ep;
    row.gpus = ep;
  } else if (dp > 1 && dp == tp && ep == tp * dp) {
    row.ep = row.gpus = dp;
    row.tp = row.engine == "vllm" ? dp : 1;
    if (row.engine == "vllm") { row.dp_attn = 1; }
  }
  return row;
}

// Where a table gives no degrees: the smallest power of two whose devices hold the weights in 60 % of their memory.
std::int64_t usual_tp(const workload::Model& model, const hardware::Accelerator& accelerator, double element,
                      std::int64_t most) {
  constexpr double kPart = 0.6;
  const double weights = element * static_cast<double>(workload::parameter_count(model).total);
  std::int64_t tp = 1;
  while (tp < most && weights > kPart * static_cast<double>(tp) * accelerator.memory.value()) { tp *= 2; }
  return std::min(tp, most);
}

struct RowLoad {
  serving::Workload workload;
  double warm_up = 0.0;  // part of the requests
};

class RowRun {
 public:
  RowRun(const ServingRow& row, const std::string& data_directory)
      : row_(with_true_degrees(row)), data_directory_(data_directory), catalogue_(data_directory) {}

  Skippable<Serving> run() {
    if (!row_.unreadable.empty()) { return skip(row_.unreadable); }
    if (!row_.isl) { return skip("not stated: isl"); }
    if (!row_.osl) { return skip("not stated: osl"); }
    constexpr double kMostClients = 1e6;
    if (row_.load_kind != "poisson_rate" && row_.load.value_or(0.0) > kMostClients) {
      return skip(fmt::format("load: more than {:.0f} clients are not simulated", kMostClients));
    }
    if (auto reason = prepare(); !reason.empty()) { return skip(std::move(reason)); }
    if (auto reason = add_pools(); !reason.empty()) { return skip(std::move(reason)); }
    auto load = load_of_row();
    if (!load) { return skip(load.error()); }
    auto result = serving::simulate(deployment_, load->workload, {}, load->warm_up);
    if (!result) { return skip(result.error().diagnostics.front().message); }
    const auto copies = static_cast<double>(share_);  // replicas that are not simulated
    result->output_tokens_per_s *= copies;
    result->total_tokens_per_s *= copies;
    result->requests_per_s *= copies;
    return std::move(*result);
  }

 private:
  std::string prepare() {
    machine_ = machine_of(row_.gpu_type);
    if (machine_ == nullptr) { return unknown_accelerator(row_.gpu_type); }
    auto model = workload::load_model(data_directory_, row_.model_key, {});
    if (!model) { return fmt::format("model: {}", model.error().diagnostics.front().message); }
    deployment_.model = std::move(*model);
    auto settings = serving::load_engine(data_directory_, profile_of(row_));
    if (!settings) { return settings.error().text(); }
    settings_ = std::move(*settings);
    if (row_.spec_method == "mtp") { settings_.speculative_tokens = 1; }
    // Handed to the engine in one process.
    const bool is_local = row_.load_kind == "static_batch" || row_.family.starts_with("mlperf_inference");
    deployment_.request_overhead_s = is_local ? 0.0 : settings_.request_overhead.value();
    auto cluster = catalogue_.cluster(std::string(machine_->cluster), 0);
    if (!cluster) { return cluster.error().text(); }
    accelerator_ = cluster->accelerator;
    return {};
  }

  std::string add_pool(const char* name, const serving::Degrees& degrees) {
    MachineColumns columns;
    columns.gpu_type = row_.gpu_type;
    columns.gpus = degrees.gpus_of_engine();
    serving::EngineSettings settings = settings_;
    std::optional<bool> narrow_cache;
    set_launch(row_, name, degrees, settings, narrow_cache);
    auto stack = catalogue_.stack(settings.stack);
    if (!stack) { return stack.error().text(); }
    Parts parts;
    auto whole = catalogue_.cluster(std::string(machine_->cluster), 0);
    parts.clusters.emplace(std::string(machine_->cluster), std::move(*whole));
    auto cluster = cluster_of(columns, parts);
    if (!cluster) { return cluster.error(); }
    const StackFacts defaults{};
    auto precision = precision_of(row_.precision, defaults, accelerator_);
    if (!precision) { return precision.error(); }
    // Without units for 4 bits, weights are widened on chip and multiplied with inputs in 16.
    if (stored_format(row_.precision, *precision) == hardware::StorageFormat::fp4 &&
        !(accelerator_.peak(hardware::Precision::fp4) > FlopsPerSecond(0))) {
      precision = hardware::Precision::bf16;
    }
    serving::PoolInputs inputs;
    inputs.name = name;
    inputs.model = &deployment_.model;
    inputs.cluster = std::move(*cluster);
    inputs.stack = std::move(*stack);
    inputs.settings = std::move(settings);
    if (narrow_cache) { inputs.stack.storage.narrow_cache = *narrow_cache; }
    if (row_.max_batch) { inputs.settings.max_sequences = *row_.max_batch; }
    if (row_.max_batched_tokens) {
      inputs.settings.max_batched_tokens = *row_.max_batched_tokens;
      // Engines refuse prompts that are longer, unless they may be cut.
      if (*row_.isl > static_cast<double>(*row_.max_batched_tokens)) { inputs.settings.chunked_prefill = true; }
    }
    // vLLM 0.6 had this limit by default with chunked prefill, and refused one below the longest sequence without it.
    if (settings_.name == "vllm-v0" && row_.max_batched_tokens == 512) {
      inputs.settings.scheduler = serving::Scheduler::mixed;
      inputs.settings.chunked_prefill = true;
    }
    inputs.job.precision = *precision;
    inputs.job.formats.weights = stored_format(row_.precision, *precision);
    inputs.job.formats.quantized = quantized_of(row_);
    inputs.degrees = degrees;
    if (row_.load_kind == "static_batch" || row_.load_kind == "burst" || row_.load_kind == "saturated") {
      inputs.settings.prompt_host = inputs.settings.token_host = {};
    }
    inputs.prefill_only = inputs.name == "prefill";
    inputs.sends = row_.mode == "disagg";
    auto pool = serving::BuiltPool::build(std::move(inputs));
    if (!pool) { return pool.error().diagnostics.front().message; }
    deployment_.pools.push_back(std::move(*pool));
    return {};
  }

  std::string add_pools() {
    if (row_.mode == "disagg") { return add_disaggregated(); }
    if (!row_.mode.empty() && row_.mode != "agg" && row_.mode != "prefill_only") {
      return fmt::format("mode {} is not known; valid: agg, disagg, prefill_only", quote(row_.mode));
    }
    if (!row_.gpus) { return "not stated: gpus"; }
    if (*row_.gpus > kMostDevices) { return too_many("gpus", *row_.gpus); }
    std::int64_t replicas = row_.replicas.value_or(1), of_engine = *row_.gpus / std::max<std::int64_t>(1, replicas);
    if (!row_.tp && !row_.dp_attn && !row_.replicas) {
      const auto precision = precision_of(row_.precision, StackFacts{}, accelerator_);
      const double element = precision ? hardware::element_size(*precision).value() : 2.0;
      of_engine = usual_tp(deployment_.model, accelerator_, element, std::min<std::int64_t>(*row_.gpus, 8));
      replicas = *row_.gpus / of_engine;
    }
    if (row_.tp && !row_.dp_attn && !row_.replicas && *row_.tp * row_.pp.value_or(1) < of_engine) {
      of_engine = *row_.tp * row_.pp.value_or(1);
      replicas = *row_.gpus / of_engine;
    }
    share_ = std::max<std::int64_t>(1, replicas);
    return add_pool("engine", degrees_of(row_, of_engine, row_.tp, row_.ep, row_.dp_attn));
  }

  std::string add_disaggregated() {
    const std::int64_t p = row_.prefill_workers.value_or(0), d = row_.decode_workers.value_or(0);
    if (p < 1 || d < 1) { return "not stated: prefill_workers, decode_workers"; }
    if (std::max(p, d) > kMostDevices) { return too_many("workers of a pool", std::max(p, d)); }
    const auto gpus = [](std::optional<std::int64_t> all, std::optional<std::int64_t> tp, std::int64_t workers) {
      return all ? std::max<std::int64_t>(1, *all / workers) : tp.value_or(1);
    };
    auto prefill = degrees_of(row_, gpus(row_.prefill_gpus, row_.prefill_tp, p), row_.prefill_tp, row_.prefill_ep,
                              row_.prefill_dp_attn);
    prefill.replicas = p;
    if (auto reason = add_pool("prefill", prefill); !reason.empty()) { return reason; }
    auto decode = degrees_of(row_, gpus(row_.decode_gpus, row_.decode_tp, d), row_.decode_tp, row_.decode_ep,
                             row_.decode_dp_attn);
    decode.replicas = d;
    if (auto reason = add_pool("decode", decode); !reason.empty()) { return reason; }
    deployment_.fleet.routing = routing_of(row_);
    deployment_.fleet.transfer = serving::transfer_of(*deployment_.pools.front(), *deployment_.pools.back());
    return {};
  }

  // Of one replica of several: its part of the load.
  Skippable<RowLoad> load_of_row() const {
    serving::LoadOptions options;
    const auto whole = [](double value) { return std::max<std::int64_t>(1, std::llround(value)); };
    options.input = whole(*row_.isl);
    options.output = whole(*row_.osl);
    if (row_.length_dist.starts_with("uniform[0.8")) { options.range = 0.8; }
    const RepeatedPrompts repeated = repeated_prompts(row_);
    if (repeated.prompts > 0) {
      options.prefix_groups = repeated.prompts;
      options.prefixes_in_turn = true;
      options.prefix_tokens = options.input;
    }
    const bool is_mean = row_.length_dist.find("mean") != std::string::npos ||
                         row_.length_dist.find("ShareGPT") != std::string::npos ||
                         row_.length_dist.find("OpenOrca") != std::string::npos;
    constexpr double kUsualSpread = 0.7;  // of lengths of data sets, unverified
    if (is_mean) { options.length_cv = kUsualSpread; }
    options.fixed_input = row_.length_dist.starts_with("input fixed");
    options.fixed_output = row_.length_dist.starts_with("CNN-DailyMail");  // nearly all end at the limit of 128
    const double load = row_.load.value_or(0.0) / static_cast<double>(share_);
    constexpr std::int64_t kPerClient = 10, kOffline = 3000;
    const std::int64_t before = repeated.before / share_;
    if (row_.load_kind == "concurrency") {
      options.clients = whole(load);
      options.requests = row_.num_requests
                             ? whole(static_cast<double>(*row_.num_requests) / static_cast<double>(share_))
                             : kPerClient * options.clients;
      options.requests += before;
    } else if (row_.load_kind == "static_batch" || row_.load_kind == "burst") {
      options.requests = whole(load);
    } else if (row_.load_kind == "poisson_rate") {
      options.rate = load;
      options.requests =
          row_.num_requests ? whole(static_cast<double>(*row_.num_requests) / static_cast<double>(share_)) : kOffline;
    } else if (row_.load_kind == "offline" || row_.load_kind == "saturated") {
      options.requests = kOffline;
    } else {
      return skip(fmt::format("load_kind {} is not modelled", row_.load_kind));
    }
    if (!row_.load && row_.load_kind != "offline" && row_.load_kind != "saturated") { return skip("not stated: load"); }
    RowLoad made{serving::generated(options)};
    made.warm_up = static_cast<double>(before) / static_cast<double>(options.requests);
    return made;
  }

  const ServingRow row_;
  const std::string& data_directory_;
  hardware::Catalogue catalogue_;
  const MachineFacts* machine_ = nullptr;
  hardware::Accelerator accelerator_;
  serving::EngineSettings settings_;
  serving::Deployment deployment_;
  std::int64_t share_ = 1;
};

}  // namespace

std::span<const Field<ServingRow>> serving_fields() { return kFields; }
std::span<const ServingMetric> serving_metrics() { return kMetrics; }

// Ranges of throughput are those of closed loops: an open one below saturation has the throughput that arrives.
std::string_view spread_of(const ServingMetric& metric, const ServingRow& row) {
  const bool closed = row.load_kind == "concurrency";
  return metric.spread == "serving throughput" && !closed ? std::string_view() : metric.spread;
}

Skippable<Serving> served(const ServingRow& row, const std::string& data_directory) {
  return RowRun(row, data_directory).run();
}

}  // namespace orrery::validate
