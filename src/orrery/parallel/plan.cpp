#include "orrery/parallel/plan.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "orrery/core/text.hpp"
#include "orrery/parallel/mesh.hpp"
#include "orrery/parallel/plan_checker.hpp"
#include "orrery/parallel/plan_degrees.hpp"
#include "orrery/parallel/plan_fields.hpp"

namespace orrery::parallel {

namespace {

// Whether tp cp pp dp = devices, without a product that could overflow: degrees are whatever a user typed.
bool fills(const Plan& plan, std::int64_t devices) {
  std::int64_t room = devices;
  for (const std::int64_t degree : {plan.tp, plan.cp, plan.pp}) {
    if (degree > room) { return false; }
    room /= degree;
  }
  return plan.dp <= room && plan.devices() == devices;
}

void check_degrees(PlanChecker& check, const Plan& plan) {
  const auto positive = [&](std::int64_t value, const char* flag) {
    check.require(value >= 1, flag, [&] { return fmt::format("\"{}\" is too small; valid: 1 or more", value); });
  };
  positive(plan.tp, "--tp");
  positive(plan.cp, "--cp");
  positive(plan.pp, "--pp");
  positive(plan.dp, "--dp");
  positive(plan.ep, "--ep");
  positive(plan.etp, "--etp");
  positive(plan.vpp, "--vpp");
  positive(plan.micro_batch, "--micro-batch");
  check.require(plan.zero >= 0 && plan.zero <= 3, "--zero",
                [&] { return fmt::format("\"{}\" is not a ZeRO stage; valid: 0, 1, 2, 3", plan.zero); });
  const auto not_negative = [&](std::int64_t value, const char* flag) {
    check.require(value >= 0, flag,
                  [&] { return fmt::format("\"{}\" is negative; valid: 0 (the default) or more", value); });
  };
  not_negative(plan.shard, "--shard");
  not_negative(plan.recompute_layers, "--recompute-layers");
  not_negative(plan.first_stage_layers, "--first-stage-layers");
  not_negative(plan.last_stage_layers, "--last-stage-layers");
}

// A degree with its name; the flag is "--" and the name.
struct Degree {
  std::string_view name;
  std::int64_t value;
};

// How many degrees from the front have a product that divides the devices.
std::size_t dividing(std::span<const Degree> degrees, std::int64_t devices) {
  std::size_t count = 0;
  for (const Degree& degree : degrees) {
    if (degree.value > devices || devices % degree.value != 0) { return count; }
    devices /= degree.value;
    ++count;
  }
  return count;
}

// "tp 4 x pp 3 = 12"; "dp 3" for a degree alone. Degrees of 1 before the last are left out.
std::string product_text(std::span<const Degree> degrees) {
  std::string text;
  double product = 1.0;
  std::size_t named = 0;
  for (const Degree& degree : degrees) {
    product *= static_cast<double>(degree.value);
    if (degree.value == 1 && &degree != &degrees.back()) { continue; }
    text += fmt::format("{}{} {}", named++ == 0 ? "" : " x ", degree.name, degree.value);
  }
  return named == 1 ? text : fmt::format("{} = {:.10g}", text, product);
}

// Why the product of `degrees` does not divide the devices, which that of all but the last does.
std::string not_dividing(std::span<const Degree> degrees, std::int64_t devices) {
  std::int64_t rest = devices;
  for (const Degree& degree : degrees.first(degrees.size() - 1)) { rest /= degree.value; }
  const Degree& last = degrees.back();
  const std::string what = rest == devices ? "divisors" : std::string(last.name);
  return fmt::format("{} does not divide the {} devices; nearest {}: {}", product_text(degrees), devices, what,
                     nearest_divisors(rest, last.value));
}

// Of a plan that does not fill the devices.
void complain_of_devices(PlanChecker& check, const Plan& plan, std::int64_t devices) {
  const std::array<Degree, 4> degrees{{{"tp", plan.tp}, {"cp", plan.cp}, {"pp", plan.pp}, {"dp", plan.dp}}};
  constexpr std::array<const char*, 4> kFlags{"--tp", "--cp", "--pp", "--dp"};
  const std::span<const Degree> inner = std::span(degrees).first<3>();
  const std::size_t divide = dividing(inner, devices);
  if (divide < inner.size()) {
    return check.require(false, kFlags.at(divide), [&] { return not_dividing(inner.first(divide + 1), devices); });
  }
  check.require(false, "--dp", [&] {
    return fmt::format("{} devices, but the cluster has {}; valid: dp {}",
                       plan.tp * plan.cp * plan.pp == 1 ? fmt::format("dp {0} = {0}", plan.dp) : product_text(degrees),
                       devices, devices / (plan.tp * plan.cp * plan.pp));
  });
}

// State over replicas: how many share it, and that there is any.
void check_shard(PlanChecker& check, const Plan& plan) {
  if (plan.shard == 0) { return; }
  check.require(plan.zero > 0, "--shard", [&] {
    return fmt::format("\"{}\" needs --zero of at least 1; with --zero 0, nothing is sharded", plan.shard);
  });
  const std::int64_t replicas = plan.replicas();
  check.require(replicas % plan.shard == 0, "--shard", [&] {
    return fmt::format("\"{}\" does not divide the {} replicas (cp x dp); nearest divisors: {}", plan.shard, replicas,
                       nearest_divisors(replicas, plan.shard));
  });
}

void check_micro_batches(PlanChecker& check, const Job& job, const Plan& plan) {
  const std::int64_t count = micro_batches(job, plan);
  const bool grouped = plan.schedule != ScheduleKind::interleaved || count % plan.pp == 0;
  check.require(grouped, "--vpp", [&] {
    return fmt::format(
        "interleaving needs a multiple of pp {} as number of micro-batches; this plan has {}; nearest: {}", plan.pp,
        count, nearest_multiple(count, plan.pp));
  });
  const bool pairs = plan.schedule != ScheduleKind::dualpipe || (count % 2 == 0 && count >= 2 * plan.pp);
  check.require(pairs, "--schedule", [&] {
    return fmt::format(
        "dualpipe needs an even number of micro-batches, at least 2 x pp = {}; this plan has {}; nearest: {}",
        2 * plan.pp, count, std::max(2 * plan.pp, count + count % 2));
  });
}

// What a task calls its sequences, and their length.
const char* batch_flag(const Job& job) { return job.is_inference() ? "--batch" : "--global-batch"; }
const char* length_flag(const Job& job) { return job.is_inference() ? "--prompt" : "--seq"; }

void check_batch(PlanChecker& check, const Job& job, const Plan& plan) {
  check.require(job.global_batch >= plan.dp, batch_flag(job), [&] {
    return fmt::format("\"{}\" is less than dp {}, and every replica needs a sequence; nearest: {}", job.global_batch,
                       plan.dp, plan.dp);
  });
  const bool shared_out = job.global_batch < plan.dp || job.global_batch % plan.dp == 0;
  check.require(shared_out, batch_flag(job), [&] {
    return fmt::format("\"{}\" is not a multiple of dp {}; nearest: {}", job.global_batch, plan.dp,
                       nearest_multiple(job.global_batch, plan.dp));
  });
  if (!check.ok()) { return; }
  const std::int64_t replica_batch = job.global_batch / plan.dp;
  check.require(replica_batch % plan.micro_batch == 0, "--micro-batch", [&] {
    return fmt::format("\"{}\" does not divide the {} sequences of a replica; nearest divisors: {}", plan.micro_batch,
                       replica_batch, nearest_divisors(replica_batch, plan.micro_batch));
  });
  if (check.ok()) { check_micro_batches(check, job, plan); }
}

void check_inference(PlanChecker& check, const workload::Model& model, const Job& job) {
  check.require(job.prompt >= 1, "--prompt",
                [&] { return fmt::format("\"{}\" is too short; valid: 1 token or more", job.prompt); });
  check.require(job.generate >= 1, "--generate",
                [&] { return fmt::format("\"{}\" is too few; valid: 1 token or more", job.generate); });
  check.require(model.encoder_layers == 0, "--task", [] {
    return std::string("\"inference\" is not built yet for encoder-decoder models; valid: pretrain, finetune");
  });
  check.require(model.causal || job.generate <= 1, "--generate", [&] {
    return fmt::format("\"{}\" needs a model that generates tokens; valid for an encoder: 1, its output", job.generate);
  });
  check.require(job.adapter.rank == 0, "--lora", [&] {
    return fmt::format("\"{}\" is for training only; in inference, adapters are merged into the weights: 0",
                       job.adapter.rank);
  });
}

// A vision model looks at whole images, a recommender at samples.
void check_own_length(PlanChecker& check, const workload::Model& model, const Job& job) {
  if (model.own_seq() == 0) { return; }
  const std::int64_t given = job.is_inference() ? job.prompt : job.seq;
  check.require(given == model.own_seq(), length_flag(job), [&] {
    if (model.is_recommender()) {
      return fmt::format("\"{}\" has no effect on a recommender: its samples have one position; omit the flag", given);
    }
    return fmt::format("\"{}\" is not the length of the model's image; valid: {} (patches and class token)", given,
                       model.vision.tokens());
  });
}

void check_job(PlanChecker& check, const workload::Model& model, const Job& job) {
  check_own_length(check, model, job);
  check.require(job.global_batch >= 1, batch_flag(job),
                [&] { return fmt::format("\"{}\" is too small; valid: 1 sequence or more", job.global_batch); });
  check.require(job.seq >= 1, length_flag(job),
                [&] { return fmt::format("\"{}\" is too short; valid: 1 token or more", job.seq); });
  const bool table_fits = model.position != workload::Position::learned || job.seq <= model.max_seq;
  check.require(table_fits, length_flag(job), [&] {
    const char* whole = job.is_inference() ? " tokens of prompt and output are" : " is";
    return fmt::format("\"{}\"{} longer than the model's table of positions; valid: up to {}", job.seq, whole,
                       model.max_seq);
  });
  const bool is_left = job.formats.quantized == workload::Quantized::experts && !model.has_experts();
  check.require(!is_left, "--quantized", [&] {
    return fmt::format("experts: {} has no routed experts, so nothing would be quantised", model.name);
  });
  const bool has_no_layers = job.formats.quantized != workload::Quantized::all && model.is_recommender();
  check.require(!has_no_layers, "--quantized", [&] { return std::string("has no effect on recommenders"); });
  check.require(job.adapter.rank >= 0 && job.adapter.rank <= model.hidden, "--lora", [&] {
    return fmt::format("\"{}\" is not a rank of the model's matrices; valid: 0 (no adapter) to {}, their width",
                       job.adapter.rank, model.hidden);
  });
  if (job.is_inference()) { check_inference(check, model, job); }
}

// Inference has a forward pass only; choices of backward and optimizer keep their defaults.
void check_forward_only(PlanChecker& check, const Plan& plan) {
  const auto training_only = [&](bool unset, const char* flag, const char* wanted) {
    check.require(unset, flag, [&] { return fmt::format("is for training only; valid in inference: {}", wanted); });
  };
  training_only(plan.zero == 0, "--zero", "0");
  training_only(plan.recompute == Recompute::none, "--recompute", "none");
  training_only(plan.cp == 1, "--cp", "1");
  training_only(!plan.offload.activations && !plan.offload.optimizer && !plan.offload.gradients, "--offload",
                "weights or nothing");
  const bool one_way = plan.schedule == ScheduleKind::gpipe || plan.schedule == ScheduleKind::one_f_one_b;
  training_only(one_way, "--schedule", "1f1b or gpipe (identical without a backward pass)");
}

struct Need {
  std::string flag;
  bool (*is_met)(const Plan& plan);
  std::string_view text;
};

std::vector<Need> needs_of_choices() {
  std::vector<Need> list;
  for (const PlanChoice& choice : plan_choices()) {
    if (choice.is_met != nullptr) { list.push_back({flag_of(choice), choice.is_met, choice.needs}); }
  }
  return list;
}

// What rows of the table say that a choice needs of the others.
void check_needs(PlanChecker& check, const Plan& plan) {
  static const std::vector<Need> needs = needs_of_choices();
  for (const Need& need : needs) {
    check.require(need.is_met(plan), need.flag.c_str(), [&] { return std::string(need.text); });
  }
}

void check_all(PlanChecker& check, const workload::Model& model, const Job& job, const Plan& plan,
               std::int64_t devices) {
  check_job(check, model, job);
  check_degrees(check, plan);
  check_tables(check, model, job, plan);
  if (!check.ok()) { return; }
  check_tensor_parallel(check, model, job, plan);
  if (check.is_decided()) { return; }
  check_needs(check, plan);
  check_context_parallel(check, model, job, plan);
  check_pipeline(check, model, plan);
  if (check.is_decided()) { return; }
  if (job.is_inference()) { check_forward_only(check, plan); }
  if (!fills(plan, devices)) { return complain_of_devices(check, plan, devices); }
  check_expert_parallel(check, model, plan);
  if (check.is_decided()) { return; }
  check_shard(check, plan);
  check_batch(check, job, plan);
}

void check_placement(PlanChecker& check, const hardware::Cluster& cluster, const Plan& plan) {
  const auto dimensions = static_cast<int>(cluster.dimensions.size());
  const Placement& at = plan.placement;
  const bool there = std::max({at.tp, at.cp, at.dp, at.pp}) < dimensions;
  check.require(there, "--placement", [&] {
    return fmt::format("\"{}\" is not a network dimension of cluster \"{}\"; valid: 0 to {}",
                       std::max({at.tp, at.cp, at.dp, at.pp}), cluster.name, dimensions - 1);
  });
  check.require(!there || is_placed(cluster, plan), "--placement", [&] {
    std::vector<std::string> sizes;
    for (const auto& dimension : cluster.dimensions) { sizes.push_back(std::to_string(dimension.size)); }
    return fmt::format("the product of the groups on a dimension must divide its size (sizes in {}: {})", cluster.name,
                       join(sizes, " x "));
  });
}

void check_second_tier(PlanChecker& check, const hardware::Cluster& cluster, const Plan& plan) {
  const bool there = cluster.second_tier.memory > Bytes(0) && cluster.second_tier.bandwidth > BytesPerSecond(0);
  check.require(!plan.offload.any() || there, "--offload", [&] {
    return fmt::format("needs a second memory tier; cluster \"{}\" has none (second_tier.memory, .bandwidth)",
                       cluster.name);
  });
  check.require(!plan.offload.gradients || cluster.second_tier.combines(), "--offload", [&] {
    return fmt::format(
        "gradients needs a pool with a level that reduces on the way, which cluster \"{}\" has not "
        "(second_tier.levels, combines: true)",
        cluster.name);
  });
  const bool updates = plan.updates_on_host() && there;
  check.require(!updates || cluster.second_tier.update_rate() > BytesPerSecond(0), "--optimizer-device", [&] {
    return fmt::format(
        "host needs the bandwidth of the host's own memory, which cluster \"{}\" does not give "
        "(second_tier.memory_bandwidth)",
        cluster.name);
  });
}

void check_nodes(PlanChecker& check, const hardware::Cluster& cluster, const Plan& plan) {
  check.require(cluster.nodes.empty() || plan.schedule != ScheduleKind::dualpipe, "--schedule", [&] {
    return fmt::format("dualpipe is not modelled on nodes of several kinds of accelerators, which cluster \"{}\" has",
                       cluster.name);
  });
}

}  // namespace

workload::Slice slice_of(const Job& job, const Plan& plan, workload::Pass pass) {
  workload::Slice slice;
  slice.micro_batch = plan.micro_batch;
  slice.seq = job.seq;
  slice.tp = plan.tp;
  slice.sequence_parallel = plan.sequence_parallel;
  slice.precision = job.precision;
  slice.cp = plan.cp;
  slice.cp_method = plan.cp_method;
  slice.ep = plan.ep;
  slice.etp = plan.etp;
  slice.pass = pass;
  slice.adapter = job.adapter;
  slice.formats = job.formats;
  slice.pads_heads = job.pads_heads;
  slice.expert_imbalance = job.expert_imbalance;
  if (plan.tables.sharding != workload::TableSharding::none) {
    slice.tables = plan.tables;
    slice.table_ranks = plan.table_ranks();
    slice.replicas = plan.stage_ranks();
    slice.offloads_tables = plan.offload.tables;
  }
  if (pass == workload::Pass::prefill) { slice.seq = job.prompt; }
  if (pass == workload::Pass::decode) {
    slice.seq = 1;
    slice.micro_batch = sequences_decoded_together(job, plan);
    slice.context = job.prompt + 1;
  }
  return slice;
}

std::string padding_text(const workload::Model& model, const Job& job, std::int64_t tp) {
  const workload::Heads heads = job.heads(model, tp);
  if (!model.has_attention() || heads == workload::Heads{model.heads, model.kv_heads}) { return {}; }
  std::vector<std::string> parts;
  if (heads.query != model.heads) {
    const double extra = static_cast<double>(heads.query) / static_cast<double>(model.heads) - 1.0;
    parts.push_back(
        fmt::format("{} heads padded to {} (+{:.3g} % of attention's work)", model.heads, heads.query, 100.0 * extra));
  }
  const bool is_usual = parts.empty() && tp % model.kv_heads == 0;
  if (heads.kv != model.kv_heads && model.kv_heads != model.heads && !is_usual) {
    parts.push_back(fmt::format("{} key-value heads replicated to {}", model.kv_heads, heads.kv));
  }
  return join(parts, ", ");
}

std::vector<Diagnostic> problems(const workload::Model& model, const Job& job) {
  std::vector<Diagnostic> found;
  PlanChecker check(&found);
  check_job(check, model, job);
  return found;
}

std::vector<Diagnostic> problems(const workload::Model& model, const Job& job, const Plan& plan, std::int64_t devices) {
  std::vector<Diagnostic> found;
  PlanChecker check(&found);
  check_all(check, model, job, plan, devices);
  return found;
}

bool is_valid(const workload::Model& model, const Job& job, const Plan& plan, std::int64_t devices) {
  PlanChecker check(nullptr);
  check_all(check, model, job, plan, devices);
  return check.ok();
}

std::vector<Diagnostic> degree_problems(const PartialPlan& given, std::int64_t devices) {
  std::vector<Degree> degrees;
  const auto add = [&](std::string_view name, const std::optional<std::int64_t>& value) {
    if (value) { degrees.push_back({name, *value}); }
  };
  add("tp", given.tp);
  add("cp", given.cp);
  add("pp", given.pp);
  add("dp", given.dp);
  const bool are_degrees = std::all_of(degrees.begin(), degrees.end(), [](const Degree& d) { return d.value >= 1; });
  const std::size_t divide = are_degrees ? dividing(degrees, devices) : degrees.size();
  if (divide == degrees.size()) { return {}; }
  const auto first = std::span<const Degree>(degrees).first(divide + 1);
  return {{{"", 0, 0, fmt::format("--{}", first.back().name)}, not_dividing(first, devices)}};
}

std::vector<Diagnostic> problems(const hardware::Cluster& cluster, const Plan& plan) {
  std::vector<Diagnostic> found;
  PlanChecker check(&found);
  check_second_tier(check, cluster, plan);
  check_placement(check, cluster, plan);
  check_nodes(check, cluster, plan);
  return found;
}

bool is_valid(const hardware::Cluster& cluster, const Plan& plan) {
  PlanChecker check(nullptr);
  check_second_tier(check, cluster, plan);
  check_placement(check, cluster, plan);
  check_nodes(check, cluster, plan);
  return check.ok();
}

}  // namespace orrery::parallel
