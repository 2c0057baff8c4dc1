// What a profile says about a run without any model: counts, busy times, communication that nothing hides, steps.
//
// Unions are of intervals of device work; idle time is not explained here. Derived events (gpu_user_annotation) never
// count as work.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "orrery/profile/profile.hpp"

namespace orrery::profile {

struct StreamFacts {
  std::uint64_t operations = 0;
  std::int64_t sum_ns = 0;   // of durations
  std::int64_t busy_ns = 0;  // of the union of their intervals
};

struct CollectiveFacts {
  std::uint64_t kernels = 0;
  std::int64_t sum_ns = 0;
  std::uint64_t with_metadata = 0;
  std::uint64_t in_bytes = 0, out_bytes = 0;    // of those with metadata, per rank
  std::map<std::string, std::uint64_t> groups;  // kernels by process group
};

struct BusyFacts {
  std::int64_t busy_ns = 0;             // union of all device work
  std::int64_t kernel_not_comm_ns = 0;  // union of kernels that do not communicate
  std::int64_t comm_ns = 0;             // union of communication
  std::int64_t exposed_comm_ns = 0;     // communication while no other device work runs
  std::int64_t span_ns = 0;             // from the first start to the last end
};

struct StepFacts {
  std::uint64_t number = 0;
  std::int64_t duration_ns = 0;  // of the host's ProfilerStep
  std::uint64_t operations = 0;  // device work whose call began in the step
  BusyFacts busy;
};

struct KernelFacts {
  std::string name;
  std::uint64_t count = 0;
  std::int64_t sum_ns = 0;
};

struct Facts {
  std::uint64_t events = 0;
  std::map<std::string, std::uint64_t> categories;
  std::optional<std::uint64_t> rank, world_size;
  std::size_t groups_listed = 0;
  bool whole_microseconds = true;
  std::uint64_t kernels = 0, memcpy = 0, memset = 0;
  std::uint64_t linked = 0, not_linked = 0;  // device work with and without its call
  std::uint64_t calls_that_launch_several = 0;
  std::uint64_t starts_before_its_call = 0;
  std::uint64_t overlaps_inside_a_stream = 0;
  std::map<std::string, StreamFacts> streams;  // by "device:stream"
  std::map<std::string, CollectiveFacts> collectives;
  BusyFacts whole;
  std::vector<StepFacts> steps;
  std::uint64_t blocking_calls = 0;
  std::int64_t blocking_ns = 0;
  std::uint64_t host_threads = 0;
  std::uint64_t kernel_names = 0;
  std::vector<KernelFacts> top_kernels;    // by total time, largest first
  std::vector<KernelFacts> top_operators;  // device time by the innermost operator around the launching call
};

[[nodiscard]] Facts facts_of(const Profile& profile);

// A call that waits for the device by name (…Synchronize).
[[nodiscard]] bool is_synchronize(std::string_view call_name);

// Number of a step from the name of its annotation, "ProfilerStep#12".
[[nodiscard]] std::optional<std::uint64_t> step_number(std::string_view name);

}  // namespace orrery::profile
