// ASTRA-sim's configuration files as values, in its units. What each key means is in docs/models/astra-sim.md.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "orrery/hardware/astra_network.hpp"
#include "orrery/hardware/wiring.hpp"
#include "orrery/memory/expansion.hpp"
#include "orrery/simulate/algorithm.hpp"

namespace orrery::simulate {

// The rules that a run follows.
enum class Semantics : std::uint8_t { astra_sim, physical };

using hardware::Wiring;
// As its files spell it; rails, which they cannot say, as Switch.
[[nodiscard]] std::string_view name_of(Wiring wiring);

using NetworkDimension = hardware::AstraDimension;

// The first dimension varies fastest: rank = sum of coordinate x product of the sizes before.
struct Network {
  std::vector<NetworkDimension> dimensions;

  [[nodiscard]] std::uint32_t ranks() const;
};

enum class Scheduling : std::uint8_t { LIFO, FIFO, EXPLICIT };
enum class Optimization : std::uint8_t { baseline, localBWAware };
// Of ASTRA-sim 1.0: the order of dimensions of a chunk, and which chunk a dimension takes next.
enum class InterDimension : std::uint8_t { baseline, themis };
enum class IntraDimension : std::uint8_t { fifo, smallest_first };

// The LogGP model of the bus between an accelerator and its memory, instead of the fixed endpoint delay.
struct SharedBus {
  std::uint64_t latency_ns = 0, overhead_ns = 0, gap_ns = 0;  // L, o, g
  float ns_per_byte = 0;                                      // G
};

struct System {
  Scheduling scheduling = Scheduling::LIFO;
  Optimization optimization = Optimization::baseline;
  InterDimension inter_dimension = InterDimension::baseline;  // inter-dimension-scheduling
  IntraDimension intra_dimension = IntraDimension::fifo;      // intra-dimension-scheduling, only with themis
  std::uint32_t splits = 1;                                   // preferred-dataset-splits
  std::uint32_t active_chunks = 1;                            // active-chunks-per-dimension
  std::uint64_t endpoint_delay_ns = 10;                       // scaled
  std::uint64_t reduction_delay_ns = 1;                       // local-reduction-delay, of the shared bus only
  double local_memory_gb = 0;  // local-mem-bw, 1e9 bytes per second; 0: reductions are free
  double peak_tflops = 0;      // peak-perf
  bool roofline = false;
  bool replay_only = false;
  bool recorded_first = false;   // physical: a recorded duration goes before the roofline
  std::optional<SharedBus> bus;  // model-shared-bus
  std::uint32_t queues_per_dimension = 1;
  bool rendezvous = false;
  std::array<Choice, kCollectives> algorithms;          // by Collective
  std::map<std::uint64_t, std::string> custom_of_node;  // per-node-custom-implementation: node id -> prefix
};

struct Group {
  std::string name;                  // as in the file, but numbers without leading zeros
  std::vector<std::uint32_t> ranks;  // in the file's order
};

// The key by which a group is found: "7" for "007", because numbers are compared as numbers.
[[nodiscard]] std::string group_key(std::string_view name);

// Finds groups by name, and members of groups, without a search through all groups and their ranks.
class GroupIndex {
 public:
  GroupIndex() = default;
  explicit GroupIndex(const std::vector<Group>& groups);  // which must outlive the index
  // Groups that all contain the ranks that contains() is asked for; without lists of their ranks.
  struct Sized {
    std::string name;
    std::uint32_t size = 0;
  };
  explicit GroupIndex(std::vector<Sized> groups);

  // Position of the group; nullopt where no group has the name.
  [[nodiscard]] std::optional<std::uint32_t> find(const std::string& name) const;
  [[nodiscard]] bool contains(std::uint32_t group, std::uint32_t rank) const;
  [[nodiscard]] std::uint32_t size(std::uint32_t group) const;
  [[nodiscard]] std::vector<std::string> names() const;  // in the order of positions

 private:
  const std::vector<Group>* groups_ = nullptr;
  std::vector<Sized> sized_;
  std::unordered_map<std::string, std::uint32_t> by_name_;
  std::vector<std::vector<std::uint32_t>> ascending_;  // ranks; empty where the group's list is ascending already
};

}  // namespace orrery::simulate
