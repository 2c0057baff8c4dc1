// Reads imported graphs for a replay. Private to the room.
#pragma once

#include <map>
#include <string>
#include <unordered_map>

#include "orrery/profile/plan_graph.hpp"
#include "orrery/profile/replay.hpp"

namespace orrery::profile {

class ReplayJob::Reader {
 public:
  explicit Reader(ReplayJob& job) : job_(job) {}

  Result<void> add(const graph::Graph& graph);
  void finish();

 private:
  struct Keys {
    std::optional<graph::KeyIndex> lags, step_begin, step_end, collective, wire, cpu, unexplained, operation;
  };
  Result<void> add_node(const graph::Graph& graph, const Keys& keys, graph::NodeIndex node, std::uint32_t first);
  [[nodiscard]] std::uint32_t kernel(const graph::Graph& graph, const Keys& keys, graph::NodeIndex node,
                                     std::int64_t duration);
  void add_step(std::uint64_t number, std::uint32_t node, bool begins);
  void add_member(const graph::Graph& graph, graph::NodeIndex node, std::int64_t instance, std::int64_t wire,
                  std::uint32_t position);

  ReplayJob& job_;
  std::unordered_map<std::string, std::uint32_t> kernels_;  // by name, operator and shape
  std::map<std::int64_t, std::uint32_t> instances_;
  std::map<std::pair<std::size_t, std::uint64_t>, std::uint32_t> step_of_;
};

}  // namespace orrery::profile
