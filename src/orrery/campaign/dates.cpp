#include "orrery/campaign/dates.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "orrery/core/text.hpp"

namespace orrery::campaign {

namespace {

// Years begin in March, so that the leap day is their last: month m (March 0) begins on day (153 m + 2) / 5.
Date date_from(std::int64_t year, std::int64_t month, std::int64_t day) {
  const std::int64_t y = month <= 2 ? year - 1 : year, m = (month + 9) % 12;
  return {365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1};
}

}  // namespace

std::optional<Date> date_of(std::string_view text) {
  const bool has_day = text.size() == 10 && text[7] == '-';
  if ((!has_day && text.size() != 7) || text[4] != '-') { return std::nullopt; }
  const auto year = whole_number(text.substr(0, 4)), month = whole_number(text.substr(5, 2));
  const auto day = has_day ? whole_number(text.substr(8, 2)) : std::optional<std::uint64_t>(1);
  if (!year || !month || !day || *year < 1 || *month < 1 || *month > 12) { return std::nullopt; }
  const Date date =
      date_from(static_cast<std::int64_t>(*year), static_cast<std::int64_t>(*month), static_cast<std::int64_t>(*day));
  const std::string whole = has_day ? std::string(text) : std::string(text) + "-01";
  return text_of(date) == whole ? std::optional(date) : std::nullopt;  // 2026-02-30 is 2026-03-02
}

std::string text_of(Date date) {
  std::int64_t year = date.day / 365;  // an upper bound
  while (date_from(year, 3, 1).day > date.day) { --year; }
  const std::int64_t in_year = date.day - date_from(year, 3, 1).day, month = (5 * in_year + 2) / 153;
  const std::int64_t day = in_year - (153 * month + 2) / 5 + 1;
  return fmt::format("{:04}-{:02}-{:02}", month >= 10 ? year + 1 : year, (month + 2) % 12 + 1, day);
}

Date day_after(Date date, Seconds after) {
  constexpr double kMostDays = 2.0e6;  // about 5,500 years
  return {date.day + static_cast<std::int64_t>(std::min(std::floor(after.value() / 86'400.0), kMostDays))};
}

}  // namespace orrery::campaign
