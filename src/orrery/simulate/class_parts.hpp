// What reading and folding of jobs with classes share. Private to the room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "orrery/simulate/class_job.hpp"

namespace orrery::simulate {

[[nodiscard]] inline std::vector<std::uint32_t> list_of(const StridedRanks& ranks) {
  std::vector<std::uint32_t> list(ranks.degree);
  for (std::uint64_t i = 0; i < ranks.degree; ++i) { list[i] = static_cast<std::uint32_t>(ranks.rank(i)); }
  return list;
}

// The numbers of the classes that the ranks are of, ascending, without a look at every rank. Classes have `class_ranks`
// ranks each, one behind the other.
[[nodiscard]] std::vector<std::uint32_t> classes_of(const StridedRanks& ranks, std::uint32_t class_ranks);

[[nodiscard]] inline bool is_message(const NodeTask& task) { return task.act == Act::send || task.act == Act::receive; }

// A group that is not all ranks.
[[nodiscard]] inline bool uses_group(const NodeTask& task) { return has_group(task) && task.group != kWholeMachine; }

// Peers of the ranks of a class.
class Peers {
 public:
  // What messages are alike for all ranks of the class: the distance to the peer, and 1 + the family of its ring or 0.
  using Distance = std::pair<std::int64_t, std::uint32_t>;

  Peers(const ClassJob& job, std::size_t number)
      : job_(job), graph_(job.classes[number]), first_(job.first_rank(number)) {}

  // Of the message `node` on `rank`, which is of this class.
  [[nodiscard]] std::uint32_t of(std::uint32_t node, std::uint32_t rank) const;
  [[nodiscard]] Distance distance(std::uint32_t node) const;

 private:
  [[nodiscard]] std::optional<std::uint32_t> ring_of(std::uint32_t node) const;  // family
  [[nodiscard]] StridedRanks members(const GroupFamily& family, std::uint32_t rank) const;

  const ClassJob& job_;
  const ClassGraph& graph_;
  std::uint32_t first_;
};

}  // namespace orrery::simulate
