#include "orrery/graph/chakra_collective.hpp"

#include <cstdint>

#include <gtest/gtest.h>

namespace orrery::graph::chakra_collective_test {
namespace {

// Chakra's schema numbers ten collectives from 0 on; reduce_scatter_block (8) is not one of Orrery's.
TEST(ChakraCollective, every_number_except_one_converts_and_back) {
  for (std::int32_t number = 0; number < 10; ++number) {
    const auto type = static_cast<CollectiveType>(number);
    const auto collective = collective_of(type);
    EXPECT_EQ(collective.has_value(), type != CollectiveType::reduce_scatter_block);
    if (collective) { EXPECT_EQ(chakra_type(*collective), type); }
  }
  EXPECT_FALSE(collective_of(static_cast<CollectiveType>(42)));
}

}  // namespace
}  // namespace orrery::graph::chakra_collective_test
