// What the machines of physical semantics have in common: how a run ends, and its result. Private to the room.
#pragma once

#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include "orrery/core/error.hpp"
#include "orrery/results/simulation.hpp"
#include "orrery/simulate/job.hpp"
#include "orrery/simulate/physical_deadlock.hpp"
#include "orrery/simulate/physical_messages.hpp"
#include "orrery/simulate/physical_nodes.hpp"
#include "orrery/simulate/stop.hpp"

namespace orrery::simulate {

[[nodiscard]] std::uint64_t up_to_ns(std::uint64_t picoseconds);

// Ranks, spans and operators; everything that the nodes know.
[[nodiscard]] results::Simulation physical_result(const SimulationJob& job, const PhysicalNodes& nodes);

// Times in picoseconds.
[[nodiscard]] results::SimulatedCollective collective_row(const SimulationJob& job, const NodeTask& task,
                                                          std::uint32_t ranks, std::uint64_t first_start,
                                                          std::uint64_t last_start, std::uint64_t end);

[[nodiscard]] tl::unexpected<Failure> unmatched(const SimulationJob& job, const Unreceived& unreceived);

// Makes a machine, runs it, and returns answer(machine), unless it stops early, some rank does not finish, or a message
// is not received.
template <class Machine, class Make, class Answer>
[[nodiscard]] Result<results::Simulation> run_physically(const SimulationJob& job, Make&& make, Answer&& answer) {
  std::optional<Machine> machine;
  try {
    make(machine);
    machine->run();
    for (std::uint32_t rank = 0; rank < machine->nodes().ranks().size(); ++rank) {
      if (machine->nodes().finished(rank)) { continue; }
      return tl::make_unexpected(explained(job, physical_deadlock(job, machine->nodes(), machine->match())));
    }
    if (const auto unreceived = machine->unreceived()) { return unmatched(job, *unreceived); }
    return answer(*machine);
  } catch (const TooLong&) {
    return fail(fmt::format(
        "after {} ns: an event is later than the clock can count (53 days): check latencies, sizes and bandwidths",
        machine ? up_to_ns(machine->rounds().now()) : 0));
  } catch (const Stop& stop) { return fail(place_of(job, stop.rank, stop.node), stop.why); }
}

}  // namespace orrery::simulate
