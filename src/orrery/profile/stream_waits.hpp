// Which operation of a stream waits for which of another, and what blocking calls wait for: as the file names it, else
// by the rules of PyTorch, and never against the recorded order. Private to the room.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "orrery/profile/device_work.hpp"
#include "orrery/profile/operators.hpp"
#include "orrery/profile/rank_plan.hpp"
#include "orrery/profile/short_list.hpp"

namespace orrery::profile {

struct StreamWait {
  std::uint32_t source = kNone;  // operation
  Cause cause = Cause::rule_wait;
};

struct Waits {
  std::vector<ShortList<StreamWait>> of_operation;                       // by operation
  std::unordered_map<const Event*, std::vector<std::uint32_t>> of_call;  // blocking calls: operations they wait for
};

// Times of host and device differ by as much when they are of the same moment.
inline constexpr std::int64_t kClockTolerance = 2'000;  // ns

// A delay that needs a cause.
inline constexpr std::int64_t kUnexplained = 20'000;  // ns

[[nodiscard]] Waits waits_of(const Profile& profile, const DeviceWork& work, const OperatorIndex& operators,
                             const std::vector<const Event*>& calls);

// What a call does, by its name.
enum class CallKind : std::uint8_t {
  other,
  stream_wait,
  event_record,
  synchronize_stream,
  synchronize_device,
  synchronize_event,
  query,  // asks whether an event has happened, and does not wait
  copy
};
[[nodiscard]] CallKind call_kind(std::string_view name);

}  // namespace orrery::profile
