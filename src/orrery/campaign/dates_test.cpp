#include "orrery/campaign/dates.hpp"

#include <gtest/gtest.h>

namespace orrery::campaign::dates_test {
namespace {

TEST(dates, know_leap_years) {
  EXPECT_EQ(date_of("2024-03-01")->day - date_of("2024-02-01")->day, 29);
  EXPECT_EQ(date_of("2026-03-01")->day - date_of("2026-02-01")->day, 28);
  EXPECT_EQ(date_of("2100-03-01")->day - date_of("2100-02-01")->day, 28);
  EXPECT_EQ(date_of("2000-03-01")->day - date_of("2000-02-01")->day, 29);
  EXPECT_EQ(date_of("2026-01-01")->day - date_of("1970-01-01")->day, 20'454);
}

TEST(dates, every_day_of_four_centuries_is_printed_and_read_back) {
  const std::int64_t first = date_of("1999-12-31")->day;
  for (std::int64_t day = first; day < first + 146'097; ++day) {
    const auto text = text_of({day});
    ASSERT_EQ(date_of(text)->day, day) << text;
  }
  EXPECT_EQ(text_of(day_after(*date_of("2026-12-31"), Seconds(86'400.0))), "2027-01-01");
}

TEST(dates, refuse_what_is_no_date) {
  for (const char* text : {"", "2026", "2026-13", "2026-13-01", "2026-02-29", "2026-00-01", "2026-1-1", "01-02-2026",
                           "2026-12-00", "2026/12/01", "2026-12-32"}) {
    EXPECT_FALSE(date_of(text)) << text;
  }
  EXPECT_EQ(date_of("2026-11"), date_of("2026-11-01"));
}

}  // namespace
}  // namespace orrery::campaign::dates_test
