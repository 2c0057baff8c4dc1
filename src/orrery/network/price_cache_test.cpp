#include "orrery/network/price_cache.hpp"

#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/network/test_cluster.hpp"

namespace orrery::network {
namespace {

// More questions than places, many of them asked again: every answer is what the fabric says.
RC_GTEST_PROP(PriceCache, says_what_the_fabric_says_whatever_was_asked_before, ()) {
  const auto cluster = test::plain_cluster({8, 4});
  const Fabric fabric(cluster);
  PriceCache cache(fabric);
  for (int i = 0; i < 400; ++i) {
    const auto collective = *rc::gen::element(Collective::all_reduce, Collective::all_gather, Collective::all_to_all);
    const Bytes bytes(std::pow(2.0, *rc::gen::inRange(0, 20)));
    Group group{{{0, *rc::gen::element<std::int64_t>(2, 4, 8)}}, *rc::gen::arbitrary<bool>()};
    if (*rc::gen::arbitrary<bool>()) { group.extents.push_back({1, *rc::gen::element<std::int64_t>(2, 4)}); }
    RC_ASSERT(cache.time(collective, bytes, group) == fabric.price(collective, bytes, group).time);
  }
}

TEST(PriceCache, tells_nothing_and_a_group_of_one_apart_from_what_it_knows) {
  const auto cluster = test::plain_cluster({8});
  const Fabric fabric(cluster);
  PriceCache cache(fabric);
  EXPECT_EQ(cache.time(Collective::all_reduce, Bytes(1e6), {}), Seconds(0));
  EXPECT_EQ(cache.time(Collective::all_reduce, Bytes(0), {{{0, 8}}, true}), Seconds(0));
  EXPECT_GT(cache.time(Collective::all_reduce, Bytes(1e6), {{{0, 8}}, true}), Seconds(0));
}

}  // namespace
}  // namespace orrery::network
