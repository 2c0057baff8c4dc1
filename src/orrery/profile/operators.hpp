// Which operator issued a call: the innermost one around it on its thread. Private to the room.
#pragma once

#include <vector>

#include "orrery/profile/profile.hpp"

namespace orrery::profile {

class OperatorIndex {
 public:
  explicit OperatorIndex(const Profile& profile);

  // The innermost operation whose interval contains the start of the call; nullptr if there is none.
  [[nodiscard]] const Event* around(const Event& call) const;

  // The innermost record_param_comms around it that says what it carries out; nullptr if there is none.
  [[nodiscard]] const Event* record_around(const Event& call, const Profile& profile) const;

  // The innermost annotation that names a collective ("nccl:all_to_all"); nullptr if there is none.
  [[nodiscard]] const Event* collective_around(const Event& call) const;

  // The outermost of those around it (c10d::allreduce_ > record_param_comms > nccl:all_reduce).
  [[nodiscard]] const Event* outermost_collective(const Event& call) const;

 private:
  struct Thread {
    std::vector<const Event*> events;  // by start, longer ones first
    std::vector<std::int32_t> parent;  // position of the event around; -1 = none
  };
  static void add_parents(Thread& thread);
  [[nodiscard]] static const Event* innermost(const Thread& thread, const Event& call);

  std::vector<Thread> operations_, collectives_;
};

}  // namespace orrery::profile
