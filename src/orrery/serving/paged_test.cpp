// Values that were written, and default ones everywhere else.
#include "orrery/serving/paged.hpp"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace orrery::serving::paged_test {
namespace {

struct Value {
  std::int64_t number = 7;
};

RC_GTEST_PROP(Paged, is_a_list_of_default_values_until_they_are_written, ()) {
  const auto size = *rc::gen::inRange<std::size_t>(1, 2000);
  Paged<Value> paged(size);
  std::vector<Value> list(size);
  const auto writes = *rc::gen::inRange(0, 20);
  for (int i = 0; i < writes; ++i) {
    const auto at = *rc::gen::inRange<std::size_t>(0, size);
    paged.at(at).number = list[at].number = *rc::gen::arbitrary<std::int64_t>();
  }
  for (std::size_t i = 0; i < size; ++i) { RC_ASSERT(paged[i].number == list[i].number); }
}

}  // namespace
}  // namespace orrery::serving::paged_test
