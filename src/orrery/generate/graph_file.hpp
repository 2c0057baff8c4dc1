// A graph that is written to a file node by node. Private to the room.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "orrery/core/error.hpp"
#include "orrery/generate/node_writer.hpp"
#include "orrery/graph/record.hpp"

namespace orrery::generate {

class GraphFile : public NodeSink {
 public:
  // Returns the size of the file in bytes.
  [[nodiscard]] virtual Result<std::uint64_t> close() = 0;
};

// The suffix selects the format: see OutputNames.
[[nodiscard]] Result<std::unique_ptr<GraphFile>> open_graph_file(const std::string& path,
                                                                 const graph::Metadata& metadata);

}  // namespace orrery::generate
