// The differences of two graphs, independently of node ids and of the order of nodes.
//
// Nodes are matched by their content (type, name, times, attributes, inputs and outputs) and by their neighbours, the
// most similar first: nodes whose neighbourhoods of up to three dependencies are equal on both sides, and from them
// along dependencies; then nodes with equal content and different neighbourhoods; then nodes that have only name and
// type in common, or the same neighbours. The remaining nodes exist on one side only.
//
// Every pair is then compared, dependencies included. No difference therefore means that the graphs are equal except
// for ids. The converse does not hold: among nodes that differ only in distant connections a match can be wrong, and
// then more differences are reported than necessary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "orrery/graph/graph.hpp"

namespace orrery::graph {

struct DifferenceOptions {
  std::size_t most = 20;                // differences to report; all are counted
  bool names = true;                    // false: names are ignored
  bool times = true;                    // false: start times and durations are ignored
  bool io = true;                       // false: inputs and outputs are ignored
  bool metadata = true;                 // false: metadata is ignored
  std::vector<std::string> attributes;  // to ignore
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
  std::uint64_t matched = 0;  // pairs, equal or changed
  std::uint64_t metadata = 0, changed = 0, only_in_a = 0, only_in_b = 0;
  std::vector<DifferingNode> first;

  [[nodiscard]] bool none() const { return metadata + changed + only_in_a + only_in_b == 0; }
};

[[nodiscard]] Difference difference(const Graph& a, const Graph& b, const DifferenceOptions& options = {});

}  // namespace orrery::graph
