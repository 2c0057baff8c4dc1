// What reading and folding of jobs with classes share. Private to the room.
#pragma once

#include <cstdint>
#include <vector>

#include "orrery/simulate/class_job.hpp"

namespace orrery::simulate {

[[nodiscard]] inline std::vector<std::uint32_t> list_of(const StridedRanks& ranks) {
  std::vector<std::uint32_t> list(ranks.degree);
  for (std::uint64_t i = 0; i < ranks.degree; ++i) { list[i] = static_cast<std::uint32_t>(ranks.rank(i)); }
  return list;
}

[[nodiscard]] inline bool is_message(const NodeTask& task) { return task.act == Act::send || task.act == Act::receive; }

}  // namespace orrery::simulate
