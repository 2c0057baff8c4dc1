// Attributes of the nodes of a graph, with keys looked up once, and errors in them. Private to the room.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "orrery/core/error.hpp"
#include "orrery/graph/graph.hpp"

namespace orrery::simulate {

class GraphFields {
 public:
  using Key = std::optional<graph::KeyIndex>;

  // `whose`: "rank 3", for errors.
  GraphFields(const graph::Graph& graph, const std::string& file, const std::string& whose);

  // Fails for graphs that cannot run: without nodes, with duplicate ids, missing parents or cycles.
  [[nodiscard]] Result<void> runnable() const;

  [[nodiscard]] const graph::Graph& graph() const { return graph_; }
  [[nodiscard]] std::optional<graph::Value> value(graph::NodeIndex node, Key key) const {
    return key ? graph_.value(node, key) : std::nullopt;
  }
  [[nodiscard]] bool truth(graph::NodeIndex node, Key key);
  [[nodiscard]] std::int64_t integer(graph::NodeIndex node, Key key);  // 0 if absent

  // The attribute duration_ns of a node; without it, 1000 times its duration in microseconds.
  [[nodiscard]] std::uint64_t duration_ns(graph::NodeIndex node) const;

  // A number that is required and not negative.
  [[nodiscard]] std::uint64_t need(graph::NodeIndex node, Key key, std::string_view name);

  void add_error(graph::NodeIndex node, std::string message);
  [[nodiscard]] bool failed() const { return !failure_.diagnostics.empty(); }
  [[nodiscard]] const Failure& failure() const { return failure_; }

  Key is_cpu_op, num_ops, tensor_size, comm_type, comm_size, comm_src, comm_dst, comm_tag, comm_priority, pg_name,
      involved_dim, slows_kernels, in_switch, inputs, outputs, exact_duration;

 private:
  [[nodiscard]] Place place(std::uint64_t id) const;

  const graph::Graph& graph_;
  std::string file_, whose_;
  Failure failure_;
};

}  // namespace orrery::simulate
