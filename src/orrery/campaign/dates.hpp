// Calendar days of a campaign: the Gregorian calendar, years 1 to 9999.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "orrery/core/units.hpp"

namespace orrery::campaign {

// Days after 0000-03-01.
struct Date {
  std::int64_t day = 0;

  friend bool operator==(Date a, Date b) { return a.day == b.day; }
  friend bool operator<(Date a, Date b) { return a.day < b.day; }
};

// "2026-12-01", or the first day of "2026-12". Nothing for text that is no date.
[[nodiscard]] std::optional<Date> date_of(std::string_view text);
[[nodiscard]] std::string text_of(Date date);
// The day in which the moment `after` the start of `date` lies.
[[nodiscard]] Date day_after(Date date, Seconds after);

}  // namespace orrery::campaign
