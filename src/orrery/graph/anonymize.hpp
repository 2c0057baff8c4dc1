// Removes from a graph what identifies the model.
//
// Kept: ids, types, dependencies, start times, durations, and the attributes that simulators read (kept_attributes).
// Replaced: names of nodes by "n0", "n1", … and names of process groups that are more than a number by "g0", "g1", …,
// equal names by equal names. Removed: every other attribute, comments of attributes, inputs and outputs, metadata
// (except version and process groups), fields that are not in the schema.
//
// Not promised: that the model cannot be inferred from structure, sizes and times, which are all kept.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "orrery/core/error.hpp"
#include "orrery/graph/graph.hpp"

namespace orrery::graph {

// Use one object for all graphs of a job, so that equal names stay equal between them.
class Anonymizer {
 public:
  [[nodiscard]] Result<Graph> anonymized(const Graph& graph);

 private:
  [[nodiscard]] const std::string& node_name(std::string_view name);
  [[nodiscard]] std::string_view group_name(std::string_view name);

  std::unordered_map<std::string, std::string> nodes_, groups_;
};

// Names of attributes that are kept if their value is a number or a list of numbers (pg_name: any value).
[[nodiscard]] std::span<const std::string_view> kept_attributes();

}  // namespace orrery::graph
