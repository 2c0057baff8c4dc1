#include "orrery/network/composition.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "orrery/network/chunking.hpp"

namespace orrery::network {
namespace {

class Composer {
 public:
  Composer(const Schedule& schedule, const Group& group)
      : schedule_(schedule), extents_(effective_extents(group)), shape_(shape_of(schedule)) {}

  Composition run() {
    number_members_and_blocks();
    for (std::size_t p = 0; p < schedule_.phases.size(); ++p) {
      phase_ = p;
      extent_ = extent_of(schedule_.phases[p]);
      line_ = line_schedule(schedule_.collective, phase());
      if (all_to_all()) { sort_blocks(); }
      for (chunk_ = 0; chunk_ < schedule_.chunks; ++chunk_) { compose_phase(); }
    }
    sort_transfers();
    return std::move(result_);
  }

 private:
  // By round, older chunks (later stages) first, then phase and step; in the order of creation within a step.
  void sort_transfers() {
    const auto& unsorted = result_.transfers;
    std::vector<std::size_t> order(unsorted.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto key = [&](std::size_t i) {
      const Transfer& t = unsorted[i];
      return std::tuple(t.round, shape_.stages.size() - shape_.stage_of_phase[t.phase],
                        first_concurrent(schedule_, t.phase), t.step, t.phase, i);
    };
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
    std::vector<Transfer> ordered;
    ordered.reserve(unsorted.size());
    for (const std::size_t i : order) { ordered.push_back(unsorted[i]); }
    result_.transfers = std::move(ordered);
  }

  // Strides of the members, and how many blocks the buffer has along every extent.
  void number_members_and_blocks() {
    for (std::size_t e = 0; e < extents_.size(); ++e) {
      strides_[e] = result_.members;
      result_.members *= extents_[e].members;
      cuts_[e] = extents_[e].members;
    }
    result_.participants = result_.members;
    for (std::size_t p = 0; p < schedule_.phases.size(); ++p) {
      const SchedulePhase& phase = schedule_.phases[p];
      const MemberSchedule line = line_schedule(schedule_.collective, phase);
      first_switch_[p] = result_.participants;  // a switch keeps nothing from phase to phase
      if (participant_count(line) > line.members) { result_.participants += result_.members / line.members; }
      const bool cuts_alike = phase.pattern != Pattern::flat_ring && !all_to_all();
      if (cuts_alike && block_count(line) != line.members) { cuts_[extent_of(phase)] = block_count(line); }
    }
    for (std::size_t e = 0; e < extents_.size(); ++e) { result_.blocks_per_chunk *= cuts_[e]; }
    if (all_to_all()) { result_.blocks_per_chunk = result_.members * result_.members; }
    if (!schedule_.phases.empty() && schedule_.phases[0].pattern == Pattern::flat_ring) {
      result_.blocks_per_chunk = result_.members * ring_count();
    }
    result_.blocks = result_.blocks_per_chunk * schedule_.chunks;
    const std::int64_t blocks_per_buffer = all_to_all() ? result_.members : result_.blocks_per_chunk;
    result_.block_bytes = schedule_.bytes / static_cast<double>(blocks_per_buffer * schedule_.chunks);
  }

  [[nodiscard]] bool all_to_all() const { return schedule_.collective == Collective::all_to_all; }
  [[nodiscard]] const SchedulePhase& phase() const { return schedule_.phases[phase_]; }

  [[nodiscard]] std::size_t extent_of(const SchedulePhase& phase) const {
    std::size_t e = 0;
    while (extents_[e].dimension != phase.dimension) { ++e; }
    return e;
  }

  [[nodiscard]] std::int64_t coordinate(std::int64_t position, std::size_t e) const {
    return position / strides_[e] % extents_[e].members;
  }

  void compose_phase() {
    if (phase().pattern == Pattern::flat_ring) { return flat_ring(); }
    for (std::int64_t position = 0; position < result_.members; ++position) {
      if (coordinate(position, extent_) != 0) { continue; }
      origin_ = position;
      if (line_.collective == Collective::scatter && !holds_root_data()) { continue; }
      for_each_message([&](std::int64_t step, std::uint32_t member, const StepMessage& message) {
        compose_message(step, member, message);
      });
    }
  }

  // Before a scatter along an extent only members with the root's coordinates of the outer extents have data.
  [[nodiscard]] bool holds_root_data() const {
    for (std::size_t e = extent_ + 1; e < extents_.size(); ++e) {
      if (coordinate(origin_, e) != 0) { return false; }
    }
    return true;
  }

  // The messages of the phase's steps along one line. In a step the first message of every member comes before the
  // second one of any: in these each member receives one.
  template <class Visit>
  void for_each_message(Visit visit) const {
    const LineSteps steps = line_steps(schedule_.collective, phase());
    for (std::uint32_t step = steps.first; step < steps.first + steps.count; ++step) {
      bool has_more = true;
      for (std::uint32_t i = 0; has_more; ++i) {
        has_more = false;
        for (std::uint32_t member = 0; member < participant_count(line_); ++member) {
          const std::uint32_t count = send_count(line_, member, step);
          if (i < count) { visit(std::int64_t{step} - steps.first, member, send(line_, member, step, i)); }
          has_more = has_more || i + 1 < count;
        }
      }
    }
  }

  void compose_message(std::int64_t step, std::uint32_t member, const StepMessage& message) {
    const std::int64_t from = position_of(member), to = position_of(message.peer);
    std::uint64_t column = message.first;
    for (std::uint32_t k = 0; k < message.count; ++k, column += message.stride) {
      const auto x = static_cast<std::int64_t>(column % block_count(line_));
      if (all_to_all()) {
        for (const std::int64_t block : blocks_of_[{origin_, message.row, x}]) { put(step, from, to, block, 1); }
      } else {
        put_along(step, from, to, x, message.reduces);
      }
    }
    // A switch copies to all of its ports.
    const bool copies = member == line_.members && line_.collective == Collective::all_gather;
    if (copies) { result_.transfers.back().returned_blocks = blocks_along(); }
  }

  // Of a participant of the line: a member, or the line's switch.
  [[nodiscard]] std::int64_t position_of(std::uint32_t participant) const {
    if (participant < line_.members) { return origin_ + participant * strides_[extent_]; }
    const std::int64_t outer = origin_ / (strides_[extent_] * extents_[extent_].members);
    return first_switch_[phase_] + outer * strides_[extent_] + origin_ % strides_[extent_];
  }

  // Blocks with one coordinate along this extent and one of each inner extent.
  [[nodiscard]] std::int64_t blocks_along() const {
    std::int64_t blocks = 1;
    for (std::size_t e = extent_ + 1; e < extents_.size(); ++e) { blocks *= cuts_[e]; }
    return blocks;
  }

  // The blocks with coordinate x along this extent, the inner coordinates of this line and any outer coordinates.
  void put_along(std::int64_t step, std::int64_t from, std::int64_t to, std::int64_t x, bool reduces) {
    std::int64_t block = 0;
    for (std::size_t e = 0; e < extent_; ++e) { block = block * cuts_[e] + coordinate(origin_, e); }
    block = block * cuts_[extent_] + x;
    put(step, from, to, block * blocks_along(), blocks_along());
    result_.transfers.back().reduces = reduces;
  }

  // all_to_all: by line, source and destination along it. Blocks have reached their destination's coordinates of all
  // earlier extents.
  void sort_blocks() {
    blocks_of_.clear();
    for (std::int64_t block = 0; block < result_.blocks_per_chunk; ++block) {
      const std::int64_t source = block / result_.members, destination = block % result_.members;
      std::int64_t origin = 0;
      for (std::size_t e = 0; e < extents_.size(); ++e) {
        if (e != extent_) { origin += coordinate(e < extent_ ? destination : source, e) * strides_[e]; }
      }
      blocks_of_[{origin, coordinate(source, extent_), coordinate(destination, extent_)}].push_back(block);
    }
  }

  // ---- flat rings --------------------------------------------------------------------------------------------------

  // Rings of a flat ring: one for each member of a node.
  [[nodiscard]] std::int64_t ring_count() const { return result_.members / extents_.back().members; }

  // The member at `place` of ring `rotation`: along every extent but the outermost the order is rotated so that the
  // ring leaves the line at coordinate `rotation`.
  [[nodiscard]] std::int64_t at(std::int64_t place, std::int64_t rotation) const {
    std::int64_t position = 0;
    for (std::size_t e = 0; e < extents_.size(); ++e) {
      const std::int64_t m = extents_[e].members;
      const bool outermost = e + 1 == extents_.size();
      position += (place % m + (outermost ? 0 : rotation % m + 1)) % m * strides_[e];
      place /= m;
      rotation /= outermost ? 1 : m;
    }
    return position;
  }

  // The extent of the hop from `place` to the next one: that of the outermost coordinate that changes.
  [[nodiscard]] std::size_t extent_of_hop(std::int64_t place) const {
    std::size_t e = 0;
    for (; e + 1 < extents_.size() && place % extents_[e].members == extents_[e].members - 1; ++e) {
      place /= extents_[e].members;
    }
    return e;
  }

  // The shard that a member owns, by the order of blocks.
  [[nodiscard]] std::int64_t shard_of(std::int64_t position) const {
    std::int64_t shard = 0;
    for (std::size_t e = 0; e < extents_.size(); ++e) { shard = shard * extents_[e].members + coordinate(position, e); }
    return shard;
  }

  // One ring through all members for each rotation; here the hops along this phase's extent.
  void flat_ring() {
    line_.members = static_cast<std::uint32_t>(result_.members);
    for (std::int64_t rotation = 0; rotation < ring_count(); ++rotation) {
      for_each_message([&](std::int64_t step, std::uint32_t place, const StepMessage& message) {
        if (extent_of_hop(place) != extent_) { return; }
        const std::int64_t shard = shard_of(at(message.first, rotation));
        put(step, at(place, rotation), at(message.peer, rotation), shard * ring_count() + rotation, 1);
        result_.transfers.back().reduces = message.reduces;
      });
    }
  }

  // ------------------------------------------------------------------------------------------------------------------

  void put(std::int64_t step, std::int64_t source, std::int64_t destination, std::int64_t block, std::int64_t blocks) {
    const StageShape& stage = shape_.stages[shape_.stage_of_phase[phase_]];
    Transfer transfer;
    transfer.round = chunk_ + stage.first_level + (level_per_step(phase().pattern) ? step : 0);
    transfer.chunk = chunk_;
    transfer.step = step;
    transfer.phase = phase_;
    transfer.source = source;
    transfer.destination = destination;
    transfer.first_block = chunk_ * result_.blocks_per_chunk + block;
    transfer.blocks = blocks;
    result_.transfers.push_back(transfer);
  }

  const Schedule& schedule_;
  const InlineList<Extent, kMaxExtents> extents_;
  const ScheduleShape shape_;
  std::array<std::int64_t, kMaxExtents> strides_{}, cuts_{};
  std::array<std::int64_t, kMaxPhases> first_switch_{};  // by phase
  Composition result_;

  std::size_t phase_ = 0, extent_ = 0;  // being composed
  MemberSchedule line_;
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, std::vector<std::int64_t>> blocks_of_;
  std::int64_t chunk_ = 0, origin_ = 0;
};

}  // namespace

std::size_t first_concurrent(const Schedule& schedule, std::size_t phase) {
  while (schedule.phases[phase].concurrent) { --phase; }
  return phase;
}

Composition compose(const Schedule& schedule, const Group& group) { return Composer(schedule, group).run(); }

}  // namespace orrery::network
