// Recorded times as a Chrome trace, which Perfetto and chrome://tracing show: a process per rank; rows for the host
// (by thread where nodes name one), the device (by stream), collectives and messages.
//
// Nodes with a recorded start time are shown there. Others are placed: at the end of their last dependency, or without
// dependencies at the start of the first recorded node. The "args" of an event state that it was placed. Nodes that
// overlap partly are shown in separate rows. Dependencies between recorded nodes of different rows of the hardware
// (a launch, a wait between streams, a call that waits for the device) are shown as arrows.
//
// Not modelled: waiting for a free device, or for other ranks; this shows the record and is not a simulation.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "orrery/core/error.hpp"
#include "orrery/graph/graph.hpp"

namespace orrery::trace {

class TimelineWriter {
 public:
  [[nodiscard]] static Result<TimelineWriter> open(const std::string& path);

  TimelineWriter(TimelineWriter&&) noexcept;
  TimelineWriter& operator=(TimelineWriter&&) noexcept;
  ~TimelineWriter();  // without close() there is no file

  struct Added {
    std::uint64_t recorded = 0;  // nodes with a start time
    std::uint64_t placed = 0;    // nodes without
  };

  // Adds a graph as process `rank`. Fails if nodes without a start time are on a cycle.
  [[nodiscard]] Result<Added> add(std::uint64_t rank, const std::string& name, const graph::Graph& graph);

  // Renames the file to its final name; returns its bytes.
  [[nodiscard]] Result<std::uint64_t> close();

 private:
  struct State;
  explicit TimelineWriter(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace orrery::trace
