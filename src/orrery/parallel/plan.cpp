#include "orrery/parallel/plan.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "orrery/core/text.hpp"
#include "orrery/parallel/mesh.hpp"
#include "orrery/parallel/plan_checker.hpp"
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
    check.require(value >= 1, flag,
                  [&] { return fmt::format("\"{}\" is not a degree; it must be at least 1", value); });
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
                [&] { return fmt::format("\"{}\" is not a ZeRO stage; 0, 1, 2 and 3 are", plan.zero); });
  const auto not_negative = [&](std::int64_t value, const char* flag) {
    check.require(value >= 0, flag,
                  [&] { return fmt::format("\"{}\" is negative; valid: 0 (the default) or more", value); });
  };
  not_negative(plan.shard, "--shard");
  not_negative(plan.recompute_layers, "--recompute-layers");
  not_negative(plan.first_stage_layers, "--first-stage-layers");
  not_negative(plan.last_stage_layers, "--last-stage-layers");
}

void check_devices(PlanChecker& check, const Plan& plan, std::int64_t devices) {
  check.require(fills(plan, devices), "--dp", [&] {
    const auto real = [](std::int64_t n) { return static_cast<double>(n); };
    const std::string cp = plan.cp == 1 ? "" : fmt::format(" x cp {}", plan.cp);
    const double inner = real(plan.tp) * real(plan.cp) * real(plan.pp);
    const bool divides = inner <= real(devices) && devices % (plan.tp * plan.cp * plan.pp) == 0;
    const std::string hint =
        divides ? fmt::format("dp {} would use them all", devices / (plan.tp * plan.cp * plan.pp))
                : fmt::format("tp{} x pp = {:.17g} does not divide them", cp.empty() ? "" : " x cp", inner);
    return fmt::format("tp {}{} x pp {} x dp {} = {:.10g} devices, but the cluster has {}; {}", plan.tp, cp, plan.pp,
                       plan.dp, inner * real(plan.dp), devices, hint);
  });
}

// State over replicas: how many share it, and that there is any.
void check_shard(PlanChecker& check, const Plan& plan) {
  if (plan.shard == 0) { return; }
  check.require(plan.zero > 0, "--shard", [&] {
    return fmt::format("\"{}\" needs --zero of at least 1: below that nothing is sharded", plan.shard);
  });
  const std::int64_t replicas = plan.replicas();
  check.require(replicas % plan.shard == 0, "--shard", [&] {
    return fmt::format(
        "\"{}\" does not divide the {} ranks that hold the same weights (cp x dp); the nearest number "
        "that does is {}",
        plan.shard, replicas, nearest_divisor(replicas, plan.shard));
  });
}

void check_micro_batches(PlanChecker& check, const Job& job, const Plan& plan) {
  const std::int64_t count = micro_batches(job, plan);
  const bool grouped = plan.schedule != ScheduleKind::interleaved || count % plan.pp == 0;
  check.require(grouped, "--vpp", [&] {
    return fmt::format(
        "the interleaved schedule needs a number of micro-batches that is a multiple of pp ({}); this plan has {}",
        plan.pp, count);
  });
  const bool both_ways = plan.schedule != ScheduleKind::dualpipe || (count % 2 == 0 && count >= 2 * plan.pp);
  check.require(both_ways, "--schedule", [&] {
    return fmt::format(
        "dualpipe needs an even number of micro-batches, at least 2 x pp = {}, and there are {}; {} "
        "would do",
        2 * plan.pp, count, std::max(2 * plan.pp, count + 1));
  });
}

// What a task calls its sequences, and their length.
const char* batch_flag(const Job& job) { return job.is_inference() ? "--batch" : "--global-batch"; }
const char* length_flag(const Job& job) { return job.is_inference() ? "--prompt" : "--seq"; }

void check_batch(PlanChecker& check, const Job& job, const Plan& plan) {
  check.require(job.global_batch >= plan.dp, batch_flag(job), [&] {
    return fmt::format("\"{}\" is smaller than dp {}: some replicas would have nothing to do; {} would do",
                       job.global_batch, plan.dp, plan.dp);
  });
  const bool shared_out = job.global_batch < plan.dp || job.global_batch % plan.dp == 0;
  check.require(shared_out, batch_flag(job), [&] {
    return fmt::format("\"{}\" is not a multiple of dp {}; the nearest batch is {}", job.global_batch, plan.dp,
                       std::max<std::int64_t>(1, (job.global_batch + plan.dp / 2) / plan.dp) * plan.dp);
  });
  if (!check.ok()) { return; }
  const std::int64_t replica_batch = job.global_batch / plan.dp;
  check.require(replica_batch % plan.micro_batch == 0, "--micro-batch", [&] {
    return fmt::format("\"{}\" does not divide the {} sequences of a replica; the nearest size that does is {}",
                       plan.micro_batch, replica_batch, nearest_divisor(replica_batch, plan.micro_batch));
  });
  if (check.ok()) { check_micro_batches(check, job, plan); }
}

void check_inference(PlanChecker& check, const workload::Model& model, const Job& job) {
  check.require(job.prompt >= 1, "--prompt",
                [&] { return fmt::format("\"{}\" is too short; it must be at least 1 token", job.prompt); });
  check.require(job.generate >= 1, "--generate",
                [&] { return fmt::format("\"{}\" is too few; it must be at least 1 token", job.generate); });
  check.require(model.encoder_layers == 0, "--task",
                [] { return std::string("\"inference\" is not built yet for models with an encoder and a decoder"); });
  check.require(model.causal || job.generate <= 1, "--generate", [&] {
    return fmt::format("\"{}\" needs a model with a decoder; of an encoder, 1 stands for its output", job.generate);
  });
  check.require(job.adapter.rank == 0, "--lora", [&] {
    return fmt::format("\"{}\" is for training; for inference an adapter is merged into the weights (0)",
                       job.adapter.rank);
  });
}

// A vision model looks at whole images, a recommender at samples.
void check_own_length(PlanChecker& check, const workload::Model& model, const Job& job) {
  if (model.own_seq() == 0) { return; }
  const std::int64_t given = job.is_inference() ? job.prompt : job.seq;
  check.require(given == model.own_seq(), length_flag(job), [&] {
    if (model.is_recommender()) {
      return fmt::format("\"{}\" is not of a recommender, whose samples have one position; leave it out", given);
    }
    return fmt::format("\"{}\" is not the model's image: {} patches and class token", given, model.vision.tokens());
  });
}

void check_job(PlanChecker& check, const workload::Model& model, const Job& job) {
  check_own_length(check, model, job);
  check.require(job.global_batch >= 1, batch_flag(job), [] { return std::string("must be at least 1 sequence"); });
  check.require(job.seq >= 1, length_flag(job), [] { return std::string("must be at least 1 token"); });
  const bool table_fits = model.position != workload::Position::learned || job.seq <= model.max_seq;
  check.require(table_fits, length_flag(job), [&] {
    const char* whole = job.is_inference() ? " with the tokens that are generated and read again" : "";
    return fmt::format("\"{}\"{} is longer than the model's table of {} learned positions", job.seq, whole,
                       model.max_seq);
  });
  check.require(job.adapter.rank >= 0 && job.adapter.rank <= model.hidden, "--lora", [&] {
    return fmt::format("\"{}\" is not a rank of matrices {} wide; 0 (none) to {} is", job.adapter.rank, model.hidden,
                       model.hidden);
  });
  if (job.is_inference()) { check_inference(check, model, job); }
}

// Inference has a forward pass only: what a plan says about the rest has to be left alone.
void check_forward_only(PlanChecker& check, const Plan& plan) {
  const auto training_only = [&](bool unset, const char* flag, const char* wanted) {
    check.require(unset, flag, [&] { return fmt::format("is for training; inference takes {}", wanted); });
  };
  training_only(plan.zero == 0, "--zero", "0");
  training_only(plan.recompute == Recompute::none, "--recompute", "none");
  training_only(plan.cp == 1, "--cp", "1");
  training_only(!plan.offload.activations && !plan.offload.optimizer, "--offload", "weights or nothing");
  const bool one_way = plan.schedule == ScheduleKind::gpipe || plan.schedule == ScheduleKind::one_f_one_b;
  training_only(one_way, "--schedule", "1f1b or gpipe, which are the same then");
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
  check_needs(check, plan);
  check_context_parallel(check, model, job, plan);
  check_pipeline(check, model, plan);
  if (job.is_inference()) { check_forward_only(check, plan); }
  check_devices(check, plan, devices);
  if (!fills(plan, devices)) { return; }
  check_expert_parallel(check, model, plan);
  check_shard(check, plan);
  check_batch(check, job, plan);
}

void check_placement(PlanChecker& check, const hardware::Cluster& cluster, const Plan& plan) {
  const auto dimensions = static_cast<int>(cluster.dimensions.size());
  const Placement& at = plan.placement;
  const bool there = std::max({at.tp, at.cp, at.dp, at.pp}) < dimensions;
  check.require(there, "--placement", [&] {
    return fmt::format("cluster \"{}\" has {} network dimensions, 0 to {}", cluster.name, dimensions, dimensions - 1);
  });
  check.require(!there || is_placed(cluster, plan), "--placement", [&] {
    std::vector<std::string> sizes;
    for (const auto& dimension : cluster.dimensions) { sizes.push_back(std::to_string(dimension.size)); }
    return fmt::format("the groups pinned to a dimension have to divide it together (dimensions of {}: {})",
                       cluster.name, join(sizes, " x "));
  });
}

void check_second_tier(PlanChecker& check, const hardware::Cluster& cluster, const Plan& plan) {
  const bool there = cluster.second_tier.memory > Bytes(0) && cluster.second_tier.bandwidth > BytesPerSecond(0);
  check.require(!plan.offload.any() || there, "--offload", [&] {
    return fmt::format("needs a second memory tier, and cluster \"{}\" has none (second_tier: memory and bandwidth)",
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
  if (plan.tables.sharding != workload::TableSharding::none) {
    slice.tables = plan.tables;
    slice.table_ranks = plan.table_ranks();
    slice.replicas = plan.stage_ranks();
  }
  if (pass == workload::Pass::prefill) { slice.seq = job.prompt; }
  if (pass == workload::Pass::decode) {
    slice.seq = 1;
    slice.context = job.prompt + 1;
  }
  return slice;
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

std::vector<Diagnostic> problems(const hardware::Cluster& cluster, const Plan& plan) {
  std::vector<Diagnostic> found;
  PlanChecker check(&found);
  check_second_tier(check, cluster, plan);
  check_placement(check, cluster, plan);
  return found;
}

bool is_valid(const hardware::Cluster& cluster, const Plan& plan) {
  PlanChecker check(nullptr);
  check_second_tier(check, cluster, plan);
  check_placement(check, cluster, plan);
  return check.ok();
}

}  // namespace orrery::parallel
