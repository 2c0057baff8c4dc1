// Reads the nodes of a file that lies in memory on several threads: where the records are (one pass), how many entries
// each range of them has, then every range into its place in the columns of the graph. Private to the room.
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

// `whole`: the file; its nodes start at byte `begin`. Nothing when there is anything that is not well-formed, or more
// than a graph can hold: reading in order says what it is.
[[nodiscard]] std::optional<RangesRead> read_ranges(Source& source, std::string_view whole, std::size_t begin,
                                                    const graph::Metadata& metadata, ChakraVersion version,
                                                    const ReadOptions& options);

}  // namespace orrery::trace
