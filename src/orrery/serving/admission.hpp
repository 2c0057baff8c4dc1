// Which requests a fleet takes; others are refused at their arrival (docs/models/serving.md).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "orrery/serving/ticks.hpp"

namespace orrery::serving {

struct AdmissionOptions {
  std::int64_t limit = 0;     // requests that wait or run at a time; 0: no limit
  Ticks period = 0;           // of a token bucket: from one token to the next; 0: no bucket
  std::int64_t burst = 1;     // tokens that it holds at most, and at first
  std::optional<Ticks> wait;  // longest predicted wait in the queue; none: no limit

  [[nodiscard]] bool refuses() const { return limit > 0 || period > 0 || wait.has_value(); }
};

class Admission {
 public:
  explicit Admission(const AdmissionOptions& options) : options_(options) {}

  // `in_system`: requests that wait or run; `wait`: called where it is needed. A request that is refused takes no
  // token.
  template <class Wait>
  [[nodiscard]] bool takes(Ticks now, std::int64_t in_system, Wait&& wait) {
    if (options_.limit > 0 && in_system >= options_.limit) { return false; }
    if (options_.wait && wait() > *options_.wait) { return false; }
    if (options_.period == 0) { return true; }
    // The bucket is full at full_at_, and has a token less for each period before that.
    const Ticks full_at = std::max(full_at_, now);
    if (full_at - now > saturated_product(options_.burst - 1, options_.period)) { return false; }
    full_at_ = saturated_sum(full_at, options_.period);
    return true;
  }

 private:
  AdmissionOptions options_;
  Ticks full_at_ = 0;
};

}  // namespace orrery::serving
