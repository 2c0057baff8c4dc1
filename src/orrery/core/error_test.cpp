#include "orrery/core/error.hpp"

#include <gtest/gtest.h>

namespace orrery::error_test {
namespace {

TEST(diagnostic, names_file_line_column_path_and_message) {
  const Diagnostic diagnostic{{"cluster.yaml", 14, 9, "/network/1/bandwidth"}, "\"400\" has no unit"};
  EXPECT_EQ(diagnostic.text(), "cluster.yaml:14:9 /network/1/bandwidth: \"400\" has no unit");
}

TEST(diagnostic, leaves_out_what_is_unknown) {
  EXPECT_EQ((Diagnostic{{"a.yaml", 0, 0, {}}, "is empty"}.text()), "a.yaml: is empty");
  EXPECT_EQ((Diagnostic{{"a.yaml", 3, 0, {}}, "x"}.text()), "a.yaml:3: x");
  EXPECT_EQ((Diagnostic{{"a.yaml", 0, 7, {}}, "x"}.text()), "a.yaml: x");  // a column without a line is not printed
  EXPECT_EQ((Diagnostic{{"command line", 0, 0, "--tp"}, "x"}.text()), "command line --tp: x");
  EXPECT_EQ((Diagnostic{{"", 0, 0, "--tp"}, "x"}.text()), "--tp: x");
  EXPECT_EQ((Diagnostic{{}, "x"}.text()), "x");
}

TEST(failure, prints_one_line_per_diagnostic) {
  const Failure failure{{{{"a", 1, 1, {}}, "x"}, {{"a", 2, 1, {}}, "y"}}};
  EXPECT_EQ(failure.text(), "a:1:1: x\na:2:1: y");
  EXPECT_FALSE(failure.answer_is_no);
}

Result<int> half(int n) {
  if (n % 2 != 0) { return fail("odd"); }
  return n / 2;
}

Result<int> quarter(int n) {
  ORRERY_TRY(h, half(n));
  ORRERY_TRY(q, half(h));
  return q;
}

TEST(orrery_try, binds_the_value_or_returns_the_failure) {
  EXPECT_EQ(quarter(12).value(), 3);
  ASSERT_FALSE(quarter(6).has_value());
  EXPECT_EQ(quarter(6).error().text(), "odd");
}

TEST(orrery_assert, throws_an_internal_error_naming_the_expression) {
  EXPECT_NO_THROW(ORRERY_ASSERT(1 + 1 == 2));
  try {
    ORRERY_ASSERT(1 + 1 == 3);
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("1 + 1 == 3 does not hold"), std::string::npos);
  }
}

}  // namespace
}  // namespace orrery::error_test
