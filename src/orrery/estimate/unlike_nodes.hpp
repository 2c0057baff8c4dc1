// A training step, or a batch of requests, on nodes of different accelerators (hardware::Cluster::nodes).
//
// Ranks of a stage that wait for each other in every layer (tensor, context and expert parallelism; all replicas, if
// weights are gathered or gradients reduced in every micro-batch) run at the speed of the slowest: a block takes the
// longest of its times on their accelerators. Replicas that meet at the end of the step only are pipelines of their
// own, of which the slowest decides; so are replicas of inference. Layers and batches are divided evenly, not by speed.
//
// Not exact where a block has several collectives and one accelerator is slower before the first of them, another one
// behind it: all wait there for the slowest, and the block takes longer than on any of them alone.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "orrery/estimate/inference.hpp"
#include "orrery/estimate/step.hpp"
#include "orrery/hardware/cluster.hpp"
#include "orrery/hardware/stack.hpp"
#include "orrery/network/fabric.hpp"
#include "orrery/network/price_cache.hpp"
#include "orrery/parallel/program.hpp"
#include "orrery/results/estimate.hpp"
#include "orrery/workload/model.hpp"

namespace orrery::estimate {

// Entries of Cluster::nodes, a bit each.
using NodeSet = std::uint64_t;

// [stage]: the nodes of ranks that wait for each other in every layer.
using StageNodes = std::vector<NodeSet>;

// The different ones, over all such sets of ranks of a stage. Requires is_placed(cluster, plan).
[[nodiscard]] std::vector<StageNodes> stage_nodes(const hardware::Cluster& cluster, const workload::Model& model,
                                                  const parallel::Plan& plan, const hardware::Stack& stack);

// A program in which stages on different nodes have blocks of their own.
struct NodeProgram {
  parallel::Program program;
  std::vector<NodeSet> nodes;  // [block]
};
[[nodiscard]] NodeProgram by_nodes(const parallel::Program& program, const StageNodes& nodes);

// Not thread-safe. Model, cluster and stack must outlive it.
class UnlikeNodes {
 public:
  UnlikeNodes(const workload::Model& model, const hardware::Cluster& cluster, const hardware::Stack& stack);

  // The step of the slowest pipeline, and its program. Valid until the next call.
  struct Solved {
    const parallel::Program& program;
    const Step& step;
    const hardware::Cluster& cluster;  // with the accelerator of the critical stage, the slowest if it has several
    const network::Fabric& fabric;     // of it
  };
  [[nodiscard]] Solved solve(const parallel::Program& program, StepSolver& solver, Explained explained, Ports ports);

  // The batch of the slowest replica. Valid until the next call.
  struct SolvedBatch {
    const parallel::Program& program;
    const Generation& generation;
    const hardware::Cluster& cluster;  // as above
    const network::Fabric& fabric;
  };
  [[nodiscard]] SolvedBatch solve_batch(const parallel::Program& program);

  // [stage]: the least memory of the accelerators of a stage.
  [[nodiscard]] std::vector<Bytes> memory(const parallel::Plan& plan) const;
  [[nodiscard]] std::vector<results::StageNodes> accelerators(const parallel::Plan& plan) const;

 private:
  struct Kind {
    Kind(const hardware::Cluster& cluster, const hardware::Accelerator& accelerator, const hardware::Stack& stack);
    hardware::Cluster cluster;
    network::Fabric fabric;
    network::PriceCache prices;
  };
  [[nodiscard]] WorkPrice prices_of(const NodeProgram& made, Ports ports);
  [[nodiscard]] const Kind& slowest(const NodeProgram& made, std::int64_t stage);

  const workload::Model& model_;
  const hardware::Cluster& cluster_;
  const hardware::Stack& stack_;
  std::vector<std::unique_ptr<Kind>> kinds_;  // [entry of Cluster::nodes]
  NodeProgram program_;
  Step step_;
  Generation generation_;
};

}  // namespace orrery::estimate
