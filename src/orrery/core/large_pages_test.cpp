#include "orrery/core/large_pages.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace orrery::large_pages_test {
namespace {

struct alignas(64) Line {
  std::uint64_t value = 7;
};

TEST(LargePages, vectors_of_any_size_grow_move_and_keep_their_alignment) {
  std::vector<Line, LargePages<Line>> lines;
  for (std::uint64_t i = 0; i < 100'000; ++i) {  // 6.4 MB
    lines.push_back({i});
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(lines.data()) % alignof(Line), 0U);  // NOLINT(*-reinterpret-cast)
  }
  auto moved = std::move(lines);
  for (std::uint64_t i = 0; i < moved.size(); ++i) { ASSERT_EQ(moved[i].value, i); }
  moved.resize(10);
  moved.shrink_to_fit();
  EXPECT_EQ(moved.back().value, 9U);
  EXPECT_EQ((std::vector<Line, LargePages<Line>>(50'000)).back().value, 7U);
}

}  // namespace
}  // namespace orrery::large_pages_test
