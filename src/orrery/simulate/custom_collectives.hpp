// Collectives given as graphs: sends, receives and computing, each of which starts as soon as its parents have ended.
// Private to the room.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "orrery/simulate/chunk_registry.hpp"
#include "orrery/simulate/custom_program.hpp"
#include "orrery/simulate/event.hpp"
#include "orrery/simulate/hash_order.hpp"
#include "orrery/simulate/job.hpp"
#include "orrery/simulate/messenger.hpp"
#include "orrery/simulate/pool.hpp"

namespace orrery::simulate {

class CustomCollectives {
 public:
  CustomCollectives(const SimulationJob& job, EventQueue& events, Messenger& messenger)
      : job_(job), events_(events), messenger_(messenger) {}
  CustomCollectives(const CustomCollectives&) = delete;
  CustomCollectives& operator=(const CustomCollectives&) = delete;

  // The rank of the chunk runs its graph, PREFIX.<position>.et.
  void start(std::uint32_t id, const Chunk& chunk, const GroupMembers& group, const std::string& prefix);
  // A step of a run has ended: its chunk, if that was the last one.
  [[nodiscard]] std::optional<std::uint32_t> end_step(std::uint32_t run, std::uint32_t step);
  [[nodiscard]] std::uint32_t chunk_of(std::uint32_t run) const { return runs_[run].chunk; }

 private:
  struct Run {
    std::uint32_t chunk = kNone, rank = 0;
    const GroupMembers* group = nullptr;
    const CustomProgram* program = nullptr;
    std::vector<std::uint32_t> parents;  // by step: that have not ended
    HashOrder free;
    std::uint32_t running = 0;
  };

  void issue(std::uint32_t run);
  void start_step(std::uint32_t run, std::uint32_t step);

  const SimulationJob& job_;
  EventQueue& events_;
  Messenger& messenger_;
  Pool<Run> runs_;
};

}  // namespace orrery::simulate
