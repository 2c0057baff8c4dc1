#include "orrery/report/csv.hpp"

#include <gtest/gtest.h>

#include "orrery/report/samples.hpp"

namespace orrery::report::csv_test {
namespace {

TEST(Csv, a_field_is_quoted_only_where_it_must_be) {
  EXPECT_EQ(csv_field("plain text"), "plain text");
  EXPECT_EQ(csv_field("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_field("say \"x\""), "\"say \"\"x\"\"\"");
  EXPECT_EQ(csv_field("two\nlines"), "\"two\nlines\"");
  EXPECT_EQ(csv_field(""), "");
}

// ape: |11 - 10| / 10 and |4 - 5| / 5.
TEST(Csv, predictions_leave_empty_what_is_not_known) {
  EXPECT_EQ(predictions_csv(samples::validation().predictions),
            "id,family,measured,predicted,ape,skipped_reason,p10_s,p90_s,spread,taken_as\n"
            "a,first,10,11,0.1,,,,,\n"
            "b,first,5,4,0.2,,,,,dp 3 -> 4\n"
            "\"c,\"\"d\"\"\",blank,,,,\"no model is called \"\"x\"\"\",,,,\n");
}

TEST(Csv, times_keep_every_digit) {
  results::Prediction row{.id = "r", .family = "f", .measured_s = {}, .predicted_s = 0.1 + 0.2, .skipped_reason = ""};
  EXPECT_EQ(predictions_csv(std::vector{row}),
            "id,family,measured,predicted,ape,skipped_reason,p10_s,p90_s,spread,taken_as\n"
            "r,f,,0.30000000000000004,,,,,,\n");
}

}  // namespace
}  // namespace orrery::report::csv_test
