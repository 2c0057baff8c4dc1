// Nodes of the graph of one rank, in the attributes that ASTRA-sim's feeder reads (docs/guide/generate.md).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/core/units.hpp"
#include "orrery/generate/options.hpp"
#include "orrery/generate/process_groups.hpp"
#include "orrery/graph/record.hpp"

namespace orrery::generate {

using NodeId = std::uint64_t;
using NodeIds = std::vector<NodeId>;

// Adds what `ids` lacks of `more`.
void join(NodeIds& ids, const NodeIds& more);

// Where nodes go: a file, a graph.
class NodeSink {
 public:
  NodeSink() = default;
  NodeSink(const NodeSink&) = delete;
  NodeSink& operator=(const NodeSink&) = delete;
  virtual ~NodeSink() = default;
  // The record lives until the call returns.
  [[nodiscard]] virtual Result<void> write(const graph::NodeRecord& node) = 0;
};

struct Work {
  Flops flops;
  Bytes bytes;
  Seconds time;

  Work& operator+=(const Work& other) {
    flops += other.flops;
    bytes += other.bytes;
    time += other.time;
    return *this;
  }
};

// A message of a pipeline, or of a round of ring attention.
struct Message {
  std::int64_t peer = 0;  // rank
  std::uint64_t tag = 0;
  Bytes bytes;
  // Of a ring: the peer of another rank is its neighbour in the group; otherwise as many ranks away.
  bool in_ring = false;
};

// Ids are 1, 2, ... Sizes are whole bytes, at least 1; durations whole nanoseconds, and whole microseconds in the field
// of the node. A node is written when it is added; the first failure of the sink is kept, and nothing is written after
// it.
class NodeWriter {
 public:
  NodeWriter(const ProcessGroups& groups, std::int64_t rank, Naming naming, NodeSink& sink);

  // Names of nodes begin with it. A static string.
  void set_prefix(std::string_view prefix) { prefix_ = prefix; }

  NodeId compute(std::string_view name, const Work& work, const NodeIds& parents);
  NodeId host(std::string_view name, Seconds time, const NodeIds& parents);
  // `bytes`: nccl-tests size, the whole buffer. The group must have other members. `slows_kernels`: the part of their
  // rate that kernels lose beside it.
  NodeId collective(std::string_view name, Collective collective, const GroupFamily& family, Bytes bytes,
                    const NodeIds& parents, double slows_kernels = 0.0);
  // `sharers`: the members of the group load or store the same bytes; null: the rank loads or stores bytes of its own.
  NodeId memory(std::string_view name, graph::NodeType type, Bytes bytes, const NodeIds& parents,
                const GroupFamily* sharers = nullptr);
  NodeId send(std::string_view name, const Message& message, const NodeIds& parents);
  NodeId receive(std::string_view name, const Message& message, const NodeIds& parents);

  [[nodiscard]] std::int64_t rank() const { return rank_; }
  [[nodiscard]] const ProcessGroups& groups() const { return groups_; }
  // The program must use the kind on the lane.
  [[nodiscard]] const GroupFamily& family(parallel::GroupKind kind, Lane lane) const;

  [[nodiscard]] bool failed() const { return !result_; }
  [[nodiscard]] Result<void> result() const { return result_; }
  [[nodiscard]] std::uint64_t count() const { return next_ - 1; }

 private:
  void begin(std::string_view name, graph::NodeType type, const NodeIds& parents, bool on_host = false);
  void add(std::string_view key, std::int64_t value) {
    record_.attributes.push_back({key, graph::Value::integer(value), {}, {}});
  }
  void add_text(std::string_view key, std::string_view value) {
    record_.attributes.push_back({key, graph::Value::text(value), {}, {}});
  }
  void set_duration(Seconds time);
  NodeId message(std::string_view name, graph::NodeType type, std::string_view key, const Message& message,
                 const NodeIds& parents);
  NodeId finish();

  const ProcessGroups& groups_;
  std::int64_t rank_;
  Naming naming_;
  NodeSink& sink_;
  std::vector<std::string> names_;  // pg_name, by position of the family
  std::string_view prefix_;
  std::string name_;
  graph::NodeRecord record_;
  NodeId next_ = 1;
  Result<void> result_;
};

// Whole numbers that a node has.
[[nodiscard]] std::int64_t whole(double value, std::int64_t least);

}  // namespace orrery::generate
