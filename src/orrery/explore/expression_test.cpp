#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/config/node.hpp"
#include "orrery/explore/expression.hpp"

namespace orrery::explore::expression_test {
namespace {

constexpr std::array<std::string_view, 3> kNames{"1f1b", "zero-bubble", "ring"};
const ValueKind& schedules() {
  static const ValueKind kind{"schedule", kNames, {}};
  return kind;
}

// a is 6, b is 4, devices is 64, schedule is zero-bubble; `late` cannot be used.
const Vocabulary& words() {
  static const Vocabulary vocabulary{{{"a", 0, &integers(), ""},
                                      {"b", 1, &integers(), ""},
                                      {"tier.tp", 2, &integers(), ""},
                                      {"schedule", 3, &schedules(), ""},
                                      {"on", 4, &booleans(), ""},
                                      {"late", 5, &integers(), "axis late is written later"},
                                      {"devices", 6, &integers(), ""}},
                                     {&schedules()},
                                     6};
  return vocabulary;
}

Slots slots() {
  Slots values{};
  values[0] = 6;
  values[1] = 4;
  values[2] = 1;
  values[3] = 1;
  values[4] = 1;
  values[6] = 64;
  return values;
}

config::Node node_of(const std::string& text) { return config::plain_node(text, {"space.yaml", 3, 7, "/axes/x"}); }

Result<AxisValues> parsed(const std::string& text, const ValueKind& kind = integers()) {
  return parse_values(node_of(text), kind, words());
}

// Values whose condition holds; conditions are evaluated with the value in the slot of `a`.
std::vector<std::int64_t> values(const std::string& text, const ValueKind& kind = integers()) {
  const auto axis = parsed(text, kind);
  EXPECT_TRUE(axis) << axis.error().text();
  std::vector<std::int64_t> found;
  EvaluationError error;
  for (const ValueSet& set : axis->sets) {
    std::vector<std::int64_t> all;
    append_values(set, slots(), 6, all, error);
    for (const std::int64_t value : all) {
      Slots with = slots();
      if (!set.where.is_empty()) { with[0] = value; }
      if (set.where.is_empty() || set.where.value(with, error) != 0) { found.push_back(value); }
    }
  }
  EXPECT_EQ(error.message, "") << text;
  return found;
}

std::string evaluation_error(const std::string& text) {
  const auto axis = parsed(text);
  EXPECT_TRUE(axis) << axis.error().text();
  EvaluationError found;
  std::vector<std::int64_t> all;
  for (const ValueSet& set : axis->sets) { append_values(set, slots(), 6, all, found); }
  return fmt::format("{}:{} {}", found.place.line, found.place.column, found.message);
}

std::string mistake(const std::string& text, const ValueKind& kind = integers()) {
  const auto axis = parsed(text, kind);
  EXPECT_FALSE(axis) << text;
  return axis ? "" : axis.error().text();
}

using Numbers = std::vector<std::int64_t>;

TEST(Expression, calculates_with_the_usual_precedence) {
  EXPECT_EQ(values("1 + 2 * 3"), Numbers{7});
  EXPECT_EQ(values("(1 + 2) * 3"), Numbers{9});
  EXPECT_EQ(values("20 / 3 / 2"), Numbers{3});
  EXPECT_EQ(values("20 - 3 - 2"), Numbers{15});
  EXPECT_EQ(values("a * b % 5"), Numbers{4});
  EXPECT_EQ(values("- a + b"), Numbers{-2});
  EXPECT_EQ(values("-7 / 2"), Numbers{-3});  // towards zero
  EXPECT_EQ(values("min(a, b, 9) + max(a, b, 9)"), Numbers{13});
  EXPECT_EQ(values("gcd(a, b)"), Numbers{2});
  EXPECT_EQ(values("tier.tp"), Numbers{1});
}

TEST(Expression, gives_sets_of_values) {
  EXPECT_EQ(values("divisors(12)"), (Numbers{1, 2, 3, 4, 6, 12}));
  EXPECT_EQ(values("divisors(16)"), (Numbers{1, 2, 4, 8, 16}));
  EXPECT_EQ(values("divisors(1)"), Numbers{1});
  EXPECT_EQ(values("divisors(0)"), Numbers{});
  EXPECT_EQ(values("divisors(b - a)"), Numbers{});
  EXPECT_EQ(values("powers(2)"), (Numbers{1, 2, 4, 8, 16, 32, 64}));  // up to the number of devices
  EXPECT_EQ(values("powers(3, 26)"), (Numbers{1, 3, 9}));
  EXPECT_EQ(values("powers(1)"), Numbers{1});
  EXPECT_EQ(values("powers(2, 0)"), Numbers{});
  EXPECT_EQ(values("2..b+1"), (Numbers{2, 3, 4, 5}));
  EXPECT_EQ(values("5..4"), Numbers{});
  EXPECT_EQ(values("[1, 2..4, divisors(6)], 9"), (Numbers{1, 2, 3, 4, 1, 2, 3, 6, 9}));
}

TEST(Expression, conditions_hold_for_all_sets_of_a_text) {
  EXPECT_EQ(values("1..10 where a % 2 == 0 and not a == 4 or a == 9"), (Numbers{2, 6, 8, 9, 10}));
  EXPECT_EQ(values("1, 2, 3 where a != 2"), (Numbers{1, 3}));
  EXPECT_EQ(values("1..9 where (a > 2 or a < 2) and a <= 4 and a >= 2"), (Numbers{3, 4}));
  EXPECT_EQ(values("1..3 where on"), (Numbers{1, 2, 3}));
  EXPECT_EQ(values("1..3 where on == false"), Numbers{});
}

TEST(Expression, the_second_condition_is_not_evaluated_if_the_first_decides) {
  EXPECT_EQ(values("0..2 where a > 0 and 6 / a == 3"), Numbers{2});
  EXPECT_EQ(values("0..2 where a == 0 or 6 / a == 3"), (Numbers{0, 2}));
}

TEST(Expression, choices_are_named_and_compared) {
  EXPECT_EQ(values("zero-bubble, 1f1b", schedules()), (Numbers{1, 0}));
  EXPECT_EQ(values("1..2 where schedule == zero-bubble"), (Numbers{1, 2}));
  EXPECT_EQ(values("1..2 where ring != schedule and 1f1b != schedule"), (Numbers{1, 2}));
  EXPECT_EQ(values("true", booleans()), Numbers{1});
}

TEST(Expression, what_cannot_be_calculated_is_noted_at_its_place) {
  EXPECT_EQ(evaluation_error("a / (b - 4)"), "3:9 divides by zero");
  EXPECT_EQ(evaluation_error("a % (b - 4)"), "3:9 divides by zero");
  EXPECT_EQ(evaluation_error("9223372036854775807 + 1"), "3:27 is beyond 64 bits");
  EXPECT_EQ(evaluation_error("(-9223372036854775807 - 1) / -1"), "3:34 is beyond 64 bits");
  EXPECT_EQ(evaluation_error("1..1000000"), "3:7 gives more than 65535 values");
  EXPECT_EQ(evaluation_error("divisors(9223372036854775807)"),
            "3:7 divisors of 9223372036854775807 are not calculated; the largest number is 1000000000000");
}

TEST(Expression, mistakes_name_line_column_and_the_nearest_word) {
  const std::string at = "space.yaml:3:";
  EXPECT_EQ(mistake("a + deviecs"),
            at + "11 /axes/x: \"a + deviecs\": \"deviecs\" is not a known name; did you mean \"devices\"?");
  EXPECT_EQ(mistake("divisor(a)"),
            at + "7 /axes/x: \"divisor(a)\": \"divisor\" is not a function; did you mean \"divisors\"?");
  EXPECT_EQ(mistake("late"), at + "7 /axes/x: \"late\": \"late\" cannot be used here: axis late is written later");
  EXPECT_EQ(mistake("1 + "), at + "11 /axes/x: \"1 + \": ends where a value is expected");
  EXPECT_EQ(mistake("(1"), at + "9 /axes/x: \"(1\": ends where \")\" is expected");
  EXPECT_EQ(mistake("1 2"), at + "9 /axes/x: \"1 2\": has \"2\" where the end, or \"where\" is expected");
  EXPECT_EQ(mistake("1 where"), at + "14 /axes/x: \"1 where\": ends where a value is expected");
  EXPECT_EQ(mistake("a = 1"), at + "9 /axes/x: \"a = 1\": has \"=\" where the end, or \"where\" is expected");
  EXPECT_EQ(mistake("99999999999999999999"),
            at + "7 /axes/x: \"99999999999999999999\": has \"99999999999999999999\" where a value is expected");
  EXPECT_EQ(mistake("zero-buble", schedules()),
            at + "7 /axes/x: \"zero-buble\": is not one of 1f1b, zero-bubble, ring; did you mean \"zero-bubble\"?");
  EXPECT_EQ(mistake("rign", schedules()), at + "7 /axes/x: \"rign\": \"rign\" is not valid; schedule is one of 1f1b, "
                                               "zero-bubble, ring; did you mean \"ring\"?");
  EXPECT_EQ(mistake("1 + divisors(4)"),
            at + "11 /axes/x: \"1 + divisors(4)\": divisors gives several values; it cannot be part of a calculation");
}

TEST(Expression, kinds_do_not_mix) {
  const std::string at = "space.yaml:3:";
  EXPECT_EQ(mistake("on + 1"), at + "7 /axes/x: \"on + 1\": is true or false where a whole number is expected");
  EXPECT_EQ(mistake("1 where a"), at + "15 /axes/x: \"1 where a\": is a whole number where true or false is expected");
  EXPECT_EQ(mistake("a == 1"), at + "9 /axes/x: \"a == 1\": has \"==\" where the end, or \"where\" is expected");
  EXPECT_EQ(mistake("1 where schedule == 1"),
            at + "27 /axes/x: \"1 where schedule == 1\": is a whole number where a choice of schedule is expected");
  EXPECT_EQ(mistake("1 where schedule < ring"),
            at + "15 /axes/x: \"1 where schedule < ring\": is a choice of schedule where a whole number is expected");
  EXPECT_EQ(mistake("1 + ring"),
            at + "11 /axes/x: \"1 + ring\": \"ring\" is a choice of schedule where a whole number is expected");
  EXPECT_EQ(mistake("1..2", schedules()),
            at + "7 /axes/x: \"1..2\": is a whole number where a choice of schedule is expected");
  EXPECT_EQ(mistake("divisors(4)", booleans()),
            at + "7 /axes/x: \"divisors(4)\": gives numbers; the values of the axis are true or false");
}

TEST(Expression, lists_collect_the_mistakes_of_their_items) {
  const auto list = config::parse_yaml("[1, x, 2 +, 3 where a > 1]", "f.yaml").value();
  const auto axis = parse_values(list, integers(), words());
  ASSERT_FALSE(axis);
  EXPECT_EQ(axis.error().text(),
            "f.yaml:1:5 /1: \"x\": \"x\" is not a known name; did you mean \"a\"?\n"
            "f.yaml:1:11 /2: \"2 +\": ends where a value is expected");
  const auto empty = parse_values(config::parse_yaml("[]", "f.yaml").value(), integers(), words());
  EXPECT_EQ(empty.error().text(), "f.yaml:1:1: has no values; an axis needs at least one");
}

TEST(Expression, deeply_nested_and_long_texts_are_errors) {
  EXPECT_NE(mistake(std::string(3000, '(')).find("more than 100 nested brackets"), std::string::npos);
  EXPECT_NE(mistake(std::string(3000, '-') + "1").find("more than 100 nested brackets"), std::string::npos);
  EXPECT_NE(mistake(std::string(3000, '[')).find("more than 100 nested brackets"), std::string::npos);
  std::string nots = "1 where ";
  for (int i = 0; i < 500; ++i) { nots += "not "; }
  EXPECT_NE(mistake(nots + "on").find("more than 100 nested brackets"), std::string::npos);
  EXPECT_NE(mistake(std::string(5000, '1')).find("longer than 4000 characters"), std::string::npos);
  std::string sum = "1";
  for (int i = 0; i < 1900; ++i) { sum += "+1"; }
  EXPECT_EQ(values(sum), Numbers{1901});
}

// A random expression, printed with all brackets and evaluated directly: the parser gives the same value.
struct Sample {
  std::string text;
  std::int64_t value = 0;
};

Sample any_sum(int depth) {
  const auto draw = [](std::int64_t low, std::int64_t high) { return *rc::gen::inRange<std::int64_t>(low, high); };
  if (depth == 0 || draw(0, 4) == 0) {
    const std::int64_t value = draw(0, 100);
    return {std::to_string(value), value};
  }
  const Sample a = any_sum(depth - 1), b = any_sum(depth - 1);
  switch (draw(0, 7)) {
    case 0: return {fmt::format("({} + {})", a.text, b.text), a.value + b.value};
    case 1: return {fmt::format("({} - {})", a.text, b.text), a.value - b.value};
    case 2: return {fmt::format("({} * {})", a.text, b.text), a.value * b.value};
    case 3: return {fmt::format("min({},{})", a.text, b.text), std::min(a.value, b.value)};
    case 4: return {fmt::format("max({}, {})", a.text, b.text), std::max(a.value, b.value)};
    case 5: return b.value == 0 ? a : Sample{fmt::format("({} % {})", a.text, b.text), a.value % b.value};
    default: return b.value == 0 ? a : Sample{fmt::format("({}/{})", a.text, b.text), a.value / b.value};
  }
}

RC_GTEST_PROP(ExpressionLaws, a_sum_is_what_it_says, ()) {
  const Sample sample = any_sum(4);
  RC_ASSERT(values(sample.text) == Numbers{sample.value});
}

}  // namespace
}  // namespace orrery::explore::expression_test
