// Communication kernels of one rank with what identifies the collective that they belong to. Private to the room.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "orrery/profile/profile.hpp"
#include "orrery/profile/rank_plan.hpp"

namespace orrery::profile {

struct CollectiveEntry {
  std::size_t rank = 0;
  PlanNode node = 0;
  std::int64_t start = 0, end = 0;  // on the clock of the job
  const CommRecord* record = nullptr;
  std::string kind, operation;
  std::uint64_t input_bytes = 0;          // of its operator's inputs, without metadata; 0 = not recorded
  std::string key;                        // equal for the members of a collective, if their files name groups
  std::optional<std::uint64_t> from, to;  // ranks of a message, where known
  std::optional<std::uint64_t> root;      // rank, where known
  // Without metadata: step of its call and number in the step among those of its kind.
  std::int64_t step = 0;
  std::uint64_t number = 0;
};

// The kind, by the call where the kernel does not say it.
[[nodiscard]] const std::string& kind_of(const CollectiveEntry& entry);

[[nodiscard]] bool is_message(const CollectiveEntry& entry);

// Whether every member has to wait for every other.
[[nodiscard]] bool synchronizes(const CollectiveEntry& entry);

// Also kernels of which nothing says whether they are an all-to-all or messages: common ends decide.
[[nodiscard]] bool may_synchronize(const CollectiveEntry& entry);

[[nodiscard]] std::vector<CollectiveEntry> collective_entries(const Profile& profile, const RankPlan& plan,
                                                              std::size_t rank);

}  // namespace orrery::profile
