// A graph without what tells which model it is of.
//
// Kept: ids, types, dependencies, start times, durations, and the attributes that simulators read (kept_attributes).
// Replaced: names of nodes by "n0", "n1", … and names of process groups that are more than a number by "g0", "g1", …,
// equal ones by equal ones. Removed: every other attribute, comments of attributes, inputs and outputs, what a file
// says of itself (but its version and its process groups), fields that the schema does not know.
//
// Not promised: that nobody can guess the model from its structure, sizes and times, which are all there.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "orrery/core/error.hpp"
#include "orrery/graph/graph.hpp"

namespace orrery::graph {

// One for all graphs of a job, so that names that are equal stay equal between them.
class Anonymizer {
 public:
  [[nodiscard]] Result<Graph> anonymized(const Graph& graph);

 private:
  [[nodiscard]] const std::string& node_name(std::string_view name);
  [[nodiscard]] std::string_view group_name(std::string_view name);

  std::unordered_map<std::string, std::string> nodes_, groups_;
};

// Names of attributes that stay, where their value is a number or a list of numbers (pg_name: any).
[[nodiscard]] std::span<const std::string_view> kept_attributes();

}  // namespace orrery::graph
