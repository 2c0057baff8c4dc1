// Diagnosis of a deadlock: follows the wait-for graph from the first rank that did not finish, to a node whose
// dependency never ends or to a cycle. The base class has what all machines share; a machine provides which nodes run
// and what a collective waits for. Private to the room.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "orrery/simulate/job.hpp"
#include "orrery/simulate/pool.hpp"

namespace orrery::simulate {

// A node that has not ended; for a collective with chunks also the chunk that waits.
struct BlockedNode {
  std::uint32_t rank = 0, node = 0;
  std::uint32_t chunk = kNone;

  friend auto operator<=>(const BlockedNode&, const BlockedNode&) = default;
};

struct Cause {  // of the deadlock: why a node never ends
  BlockedNode who;
  std::string why;
};

using Next = std::variant<BlockedNode, Cause>;

class DeadlockDiagnosis {
 public:
  explicit DeadlockDiagnosis(const SimulationJob& job) : job_(job) {}
  DeadlockDiagnosis(const DeadlockDiagnosis&) = delete;
  DeadlockDiagnosis& operator=(const DeadlockDiagnosis&) = delete;
  virtual ~DeadlockDiagnosis() = default;

  // `finished` by rank; at least one did not.
  [[nodiscard]] Failure failure(const std::vector<bool>& finished);

 protected:
  // Nodes of a rank that run or may start.
  [[nodiscard]] virtual std::vector<std::uint32_t> started(std::uint32_t rank) const = 0;
  [[nodiscard]] virtual bool runs(std::uint32_t rank, std::uint32_t node) const = 0;
  // A node that runs on the rank and does not end.
  [[nodiscard]] virtual Next running(std::uint32_t rank) = 0;
  // For a node whose parents have all ended: the node that occupies its slot.
  [[nodiscard]] virtual std::optional<Next> slot_holder(std::uint32_t rank, std::uint32_t node) const = 0;
  [[nodiscard]] virtual Next blocker_of_collective(const BlockedNode& who) = 0;
  [[nodiscard]] virtual std::string named(const BlockedNode& who) const;

  [[nodiscard]] const SimulationJob& job() const { return job_; }
  [[nodiscard]] NodeTask task(const BlockedNode& who) const { return job_.rank_graphs.task(who.rank, who.node); }
  [[nodiscard]] std::string group_name(const NodeTask& collective) const;

  // The first open node of a rank for which `fits` is true. Open nodes have started or depend on one that has.
  template <class Fits>
  [[nodiscard]] std::optional<std::uint32_t> find_open(std::uint32_t rank, Fits&& fits) {
    const std::vector<bool>& open = this->open(rank);
    for (std::uint32_t i = 0; i < open.size(); ++i) {
      if (open[i] && fits(job_.rank_graphs.task(rank, i))) { return i; }
    }
    return std::nullopt;
  }
  [[nodiscard]] const std::vector<bool>& open(std::uint32_t rank);

  // What blocks an open node: the node itself if it runs, or what blocks one that it depends on.
  [[nodiscard]] Next blocker(std::uint32_t rank, std::uint32_t node);

 private:
  [[nodiscard]] Cause follow(Next next);
  [[nodiscard]] Cause cycle(const std::vector<BlockedNode>& path, const BlockedNode& end) const;
  [[nodiscard]] std::optional<std::uint32_t> open_parent(std::uint32_t rank, std::uint32_t node);
  [[nodiscard]] Next blocker_of(const BlockedNode& who);
  [[nodiscard]] Next blocker_of_receive(const BlockedNode& who);
  [[nodiscard]] Next blocker_of_send(const BlockedNode& who);

  const SimulationJob& job_;
  std::map<std::uint32_t, std::vector<bool>> open_;  // by rank, computed on first use
};

}  // namespace orrery::simulate
