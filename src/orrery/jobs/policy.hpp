// Policies: how many servers a job gets, and whether it may overtake. A new one is a class in policy.cpp and its name.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "orrery/core/random.hpp"
#include "orrery/core/units.hpp"
#include "orrery/jobs/file.hpp"

namespace orrery::jobs {

// A job as a policy sees it. `times` by the index of `widths`.
struct JobView {
  std::span<const std::int64_t> widths;
  std::span<const Seconds> times;
  Seconds sequential;
  std::optional<Seconds> limit;  // time from arrival that is acceptable
};

class Policy {
 public:
  virtual ~Policy() = default;
  // Index of the width, or nothing: the job is refused.
  [[nodiscard]] virtual std::optional<std::size_t> width_of(const JobView& job, RandomStream& random) const = 0;
  // Whether a job behind the first may start if that does not delay the first.
  [[nodiscard]] virtual bool overtakes() const { return false; }
};

[[nodiscard]] std::unique_ptr<Policy> policy_of(PolicyKind kind);

}  // namespace orrery::jobs
