#include "orrery/network/pipeline.hpp"

#include <algorithm>

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

// Terms of one round's busiest port.
PipelineTime busiest_port(const Pipeline& pipeline, std::size_t first, std::size_t last, double share) {
  PipelineTime worst;
  double worst_total = -1.0;
  for (std::size_t lead = first; lead < last; ++lead) {
    for (const Direction direction : {Direction::out, Direction::in}) {
      PipelineTime port;
      for (std::size_t s = first; s < last; ++s) {
        const Stage& stage = pipeline.stages[s];
        if (stage.dimension != pipeline.stages[lead].dimension) { continue; }
        port.latency += stage.latency;
        port.bandwidth += stage.bandwidth(direction) * share;
        port.reduction += stage.reduction * share;
      }
      if (port.total().value() > worst_total) {
        worst_total = port.total().value();
        worst = port;
      }
    }
  }
  return worst;
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
  PipelineTime time;
  std::size_t first = 0, last = 0;            // active stages are [first, last)
  std::int64_t round = 0, start = 0, end = 0;  // start: of stage `last`; end: first round after stage `first`
  if (!stages.empty()) { end = stages[0].levels + chunks - 1; }
  while (first < stages.size()) {
    if (last < stages.size() && start == round) { start += stages[last++].levels; }
    const std::int64_t next = last < stages.size() ? std::min(start, end) : end;
    const PipelineTime port = busiest_port(pipeline, first, last, share);
    const double rounds = static_cast<double>(next - round);
    time.latency += port.latency * rounds;
    time.bandwidth += port.bandwidth * rounds;
    time.reduction += port.reduction * rounds;
    round = next;
    if (round == end && ++first < stages.size()) { end += stages[first].levels; }
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
      if (stage.dimension != lead.dimension) { continue; }
      out += stage.latency + stage.out + stage.reduction;
      in += stage.latency + stage.in + stage.reduction;
    }
    port = max(port, max(out, in));
  }
  return max(path, port);
}

std::int64_t best_chunks(const Pipeline& pipeline) {
  std::int64_t best = 1;
  Seconds least = pipeline_time(pipeline, 1).total();
  for (std::int64_t chunks = 2; chunks <= kMaxChunks; chunks *= 2) {
    const Seconds time = pipeline_time(pipeline, chunks).total();
    if (time < least) {
      least = time;
      best = chunks;
    }
  }
  return best;
}

}  // namespace orrery::network
