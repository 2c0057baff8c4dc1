// Blocks of preempted requests among free blocks, against a queue of single blocks; and an engine that finds them.
#include "orrery/serving/left_blocks.hpp"

#include <algorithm>
#include <deque>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/serving/engine.hpp"
#include "orrery/serving/test_cases.hpp"
#include "orrery/serving/test_prices.hpp"

namespace orrery::serving::test::left_blocks_test {
namespace {

constexpr std::int64_t kNobody = -1;

// Every free block on its own: the front is overwritten first.
struct Slow {
  std::deque<std::int64_t> owners;

  void free(std::int64_t blocks, std::int64_t owner) {
    for (std::int64_t i = 0; i < blocks; ++i) { owners.push_back(owner); }
  }
  std::int64_t take(std::int64_t blocks) {
    blocks = std::min<std::int64_t>(blocks, std::ssize(owners));
    owners.erase(owners.begin(), owners.begin() + blocks);
    return blocks;
  }
  [[nodiscard]] std::int64_t of(std::int64_t request) const {
    return std::count(owners.begin(), owners.end(), request);
  }
};

RC_GTEST_PROP(LeftBlocksLaw, agree_with_a_queue_of_single_blocks, ()) {
  const auto draw = [](std::int64_t low, std::int64_t high) { return *rc::gen::inRange<std::int64_t>(low, high); };
  LeftBlocks left;
  Slow slow;
  slow.free(draw(0, 20), kNobody);
  std::int64_t requests = 0;
  for (std::int64_t i = draw(0, 60); i > 0; --i) {
    const std::int64_t blocks = draw(0, 12);
    switch (draw(0, 4)) {
      case 0:
        left.free(blocks);
        slow.free(blocks, kNobody);
        break;
      case 1:
        left.preempt(requests, blocks, std::ssize(slow.owners));
        slow.free(blocks, requests);
        ++requests;
        break;
      case 2: left.take(slow.take(blocks)); break;
      default:
        if (requests > 0) {
          const std::int64_t request = draw(0, requests);
          left.take_back(request);
          std::erase(slow.owners, request);
        }
    }
    for (std::int64_t r = 0; r < requests; ++r) { RC_ASSERT(left.of(r) == slow.of(r)); }
    RC_ASSERT(left.empty() ==
              std::all_of(slow.owners.begin(), slow.owners.end(), [](std::int64_t owner) { return owner == kNobody; }));
  }
}

}  // namespace
}  // namespace orrery::serving::test::left_blocks_test
