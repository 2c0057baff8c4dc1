// Reads Kineto's Chrome trace JSON, of any year and vendor, uncompressed, gzip or zstd, event by event: the text of the
// file is never in memory as a whole. Times are read as decimal text, so that absolute microseconds with 16 digits keep
// their nanoseconds.
#pragma once

#include <functional>
#include <string>

#include "orrery/core/error.hpp"
#include "orrery/profile/profile.hpp"

namespace orrery::profile {

struct KinetoOptions {
  bool tolerant = false;                        // a truncated file is read up to its last whole event
  std::function<void(std::uint64_t)> progress;  // bytes read
  // Work of MTIA's processors and their copies are device work, and calls of its runtime are calls. The file links none
  // of it to a call. Without it they are counted by category only.
  bool other_devices = false;
};

[[nodiscard]] Result<Profile> read_kineto(const std::string& path, const KinetoOptions& options = {});
[[nodiscard]] Result<Profile> read_kineto_bytes(std::string_view bytes, const std::string& name,
                                                const KinetoOptions& options = {});

// Nanoseconds of decimal microseconds ("1694128201545.25", "1e3"), rounded to the nearest; nothing if it is no number
// or out of range.
[[nodiscard]] std::optional<std::int64_t> nanoseconds_of(std::string_view microseconds);

}  // namespace orrery::profile
