#include "orrery/serving/deployment.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "orrery/config/units_text.hpp"
#include "orrery/core/integers.hpp"
#include "orrery/core/text.hpp"
#include "orrery/hardware/expenses.hpp"
#include "orrery/parallel/plan_checker.hpp"
#include "orrery/serving/series.hpp"
#include "orrery/serving/slo_watch.hpp"
#include "orrery/serving/summary.hpp"
#include "orrery/serving/token_time.hpp"
#include "orrery/workload/records.hpp"

namespace orrery::serving {

namespace {

// A transfer of keys and values reaches this part of the links' payload rate; setting one up takes this long.
constexpr double kTransferRate = 0.8;

}  // namespace

parallel::Plan BuiltPool::plan() const {
  const Degrees& d = inputs_.degrees;
  parallel::Plan plan;
  plan.tp = d.tp;
  plan.pp = d.pp;
  plan.dp = d.attention_dp;
  plan.ep = d.ep;
  plan.micro_batch = 1;
  if (!inputs_.model->has_experts()) { plan.ep = 1; }
  // Ranks of attention that do not hold different experts hold slices of them.
  if (inputs_.model->has_experts()) { plan.etp = std::max<std::int64_t>(1, d.tp * d.attention_dp / plan.ep); }
  return plan;
}

Result<std::unique_ptr<BuiltPool>> BuiltPool::build(PoolInputs inputs) {
  // No prompts interrupt decode steps there: requests whose keys and values have arrived join the next one.
  const bool joins = inputs.name == "decode" && inputs.settings.scheduler == Scheduler::prefill_first;
  if (joins) { inputs.settings.scheduler = Scheduler::mixed; }
  if (inputs.settings.scheduler != Scheduler::static_batch) {  // those are priced as estimates are
    inputs.settings = with_slower_host(std::move(inputs.settings), inputs.cluster.host_slowdown);
    inputs.stack.host.launch_time *= inputs.cluster.host_slowdown;
  }
  std::unique_ptr<BuiltPool> pool(new BuiltPool(std::move(inputs)));
  if (auto ok = pool->finish(); !ok) { return tl::make_unexpected(ok.error()); }
  return pool;
}

// A copy of an expert takes its part of the expert's tokens: the ranks hold and compute as if there were so many
// experts more. Only the router's columns do not grow in truth.
void BuiltPool::place_experts() {
  const std::int64_t count = inputs_.model->experts.count, ep = std::max<std::int64_t>(1, inputs_.degrees.ep);
  if (!inputs_.model->has_experts() || ep == 1) { return; }
  const std::int64_t held = (count + inputs_.settings.redundant_experts + ep - 1) / ep * ep;
  redundant_experts_ = held - count;
  if (redundant_experts_ == 0) { return; }
  placed_ = *inputs_.model;
  placed_->experts.count = held;
  inputs_.model = &*placed_;
}

// A problem of the plan, with the flag of the pool.
Diagnostic BuiltPool::in_terms_of_pool(Diagnostic problem) const {
  std::string& flag = problem.place.path;
  if (flag == "--dp") { flag = "--attention-dp"; }
  if (flag == "--etp") {
    flag = "--ep";
    problem.message = "slices of experts (tp x attention-dp / ep): " + problem.message;
  }
  const PoolInputs& in = inputs_;
  const bool is_own = (flag == "--tp" && in.has_own_tp) || (flag == "--ep" && in.has_own_ep) ||
                      (flag == "--attention-dp" && in.has_own_attention_dp);
  if (is_own) { flag.insert(2, "prefill-"); }
  return problem;
}

// What needs no price: the model, the number format, and ranks that experts can be shared out to.
Result<void> BuiltPool::check() const {
  const PoolInputs& in = inputs_;
  if (in.model->is_recommender() || in.model->encoder_layers > 0 || !in.model->has_attention()) {
    return fail({{}, 0, 0, "--model"}, fmt::format("{} is not a decoder that generates tokens", in.model->name));
  }
  if (!(in.cluster.accelerator.peak(in.job.precision) > FlopsPerSecond(0))) {
    return fail({{}, 0, 0, "--precision"}, fmt::format("{} has no {} matrix units", in.cluster.accelerator.name,
                                                       quote(std::string(hardware::name_of(in.job.precision)))));
  }
  const std::int64_t ranks = in.degrees.tp * in.degrees.attention_dp, ep = in.degrees.ep;
  if (in.model->has_experts() && ranks % ep != 0) {
    return tl::make_unexpected(Failure{{in_terms_of_pool(
        {{{}, 0, 0, "--ep"},
         fmt::format("\"{}\" does not divide the {} ranks of an engine (tp x attention-dp); nearest valid: {}", ep,
                     ranks, parallel::nearest_divisors(ranks, ep))})}});
  }
  return {};
}

Result<void> BuiltPool::finish() {
  // With experts, engines compute all tokens on every rank of a tensor-parallel group, and add the parts.
  if (inputs_.model->has_experts() && inputs_.degrees.tp > 1) { inputs_.stack.dispatch.replicated_tokens = true; }
  if (auto ok = check(); !ok) { return ok; }
  place_experts();
  if (auto ok = add_price(); !ok) { return ok; }
  if (auto ok = add_cache(); !ok) { return ok; }
  const EngineSettings& settings = inputs_.settings;
  shape_.prompt_host = ticks_of(settings.prompt_host);
  shape_.tokenizer_batch = settings.tokenizer_batch;
  shape_.token_host = inputs_.prefill_only ? 0 : ticks_of(stream_time(settings));
  shape_.step_host = ticks_of(settings.step_host);
  shape_.decode_host = ticks_of(settings.step_host / tokens_per_step(settings));
  shape_.prefill_only = inputs_.prefill_only;
  shape_.transfer_host = inputs_.prefill_only ? ticks_of(transfer_host()) : 0;
  if (auto ok = add_tiers(); !ok) { return ok; }
  if (settings.preemption == Preemption::swap) {
    const auto& tier = inputs_.cluster.second_tier;
    if (!(tier.bandwidth > BytesPerSecond(0))) {
      return fail({{}, 0, 0, "--preemption"},
                  fmt::format("swap needs host memory, and cluster {} states none", quote(inputs_.cluster.name)));
    }
    const bool frees = shape_.windows.groups > 0;
    shape_.swap_token = ticks_of((frees ? memory_.kv_without_windows : memory_.kv_per_token) / tier.rate());
    if (frees) { shape_.swap_window_token = ticks_of(memory_.kv_in_windows / tier.rate()); }
  }
  return {};
}

// Every accelerator of an engine loads its part of a block, over its own host link or over the outermost links. The
// remote tier is a store of the fleet; here it has a rate and no size.
Result<void> BuiltPool::add_tiers() {
  const PoolInputs& in = inputs_;
  const auto& [host, remote] = in.tiers;
  if (!(host.size > Bytes(0)) && !(remote.size > Bytes(0))) { return {}; }
  if (!in.settings.prefix_cache) {
    return fail({{}, 0, 0, host.size > Bytes(0) ? "--host-cache" : "--remote-cache"}, "needs the prefix cache");
  }
  const auto& dimension = in.cluster.dimensions.back();
  const std::array<BytesPerSecond, kTiers> usual = {in.cluster.second_tier.rate(),
                                                    dimension.rate() * dimension.link.efficiency};
  for (std::size_t k = 0; k < kTiers; ++k) {
    const auto& tier = in.tiers[k];
    const BytesPerSecond rate = tier.bandwidth.value_or(usual[k]);
    if (tier.size > Bytes(0) && !(rate > BytesPerSecond(0))) {
      return fail({{}, 0, 0, "--host-cache-bandwidth"},
                  fmt::format("is missing: cluster {} states no host memory", quote(in.cluster.name)));
    }
    CacheTier made;
    if (tier.size > Bytes(0)) {
      const bool is_host = k == 0;
      made.tokens = is_host ? static_cast<std::int64_t>(tier.size / memory_.kv_per_token) * shape_.ranks : 0;
      made.token = ticks_of(memory_.kv_per_token / rate);
      made.latency = ticks_of(tier.latency);
    }
    shape_.tiers.push_back(made);
  }
  return {};
}

results::ServingPool BuiltPool::described() const {
  const Degrees& d = inputs_.degrees;
  results::ServingPool pool;
  pool.name = inputs_.name;
  pool.engine = inputs_.settings.name;
  pool.accelerator = inputs_.cluster.accelerator.name;
  pool.replicas = d.replicas;
  pool.gpus = d.gpus();
  pool.redundant_experts = redundant_experts_;
  pool.overlaps_batches = overlaps(true) || overlaps(false);
  pool.blocks = shape_.blocks;
  pool.block_tokens = inputs_.settings.block_tokens;
  pool.longest = accepted_tokens();
  pool.window_blocks = shape_.windows.groups * shape_.windows.most;
  pool.max_sequences = inputs_.settings.max_sequences;
  pool.memory_use = inputs_.settings.memory_use;
  std::vector<std::string> parts = {fmt::format("tp {}", d.tp)};
  if (d.pp > 1) { parts.push_back(fmt::format("pp {}", d.pp)); }
  if (d.attention_dp > 1) { parts.push_back(fmt::format("attention dp {}", d.attention_dp)); }
  if (inputs_.model->has_experts()) { parts.push_back(fmt::format("ep {}", d.ep)); }
  if (redundant_experts_ > 0) { parts.push_back(fmt::format("redundant experts {}", redundant_experts_)); }
  if (pool.overlaps_batches) { parts.emplace_back("two-batch overlap"); }
  pool.plan = join(parts, ", ");
  return pool;
}

std::vector<Pool> Deployment::fleet_pools() const {
  std::vector<Pool> list;
  for (const auto& pool : pools) { list.push_back(pool->pool()); }
  if (list.size() > 1) {
    list.front().autoscale = prefill_autoscale;
    list.back().shape.keeps_sent = fleet.transfer.layers == 0;
  }
  list.back().autoscale = autoscale;
  return list;
}

std::int64_t Deployment::gpus() const {
  std::int64_t all = 0;
  for (const auto& pool : pools) { all += pool->inputs().degrees.gpus(); }
  return all;
}

Bytes whole_token_bytes(const BuiltPool& pool) {
  const Degrees& degrees = pool.inputs().degrees;
  const workload::Model& model = *pool.inputs().model;
  const Bytes stages = pool.memory().kv_of_stages;
  return model.latent.kv_rank > 0 ? stages : static_cast<double>(std::min(degrees.tp, model.kv_heads)) * stages;
}

void add_stage(Deployment& deployment, Stage stage, const hardware::Accelerator* named) {
  const BuiltPool& pool = *deployment.pools.front();
  const hardware::Cluster& cluster = pool.inputs().cluster;
  const bool is_store = stage.kind == StageKind::kv_retrieval;
  const bool is_core = stage.kind == StageKind::retrieve && stage.ef > 0;  // a server is a core of a host
  const bool states_rates = stage.bandwidth > BytesPerSecond(0) || stage.flops > FlopsPerSecond(0);
  std::optional<StageMachine> machine;
  if (named != nullptr) {
    machine = {named->name, named->price_usd / (hardware::kWriteOffYears * hardware::kYear.value()), named->tdp_watts};
  } else if (!is_store && !is_core && stage.kind != StageKind::tool && !states_rates) {
    const auto cost = hardware::cost_rate(cluster), power = hardware::power(cluster);
    const auto devices = static_cast<double>(cluster.devices);
    machine = {cluster.accelerator.name, cost ? cost->value / devices : 0.0, power ? power->value / devices : 0.0};
  }
  if (is_store && !(stage.bandwidth > BytesPerSecond(0))) {
    const auto& dimension = cluster.dimensions.back();
    stage.bandwidth = dimension.rate() * dimension.link.efficiency;
  }
  const bool keeps_stated_rates = is_core && named == nullptr;
  deployment.stages.push_back(keeps_stated_rates
                                  ? std::move(stage)
                                  : on_machine(std::move(stage), named != nullptr ? *named : cluster.accelerator));
  deployment.stage_machines.push_back(std::move(machine));
  deployment.fleet.stations.push_back(station_of(deployment.stages.back(), whole_token_bytes(pool)));
}

// As many lanes as the smaller engine has ranks with keys and values of their own, over the outermost links. Copies of
// the same keys and values on other ranks travel at the same time.
TransferPolicy transfer_of(const BuiltPool& prefill, const BuiltPool& decode) {
  const Degrees &p = prefill.inputs().degrees, &d = decode.inputs().degrees;
  const auto rate_of = [](const BuiltPool& pool) {
    const auto& dimension = pool.inputs().cluster.dimensions.back();
    return dimension.rate().value() * dimension.link.efficiency * kTransferRate;
  };
  const bool latent = prefill.inputs().model->latent.kv_rank > 0;
  const double whole = whole_token_bytes(prefill).value();
  const std::int64_t heads = prefill.inputs().model->kv_heads, lanes = latent ? 1 : std::min({p.tp, d.tp, heads});
  const double rate = std::min(rate_of(prefill), rate_of(decode));
  TransferPolicy transfer;
  transfer.latency = ticks_of(prefill.inputs().settings.transfer_setup);
  transfer.token = ticks_of(Seconds(whole / (rate * real(lanes * p.pp))));
  transfer.layers = prefill.inputs().settings.transfer_by_layer ? prefill.inputs().model->layers : 0;
  const auto at_once = [&](const Degrees& of) { return of.attention_dp * (latent ? 1 : of.tp / lanes); };
  transfer.sends = at_once(p);
  transfer.receives = at_once(d);
  return transfer;
}

namespace {

Result<void> check_stage_times(const Deployment& deployment, const Workload& load) {
  std::int64_t longest = 1;
  for (const Request& request : load.requests) { longest = std::max(longest, request.input); }
  std::vector<Diagnostic> found;
  for (std::size_t k = 0; k < deployment.stages.size(); ++k) {
    const auto ok = check_time(deployment.stages[k], k, whole_token_bytes(*deployment.pools.front()), longest);
    if (!ok) { found.push_back(ok.error().diagnostics.front()); }
  }
  if (!found.empty()) { return tl::make_unexpected(Failure{std::move(found)}); }
  return {};
}

// Of a stage, if its servers are accelerators.
double machines_of(const Stage& stage) { return static_cast<double>(stage.queue_servers() * stage.shards); }

// Stages whose price or power is not known.
std::vector<std::string> stages_left_out(const Deployment& deployment) {
  std::vector<std::string> without, lines;
  for (std::size_t k = 0; k < deployment.stages.size(); ++k) {
    const auto& machine = deployment.stage_machines[k];
    if (!machine) { without.push_back(deployment.stages[k].name); }
    if (machine && machine->usd_per_second == 0) {
      lines.push_back(
          fmt::format("price of stage {}: that of {} is not known", deployment.stages[k].name, machine->accelerator));
    }
    if (machine && machine->watts == 0) {
      lines.push_back(fmt::format("energy of stage {}: the power of {} is not known", deployment.stages[k].name,
                                  machine->accelerator));
    }
  }
  if (!without.empty()) {
    lines.push_back(fmt::format("price and energy of stages that name no accelerator ({})", join(without, ", ")));
  }
  return lines;
}

void add_stage_results(results::Serving& result, const Deployment& deployment) {
  for (std::size_t k = 0; k < deployment.stages.size(); ++k) {
    const Stage& stage = deployment.stages[k];
    const auto& machine = deployment.stage_machines[k];
    results::ServingStage made;
    made.name = stage.name;
    made.kind = std::string(config::enum_name(stage.kind));
    made.place = std::string(config::enum_name(stage.place));
    made.servers = stage.queue_servers();
    if (machine && machine->usd_per_second > 0) { made.usd_per_second = machines_of(stage) * machine->usd_per_second; }
    if (machine && machine->watts > 0) { made.watts = machines_of(stage) * machine->watts; }
    result.stages.push_back(std::move(made));
  }
}

void name_formats(results::Serving& result, const workload::Model& model, const parallel::Job& job) {
  const workload::Formats& formats = job.formats;
  result.precision = hardware::name_of(job.precision);
  if (formats.weights) { result.weight_format = hardware::name_of(*formats.weights); }
  if (formats.cache) { result.kv_format = hardware::name_of(*formats.cache); }
  if (formats.attention) { result.attention_precision = hardware::name_of(*formats.attention); }
  if (workload::names_quantized(model, job.precision, formats)) {
    result.quantized = config::enum_name(formats.quantized);
  }
}

std::vector<std::string> not_modelled(const Deployment& deployment) {
  std::vector<std::string> list = {
      "sampling parameters; HTTP beyond a constant per request (5 to 100 ms under load)",
      "sequences of different lengths in one attention kernel (all take the mean length: below 5 %)",
      "generated tokens that later requests find in the prefix cache"};
  const auto has_ranks = [](const auto& pool) { return pool->inputs().degrees.attention_dp > 1; };
  if (std::any_of(deployment.pools.begin(), deployment.pools.end(), has_ranks)) {
    list.emplace_back("a cache for each rank of data-parallel attention (the ranks of an engine share one)");
  }
  if (deployment.model.sliding_window > 0) {
    const bool frees = deployment.pools.front()->shape().windows.groups > 0;
    list.push_back(frees
                       ? fmt::format("memory of prompt chunks behind sliding windows until their iteration ends (up to "
                                     "{:.0f} % of the cache)",
                                     100.0 * deployment.pools.front()->part_of_prompts())
                       : "eviction behind sliding windows: the cache keeps all positions of a sequence");
  }
  const auto is_even = [](const auto& pool) {
    return pool->inputs().settings.expert_imbalance == 1.0 || pool->inputs().degrees.ep == 1;
  };
  if (deployment.model.has_experts() && std::any_of(deployment.pools.begin(), deployment.pools.end(), is_even)) {
    list.emplace_back("skewed routing of experts (0 to 30 % of decode; with --ep above 1: --expert-imbalance)");
  }
  if (deployment.pools.size() > 1) {
    list.emplace_back("transfers that compete with collectives, or beyond the links of engines");
  }
  if (!deployment.stages.empty()) {
    list.emplace_back("transfers between stages over the network");
    const bool has_store = std::any_of(deployment.stages.begin(), deployment.stages.end(),
                                       [](const Stage& stage) { return stage.kind == StageKind::kv_retrieval; });
    if (has_store) {
      list.emplace_back(
          "blocks that a device has already and a store need not send; hits that depend on earlier requests");
    }
    for (std::string& line : stages_left_out(deployment)) { list.push_back(std::move(line)); }
  }
  bool tiers = false;
  for (const auto& pool : deployment.pools) { tiers = tiers || !pool->shape().tiers.empty(); }
  if (tiers) {
    list.emplace_back("writes to tiers on the links of engines; loads that compete with transfers and collectives");
  }
  if (deployment.autoscale.scales() || deployment.prefill_autoscale.scales()) {
    list.emplace_back("forecasts of the load, starts that fail; sessions that move when the number of engines changes");
  }
  return list;
}

}  // namespace

namespace {

// A warning where something is busy nearly all the time: "what" it does, how much of the time, and what follows.
void warn_if_busy(results::Serving& result, double part, const std::string& what, const std::string& follows) {
  constexpr double kBusy = 0.9;
  if (part < kBusy) { return; }
  result.warnings.push_back(fmt::format("{} {:.0f} % of the time{}", what, 100.0 * part, follows));
}

// How busy the servers of a pool's engines are: the first pool's with prompts, the last one's with answers.
void add_servers(results::Serving& result, std::size_t p, const PoolInputs& inputs, double tokenised_s,
                 double engines) {
  const EngineSettings& settings = inputs.settings;
  if (engines <= 0.0 || result.duration_s <= 0.0) { return; }
  results::ServingPool& pool = result.pools[p];
  pool.tokenising = tokenised_s / (engines * result.duration_s);
  if (p + 1 == result.pools.size()) {  // a pool before it has streamed the first tokens
    const double streamed = result.output_tokens_per_s - (p > 0 ? result.requests_per_s : 0.0);
    pool.streaming = stream_time(settings).value() * streamed / engines;
  }
  const double slowdown = inputs.cluster.host_slowdown;
  const std::string on_cluster =
      slowdown == 1.0 ? "" : fmt::format(", times host_slowdown {:g} of {}", slowdown, inputs.cluster.name);
  const auto warn = [&](double part, const char* what, const char* setting, Seconds host, const char* remedy) {
    warn_if_busy(result, part,
                 fmt::format("the server of {} {} tokens", engines > 1.0 ? "each engine" : "the engine", what),
                 fmt::format(" ({} {}{}): it limits the deployment, not the GPUs{}", setting,
                             config::format_seconds((1.0 / slowdown) * host), on_cluster, remedy));
  };
  warn(pool.tokenising, "encodes", "prompt_host", settings.prompt_host, "");
  warn(pool.streaming, "streams", "token_host", settings.token_host,
       "; it sends more tokens at a time with a larger --stream-interval");
}

// How busy the links of a pool's engines are with keys and values.
void add_links(results::Serving& result, std::size_t p, const TransferPolicy& transfer, double transferred_s,
               double engines) {
  if (result.pools.size() < 2 || engines <= 0.0 || result.duration_s <= 0.0) { return; }
  const double at_once = engines * real(p == 0 ? transfer.sends : transfer.receives);
  results::ServingPool& pool = result.pools[p];
  pool.transferring = transferred_s / (at_once * result.duration_s);
  const char* const does = p == 0 ? "send" : "receive";
  warn_if_busy(result, pool.transferring,
               fmt::format("the links of each {} engine {} keys and values", pool.name, does),
               ": they limit the deployment");
}

void add_store(results::Serving& result) {
  for (const auto& tier : result.tiers) {
    if (tier.tokens == 0) { continue; }  // nobody waits for what is written
    warn_if_busy(result, tier.busy.value_or(0.0), fmt::format("the {} store reads and writes", tier.name),
                 ": it limits the deployment");
  }
}

// Each basis once.
void add_basis(std::string& all, const std::string& kind) {
  if (all.find(kind) == std::string::npos) { all += (all.empty() ? "" : "; ") + kind; }
}

// Engines that were on, and what they cost.
void add_expenses(results::Serving& result, const Deployment& deployment, const std::vector<Pool>& pools,
                  const FleetRun& run) {
  constexpr double kHour = 3600.0;
  double usd = 0, watts = 0;  // usd: per second
  bool priced = true, powered = true;
  for (std::size_t p = 0; p < pools.size(); ++p) {
    results::ServingPool& pool = result.pools[p];
    const PoolInputs& inputs = deployment.pools[p]->inputs();
    auto engines = static_cast<double>(pools[p].replicas);
    if (pools[p].autoscale.scales()) {
      const AutoscaleTotals& totals = run.autoscaled[p];
      engines = result.duration_s > 0 ? totals.engine_seconds / result.duration_s : 0.0;
      pool.autoscale = results::ServingAutoscale{
          pools[p].autoscale.least, pools[p].replicas, totals.most, engines, totals.starts, totals.stops};
    }
    const double seconds = engines * result.duration_s;
    add_servers(result, p, inputs, run.tokenised_s[p], engines);
    add_links(result, p, deployment.fleet.transfer, run.transferred_s, engines);
    pool.gpu_hours = seconds * static_cast<double>(inputs.degrees.gpus_of_engine()) / kHour;
    const auto cost = hardware::cost_rate(inputs.cluster), power = hardware::power(inputs.cluster);
    if (cost) {
      pool.usd = cost->value * seconds;
      add_basis(result.price_basis, cost->kind);
    }
    if (power) { add_basis(result.power_basis, power->kind); }
    priced = priced && cost.has_value();
    powered = powered && power.has_value();
    usd += cost ? cost->value * engines : 0.0;
    watts += power ? power->value * engines : 0.0;
  }
  for (const auto& stage : result.stages) {
    usd += stage.usd_per_second.value_or(0.0);
    watts += stage.watts.value_or(0.0);
  }
  const double rate = result.output_tokens_per_s;
  if (priced && rate > 0) { result.usd_per_million_tokens = usd / rate * 1e6; }
  if (powered && rate > 0) { result.joules_per_token = watts / rate; }
}

// Of the files of the model and the clusters, and of the pools' memory; each once.
void add_warnings(results::Serving& result, const Deployment& deployment) {
  const auto add = [&](std::string warning) {
    const auto& known = result.warnings;
    if (warning.empty() || std::find(known.begin(), known.end(), warning) != known.end()) { return; }
    result.warnings.push_back(std::move(warning));
  };
  for (const std::string& warning : deployment.model.warnings) { add(warning); }
  for (const auto& pool : deployment.pools) {
    const PoolInputs& in = pool->inputs();
    add(workload::checkpoint_warning(deployment.model, in.job.precision, in.job.formats));
    for (std::string& warning : hardware::warnings_of(in.cluster)) { add(std::move(warning)); }
    for (std::string& warning : pool->memory_warnings()) { add(std::move(warning)); }
    add(pool->slice_warning());
  }
}

results::Serving result_of(const Deployment& deployment, const Workload& load, const std::vector<Pool>& pools,
                           const FleetRun& run, const std::vector<results::ServiceLevel>& slo,
                           const SummaryOptions& options) {
  results::Serving result;
  result.model = deployment.model.name;
  name_formats(result, deployment.model, deployment.pools.front()->inputs().job);
  result.sessions = !load.following.empty();
  if (result.sessions) {
    const auto first = std::ranges::count_if(load.following, [](const Following& f) { return f.waits_for == 0; });
    result.requests_per_session = real(load.arriving()) / real(std::max<std::int64_t>(1, first));
  }
  result.cluster = deployment.pools.back()->inputs().cluster.name;
  result.gpus = deployment.gpus();
  result.slo = slo;
  for (const auto& pool : deployment.pools) { result.pools.push_back(pool->described()); }
  add_stage_results(result, deployment);
  if (deployment.fleet.admission.refuses()) { result.refused = run.refused; }
  summarise(result, load, pools, run, options);
  add_expenses(result, deployment, pools, run);
  add_store(result);
  add_warnings(result, deployment);
  result.not_modelled = not_modelled(deployment);
  if (load.branches > 1) {
    result.not_modelled.emplace_back("branches that fork from each other (trees, beam search)");
  }
  return result;
}

// A client waits for the time of a request outside the engines, too.
FleetOptions options_of(const Deployment& deployment) {
  FleetOptions options = deployment.fleet;
  options.reply = ticks_of(Seconds(deployment.request_overhead_s));
  return options;
}

}  // namespace

Result<results::Serving> simulate(const Deployment& deployment, Workload& load,
                                  const std::vector<results::ServiceLevel>& slo, double warm_up, bool each) {
  if (auto ok = check_stage_times(deployment, load); !ok) { return tl::make_unexpected(ok.error()); }
  const std::vector<Pool> pools = deployment.fleet_pools();
  auto run = run_fleet(load, pools, options_of(deployment));
  if (!run) { return tl::make_unexpected(run.error()); }
  results::Serving result = result_of(deployment, load, pools, *run, slo,
                                      {warm_up, deployment.request_overhead_s, each, deployment.fleet.stations});
  result.token_time = token_time_of(deployment, load, *run);
  result.series = series_of(load, result.pools, *run, deployment.request_overhead_s);
  return result;
}

Result<WatchedRun> simulate_watched(const Deployment& deployment, Workload& load,
                                    const std::vector<results::ServiceLevel>& slo, double warm_up,
                                    bool stops_when_missed) {
  if (auto ok = check_stage_times(deployment, load); !ok) { return tl::make_unexpected(ok.error()); }
  const std::vector<Pool> pools = deployment.fleet_pools();
  SloWatch watch(slo, load, warm_up, deployment.request_overhead_s);
  FleetOptions options = options_of(deployment);
  if (stops_when_missed && !options.admission.refuses() && load.branches <= 1) {
    options.stops_after = [&watch](std::int64_t request, const Outcome& outcome) {
      return watch.is_missed_with(request, outcome);
    };
  }
  auto run = run_fleet(load, pools, options);
  if (!run) { return tl::make_unexpected(run.error()); }
  WatchedRun watched;
  auto engine = run->engines.begin();
  for (const Pool& pool : pools) {
    Headroom& headroom = watched.headroom.emplace_back();
    for (std::int64_t i = 0; i < pool.replicas; ++i) { headroom.add((engine++)->headroom); }
  }
  if (run->stopped) { return watched; }
  watched.result = result_of(deployment, load, pools, *run, slo,
                             {warm_up, deployment.request_overhead_s, false, deployment.fleet.stations});
  watched.result->token_time = token_time_of(deployment, load, *run);
  return watched;
}

}  // namespace orrery::serving
