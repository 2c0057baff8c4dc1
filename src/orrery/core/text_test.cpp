#include "orrery/core/text.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace orrery::text_test {
namespace {

TEST(edit_distance, counts_inserts_deletes_replacements_and_swaps) {
  EXPECT_EQ(edit_distance("bandwidth", "bandwidth"), 0U);
  EXPECT_EQ(edit_distance("bandwith", "bandwidth"), 1U);    // insert d
  EXPECT_EQ(edit_distance("bandwidths", "bandwidth"), 1U);  // delete s
  EXPECT_EQ(edit_distance("bandwodth", "bandwidth"), 1U);   // replace o
  EXPECT_EQ(edit_distance("badnwidth", "bandwidth"), 1U);   // swap dn
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);        // k->s, e->i, +g
}

TEST(edit_distance, ignores_case) { EXPECT_EQ(edit_distance("TP", "tp"), 0U); }

TEST(edit_distance, from_an_empty_text_is_the_length) {
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("abc", ""), 3U);
  EXPECT_EQ(edit_distance("", ""), 0U);
}

RC_GTEST_PROP(edit_distance, is_symmetric_and_at_most_the_longer_length, (const std::string& a, const std::string& b)) {
  RC_ASSERT(edit_distance(a, b) == edit_distance(b, a));
  RC_ASSERT(edit_distance(a, b) <= std::max(a.size(), b.size()));
}

TEST(nearest, finds_the_key_of_a_mistyped_word) {
  const std::vector<std::string> keys{"layers", "heads", "hidden"};
  EXPECT_EQ(nearest("layer", keys), "layers");
  EXPECT_EQ(nearest("haeds", keys), "heads");
}

TEST(nearest, is_absent_if_no_candidate_is_near) {
  const std::vector<std::string> keys{"layers", "heads"};
  EXPECT_EQ(nearest("bandwidth", keys), std::nullopt);
  EXPECT_EQ(nearest("x", std::vector<std::string>{}), std::nullopt);
}

TEST(nearest, allows_one_edit_in_short_words) {
  EXPECT_EQ(nearest("tq", std::vector<std::string>{"tp"}), "tp");
  EXPECT_EQ(nearest("qq", std::vector<std::string>{"tp"}), std::nullopt);
}

TEST(completions, begin_with_the_word_and_are_at_most_four) {
  const std::vector<std::string> names = {"h100-nvl", "h100-pcie", "h200"};
  EXPECT_EQ(completions("h100", names), (std::vector<std::string>{"h100-nvl", "h100-pcie"}));
  EXPECT_TRUE(completions("x", names).empty());
  EXPECT_TRUE(completions("a", std::vector<std::string>{"a1", "a2", "a3", "a4", "a5"}).empty());
}

TEST(either, joins_with_commas_and_or_before_the_last) {
  EXPECT_EQ(either(std::vector<std::string>{}), "");
  EXPECT_EQ(either(std::vector<std::string>{"a"}), "a");
  EXPECT_EQ(either(std::vector<std::string>{"a", "b"}), "a or b");
  EXPECT_EQ(either(std::vector<std::string>{"a", "b", "c"}), "a, b or c");
}

TEST(nearest, takes_the_first_of_equals) { EXPECT_EQ(nearest("xp", std::vector<std::string>{"tp", "pp"}), "tp"); }

TEST(join, puts_the_separator_between) {
  EXPECT_EQ(join(std::vector<std::string>{"a", "b", "c"}, ", "), "a, b, c");
  EXPECT_EQ(join(std::vector<std::string>{"a"}, ", "), "a");
  EXPECT_EQ(join(std::vector<std::string>{}, ", "), "");
}

TEST(quote, escapes_control_characters) { EXPECT_EQ(quote("a\nb\x7f"), "\"a\\x0ab\\x7f\""); }

TEST(quote, cuts_long_text_at_60_bytes) {
  EXPECT_EQ(quote(std::string(60, 'x')), "\"" + std::string(60, 'x') + "\"");
  EXPECT_EQ(quote(std::string(61, 'x')), "\"" + std::string(60, 'x') + "...\"");
}

}  // namespace
}  // namespace orrery::text_test
