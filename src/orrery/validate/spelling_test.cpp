#include "orrery/validate/spelling.hpp"

#include <gtest/gtest.h>

namespace orrery::validate::spelling_test {
namespace {

TEST(Spelling, gaps_of_any_kind_and_case_do_not_matter) {
  for (const char* text : {"H100 SXM", "h100_sxm", "H100-SXM", " h100 - sxm ", "H100__SXM-"}) {
    EXPECT_EQ(dashed(text), "h100-sxm") << text;
  }
  for (const char* text : {"AllReduce", "all_reduce", "ALL-REDUCE", "all reduce"}) {
    EXPECT_EQ(letters_and_digits(text), "allreduce") << text;
  }
}

TEST(Spelling, words_for_a_blank_say_nothing) {
  for (const char* text : {"", "-", "?", "n/a", "N/A", "nan", "NULL", "Unknown", "not stated"}) {
    EXPECT_TRUE(is_not_stated(text)) << text;
  }
  for (const char* text : {"none", "0", "no", "x"}) { EXPECT_FALSE(is_not_stated(text)) << text; }
}

TEST(Spelling, yes_and_no_have_many_words) {
  for (const char* text : {"yes", "Y", "true", "True", "on", "1"}) { EXPECT_EQ(yes_or_no(text), true) << text; }
  for (const char* text : {"no", "N", "false", "off", "None", "0"}) { EXPECT_EQ(yes_or_no(text), false) << text; }
  for (const char* text : {"", "maybe", "2"}) { EXPECT_EQ(yes_or_no(text), std::nullopt) << text; }
}

TEST(is_older, compares_numbers) {
  EXPECT_TRUE(is_older("0.5.1.post1", {0, 5, 6}));
  EXPECT_TRUE(is_older("0.6.3", {0, 8}));
  EXPECT_FALSE(is_older("0.5.10", {0, 5, 6}));
  EXPECT_FALSE(is_older("0.5.6.post2", {0, 5, 6}));
  EXPECT_FALSE(is_older("0.12", {0, 8}));
  EXPECT_TRUE(is_older("0.5", {0, 5, 6}));
  EXPECT_TRUE(is_older("v0.5.1", {0, 5, 6}));
  EXPECT_FALSE(is_older("0.8", {0, 8}));
  EXPECT_TRUE(is_older("vLLM 0.10.0, RHEL 9.4", {0, 14}));
  EXPECT_FALSE(is_older("", {0, 5, 6}));
  EXPECT_FALSE(is_older("nightly-dev", {0, 5, 6}));
  EXPECT_FALSE(is_older("", {0, 8}));
}

}  // namespace
}  // namespace orrery::validate::spelling_test
