// Custom collectives under physical rules: graphs of sends, receives and computing. Private to the room.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "orrery/simulate/custom_program.hpp"
#include "orrery/simulate/physical_event.hpp"
#include "orrery/simulate/physical_group.hpp"
#include "orrery/simulate/physical_messages.hpp"
#include "orrery/simulate/pool.hpp"

namespace orrery::simulate {

class PhysicalCustoms {
 public:
  PhysicalCustoms(PhysicalRounds& rounds, PhysicalMessages& messages) : rounds_(rounds), messages_(messages) {}
  PhysicalCustoms(const PhysicalCustoms&) = delete;
  PhysicalCustoms& operator=(const PhysicalCustoms&) = delete;

  struct Start {
    std::uint32_t rank = 0, node = 0, collective = 0;
    std::int32_t priority = 0;
    const PhysicalGroup* group = nullptr;
    const std::vector<CustomProgram>* programs = nullptr;  // by position
  };
  // The rank runs its graph.
  void start(const Start& start);
  // A step of a run has ended. Returns the arguments of start() if it was the last step.
  [[nodiscard]] std::optional<Start> end_step(std::uint32_t run, std::uint32_t step);

 private:
  struct Run {
    Start start;
    const CustomProgram* program = nullptr;
    std::vector<std::uint32_t> parents;  // by step: that have not ended
    std::uint32_t unended = 0;           // steps
  };

  void start_step(std::uint32_t run, std::uint32_t step);

  PhysicalRounds& rounds_;
  PhysicalMessages& messages_;
  Pool<Run> runs_;
};

}  // namespace orrery::simulate
