// A lowered program as execution graphs, one per rank or one per pipeline stage.
//
//   JobGraphs graphs(program, cluster, stack, options);
//   if (auto ok = graphs.writable(); !ok) { … }
//   auto nodes = graphs.write(rank, Naming::ranks, sink);
//
// Ranks are written one at a time, in memory that depends neither on their number nor on the number of nodes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/generate/kernel_works.hpp"
#include "orrery/generate/node_writer.hpp"
#include "orrery/generate/options.hpp"
#include "orrery/generate/process_groups.hpp"
#include "orrery/generate/training_step.hpp"
#include "orrery/hardware/cluster.hpp"
#include "orrery/hardware/stack.hpp"
#include "orrery/parallel/pair_order.hpp"
#include "orrery/parallel/program.hpp"

namespace orrery::generate {

// Program, cluster and stack must outlive it.
class JobGraphs {
 public:
  JobGraphs(const parallel::Program& program, const hardware::Cluster& cluster, const hardware::Stack& stack,
            const Options& options);

  // Fails for a job that has no graphs: more messages than tags.
  [[nodiscard]] static Result<void> writable(const parallel::Program& program, const Options& options);

  [[nodiscard]] std::int64_t ranks() const { return program_.plan.devices(); }
  [[nodiscard]] std::int64_t stages() const { return program_.plan.pp; }
  [[nodiscard]] std::int64_t first_rank(std::int64_t stage) const { return stage * program_.plan.stage_ranks(); }
  [[nodiscard]] std::int64_t stage_ranks() const { return program_.plan.stage_ranks(); }
  [[nodiscard]] const ProcessGroups& groups() const { return groups_; }
  // Whether collectives leave a node through one port (the stack's transfers.ports).
  [[nodiscard]] network::NodeEgress egress() const { return network::egress_of(stack_.transfers.ports); }

  // Returns the number of nodes. With Naming::ranks, the graph is that of the device of the rank
  // (ProcessGroups::device).
  [[nodiscard]] Result<std::uint64_t> write(std::int64_t rank, Naming naming, NodeSink& sink) const;
  // As if the rank were on nodes of an entry of Cluster::nodes.
  [[nodiscard]] Result<std::uint64_t> write_on(std::size_t entry, std::int64_t rank, Naming naming,
                                               NodeSink& sink) const;
  // The entry of Cluster::nodes that a rank is on; 0 if all nodes are alike.
  [[nodiscard]] std::size_t nodes_entry(std::int64_t rank) const;

  // The tasks of the graph of a rank, in their order; of inference none.
  [[nodiscard]] std::vector<TaskNodes> tasks(std::int64_t rank) const;

  // Whether kernels lose rate beside collectives (graph::keys::slows_kernels).
  [[nodiscard]] bool slow_kernels() const;

 private:
  const parallel::Program& program_;
  const hardware::Stack& stack_;
  const hardware::Cluster& cluster_;
  const hardware::SecondTier& tier_;
  Options options_;
  ProcessGroups groups_;
  std::vector<KernelWorks> works_;          // [entry of Cluster::nodes], or one
  std::vector<parallel::PairOrder> pairs_;  // [parallel::pair_index()]
};

}  // namespace orrery::generate
