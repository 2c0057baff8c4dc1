// Reads the nodes of a file in memory on several threads: one pass locates the records, one counts the entries of each
// range of them, one decodes every range to its place in the columns of the graph. Private to the room.
#pragma once

#include <optional>
#include <string_view>

#include "orrery/graph/graph.hpp"
#include "orrery/trace/chakra.hpp"
#include "orrery/trace/notes.hpp"
#include "orrery/trace/source.hpp"

namespace orrery::trace {

struct RangesRead {
  graph::Graph graph;
  Notes notes;
};

// `whole`: the file; its nodes start at byte `begin`. Nothing if the file has a mistake or exceeds the limits
// of a graph: reading in order then finds the reason.
[[nodiscard]] std::optional<RangesRead> read_ranges(Source& source, std::string_view whole, std::size_t begin,
                                                    const graph::Metadata& metadata, ChakraVersion version,
                                                    const ReadOptions& options);

}  // namespace orrery::trace
