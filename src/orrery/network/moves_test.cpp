// Small laws of the steps; that every byte is reduced and delivered once is the checker's.
#include "orrery/network/moves.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <vector>

namespace orrery::network {
namespace {

constexpr std::array kCollectives = {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter,
                                     Collective::all_to_all, Collective::broadcast,  Collective::reduce,
                                     Collective::gather,     Collective::scatter,    Collective::barrier};
constexpr std::array kAlgorithms = {CollectiveAlgorithm::ring, CollectiveAlgorithm::direct,
                                    CollectiveAlgorithm::halving_doubling, CollectiveAlgorithm::tree,
                                    CollectiveAlgorithm::in_switch};

template <class Use>
void each_schedule(Use&& use) {
  for (const Collective collective : kCollectives) {
    for (const CollectiveAlgorithm algorithm : kAlgorithms) {
      for (std::uint32_t n = 1; n <= 17; ++n) {
        for (const std::uint32_t window : {0U, 1U, 3U}) {
          for (const bool backward : {false, true}) {
            for (const std::uint32_t root : {0U, n / 2, n - 1}) {
              const Steps steps{collective, algorithm, n, window, root, backward};
              if (refusal(steps).empty()) { use(steps); }
            }
          }
        }
      }
    }
  }
}

using Message = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, bool>;
Message told(std::uint32_t from, std::uint32_t to, const Move& move) {
  return {from, to, move.row, move.first, move.count, move.reduces};
}

TEST(Moves, what_is_sent_in_a_step_is_received_in_that_step) {
  each_schedule([](const Steps& steps) {
    for (std::uint32_t step = 0; step < step_count(steps); ++step) {
      std::vector<Message> sent, received;
      for (std::uint32_t p = 0; p < parties(steps); ++p) {
        for (std::uint32_t i = 0; i < send_count(steps, p, step); ++i) {
          const Move move = send(steps, p, step, i);
          EXPECT_NE(move.peer, p);
          sent.push_back(told(p, move.peer, move));
        }
        for (std::uint32_t i = 0; i < receive_count(steps, p, step); ++i) {
          const Move move = receive(steps, p, step, i);
          received.push_back(told(move.peer, p, move));
        }
      }
      std::sort(sent.begin(), sent.end());
      std::sort(received.begin(), received.end());
      ASSERT_EQ(sent, received) << "collective " << int(steps.collective) << " algorithm " << int(steps.algorithm)
                                << " n " << steps.members << " step " << step << " root " << steps.root;
    }
  });
}

// Rings and direct: member p + 1 does what member p does, one further on.
TEST(Moves, rings_and_direct_are_the_same_for_all_members_but_for_a_translation) {
  each_schedule([](const Steps& steps) {
    const bool rooted = steps.collective >= Collective::broadcast && steps.collective != Collective::barrier;
    if (rooted || (steps.algorithm != CollectiveAlgorithm::ring && steps.algorithm != CollectiveAlgorithm::direct)) {
      return;
    }
    const std::uint32_t n = steps.members;
    for (std::uint32_t step = 0; step < step_count(steps); ++step) {
      for (std::uint32_t p = 0; p < n; ++p) {
        ASSERT_EQ(send_count(steps, p, step), send_count(steps, 0, step));
        for (std::uint32_t i = 0; i < send_count(steps, p, step); ++i) {
          const Move zero = send(steps, 0, step, i), moved = send(steps, p, step, i);
          EXPECT_EQ(moved.peer, (zero.peer + p) % n);
          EXPECT_EQ(moved.count, zero.count);
          if (steps.collective != Collective::barrier) { EXPECT_EQ(moved.first, (zero.first + p) % n); }
        }
      }
    }
  });
}

// By hand: each member sends 2 (n - 1) blocks of n; halving 4 + 2 + 1 and back; a tree's inner members twice as much.
TEST(Moves, blocks_sent_in_all_are_those_of_the_closed_forms) {
  const auto blocks = [](const Steps& steps) {
    std::uint64_t total = 0;
    for (std::uint32_t p = 0; p < parties(steps); ++p) {
      for (std::uint32_t s = 0; s < step_count(steps); ++s) {
        for (std::uint32_t i = 0; i < send_count(steps, p, s); ++i) { total += send(steps, p, s, i).count; }
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
}  // namespace orrery::network
