// A generated graph in memory.
#pragma once

#include "orrery/generate/node_writer.hpp"
#include "orrery/graph/builder.hpp"

namespace orrery::generate {

class GraphSink : public NodeSink {
 public:
  graph::GraphBuilder builder;
  Result<void> write(const graph::NodeRecord& node) override {
    builder.add(node);
    return {};
  }
};

}  // namespace orrery::generate
