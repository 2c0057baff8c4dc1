#include "orrery/network/price_cache.hpp"

#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/network/test_cluster.hpp"

namespace orrery::network::price_cache_test {
namespace {

// More requests than slots, many of them repeated: every time is that of the fabric.
RC_GTEST_PROP(PriceCache, time_is_that_of_the_fabric_after_any_earlier_requests, ()) {
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

TEST(PriceCache, zero_bytes_and_a_group_of_one_take_no_time) {
  const auto cluster = test::plain_cluster({8});
  const Fabric fabric(cluster);
  PriceCache cache(fabric);
  EXPECT_EQ(cache.time(Collective::all_reduce, Bytes(1e6), {}), Seconds(0));
  EXPECT_EQ(cache.time(Collective::all_reduce, Bytes(0), {{{0, 8}}, true}), Seconds(0));
  EXPECT_GT(cache.time(Collective::all_reduce, Bytes(1e6), {{{0, 8}}, true}), Seconds(0));
}

}  // namespace
}  // namespace orrery::network::price_cache_test
