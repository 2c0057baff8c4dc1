// Every schedule keeps its promise, and the checker notices every schedule that does not.
#include "orrery/network/exactly_once.hpp"

#include <array>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "orrery/network/test_cluster.hpp"

namespace orrery::network {
namespace {

constexpr std::array kCollectives = {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter,
                                     Collective::all_to_all, Collective::broadcast,  Collective::reduce,
                                     Collective::gather,     Collective::scatter,    Collective::barrier};
constexpr std::array kAlgorithms = {CollectiveAlgorithm::ring, CollectiveAlgorithm::direct,
                                    CollectiveAlgorithm::halving_doubling, CollectiveAlgorithm::tree,
                                    CollectiveAlgorithm::in_switch};

std::string name_of(const Steps& steps) {
  return "collective " + std::to_string(static_cast<int>(steps.collective)) + " algorithm " +
         std::to_string(static_cast<int>(steps.algorithm)) + " n " + std::to_string(steps.members) + " window " +
         std::to_string(steps.window) + " root " + std::to_string(steps.root) + (steps.backward ? " backward" : "");
}

std::string fault_of(const Steps& steps) { return fault(promise_of(steps), messages_of(steps)).value_or(""); }

// ---- what is kept --------------------------------------------------------------------------------------------------

TEST(ExactlyOnce, every_schedule_of_steps_keeps_its_promise_among_up_to_33_members) {
  int schedules = 0;
  for (const Collective collective : kCollectives) {
    for (const CollectiveAlgorithm algorithm : kAlgorithms) {
      for (std::uint32_t n = 1; n <= 33; ++n) {
        for (const std::uint32_t window : {0U, 1U, 2U, 5U}) {
          for (const bool backward : {false, true}) {
            for (const std::uint32_t root : {0U, n / 2, n - 1}) {
              const Steps steps{collective, algorithm, n, window, root, backward};
              if (!refusal(steps).empty()) { continue; }
              ASSERT_EQ(fault_of(steps), "") << name_of(steps);
              ++schedules;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(schedules, 20'000);
}

TEST(ExactlyOnce, larger_groups_at_random_keep_it_too) {
  std::mt19937 engine(7);  // NOLINT(*-msc51-cpp): the same cases in every run
  const auto random = [&] { return static_cast<std::uint32_t>(engine()); };
  int checked = 0;
  while (checked < 120) {
    Steps steps;
    steps.collective = kCollectives[random() % kCollectives.size()];
    steps.algorithm = kAlgorithms[random() % kAlgorithms.size()];
    const bool cubic = steps.collective == Collective::all_to_all;
    steps.members = steps.algorithm == CollectiveAlgorithm::halving_doubling && random() % 2 == 0
                        ? 1U << (random() % (cubic ? 7 : 10))
                        : 34 + random() % (cubic ? 60 : 700);
    steps.window = random() % 20;
    steps.root = random() % steps.members;
    steps.backward = random() % 2 == 0;
    if (!refusal(steps).empty()) { continue; }
    ASSERT_EQ(fault_of(steps), "") << name_of(steps);
    ++checked;
  }
}

TEST(ExactlyOnce, schedules_over_several_dimensions_keep_it_written_out) {
  std::vector<std::vector<std::int64_t>> shapes;
  for (std::int64_t n = 2; n <= 33; ++n) { shapes.push_back({n}); }
  for (const auto& shape : std::vector<std::vector<std::int64_t>>{
           {2, 2}, {2, 5}, {3, 4}, {8, 4}, {4, 9}, {2, 3, 2}, {4, 2, 3}, {2, 2, 2, 2}, {3, 2, 2, 3}, {16, 6}}) {
    shapes.push_back(shape);
  }
  int schedules = 0;
  for (const auto& shape : shapes) {
    for (const CollectiveAlgorithm algorithm : {CollectiveAlgorithm::ring, CollectiveAlgorithm::tree,
                                                CollectiveAlgorithm::direct, CollectiveAlgorithm::in_switch}) {
      for (const Collective collective : {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter,
                                          Collective::all_to_all, Collective::broadcast}) {
        for (const std::int64_t chunks : {1, 3}) {
          const Group group = test::group_of(shape);
          Schedule schedule = make_schedule(collective, algorithm, Bytes(1e6), group);
          if (schedule.phases.empty()) { continue; }
          schedule.chunks = chunks;
          const Expansion expansion = expand(schedule, group);
          const auto wrong = fault(promise_of(schedule, group, expansion), messages_of(expansion));
          ASSERT_EQ(wrong.value_or(""), "") << "collective " << static_cast<int>(collective) << " algorithm "
                                            << static_cast<int>(algorithm) << " members " << expansion.members;
          ++schedules;
        }
      }
    }
  }
  EXPECT_EQ(schedules, 42 * 2 * (4 + 3 + 3 + 2 + 4));  // trees only reduce and broadcast; switches do not exchange
}

// ---- what is noticed -----------------------------------------------------------------------------------------------

// A schedule, and what becomes of it when one thing is changed.
class Mutations {
 public:
  explicit Mutations(const Steps& steps) : steps_(steps), promise_(promise_of(steps)), sound_(messages_of(steps)) {}

  [[nodiscard]] std::size_t messages() const { return sound_.size(); }
  [[nodiscard]] const BlockMessage& message(std::size_t i) const { return sound_[i]; }
  [[nodiscard]] bool noticed(const std::vector<BlockMessage>& changed) const {
    return fault(promise_, changed).has_value();
  }
  [[nodiscard]] std::vector<BlockMessage> dropped(std::size_t i) const {
    auto changed = sound_;
    changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(i));
    return changed;
  }
  // Sent again at the very end, where it is not lost among the messages of its own step.
  [[nodiscard]] std::vector<BlockMessage> repeated(std::size_t i) const {
    auto changed = sound_;
    changed.push_back(sound_[i]);
    changed.back().step = sound_.back().step + 1;
    return changed;
  }
  [[nodiscard]] std::vector<BlockMessage> twice(std::size_t i) const {
    auto changed = sound_;
    changed.insert(changed.begin() + static_cast<std::ptrdiff_t>(i), sound_[i]);
    return changed;
  }
  [[nodiscard]] std::vector<BlockMessage> other_block(std::size_t i) const {
    auto changed = sound_;
    std::uint32_t& block = changed[i].blocks.front();
    block = (block + 1) % promise_.blocks;
    return changed;
  }
  [[nodiscard]] std::vector<BlockMessage> other_way(std::size_t i) const {
    auto changed = sound_;
    changed[i].reduces = !changed[i].reduces;
    return changed;
  }

 private:
  Steps steps_;
  Promise promise_;
  std::vector<BlockMessage> sound_;
};

std::vector<Steps> mutated_schedules() {
  std::vector<Steps> schedules;
  for (const Collective collective : kCollectives) {
    for (const CollectiveAlgorithm algorithm : kAlgorithms) {
      for (const std::uint32_t n : {2U, 3U, 4U, 7U, 8U}) {
        const Steps steps{collective, algorithm, n, 0, n - 1, false};
        if (collective != Collective::barrier && refusal(steps).empty()) { schedules.push_back(steps); }
      }
    }
  }
  return schedules;
}

TEST(ExactlyOnce, a_message_that_is_missing_is_noticed) {
  std::size_t mutants = 0;
  for (const Steps& steps : mutated_schedules()) {
    const Mutations mutations(steps);
    for (std::size_t i = 0; i < mutations.messages(); ++i, ++mutants) {
      ASSERT_TRUE(mutations.noticed(mutations.dropped(i))) << name_of(steps) << " message " << i;
    }
  }
  EXPECT_GT(mutants, 1000U);
}

TEST(ExactlyOnce, a_message_that_comes_twice_is_noticed) {
  for (const Steps& steps : mutated_schedules()) {
    const Mutations mutations(steps);
    for (std::size_t i = 0; i < mutations.messages(); ++i) {
      ASSERT_TRUE(mutations.noticed(mutations.twice(i))) << name_of(steps) << " message " << i;
      ASSERT_TRUE(mutations.noticed(mutations.repeated(i))) << name_of(steps) << " message " << i;
    }
  }
}

TEST(ExactlyOnce, another_block_in_a_message_is_noticed) {
  for (const Steps& steps : mutated_schedules()) {
    const Mutations mutations(steps);
    if (promise_of(steps).blocks == 1) { continue; }
    for (std::size_t i = 0; i < mutations.messages(); ++i) {
      if (mutations.message(i).blocks.size() > 1) { continue; }  // it would carry the same block twice
      ASSERT_TRUE(mutations.noticed(mutations.other_block(i))) << name_of(steps) << " message " << i;
    }
  }
}

// Reducing what is to be stored adds what is there already, or is the same where the receiver had nothing; storing what
// is to be reduced loses the receiver's own, but for what has none (a switch that one member sends to).
TEST(ExactlyOnce, storing_a_partial_sum_and_reducing_a_whole_one_are_noticed) {
  for (const Steps& steps : mutated_schedules()) {
    const bool sums = steps.collective == Collective::all_reduce || steps.collective == Collective::reduce_scatter ||
                      steps.collective == Collective::reduce;
    const Mutations mutations(steps);
    for (std::size_t i = 0; sums && i < mutations.messages(); ++i) {
      if (steps.algorithm == CollectiveAlgorithm::in_switch && !mutations.message(i).reduces &&
          steps.collective != Collective::all_reduce) {
        EXPECT_TRUE(mutations.noticed(mutations.other_way(i))) << name_of(steps);
        continue;
      }
      ASSERT_TRUE(mutations.noticed(mutations.other_way(i))) << name_of(steps) << " message " << i;
    }
  }
}

TEST(ExactlyOnce, a_barrier_that_somebody_passes_early_is_noticed) {
  for (const CollectiveAlgorithm algorithm : {CollectiveAlgorithm::ring, CollectiveAlgorithm::in_switch}) {
    const Steps steps{Collective::barrier, algorithm, 5};
    auto messages = messages_of(steps);
    ASSERT_FALSE(fault(promise_of(steps), messages));
    messages.pop_back();
    EXPECT_TRUE(fault(promise_of(steps), messages)) << static_cast<int>(algorithm);
  }
}

TEST(ExactlyOnce, a_fault_names_the_step_who_and_what) {
  const Steps steps{Collective::all_reduce, CollectiveAlgorithm::ring, 3};
  auto messages = messages_of(steps);
  messages[0].blocks = {messages[1].blocks.front()};
  const std::string text = fault(promise_of(steps), messages).value_or("");
  EXPECT_NE(text.find("step "), std::string::npos) << text;
  EXPECT_NE(text.find("block "), std::string::npos) << text;
}

}  // namespace
}  // namespace orrery::network
