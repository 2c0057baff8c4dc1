// Every schedule satisfies the requirement of its collective, and the checker finds every schedule that does not.
#include "orrery/network/exactly_once.hpp"

#include <random>
#include <string>

#include <gtest/gtest.h>

#include "orrery/core/test_effort.hpp"
#include "orrery/network/test_cluster.hpp"
#include "orrery/network/test_collectives.hpp"

namespace orrery::network::exactly_once_test {
namespace {

std::string name_of(const MemberSchedule& schedule) {
  return "collective " + std::to_string(static_cast<int>(schedule.collective)) + " algorithm " +
         std::to_string(static_cast<int>(schedule.algorithm)) + " n " + std::to_string(schedule.members) + " window " +
         std::to_string(schedule.window) + " root " + std::to_string(schedule.root) +
         (schedule.backward ? " backward" : "");
}

std::string fault_of(const MemberSchedule& schedule) {
  return fault(requirement_of(schedule), messages_of(schedule)).value_or("");
}

// ---- correct schedules ---------------------------------------------------------------------------------------------

constexpr std::uint32_t kMostMembers = orrery::test::kSanitizers ? 17 : 33;

TEST(ExactlyOnce, member_schedules_of_all_small_groups_are_correct) {
  std::uint32_t schedules = 0;
  for (const Collective collective : test::kCollectives) {
    for (const CollectiveAlgorithm algorithm : test::kStepAlgorithms) {
      for (std::uint32_t n = 1; n <= kMostMembers; ++n) {
        for (const std::uint32_t window : {0U, 1U, 2U, 5U}) {
          for (const bool backward : {false, true}) {
            for (const std::uint32_t root : {0U, n / 2, n - 1}) {
              const MemberSchedule schedule{collective, algorithm, n, window, root, backward};
              if (!refusal(schedule).empty()) { continue; }
              ASSERT_EQ(fault_of(schedule), "") << name_of(schedule);
              ++schedules;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(schedules, 600 * kMostMembers);
}

TEST(ExactlyOnce, member_schedules_of_random_larger_groups_are_correct) {
  std::mt19937 engine(7);  // NOLINT(*-msc51-cpp): the same cases in every run
  const auto random = [&] { return static_cast<std::uint32_t>(engine()); };
  int checked = 0;
  while (checked < (orrery::test::kSanitizers ? 40 : 120)) {
    MemberSchedule schedule;
    schedule.collective = test::kCollectives[random() % test::kCollectives.size()];
    schedule.algorithm = test::kStepAlgorithms[random() % test::kStepAlgorithms.size()];
    const bool cubic = schedule.collective == Collective::all_to_all;
    schedule.members = schedule.algorithm == CollectiveAlgorithm::halving_doubling && random() % 2 == 0
                           ? 1U << (random() % (cubic ? 7 : 10))
                           : 34 + random() % (cubic ? 60 : 700);
    schedule.window = random() % 20;
    schedule.root = random() % schedule.members;
    schedule.backward = random() % 2 == 0;
    if (!refusal(schedule).empty()) { continue; }
    ASSERT_EQ(fault_of(schedule), "") << name_of(schedule);
    ++checked;
  }
}

TEST(ExactlyOnce, schedules_over_several_dimensions_are_correct) {
  std::vector<std::vector<std::int64_t>> shapes;
  for (std::int64_t n = 2; n <= kMostMembers; n += orrery::test::kSanitizers ? 3 : 1) { shapes.push_back({n}); }
  for (const auto& shape : std::vector<std::vector<std::int64_t>>{
           {2, 2}, {2, 5}, {3, 4}, {8, 4}, {4, 9}, {2, 3, 2}, {4, 2, 3}, {2, 2, 2, 2}, {3, 2, 2, 3}, {16, 6}}) {
    shapes.push_back(shape);
  }
  std::size_t schedules = 0;
  for (const auto& shape : shapes) {
    for (const CollectiveAlgorithm algorithm : test::kScheduleAlgorithms) {
      for (const Collective collective : {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter,
                                          Collective::all_to_all, Collective::broadcast}) {
        for (const std::int64_t chunks : {1, 3}) {
          const Group group = test::group_of(shape);
          Schedule schedule = make_schedule(collective, algorithm, Bytes(1e6), group);
          if (schedule.phases.empty()) { continue; }
          schedule.chunks = chunks;
          const Composition composition = compose(schedule, group);
          const auto found = fault(requirement_of(schedule, group, composition), messages_of(schedule, composition));
          ASSERT_EQ(found.value_or(""), "") << "collective " << static_cast<int>(collective) << " algorithm "
                                            << static_cast<int>(algorithm) << " members " << composition.members;
          ++schedules;
        }
      }
    }
  }
  // Trees: all_reduce and broadcast only; switches: no all_to_all; flat rings: neither all_to_all nor broadcast.
  EXPECT_EQ(schedules, shapes.size() * 2 * (5 + 4 + 4 + 2 + 4));
}

// ---- faults --------------------------------------------------------------------------------------------------------

// A correct schedule, and copies of it with one change.
class Mutations {
 public:
  explicit Mutations(const MemberSchedule& schedule)
      : schedule_(schedule), requirement_(requirement_of(schedule)), correct_(messages_of(schedule)) {}

  [[nodiscard]] std::size_t messages() const { return correct_.size(); }
  [[nodiscard]] const BlockMessage& message(std::size_t i) const { return correct_[i]; }
  [[nodiscard]] bool has_fault(const std::vector<BlockMessage>& changed) const {
    return fault(requirement_, changed).has_value();
  }
  [[nodiscard]] std::vector<BlockMessage> without(std::size_t i) const {
    auto changed = correct_;
    changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(i));
    return changed;
  }
  // Sent again in a step after the last one.
  [[nodiscard]] std::vector<BlockMessage> with_duplicate_at_the_end(std::size_t i) const {
    auto changed = correct_;
    changed.push_back(correct_[i]);
    changed.back().step = correct_.back().step + 1;
    return changed;
  }
  [[nodiscard]] std::vector<BlockMessage> with_duplicate_in_its_step(std::size_t i) const {
    auto changed = correct_;
    changed.insert(changed.begin() + static_cast<std::ptrdiff_t>(i), correct_[i]);
    return changed;
  }
  [[nodiscard]] std::vector<BlockMessage> with_other_block(std::size_t i) const {
    auto changed = correct_;
    std::uint32_t& block = changed[i].blocks.front();
    block = (block + 1) % requirement_.blocks;
    return changed;
  }
  [[nodiscard]] std::vector<BlockMessage> with_flipped_reduces(std::size_t i) const {
    auto changed = correct_;
    changed[i].reduces = !changed[i].reduces;
    return changed;
  }

 private:
  MemberSchedule schedule_;
  Requirement requirement_;
  std::vector<BlockMessage> correct_;
};

std::vector<MemberSchedule> mutated_schedules() {
  std::vector<MemberSchedule> schedules;
  for (const Collective collective : test::kCollectives) {
    for (const CollectiveAlgorithm algorithm : test::kStepAlgorithms) {
      for (const std::uint32_t n : {2U, 3U, 4U, 7U, 8U}) {
        const MemberSchedule schedule{collective, algorithm, n, 0, n - 1, false};
        if (collective != Collective::barrier && refusal(schedule).empty()) { schedules.push_back(schedule); }
      }
    }
  }
  return schedules;
}

TEST(ExactlyOnce, a_missing_message_is_a_fault) {
  std::size_t mutants = 0;
  for (const MemberSchedule& schedule : mutated_schedules()) {
    const Mutations mutations(schedule);
    for (std::size_t i = 0; i < mutations.messages(); ++i, ++mutants) {
      ASSERT_TRUE(mutations.has_fault(mutations.without(i))) << name_of(schedule) << " message " << i;
    }
  }
  EXPECT_GT(mutants, 1000U);
}

TEST(ExactlyOnce, a_duplicate_message_is_a_fault) {
  for (const MemberSchedule& schedule : mutated_schedules()) {
    const Mutations mutations(schedule);
    for (std::size_t i = 0; i < mutations.messages(); ++i) {
      ASSERT_TRUE(mutations.has_fault(mutations.with_duplicate_in_its_step(i)))
          << name_of(schedule) << " message " << i;
      ASSERT_TRUE(mutations.has_fault(mutations.with_duplicate_at_the_end(i))) << name_of(schedule) << " message " << i;
    }
  }
}

TEST(ExactlyOnce, another_block_in_a_message_is_a_fault) {
  for (const MemberSchedule& schedule : mutated_schedules()) {
    const Mutations mutations(schedule);
    if (requirement_of(schedule).blocks == 1) { continue; }
    for (std::size_t i = 0; i < mutations.messages(); ++i) {
      if (mutations.message(i).blocks.size() > 1) { continue; }  // the message would contain the same block twice
      ASSERT_TRUE(mutations.has_fault(mutations.with_other_block(i))) << name_of(schedule) << " message " << i;
    }
  }
}

// Reducing a block instead of storing it adds a contribution twice, or is the same if the receiver had nothing. Storing
// instead of reducing loses the contribution of the receiver, unless it has none (a switch to which one member sends).
TEST(ExactlyOnce, storing_a_partial_sum_and_reducing_a_whole_one_are_faults) {
  for (const MemberSchedule& schedule : mutated_schedules()) {
    const bool sums = schedule.collective == Collective::all_reduce ||
                      schedule.collective == Collective::reduce_scatter || schedule.collective == Collective::reduce;
    const Mutations mutations(schedule);
    for (std::size_t i = 0; sums && i < mutations.messages(); ++i) {
      if (schedule.algorithm == CollectiveAlgorithm::in_switch && !mutations.message(i).reduces &&
          schedule.collective != Collective::all_reduce) {
        EXPECT_TRUE(mutations.has_fault(mutations.with_flipped_reduces(i))) << name_of(schedule);
        continue;
      }
      ASSERT_TRUE(mutations.has_fault(mutations.with_flipped_reduces(i))) << name_of(schedule) << " message " << i;
    }
  }
}

TEST(ExactlyOnce, a_barrier_that_a_member_passes_early_is_a_fault) {
  for (const CollectiveAlgorithm algorithm : {CollectiveAlgorithm::ring, CollectiveAlgorithm::in_switch}) {
    const MemberSchedule schedule{Collective::barrier, algorithm, 5};
    auto messages = messages_of(schedule);
    ASSERT_FALSE(fault(requirement_of(schedule), messages));
    messages.pop_back();
    EXPECT_TRUE(fault(requirement_of(schedule), messages)) << static_cast<int>(algorithm);
  }
}

TEST(ExactlyOnce, a_fault_names_the_step_and_the_block) {
  const MemberSchedule schedule{Collective::all_reduce, CollectiveAlgorithm::ring, 3};
  auto messages = messages_of(schedule);
  messages[0].blocks = {messages[1].blocks.front()};
  const std::string text = fault(requirement_of(schedule), messages).value_or("");
  EXPECT_NE(text.find("step "), std::string::npos) << text;
  EXPECT_NE(text.find("block "), std::string::npos) << text;
}

}  // namespace
}  // namespace orrery::network::exactly_once_test
