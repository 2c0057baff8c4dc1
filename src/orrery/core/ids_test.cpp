#include "orrery/core/ids.hpp"

#include <type_traits>

#include <gtest/gtest.h>

namespace orrery::ids_test {
namespace {

struct Apple;
struct Pear;
using AppleId = Id<Apple>;

static_assert(!std::is_convertible_v<Id<Pear>, AppleId> && !std::is_constructible_v<AppleId, Id<Pear>>);
static_assert(!std::is_convertible_v<int, AppleId>);
static_assert(!std::is_default_constructible_v<AppleId>);
static_assert(sizeof(OptionalId<Apple>) == sizeof(AppleId));

TEST(Ids, an_id_names_the_element_at_its_index) {
  IdVector<AppleId, int> weights;
  weights.push_back(150);
  const AppleId next = weights.next_id();
  weights.push_back(180);
  EXPECT_EQ(next, weights.last_id());
  EXPECT_EQ(weights[next], 180);
  EXPECT_EQ(weights[AppleId(0)], 150);
  EXPECT_LT(AppleId(0), next);
}

TEST(Ids, an_absent_id_is_none_and_cannot_be_read) {
  const OptionalId<Apple> absent;
  const OptionalId<Apple> first = AppleId(0);
  EXPECT_FALSE(absent);
  EXPECT_TRUE(first);
  EXPECT_EQ(*first, AppleId(0));
  EXPECT_NE(absent, first);
  EXPECT_EQ(absent, OptionalId<Apple>(std::nullopt));
  EXPECT_THROW((void)*absent, InternalError);
}

}  // namespace
}  // namespace orrery::ids_test
