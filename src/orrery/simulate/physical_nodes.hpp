// Which nodes of a rank start under physical rules, and what the rank does with its time. Computing has a slot of the
// host or of the accelerator; communication and memory run concurrently, and share links and memories instead. Private
// to the room.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "orrery/engine/rounds.hpp"
#include "orrery/simulate/job.hpp"
#include "orrery/simulate/physical_event.hpp"
#include "orrery/simulate/pool.hpp"

namespace orrery::simulate {

// What a rank can be doing; several at once.
enum class Activity : std::uint8_t { compute, comm, memory, host, waiting };
inline constexpr std::size_t kActivities = 5;

struct PhysicalRank {
  std::vector<std::uint32_t> parents;               // by node: that have not ended
  std::array<std::vector<std::uint32_t>, 2> ready;  // of a slot (host, accelerator): heaps, the smallest first
  std::vector<std::uint32_t> free;                  // ready, and need no slot
  std::array<std::uint32_t, 2> slots{kNone, kNone};
  std::vector<std::uint32_t> ended;  // in this round
  bool is_touched = false;
  std::uint32_t over = 0;             // nodes that have ended
  std::int32_t started = 0;           // communications
  std::vector<bool> runs;             // by node
  std::vector<std::uint64_t> starts;  // by node, where spans are kept

  std::array<std::uint32_t, kActivities> active{};
  std::array<std::uint64_t, std::size_t{1} << kActivities> time{};  // spent, by set of activities
  std::uint64_t since = 0;
  std::uint64_t finish = 0;

  [[nodiscard]] std::size_t activities() const {
    std::size_t set = 0;
    for (std::size_t i = 0; i < kActivities; ++i) { set |= static_cast<std::size_t>(active[i] > 0 ? 1 : 0) << i; }
    return set;
  }
};

struct PhysicalSpan {
  std::uint32_t rank = 0, node = 0;
  std::uint64_t start = 0, end = 0;  // picoseconds
};

class PhysicalNodes {
 public:
  PhysicalNodes(const SimulationJob& job, const PhysicalRounds& rounds);

  // Nodes without parents may start.
  void free_roots(std::uint32_t rank);

  // The node ends when the round does.
  void end_later(std::uint32_t rank, std::uint32_t node);

  // Ranks with nodes that end or may start in this round; the list is empty then.
  [[nodiscard]] std::vector<std::uint32_t> take_touched();
  // All nodes that have ended in the round end. Then the nodes that may start, by ascending id.
  void end_all(std::uint32_t rank);
  [[nodiscard]] std::vector<std::uint32_t> startable(std::uint32_t rank);
  [[nodiscard]] bool has_ended_nodes(std::uint32_t rank) const { return !ranks_[rank].ended.empty(); }

  // The node runs. False when it takes no time and has ended.
  [[nodiscard]] bool begin(std::uint32_t rank, std::uint32_t node);

  // The message that a receive waits for has departed.
  void receiving(std::uint32_t rank) {
    change(rank, Activity::waiting, -1);
    change(rank, Activity::comm, 1);
  }

  // Of the next communication of a rank, by the scheduling policy: smaller ones go first.
  [[nodiscard]] std::int32_t next_priority(std::uint32_t rank, const NodeTask& task);

  [[nodiscard]] const std::vector<PhysicalRank>& ranks() const { return ranks_; }
  [[nodiscard]] bool finished(std::uint32_t rank) const {
    return ranks_[rank].over == job_.rank_graphs[rank].nodes.size();
  }
  [[nodiscard]] const std::vector<PhysicalSpan>& spans() const { return spans_; }

 private:
  void touch(std::uint32_t rank);
  void free(std::uint32_t rank, std::uint32_t node);
  void end(std::uint32_t rank, std::uint32_t node);
  void change(std::uint32_t rank, Activity activity, int by);

  const SimulationJob& job_;
  const PhysicalRounds& rounds_;
  std::vector<PhysicalRank> ranks_;
  std::vector<std::uint32_t> touched_;  // ranks
  std::vector<PhysicalSpan> spans_;
};

}  // namespace orrery::simulate
