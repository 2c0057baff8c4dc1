// The streams of a rank as dependencies: segments of a program, executed in order.
//
//   compute stream      kernels, and collectives that block it, one after the other
//   collective stream   collectives of blocks, one after the other; asynchronous ones run beside the compute stream
//   overlapped stream   gathers, reductions and transfers that overlap with blocks, one after the other
//
// A node that a stream executes next has the last nodes of the stream as parents.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "orrery/generate/kernel_works.hpp"
#include "orrery/generate/node_writer.hpp"
#include "orrery/parallel/pair_order.hpp"
#include "orrery/parallel/program.hpp"

namespace orrery::generate {

// Kernels of an execution that are not a node yet.
struct PendingKernels {
  std::string_view name;
  Work work;
  std::size_t count = 0;
};

// One micro-batch at work: what its nodes wait for. Both micro-batches of a pair have their own, so that one
// computes while the other waits for experts.
struct Execution {
  Lane lane = Lane::work;
  NodeIds compute;         // what the next node of the compute stream waits for
  NodeIds collectives;     // ... of the collective stream
  PendingKernels pending;  // behind compute
};

// Weights that have arrived before each execution of a segment.
using Arrivals = std::vector<NodeIds>;

// A segment to execute.
struct SegmentRun {
  const parallel::Segment* segment = nullptr;
  const Arrivals* arrivals = nullptr;  // gathers that have been issued before; otherwise issued one execution ahead
  std::int64_t grown = 0;              // tokens by which the KV cache has grown (decode)
  std::string_view prefix = {};        // of the names of the nodes; a static string
  bool waits_for_overlapped = false;   // at the end
  bool leaves_reductions = false;      // they are issued later: reduce_all()
};

class Streams {
 public:
  // `interference`: the part of their rate that kernels lose beside collectives of the overlapped stream.
  Streams(const parallel::Program& program, const KernelWorks& works, const hardware::SecondTier& tier,
          Granularity granularity, double interference, NodeWriter& writer)
      : program_(program),
        works_(works),
        tier_(tier),
        granularity_(granularity),
        interference_(interference),
        writer_(writer) {}

  void run(Execution& execution, const SegmentRun& run);

  // The two halves of a pair in their order, which all ranks of a group share: otherwise two ranks could each
  // wait for the other's next collective where a rank executes one at a time (ASTRA-sim).
  void run_pair(Execution& first, const std::vector<SegmentRun>& first_runs, Execution& second,
                const std::vector<SegmentRun>& second_runs, const parallel::PairOrder& order);

  // Issues all gathers of a segment behind `start`.
  [[nodiscard]] Arrivals gather_all(const parallel::Segment& segment, const NodeIds& start);

  // Issues all reductions of a segment behind `start`.
  void reduce_all(const parallel::Segment& segment, const NodeIds& start);

  // The compute stream waits for what has been issued on the overlapped stream.
  void wait_for_overlapped(Execution& execution) const { join(execution.compute, overlapped_); }

  [[nodiscard]] NodeWriter& writer() { return writer_; }

 private:
  // Where a run of a segment is.
  struct Walk {
    SegmentRun run;
    bool begun = false, in_block = false;
    std::size_t use = 0;
    std::int64_t done = 0;           // executions of the use
    std::size_t number = 0;          // executions of all uses
    NodeIds arrived = {};            // weights of the next execution
    std::size_t item = 0;            // of the block
    NodeId launch = 0;               // of the block
    std::vector<NodeIds> ends = {};  // of the collectives of the block, by item
  };

  // Of the streams that both halves of a pair share.
  struct LastNodes {
    NodeIds kernel, launch, collective;
  };
  // The parents of the next node of such a stream.
  [[nodiscard]] NodeIds behind(const NodeIds& parents, NodeIds LastNodes::* last) const;

  // One step of parallel/pair_order.hpp; false after the last one of the segment.
  [[nodiscard]] bool step(Execution& execution, Walk& walk);
  void begin_execution(Execution& execution, Walk& walk);
  void end_execution(Execution& execution, Walk& walk);
  void begin_block(Execution& execution, Walk& walk);
  void run_item(Execution& execution, Walk& walk);
  void end_block(Execution& execution, Walk& walk);
  void gather(Execution& execution, const Walk& walk, parallel::OptionalBlockId id);
  void gather_next(Execution& execution, Walk& walk);
  void add_kernel(Execution& execution, std::string_view name, const Work& work);
  void flush(Execution& execution);
  [[nodiscard]] bool has_only_kernels(const parallel::Block& block) const;

  void overlap(parallel::BlockId id, const NodeIds& start);

  // Nodes that end a call; none when its group has no other member.
  [[nodiscard]] NodeIds issue(std::string_view name, const parallel::CollectiveCall& call, Lane lane,
                              const NodeIds& parents);
  NodeId write_collective(std::string_view name, const parallel::CollectiveCall& call, parallel::GroupKind group,
                          Bytes bytes, Lane lane, const NodeIds& parents);
  [[nodiscard]] NodeIds issue_exchange(std::string_view name, const parallel::CollectiveCall& call, Lane lane,
                                       const NodeIds& parents);
  [[nodiscard]] NodeIds issue_ring_steps(std::string_view name, Bytes bytes, const NodeIds& parents);
  [[nodiscard]] NodeIds issue_node_dispatch(std::string_view name, const parallel::CollectiveCall& call, Lane lane,
                                            const NodeIds& parents);
  [[nodiscard]] NodeIds issue_transfer(std::string_view name, const parallel::CollectiveCall& call, Lane lane,
                                       const NodeIds& parents);

  const parallel::Program& program_;
  const KernelWorks& works_;
  const hardware::SecondTier& tier_;
  Granularity granularity_;
  double interference_;
  NodeWriter& writer_;
  NodeIds overlapped_;                // what the next node of the overlapped stream waits for
  std::optional<LastNodes> in_pair_;  // in a pair
  std::uint64_t ring_messages_ = 0;   // messages of ring attention so far
};

}  // namespace orrery::generate
