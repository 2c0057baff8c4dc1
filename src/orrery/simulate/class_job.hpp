// A job whose ranks come in classes. The ranks of a class have the same graph; they differ in the members of their
// process groups and in their peers only. Such a job can be simulated with one rank of each class (folded), if the
// ranks of a class cannot differ in time: their groups have the same shape on the cluster, and their messages cross the
// same dimension. Formats: docs/guide/generate.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/graph/graph.hpp"
#include "orrery/parallel/layout.hpp"
#include "orrery/simulate/flow_job.hpp"

namespace orrery::simulate {

// The ranks first + i x stride + j x outer_stride, for all i below inner and all j below degree / inner.
struct StridedRanks {
  std::uint64_t first = 0, stride = 1, degree = 1;
  std::uint64_t inner = degree, outer_stride = 0;

  [[nodiscard]] std::uint64_t rank(std::uint64_t position) const {
    return first + position % inner * stride + position / inner * outer_stride;
  }
  [[nodiscard]] std::uint64_t place(std::uint64_t rank) const {
    if (inner == degree) { return (rank - first) / stride; }
    return (rank - first) % outer_stride / stride + (rank - first) / outer_stride * inner;
  }
  [[nodiscard]] bool contains(std::uint64_t rank) const {
    if (rank < first) { return false; }
    const std::uint64_t away = rank - first;
    if (inner == degree) { return away % stride == 0 && away / stride < degree; }
    const std::uint64_t within = away % outer_stride;
    return within % stride == 0 && within / stride < inner && away / outer_stride < degree / inner;
  }
  // All members are in one block of so many ranks.
  [[nodiscard]] std::uint64_t span() const {
    return inner == degree ? stride * degree : outer_stride * (degree / inner);
  }
};

// Process groups of one kind: group k of a strided family has the ranks k / stride * stride * degree + k % stride +
// i * stride. With outer_degree > 1, the members are blocks of such ranks, outer_stride ranks apart. A mirrored group
// has a rank of class c and the rank at the same place of the last class but c.
struct GroupFamily {
  std::string name;              // pg_name in the graphs; a kind of traffic in reports
  std::uint64_t first_name = 1;  // of group 0, for graphs of single ranks
  std::uint64_t count = 0;
  std::uint64_t stride = 1, degree = 1;
  bool is_mirrored = false;
  std::uint64_t outer_stride = 0, outer_degree = 1;  // outer_stride: a multiple of stride x degree

  [[nodiscard]] std::uint64_t size() const { return degree * outer_degree; }
};

// Classes have the same number of ranks, one behind the other.
struct ClassGraph {
  std::string file;  // for errors
  // Of the first rank of the class, with the groups of families: NodeTask::group is 1 + number of the family, or 0 for
  // all ranks. Peers are ranks.
  RankGraph graph;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ring_messages;  // node, family: the peer is a neighbour in it
};

struct ClassJob {
  SimulationJob machine;  // of machine_on: without graphs and groups
  network::NodeEgress egress = network::NodeEgress::all_ports;
  std::uint32_t class_ranks = 0;  // of each class
  parallel::Layout layout;        // of the ranks on the cluster; empty: rank order
  std::vector<GroupFamily> families;
  std::vector<ClassGraph> classes;

  [[nodiscard]] std::uint32_t ranks() const { return class_ranks * static_cast<std::uint32_t>(classes.size()); }
  [[nodiscard]] std::uint32_t first_rank(std::size_t c) const { return class_ranks * static_cast<std::uint32_t>(c); }
  // The group of a family that a rank is in, by its number; none if it is in none.
  [[nodiscard]] std::optional<std::uint64_t> group_of(const GroupFamily& family, std::uint64_t rank) const;
  [[nodiscard]] StridedRanks members(const GroupFamily& family, std::uint64_t group) const;
};

// Adds the graph of the next class. `classes`: number of classes that the job will have.
[[nodiscard]] Result<void> add_class(ClassJob& job, const graph::Graph& graph, const std::string& file,
                                     std::size_t classes);

enum class Folding : std::uint8_t { automatic, off };

struct FoldedJob {
  FlowJob job;
  std::string unfolded_because;  // why every rank is simulated; empty if the job is folded, or was not to be
};

// One simulated rank for each class; every rank if the ranks of a class may differ in time, or with Folding::off.
[[nodiscard]] FoldedJob folded(const hardware::Cluster& cluster, const ClassJob& job, Folding folding);

// Why the ranks of a class may differ in time; nothing if they cannot.
struct FoldObstacle {
  std::string text;
  bool is_of_messages = false;  // not of groups
};
[[nodiscard]] std::optional<FoldObstacle> fold_obstacle(const hardware::Cluster& cluster, const ClassJob& job);

// The shape of a group of the family, if all have the same.
[[nodiscard]] std::optional<network::Group> common_shape(const hardware::Cluster& cluster, const ClassJob& job,
                                                         const GroupFamily& family);

}  // namespace orrery::simulate
