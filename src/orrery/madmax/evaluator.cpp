#include "orrery/core/integers.hpp"
#include "orrery/madmax/job.hpp"

namespace orrery::madmax {

// An all-reduce between nodes runs at a fixed blend of both rates. Gathers and scatters, which are half an all-reduce,
// run at twice the rate of an all-reduce.
Evaluator::Evaluator(const SampleWork& work, const System& system, const RunSettings& job)
    : work_(&work),
      system_(&system),
      job_(job),
      peak_(system.effective_peak(work.dense_bytes)),
      layer_times_(work.shapes.size()),
      shape_counts_(work.shapes.size()) {
  const BytesPerSecond inside = system.scale_up.rate();
  const BytesPerSecond between = system.scale_out.rate() / real(system.devices_per_node);
  const double blend = system.all_reduce_blend;
  rates_.all_to_all = {inside, between};
  rates_.all_reduce = {inside, (1.0 - blend) * between + blend * inside};
  if (system.nodes() == 1) { rates_.all_to_all[1] = rates_.all_reduce[1] = inside; }
  rates_.all_gather = {2.0 * rates_.all_reduce[0], 2.0 * rates_.all_reduce[1]};
  for (const auto& layer : work.layers) { shape_counts_[static_cast<std::size_t>(layer.shape)] += 1.0; }
}

// A strategy of one level uses the figures between nodes.
std::size_t Evaluator::level_of(const Strategy& strategy, Parallelism parallelism) {
  return strategy.levels == 1 || strategy.parallelism[0] != parallelism ? 1 : 0;
}

LayerTimes Evaluator::layer_times(const LayerShape& shape, const Strategy& strategy) const {
  const double batch_copies = real(copies(strategy, *system_));
  const double parts = real(shards(strategy, *system_));
  const double samples = real(job_.global_batch) / batch_copies;
  const Bytes layer(shape.parameters * work_->dense_bytes);
  const Bytes activations(samples * shape.activations * work_->dense_bytes);
  const auto tensor_level = level_of(strategy, Parallelism::tp);
  const bool has_tp = strategy.has(Parallelism::tp);
  const double tp_degree =
      has_tp ? real(degree(strategy, strategy.parallelism[0] == Parallelism::tp ? 0 : 1, *system_)) : 1.0;
  const std::size_t first_level = strategy.levels == 1 ? 1 : 0;
  // A gather yields the part of the layer that the shards at level 0 have together. (Vision models gather their last
  // layer by this formula with any strategy.)
  const Bytes gathered = layer / parts * real(degree(strategy, 0, *system_));

  LayerTimes times;
  times.forward = Flops(shape.flops * samples / tp_degree) / peak_;
  times.gather = times.scatter = gathered / rates_.all_gather[first_level];
  times.inner_reduce = layer / parts / rates_.all_reduce[0];
  times.reduce = layer / rates_.all_reduce[1];
  times.activation = activations / rates_.all_reduce[tensor_level];
  times.experts = activations / shape.experts / rates_.all_to_all[tensor_level];
  times.gathers = strategy.has(Parallelism::fsdp);
  times.reduces_inside = strategy.levels == 2 && strategy.parallelism[0] == Parallelism::ddp;
  times.reduces = strategy.parallelism[static_cast<std::size_t>(strategy.levels - 1)] == Parallelism::ddp;
  times.has_tp = has_tp;
  times.has_all_to_all = has_tp && shape.experts > 1.0;
  return times;
}

// All-to-all bytes are those of the rows before pooling, as in MAD-Max.
TableTimes Evaluator::table_times(const Strategy& strategy) const {
  const double samples = real(job_.global_batch) / real(copies(strategy, *system_));
  const Bytes looked_up(work_->looked_up_bytes * samples / real(shards(strategy, *system_)));
  TableTimes times;
  times.lookup = looked_up / system_->effective_memory_bandwidth();
  times.has_all_to_all = strategy.has(Parallelism::mp);
  if (times.has_all_to_all) {
    const auto level = level_of(strategy, Parallelism::mp);
    const double members = real(degree(strategy, strategy.parallelism[0] == Parallelism::mp ? 0 : 1, *system_));
    times.all_to_all = 2.0 * (looked_up / members) / rates_.all_to_all[level];
  }
  times.reduces = strategy.parallelism[0] == Parallelism::ddp;
  times.reduce = looked_up / rates_.all_reduce[level_of(strategy, Parallelism::ddp)];
  times.trains = !job_.frozen.tables;
  return times;
}

// In a recommender with a transformer, MAD-Max's program looks up the rate of two reductions of the backward pass with
// the number of levels of the other class: those of the top MLP's activations with the transformer's, those of
// attention's with the MLP's. With one level there instead of two, position 0 is between nodes; with two instead of
// one, inside a node.
std::array<double, 4> Evaluator::reduces_back(const Strategies& strategies) const {
  std::array<double, 4> found{1.0, 1.0, 1.0, 1.0};
  if (!work_->is_recommender_with_transformer()) { return found; }
  const auto factor = [&](const Strategy& own, const Strategy& other) {
    if (!own.has(Parallelism::tp)) { return 1.0; }
    const int offset = (own.parallelism[0] == Parallelism::tp ? 0 : 1) - other.levels;  // -2 or 0: inside; -1: between
    return rates_.all_reduce[level_of(own, Parallelism::tp)] / rates_.all_reduce[offset == -1 ? 1 : 0];
  };
  const auto at = [&](Part part) -> double& { return found[static_cast<std::size_t>(part)]; };
  const bool has_experts = work_->has(LayerClass::moe);
  at(Part::top) = factor(strategies[has_experts ? LayerClass::moe : LayerClass::mlp], strategies[LayerClass::fc]);
  at(Part::attention) = factor(strategies[LayerClass::attention], strategies[LayerClass::mlp]);
  return found;
}

Timings Evaluator::timings(const Strategies& strategies) {
  for (std::size_t i = 0; i < layer_times_.size(); ++i) {
    layer_times_[i] = layer_times(work_->shapes[i], strategies[work_->shapes[i].layer_class]);
  }
  Timings timings{work_, layer_times_, table_times(strategies[LayerClass::emb])};
  timings.runs_backward = job_.task != Task::inference;
  timings.reduces_back = reduces_back(strategies);
  for (std::size_t i = 0; i < timings.trains.size(); ++i) { timings.trains[i] = !job_.frozen.parts[i]; }
  return timings;
}

Bytes Evaluator::weights(const Strategies& strategies) const {
  const auto share = [&](LayerClass layer_class) { return real(shards(strategies[layer_class], *system_)); };
  double bytes = work_->table_parameters * work_->table_bytes / share(LayerClass::emb);
  for (std::size_t i = 0; i < work_->shapes.size(); ++i) {
    const LayerShape& shape = work_->shapes[i];
    bytes += shape_counts_[i] * shape.parameters * work_->dense_bytes / share(shape.layer_class);
  }
  return Bytes(bytes);
}

Answer Evaluator::answer(const Strategies& strategies) {
  const Timings now = timings(strategies);
  const NoRecord nothing;
  return {Iteration(now, nothing).run(), weights(strategies)};
}

Answer Evaluator::answer(const Strategies& strategies, std::vector<Event>& events) {
  const Timings now = timings(strategies);
  const auto record = [&](const Event& event) { events.push_back(event); };
  return {Iteration(now, record).run(), weights(strategies)};
}

}  // namespace orrery::madmax
