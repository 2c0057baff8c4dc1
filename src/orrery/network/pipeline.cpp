#include "orrery/network/pipeline.hpp"

#include <algorithm>
#include <array>

namespace orrery::network {
namespace {

// Every step of these uses other links than the step before, so the next chunk can follow one step behind.
bool level_per_step(Pattern pattern) {
  switch (pattern) {
    case Pattern::chain:
    case Pattern::tree_up:
    case Pattern::tree_down: return true;
    case Pattern::ring:
    case Pattern::scatter:
    case Pattern::all_pairs:
    case Pattern::switch_up:
    case Pattern::switch_down:
    case Pattern::multicast: return false;
  }
  return false;
}

// Sends as much as it receives, on every step, through the same ports.
bool one_stage_with_neighbours(Pattern pattern) {
  switch (pattern) {
    case Pattern::ring:
    case Pattern::scatter:
    case Pattern::all_pairs: return true;
    case Pattern::chain:
    case Pattern::tree_up:
    case Pattern::tree_down:
    case Pattern::switch_up:
    case Pattern::switch_down:
    case Pattern::multicast: return false;
  }
  return false;
}

bool continues_stage(const Phase& before, const Phase& phase) {
  return before.dimension == phase.dimension && one_stage_with_neighbours(before.pattern) &&
         one_stage_with_neighbours(phase.pattern);
}

// What the active stages put on the ports of every dimension, and the round that follows from it.
class Ports {
 public:
  void add(const Stage& stage, double sign) {
    Load& load = loads_[stage.slot];
    load.latency += sign * stage.latency.value();
    load.out += sign * stage.out.value();
    load.in += sign * stage.in.value();
    load.reduction += sign * stage.reduction.value();
    slots_ = std::max(slots_, stage.slot + 1);
  }

  // Adds `rounds` rounds of the busiest port to `time`; `share` = 1 / chunks.
  void pass(double rounds, double share, PipelineTime& time) const {
    double longest = -1.0;
    Load worst;
    for (std::size_t slot = 0; slot < slots_; ++slot) {
      Load load = loads_[slot];
      load.out = std::max(load.out, load.in);
      const double total = load.latency + (load.out + load.reduction) * share;
      if (total > longest) {
        longest = total;
        worst = load;
      }
    }
    time.latency += Seconds(worst.latency * rounds);
    time.bandwidth += Seconds(worst.out * share * rounds);
    time.reduction += Seconds(worst.reduction * share * rounds);
  }

 private:
  struct Load {
    double latency = 0.0, out = 0.0, in = 0.0, reduction = 0.0;
  };
  std::array<Load, kMaxExtents> loads_{};
  std::size_t slots_ = 0;
};

// Which of a pipeline's dimensions this is, in order of first appearance.
std::size_t slot_of(const Pipeline& pipeline, int dimension) {
  std::size_t slots = 0;
  for (const Stage& stage : pipeline.stages) {
    if (stage.dimension == dimension) { return stage.slot; }
    slots = std::max(slots, stage.slot + 1);
  }
  return slots;
}

}  // namespace

InlineList<PhaseLevels, kMaxPhases> levels_of(const Schedule& schedule) {
  InlineList<PhaseLevels, kMaxPhases> levels;
  std::int64_t next = 0;
  for (std::size_t p = 0; p < schedule.phases.size(); ++p) {
    const Phase& phase = schedule.phases[p];
    if (p > 0 && continues_stage(schedule.phases[p - 1], phase)) {
      levels.push_back(levels.back());
      continue;
    }
    const bool per_step = level_per_step(phase.pattern);
    levels.push_back({next, per_step});
    next += per_step ? phase.steps : 1;
  }
  return levels;
}

Pipeline make_pipeline(const Fabric& fabric, const Schedule& schedule, std::size_t protocol) {
  Pipeline pipeline;
  for (std::size_t p = 0; p < schedule.phases.size(); ++p) {
    const Phase& phase = schedule.phases[p];
    const Fabric::StepCost cost = fabric.step_cost(phase, protocol);
    pipeline.base = max(pipeline.base, cost.base);
    const bool per_step = level_per_step(phase.pattern);
    const double steps = per_step ? 1.0 : static_cast<double>(phase.steps);
    if (p == 0 || !continues_stage(schedule.phases[p - 1], phase)) {
      Stage stage;
      stage.dimension = phase.dimension;
      stage.slot = slot_of(pipeline, phase.dimension);
      stage.levels = per_step ? phase.steps : 1;
      pipeline.stages.push_back(stage);
    }
    Stage& stage = pipeline.stages.back();
    const Seconds out(steps * phase.sent_per_step.value() * cost.seconds_per_byte);
    const Seconds in(steps * phase.received_per_step.value() * cost.seconds_per_byte);
    const Seconds reduction(steps * phase.reduced_per_step.value() * fabric.seconds_per_reduced_byte());
    stage.latency += cost.step * steps;
    stage.out += out;
    stage.in += in;
    stage.reduction += max(Seconds(), reduction - max(out, in));
  }
  return pipeline;
}

PipelineTime pipeline_time(const Pipeline& pipeline, std::int64_t chunks) {
  const auto& stages = pipeline.stages;
  const double share = 1.0 / static_cast<double>(chunks);
  Ports ports;
  PipelineTime time;
  std::size_t first = 0, last = 0;             // active stages are [first, last)
  std::int64_t round = 0, start = 0, end = 0;  // start: of stage `last`; end: first round after stage `first`
  if (!stages.empty()) { end = stages[0].levels + chunks - 1; }
  while (first < stages.size()) {
    if (last < stages.size() && start == round) {
      ports.add(stages[last], 1.0);
      start += stages[last++].levels;
    }
    const std::int64_t next = last < stages.size() ? std::min(start, end) : end;
    ports.pass(static_cast<double>(next - round), share, time);
    round = next;
    if (round == end) {
      ports.add(stages[first], -1.0);
      if (++first < stages.size()) { end += stages[first].levels; }
    }
  }
  return time;
}

Seconds pipeline_bound(const Pipeline& pipeline) {
  Seconds path;
  Seconds port;
  for (const Stage& lead : pipeline.stages) {
    path += lead.latency * static_cast<double>(lead.levels);
    Seconds out, in;
    for (const Stage& stage : pipeline.stages) {
      if (stage.slot != lead.slot) { continue; }
      out += stage.latency + stage.out + stage.reduction;
      in += stage.latency + stage.in + stage.reduction;
    }
    port = max(port, max(out, in));
  }
  return max(path, port);
}

std::int64_t best_chunks(const Pipeline& pipeline) {
  if (pipeline.stages.size() == 1 && pipeline.stages[0].levels == 1) { return 1; }
  std::int64_t best = 1;
  Seconds least = pipeline_time(pipeline, 1).total();
  for (std::int64_t chunks = 2; chunks <= kMaxChunks; chunks *= 2) {
    const Seconds time = pipeline_time(pipeline, chunks).total();
    if (time >= least) { break; }
    least = time;
    best = chunks;
  }
  return best;
}

}  // namespace orrery::network
