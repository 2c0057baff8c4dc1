// Laws of member schedules. exactly_once_test.cpp checks that every byte is reduced and delivered once.
#include "orrery/network/member_schedule.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "orrery/network/test_collectives.hpp"

namespace orrery::network::member_schedule_test {
namespace {

template <class Use>
void each_schedule(Use&& use) {
  for (const Collective collective : test::kCollectives) {
    for (const CollectiveAlgorithm algorithm : test::kStepAlgorithms) {
      for (std::uint32_t n = 1; n <= 17; ++n) {
        for (const std::uint32_t window : {0U, 1U, 3U}) {
          for (const bool backward : {false, true}) {
            for (const std::uint32_t root : {0U, n / 2, n - 1}) {
              const MemberSchedule schedule{collective, algorithm, n, window, root, backward};
              if (refusal(schedule).empty()) { use(schedule); }
            }
          }
        }
      }
    }
  }
}

using Message = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, bool>;
Message message_of(std::uint32_t from, std::uint32_t to, const StepMessage& message) {
  return {from, to, message.row, message.first, message.count, message.reduces};
}

TEST(MemberSchedule, what_is_sent_in_a_step_is_received_in_that_step) {
  each_schedule([](const MemberSchedule& schedule) {
    for (std::uint32_t step = 0; step < step_count(schedule); ++step) {
      std::vector<Message> sent, received;
      for (std::uint32_t p = 0; p < participant_count(schedule); ++p) {
        for (std::uint32_t i = 0; i < send_count(schedule, p, step); ++i) {
          const StepMessage message = send(schedule, p, step, i);
          EXPECT_NE(message.peer, p);
          sent.push_back(message_of(p, message.peer, message));
        }
        for (std::uint32_t i = 0; i < receive_count(schedule, p, step); ++i) {
          const StepMessage message = receive(schedule, p, step, i);
          received.push_back(message_of(message.peer, p, message));
        }
      }
      std::sort(sent.begin(), sent.end());
      std::sort(received.begin(), received.end());
      ASSERT_EQ(sent, received) << "collective " << int(schedule.collective) << " algorithm " << int(schedule.algorithm)
                                << " n " << schedule.members << " step " << step << " root " << schedule.root;
    }
  });
}

// Rings and direct: member p + 1 sends the same as member p, shifted by one member and one block.
TEST(MemberSchedule, rings_and_direct_are_the_same_for_all_members_up_to_a_translation) {
  each_schedule([](const MemberSchedule& schedule) {
    const bool rooted = schedule.collective >= Collective::broadcast && schedule.collective != Collective::barrier;
    if (rooted ||
        (schedule.algorithm != CollectiveAlgorithm::ring && schedule.algorithm != CollectiveAlgorithm::direct)) {
      return;
    }
    const std::uint32_t n = schedule.members;
    for (std::uint32_t step = 0; step < step_count(schedule); ++step) {
      for (std::uint32_t p = 0; p < n; ++p) {
        ASSERT_EQ(send_count(schedule, p, step), send_count(schedule, 0, step));
        for (std::uint32_t i = 0; i < send_count(schedule, p, step); ++i) {
          const StepMessage zero = send(schedule, 0, step, i), moved = send(schedule, p, step, i);
          EXPECT_EQ(moved.peer, (zero.peer + p) % n);
          EXPECT_EQ(moved.count, zero.count);
          if (schedule.collective != Collective::barrier) { EXPECT_EQ(moved.first, (zero.first + p) % n); }
        }
      }
    }
  });
}

// By hand: each member sends 2 (n - 1) blocks of n; halving 4 + 2 + 1 and again in doubling; inner members of a tree
// twice as many.
TEST(MemberSchedule, the_total_of_sent_blocks_is_that_of_the_closed_forms) {
  const auto blocks = [](const MemberSchedule& schedule) {
    std::uint64_t total = 0;
    for (std::uint32_t p = 0; p < participant_count(schedule); ++p) {
      for (std::uint32_t s = 0; s < step_count(schedule); ++s) {
        for (std::uint32_t i = 0; i < send_count(schedule, p, s); ++i) { total += send(schedule, p, s, i).count; }
      }
    }
    return total;
  };
  EXPECT_EQ(blocks({Collective::all_reduce, CollectiveAlgorithm::ring, 6}), 6U * 2 * 5);
  EXPECT_EQ(blocks({Collective::all_reduce, CollectiveAlgorithm::direct, 6, 2}), 6U * 2 * 5);
  EXPECT_EQ(blocks({Collective::all_reduce, CollectiveAlgorithm::halving_doubling, 8}), 8U * 2 * 7);
  EXPECT_EQ(blocks({Collective::all_reduce, CollectiveAlgorithm::tree, 6}),
            2U * 2 * 5);  // halves: each tree has 5 edges
  EXPECT_EQ(blocks({Collective::all_reduce, CollectiveAlgorithm::in_switch, 6}), 6U * 2);
  // All pairs at distances 1, 2, 3, 2, 1 for 6 members, each at its distance.
  EXPECT_EQ(blocks({Collective::all_to_all, CollectiveAlgorithm::ring, 6}), 6U * (1 + 2 + 3 + 2 + 1));
  EXPECT_EQ(blocks({Collective::broadcast, CollectiveAlgorithm::halving_doubling, 6}), 5U);
}

}  // namespace
}  // namespace orrery::network::member_schedule_test
