// In what two graphs differ, whatever numbers their nodes have and in whatever order they come.
//
// Nodes are matched by what they are (type, name, times, attributes, inputs and outputs) and by what stands around
// them, from the most alike to the least: first nodes whose surroundings up to three dependencies away are the same on
// both sides, from there along dependencies; then nodes that are the same while their surroundings are not; then nodes
// that have at least name and type in common, or stand between the same neighbours. What is left is on one side only.
//
// Every pair is then held against each other, dependencies included. No difference therefore means that the graphs are
// the same but for the numbers. The other way round, a match can be unlucky among nodes that nothing tells apart but
// how they are connected far away: then more is said to differ than has to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "orrery/graph/graph.hpp"

namespace orrery::graph {

struct DifferenceOptions {
  std::size_t most = 20;                // how many are told; all are counted
  bool names = true;                    // false: names do not count
  bool times = true;                    // false: start times and durations do not
  bool io = true;                       // false: inputs and outputs do not
  bool metadata = true;                 // false: what the files say of themselves does not
  std::vector<std::string> attributes;  // that do not count
};

enum class DifferenceKind : std::uint8_t { metadata, changed, only_in_a, only_in_b };

// "metadata", "changed", "only in A", "only in B".
[[nodiscard]] std::string_view name_of(DifferenceKind kind);

struct DifferingNode {
  DifferenceKind kind = DifferenceKind::changed;
  std::optional<std::uint64_t> a, b;  // ids
  std::string name;
  std::vector<std::string> what;  // "duration_micros: 5 -> 7", "data_deps: without 3; with 4"
};

struct Difference {
  std::uint64_t matched = 0;  // pairs, the same or changed
  std::uint64_t metadata = 0, changed = 0, only_in_a = 0, only_in_b = 0;
  std::vector<DifferingNode> first;

  [[nodiscard]] bool none() const { return metadata + changed + only_in_a + only_in_b == 0; }
};

[[nodiscard]] Difference difference(const Graph& a, const Graph& b, const DifferenceOptions& options = {});

}  // namespace orrery::graph
