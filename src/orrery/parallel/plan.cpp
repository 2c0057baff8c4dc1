#include "orrery/parallel/plan.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace orrery::parallel {

namespace {

// Runs the checks once for both callers: with `out` it writes messages, without it only notes that something is wrong.
class Checker {
 public:
  explicit Checker(std::vector<Diagnostic>* out) : out_(out) {}

  // `message` is called only when a message is wanted, so that a search pays nothing for text.
  template <class Message>
  void require(bool holds, const char* flag, Message message) {
    if (holds) { return; }
    ok_ = false;
    if (out_ != nullptr) { out_->push_back({{"", 0, 0, flag}, message()}); }
  }
  [[nodiscard]] bool ok() const { return ok_; }

 private:
  std::vector<Diagnostic>* out_;
  bool ok_ = true;
};

// The divisor of `whole` nearest to `wanted`; the smaller one on a tie.
std::int64_t nearest_divisor(std::int64_t whole, std::int64_t wanted) {
  std::int64_t best = 1;
  const auto offer = [&](std::int64_t d) {
    const std::int64_t away = std::abs(d - wanted), before = std::abs(best - wanted);
    if (away < before || (away == before && d < best)) { best = d; }
  };
  for (std::int64_t d = 1; d <= whole / d; ++d) {
    if (whole % d != 0) { continue; }
    offer(d);
    offer(whole / d);
  }
  return best;
}

// Whether tp pp dp = devices, without a product that could overflow: degrees are whatever a user typed.
bool fills(const Plan& plan, std::int64_t devices) {
  return plan.tp <= devices && plan.pp <= devices / plan.tp && plan.dp <= devices / (plan.tp * plan.pp) &&
         plan.devices() == devices;
}

void check_degrees(Checker& check, const Plan& plan) {
  const auto positive = [&](std::int64_t value, const char* flag) {
    check.require(value >= 1, flag,
                  [&] { return fmt::format("\"{}\" is not a degree; it must be at least 1", value); });
  };
  positive(plan.tp, "--tp");
  positive(plan.pp, "--pp");
  positive(plan.dp, "--dp");
  positive(plan.vpp, "--vpp");
  positive(plan.micro_batch, "--micro-batch");
  check.require(plan.zero >= 0 && plan.zero <= 3, "--zero",
                [&] { return fmt::format("\"{}\" is not a ZeRO stage; 0, 1, 2 and 3 are", plan.zero); });
}

void check_devices(Checker& check, const Plan& plan, std::int64_t devices) {
  check.require(fills(plan, devices), "--dp", [&] {
    const std::int64_t inner = plan.tp * plan.pp;
    const std::string hint = devices % inner == 0 ? fmt::format("dp {} would use them all", devices / inner)
                                                  : fmt::format("tp x pp = {} does not divide them", inner);
    const double asked = static_cast<double>(inner) * static_cast<double>(plan.dp);
    return fmt::format("tp {} x pp {} x dp {} = {:.10g} devices, but the cluster has {}; {}", plan.tp, plan.pp, plan.dp,
                       asked, devices, hint);
  });
}

void check_tensor_parallel(Checker& check, const workload::Model& model, const Job& job, const Plan& plan) {
  const auto divides = [&](std::int64_t whole, const char* what) {
    check.require(whole % plan.tp == 0, "--tp", [&] {
      return fmt::format("\"{}\" does not divide the {} {}; the nearest degree that does is {}", plan.tp, whole, what,
                         nearest_divisor(whole, plan.tp));
    });
  };
  divides(model.heads, "attention heads");
  divides(model.ffn, "columns of the MLP");
  check.require(model.kv_heads % plan.tp == 0 || plan.tp % model.kv_heads == 0, "--tp", [&] {
    return fmt::format("\"{}\" neither divides the {} key-value heads nor is a multiple of them", plan.tp,
                       model.kv_heads);
  });
  if (!plan.sequence_parallel) { return; }
  check.require(plan.tp > 1, "--sequence-parallel", [] { return std::string("needs --tp of at least 2"); });
  check.require(job.seq % plan.tp == 0, "--sequence-parallel",
                [&] { return fmt::format("tp {} does not divide the sequence of {} tokens", plan.tp, job.seq); });
}

void check_pipeline(Checker& check, const workload::Model& model, const Plan& plan) {
  check.require(plan.pp <= model.layers, "--pp", [&] {
    return fmt::format("\"{}\" is more stages than the model has layers ({})", plan.pp, model.layers);
  });
  check.require(plan.vpp == 1 || plan.pp * plan.vpp <= model.layers, "--vpp", [&] {
    return fmt::format("pp {} x vpp {} = {} chunks, but the model has {} layers; vpp can be at most {}", plan.pp,
                       plan.vpp, plan.pp * plan.vpp, model.layers, std::max<std::int64_t>(1, model.layers / plan.pp));
  });
  const bool interleaved = plan.schedule == ScheduleKind::interleaved;
  check.require(plan.vpp == 1 || interleaved, "--vpp",
                [&] { return fmt::format("\"{}\" needs --schedule interleaved", plan.vpp); });
  check.require(!interleaved || plan.vpp > 1, "--schedule",
                [] { return std::string("interleaved needs --vpp of at least 2"); });
  check.require(!interleaved || plan.pp > 1, "--schedule",
                [] { return std::string("interleaved needs --pp of at least 2"); });
}

void check_batch(Checker& check, const Job& job, const Plan& plan) {
  check.require(job.global_batch >= plan.dp, "--global-batch", [&] {
    return fmt::format("\"{}\" is smaller than dp {}: some replicas would have nothing to do", job.global_batch,
                       plan.dp);
  });
  const bool shared_out = job.global_batch < plan.dp || job.global_batch % plan.dp == 0;
  check.require(shared_out, "--global-batch", [&] {
    return fmt::format("\"{}\" is not a multiple of dp {}; the nearest batch is {}", job.global_batch, plan.dp,
                       std::max<std::int64_t>(1, (job.global_batch + plan.dp / 2) / plan.dp) * plan.dp);
  });
  if (!check.ok()) { return; }
  const std::int64_t replica_batch = job.global_batch / plan.dp;
  check.require(replica_batch % plan.micro_batch == 0, "--micro-batch", [&] {
    return fmt::format("\"{}\" does not divide the {} sequences of a replica; the nearest size that does is {}",
                       plan.micro_batch, replica_batch, nearest_divisor(replica_batch, plan.micro_batch));
  });
  const bool grouped = plan.schedule != ScheduleKind::interleaved || micro_batches(job, plan) % plan.pp == 0;
  check.require(grouped, "--vpp", [&] {
    return fmt::format("interleaving needs a multiple of pp {} micro-batches, and there are {}", plan.pp,
                       micro_batches(job, plan));
  });
}

void check_job(Checker& check, const workload::Model& model, const Job& job) {
  check.require(job.global_batch >= 1, "--global-batch", [] { return std::string("must be at least 1 sequence"); });
  check.require(job.seq >= 1, "--seq", [] { return std::string("must be at least 1 token"); });
  const bool table_fits = model.position != workload::Position::learned || job.seq <= model.max_seq;
  check.require(table_fits, "--seq", [&] {
    return fmt::format("\"{}\" is longer than the model's table of {} learned positions", job.seq, model.max_seq);
  });
}

void check_all(Checker& check, const workload::Model& model, const Job& job, const Plan& plan, std::int64_t devices) {
  check_job(check, model, job);
  check_degrees(check, plan);
  if (!check.ok()) { return; }
  check_tensor_parallel(check, model, job, plan);
  check_pipeline(check, model, plan);
  check_devices(check, plan, devices);
  if (fills(plan, devices)) { check_batch(check, job, plan); }
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
  if (pass == workload::Pass::prefill) { slice.seq = job.prompt; }
  if (pass == workload::Pass::decode) {
    slice.seq = 1;
    slice.context = job.prompt + 1;
  }
  return slice;
}

std::vector<Diagnostic> problems(const workload::Model& model, const Job& job) {
  std::vector<Diagnostic> found;
  Checker check(&found);
  check_job(check, model, job);
  return found;
}

std::vector<Diagnostic> problems(const workload::Model& model, const Job& job, const Plan& plan, std::int64_t devices) {
  std::vector<Diagnostic> found;
  Checker check(&found);
  check_all(check, model, job, plan, devices);
  return found;
}

bool is_valid(const workload::Model& model, const Job& job, const Plan& plan, std::int64_t devices) {
  Checker check(nullptr);
  check_all(check, model, job, plan, devices);
  return check.ok();
}

}  // namespace orrery::parallel
