#include "orrery/network/chunking.hpp"

#include <algorithm>
#include <array>

namespace orrery::network {
namespace {

// Sends as much as it receives in every step, through the same ports: consecutive phases may share a stage.
bool shares_stage(Pattern pattern) {
  return pattern == Pattern::ring || pattern == Pattern::scatter || pattern == Pattern::all_pairs ||
         pattern == Pattern::exchange;
}

// Calls visit(first, last, rounds) for every run of rounds in which the same stages [first, last) are active.
template <class Visit>
void for_each_run(const InlineList<Stage, kMaxPhases>& stages, std::int64_t chunks, Visit visit) {
  if (stages.empty()) { return; }
  std::size_t first = 0, last = 0;
  std::int64_t round = 0;
  std::int64_t start = 0;                            // first round of stage `last`
  std::int64_t end = stages[0].levels + chunks - 1;  // first round after stage `first`
  while (first < stages.size()) {
    if (last < stages.size() && start == round) { start += stages[last++].levels; }
    const std::int64_t next = last < stages.size() ? std::min(start, end) : end;
    visit(first, last, static_cast<double>(next - round));
    round = next;
    if (round == end && ++first < stages.size()) { end += stages[first].levels; }
  }
}

std::size_t slot_of(const ScheduleShape& shape, int dimension) {
  for (const StageShape& stage : shape.stages) {
    if (stage.dimension == dimension) { return stage.slot; }
  }
  return shape.slots;
}

// For a port: the rounds in which its stages run, the earlier rounds in which the first chunk reaches it, and the later
// rounds in which the last chunk leaves it.
PortBound port_bound(const ChunkedSchedule& chunked, std::size_t slot) {
  PortBound bound;
  double between_fixed = 0.0, between_rest = 0.0;  // stages of other ports since the last stage of this one
  bool seen = false;
  double out = 0.0, in = 0.0;
  for (const Stage& stage : chunked.stages) {
    const auto levels = static_cast<double>(stage.levels);
    const double bytes = (max(stage.out, stage.in) + stage.reduction).value();
    if (stage.slot != slot) {
      between_fixed += levels * stage.latency.value();
      between_rest += levels * bytes;
      continue;
    }
    if (!seen) {
      bound.fixed += between_fixed;
      bound.rest += between_rest;
    }
    seen = true;
    between_fixed = between_rest = 0.0;
    bound.fixed += (levels - 1) * stage.latency.value();
    bound.rest += (levels - 1) * min(stage.out, stage.in).value();
    bound.latency += stage.latency.value();
    out += (stage.out + stage.reduction).value();
    in += (stage.in + stage.reduction).value();
  }
  bound.fixed += between_fixed + std::max(out, in);
  bound.rest += between_rest;
  return bound;
}

// The times of one entry of a shape with one protocol.
Stage stage_of(const Fabric& fabric, const StageShape& part, const StepCost& cost) {
  Stage stage;
  stage.slot = part.slot;
  stage.levels = part.levels;
  stage.latency = cost.step * (part.steps * part.hops);
  const double own = part.own.value() * cost.own_share;
  stage.out = Seconds((part.sent.value() + own) * cost.seconds_per_byte);
  stage.in = Seconds((part.received.value() + own) * cost.seconds_per_byte);
  stage.reduction = Seconds(std::max(
      0.0, part.reduced.value() * fabric.seconds_per_reduced_byte() - part.reducing.value() * cost.seconds_per_byte));
  return stage;
}

// Concurrent entries: latencies are terms of a mean over hops and are added; of the other times the busiest port has
// the longest.
void merge(Stage& stage, const Stage& other) {
  const Seconds longest = max(stage.out + stage.reduction, other.out + other.reduction);
  stage.latency += other.latency;
  stage.out = max(stage.out, other.out);
  stage.in = max(stage.in, other.in);
  stage.reduction = longest - stage.out;
}

// The entry of a shape that starts with `phase`, at `level`.
StageShape first_entry(const SchedulePhase& phase, std::int64_t level, std::size_t slot) {
  StageShape stage;
  stage.kind = kind_of(phase.pattern);
  stage.dimension = phase.dimension;
  stage.members = phase.members;
  stage.slot = slot;
  stage.first_level = level;
  stage.levels = level_per_step(phase.pattern) ? phase.steps : 1;
  stage.hops = phase.hops;
  stage.concurrent = phase.concurrent;
  return stage;
}

}  // namespace

bool level_per_step(Pattern pattern) {
  return pattern == Pattern::chain || pattern == Pattern::tree_up || pattern == Pattern::tree_down;
}

ScheduleShape shape_of(const Schedule& schedule) {
  ScheduleShape shape;
  std::int64_t level = 0;
  const SchedulePhase* previous = nullptr;
  for (const SchedulePhase& phase : schedule.phases) {
    const bool per_step = level_per_step(phase.pattern);
    const double steps = per_step ? 1.0 : static_cast<double>(phase.steps);
    if (previous == nullptr || previous->dimension != phase.dimension || !shares_stage(previous->pattern) ||
        !shares_stage(phase.pattern)) {
      const std::size_t slot = phase.concurrent ? shape.stages.back().slot : slot_of(shape, phase.dimension);
      if (phase.concurrent) { --level; }
      shape.stages.push_back(first_entry(phase, level, slot));
      level += shape.stages.back().levels;
      shape.slots = std::max(shape.slots, slot + 1);
      shape.outermost = std::max(shape.outermost, phase.dimension);
    }
    StageShape& stage = shape.stages.back();
    stage.steps += steps;
    stage.sent += phase.sent_per_step * steps;
    stage.received += phase.received_per_step * steps;
    stage.reduced += phase.reduced_per_step * steps;
    if (phase.reduces) { stage.reducing += max(phase.sent_per_step, phase.received_per_step) * steps; }
    stage.own += phase.own;
    shape.stage_of_phase.push_back(phase.concurrent ? shape.stage_of_phase.back() : shape.stages.size() - 1);
    previous = &phase;
  }
  return shape;
}

namespace {

StepCost stage_cost(const Fabric& fabric, const ScheduleShape& shape, const StageShape& stage, std::size_t protocol,
                    double port_contention) {
  StepCost cost = fabric.step_cost(stage.kind, stage.dimension, protocol, stage.members);
  const bool forwarded = stage.kind == StepKind::ring || stage.kind == StepKind::tree;
  if (forwarded && stage.dimension == shape.outermost) { cost.seconds_per_byte *= port_contention; }
  return cost;
}

}  // namespace

StepCost stage_cost(const Fabric& fabric, const ScheduleShape& shape, const StageShape& stage, std::size_t protocol) {
  return stage_cost(fabric, shape, stage, protocol, fabric.port_contention(shape));
}

namespace {

// Whether what crosses a dimension passes the ports of an inner one: all between them are tiers above it.
bool passes(const Fabric& fabric, int dimension, int inner) {
  for (int d = dimension; d > inner; --d) {
    if (!fabric.cluster().dimensions[static_cast<std::size_t>(d)].is_tier()) { return false; }
  }
  return dimension > inner;
}

// Concurrent entries carry the bytes of the tiers above them, too.
void add_bytes_of_tiers(const Fabric& fabric, ScheduleShape& shape) {
  for (std::size_t i = shape.stages.size(); i-- > 1;) {
    const StageShape& tier = shape.stages[i];
    for (std::size_t j = i; tier.concurrent && j-- > 0;) {
      StageShape& inner = shape.stages[j];
      if (passes(fabric, tier.dimension, inner.dimension)) {
        inner.sent += tier.sent;
        inner.received += tier.received;
        break;  // which carries them on
      }
      if (!inner.concurrent) { break; }
    }
  }
}

// What a tier that is a stage of its own needs of the ports of the dimensions below it.
void pass_inner_ports(const Fabric& fabric, const ScheduleShape& shape, const StageShape& part, const StepCost& cost,
                      Stage& stage) {
  if (part.concurrent) { return; }
  for (const StageShape& inner : shape.stages) {
    if (!passes(fabric, part.dimension, inner.dimension)) { continue; }
    stage.through = static_cast<std::uint8_t>(stage.through | 1U << inner.slot);
  }
  if (stage.through == 0) { return; }
  stage.passing_out = stage.out.value() / cost.seconds_per_byte;
  stage.passing_in = stage.in.value() / cost.seconds_per_byte;
}

ChunkedSchedule chunked_stages(const Fabric& fabric, const ScheduleShape& shape, std::size_t protocol) {
  ChunkedSchedule chunked;
  chunked.slots = shape.slots;
  chunked.has_tiers = fabric.has_tiers();
  const double port_contention = fabric.port_contention(shape);
  for (const StageShape& part : shape.stages) {
    const StepCost cost = stage_cost(fabric, shape, part, protocol, port_contention);
    chunked.base = max(chunked.base, cost.base);
    Stage stage = stage_of(fabric, part, cost);
    if (chunked.has_tiers) {
      pass_inner_ports(fabric, shape, part, cost, stage);
      chunked.port_cost[part.slot] =
          fabric.step_cost(StepKind::ring, part.dimension, protocol, part.members).seconds_per_byte;
    }
    if (part.concurrent) {
      merge(chunked.stages.back(), stage);
    } else {
      chunked.stages.push_back(stage);
    }
  }
  return chunked;
}

}  // namespace

ChunkedSchedule chunked_schedule(const Fabric& fabric, const ScheduleShape& shape, std::size_t protocol) {
  if (!fabric.has_tiers()) { return chunked_stages(fabric, shape, protocol); }
  ScheduleShape with_tiers = shape;
  add_bytes_of_tiers(fabric, with_tiers);
  return chunked_stages(fabric, with_tiers, protocol);
}

bool library_uses(const Fabric& fabric, const ScheduleShape& shape, std::size_t protocol) {
  return std::all_of(shape.stages.begin(), shape.stages.end(), [&](const StageShape& stage) {
    if (stage.dimension != shape.outermost || stage.kind == StepKind::in_switch) { return true; }
    const double step = stage.sent.value() / std::max(1.0, stage.steps);
    return step <= fabric.step_cost(stage.kind, stage.dimension, protocol, stage.members).most_bytes;
  });
}

ChunkedTime chunked_time(const ChunkedSchedule& chunked, std::int64_t chunks) {
  const double share = 1.0 / static_cast<double>(chunks);
  ChunkedTime time;
  for_each_run(chunked.stages, chunks, [&](std::size_t first, std::size_t last, double rounds) {
    ChunkedTime worst;
    Seconds longest(-1.0);
    for (std::size_t slot = 0; slot < chunked.slots; ++slot) {
      ChunkedTime port;
      Seconds in;
      for (std::size_t s = first; s < last; ++s) {
        const Stage& stage = chunked.stages[s];
        if (stage.passes(slot)) {
          port.bandwidth += Seconds(stage.passing_out * chunked.port_cost[slot] * share);
          in += Seconds(stage.passing_in * chunked.port_cost[slot] * share);
        }
        if (stage.slot != slot) { continue; }
        port.latency += stage.latency;
        port.bandwidth += stage.out * share;
        in += stage.in * share;
        port.reduction += stage.reduction * share;
      }
      port.bandwidth = max(port.bandwidth, in);
      if (port.total() > longest) {
        longest = port.total();
        worst = port;
      }
    }
    time.latency += worst.latency * rounds;
    time.bandwidth += worst.bandwidth * rounds;
    time.reduction += worst.reduction * rounds;
  });
  return time;
}

namespace {

struct Load {
  double out = 0.0, in = 0.0;
};

// The time of the busiest port of a round with what tiers need of it.
double longest_through(const ChunkedSchedule& chunked, std::size_t first, std::size_t last, double share,
                       std::array<Load, kMaxExtents> ports) {
  double longest = 0.0;
  for (std::size_t s = first; s < last; ++s) {
    const Stage& stage = chunked.stages[s];
    for (std::size_t slot = 0; stage.through >> slot != 0; ++slot) {
      if (!stage.passes(slot)) { continue; }
      Load& port = ports[slot];
      port.out += stage.passing_out * chunked.port_cost[slot] * share;
      port.in += stage.passing_in * chunked.port_cost[slot] * share;
      longest = std::max({longest, port.out, port.in});
    }
  }
  return longest;
}

}  // namespace

Seconds chunked_total(const ChunkedSchedule& chunked, std::int64_t chunks) {
  const double share = 1.0 / static_cast<double>(chunks);
  InlineList<Load, kMaxPhases> load;  // of each stage for one chunk
  for (const Stage& stage : chunked.stages) {
    const double fixed = stage.latency.value() + stage.reduction.value() * share;
    load.push_back({fixed + stage.out.value() * share, fixed + stage.in.value() * share});
  }
  double time = 0.0;
  for_each_run(chunked.stages, chunks, [&](std::size_t first, std::size_t last, double rounds) {
    std::array<Load, kMaxExtents> ports{};
    double longest = 0.0;
    for (std::size_t s = first; s < last; ++s) {
      Load& port = ports[chunked.stages[s].slot];
      port.out += load[s].out;
      port.in += load[s].in;
      longest = std::max({longest, port.out, port.in});
    }
    if (chunked.has_tiers) { longest = std::max(longest, longest_through(chunked, first, last, share, ports)); }
    time += longest * rounds;
  });
  return Seconds(time);
}

PortBounds port_bounds(const ChunkedSchedule& chunked) {
  PortBounds bounds;
  for (std::size_t slot = 0; slot < chunked.slots; ++slot) { bounds.push_back(port_bound(chunked, slot)); }
  return bounds;
}

Chunking best_chunks(const ChunkedSchedule& chunked, const PortBounds& bounds) {
  if (chunked.stages.size() == 1 && chunked.stages[0].levels == 1) { return {1, chunked_total(chunked, 1)}; }
  // A first guess near sqrt(rest / latency) of the busiest port, so that the others rarely need a full evaluation.
  const PortBound* busiest = bounds.begin();
  for (const PortBound& port : bounds) {
    if (port.fixed > busiest->fixed) { busiest = &port; }
  }
  std::int64_t guess = 1;
  while (guess < kMaxChunks && busiest->latency * static_cast<double>(4 * guess * guess) <= busiest->rest) {
    guess *= 2;
  }
  Chunking best{guess, chunked_total(chunked, guess)};
  const auto is_excluded = [&](double chunks, double share) {
    return std::any_of(bounds.begin(), bounds.end(), [&](const PortBound& port) {
      return port.fixed + port.latency * chunks + port.rest * share >= best.time.value();
    });
  };
  double share = 1.0;
  for (std::int64_t chunks = 1; chunks <= kMaxChunks; chunks *= 2, share *= 0.5) {
    if (chunks == guess || is_excluded(static_cast<double>(chunks), share)) { continue; }
    const Seconds time = chunked_total(chunked, chunks);
    if (time < best.time) { best = {chunks, time}; }
  }
  return best;
}

}  // namespace orrery::network
