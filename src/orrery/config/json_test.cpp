#include "orrery/config/json.hpp"

#include <cmath>
#include <cstdlib>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace orrery::config::json_test {
namespace {

std::string number_text(double value) { return print_json(json_number(value)); }

TEST(json, a_number_has_the_fewest_digits_and_a_point_or_an_exponent) {
  EXPECT_EQ(number_text(0.0), "0.0");
  EXPECT_EQ(number_text(-0.0), "-0.0");
  EXPECT_EQ(number_text(5.0), "5.0");
  EXPECT_EQ(number_text(-1234.5), "-1234.5");
  EXPECT_EQ(number_text(0.1 + 0.2), "0.30000000000000004");
  EXPECT_EQ(number_text(0.0001), "0.0001");
  EXPECT_EQ(number_text(0.00001), "1e-05");
  EXPECT_EQ(number_text(1.5e-7), "1.5e-07");
  EXPECT_EQ(number_text(123456789012345.0), "123456789012345.0");
  EXPECT_EQ(number_text(1e15), "1e+15");  // 16 digits before the point
  EXPECT_EQ(number_text(1.25e300), "1.25e+300");
  // Doubles are 4 apart here: ...370 would be halfway to the next one.
  EXPECT_EQ(number_text(26985313880506368.0), "2.6985313880506368e+16");
}

TEST(json, a_number_that_is_not_finite_is_null) {
  EXPECT_EQ(number_text(std::numeric_limits<double>::infinity()), "null");
  EXPECT_EQ(number_text(std::numeric_limits<double>::quiet_NaN()), "null");
}

RC_GTEST_PROP(json, a_number_reads_back_as_the_same_double, (double value)) {
  RC_PRE(std::isfinite(value));
  const std::string text = number_text(value);
  const auto node = parse_json("[" + text + "]", "f");
  RC_ASSERT(node.has_value());
  RC_ASSERT(std::strtod(node->items.front().scalar.c_str(), nullptr) == value);
}

TEST(json, text_is_escaped_and_what_is_not_utf8_is_replaced) {
  EXPECT_EQ(json_text("a \"b\" \\ \n\t\r\b\f\x01"), R"("a \"b\" \\ \n\t\r\b\f\u0001")");
  EXPECT_EQ(json_text("\u00e9 \u20ac \U0001F600"), "\"\u00e9 \u20ac \U0001F600\"");
  EXPECT_EQ(json_text("a\xff"
                      "b"),
            "\"a\ufffdb\"");
  EXPECT_EQ(json_text("\xc3"), "\"\ufffd\"");                      // the first byte of two
  EXPECT_EQ(json_text("\xe2\x82!"), "\"\ufffd!\"");                // two bytes of three are one replacement
  EXPECT_EQ(json_text("\xc0\xaf"), "\"\ufffd\ufffd\"");            // overlong
  EXPECT_EQ(json_text("\xed\xa0\x80"), "\"\ufffd\ufffd\ufffd\"");  // a surrogate
}

TEST(json, fields_keep_their_order_and_their_types) {
  const std::optional<double> absent;
  const std::vector<std::string> notes = {"a", "b"};
  Node object = json_object({{"text", "x"}, {"flag", true}, {"count", 3}, {"time", Seconds(0.5)}, {"absent", absent}});
  add_fields(object, {{"notes", notes}, {"wide", std::numeric_limits<std::uint64_t>::max()}, {"none", nullptr}});
  set_field(object, "count", 4);
  EXPECT_EQ(
      json_document(object, 1),
      "{\n \"text\": \"x\",\n \"flag\": true,\n \"count\": 4,\n \"time\": 0.5,\n \"absent\": null,\n \"notes\": [\n"
      "  \"a\",\n  \"b\"\n ],\n \"wide\": 18446744073709551615,\n \"none\": null\n}\n");
}

TEST(json, a_writer_prints_what_a_tree_prints) {
  std::string text;
  JsonWriter writer(text);
  writer.open_object();
  writer.key("rows");
  writer.open_list();
  writer.value(std::uint64_t{1});
  writer.value(2.5);
  writer.value(std::string_view("x"));
  writer.null();
  writer.open_list();
  writer.close();
  writer.close();
  writer.key("empty");
  writer.open_object();
  writer.close();
  writer.close();
  const Node rows = sequence_node({json_count(1), json_number(2.5), text_node("x"), null_node(), sequence_node()});
  EXPECT_EQ(text, print_json(json_object({{"rows", rows}, {"empty", mapping_node()}})));
}

}  // namespace
}  // namespace orrery::config::json_test
