// The graph of one rank in the form that the simulation needs: its nodes by ascending id, and their dependencies.
//
// 56 bytes per node and 4 per dependency.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/graph/graph.hpp"
#include "orrery/simulate/inputs.hpp"

namespace orrery::simulate {

// The resource that a node occupies while it runs; a rank has one of each.
enum class Slot : std::uint8_t { cpu, gpu, comm, none };
inline constexpr std::size_t kSlots = 3;  // without none

enum class Act : std::uint8_t {
  busy,  // for its duration
  collective,
  send,
  receive,
  memory,
  no_op,    // ends when it is issued; its children start in the next issue pass
  metadata  // ends when it is issued
};

inline constexpr std::uint32_t kWholeMachine = 0;  // of NodeTask::group; groups count from 1
inline constexpr std::uint16_t kNoDimensionList = 0xFFFF;
inline constexpr std::uint16_t kInSwitch = 0xFFFE;  // of NodeTask::dimensions of a collective: in the switch

inline constexpr std::uint64_t kLoad = 0, kStore = 1;  // of NodeTask::tag
inline constexpr std::uint16_t kCombined = 1;          // of NodeTask::dimensions of memory accesses

struct NodeTask {
  std::uint64_t id = 0;
  std::uint64_t amount = 0;  // busy: nanoseconds, picoseconds in physical semantics; communication and memory: bytes
  std::uint64_t tag = 0;     // send, receive; memory: kLoad or kStore; collective: keys::slows_kernels
  // In a graph that ranks share, slots of RankBinding; otherwise the rank and the number of the group.
  std::uint32_t peer = 0;  // send, receive
  std::uint32_t group = 0;
  std::uint32_t parents = 0;
  std::int32_t priority = 0;
  // involved_dim, a bit each. Memory accesses: kCombined if the members of `group` access the same bytes together.
  std::uint16_t dimensions = kNoDimensionList;
  std::uint16_t custom = 0;  // 1 + index of the graphs that this node runs instead of an algorithm
  Collective collective = Collective::all_reduce;
  Act act = Act::busy;
  Slot slot = Slot::none;
  bool counts_as_compute = false;  // its time is not exposed

  friend bool operator==(const NodeTask&, const NodeTask&) = default;
};

[[nodiscard]] inline bool is_combined(const NodeTask& task) {
  return task.act == Act::memory && task.dimensions == kCombined;
}

// Of a collective, or of memory accesses that the members of a group combine.
[[nodiscard]] inline bool has_group(const NodeTask& task) { return task.act == Act::collective || is_combined(task); }

// Of the kernels of a rank, for results::Roofline: those with num_ops and tensor_size, and the others.
struct KernelTotals {
  double operations = 0, bytes = 0;
  std::uint64_t kernels = 0, time = 0;  // picoseconds
  std::uint64_t memory_bound = 0;       // picoseconds of kernels whose bytes at the memory's peak take longer
  std::uint64_t without_figures = 0, time_without_figures = 0;
};

// A tensor that a node reads or writes.
struct TensorUse {
  std::uint32_t node = 0;    // position in RankGraph::nodes
  std::uint32_t tensor = 0;  // number on the rank
  std::uint64_t bytes = 0;
  bool writes = false;
};

struct RankGraph {
  std::vector<NodeTask> nodes;             // ascending ids
  std::vector<std::uint32_t> child_begin;  // one per node and one more
  std::vector<std::uint32_t> children;     // positions in `nodes`, ascending
  std::vector<std::string> names;          // by node, if the job keeps spans
  KernelTotals kernels{};                  // if the job asks for them
  std::vector<TensorUse> tensors{};        // the same; by node
  // Deviations of ASTRA-sim's semantics on this rank, for warnings.
  bool cut_durations = false;        // duration_ns is more exact than the whole microseconds that are replayed
  bool replayed_broadcasts = false;  // take their recorded duration, whatever their size

  [[nodiscard]] std::span<const std::uint32_t> children_of(std::uint32_t node) const {
    return {children.data() + child_begin[node], children.data() + child_begin[node + 1]};
  }
};

// Of the accelerator of a rank: a kernel takes the longer of its operations / peak and its bytes / memory bandwidth.
struct KernelRates {
  double local_memory_gb = 0;  // 1e9 bytes per second
  double peak_tflops = 0;
  friend bool operator==(const KernelRates&, const KernelRates&) = default;
};

// What compile() needs besides the graph.
struct CompileContext {
  const System& system;
  const GroupIndex& groups;
  memory::Arrangement memory;
  std::uint32_t ranks = 0;
  std::uint32_t dimensions = 0;  // of the network
  bool names = false;            // keep the names of nodes
  Semantics semantics = Semantics::astra_sim;
  bool kernels = false;                     // add up RankGraph::kernels; physical semantics
  bool tensors = false;                     // keep RankGraph::tensors
  std::span<const KernelRates> rates = {};  // by rank; empty: those of the system
};

// Fails, with file and node, for graphs that cannot run: duplicate ids, missing parents, cycles, unknown types, missing
// or invalid attributes, peers and groups that do not exist.
[[nodiscard]] Result<RankGraph> compile(const graph::Graph& graph, std::uint32_t rank, const std::string& file,
                                        const CompileContext& context);

}  // namespace orrery::simulate
