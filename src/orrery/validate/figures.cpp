#include "orrery/validate/figures.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "orrery/campaign/expenses.hpp"
#include "orrery/campaign/setting.hpp"
#include "orrery/campaign/wide_area.hpp"
#include "orrery/estimate/estimator.hpp"
#include "orrery/validate/commands.hpp"
#include "orrery/validate/rules.hpp"
#include "orrery/validate/spelling.hpp"
#include "orrery/workload/model.hpp"

namespace orrery::validate {

namespace {

using Run = CampaignColumns;
using Wan = WanColumns;

const std::array kRun = {
    Field<Run>{"kind", &Run::family, true},
    Field<Run>{"model", &Run::model, true},
    Field<Run>{"params_b", &Run::params_b},
    Field<Run>{"active_params_b", &Run::active_params_b},
    Field<Run>{"tokens_b", &Run::tokens_b},
    Field<Run>{"accelerator", &Run::accelerator, true},
    Field<Run>{"devices", &Run::devices},
    Field<Run>{"gpu_hours", &Run::gpu_hours},
    Field<Run>{"gpu_hours_basis", &Run::gpu_hours_basis},
    Field<Run>{"energy_mwh", &Run::energy_mwh},
    Field<Run>{"energy_basis", &Run::energy_basis},
    Field<Run>{"power_w_per_device", &Run::power_w},
    Field<Run>{"pue", &Run::pue},
    Field<Run>{"g_per_kwh", &Run::g_per_kwh},
    Field<Run>{"carbon_basis", &Run::carbon_basis},
    Field<Run>{"mfu", &Run::mfu},
};

const std::array kWan = {
    Field<Wan>{"method", &Wan::family, true},     Field<Wan>{"metric", &Wan::metric, true},
    Field<Wan>{"params_b", &Wan::params_b},       Field<Wan>{"step_s", &Wan::step_s},
    Field<Wan>{"inner_steps", &Wan::inner_steps}, Field<Wan>{"bits_per_param", &Wan::bits_per_param},
    Field<Wan>{"replicas", &Wan::replicas},       Field<Wan>{"bandwidth_gbps", &Wan::bandwidth_gbps},
    Field<Wan>{"outer_s", &Wan::outer_s},         Field<Wan>{"id", &Wan::run},
};

// Hours with links of any speed, and a model of 24 layers in fragments of 3 whose exchange one step hides
// (arXiv:2501.18512, table 1, sections 3.2.2 and 3.3); the step of the 1B model (arXiv:2502.12996, table 4 of its
// appendix, same simulator).
constexpr std::string_view kStreaming = "arXiv:2501.18512, table 1 and section 3.2.2; arXiv:2502.12996, appendix";
constexpr std::array kCompute = {
    PublishedCompute{"streaming-1b-25b-", 0.67, 0.1, 8, kStreaming},
    PublishedCompute{"streaming-1b-250b-", 6.75, 0.1, 8, kStreaming},
};

constexpr std::array<std::string_view, 3> kMetrics = {"gpu_hours", "energy_mwh", "carbon_t"};

// Flags as their publications state them; what they leave open is chosen as `orrery estimate` chooses it.
constexpr std::array kPlans = {
    // Two stages: 8,192 tokens, then six lengths up to 131,072 for 800 G tokens. How many tokens have which length is
    // not published: all are priced at the longest, the most hours that they can take. The placement is the published
    // order of ranks, tp, cp, pp, dp: stages are inside a pod.
    PublishedPlan{
        "llama-3.1-405b",
        "--model llama-3.1-405b --cluster meta-24k-roce --stack llama3 --devices 16384 --global-batch 2048 --seq 8192 "
        "--tp 8 --pp 16 --vpp 8 --micro-batch 1 --zero 2 --recompute none --sequence-parallel --embedding-as-layer "
        "--head-as-layer --placement tp=0,pp=1",
        "arXiv:2407.21783, table 4 and sections 3.3.2 and 3.4.1"},
    PublishedPlan{
        "llama-3.1-405b",
        "--model llama-3.1-405b --cluster meta-24k-roce --stack llama3 --devices 16384 --global-batch 128 --seq 131072 "
        "--tp 8 --cp 16 --pp 16 --vpp 8 --micro-batch 1 --zero 2 --recompute none --sequence-parallel "
        "--embedding-as-layer --head-as-layer --placement tp=0,pp=1",
        "arXiv:2407.21783, table 4 and section 3.4.2", 800.0},
    PublishedPlan{
        "deepseek-v3",
        "--model deepseek-v3-mtp --cluster hgx-h800 --stack hai-llm --devices 2048 --global-batch 15360 --seq 4096 "
        "--precision fp8 --pp 16 --ep 64 --micro-batch 1 --schedule dualpipe",
        "arXiv:2412.19437, sections 3.2 and 4.2"},
    PublishedPlan{"bloom",
                  "--model bloom-176b --cluster jean-zay-a100 --stack megatron-deepspeed --devices 384 --global-batch "
                  "2048 --seq 2048 "
                  "--tp 4 --pp 12 --micro-batch 2 --zero 1 --recompute full --embedding-as-layer --head-as-layer "
                  "--gradient-precision fp32 --reduce-precision fp32",
                  "arXiv:2211.05100, section 3.4; layers at the ends, gradients added in fp32: "
                  "bigscience-workshop/bigscience train/tr11-176B-ml/chronicles-prequel.md (Rebalancing layers), read "
                  "2026-11"},
    PublishedPlan{
        "mpt-7b",
        "--model mpt-7b --cluster dgx-a100-40gb --stack fsdp --devices 440 --global-batch 1760 --seq 2048 --zero 3 "
        "--recompute full",
        "FULL_SHARD with activation checkpointing: mosaicml/llm-foundry "
        "scripts/train/yamls/pretrain/mpt-7b.yaml@15fb4ffaa6; "
        "unverified: the batch, from memory"},
    PublishedPlan{
        "smollm3-3b",
        "--model smollm3-3b --cluster aws-p5 --stack nanotron --devices 384 --global-batch 576 --seq 4096 --tp 2 "
        "--micro-batch 3 --zero 0 --recompute none --sequence-parallel",
        "junzheyi/smollm text/pretraining/smollm3/stage1_8T.yaml@28490d016e, a copy of huggingface/smollm"},
    // Pythia: data on /fsx (Amazon FSx) and A100s of 40 GB: instances p4d, whose nodes have 400 Gb/s of network.
    PublishedPlan{
        "pythia-70m",
        "--model pythia-70m --cluster aws-p4d --stack megatron-deepspeed --devices 32 --global-batch 1024 --seq 2048 "
        "--precision fp16 --tp 1 --micro-batch 32 --zero 1 --recompute full --dp-overlap",
        "EleutherAI/pythia models/70M/pythia-70m.yml@ae1ce75d43"},
    PublishedPlan{"pythia-410m",
                  "--model pythia-410m --cluster aws-p4d --stack gpt-neox --devices 32 --global-batch 1024 --seq 2048 "
                  "--precision fp16 --tp 1 --micro-batch 32 --zero 1 --recompute full",
                  "EleutherAI/pythia models/410M/pythia-410m.yml@ddad623a93"},
    PublishedPlan{"pythia-1.4b",
                  "--model pythia-1.4b --cluster aws-p4d --stack gpt-neox --devices 64 --global-batch 1024 --seq 2048 "
                  "--precision fp16 --tp 1 --micro-batch 16 --zero 1 --recompute full",
                  "EleutherAI/pythia models/1.4B/pythia-1.4b.yml@4d0c901836"},
    PublishedPlan{"pythia-2.8b",
                  "--model pythia-2.8b --cluster aws-p4d --stack gpt-neox --devices 64 --global-batch 1024 --seq 2048 "
                  "--precision fp16 --tp 1 --micro-batch 16 --zero 1 --recompute full",
                  "EleutherAI/pythia models/2.8B/pythia-2.8b.yml@2d898509f4"},
    PublishedPlan{"pythia-12b",
                  "--model pythia-12b --cluster aws-p4d --stack gpt-neox --devices 256 --global-batch 1024 --seq 2048 "
                  "--precision fp16 --tp 4 --micro-batch 8 --zero 1 --recompute full",
                  "EleutherAI/pythia models/12B/pythia-12b.yml@55e1182be2"},
};

// One plan for each stage of the run.
std::vector<const PublishedPlan*> plans_of(const std::string& model) {
  const std::string name = dashed(model);
  std::vector<const PublishedPlan*> stages;
  for (const auto& plan : kPlans) {
    if (name.starts_with(plan.model)) { stages.push_back(&plan); }
  }
  return stages;
}

bool says(const std::string& text, std::string_view words) { return text.find(words) != std::string::npos; }

// The share of useful time at usual failures and restarts.
double useful_share(const Run& run, campaign::Job job) {
  if (says(run.gpu_hours_basis, "no failures")) { return 1.0; }
  const double nodes =
      static_cast<double>(job.cluster.devices) / static_cast<double>(campaign::node_devices(job.cluster));
  job.estimate.devices = job.cluster.devices;
  const auto setting = campaign::setting_of(job, campaign::Spec{}, campaign::kUsualFailures, {nodes, 1.0, 0.0});
  return campaign::bar_of(setting).shares.useful;
}

constexpr double kMixedAdam = 14.0;  // bytes of a checkpoint per parameter: bf16 weights, fp32 master and moments

// Of one stage: `tokens` tokens by this plan.
Skippable<double> hours_of_stage(const Run& run, const PublishedPlan& plan, double tokens, const Parts& parts) {
  CommandRow command;
  command.args = "estimate " + std::string(plan.flags);
  auto scenario = scenario_of(command, parts);
  if (!scenario) { return skip(scenario.error()); }
  estimate::Estimator estimator(scenario->model, scenario->cluster, scenario->stack, scenario->job);
  campaign::Job job;
  job.estimate = estimator.estimate(scenario->plan);
  job.cluster = scenario->cluster;
  job.parameters = static_cast<double>(workload::parameter_count(scenario->model).total);
  job.bytes_per_parameter = kMixedAdam;
  const double steps = tokens / campaign::tokens_per_step(job, campaign::Spec{});
  const double hours = steps * job.estimate.step_time.value() * static_cast<double>(job.cluster.devices) / 3600.0;
  return hours / useful_share(run, job);
}

// Later stages have their published tokens, the first one the rest.
Skippable<double> hours_by_plan(const Run& run, const std::vector<const PublishedPlan*>& stages, const Parts& parts) {
  double first = *run.tokens_b * 1e9, hours = 0.0;
  for (const PublishedPlan* stage : stages) { first -= stage->tokens_b * 1e9; }
  if (!(first > 0.0)) { return skip("tokens_b is less than that of the later stages of the published plan"); }
  for (const PublishedPlan* stage : stages) {
    const double tokens = stage->tokens_b > 0.0 ? stage->tokens_b * 1e9 : first;
    const auto more = hours_of_stage(run, *stage, tokens, parts);
    if (!more) { return more; }
    hours += *more;
  }
  return hours;
}

Skippable<double> hours_by_mfu(const Run& run, const Parts& parts) {
  const MachineFacts* machine = machine_of(run.accelerator);
  if (machine == nullptr) { return skip(fmt::format("unknown accelerator {}", run.accelerator)); }
  if (!run.params_b) { return skip("params_b is not stated"); }
  const hardware::Catalogue catalogue(parts.data_directory);
  auto cluster = catalogue.cluster(std::string(machine->cluster), 0);
  if (!cluster) { return skip(cluster.error().text()); }
  const hardware::Accelerator& accelerator = cluster->accelerator;
  auto peak = accelerator.peak(hardware::Precision::bf16);
  if (!(peak > FlopsPerSecond(0))) { peak = accelerator.peak(hardware::Precision::fp16); }
  const double parameters = run.active_params_b.value_or(*run.params_b) * 1e9;
  const double flops = 6.0 * parameters * *run.tokens_b * 1e9;
  campaign::Job job;
  job.cluster = *cluster;
  job.cluster.devices = run.devices.value_or(cluster->node_size());
  job.parameters = *run.params_b * 1e9;
  job.bytes_per_parameter = kMixedAdam;
  job.estimate.plan.set("dp", std::int64_t{1});
  return flops / (peak.value() * *run.mfu) / 3600.0 / useful_share(run, std::move(job));
}

Skippable<double> hours(const Run& run, const Parts& parts) {
  if (!run.tokens_b) { return skip("tokens_b is not stated"); }
  // A published MFU is a measurement of the run: it is used only where no plan is published that predicts the step.
  if (const auto stages = plans_of(run.model); !stages.empty()) { return hours_by_plan(run, stages, parts); }
  if (run.mfu) { return hours_by_mfu(run, parts); }
  return skip("neither a plan nor an MFU is published");
}

Skippable<double> energy_mwh(const Run& run, const Parts& parts) {
  if (!run.power_w) { return skip("power_w_per_device is not stated"); }
  auto count = run.gpu_hours ? Skippable<double>(*run.gpu_hours) : hours(run, parts);
  if (!count) { return count; }
  const double pue = says(run.energy_basis, "no PUE") ? 1.0 : run.pue.value_or(1.0);
  return campaign::site_energy_J(*count, *run.power_w, pue) / 3.6e9;
}

Skippable<double> carbon_t(const Run& run, const Parts& parts) {
  if (!run.g_per_kwh) { return skip("g_per_kwh is not stated"); }
  auto energy = run.energy_mwh ? Skippable<double>(*run.energy_mwh) : energy_mwh(run, parts);
  if (!energy) { return energy; }
  const bool adds_pue = says(run.carbon_basis, "PUE") && says(run.energy_basis, "no PUE");
  return *energy * *run.g_per_kwh / 1000.0 * (adds_pue ? run.pue.value_or(1.0) : 1.0);
}

Skippable<double> figure(const Run& run, const std::string& metric, const Parts& parts) {
  if (metric == "gpu_hours") { return hours(run, parts); }
  if (metric == "energy_mwh") { return energy_mwh(run, parts); }
  return carbon_t(run, parts);
}

// The least point of the grid 10^(-1 + 4 k/49) Gb/s that is at least `gbps`.
double on_grid(double gbps) {
  constexpr double kSteps = 49.0, kDecades = 4.0;
  const double k = std::ceil((std::log10(gbps) + 1.0) * kSteps / kDecades - 1e-9);
  return std::pow(10.0, -1.0 + std::clamp(k, 0.0, kSteps) * kDecades / kSteps);
}

Skippable<double> utilization_pct(const Wan& wan) {
  if (!wan.step_s || !wan.inner_steps) { return skip("step_s or inner_steps is not stated"); }
  const Seconds work(*wan.step_s * static_cast<double>(*wan.inner_steps));
  if (wan.outer_s) { return 100.0 * campaign::compute_utilization(work, Seconds(*wan.outer_s), Seconds(0)); }
  if (!wan.bandwidth_gbps || !wan.params_b || !wan.bits_per_param || !wan.replicas) {
    // An exchange whose time is not stated, on links that are not: none, as in runs at one site.
    return 100.0;
  }
  const Seconds exchange = campaign::exchange_time(campaign::Aggregate::ring, *wan.replicas,
                                                   Bytes(*wan.params_b * 1e9 * *wan.bits_per_param / 8.0),
                                                   BytesPerSecond(*wan.bandwidth_gbps * 1e9 / 8.0));
  return 100.0 * campaign::compute_utilization(work, exchange, Seconds(0));
}

// Compute, and what it does not hide of the exchanges: of all bits of a step with two thirds of a step (its backward
// pass), or of each fragment with one step.
Skippable<double> hours_at_1gbps(const Wan& wan) {
  const auto found =
      std::find_if(kCompute.begin(), kCompute.end(), [&](const auto& one) { return wan.run.starts_with(one.id); });
  if (found == kCompute.end()) { return skip("the time of compute is neither in the table nor known of this run"); }
  if (!wan.params_b || !wan.inner_steps) { return skip("params_b or inner_steps is not stated"); }
  constexpr double kGradientBits = 16.0, kHour = 3600.0;
  const bool synchronous = *wan.inner_steps == 1;
  const double bits = wan.bits_per_param.value_or(kGradientBits);
  const Seconds exchange = Bytes(*wan.params_b * 1e9 * bits / 8.0) / BytesPerSecond(1e9 / 8.0);
  const Seconds step(found->step_s);
  const Seconds exposed = synchronous ? campaign::exposed_exchange(exchange, 1, step * campaign::kScalingLawOverlap)
                                      : campaign::exposed_exchange(exchange, found->fragments, step);
  const double rounds = found->hours * kHour / (found->step_s * static_cast<double>(*wan.inner_steps));
  return found->hours + rounds * exposed.value() / kHour;
}

Skippable<double> figure(const Wan& wan, const std::string& metric, const Parts&) {
  constexpr std::string_view kBandwidth = "gbps_for_cu_";
  if (metric == "compute_utilization_pct") { return utilization_pct(wan); }
  if (metric.starts_with(kBandwidth)) {
    const auto percent = number(std::string_view(metric).substr(kBandwidth.size()));
    if (!percent || *percent <= 0.0 || *percent >= 100.0) { return skip("metric: no utilization in its name"); }
    if (!wan.step_s || !wan.inner_steps || !wan.params_b) {
      return skip("params_b, step_s or inner_steps is not stated");
    }
    const Seconds step(*wan.step_s);
    const auto rate = campaign::bandwidth_for(*percent / 100.0, step * static_cast<double>(*wan.inner_steps),
                                              step * campaign::kScalingLawOverlap,
                                              Bytes(*wan.params_b * 1e9 * campaign::kScalingLawBits / 8.0));
    return on_grid(rate.value() * 8.0 / 1e9);
  }
  if (metric == "hours_at_1gbps") { return hours_at_1gbps(wan); }
  if (metric == "hours_to_equal_perplexity") {
    return skip(
        "the share of compute in these hours is not published; docs/models/campaign.md has the saving by share");
  }
  return skip(fmt::format("metric {}: its steps, tokens or loss are not in the table", metric));
}

}  // namespace

std::span<const Field<CampaignColumns>> campaign_fields() { return kRun; }
std::span<const Field<WanColumns>> wan_fields() { return kWan; }
std::span<const std::string_view> campaign_metrics() { return kMetrics; }
std::span<const PublishedPlan> published_plans() { return kPlans; }
std::span<const PublishedCompute> published_compute() { return kCompute; }

Skippable<FigureScenario> scenario_of(const FigureRow& row, const Parts& parts) {
  if (!row.unreadable.empty()) { return skip(row.unreadable); }
  const auto value = std::visit([&](const auto& of) { return figure(of, row.metric, parts); }, row.of);
  if (!value) { return tl::make_unexpected(value.error()); }
  return FigureScenario{*value, {}};
}

}  // namespace orrery::validate
