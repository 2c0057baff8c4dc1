// Small jobs for the tests of the room, without files: a network, a system, and nodes by rank.
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "orrery/graph/builder.hpp"
#include "orrery/simulate/simulate.hpp"

namespace orrery::simulate::test {

// The same numbers for the same seed.
class RandomNumbers {
 public:
  explicit RandomNumbers(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15U + 1) {}
  std::uint32_t below(std::uint32_t end) {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::uint32_t>((state_ >> 33) % end);
  }

 private:
  std::uint64_t state_;
};

using graph::Attribute;
using graph::CollectiveType;
using graph::NodeRecord;
using graph::NodeType;
using graph::Value;
namespace keys = graph::keys;

// ---- nodes ---------------------------------------------------------------------------------------------------------

inline Attribute number(std::string_view name, std::int64_t value) { return {name, Value::integer(value), {}, {}}; }

inline NodeRecord node(std::uint64_t id, NodeType type, std::vector<std::uint64_t> parents = {}) {
  NodeRecord made;
  made.id = id;
  made.name = "n";
  made.type = type;
  made.data_deps = std::move(parents);
  return made;
}

inline NodeRecord compute(std::uint64_t id, std::uint64_t microseconds, std::vector<std::uint64_t> parents = {}) {
  NodeRecord made = node(id, NodeType::comp, std::move(parents));
  made.duration_us = microseconds;
  return made;
}

inline NodeRecord on_host(NodeRecord made) {
  made.attributes.push_back({keys::is_cpu_op, Value::boolean(true), {}, {}});
  return made;
}

// `group` must outlive the node, as a literal does.
inline NodeRecord collective(std::uint64_t id, CollectiveType type, std::int64_t bytes,
                             std::vector<std::uint64_t> parents = {}, std::string_view group = {}) {
  NodeRecord made = node(id, NodeType::comm_coll, std::move(parents));
  made.attributes = {number(keys::comm_type, static_cast<std::int64_t>(type)), number(keys::comm_size, bytes)};
  if (!group.empty()) { made.attributes.push_back({keys::pg_name, Value::text(group), {}, {}}); }
  return made;
}

inline NodeRecord all_reduce(std::uint64_t id, std::int64_t bytes, std::vector<std::uint64_t> parents = {},
                             std::string_view group = {}) {
  return collective(id, CollectiveType::all_reduce, bytes, std::move(parents), group);
}

inline NodeRecord send(std::uint64_t id, std::int64_t to, std::int64_t bytes, std::vector<std::uint64_t> parents = {}) {
  NodeRecord made = node(id, NodeType::comm_send, std::move(parents));
  made.attributes = {number(keys::comm_dst, to), number(keys::comm_size, bytes), number(keys::comm_tag, 0)};
  return made;
}

inline NodeRecord receive(std::uint64_t id, std::int64_t from, std::int64_t bytes,
                          std::vector<std::uint64_t> parents = {}) {
  NodeRecord made = node(id, NodeType::comm_recv, std::move(parents));
  made.attributes = {number(keys::comm_src, from), number(keys::comm_size, bytes), number(keys::comm_tag, 0)};
  return made;
}

inline NodeRecord memory_access(std::uint64_t id, NodeType type, std::int64_t bytes,
                                std::vector<std::uint64_t> parents = {}) {
  NodeRecord made = node(id, type, std::move(parents));
  made.attributes = {number(keys::tensor_size, bytes)};
  return made;
}

inline graph::Graph graph_of(const std::vector<NodeRecord>& nodes) {
  graph::GraphBuilder builder;
  for (const NodeRecord& record : nodes) { builder.add(record); }
  auto made = builder.finish();
  if (!made) { throw std::runtime_error(made.error().text()); }
  return std::move(*made);
}

// ---- jobs ----------------------------------------------------------------------------------------------------------

// `job` with a graph for each rank.
inline SimulationJob with_graphs(SimulationJob job, const std::vector<std::vector<NodeRecord>>& nodes) {
  job.files.assign(nodes.size(), "");
  const GroupIndex index(job.groups);
  for (std::uint32_t rank = 0; rank < nodes.size(); ++rank) {
    auto compiled = compile(graph_of(nodes[rank]), rank, "", compile_context(job, index));
    if (!compiled) { throw std::runtime_error(compiled.error().text()); }
    job.rank_graphs.push_back(std::move(*compiled));
  }
  return job;
}

constexpr std::int64_t kMiB = 1 << 20;

// As in a network file, whose unit of bandwidth depends on the semantics: 2^30 or 10^9 bytes per second.
struct RigDimension {
  Wiring wiring = Wiring::ring;
  std::uint32_t ranks = 2;
  double bandwidth = 50;
  double latency_ns = 500;
};

// The defaults of tests: bandwidth 50 and 500 ns in each dimension, an endpoint delay of 10 ns, a local memory of 1600
// GB/s, one chunk, one queue.
struct Rig {
  std::vector<RigDimension> dimensions;
  System system;
  Semantics semantics = Semantics::astra_sim;
  Backend backend = Backend::congestion_unaware;
  memory::Expansion memory;
  std::vector<Group> groups;

  Rig(std::vector<std::pair<Wiring, std::uint32_t>> shape, const std::vector<std::string>& algorithms) {
    for (const auto& [wiring, ranks] : shape) { dimensions.push_back({wiring, ranks}); }
    system.optimization = Optimization::localBWAware;
    system.local_memory_gb = 1600;
    use(algorithms);
  }
  Rig& use(const std::vector<std::string>& names) {
    std::vector<DimensionAlgorithm> algorithms;
    for (const std::string& name : names) { algorithms.push_back(algorithm(name).value()); }
    for (Choice& choice : system.algorithms) { choice = algorithms; }
    return *this;
  }
  Rig& chunks(std::uint32_t splits, std::uint32_t active = 1, std::uint32_t queues = 1) {
    system.splits = splits;
    system.active_chunks = active;
    system.queues_per_dimension = queues;
    return *this;
  }
  Rig& aware() {
    backend = Backend::congestion_aware;
    return *this;
  }
  Rig& physical() {
    semantics = Semantics::physical;
    return aware();
  }
};

using Nodes = std::function<std::vector<NodeRecord>(std::uint32_t rank)>;

inline Result<SimulationJob> job_of(const Rig& rig, const Nodes& nodes) {
  SimulationJob job;
  job.semantics = rig.semantics;
  job.backend = rig.backend;
  job.tables = job.spans = rig.semantics == Semantics::physical;
  const double unit = rig.semantics == Semantics::physical ? 1e9 : static_cast<double>(1U << 30U);
  for (const RigDimension& each : rig.dimensions) {
    job.network.dimensions.push_back({each.wiring, each.ranks, each.bandwidth * unit, each.latency_ns});
  }
  job.system = rig.system;
  job.memory = rig.memory;
  job.groups = rig.groups;
  const std::uint32_t ranks = job.network.ranks();
  const GroupIndex groups(job.groups);
  const CompileContext context = compile_context(job, groups);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    job.files.push_back("w." + std::to_string(rank) + ".et");
    ORRERY_TRY(rank_graph, compile(graph_of(nodes(rank)), rank, job.files.back(), context));
    job.rank_graphs.push_back(std::move(rank_graph));
  }
  if (auto whole = complete(job); !whole) { return tl::make_unexpected(whole.error()); }
  return job;
}

inline Result<results::Simulation> run(const Rig& rig, const Nodes& nodes) {
  ORRERY_TRY(job, job_of(rig, nodes));
  return simulate(job);
}

using Times = std::vector<std::uint64_t>;

inline Times finish_of(const Result<results::Simulation>& simulation) {
  if (!simulation) { throw std::runtime_error(simulation.error().text()); }
  Times times;
  for (const auto& rank : simulation->ranks) { times.push_back(rank.finish_ns); }
  return times;
}

// All ranks have the same nodes.
inline Times finish(const Rig& rig, const std::vector<NodeRecord>& nodes) {
  return finish_of(run(rig, [&](std::uint32_t) { return nodes; }));
}
inline Times finish(const Rig& rig, const NodeRecord& only) { return finish(rig, std::vector{only}); }

inline Times all(std::size_t ranks, std::uint64_t time) { return Times(ranks, time); }

}  // namespace orrery::simulate::test
