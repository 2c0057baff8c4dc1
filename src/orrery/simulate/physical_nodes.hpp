// Which nodes of a rank start under physical rules, and the activities of the rank over time. A compute node occupies
// the slot of the host or of the accelerator. Communication and memory nodes run concurrently and share links and
// memories. Private to the room.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "orrery/engine/rounds.hpp"
#include "orrery/simulate/job.hpp"
#include "orrery/simulate/physical_event.hpp"
#include "orrery/simulate/pool.hpp"

namespace orrery::simulate {

// The activities of a rank; several can be concurrent.
enum class Activity : std::uint8_t { compute, comm, memory, host, waiting };
inline constexpr std::size_t kActivities = 5;

struct alignas(64) PhysicalRank {
  static constexpr std::uint32_t kRuns = 0xFFFFFFFF;

  // What most nodes access is in the first lines of the cache.
  std::vector<std::uint32_t> parents;             // by node: that have not ended; kRuns while it runs
  std::vector<std::uint32_t> ended;               // in this round
  std::vector<std::uint32_t> ready_without_slot;  // ready nodes that need no slot
  std::array<std::uint32_t, 2> slots{kNone, kNone};
  std::uint32_t ended_count = 0;  // nodes
  std::int32_t started = 0;       // communication nodes
  std::uint64_t since = 0;
  std::array<std::uint32_t, kActivities> active{};
  bool is_touched = false;                          // listed in PhysicalNodes::touched_
  std::array<std::vector<std::uint32_t>, 2> ready;  // by slot (host, accelerator): heaps, the smallest first
  std::array<std::uint64_t, std::size_t{1} << kActivities> time{};  // picoseconds by set of concurrent activities
  std::vector<std::uint64_t> starts;                                // by node, where spans are kept
  std::uint64_t finish = 0;

  [[nodiscard]] bool runs(std::uint32_t node) const { return parents[node] == kRuns; }
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

  [[nodiscard]] bool has_touched() const { return !touched_.empty(); }
  // Ranks with nodes that end or may start in this round; they are no longer listed. Valid until the next call.
  [[nodiscard]] std::span<const std::uint32_t> take_touched();
  // Prefetch what ending a node of a rank accesses, and what it frees: in steps 0 to 3, each when the one before has
  // been fetched. The rank itself was accessed when the node ended.
  void prefetch(std::uint32_t rank, int step) const;
  // Ends all nodes that have ended in the round.
  void end_all(std::uint32_t rank);

  // Takes the nodes of a rank that may start: by ascending id those without a slot, then one for each free slot. Valid
  // until the next call.
  [[nodiscard]] std::span<const std::uint32_t> take_startable(std::uint32_t rank);
  [[nodiscard]] bool has_ended_nodes(std::uint32_t rank) const { return !ranks_[rank].ended.empty(); }

  // Starts the node. False if it takes no time and has ended.
  [[nodiscard]] bool begin(std::uint32_t rank, std::uint32_t node);

  // The message that a receive waits for has departed.
  void start_receiving(std::uint32_t rank) {
    change(rank, Activity::waiting, -1);
    change(rank, Activity::comm, 1);
  }

  // The priority of the next communication node of a rank, by the scheduling policy: smaller ones are served first.
  [[nodiscard]] std::int32_t next_priority(std::uint32_t rank, const NodeTask& task);

  [[nodiscard]] const std::vector<PhysicalRank>& ranks() const { return ranks_; }
  [[nodiscard]] bool finished(std::uint32_t rank) const {
    return ranks_[rank].ended_count == job_.rank_graphs[rank].nodes.size();
  }
  [[nodiscard]] const std::vector<PhysicalSpan>& spans() const { return spans_; }

 private:
  void touch(std::uint32_t rank);
  void make_ready(std::uint32_t rank, std::uint32_t node);
  void end(std::uint32_t rank, std::uint32_t node);
  void change(std::uint32_t rank, Activity activity, int by);

  const SimulationJob& job_;
  const PhysicalRounds& rounds_;
  std::vector<PhysicalRank> ranks_;
  std::vector<std::uint32_t> touched_;          // ranks
  std::vector<std::uint32_t> taken_touched_;    // returned by take_touched()
  std::vector<std::uint32_t> taken_startable_;  // returned by take_startable()
  std::vector<PhysicalSpan> spans_;
  const RankGraph* roots_of_ = nullptr;  // the graph of the rank that started last
  std::vector<std::uint32_t> roots_;     // its nodes without parents
};

}  // namespace orrery::simulate
