// The table of a plan's choices is complete, and consistent in both directions.
#include "orrery/parallel/plan_fields.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/parallel/plan_record.hpp"

namespace orrery::parallel::plan_fields_test {
namespace {

// A value of the part that differs from Plan{}.
std::int64_t another_value(const PlanChoice& choice, const PlanPart& part) {
  const std::int64_t usual = part.get(Plan{});
  return usual == 1 || (choice.kind == ChoiceKind::name && usual == 0 && choice.names.size() == 1) ? 0 : usual + 1;
}

// A value that counts as given: for several parts, not 0.
std::int64_t given_value(const PlanChoice& choice, const PlanPart& part) {
  const bool is_on = choice.kind == ChoiceKind::boolean && part.get(Plan{}) == 1;
  return is_on ? 0 : std::max<std::int64_t>(1, another_value(choice, part));
}

TEST(PlanTable, every_field_is_a_part_of_one_choice) {
  std::set<PlanField> fields;
  std::set<std::string_view> names, axes;
  for (const PlanChoice& choice : plan_choices()) {
    EXPECT_TRUE(names.insert(choice.name).second) << choice.name;
    EXPECT_FALSE(choice.help.empty()) << choice.name;
    for (const PlanPart& part : choice.parts) {
      EXPECT_TRUE(fields.insert(part.field).second) << part.axis;
      EXPECT_TRUE(axes.insert(part.axis).second) << part.axis;
      EXPECT_EQ(&part_of(part.field), &part);
      EXPECT_EQ(&choice_of(part.field), &choice);
    }
  }
  EXPECT_EQ(fields.size(), kPlanFields);
}

TEST(PlanTable, what_is_set_is_read_and_changes_nothing_else) {
  for (const PlanChoice& choice : plan_choices()) {
    for (const PlanPart& part : choice.parts) {
      Plan plan;
      const std::int64_t value = another_value(choice, part);
      part.set(plan, value);
      EXPECT_EQ(part.get(plan), value) << part.axis;
      EXPECT_FALSE(plan == Plan{}) << part.axis;
      part.set(plan, part.get(Plan{}));
      EXPECT_TRUE(plan == Plan{}) << part.axis;
    }
  }
}

TEST(PlanTable, what_is_given_is_in_the_whole_plan_and_can_be_taken_back) {
  for (const PlanChoice& choice : plan_choices()) {
    for (const PlanPart& part : choice.parts) {
      PartialPlan partial;
      EXPECT_FALSE(is_given(choice, partial)) << choice.name;
      EXPECT_TRUE(whole_plan(partial) == Plan{});
      const std::int64_t value = given_value(choice, part);
      part.give(partial, value);
      EXPECT_TRUE(is_given(choice, partial)) << part.axis;
      EXPECT_EQ(part.get(whole_plan(partial)), value) << part.axis;
      EXPECT_EQ(fixed_value(part.field, partial), value) << part.axis;
      choice.take_back(partial);
      EXPECT_FALSE(is_given(choice, partial)) << part.axis;
    }
  }
}

// A member without a row would be lost. The list of names is the compiler's: it stops here when a member is added.
TEST(PlanTable, every_member_of_a_plan_is_in_a_row) {
  Plan plan;
  auto& [tp, cp, pp, dp, ep, etp, vpp, micro_batch, sequence_parallel, zero, shard, recompute, recompute_modules,
         recompute_layers, schedule, dp_overlap, gather_overlap, tp_overlap, cp_method, offload, optimizer_device,
         placement, tables, first_stage_layers, last_stage_layers, embedding_as_layer, head_as_layer] = plan;
  tp = cp = pp = dp = ep = etp = vpp = micro_batch = 2;
  zero = 3;
  shard = recompute_layers = first_stage_layers = last_stage_layers = 4;
  sequence_parallel = embedding_as_layer = head_as_layer = true;
  dp_overlap = gather_overlap = false;
  recompute = Recompute::full;
  schedule = ScheduleKind::dualpipe;
  tp_overlap = TpOverlap::pipe;
  cp_method = workload::ContextMethod::ulysses;
  offload = {true, true, true, true, true};
  optimizer_device = OptimizerDevice::host;
  recompute_modules = {true, true, true, true, true, true, true, true};
  placement = {1, 2, 3, 4};
  tables = {workload::TableSharding::row, 5, 6};
  PartialPlan partial;
  for (const PlanChoice& choice : plan_choices()) {
    for (const PlanPart& part : choice.parts) {
      EXPECT_NE(part.get(plan), part.get(Plan{})) << part.axis << " is as in Plan{}: change it above";
      part.give(partial, part.get(plan));
    }
  }
  EXPECT_TRUE(whole_plan(partial) == plan);
}

TEST(PlanTable, usual_values_are_those_of_a_plan_of_which_nothing_is_said) {
  for (const PlanChoice& choice : plan_choices()) {
    if (choice.usual) { EXPECT_EQ(*choice.usual, choice.parts.front().get(Plan{})) << choice.name; }
    if (choice.usual_is_open) { EXPECT_TRUE(choice.usual) << choice.name; }
  }
}

TEST(PlanTable, giving_the_usual_value_fixes_a_degree_and_leaves_open_what_says_so) {
  PartialPlan partial;
  partial.tp = 1;
  partial.shard = 0;
  partial.tp_overlap = TpOverlap::none;
  EXPECT_EQ(fixed_value(PlanField::tp, partial), 1);
  EXPECT_EQ(fixed_value(PlanField::shard, partial), std::nullopt);
  EXPECT_EQ(fixed_value(PlanField::tp_overlap, partial), std::nullopt);
  EXPECT_FALSE(departs(*find_choice("tp"), partial));
  partial.offload = Offload{.weights = true};
  EXPECT_EQ(fixed_value(PlanField::offload_optimizer, partial), 0);  // weights only
}

// An axis may only depend on axes that are walked before it.
TEST(PlanTable, fields_that_are_read_before_others_form_no_ring) {
  FieldMask done = 0;
  std::size_t left = kPlanFields;
  for (bool moved = true; moved;) {
    moved = false;
    for (const PlanChoice& choice : plan_choices()) {
      for (const PlanPart& part : choice.parts) {
        const FieldMask bit = field_mask({part.field});
        if ((done & bit) != 0 || (part.after & ~done) != 0) { continue; }
        done |= bit;
        --left;
        moved = true;
      }
    }
  }
  EXPECT_EQ(left, 0U);
}

TEST(PlanTable, choices_that_are_named_come_first) {
  const auto list = choices_from({"zero", "tp"});
  ASSERT_EQ(list.size(), plan_choices().size());
  EXPECT_EQ(list[0]->name, "zero");
  EXPECT_EQ(list[1]->name, "tp");
  EXPECT_EQ(list[2]->name, "cp");
  EXPECT_EQ(flag_of(*find_choice("micro_batch")), "--micro-batch");
  EXPECT_EQ(find_choice("microbatch"), nullptr);
}

// The printed form of a choice reads back, for every kind.
TEST(PlanRecord, what_is_printed_reads_back) {
  for (const PlanChoice& choice : plan_choices()) {
    for (const PlanPart& part : choice.parts) {
      PartialPlan partial, again;
      part.give(partial, given_value(choice, part));
      std::vector<Diagnostic> complaints;
      const config::Limits limits = limits_of(choice);
      read(choice, to_node(choice, partial), again, {choice.name, limits, false, complaints});
      EXPECT_TRUE(complaints.empty()) << choice.name;
      EXPECT_TRUE(again == partial) << part.axis;
    }
  }
}

}  // namespace
}  // namespace orrery::parallel::plan_fields_test
