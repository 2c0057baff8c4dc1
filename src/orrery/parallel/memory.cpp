#include "orrery/parallel/memory.hpp"

#include <algorithm>

namespace orrery::parallel {

using hardware::TensorClass;

namespace {

void add_pair(StageSizes::Neighbours& most, const PartSizes& one, const PartSizes* other) {
  const PartSizes& next = other != nullptr ? *other : PartSizes{};
  most.dense = std::max(most.dense, one.dense + next.dense);
  most.expert = std::max(most.expert, one.expert + next.expert);
  most.dense_bytes = max(most.dense_bytes, one.dense_bytes + next.dense_bytes);
  most.expert_bytes = max(most.expert_bytes, one.expert_bytes + next.expert_bytes);
  most.kept = max(most.kept, one.activations.kept + next.activations.kept);
}

void add_matrices(std::vector<Orthogonalized>& all, const Orthogonalized& one, double times) {
  const auto same = std::find_if(all.begin(), all.end(), [&](const Orthogonalized& other) {
    return other.expert == one.expert && other.matrices.rows == one.matrices.rows &&
           other.matrices.columns == one.matrices.columns;
  });
  if (same != all.end()) {
    same->matrices.count += times * one.matrices.count;
  } else {
    all.push_back(one);
    all.back().matrices.count *= times;
  }
}

}  // namespace

StageSizes stage_sizes(std::span<const PartUse> shape, const IdVector<PartId, PartSizes>& parts) {
  StageSizes sizes;
  sizes.chunk_kept.push_back(0.0);
  sizes.chunk_dropped.push_back(0.0);
  const PartSizes* before = nullptr;
  Bytes deferred;
  for (const PartUse& use : shape) {
    if (!use.part) {
      sizes.chunk_kept.push_back(0.0);
      sizes.chunk_dropped.push_back(0.0);
      deferred = Bytes(0);
      before = nullptr;
      continue;
    }
    const PartSizes& part = parts[*use.part];
    const auto count = static_cast<double>(use.repeat);
    sizes.dense += count * part.dense;
    sizes.expert += count * part.expert;
    sizes.tensors.add(part.tensors, count);
    sizes.frozen += count * part.frozen;
    sizes.frozen_expert += count * part.frozen_expert;
    sizes.dense_bytes += count * part.dense_bytes;
    sizes.expert_bytes += count * part.expert_bytes;
    sizes.in_place.weights += count * part.in_place.weights;
    sizes.in_place.state += count * part.in_place.state;
    sizes.in_place.gradients += count * part.in_place.gradients;
    sizes.in_place.fetched = max(sizes.in_place.fetched, part.in_place.fetched);
    for (const auto& one : part.matrices) { add_matrices(sizes.matrices, one, count); }
    sizes.kv_cache += count * part.kv_cache;
    sizes.working = max(sizes.working, part.working);
    sizes.decoding = max(sizes.decoding, part.decoding);
    sizes.converted = max(sizes.converted, part.converted);
    if (part.backward_follows) {
      sizes.kept_briefly += count * part.activations.kept;
    } else {
      sizes.chunk_kept.back() += count * part.activations.kept.value();
      deferred += count * max(Bytes(0), part.activations.whole - part.activations.transient - part.activations.kept);
      sizes.chunk_deferred = max(sizes.chunk_deferred, deferred);
      sizes.chunk_dropped.back() =
          std::max(sizes.chunk_dropped.back(), (part.activations.whole - part.activations.kept).value());
      sizes.layer_transient = max(sizes.layer_transient, part.activations.transient);
    }
    add_pair(sizes.neighbours, part, before);
    if (use.repeat > 1) { add_pair(sizes.neighbours, part, &part); }
    before = &part;
  }
  return sizes;
}

Shards shards_from(const Plan& plan, int zero) {
  if (plan.zero < zero) { return {}; }
  return {static_cast<double>(plan.shards()), static_cast<double>(plan.expert_replicas())};
}

WeightCopies weight_copies(const hardware::Stack& stack, Bytes weight_element, const Plan& plan) {
  const Bytes master = weight_element < Bytes(4.0) ? stack.optimizer.master_element : Bytes(0);
  const bool is_sharded = shards_from(plan, 3).dense > 1;
  if (stack.optimizer.shards_are_master && is_sharded && master > Bytes(0)) { return {master, Bytes(0)}; }
  return {weight_element, master};
}

bool reduces_every_micro_batch(const Plan& plan, const hardware::Stack& stack) {
  using hardware::ReduceEvery;
  if (plan.zero < 2) { return false; }
  switch (stack.gradients.reduce_every) {
    case ReduceEvery::micro_batch: return true;
    case ReduceEvery::step: return false;
    case ReduceEvery::step_if_stages: return plan.pp == 1;
  }
  return true;
}

bool reduces_under_backward(const Plan& plan, const hardware::Stack& stack) {
  const bool fetches = plan.offload.weights || plan.offload.activations;
  return plan.dp_overlap && (!fetches || reduces_every_micro_batch(plan, stack));
}

Bytes stored_weights(const hardware::Stack& stack, const Plan& plan, Bytes weight_element, Bytes dense_bytes,
                     Bytes expert_bytes, double dense, double expert) {
  const Bytes wider = weight_copies(stack, weight_element, plan).stored - weight_element;
  return shards_from(plan, 3).part_of(dense_bytes + dense * wider, expert_bytes + expert * wider);
}

Bytes optimizer_state(const hardware::Stack& stack, const Plan& plan, Bytes weight_element, double dense, double expert,
                      const MatrixWeights& matrices) {
  const Bytes master = weight_copies(stack, weight_element, plan).master;
  const Bytes state = master + stack.optimizer.state(), of_matrices = master + stack.optimizer.matrix_state();
  return shards_from(plan, 1).part_of((dense - matrices.dense) * state + matrices.dense * of_matrices,
                                      (expert - matrices.expert) * state + matrices.expert * of_matrices);
}

MatrixWeights matrix_weights(std::span<const Orthogonalized> matrices) {
  MatrixWeights sum;
  for (const auto& [shape, expert] : matrices) { (expert ? sum.expert : sum.dense) += shape.elements(); }
  return sum;
}

HostOptimizer host_optimizer(const hardware::Stack& stack, const Plan& plan, Bytes weight_element, double dense,
                             double expert) {
  const WeightCopies copies = weight_copies(stack, weight_element, plan);
  const Shards owners = shards_from(plan, 1), holders = shards_from(plan, 3);
  const double owned = owners.part_of(dense, expert);
  const bool has_master = copies.master > Bytes(0);
  const bool in_place = plan.offload.weights && owners.dense == holders.dense && owners.expert == holders.expert;
  const Bytes state = optimizer_state(stack, plan, weight_element, dense, expert);
  const Bytes weights = owned * copies.stored, gradients = owned * stack.gradients.element;
  HostOptimizer host;
  host.stored = state + (has_master || in_place ? Bytes(0) : weights);
  host.touched = 2.0 * state + gradients + (has_master ? weights : 2.0 * weights);
  host.gradients = gradients;
  host.weights = in_place ? Bytes(0) : weights;
  return host;
}

namespace {

// The largest number of micro-batches whose backward has run and whose weight task has not.
std::int64_t most_deferred(const PipelineShape& shape, std::int64_t stage) {
  std::int64_t now = 0, most = 0;
  for (const PipelineTask& task : stage_order(shape, stage)) {
    if (task.kind == PipelineTask::Kind::backward && task.splits) { most = std::max(most, ++now); }
    if (task.kind == PipelineTask::Kind::weight) { --now; }
  }
  return most;
}

// Whether what a backward replays stays until its weight task.
bool keeps_replayed(const PipelineShape& shape, const Plan& plan) {
  return splits_backward(shape.schedule) && weight_gradients_read(replayed_tags(plan));
}

// In addition to kept activations: with deferred weight gradients, everything that they read of what recompute had
// dropped; gathered weights and whole gradients of the current parts if these are
// sharded; the tensors of parts whose backward follows forward directly, for one micro-batch; the copy of a stored
// weight in the format of its GEMM.
Bytes working_buffers(const StageSizes& sizes, const PipelineShape& shape, std::int64_t stage, const Plan& plan,
                      const hardware::Stack& stack, Bytes weight_element) {
  Bytes buffers = sizes.kept_briefly + sizes.converted;
  if (keeps_replayed(shape, plan)) {
    buffers += static_cast<double>(most_deferred(shape, stage)) * sizes.chunk_deferred + sizes.layer_transient;
  }
  const auto& pair = sizes.neighbours;
  const Shards shards = shards_from(plan, 2);
  if (reduces_every_micro_batch(plan, stack)) {
    if (shards.dense > 1) { buffers += pair.dense * weight_element; }
    if (shards.expert > 1) { buffers += pair.expert * weight_element; }
  }
  if (plan.zero == 3) {
    const bool copies = weight_copies(stack, weight_element, plan).stored > weight_element;
    if (shards.dense > 1) { buffers += pair.dense_bytes; }
    if (shards.expert > 1) {
      buffers += pair.expert_bytes;
    } else if (copies) {  // to the format that is computed with
      buffers += pair.expert * weight_element;
    }
  }
  return buffers;
}

// What a layer's replay adds to the peak of the kept activations. Offloaded ones are not there at any time, so the
// largest layer counts.
Bytes replay_buffer(const StageSizes& sizes, const PipelineShape& shape, std::int64_t stage, const Plan& plan,
                    Bytes kept) {
  if (keeps_replayed(shape, plan)) { return Bytes(0); }
  const auto& dropped = sizes.chunk_dropped;
  if (plan.offload.activations) { return Bytes(*std::max_element(dropped.begin(), dropped.end())); }
  if (std::all_of(dropped.begin(), dropped.end(), [](double bytes) { return bytes == 0.0; })) { return Bytes(0); }
  return Bytes(peak_in_flight(shape, stage, sizes.chunk_kept, dropped)) - kept;
}

// Of the tokens of a micro-batch's prompts: those that one pass reads. One token of each sequence is read at least.
double prefill_share(const Job& job, const Plan& plan, std::int64_t most) {
  const std::int64_t tokens = plan.micro_batch * job.prompt;
  if (most == 0 || tokens <= most) { return 1.0; }
  return static_cast<double>(std::max(most, plan.micro_batch)) / static_cast<double>(tokens);
}

// Offloads `all` except what is in use or in transfer.
void offload(MemoryNeed& need, TensorClass tensors, Bytes& all, Bytes working) {
  need.add_offloaded(tensors, all);
  all = min(all, working);
}

}  // namespace

MemoryNeed stage_memory(const StageSizes& sizes, const PipelineShape& shape, std::int64_t stage, const Job& job,
                        const Plan& plan, const hardware::Stack& stack, Bytes weight_element) {
  MemoryNeed need;
  const auto weights_of = [&](const auto& of) {
    return stored_weights(stack, plan, weight_element, of.dense_bytes, of.expert_bytes, of.dense, of.expert);
  };
  const auto& pair = sizes.neighbours;
  need.weights = weights_of(sizes);
  if (plan.offload.weights) { offload(need, TensorClass::weights, need.weights, weights_of(pair)); }
  Bytes table_weights = sizes.in_place.weights, table_state = sizes.in_place.state;
  if (plan.offload.tables) {
    offload(need, TensorClass::tables, table_weights, sizes.in_place.fetched);
    offload(need, TensorClass::optimizer, table_state, Bytes(0));
  }
  need.weights += table_weights;
  need.tables = need.table_weights = table_weights;
  if (job.is_inference()) {
    need.activations = max(sizes.working * prefill_share(job, plan, stack.storage.prefill_tokens), sizes.decoding);
    need.kv_cache = sizes.kv_cache;
    need.buffers = sizes.converted;
    return need;
  }
  const Shards gradients = reduces_every_micro_batch(plan, stack) ? shards_from(plan, 2) : Shards{};
  need.gradients = gradients.part_of(sizes.dense, sizes.expert) * stack.gradients.element;
  need.optimizer =
      optimizer_state(stack, plan, weight_element, sizes.dense, sizes.expert, matrix_weights(sizes.matrices));
  if (owns_whole_tensors(stack, plan)) {  // some rank owns the largest one
    const Bytes of_weight = weight_copies(stack, weight_element, plan).master + stack.optimizer.state();
    need.optimizer = max(need.optimizer, sizes.tensors.largest * of_weight);
  }
  if (plan.updates_on_host()) {
    need.add_offloaded(TensorClass::optimizer,
                       host_optimizer(stack, plan, weight_element, sizes.dense, sizes.expert).stored);
    need.optimizer = Bytes(0);
  } else if (plan.offload.optimizer) {
    offload(need, TensorClass::optimizer, need.optimizer,
            optimizer_state(stack, plan, weight_element, pair.dense, pair.expert));
  }
  need.gradients += sizes.in_place.gradients;
  need.optimizer += table_state;
  need.tables += table_state + sizes.in_place.gradients;
  need.table_state = table_state;
  need.activations = Bytes(peak_in_flight(shape, stage, sizes.chunk_kept));
  const Bytes replay = replay_buffer(sizes, shape, stage, plan, need.activations);
  if (plan.offload.activations) { offload(need, TensorClass::activations, need.activations, pair.kept); }
  need.buffers = working_buffers(sizes, shape, stage, plan, stack, weight_element) + replay;
  return need;
}

LeastMemory least_memory(const StageSizes& sizes, const PipelineShape& shape, std::int64_t stage, const Job& job,
                         const Plan& plan, const LowestMemory& lowest_memory, const hardware::Stack& stack,
                         Bytes weight_element) {
  Plan lean = plan;
  lean.zero = lowest_memory.zero;
  lean.shard = 0;
  lean.offload = {.tables = plan.offload.tables};
  const auto with_plain_buffers = [&] {
    MemoryNeed need = stage_memory(sizes, shape, stage, job, lean, stack, weight_element);
    if (lean.zero < 2 || job.is_inference()) { return need; }
    Plan whole = lean;
    whole.zero = 0;
    need.buffers = working_buffers(sizes, shape, stage, whole, stack, weight_element);
    return need;
  };
  const MemoryNeed without = with_plain_buffers();
  const Bytes together = without.total() + without.offloaded;
  lean.offload = lowest_memory.offload;
  lean.offload.tables = plan.offload.tables;
  if (lean.offload == Offload{.tables = plan.offload.tables}) { return {without.total(), together}; }
  lean.optimizer_device = lowest_memory.optimizer_device;
  Bytes device = with_plain_buffers().total();
  // Shards that are the master copy are wider than weights whose master copy is offloaded.
  if (lean.zero == 3 && lean.offload.optimizer && stack.optimizer.shards_are_master) {
    lean.zero = 2;
    device = min(device, with_plain_buffers().total());
  }
  return {device, together};
}

}  // namespace orrery::parallel
