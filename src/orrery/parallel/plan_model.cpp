// How far a model can be cut: rules of plan.hpp about heads, columns, experts, positions and layers.
#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <string>

#include <fmt/format.h>

#include "orrery/parallel/plan_checker.hpp"

namespace orrery::parallel {

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

std::string nearest_divisors(std::int64_t whole, std::int64_t wanted) {
  std::int64_t below = 0, above = 0;
  const auto offer = [&](std::int64_t d) {
    if (d < wanted) { below = std::max(below, d); }
    if (d > wanted) { above = above == 0 ? d : std::min(above, d); }
  };
  for (std::int64_t d = 1; d <= whole / d; ++d) {
    if (whole % d != 0) { continue; }
    offer(d);
    offer(whole / d);
  }
  if (below == 0 || above == 0) { return fmt::format("{}", std::max(below, above)); }
  return fmt::format("{} and {}", below, above);
}

std::int64_t nearest_multiple(std::int64_t wanted, std::int64_t step) {
  return std::max<std::int64_t>(1, (wanted + step / 2) / step) * step;
}

namespace {

void complain_of_rest(PlanChecker& check, const char* flag, std::int64_t degree, std::int64_t whole, const char* what) {
  check.require(false, flag, [&] {
    return fmt::format("\"{}\" does not divide the {} {}; nearest divisors: {}", degree, whole, what,
                       nearest_divisors(whole, degree));
  });
}

// A degree that must divide a number of things. Small, so that it is inlined: a search calls it for every point.
inline void require_divides(PlanChecker& check, const char* flag, std::int64_t degree, std::int64_t whole,
                            const char* what) {
  if (degree == 1 || whole % degree == 0) { return; }
  complain_of_rest(check, flag, degree, whole, what);
}

void check_mixers(PlanChecker& check, const workload::Mixer& mixer, const Plan& plan) {
  using workload::MixerKind;
  switch (mixer.kind) {
    case MixerKind::attention:
    case MixerKind::none: return;
    case MixerKind::mamba:
      require_divides(check, "--tp", plan.tp, mixer.inner, "channels of the Mamba layers");
      check.require(plan.cp == 1, "--cp", [&] {
        return fmt::format(
            "\"{}\" is not supported with Mamba layers, which reduce over channels within the scan; "
            "valid: 1",
            plan.cp);
      });
      return;
    case MixerKind::mamba2:
      require_divides(check, "--tp", plan.tp, mixer.groups, "groups of the Mamba-2 layers");
      break;
    case MixerKind::gated_delta:
      require_divides(check, "--tp", plan.tp, mixer.key_heads, "key heads of the linear-attention layers");
      break;
  }
  require_divides(check, "--tp", plan.tp, mixer.heads, "heads of the layers without attention");
  if (mixer.heads % plan.tp == 0) {
    require_divides(check, "--cp", plan.cp, mixer.heads / plan.tp,
                    "heads of the layers without attention of a tensor-parallel rank");
  }
}

// Tokens that split further at each step: whole sequences over cp, those parts over tp.
void check_sequence_parallel(PlanChecker& check, const workload::Model& model, const Job& job, const Plan& plan) {
  if (!plan.sequence_parallel) {
    check.require(plan.tp == 1 || !model.has_experts() || job.replicates_tokens, "--sequence-parallel", [&] {
      return fmt::format(
          "\"false\" is not valid with experts and tp {}: each rank sends its own tokens; valid: \"true\"", plan.tp);
    });
    return;
  }
  check.require(plan.tp > 1, "--sequence-parallel", [] { return std::string("needs --tp of at least 2"); });
  const std::int64_t seq = job.is_inference() ? job.prompt : job.seq;
  if (seq % plan.cp != 0) { return; }
  check.require(seq / plan.cp % plan.tp == 0, "--sequence-parallel", [&] {
    const std::string nearest = nearest_divisors(seq / plan.cp, plan.tp);
    return plan.cp == 1
               ? fmt::format("tp {} does not divide the sequence of {} tokens; nearest divisors: {}", plan.tp, seq,
                             nearest)
               : fmt::format("tp {} does not divide the {} tokens of a rank ({} / cp {}); nearest divisors: {}",
                             plan.tp, seq / plan.cp, seq, plan.cp, nearest);
  });
}

}  // namespace

void check_tensor_parallel(PlanChecker& check, const workload::Model& model, const Job& job, const Plan& plan) {
  const workload::Heads heads = job.heads(model, plan.tp);
  if (model.has_attention()) { require_divides(check, "--tp", plan.tp, heads.query, "attention heads"); }
  if (model.has_dense_layers()) { require_divides(check, "--tp", plan.tp, model.ffn, "columns of the MLP"); }
  require_divides(check, "--tp", plan.tp, model.experts.shared_ffn, "FFN columns of the shared experts");
  const bool kv_heads_split = heads.kv % plan.tp == 0 || plan.tp % heads.kv == 0;
  check.require(!model.has_attention() || kv_heads_split, "--tp", [&] {
    return fmt::format("\"{}\" is neither a divisor nor a multiple of the {} key-value heads; nearest divisors: {}",
                       plan.tp, model.kv_heads, nearest_divisors(model.kv_heads, plan.tp));
  });
  check_mixers(check, model.mixer, plan);
  check_sequence_parallel(check, model, job, plan);
}

void check_context_parallel(PlanChecker& check, const workload::Model& model, const Job& job, const Plan& plan) {
  if (plan.cp == 1) { return; }
  const bool ring = plan.cp_method == workload::ContextMethod::ring;
  // A rank of a causal ring takes a part from the front and one from the back, so that all have as much to do.
  const std::int64_t parts = ring && model.causal ? 2 : 1;
  check.require(job.seq % (parts * plan.cp) == 0, "--cp", [&] {
    const std::int64_t nearest = job.seq % parts == 0 ? nearest_divisor(job.seq / parts, plan.cp) : 1;
    return fmt::format("\"{}\" does not split the sequence of {} tokens into {} equal parts{}; nearest: {}", plan.cp,
                       job.seq, parts * plan.cp, parts == 2 ? " (two per rank)" : "", nearest);
  });
  const bool inside = !ring && model.is_latent() && plan.recompute_modules.mla_up_projection;
  check.require(!inside, "--recompute-modules", [] {
    return std::string(
        "mla_up_proj ends in the all-to-all of --cp-method ulysses, which selective recompute does not "
        "run again; valid: --cp-method ring, or the other modules");
  });
  const workload::Heads heads = job.heads(model, plan.tp);
  if (ring || !model.has_attention() || heads.query % plan.tp != 0) { return; }
  require_divides(check, "--cp", plan.cp, heads.query / plan.tp, "attention heads of a tensor-parallel rank");
  const std::int64_t kv_heads = std::max<std::int64_t>(1, heads.kv / plan.tp);
  check.require(kv_heads % plan.cp == 0 || plan.cp % kv_heads == 0, "--cp", [&] {
    return fmt::format(
        "\"{}\" is neither a divisor nor a multiple of the {} key-value heads of a tensor-parallel rank; nearest "
        "divisors: {}",
        plan.cp, kv_heads, nearest_divisors(kv_heads, plan.cp));
  });
}

void check_expert_parallel(PlanChecker& check, const workload::Model& model, const Plan& plan) {
  const auto& experts = model.experts;
  if (!model.has_experts()) {
    const auto none = [&](std::int64_t degree, const char* flag) {
      check.require(degree == 1, flag,
                    [&] { return fmt::format("\"{}\" needs a model with experts; valid for this model: 1", degree); });
    };
    none(plan.ep, "--ep");
    none(plan.etp, "--etp");
    return;
  }
  require_divides(check, "--ep", plan.ep, experts.count, "experts");
  require_divides(check, "--etp", plan.etp, experts.ffn, "FFN columns of an expert");
  // Degrees are whatever a user typed; division keeps products of them out of the way.
  const std::int64_t ranks = plan.stage_ranks();
  if (ranks % plan.etp != 0) {
    check.require(false, "--etp", [&] {
      return fmt::format("\"{}\" does not divide the {} ranks of a stage (tp x cp x dp); nearest valid: {}", plan.etp,
                         ranks, nearest_divisors(std::gcd(ranks, experts.ffn), plan.etp));
    });
    return;
  }
  check.require(ranks / plan.etp % plan.ep == 0, "--ep", [&] {
    const std::string parts =
        plan.etp == 1 ? fmt::format("the {} ranks of a stage (tp x cp x dp)", ranks)
                      : fmt::format("{} = ranks of a stage (tp x cp x dp) / etp {}", ranks / plan.etp, plan.etp);
    return fmt::format("\"{}\" does not divide {}; nearest valid: {}", plan.ep, parts,
                       nearest_divisors(std::gcd(ranks / plan.etp, experts.count), plan.ep));
  });
}

namespace {

// Layers that are distributed over stages, embedding and head included where they count.
std::int64_t distributed_layers(const workload::Model& model, const Plan& plan) {
  return model.depth() + (plan.embedding_as_layer ? 1 : 0) + (plan.head_as_layer ? 1 : 0);
}

// Chunks that are not of a stage whose share is set.
std::int64_t open_chunks(const Plan& plan) {
  const std::int64_t set = (plan.first_stage_layers > 0 ? 1 : 0) + (plan.last_stage_layers > 0 ? 1 : 0);
  return (plan.pp - set) * plan.vpp;
}

// First and last stage's own shares: what they leave has to go round the others.
void check_end_stages(PlanChecker& check, const workload::Model& model, const Plan& plan) {
  const std::int64_t first = plan.first_stage_layers, last = plan.last_stage_layers;
  if (first == 0 && last == 0) { return; }
  const char* const flag = first > 0 ? "--first-stage-layers" : "--last-stage-layers";
  check.require(plan.pp > 1, flag, [] { return std::string("needs --pp of at least 2"); });
  check.require(!plan.embedding_as_layer && !plan.head_as_layer, flag, [] {
    return std::string("is not valid with --embedding-as-layer or --head-as-layer, which distribute layers evenly");
  });
  const auto whole_chunks = [&](std::int64_t layers, const char* which) {
    check.require(layers % plan.vpp == 0, which, [&] {
      return fmt::format("\"{}\" does not split into vpp {} equal chunks; nearest: {}", layers, plan.vpp,
                         nearest_multiple(layers, plan.vpp));
    });
  };
  whole_chunks(first, "--first-stage-layers");
  whole_chunks(last, "--last-stage-layers");
  if (plan.pp == 1) { return; }
  const std::int64_t chunks = open_chunks(plan), rest = model.depth() - first - last;
  check.require(chunks > 0 ? rest >= chunks : rest == 0, flag, [&] {
    const std::int64_t other = first > 0 ? last : 0;
    const std::int64_t most = model.depth() - chunks - other, asked = first > 0 ? first : last;
    const std::string whole = fmt::format("\"{}\" leaves {} of {} layers to {} other chunks", asked,
                                          std::max<std::int64_t>(0, rest), model.depth(), chunks);
    if (most < 1) { return whole + "; valid: 0 (an even share)"; }
    return fmt::format("{}; valid: {}{}", whole, chunks > 0 ? "up to " : "", most);
  });
}

}  // namespace

void check_pipeline(PlanChecker& check, const workload::Model& model, const Plan& plan) {
  const std::int64_t layers = distributed_layers(model, plan);
  const char* const counted = layers == model.depth() ? "" : " with embedding and head as given";
  check.require(plan.pp <= layers, "--pp", [&] {
    return fmt::format("\"{}\" is more than the {} layers of the model{}", plan.pp, layers, counted);
  });
  check.require(plan.vpp == 1 || plan.vpp <= layers / plan.pp, "--vpp", [&] {
    return fmt::format("pp {} x vpp {} = {} chunks, but the model has {} layers{}; valid: vpp up to {}", plan.pp,
                       plan.vpp, plan.pp * plan.vpp, layers, counted, std::max<std::int64_t>(1, layers / plan.pp));
  });
  const bool interleaved = plan.schedule == ScheduleKind::interleaved;
  check.require(plan.vpp == 1 || interleaved, "--vpp",
                [&] { return fmt::format("\"{}\" needs --schedule interleaved; other schedules: 1", plan.vpp); });
  check.require(!interleaved || plan.vpp > 1, "--schedule",
                [] { return std::string("interleaved needs --vpp of at least 2"); });
  check.require(!interleaved || plan.pp > 1, "--schedule",
                [] { return std::string("interleaved needs --pp of at least 2"); });
  check.require(plan.schedule != ScheduleKind::zero_bubble || plan.pp > 1, "--schedule",
                [] { return std::string("zero-bubble needs --pp of at least 2"); });
  check.require(plan.schedule != ScheduleKind::dualpipe || plan.pp % 2 == 0, "--schedule",
                [&] { return fmt::format("dualpipe needs an even --pp, not {}; nearest: {}", plan.pp, plan.pp + 1); });
  if (plan.pp <= layers) { check_end_stages(check, model, plan); }
}

}  // namespace orrery::parallel
