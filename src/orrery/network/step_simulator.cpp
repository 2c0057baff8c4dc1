#include "orrery/network/step_simulator.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "orrery/network/chunking.hpp"
#include "orrery/network/composition.hpp"

namespace orrery::network {
namespace {

enum class PortDirection : std::uint8_t { out, in };

// A port divided into equal lanes that are served round-robin.
class Port {
 public:
  // What one phase does through the port in one step: its transfers share one step latency per lane.
  struct Task {
    std::int64_t round = -1;
    std::size_t phase = 0;
    std::int64_t step = 0;
    friend bool operator==(const Task&, const Task&) = default;
  };

  // When a transfer of `task` that is ready at `ready` can start. It uses the next lane and, if it is the first of its
  // task in this lane, waits for the step latency.
  double start(const Task& task, std::size_t lanes, double ready, double latency) {
    if (!(task == task_)) {
      const double free = *std::max_element(free_.begin(), free_.end());
      free_.assign(lanes, free);
      begun_.assign(lanes, false);
      task_ = task;
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
  Task task_;
  std::vector<double> free_{0.0};
  std::vector<bool> begun_{false};
  std::size_t next_ = 0, lane_ = 0;
};

// Each tree link has half a port: a member has at most two of them in either direction at a time, over both trees.
std::size_t lanes_of(const SchedulePhase& phase) {
  const bool tree = phase.pattern == Pattern::tree_up || phase.pattern == Pattern::tree_down;
  return tree && !phase.one_way ? 2 : 1;
}

class StepSimulator {
 public:
  StepSimulator(const Fabric& fabric, const Schedule& schedule, const Group& group, std::size_t protocol)
      : fabric_(fabric),
        schedule_(schedule),
        protocol_(protocol),
        composition_(compose(schedule, group)),
        arrived_(static_cast<std::size_t>(composition_.participants * composition_.blocks), 0.0) {}

  double run() {
    std::int64_t round = 0, step = 0;
    std::size_t phase = 0;
    for (const Transfer& transfer : composition_.transfers) {
      if (transfer.round != round) {
        round = transfer.round;
        round_start_ = tree_start_ = end_;
      } else if (is_flat_ring(transfer) &&
                 (first_concurrent(schedule_, phase) != first_concurrent(schedule_, transfer.phase) ||
                  step != transfer.step)) {
        round_start_ = end_;  // members of a flat ring advance in lockstep
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
  [[nodiscard]] bool is_flat_ring(const Transfer& transfer) const {
    return schedule_.phases[transfer.phase].pattern == Pattern::flat_ring;
  }

  // The time of a step without its bytes: of concurrent phases, the mean over the ring's hops; in the first step also
  // the copy of the member's own shard.
  [[nodiscard]] double fixed_time(const Transfer& transfer) const {
    const SchedulePhase& phase = schedule_.phases[transfer.phase];
    const auto cost_of = [&](const SchedulePhase& p) {
      return fabric_.step_cost(kind_of(p.pattern), p.dimension, protocol_, p.members);
    };
    double seconds = 0.0;
    const std::size_t lead = first_concurrent(schedule_, transfer.phase);
    for (std::size_t p = lead; p == lead || (p < schedule_.phases.size() && schedule_.phases[p].concurrent); ++p) {
      seconds += schedule_.phases[p].hops * cost_of(schedule_.phases[p]).step.value();
    }
    if (transfer.step > 0) { return seconds; }
    const StepCost cost = cost_of(phase);
    const double own = phase.own.value() / static_cast<double>(schedule_.chunks);
    return own > 0.0 ? seconds + own * cost.own_share * cost.seconds_per_byte : seconds;
  }

  void move(const Transfer& transfer) {
    const SchedulePhase& phase = schedule_.phases[transfer.phase];
    const StepCost cost = fabric_.step_cost(kind_of(phase.pattern), phase.dimension, protocol_, phase.members);
    const std::size_t lanes = lanes_of(phase);
    const double before = fixed_time(transfer);
    const double bytes =
        composition_.block_bytes.value() * static_cast<double>(transfer.blocks + transfer.returned_blocks);
    double seconds = bytes * cost.seconds_per_byte;
    if (transfer.reduces && phase.pattern != Pattern::switch_up) {
      seconds = std::max(seconds, bytes * fabric_.seconds_per_reduced_byte());
    }
    seconds *= static_cast<double>(lanes);

    // Levels of different chunks share a round as one task.
    const bool pipelined = level_per_step(phase.pattern);
    const Port::Task task{transfer.round, transfer.phase, pipelined ? 0 : transfer.step};
    double start = std::max(lanes > 1 ? tree_start_ : round_start_, ready(transfer));
    if (transfer.source < composition_.members) {
      Port& port = ports_[{transfer.source, phase.dimension, PortDirection::out}];
      start = port.start(task, lanes, start, before);
      port.finish(start + seconds);
    }
    double end = start + seconds;
    end_ = std::max(end_, end);
    if (transfer.destination >= composition_.members) { return arrive(transfer, start); }  // and passes the switch
    Port& port = ports_[{transfer.destination, phase.dimension, PortDirection::in}];
    end = std::max(start, port.start(task, lanes, round_start_, before)) + seconds;
    port.finish(end);
    arrive(transfer, end);
    end_ = std::max(end_, end);
    if (lanes > 1) { tree_end_ = std::max(tree_end_, end); }
  }

  [[nodiscard]] std::size_t index(std::int64_t member, std::int64_t block) const {
    return static_cast<std::size_t>(member * composition_.blocks + block);
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
      double& arrival = arrived_[index(transfer.destination, transfer.first_block + b)];
      arrival = std::max(arrival, at);
    }
  }

  const Fabric& fabric_;
  const Schedule& schedule_;
  std::size_t protocol_;
  Composition composition_;
  std::vector<double> arrived_;  // [participant * blocks + block]; at a switch: when it enters
  std::map<std::tuple<std::int64_t, int, PortDirection>, Port> ports_;
  double round_start_ = 0.0, end_ = 0.0;
  double tree_start_ = 0.0, tree_end_ = 0.0;
};

}  // namespace

Seconds simulated_time(const Fabric& fabric, const Schedule& schedule, const Group& group, std::size_t protocol) {
  if (schedule.phases.empty()) { return {}; }
  const ChunkedSchedule chunked = chunked_schedule(fabric, shape_of(schedule), protocol);
  return chunked.base + Seconds(StepSimulator(fabric, schedule, group, protocol).run());
}

}  // namespace orrery::network
