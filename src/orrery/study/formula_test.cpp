#include "orrery/study/formula.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace orrery::study::formula_test {

namespace {

std::string value_text(const std::string& text, const std::map<std::string, StudyCell>& names = {}) {
  const auto formula = Formula::parse(text, {});
  if (!formula) { return formula.error().text(); }
  const auto value = formula->value([&](const std::string& name) -> std::optional<StudyCell> {
    const auto found = names.find(name);
    return found == names.end() ? std::nullopt : std::optional(found->second);
  });
  if (!value) { return "no value: " + value.error(); }
  if (const double* number = results::number_of(*value)) { return std::to_string(*number); }
  return *results::text_of_cell(*value);
}

double value_of_formula(const std::string& text) { return std::stod(value_text(text)); }

}  // namespace

TEST(Formula, products_bind_closer_than_sums_and_sums_than_relations) {
  EXPECT_EQ(value_of_formula("1 + 2 * 3 - 4 / 2"), 5.0);
  EXPECT_EQ(value_of_formula("(1 + 2) * 3"), 9.0);
  EXPECT_EQ(value_of_formula("7 - 2 - 1"), 4.0);
  EXPECT_EQ(value_of_formula("-2 * 3 + 10 % 4"), -4.0);
  EXPECT_EQ(value_of_formula("1 + 1 == 2 and not 3 < 2 or false"), 1.0);
}

TEST(Formula, quantities_are_in_si_base_units) {
  EXPECT_EQ(value_of_formula("40 GB/s"), 4e10);
  EXPECT_EQ(value_of_formula("400 Gb/s"), 5e10);
  EXPECT_EQ(value_of_formula("2 KiB + 1 B") - 2049.0, 0.0);
  EXPECT_EQ(value_of_formula("20 MW / 10 kW"), 2000.0);
  EXPECT_EQ(value_of_formula("100 * 5 %"), 5.0);
  EXPECT_EQ(value_of_formula("7 % 4"), 3.0);
  EXPECT_EQ(value_of_formula("1 kWh"), 3.6e6);
}

TEST(Formula, functions) {
  EXPECT_EQ(value_of_formula("floor(7 / 2) + ceil(7 / 2) + round(2.4)"), 9.0);
  EXPECT_EQ(value_of_formula("min(3, 1, 2) + max(3, 1, 2)"), 4.0);
  EXPECT_EQ(value_of_formula("sqrt(16) + log2(8)"), 7.0);
}

TEST(Formula, names_are_numbers_or_texts) {
  EXPECT_EQ(value_text("precision == 'fp8'", {{"precision", std::string("fp8")}}), "1.000000");
  EXPECT_EQ(value_text("a.b_c * 2", {{"a.b_c", 21.0}}), "42.000000");
  EXPECT_EQ(value_text("a + 1", {{"a", std::string("x")}}), "no value: \"x\" is a text, not a number");
  EXPECT_EQ(value_text("a + 1"), "no value: \"a\" has no value");
  EXPECT_EQ(value_text("1 / 0"), "no value: division by zero");
}

TEST(Formula, mistakes_name_the_column) {
  EXPECT_EQ(value_text("1 +"), "\"1 +\": column 4: ends where a value is expected");
  EXPECT_EQ(value_text("(1"), "\"(1\": column 3: \")\" is missing");
  EXPECT_EQ(value_text("1 2"), "\"1 2\": column 3: unexpected \"2\"");
  EXPECT_EQ(value_text("5 parsecs"),
            "\"5 parsecs\": column 10: unknown unit \"parsecs\"; valid are units such as GB, GB/s, us, MW, USD");
  EXPECT_EQ(value_text("sin(1)"),
            "\"sin(1)\": column 5: unknown function \"sin\"; valid: min, max, floor, ceil, round, sqrt, log2");
  EXPECT_NE(value_text(std::string(1000, '(')).find("too deeply nested"), std::string::npos);
}

TEST(Quantity, texts_with_and_without_units) {
  EXPECT_EQ(quantity_of("80 GB")->value, 8e10);
  EXPECT_EQ(quantity_of("80 GB")->unit, "B");
  EXPECT_EQ(quantity_of("12")->unit, "");
  EXPECT_FALSE(quantity_of("dgx-a100").has_value());
  EXPECT_FALSE(quantity_of("8x").has_value());
}

}  // namespace orrery::study::formula_test
