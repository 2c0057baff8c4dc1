// The messages of a collective over several dimensions, in chunks, made when they can leave (composition.hpp lists them
// all at once). Without a clock: the caller moves messages and reports their arrivals, in any order.
//
// The schedule's phases and chunks are those of the software pipeline of the closed form (chunking.hpp): chunk c passes
// level l in round c + l. Here every member has rounds of its own:
//
//   - A member starts a round when all messages that it sends and receives in its previous round have arrived.
//   - In a round, it works on all dimensions at once. Stages along one dimension run one after the other, older chunks
//     first, step after step: a step starts when all messages that the member sends and receives in the step before
//     have arrived. Levels of trees and chains in one round run at once.
//   - A switch passes data on while it arrives: it sends when all members of its line have begun to send.
//
// Where all members have the same times, a round takes what its busiest dimension takes, as in the closed form.
// Along a ring of links, each message goes both ways round, half of it each.
//
// Left out: flat rings, reductions, copies inside a member.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "orrery/network/chunking.hpp"
#include "orrery/network/group.hpp"
#include "orrery/network/schedule.hpp"

namespace orrery::network {

class CompositionRun {
 public:
  // `both_ways`: by extent of effective_extents(group), whether its lines are rings of links. The schedule has phases,
  // none of them of a flat ring; rooted collectives have their root at position 0.
  CompositionRun(const Schedule& schedule, const Group& group, std::vector<char> both_ways);

  // Positions number the group's members, innermost extent fastest. members() + p is the switch of the line along the
  // phase's dimension that starts at position p.
  struct Message {
    std::uint32_t from = 0, to = 0;
    std::uint16_t phase = 0;  // index into Schedule::phases
    std::uint16_t lane = 0;   // the phase's dimension, by its place among those of the schedule
    double bytes = 0;
    std::uint64_t place = 0;  // in the order of the work along its dimension
  };

  void start();  // once
  void arrive(const Message& message);
  // Those that can leave since the last call.
  [[nodiscard]] std::vector<Message> take_messages() { return std::exchange(messages_, {}); }
  [[nodiscard]] bool is_finished() const { return unfinished_ == 0; }

  [[nodiscard]] std::uint32_t members() const { return members_; }
  [[nodiscard]] std::size_t lanes() const { return shape_.slots; }
  // The positions along the phase's dimension from `origin` on.
  [[nodiscard]] std::vector<std::uint32_t> line(std::size_t phase, std::uint32_t origin) const;
  [[nodiscard]] const Schedule& schedule() const { return schedule_; }

 private:
  struct Phase {
    MemberSchedule line;
    LineSteps steps;
    std::uint32_t stride = 1;  // positions between neighbours of a line
    double block_bytes = 0;    // of one chunk
    bool both_ways = false, in_switch = false;
  };
  struct Stage {
    std::vector<std::size_t> phases;
    std::uint32_t steps = 1;  // one after another
  };
  // What a member does along a dimension.
  struct Lane {
    std::size_t stage = 0;      // of its current round
    std::uint32_t step = 0;     // of the stage
    std::uint32_t missing = 0;  // messages of the step that have not arrived
  };
  struct Member {
    std::int64_t round = -1;
    std::size_t busy = 0;  // lanes that are not at the end of the round
  };

  void make_phases(const Group& group, const std::vector<char>& both_ways);
  void make_stages();
  void run_member(std::uint32_t member);
  [[nodiscard]] bool run_lane(std::uint32_t member, std::size_t slot);
  [[nodiscard]] bool is_active(std::size_t stage, std::size_t slot, std::int64_t round) const;
  void begin_step(std::uint32_t member, std::size_t slot);
  void add_step(std::uint32_t member, std::size_t slot, std::size_t phase, std::uint32_t step);
  void add_line_step(std::uint32_t member, std::size_t slot, std::size_t phase, std::uint32_t step, bool mirrored);
  void add_switch_step(std::uint32_t member, std::size_t slot, std::size_t phase);
  void notify(std::uint32_t member, const Message& message);
  [[nodiscard]] std::uint64_t place_of(std::uint32_t member, std::size_t slot) const;
  [[nodiscard]] std::uint64_t key_of(std::uint32_t owner, std::size_t slot, std::uint64_t place) const {
    return (place * shape_.slots + slot) * (2ULL * members_) + owner;
  }
  [[nodiscard]] Lane& lane(std::uint32_t member, std::size_t slot) { return lanes_[member * shape_.slots + slot]; }
  [[nodiscard]] const Lane& lane(std::uint32_t member, std::size_t slot) const {
    return lanes_[member * shape_.slots + slot];
  }

  Schedule schedule_;
  ScheduleShape shape_;
  std::vector<Phase> phases_;
  std::vector<Stage> stages_;  // as those of shape_
  std::uint32_t members_ = 1, most_steps_ = 1, unfinished_ = 0;
  std::int64_t rounds_ = 0;
  std::vector<Lane> lanes_;
  std::vector<Member> progress_;
  std::unordered_map<std::uint64_t, std::uint32_t> early_;  // arrivals of work that the member has not begun
  std::unordered_map<std::uint64_t, std::uint32_t> begun_;  // members of a switch's line that have begun to send
  std::vector<Message> messages_;
};

}  // namespace orrery::network
