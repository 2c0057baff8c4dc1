// What led to the end of a collective, or of a message, on physical links: chunks, steps and links, from the grants of
// the run, to the picosecond. Private to the room.
//
// Back in time from the end: a chunk ends when its last message is received, or its last one has left. A message
// arrives after its links; on each it waits for the message that has the link before it, which is followed from there.
// The first link is requested when a step is sent: when the last message of an earlier step could be used, or when the
// rank reached the collective, where the pieces begin.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "orrery/simulate/critical_path.hpp"
#include "orrery/simulate/physical_machine.hpp"

namespace orrery::simulate {

class LinkPath {
 public:
  // The machine has a log. Linear in its grants.
  LinkPath(const SimulationJob& job, const PhysicalMachine& machine);

  // Nothing where the grants do not explain the end.
  [[nodiscard]] std::optional<PathTrace> trace(const PhysicalSpan& span) const;

 private:
  // An owner's (or sender's) index, and a time.
  struct Key {
    bool of_collective = false;
    std::uint32_t owner = 0, index = 0;
    std::uint64_t time = 0;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const;
  };
  using Grants = std::unordered_map<Key, std::vector<std::uint32_t>, KeyHash>;

  [[nodiscard]] std::optional<std::uint64_t> usable_at(const LinkGrant& grant) const;
  [[nodiscard]] std::uint32_t last_arrival(std::uint32_t owner, std::uint32_t index, std::uint64_t time,
                                           std::uint32_t before_step) const;
  [[nodiscard]] std::uint32_t first_of(const PhysicalSpan& span) const;
  [[nodiscard]] std::uint32_t chunk_end(std::uint32_t collective, std::uint32_t rank, std::uint64_t time) const;
  bool go_back(std::uint32_t& grant, PathTrace& trace) const;
  bool begin_at(std::uint32_t rank, std::uint32_t node, std::uint64_t time, PathTrace& trace) const;
  bool begin_at_member(std::uint32_t owner, std::uint32_t index, std::uint64_t time, PathTrace& trace) const;
  [[nodiscard]] std::uint32_t participants_of(std::uint32_t owner) const;
  [[nodiscard]] PathPiece piece(const LinkGrant& grant, std::uint64_t end, bool is_waiting) const;
  [[nodiscard]] std::pair<std::string, std::string> ends_of(const LinkGrant& grant) const;
  [[nodiscard]] std::string name_of(const LinkGrant& grant) const;

  const SimulationJob& job_;
  const PhysicalMachine& machine_;
  const std::vector<LinkGrant>& grants_;
  std::uint64_t endpoint_;
  Grants arrivals_;                                 // by receiver: transfers that could be used then
  Grants departures_;                               // by sender: those of collectives that left then
  std::vector<std::vector<std::uint64_t>> starts_;  // by rank and node
};

}  // namespace orrery::simulate
