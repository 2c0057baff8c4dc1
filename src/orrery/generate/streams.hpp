// The streams of a rank as dependencies: segments of a program, executed in order.
//
//   compute stream      kernels, and collectives that block it, one after the other
//   collective stream   collectives of blocks, one after the other; asynchronous ones run beside the compute stream
//   overlapped stream   gathers, reductions and transfers that overlap with blocks, one after the other
//
// A node that a stream executes next has the last nodes of the stream as parents. Not in the graphs: kernels slowed by
// collectives beside them (the stack's overlap.interference).
#pragma once

#include <string_view>
#include <vector>

#include "orrery/generate/kernel_works.hpp"
#include "orrery/generate/node_writer.hpp"
#include "orrery/parallel/program.hpp"

namespace orrery::generate {

// Adds what `ids` lacks of `more`.
void join(NodeIds& ids, const NodeIds& more);

// One micro-batch at work: the compute stream and the collective stream. Both micro-batches of a DualPipe pair have
// their own, so that one computes while the other waits for experts.
struct Execution {
  Lane lane = Lane::work;
  NodeIds compute;      // what the next node of the compute stream waits for
  NodeIds collectives;  // ... of the collective stream
};

class Streams {
 public:
  // `interference`: the part of their rate that kernels lose beside collectives of the overlapped stream.
  Streams(const parallel::Program& program, const KernelWorks& works, Granularity granularity, double interference,
          NodeWriter& writer)
      : program_(program), works_(works), granularity_(granularity), interference_(interference), writer_(writer) {}

  // Weights that have arrived before each execution of a segment.
  using Arrivals = std::vector<NodeIds>;

  // Gathers are issued one execution ahead, unless `arrivals` has been issued before. `grown`: tokens by which the KV
  // cache has grown (decode).
  void run(Execution& execution, const parallel::Segment& segment, const Arrivals* arrivals = nullptr,
           std::int64_t grown = 0);

  // Issues all gathers of a segment behind `start`.
  [[nodiscard]] Arrivals gather_all(const parallel::Segment& segment, const NodeIds& start);

  // The compute stream waits for what has been issued on the overlapped stream.
  void wait_for_overlapped(Execution& execution) const { join(execution.compute, overlapped_); }

  [[nodiscard]] NodeWriter& writer() { return writer_; }

 private:
  struct Pending {
    std::string_view name;
    Work work;
    std::size_t kernels = 0;
  };

  void run_blocking_gather(Execution& execution, parallel::BlockId id);
  void run_block(Execution& execution, parallel::BlockId id, std::int64_t grown);
  void run_item(Execution& execution, parallel::BlockId block, std::size_t item, std::int64_t grown);
  void finish_block(Execution& execution, const parallel::Block& block, NodeId launch);
  // Kernels that are not a node yet.
  void add_kernel(Execution& execution, std::string_view name, const Work& work);
  void flush(Execution& execution);
  [[nodiscard]] bool has_only_kernels(const parallel::Block& block) const;

  void overlap(parallel::BlockId id, const NodeIds& start);

  // Nodes that end a call; none when its group has no other member.
  [[nodiscard]] NodeIds issue(std::string_view name, const parallel::CollectiveCall& call, Lane lane,
                              const NodeIds& parents);
  NodeId write_collective(std::string_view name, const parallel::CollectiveCall& call, parallel::GroupKind group,
                          Bytes bytes, Lane lane, const NodeIds& parents);
  [[nodiscard]] NodeIds issue_ring_steps(std::string_view name, Bytes bytes, const NodeIds& parents);
  [[nodiscard]] NodeIds issue_node_dispatch(std::string_view name, const parallel::CollectiveCall& call, Lane lane,
                                            const NodeIds& parents);
  [[nodiscard]] NodeIds issue_transfer(std::string_view name, const parallel::CollectiveCall& call,
                                       const NodeIds& parents);

  const parallel::Program& program_;
  const KernelWorks& works_;
  Granularity granularity_;
  double interference_;
  NodeWriter& writer_;
  NodeIds overlapped_;               // what the next node of the overlapped stream waits for
  Pending pending_;                  // behind execution.compute
  std::vector<NodeIds> ends_;        // of the collectives of a block, by item
  std::uint64_t ring_messages_ = 0;  // messages of ring attention so far
};

}  // namespace orrery::generate
