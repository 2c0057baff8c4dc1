// Small jobs with round numbers, and random valid ones, for tests.
//
// `range` returns a random whole number in [low, high): a RapidCheck generator, which shrinks counterexamples, or
// SeededRandom, which is fast enough for thousands of cases.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "orrery/hardware/cluster.hpp"
#include "orrery/hardware/stack.hpp"
#include "orrery/network/test_cluster.hpp"
#include "orrery/parallel/mesh.hpp"
#include "orrery/parallel/plan.hpp"
#include "orrery/workload/model.hpp"
#include "orrery/workload/operators.hpp"

namespace orrery::parallel::test {

// 256 TFLOP/s, 2 TB/s, 80 GiB; every kernel takes at least 2 us.
inline hardware::Accelerator plain_accelerator() {
  hardware::Accelerator accelerator;
  accelerator.name = "plain";
  for (const auto precision : hardware::kAllPrecisions) {
    accelerator.matrix_peak[std::string(hardware::name_of(precision))] = 256_TFLOPps;
  }
  accelerator.memory = 80_GiB;
  accelerator.memory_bandwidth = 2000_GBps;
  accelerator.cores = 64;
  accelerator.matrix_efficiency = 0.8;
  accelerator.attention_efficiency = 0.6;
  accelerator.memory_efficiency = 0.9;
  accelerator.kernel_latency = 2_us;
  return accelerator;
}

// Dimensions of these sizes, innermost first: 256 GB/s, then a quarter per dimension; with a second memory tier.
inline hardware::Cluster cluster_of(const std::vector<std::int64_t>& sizes) {
  hardware::Cluster cluster = network::test::plain_cluster(sizes);
  cluster.name = "plain";
  cluster.accelerator = plain_accelerator();
  cluster.second_tier = {1024_GiB, 64_GBps, 10_us, 100_GBps, 0.5};
  double rate = 256e9;
  for (auto& dimension : cluster.dimensions) {
    dimension.bandwidth = BytesPerSecond(rate);
    dimension.link.latency = 4_us;
    rate /= 4.0;
  }
  return cluster;
}

inline workload::Model gpt(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t vocab) {
  workload::Model model;
  model.name = "gpt";
  model.layers = layers;
  model.hidden = hidden;
  model.heads = heads;
  model.ffn = 4 * hidden;
  model.vocab = vocab;
  model.max_seq = 4096;
  model.tied_embeddings = true;
  model.qkv_bias = model.attention_output_bias = model.mlp_bias = true;
  model.dropout = 0.1;
  return workload::completed(model);
}

inline workload::Model llama(std::int64_t layers, std::int64_t hidden, std::int64_t heads, std::int64_t kv_heads,
                             std::int64_t ffn, std::int64_t vocab) {
  workload::Model model;
  model.name = "llama";
  model.layers = layers;
  model.hidden = hidden;
  model.heads = heads;
  model.kv_heads = kv_heads;
  model.ffn = ffn;
  model.vocab = vocab;
  model.max_seq = 4096;
  model.gated_mlp = true;
  model.norm = workload::Normalisation::rmsnorm;
  model.activation = workload::Activation::silu;
  model.position = workload::Position::rotary;
  return workload::completed(model);
}

// Gives the same numbers for the same seed on every machine: SplitMix64 (Steele, Lea, Flood, "Fast splittable
// pseudorandom number generators", 2014).
class SeededRandom {
 public:
  explicit SeededRandom(std::uint64_t seed) : state_(seed) {}

  std::int64_t operator()(std::int64_t low, std::int64_t high) {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return low + static_cast<std::int64_t>((z ^ (z >> 31U)) % static_cast<std::uint64_t>(high - low));
  }

 private:
  std::uint64_t state_;
};

// A model, a job, a valid plan for them, a cluster and a stack.
struct Case {
  workload::Model model;
  Job job;
  Plan plan;
  hardware::Cluster cluster;
  hardware::Stack stack;
};

template <class Range>
bool any_flag(Range&& range) {
  return range(0, 2) == 1;
}

template <class Range>
std::int64_t any_of(Range&& range, const std::vector<std::int64_t>& values) {
  return values[static_cast<std::size_t>(range(0, static_cast<std::int64_t>(values.size())))];
}

template <class Range>
hardware::Stack any_stack(Range&& range) {
  hardware::Stack stack;
  stack.attention.kernel = any_flag(range) ? hardware::AttentionKernel::flash : hardware::AttentionKernel::plain;
  stack.attention.causal_skip = any_flag(range);
  stack.fusion.elementwise = any_flag(range);
  stack.fusion.loss = any_flag(range);
  stack.storage.narrow_activations = any_flag(range);
  stack.fp8_recipe = static_cast<hardware::Fp8Recipe>(range(0, 3));
  stack.fusion.gradient_accumulation = any_flag(range);
  stack.overlap.tp_backward = any_flag(range);
  stack.overlap.parameter_gather = any_flag(range);
  stack.gradients.element = stack.gradients.reduce_element = any_flag(range) ? 2_B : 4_B;
  stack.gradients.bucket_parameters = any_flag(range) ? 0.0 : static_cast<double>(range(0, 100'000'000));
  if (any_flag(range)) { stack.gradients.bucket_parameters_per_replica = static_cast<double>(range(0, 10'000'000)); }
  stack.gradients.reduce_every = static_cast<hardware::ReduceEvery>(range(0, 3));
  stack.optimizer.shards_are_master = any_flag(range);
  stack.host.kernel_launch_time = any_flag(range) ? 0_us : 1_us * static_cast<double>(range(1, 20));
  stack.fusion.experts = any_flag(range);
  stack.dispatch.copies = any_flag(range) ? hardware::TokenCopies::per_node : hardware::TokenCopies::per_expert;
  stack.host.launch_time = any_flag(range) ? 0_us : 1_us * static_cast<double>(range(1, 100));
  stack.overlap.interference = any_flag(range) ? 0.0 : 0.01 * static_cast<double>(range(1, 50));
  stack.overlap.aligned_reduce = any_flag(range);
  if (any_flag(range)) {
    stack.transfers = {.stages = hardware::StageTransfer::scattered, .ports = hardware::NodePorts::one};
  }
  stack.dispatch.low_latency = any_flag(range);
  return stack;
}

// The devices as one to three dimensions, with links from fast to so slow that no overlap hides them.
template <class Range>
hardware::Cluster any_cluster(Range&& range, std::int64_t devices) {
  std::vector<std::int64_t> sizes;
  while (devices > 1 && sizes.size() < 2) {
    std::vector<std::int64_t> divisors;
    for (std::int64_t d = 1; d <= devices; ++d) {
      if (devices % d == 0) { divisors.push_back(d); }
    }
    sizes.push_back(any_of(range, divisors));
    devices /= sizes.back();
  }
  sizes.push_back(devices);
  hardware::Cluster cluster = cluster_of(sizes);
  const auto slower = static_cast<double>(any_of(range, {1, 10, 100}));
  for (auto& dimension : cluster.dimensions) {
    dimension.bandwidth /= slower;
    dimension.link.latency *= slower;
  }
  cluster.dimensions.back().link.port = cluster.dimensions.back().bandwidth * static_cast<double>(range(0, 4));
  cluster.accelerator.slowdown = any_flag(range) ? 1.0 : 1.05;
  return cluster;
}

// Ranks of a stage over which experts are distributed, etp innermost.
template <class Range>
void spread_experts(Range&& range, Plan& plan) {
  const auto divisor = [&](std::int64_t whole) {
    std::vector<std::int64_t> list;
    for (std::int64_t d = 1; d <= whole; ++d) {
      if (whole % d == 0) { list.push_back(d); }
    }
    return any_of(range, list);
  };
  plan.ep = divisor(plan.stage_ranks());
  plan.etp = any_flag(range) ? 1 : divisor(plan.stage_ranks() / plan.ep);
  plan.sequence_parallel = plan.tp > 1;
}

template <class Range>
void choose_schedule(Range&& range, Plan& plan) {
  plan.schedule = any_flag(range) ? ScheduleKind::one_f_one_b : ScheduleKind::gpipe;
  if (plan.pp == 1 || any_flag(range)) { return; }
  const std::int64_t which = range(0, 4);
  if (which == 0) { plan.schedule = ScheduleKind::zero_bubble; }
  if (which == 1 && plan.pp % 2 == 0) { plan.schedule = ScheduleKind::dualpipe; }
  if (which < 2) { return; }
  plan.schedule = ScheduleKind::interleaved;
  plan.vpp = range(2, 4);
}

// Small degrees, everything else random. With experts only if `experts`.
template <class Range>
Plan any_plan(Range&& range, bool experts = false) {
  Plan plan;
  plan.tp = any_of(range, {1, 2, 4});
  plan.cp = any_of(range, {1, 1, 1, 2, 3});
  plan.cp_method = any_flag(range) ? workload::ContextMethod::ring : workload::ContextMethod::ulysses;
  plan.pp = range(1, 5);
  plan.dp = any_of(range, {1, 2, 3, 4});
  choose_schedule(range, plan);
  plan.micro_batch = range(1, 4);
  plan.sequence_parallel = plan.tp > 1 && any_flag(range);
  plan.zero = static_cast<int>(range(0, 4));
  if (plan.zero > 0 && any_flag(range)) { plan.shard = any_flag(range) ? plan.cp : plan.dp; }
  plan.dp_overlap = any_flag(range);
  plan.embedding_as_layer = any_flag(range);
  plan.head_as_layer = any_flag(range);
  if (experts) { spread_experts(range, plan); }
  if (plan.sequence_parallel) { plan.tp_overlap = static_cast<TpOverlap>(range(0, 3)); }
  return plan;
}

// Mixtures of experts that the plan's degrees divide; with and without dense layers and shared experts.
template <class Range>
void give_experts(Range&& range, workload::Model& model, const Plan& plan) {
  auto& experts = model.experts;
  experts.count = plan.ep * range(1, 4);
  experts.active = range(1, experts.count + 1);
  experts.ffn = plan.etp * range(1, 500);
  experts.shared_ffn = any_flag(range) ? plan.tp * range(1, 500) : 0;
  experts.shared_gate = experts.shared_ffn > 0 && any_flag(range);
  experts.first_dense = range(0, 3);
  experts.every = range(1, 3);
}

template <class Range>
void give_latent_attention(Range&& range, workload::Model& model) {
  model.latent = {any_flag(range) ? 64 * range(1, 5) : 0, 64 * range(1, 5), 64, 32, 64};
  model.kv_heads = model.heads;
  model.head_dim = 96;
  model.qk_norm = false;
}

// Layers without attention whose heads the plan's degrees divide; in periods, or of one half each. Drawn from the
// sizes, so that the draws of everything else are the same with and without them.
inline void give_mixers(workload::Model& model, const Plan& plan) {
  using workload::MixerKind;
  SeededRandom range(static_cast<std::uint64_t>(model.vocab * 1'000 + model.hidden + model.ffn + model.layers));
  auto& mixer = model.mixer;
  mixer.kind = any_flag(range) ? MixerKind::mamba2 : MixerKind::gated_delta;
  if (plan.cp == 1 && any_flag(range)) { mixer.kind = MixerKind::mamba; }
  if (mixer.kind == MixerKind::mamba) {
    mixer.inner = plan.tp * 64 * range(1, 9);
    mixer.state = range(1, 33);
    mixer.rank = range(1, 65);
    mixer.inner_norms = any_flag(range);
  } else if (mixer.kind == MixerKind::mamba2) {
    mixer.groups = plan.tp * range(1, 3);
    mixer.heads = mixer.groups * plan.cp * range(1, 4);
    mixer.state = mixer.head_dim = 64;
  } else {
    mixer.key_heads = plan.tp * range(1, 3);
    mixer.heads = mixer.key_heads * plan.cp * range(1, 3);
    mixer.key_dim = mixer.head_dim = 64;
    mixer.chunk = 64;
  }
  if (any_flag(range)) {
    mixer.attention_every = range(0, 4);
    mixer.attention_offset = mixer.attention_every > 1 ? range(0, mixer.attention_every) : 0;
    return;
  }
  model.global_every = 0;
  model.experts.first_dense = 0;
  model.experts.every = 1;
  const std::string letters = model.has_experts() ? "M*-E" : "M*-";
  for (std::int64_t i = 0; i < model.layers; ++i) {
    model.pattern += letters[static_cast<std::size_t>(range(0, static_cast<std::int64_t>(letters.size())))];
  }
  model.pattern.front() = 'M';
  if (model.has_experts()) { model.pattern.back() = 'E'; }
  if (model.layers == 1 && model.has_experts()) {
    model.pattern.clear();
    model.mixer.attention_every = 0;
  }
}

// A vision tower, where its work is distributed over all ranks of a stage. Drawn from the sizes, as mixers are.
inline void give_tower(workload::Model& model, const Plan& plan) {
  SeededRandom range(static_cast<std::uint64_t>(model.vocab * 1'009 + model.hidden + 3 * model.ffn + model.layers));
  workload::Tower& tower = model.tower;
  tower.layers = range(1, 5);
  tower.heads = plan.tp * range(1, 3);
  tower.hidden = tower.heads * 64;
  tower.ffn = plan.tp * range(1, 500);
  tower.gated_mlp = any_flag(range);
  tower.norm = any_flag(range) ? workload::Normalisation::rmsnorm : workload::Normalisation::layernorm;
  tower.patch = range(4, 17);
  tower.merge = range(1, 3);
  if (any_flag(range)) {
    tower.window = 2 * tower.merge;
    tower.global_every = range(0, 3);
  }
  tower.image = tower.patch * std::max(tower.merge, tower.window) * range(1, 4);
  tower.class_token = tower.window == 0 && any_flag(range);
  tower.learned_positions = any_flag(range);
  tower.averages = any_flag(range);
  tower.end_norms = range(0, 3);
  tower.projector = {model.hidden};
  if (any_flag(range)) { tower.projector = {64 * range(1, 9), model.hidden}; }
  if (any_flag(range)) { tower.projector_norm = workload::Normalisation::rmsnorm; }
  tower.images = range(1, 4);
}

// Calls visit(operators, is_layer) for each part of a vision tower in order, if the job has images.
template <class Visit>
void for_each_tower_part(const workload::Model& model, const hardware::Stack& stack, const workload::Slice& slice,
                         const Visit& visit) {
  const workload::Tower& tower = model.tower;
  if (tower.images == 0) { return; }
  visit(workload::tower_patches(model, stack, slice), false);
  for (std::int64_t layer = 0; layer < tower.layers; ++layer) {
    visit(workload::tower_layer(model, stack, slice, tower.attends_in_windows(layer)), true);
  }
  visit(workload::tower_projector(model, stack, slice), false);
}

template <class Range>
workload::Model any_model(Range&& range, const Plan& plan, bool experts = false) {
  const bool ulysses = plan.cp_method == workload::ContextMethod::ulysses;
  const std::int64_t kv_heads = plan.tp * (ulysses ? plan.cp : 1) * range(1, 3);
  const std::int64_t heads = kv_heads * range(1, 4);
  const std::int64_t chunks = plan.pp * plan.vpp;
  const std::int64_t layers = range(chunks, 3 * chunks + 1);
  const std::int64_t dim = any_of(range, {64, 128});
  const std::int64_t vocab = 128 * plan.tp * range(1, 200);
  workload::Model model = any_flag(range) && !experts
                              ? gpt(layers, heads * dim, heads, vocab)
                              : llama(layers, heads * dim, heads, kv_heads, plan.tp * range(1, 4000), vocab);
  model.tied_embeddings = any_flag(range);
  model.embedding_norm = any_flag(range);
  model.qk_norm = any_flag(range);
  if (any_flag(range)) {
    model.sliding_window = range(1, 1000);
    model.global_every = range(0, 4);
  }
  // Work that every rank of a tensor-parallel group repeats is distributed only with sequence parallelism.
  const bool splits = plan.tp == 1 || plan.sequence_parallel;
  if (splits && model.gated_mlp && any_of(range, {0, 0, 1}) == 1) { give_latent_attention(range, model); }
  if (experts) {
    give_experts(range, model, plan);
    model.mtp_layers = any_of(range, {0, 0, 1, 2});
  } else if (!model.is_latent() && any_of(range, {0, 0, 1}) == 1) {
    model.encoder_layers = range(1, 1 + layers);
    if (model.position == workload::Position::rotary && any_flag(range)) {
      model.position = workload::Position::relative;
    }
  } else {
    model.parallel_residual = any_flag(range);
    model.shared_norm = model.parallel_residual && !model.is_latent() && any_flag(range);
  }
  const bool mixes = (model.vocab / 128 + model.ffn + model.layers) % 3 == 1;
  if (mixes && model.encoder_layers == 0 && !model.parallel_residual) {
    give_mixers(model, plan);
    model.attention_gate = !model.is_latent() && model.tied_embeddings;
  }
  const bool sees = (model.vocab / 128 + model.heads + model.layers) % 5 == 1;
  if (sees && splits && plan.cp == 1 && model.encoder_layers == 0) { give_tower(model, plan); }
  return model;
}

// Sets the layers of the end stages if enough are left for the others.
template <class Range>
void set_ends(Range&& range, const workload::Model& model, Plan& plan) {
  if (plan.pp < 3 || !any_flag(range)) { return; }
  Plan uneven = plan;
  uneven.embedding_as_layer = uneven.head_as_layer = false;
  uneven.first_stage_layers = any_flag(range) ? plan.vpp : 0;
  uneven.last_stage_layers = any_flag(range) ? 2 * plan.vpp : 0;
  const std::int64_t rest = model.depth() - uneven.first_stage_layers - uneven.last_stage_layers;
  if (rest >= plan.pp * plan.vpp) { plan = uneven; }
}

// The format of weights that are not trained; of half of the jobs the one that follows from the precision.
template <class Range>
std::optional<hardware::StorageFormat> any_weight_format(Range&& range) {
  if (any_flag(range)) { return std::nullopt; }
  return static_cast<hardware::StorageFormat>(range(0, 8));
}

// A training job of a model with or without experts.
template <class Range>
Case any_case_of(Range&& range, bool experts) {
  Case c;
  c.plan = any_plan(range, experts);
  c.plan.recompute = static_cast<Recompute>(range(0, 3));
  c.model = any_model(range, c.plan, experts);
  set_ends(range, c.model, c.plan);
  c.plan.recompute_layers = c.plan.recompute == Recompute::none ? 0 : c.model.depth() % 3;
  const std::int64_t groups = range(1, 4);
  std::int64_t batches = c.plan.vpp > 1 ? c.plan.pp * groups : groups * range(1, 4);
  if (c.plan.schedule == ScheduleKind::dualpipe) { batches = 2 * (c.plan.pp + groups); }
  c.job.global_batch = c.plan.dp * c.plan.micro_batch * batches;
  c.job.seq = c.plan.tp * 2 * c.plan.cp * range(1, 128);
  if (any_of(range, {0, 0, 0, 1}) == 1) {
    c.job.task = Task::finetune;
    c.job.adapter = {range(1, 65),
                     any_flag(range) ? workload::Adapter::Targets::all : workload::Adapter::Targets::attention};
  }
  c.cluster = any_cluster(range, c.plan.devices());
  if (any_of(range, {0, 0, 1}) == 1) {
    c.cluster.second_tier.bandwidth = BytesPerSecond(1e9 * static_cast<double>(range(1, 500)));
    c.plan.offload = {any_flag(range), any_flag(range), any_flag(range)};
    if (c.plan.offload.optimizer && any_flag(range)) {
      c.plan.optimizer_device = OptimizerDevice::host;
      c.cluster.second_tier.memory_bandwidth = BytesPerSecond(1e9 * static_cast<double>(range(1, 5000)));
    }
  }
  c.stack = any_stack(range);
  return c;
}

template <class Range>
Case any_case(Range&& range) {
  const bool experts = any_flag(range);
  return any_case_of(range, experts);
}

// A description of a random case, for messages of failed properties.
inline std::string to_text(const Case& c) {
  const Plan& p = c.plan;
  const workload::Model& m = c.model;
  return fmt::format(
      "tp {} cp {}{} pp {} dp {} ep {} etp {} vpp {} micro-batch {} sp {} zero {} shard {} recompute {} schedule {} "
      "dp-overlap {} tp-overlap {} offload {}{}{}{} ends {}+{} as-layer {}{}\n{}: layers {}+{}+{} h {} heads {}/{} d "
      "{} "
      "ffn "
      "{} vocab {} experts {}/{} of {}, shared {}, first {} every {} latent {} window {}/{} tied {} parallel {}\n"
      "tower {}x{} images {}\n"
      "batch {} seq {} lora {} prompt {} generate {} flash {} fused {} bucket {} placement {} {} {} {}",
      p.tp, p.cp, static_cast<int>(p.cp_method), p.pp, p.dp, p.ep, p.etp, p.vpp, p.micro_batch, p.sequence_parallel,
      p.zero, p.shard, static_cast<int>(p.recompute), static_cast<int>(p.schedule), p.dp_overlap,
      static_cast<int>(p.tp_overlap), p.offload.weights, p.offload.activations, p.offload.optimizer,
      p.updates_on_host(), p.first_stage_layers, p.last_stage_layers, p.embedding_as_layer, p.head_as_layer, m.name,
      m.encoder_layers, m.layers, m.mtp_layers, m.hidden, m.heads, m.kv_heads, m.head_dim, m.ffn, m.vocab,
      m.experts.active, m.experts.count, m.experts.ffn, m.experts.shared_ffn, m.experts.first_dense, m.experts.every,
      m.latent.kv_rank, m.sliding_window, m.global_every, m.tied_embeddings, m.parallel_residual, m.tower.layers,
      m.tower.hidden, m.tower.images, c.job.global_batch, c.job.seq, c.job.adapter.rank, c.job.prompt, c.job.generate,
      c.stack.attention.kernel == hardware::AttentionKernel::flash, c.stack.fusion.elementwise,
      c.stack.gradients.bucket_parameters, p.placement.tp, p.placement.cp, p.placement.dp, p.placement.pp);
}

// The case with groups pinned to network dimensions at random, if a few attempts find a placement.
template <class Range>
Case pinned(Range&& range, Case c) {
  const auto dimensions = static_cast<std::int64_t>(c.cluster.dimensions.size());
  const auto any = [&](std::int64_t degree) {
    return degree > 1 && any_flag(range) ? static_cast<std::int8_t>(range(0, dimensions))
                                         : std::int8_t{Placement::kByRank};
  };
  for (int attempt = 0; attempt < 20; ++attempt) {
    Plan plan = c.plan;
    plan.placement = {any(plan.tp), any(plan.cp), any(plan.dp), any(plan.pp)};
    if (!plan.placement.any() || !is_placed(c.cluster, plan)) { continue; }
    c.plan = plan;
    break;
  }
  return c;
}

// A batch of inference requests.
template <class Range>
Case any_inference_case(Range&& range) {
  Case c = any_case(range);
  c.model.encoder_layers = 0;
  if (c.model.position == workload::Position::relative) { c.model.position = workload::Position::rotary; }
  c.plan.schedule = ScheduleKind::one_f_one_b;
  c.plan.vpp = 1;
  c.plan.first_stage_layers = c.plan.last_stage_layers = 0;
  c.plan.zero = 0;
  c.plan.shard = 0;
  c.plan.recompute = Recompute::none;
  c.plan.recompute_layers = 0;
  c.plan.offload.activations = c.plan.offload.optimizer = false;
  c.plan.optimizer_device = OptimizerDevice::device;
  c.plan.dp *= c.plan.cp;  // the same ranks, and the same number of them
  c.job.global_batch *= c.plan.cp;
  c.plan.cp = 1;
  c.job.task = Task::inference;
  c.job.adapter = {};
  if (range(0, 4) == 0) { c.job.precision = hardware::Precision::int8; }
  c.job.formats.weights = any_weight_format(range);
  if (any_flag(range)) { c.job.formats.cache = static_cast<hardware::CacheFormat>(range(0, 5)); }
  if (any_flag(range)) { c.job.formats.attention = hardware::Precision::fp8; }
  c.job.prompt = c.plan.tp * range(1, 500);
  c.job.generate = range(1, 20);
  c.job.seq = c.job.prompt + c.job.generate - 1;
  return c;
}

}  // namespace orrery::parallel::test
