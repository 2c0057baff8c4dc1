// What one rank did, as nodes whose start follows from the ends of others: the host's threads as segments of work and
// calls, the device's streams as operations. No waiting is a duration here: it follows from dependencies.
//
//   start(node) = max over dependencies (end(dependency) + lag),  end(node) = start + duration
//
// Times are nanoseconds of the profile. Private to the room.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/profile/profile.hpp"
#include "orrery/profile/short_list.hpp"

namespace orrery::profile {

using PlanNode = std::uint32_t;
inline constexpr PlanNode kNoNode = static_cast<PlanNode>(-1);

enum class NodeKind : std::uint8_t {
  segment,     // the host works between two calls
  call,        // a call of the runtime
  return_,     // a blocking call returns; no duration
  point,       // a time on a thread (start, wake-up); no duration
  step_begin,  // ProfilerStep#n starts and ends; no duration
  step_end,
  device,  // a kernel, copy or memset
};

// Why a node waits for another.
enum class Cause : std::uint8_t {
  order,        // next on the thread
  launch,       // its call
  stream,       // previous operation of the stream
  named_wait,   // a wait between streams that the file names
  rule_wait,    // a wait between streams by PyTorch's rules
  coincidence,  // an operation of another stream that ended when it started
  sync,         // a blocking call waits for it
  wake,         // a thread that another one wakes up
};

struct Dependency {
  PlanNode node = kNoNode;
  Cause cause = Cause::order;
  std::int64_t lag = 0;  // ns after the end of that node
};

struct PlannedNode {
  NodeKind kind = NodeKind::segment;
  TrackIndex track = 0;              // thread, or stream of device operations
  const Event* event = nullptr;      // of calls and device operations
  const Event* operation = nullptr;  // innermost operator around the call; of segments: of the call that follows
  std::int64_t start = 0;            // as recorded
  std::int64_t duration = 0;         // without waiting
  std::int64_t unexplained = 0;      // idle time before it that nothing in the record explains; contained in a lag
  std::uint64_t step = 0;            // of step_begin, step_end
  ShortList<Dependency> deps;

  [[nodiscard]] std::int64_t end() const { return start + duration; }
};

// Times that are not visible for every operation: medians over those where they are.
struct Latencies {
  std::int64_t launch = 0;   // from the start of a call to the start of its operation, if nothing else delays it
  std::int64_t gap = 0;      // between operations of a stream
  std::int64_t return_ = 0;  // from the end of an operation to the return of the call that waits for it
};

struct PlanCounts {
  std::uint64_t device_operations = 0, without_call = 0;
  std::uint64_t starts_before_call = 0, overlaps = 0;
  std::uint64_t named_waits = 0, rule_waits = 0, coincidences = 0, wakes = 0;
  std::uint64_t polls = 0;             // waits by asking again and again
  std::uint64_t graph_operations = 0;  // launched by a graph together with others
  std::int64_t blocked_ns = 0, blocked_with_cause_ns = 0;
  std::int64_t unexplained_idle_ns = 0;
};

struct RankPlan {
  std::uint64_t rank = 0;
  std::vector<PlannedNode> nodes;       // dependencies may be later in the list
  std::vector<PlanNode> communication;  // device operations that communicate, in the order of their start
  Latencies latencies;
  PlanCounts counts;
  bool guessed_steps = false;              // by repeated launches: the file has no ProfilerStep
  std::int64_t first_ns = 0, last_ns = 0;  // of the host's events on threads with calls
  std::int64_t device_end_ns = 0;          // last end of a device operation
  std::vector<Event>
      polls;  // calls that stand for several queries; nodes refer to them, so a plan is moved, not copied
};

[[nodiscard]] RankPlan plan_of(const Profile& profile);

}  // namespace orrery::profile
