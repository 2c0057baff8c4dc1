// Collectives on the ranks. Each is split into chunks, and every chunk runs its phases one after the other. Before each
// phase it waits in a queue of the dimension. Private to the room.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "orrery/simulate/chunk_queues.hpp"
#include "orrery/simulate/chunk_registry.hpp"
#include "orrery/simulate/custom_collectives.hpp"
#include "orrery/simulate/phase_runner.hpp"
#include "orrery/simulate/themis.hpp"

namespace orrery::simulate {

class CollectiveEngine {
 public:
  CollectiveEngine(const SimulationJob& job, ChunkRegistry& chunks, PhaseRunner& runner, CustomCollectives& customs);
  CollectiveEngine(const CollectiveEngine&) = delete;
  CollectiveEngine& operator=(const CollectiveEngine&) = delete;

  // A rank reaches a collective node: creates its chunks and starts those that may run.
  void start(std::uint32_t rank, std::uint32_t node, std::uint64_t now_ns);

  struct NodeOfRank {
    std::uint32_t rank = 0, node = 0;
  };
  // A chunk has ended its phase. ASTRA-sim does this in two steps at the same time. First the node may end (it is
  // returned) and start others, whose chunks enter queues while this chunk is still in its queue. Then leave_phase().
  [[nodiscard]] std::optional<NodeOfRank> end_phase(std::uint32_t chunk);
  // The chunk leaves its queue and enters that of its next phase, or is done. Starts the chunks that may run now.
  void leave_phase(std::uint32_t chunk);

  [[nodiscard]] const Pool<ActiveCollective>& active() const { return active_; }
  [[nodiscard]] const ChunkQueues& queues() const { return queues_; }

 private:
  using SequenceKey = std::tuple<std::uint32_t, std::uint8_t, std::uint64_t, std::uint16_t, std::string>;
  struct QueueChoice {
    std::uint32_t queue = 0;
    bool clockwise = true;
  };
  struct RankCounters {
    std::uint64_t chunks = 0;  // of all collectives
    std::int64_t collectives = 0;
    std::vector<std::uint32_t> queues,
        trees;  // round-robin counters: by dimension and queue set; by dimension and collective
  };

  [[nodiscard]] const PhaseSequence& sequence_of(std::uint32_t rank, const NodeTask& task, std::uint64_t chunk);
  [[nodiscard]] PhaseRequest request_of(const NodeTask& task, std::uint64_t chunk) const;
  void order_chunks(ActiveCollective& collective, const NodeTask& task, const Split& split_size, std::uint64_t now_ns);
  [[nodiscard]] const PhaseSequence& sequence_in_order(std::uint32_t rank, const NodeTask& task,
                                                       const PhaseRequest& request);
  void enter(std::uint32_t chunk);
  void reserve_queues_and_trees(ActiveCollective& collective, Collective kind);
  void take_numbers(ActiveCollective& collective);
  void create_chunks(std::uint32_t collective);
  [[nodiscard]] std::uint32_t create(std::uint32_t collective, std::uint32_t ordinal, std::uint32_t queue);
  [[nodiscard]] std::uint32_t create_from(std::uint32_t placeholder);
  [[nodiscard]] std::uint32_t queues_per_rank() const;
  [[nodiscard]] QueueChoice queue_of(const ActiveCollective& collective, std::uint32_t phase,
                                     std::uint32_t ordinal) const;
  void admit(std::uint32_t queue);
  void start_phase(std::uint32_t chunk);

  const SimulationJob& job_;
  ChunkRegistry& chunks_;
  PhaseRunner& runner_;
  CustomCollectives& customs_;
  ChunkQueues queues_;
  Pool<ActiveCollective> active_;
  std::vector<RankCounters> counters_;  // by rank
  std::map<SequenceKey, std::unique_ptr<PhaseSequence>> sequences_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint8_t>, std::string> sticky_;  // rank, group, collective

  // Chunks that choose the order of dimensions: the rank that reaches a chunk first computes its order for all ranks.
  struct ChunkOrder {
    std::vector<std::uint32_t> dimensions;
    std::uint32_t ranks = 0;  // that have it
  };
  using OrderKey = std::tuple<std::uint8_t, std::uint64_t, std::uint16_t, std::vector<std::uint32_t>>;
  ThemisLoads loads_;
  std::uint64_t last_issue_ns_ = 0;            // of a collective of rank 0
  std::map<std::uint32_t, ChunkOrder> known_;  // by number of the chunk
  std::map<OrderKey, std::unique_ptr<PhaseSequence>> ordered_;
};

}  // namespace orrery::simulate
