// The ranks of a job together: their clocks, and their collectives, each of which the members carry out at the same
// time.
//
// A recorded collective is waiting for the last member, and time on the wire: wire = end - latest start, for each
// member. Collectives in which every rank needs every other end at about the same time on all members; that identifies
// members where a file does not name groups, and gives the differences of clocks.
//
// Broadcasts, reductions to one rank and messages: one_sided.hpp. The n-th message from one rank to another in a step
// is the n-th that the other receives from it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/profile/profile.hpp"
#include "orrery/profile/rank_plan.hpp"

namespace orrery::profile {

struct CollectiveMember {
  std::size_t rank = 0;  // position in JobPlan::ranks
  PlanNode node = 0;
  std::int64_t wire_ns = 0;
  std::int64_t waiting_ns = 0;
  std::vector<std::size_t> waits_for;  // positions of members, its own included; only of one-sided operations
};

struct CollectiveInstance {
  std::string group;                       // description of the process group, else its name; "world" without metadata
  std::string group_name;                  // its name in the file; empty without metadata
  std::string kind;                        // "all_reduce", …; "send_recv" without metadata
  std::string operation;                   // kind by the annotation around the call, where the kernel does not say it
  std::uint64_t number = 0;                // from 1, of its group and kind
  std::vector<std::uint64_t> group_ranks;  // all ranks of the group, where known
  std::uint64_t bytes = 0;                 // nccl-tests size, 0 = unknown
  std::vector<CollectiveMember> members;
  bool alone = false;         // no partner in the files: its recorded time contains waiting
  bool guessed = false;       // the members are guessed from common ends
  bool one_sided = false;     // a message, broadcast or reduction: not every member waits for every other
  bool guessed_root = false;  // of a broadcast or reduction: by the ends of its members
};

struct JobPlan {
  std::vector<RankPlan> ranks;              // by rank
  std::vector<const Profile*> profiles;     // by rank
  std::vector<std::int64_t> clock_offsets;  // ns to add to the times of a rank
  std::int64_t origin_ns = 0;               // earliest time of all ranks, with offsets and base times
  std::vector<CollectiveInstance> collectives;
  std::vector<std::string> notes;

  // Time of a rank's event on the clock of the job.
  [[nodiscard]] std::int64_t time(std::size_t rank, std::int64_t start) const {
    return start + profiles[rank]->base_ns + clock_offsets[rank] - origin_ns;
  }
};

// Fails for files that are not ranks of one recorded job.
[[nodiscard]] Result<JobPlan> job_plan(const std::vector<const Profile*>& profiles);

}  // namespace orrery::profile
