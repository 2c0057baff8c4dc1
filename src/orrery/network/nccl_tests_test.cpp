#include "orrery/network/nccl_tests.hpp"

#include <gtest/gtest.h>

#include "orrery/network/fabric.hpp"
#include "orrery/network/test_cluster.hpp"

namespace orrery::network::nccl_tests_test {
namespace {

TEST(NcclTests, factors_are_those_of_its_documentation) {
  EXPECT_DOUBLE_EQ(bus_bandwidth_factor(Collective::all_reduce, 8), 1.75);
  EXPECT_DOUBLE_EQ(bus_bandwidth_factor(Collective::all_gather, 8), 0.875);
  EXPECT_DOUBLE_EQ(bus_bandwidth_factor(Collective::reduce_scatter, 8), 0.875);
  EXPECT_DOUBLE_EQ(bus_bandwidth_factor(Collective::all_to_all, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_bandwidth_factor(Collective::broadcast, 4), 1.0);
  EXPECT_DOUBLE_EQ(bus_bandwidth_factor(Collective::reduce, 4), 1.0);
}

// 1 MiB of floats among 8: 262144 in a vector, 32768 in a shard.
TEST(NcclTests, counts_are_of_the_vector_or_of_a_shard) {
  EXPECT_EQ(element_count(Collective::all_reduce, 1 << 20, 8), 262144U);
  EXPECT_EQ(element_count(Collective::broadcast, 1 << 20, 8), 262144U);
  EXPECT_EQ(element_count(Collective::all_gather, 1 << 20, 8), 32768U);
  EXPECT_EQ(element_count(Collective::reduce_scatter, 1 << 20, 8), 32768U);
  EXPECT_EQ(element_count(Collective::all_to_all, 1 << 20, 8), 32768U);
}

// A ring over links of 1 GB/s has a busbw of 1 GB/s for large sizes, with any operation and number of members.
TEST(NcclTests, bus_bandwidth_of_a_ring_is_that_of_its_links_for_large_sizes) {
  for (const std::int64_t n : {2, 3, 8, 17}) {
    const auto cluster = test::plain_cluster({n});
    const Fabric fabric(cluster);
    for (const Collective op : {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter}) {
      const Bytes size(1e13);
      const Seconds time = fabric.price(op, size, test::group_of({n}), CollectiveAlgorithm::ring).time;
      const double busbw = size.value() / time.value() * bus_bandwidth_factor(op, n);
      EXPECT_NEAR(busbw / 1e9, 1.0, 1e-3) << n;
    }
  }
}

}  // namespace
}  // namespace orrery::network::nccl_tests_test
