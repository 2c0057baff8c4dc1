// Recorded times as a Chrome trace, which Perfetto and chrome://tracing show: a process per rank; rows for the host
// (by thread where nodes name one), the device (by stream), collectives and messages.
//
// Nodes that have a start time stand there. Others are placed: as soon as all they depend on has ended, and those that
// depend on nothing where the first recorded node starts. Events say in "args" when they were placed. Where nodes of a
// row overlap without one being within the other they take another row.
//
// Left out: waiting for a free device, or for other ranks; this is a picture of what is recorded, not a simulation.
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
    std::uint64_t recorded = 0;  // nodes that had a start time
    std::uint64_t placed = 0;    // nodes that had not
  };

  // A graph as process `rank`. Fails where nodes without a start time wait for each other in a circle.
  [[nodiscard]] Result<Added> add(std::uint64_t rank, const std::string& name, const graph::Graph& graph);

  // Puts the file in its place; its bytes.
  [[nodiscard]] Result<std::uint64_t> close();

 private:
  struct State;
  explicit TimelineWriter(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace orrery::trace
