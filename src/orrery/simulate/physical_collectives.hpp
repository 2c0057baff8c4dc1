// Collectives under physical rules: a chunk at each rank proceeds as soon as the data that it needs has arrived. There
// is no queue of chunks, so no head-of-line blocking; chunks that need the same link are arbitrated by the link.
// Private to the room.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "orrery/core/large_pages.hpp"
#include "orrery/engine/prefetch.hpp"
#include "orrery/simulate/collective_match.hpp"
#include "orrery/simulate/job.hpp"
#include "orrery/simulate/physical_event.hpp"
#include "orrery/simulate/physical_group.hpp"
#include "orrery/simulate/physical_links.hpp"
#include "orrery/simulate/physical_nodes.hpp"
#include "orrery/simulate/physical_schedule.hpp"

namespace orrery::simulate {

// The progress of one chunk of a collective at one participant.
struct ChunkProgress {
  static constexpr std::uint32_t kMostUnsent = (1U << 21U) - 1;
  static constexpr std::uint32_t kMostEarlyIn = 255;

  std::uint32_t step = 0;          // whose messages it receives now; all earlier steps are received and sent
  std::uint32_t received = 0;      // messages of the step, those included that can be used at a known later time
  std::uint32_t early = kNone;     // list of transfers that arrived before their step, or before the rank
  std::uint32_t unsent : 21 = 0;   // transfers that have not left
  std::uint32_t early_in : 8 = 0;  // `early` has no transfers of the steps before that one from now; at most 255
  bool has_sent : 1 = false;       // the step is sent
  bool has_joined : 1 = false;     // the rank has reached the collective
  bool done : 1 = false;
  std::uint64_t received_at = 0;  // when the last message that is counted in `received` can be used
  std::uint64_t sent_at = 0;      // when the last transfer has left
};

static_assert(sizeof(ChunkProgress) == 32);

// A rank in a collective, or a switch, which has neither node nor chunks.
struct Participant {
  std::uint32_t node = kNone;
  std::int32_t priority = 0;
  std::uint32_t chunks_left = 0;
};

// The k-th collective of a kind, size and group on every rank of the group.
struct PhysicalCollective {
  NodeTask task;  // of the first rank that has it
  std::uint32_t ranks = 0;
  std::uint32_t started = 0, ended = 0;  // ranks
  std::string custom;
  const PhysicalSchedule* schedule = nullptr;       // nullptr until the first rank arrives, and for custom ones
  const PhysicalSchedule* last_schedule = nullptr;  // of the last chunk
  std::uint32_t chunks = 0;
  engine::Divisor by_participants;
  std::vector<Participant> participants;                           // by position, then switches
  std::vector<ChunkProgress, LargePages<ChunkProgress>> progress;  // by chunk, then participant
  std::uint64_t first_start = 0, last_start = 0, end = 0;

  [[nodiscard]] const PhysicalSchedule& schedule_of(std::uint32_t chunk) const {
    return chunk + 1 == chunks ? *last_schedule : *schedule;
  }
};

class PhysicalCollectives final : private TransferSource {
 public:
  PhysicalCollectives(const SimulationJob& job, PhysicalRounds& rounds, Links& links, PhysicalNodes& nodes);
  PhysicalCollectives(const PhysicalCollectives&) = delete;
  PhysicalCollectives& operator=(const PhysicalCollectives&) = delete;

  // A rank has reached its node of a collective. Returns the number of the collective.
  [[nodiscard]] std::uint32_t note_start(std::uint32_t rank, std::uint32_t node);
  // The rank runs the collective, which is not a custom one, with this priority on links.
  void join(std::uint32_t collective, std::uint32_t rank, std::uint32_t node, std::int32_t priority);
  // A rank has run its graph of a custom collective.
  void end_custom(std::uint32_t collective);

  // deliver: a transfer has arrived. count: its data can be used (it is reduced, if it has to be). end_step: all data
  // of a step of progress[index] can be used. leave: the transfer has left its sender at `time`. end_chunk: all
  // transfers of progress[index] have left.
  void deliver(std::uint32_t transfer);
  void count(std::uint32_t transfer);
  void end_step(std::uint32_t collective, std::uint32_t index);
  void leave(std::uint32_t transfer, std::uint64_t time);
  void end_chunk(std::uint32_t collective, std::uint32_t index);

  // The transfer will arrive, or be reduced, at `time`. Does before that time what deliver() or count() would do, if
  // that is only to count it: then the transfer needs no event. Else false.
  [[nodiscard]] bool deliver_ahead(std::uint32_t transfer, std::uint64_t time) {
    return !(links_[transfer].reduces && links_.reductions_take_time()) && count_ahead(transfer, time);
  }
  [[nodiscard]] bool count_ahead(std::uint32_t transfer, std::uint64_t time);

  [[nodiscard]] const std::vector<PhysicalCollective>& all() const { return collectives_; }
  [[nodiscard]] const CollectiveMatch& match() const { return match_; }
  [[nodiscard]] const PhysicalGroup& group(std::uint32_t number) const { return groups_[number]; }

  // Prefetch what deliver() and leave() access.
  void prefetch_target(const Transfer& transfer) const {
    const PhysicalCollective& collective = collectives_[transfer.owner];
    const auto participants = static_cast<std::uint32_t>(collective.participants.size());
    engine::prefetch(collective.progress.data() + transfer.to);
    engine::prefetch(collective.participants.data() + (transfer.to - transfer.order.chunk * participants));
  }
  void prefetch_source(const Transfer& transfer) const {
    engine::prefetch(collectives_[transfer.owner].progress.data() + transfer.from);
  }
  // And what end_step() accesses: first, and when that has been fetched.
  void prefetch_progress(std::uint32_t collective, std::uint32_t index) const;
  void prefetch_step(std::uint32_t collective, std::uint32_t index) const;

 private:
  using ScheduleKey = std::tuple<std::uint32_t, std::uint8_t, std::uint64_t, std::uint16_t>;

  void make_groups();
  void make_images();
  void prepare(PhysicalCollective& collective, std::uint32_t rank, std::uint32_t node);
  [[nodiscard]] const PhysicalSchedule& schedule(const PhysicalCollective& collective, std::uint64_t chunk,
                                                 std::uint32_t rank, std::uint32_t node);
  [[nodiscard]] std::vector<Extent> extents(const NodeTask& task, std::uint32_t rank) const;
  void accept(std::uint32_t transfer);
  void accept_early(ChunkProgress& progress);
  void advance(std::uint32_t collective, std::uint32_t index, std::uint32_t chunk);
  class StepSender;
  [[nodiscard]] Transfer next(const Transfer& transfer) const override;
  void send_step(std::uint32_t collective, std::uint32_t index, std::uint32_t chunk, std::uint32_t step);
  static void note_early(ChunkProgress& progress, std::uint32_t step);
  void count_early(ChunkProgress& progress);
  void complete(std::uint32_t collective, std::uint32_t index);
  void end_rank(std::uint32_t collective, std::uint32_t position);

  const SimulationJob& job_;
  PhysicalRounds& rounds_;
  Links& links_;
  PhysicalNodes& nodes_;
  std::uint32_t count_;                // ranks
  bool is_folded_;                     // some ranks are simulated for all
  std::vector<PhysicalGroup> groups_;  // [kWholeMachine]: all ranks
  CollectiveMatch match_;
  std::vector<PhysicalCollective> collectives_;
  std::map<ScheduleKey, std::unique_ptr<PhysicalSchedule>> schedules_;
};

}  // namespace orrery::simulate
