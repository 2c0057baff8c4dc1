#include "orrery/network/stepper.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "orrery/network/expand.hpp"
#include "orrery/network/pipeline.hpp"

namespace orrery::network {
namespace {

enum class Direction : std::uint8_t { out, in };

// A port divided into equal lanes that are served in turn.
class Port {
 public:
  // The job of the next transfers: they share one step latency per lane.
  struct Job {
    std::int64_t round = -1;
    std::size_t phase = 0;
    std::int64_t step = 0;
    friend bool operator==(const Job&, const Job&) = default;
  };

  // When a transfer of `job` that is ready at `ready` can start: takes the next lane and, where that lane has not yet
  // done so for this job, lets the step latency pass.
  double start(const Job& job, std::size_t lanes, double ready, double latency) {
    if (!(job == job_)) {
      const double free = *std::max_element(free_.begin(), free_.end());
      free_.assign(lanes, free);
      begun_.assign(lanes, false);
      job_ = job;
      next_ = 0;
    }
    lane_ = next_++ % lanes;
    double at = std::max(ready, free_[lane_]);
    if (!begun_[lane_]) { at += latency; }
    begun_[lane_] = true;
    return at;
  }

  // The transfer that start() admitted ends.
  void finish(double at) { free_[lane_] = at; }

 private:
  Job job_;
  std::vector<double> free_{0.0};
  std::vector<bool> begun_{false};
  std::size_t next_ = 0, lane_ = 0;
};

// Each tree link has half a port: a member has at most two of them in either direction at a time, over both trees.
std::size_t lanes_of(const Phase& phase) {
  const bool tree = phase.pattern == Pattern::tree_up || phase.pattern == Pattern::tree_down;
  return tree && !phase.one_way ? 2 : 1;
}

class Player {
 public:
  Player(const Fabric& fabric, const Schedule& schedule, const Group& group, std::size_t protocol)
      : fabric_(fabric),
        schedule_(schedule),
        protocol_(protocol),
        expansion_(expand(schedule, group)),
        arrived_(static_cast<std::size_t>(expansion_.members * expansion_.blocks), 0.0) {}

  double run() {
    std::int64_t round = 0, step = 0;
    std::size_t phase = 0;
    for (const Transfer& transfer : expansion_.transfers) {
      if (transfer.round != round) {
        round = transfer.round;
        round_start_ = tree_start_ = end_;
      } else if (around(transfer) &&
                 (lead_of(schedule_, phase) != lead_of(schedule_, transfer.phase) || step != transfer.step)) {
        round_start_ = end_;  // members of a flat ring keep step
      } else if (transfer.phase != phase) {
        tree_start_ = tree_end_;
      }
      phase = transfer.phase;
      step = transfer.step;
      move(transfer);
    }
    return end_;
  }

 private:
  [[nodiscard]] bool around(const Transfer& transfer) const {
    return schedule_.phases[transfer.phase].pattern == Pattern::flat_ring;
  }

  // What a step takes besides its bytes: of phases beside each other, the mean over the hops of the way round; in the
  // first step the passage of the own shard too.
  [[nodiscard]] double fixed(const Transfer& transfer) const {
    const Phase& phase = schedule_.phases[transfer.phase];
    const auto cost_of = [&](const Phase& p) {
      return fabric_.step_cost(kind_of(p.pattern), p.dimension, protocol_, p.members);
    };
    double seconds = 0.0;
    const std::size_t lead = lead_of(schedule_, transfer.phase);
    for (std::size_t p = lead; p == lead || (p < schedule_.phases.size() && schedule_.phases[p].beside); ++p) {
      seconds += schedule_.phases[p].hops * cost_of(schedule_.phases[p]).step.value();
    }
    if (transfer.step > 0) { return seconds; }
    const StepCost cost = cost_of(phase);
    const double own = phase.own.value() / static_cast<double>(schedule_.chunks);
    return own > 0.0 ? seconds + own * cost.own_share * cost.seconds_per_byte : seconds;
  }

  void move(const Transfer& transfer) {
    const Phase& phase = schedule_.phases[transfer.phase];
    const StepCost cost = fabric_.step_cost(kind_of(phase.pattern), phase.dimension, protocol_, phase.members);
    const std::size_t lanes = lanes_of(phase);
    const double before = fixed(transfer);
    const double bytes = expansion_.block_bytes.value() * static_cast<double>(transfer.blocks);
    double seconds = bytes * cost.seconds_per_byte;
    if (transfer.reduces && phase.pattern != Pattern::switch_up) {
      seconds = std::max(seconds, bytes * fabric_.seconds_per_reduced_byte());
    }
    seconds *= static_cast<double>(lanes);

    // Levels of different chunks meet in one round as one job.
    const bool pipelined = level_per_step(phase.pattern);
    const Port::Job job{transfer.round, transfer.phase, pipelined ? 0 : transfer.step};
    const bool to_self = transfer.source == transfer.destination;
    double start = std::max(lanes > 1 ? tree_start_ : round_start_, ready(transfer));
    if (uses_port(phase.pattern, Direction::out, to_self)) {
      Port& port = ports_[{transfer.source, phase.dimension, Direction::out}];
      start = port.start(job, lanes, start, before);
      port.finish(start + seconds);
    }
    start = through_switch(phase.pattern, to_self, start);
    double end = start + seconds;
    end_ = std::max(end_, end);
    if (!uses_port(phase.pattern, Direction::in, to_self)) { return; }
    Port& port = ports_[{transfer.destination, phase.dimension, Direction::in}];
    end = std::max(start, port.start(job, lanes, round_start_, before)) + seconds;
    port.finish(end);
    arrive(transfer, end);
    end_ = std::max(end_, end);
    if (lanes > 1) { tree_end_ = std::max(tree_end_, end); }
  }

  // When a transfer leaves the switch: a sum when its last part enters (which is the destination's own), a copy when
  // the original does (which is the one to the source itself).
  double through_switch(Pattern pattern, bool to_self, double start) {
    if (pattern == Pattern::switch_up) {
      summed_ = std::max(summed_, start);
      return to_self ? std::exchange(summed_, 0.0) : start;
    }
    if (pattern == Pattern::switch_down || pattern == Pattern::multicast) {
      if (to_self) { copied_ = start; }
      return copied_;
    }
    return start;
  }

  // Through a switch that reduces, only the sum comes back; through one that multicasts, only one copy goes in.
  static bool uses_port(Pattern pattern, Direction direction, bool to_self) {
    if (pattern == Pattern::switch_up) { return direction == Direction::out || to_self; }
    if (pattern == Pattern::switch_down || pattern == Pattern::multicast) {
      return direction == Direction::in || to_self;
    }
    return true;
  }

  [[nodiscard]] std::size_t index(std::int64_t member, std::int64_t block) const {
    return static_cast<std::size_t>(member * expansion_.blocks + block);
  }

  [[nodiscard]] double ready(const Transfer& transfer) const {
    double at = 0.0;
    for (std::int64_t b = 0; b < transfer.blocks; ++b) {
      at = std::max(at, arrived_[index(transfer.source, transfer.first_block + b)]);
    }
    return at;
  }

  void arrive(const Transfer& transfer, double at) {
    for (std::int64_t b = 0; b < transfer.blocks; ++b) {
      double& known = arrived_[index(transfer.destination, transfer.first_block + b)];
      known = std::max(known, at);
    }
  }

  const Fabric& fabric_;
  const Schedule& schedule_;
  std::size_t protocol_;
  Expansion expansion_;
  std::vector<double> arrived_;  // [member * blocks + block]
  std::map<std::tuple<std::int64_t, int, Direction>, Port> ports_;
  double round_start_ = 0.0, end_ = 0.0;
  double tree_start_ = 0.0, tree_end_ = 0.0;
  double summed_ = 0.0, copied_ = 0.0;  // when what the current transfer carries entered the switch
};

}  // namespace

Seconds play(const Fabric& fabric, const Schedule& schedule, const Group& group, std::size_t protocol) {
  if (schedule.phases.empty()) { return {}; }
  const Pipeline pipeline = make_pipeline(fabric, shape_of(schedule), protocol);
  return pipeline.base + Seconds(Player(fabric, schedule, group, protocol).run());
}

}  // namespace orrery::network
