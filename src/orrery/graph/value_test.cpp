#include "orrery/graph/value.hpp"

#include <array>
#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace orrery::graph::value_test {
namespace {

using std::int64_t;
using std::uint64_t;

TEST(Value, is_none_by_default) {
  const Value none;
  EXPECT_EQ(none.type(), ValueType::none);
  EXPECT_EQ(none.size(), 0U);
  EXPECT_FALSE(none.as_int() || none.as_uint() || none.as_bool() || none.as_double() || none.as_text());
}

TEST(Value, is_read_as_any_type_that_represents_it_exactly) {
  EXPECT_EQ(Value::natural(7).as_int(), 7);
  EXPECT_EQ(Value::integer(7).as_uint(), 7U);
  EXPECT_EQ(Value::integer(-7).as_uint(), std::nullopt);
  EXPECT_EQ(Value::integer(-7).as_double(), -7.0);
  EXPECT_EQ(Value::natural(std::numeric_limits<uint64_t>::max()).as_int(), std::nullopt);
  EXPECT_EQ(Value::boolean(true).as_int(), 1);
  EXPECT_EQ(Value::real(1.0).as_int(), std::nullopt);
  EXPECT_EQ(Value::real32(0.5F).as_double(), 0.5);
}

// Traces in use write is_cpu_op as bool and as int32.
TEST(Value, one_and_zero_of_any_integer_type_are_booleans) {
  EXPECT_EQ(Value::scalar(ValueType::int32_val, 1).as_bool(), true);
  EXPECT_EQ(Value::scalar(ValueType::fixed64_val, 0).as_bool(), false);
  EXPECT_EQ(Value::natural(2).as_bool(), std::nullopt);
}

TEST(Value, every_type_has_a_name_and_pairs_of_value_and_list) {
  for (int number = 3; number <= 32; ++number) {
    const auto type = static_cast<ValueType>(number);
    EXPECT_TRUE(name_of(type).ends_with(is_list(type) ? "_list" : "_val")) << name_of(type);
    EXPECT_EQ(element_bytes(type) == 0, is_text(type)) << name_of(type);
  }
  EXPECT_EQ(name_of(static_cast<ValueType>(1)), "none");
  EXPECT_EQ(name_of(static_cast<ValueType>(33)), "none");
}

TEST(Value, texts_of_a_list_are_in_order) {
  const std::array<std::string_view, 3> texts = {"a", "", std::string_view("b\0c", 3)};
  const std::string payload = packed_texts(texts);
  const Value list = Value::view(ValueType::string_list, payload);
  EXPECT_THAT(list.texts(), testing::ElementsAreArray(texts));
  EXPECT_EQ(list.size(), 3U);
  EXPECT_EQ(list.as_text(), std::nullopt);
}

RC_GTEST_PROP(Value, integers_of_a_list_are_exact_or_truncated_to_its_width, (const std::vector<int64_t>& values)) {
  const std::string wide = packed_integers(ValueType::sint64_list, values);
  const Value list = Value::view(ValueType::sint64_list, wide);
  RC_ASSERT(list.size() == values.size());
  const std::string narrow = packed_integers(ValueType::sfixed32_list, values);
  const Value cut = Value::view(ValueType::sfixed32_list, narrow);
  for (std::size_t i = 0; i < values.size(); ++i) {
    RC_ASSERT(list.as_int(i) == values[i]);
    RC_ASSERT(cut.as_int(i) == static_cast<std::int32_t>(values[i]));
  }
  RC_ASSERT(list.as_int(values.size()) == std::nullopt);
}

RC_GTEST_PROP(Value, real_numbers_of_a_list_are_exact, (const std::vector<double>& values)) {
  const std::string payload = packed_reals(ValueType::double_list, values);
  const Value list = Value::view(ValueType::double_list, payload);
  for (std::size_t i = 0; i < values.size(); ++i) { RC_ASSERT(list.as_double(i) == values[i]); }
}

TEST(Value, is_compared_by_its_bits) {
  EXPECT_EQ(Value::real(std::nan("")), Value::real(std::nan("")));
  EXPECT_FALSE(Value::real(0.0) == Value::real(-0.0));
  EXPECT_FALSE(Value::integer(1) == Value::natural(1));
}

}  // namespace
}  // namespace orrery::graph::value_test
