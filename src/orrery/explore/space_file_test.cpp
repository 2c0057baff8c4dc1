// Errors and contents of space files.
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "orrery/config/node.hpp"
#include "orrery/explore/space_walk.hpp"
#include "orrery/parallel/test_jobs.hpp"

namespace orrery::explore::space_file_test {
namespace {

std::string mistakes(const std::string& text) {
  const auto file = space_of(config::parse_yaml(text, "s.yaml").value());
  EXPECT_FALSE(file);
  return file ? "" : file.error().text();
}

SpaceFile file_of(const std::string& text) {
  const auto file = space_of(config::parse_yaml(text, "s.yaml").value());
  EXPECT_TRUE(file) << file.error().text();
  return *file;
}

// A model of 12 layers and 8 heads on 4 x 4 devices, batches of 48.
Result<Space> made(const std::string& text, const parallel::PartialPlan& fixed = {}, std::int64_t batch = 48) {
  const parallel::Job job{batch, 96, hardware::Precision::bf16, parallel::Task::pretrain};
  return Space::make(file_of(text), parallel::test::llama(12, 512, 8, 8, 768, 1024), job,
                     parallel::test::cluster_of({4, 4}), fixed, true);
}

std::string space_error(const std::string& text) {
  const auto space = made(text);
  EXPECT_FALSE(space);
  return space ? "" : space.error().text();
}

TEST(SpaceFile, the_header_is_a_scenario) {
  const auto file = file_of(
      "model: gpt3-175b\ncluster: {use: dgx-a100, devices: 64}\nseq: 2048\nmax_batch: 64\naxes: {tp: [1, 2]}\n");
  EXPECT_EQ(file.scenario.find("model")->scalar, "gpt3-175b");
  EXPECT_EQ(file.scenario.find("cluster")->scalar, "dgx-a100");
  EXPECT_EQ(file.scenario.find("devices")->scalar, "64");
  EXPECT_EQ(file.scenario.find("seq")->place.line, 3);
  EXPECT_EQ(file.scenario.members.size(), 4U);
  EXPECT_EQ(file.max_batch, 64);
  EXPECT_TRUE(file.count_invalid);
}

TEST(SpaceFile, all_errors_are_reported_with_their_places) {
  EXPECT_EQ(mistakes("modle: x\n"
                     "seq: -3\n"
                     "tp: 8\n"
                     "cluster: {use: dgx-a100, device: 64}\n"
                     "max_batch: 0\n"
                     "axes:\n"
                     "  tp: divisors(deviecs)\n"
                     "  pp: [1, 2\n"
                     "    , tp + ]\n"
                     "  microbatch: 1\n"
                     "  tier: {tpp: 1}\n"),
            "s.yaml:1:1 /modle: unknown key; did you mean \"model\"?\n"
            "s.yaml:3:1 /tp: \"tp\" is an axis; write it under \"axes\"\n"
            "s.yaml:4:26 /cluster/device: unknown key; did you mean \"devices\"?\n"
            "s.yaml:5:12 /max_batch: \"0\" is too small; max_batch must be between 1 and 1000000000\n"
            "s.yaml:2:6 /seq: \"-3\" is negative; seq must be between 1 and 1000000000\n"
            "s.yaml:7:16 /axes/tp: \"divisors(deviecs)\": \"deviecs\" is not a known name; did you mean \"devices\"?\n"
            "s.yaml:9:11 /axes/pp/2: \"tp +\": ends where a value is expected\n"
            "s.yaml:10:3 /axes/microbatch: unknown key; did you mean \"micro_batch\"?\n"
            "s.yaml:11:10 /axes/tier/tpp: unknown key; did you mean \"tp\"?");
}

TEST(SpaceFile, axes_are_required) {
  EXPECT_EQ(mistakes("model: x\n"), "s.yaml:1:1: required key \"axes\" is missing");
  EXPECT_EQ(mistakes("axes: []\n"),
            "s.yaml:1:7 /axes: \"axes\" must be a mapping of names to values, such as \"tp: divisors(devices)\"");
  EXPECT_EQ(mistakes("- 1\n"), "s.yaml:1:1: a space file must be a mapping with keys such as model, cluster, axes");
}

TEST(SpaceFile, an_expression_uses_axes_written_before_it) {
  EXPECT_EQ(mistakes("axes: {tp: divisors(pp), pp: 1}\n"),
            "s.yaml:1:21 /axes/tp: \"divisors(pp)\": \"pp\" cannot be used here: axis pp is written later");
  EXPECT_EQ(mistakes("axes: {tp: 1, micro_batch: divisors(batch/dp), pp: 1}\nmax_batch: 4\n"),
            "s.yaml:1:37 /axes/micro_batch: \"divisors(batch/dp)\": \"batch\" cannot be used here: it depends on axis "
            "pp, which is written later");
  EXPECT_EQ(mistakes("axes: {tp: divisors(tp)}\n"),
            "s.yaml:1:12 /axes/tp: the values of tp cannot depend on tp; only a condition can");
  EXPECT_EQ(mistakes("axes: {tp: divisors(dp)}\n"),
            "s.yaml:1:12 /axes/tp: the values of tp cannot depend on dp, which depends on them; only a condition can");
  EXPECT_EQ(mistakes("axes: {tp: 1..4 where zero == 0}\n"),
            "s.yaml:1:23 /axes/tp: \"1..4 where zero == 0\": \"zero\" cannot be used here: the file has no such axis");
  EXPECT_EQ(mistakes("axes: {tp: 1..max_batch}\n"),
            "s.yaml:1:15 /axes/tp: \"1..max_batch\": \"max_batch\" cannot be used here: the file has no max_batch");
}

TEST(SpaceFile, two_axes_cannot_set_the_same_choice) {
  EXPECT_EQ(mistakes("axes: {zero: [0, 1], optimizer_sharding: true}\n"),
            "s.yaml:1:42 /axes/optimizer_sharding: sets the same choice as zero; remove one of them");
  EXPECT_EQ(mistakes("max_batch: 8\nglobal_batch: 8\naxes: {tp: 1}\n"),
            "s.yaml:1:12 /max_batch: cannot be combined with a fixed batch; remove one of them");
  EXPECT_EQ(mistakes("cluster: {use: dgx-a100, devices: 8}\ndevices: 16\naxes: {tp: 1}\n"),
            "s.yaml:2:1 /devices: \"devices\" is given twice: under \"cluster\" and at the top level");
}

TEST(SpaceFile, a_cycle_of_axes_is_an_error) {
  EXPECT_EQ(space_error("axes: {zero: [0, 1], tp: 1..4 where zero == 0}\n").substr(0, 65),
            "s.yaml:1:14 /axes/zero: the values of zero, tp depend on each oth");
}

TEST(SpaceFile, an_expression_without_a_value_names_the_values_it_depends_on) {
  EXPECT_EQ(space_error("axes:\n  tp: [1, 2, 4]\n  pp: divisors(12 / (tp - 2))\n"),
            "s.yaml:3:19 /axes/pp: pp: divides by zero where tp is 2");
  EXPECT_EQ(
      space_error("axes:\n  tp: [1, 2]\n  pp: 2\n  recompute: [none, full]\n  vpp: 1..2 where recompute == none or "
                  "tp / (tp - 1) > 0\n"),
      "s.yaml:5:43 /axes/vpp: vpp: divides by zero where tp is 1, recompute is full");
  EXPECT_EQ(space_error("axes: {tp: 1, zero: 3..4}\n"), "s.yaml:1:21 /axes/zero: zero: 4 is not a ZeRO stage (0 to 3)");
  EXPECT_EQ(space_error("axes: {tp: [1, 2], tier: {tp: [0, 2]}}\n"),
            "s.yaml:1:35 /axes/tier/tp/1: tier.tp: 2 is not a network dimension of plain (0 to 1)");
  EXPECT_EQ(space_error("axes: {tp: 1, shard: -1}\n"),
            "s.yaml:1:22 /axes/shard: shard: -1 is negative; 0 means the default");
}

TEST(SpaceFile, a_batch_is_required) {
  EXPECT_EQ(made("axes: {tp: 1}\n", {}, 0).error().text(),
            "no batch is given: the global batch, or max_batch in the space file, is required");
  EXPECT_TRUE(made("max_batch: 20\naxes: {tp: 1}\n", {}, 0));
}

std::vector<Point> points_of(const Space& space) {
  std::vector<Point> points;
  SpaceWalk walk(space);
  walk.families([&](const Family& family) {
    walk.members(family, [&](const Member& member) { points.push_back(member.point); });
    return true;
  });
  return points;
}

// 16 devices: dp 16, 8, 4; the largest multiples up to 20.
TEST(SpaceFile, with_max_batch_the_batch_follows_from_dp) {
  std::vector<std::int64_t> batches;
  for (const auto& point : points_of(*made("max_batch: 20\naxes: {tp: [1, 2, 4]}\n", {}, 0))) {
    batches.push_back(point.global_batch);
  }
  EXPECT_EQ(batches, (std::vector<std::int64_t>{16, 16, 20}));
  EXPECT_EQ(made("max_batch: 7\naxes: {tp: [1, 2, 4]}\n", {}, 0)->points(), 1);   // dp 4
  EXPECT_EQ(made("max_batch: 7\naxes: {tp: [1, 2, 4]}\n", {}, 48)->points(), 3);  // a given batch has priority
}

TEST(SpaceFile, choices_without_an_axis_have_the_defaults_of_estimate) {
  const auto points = points_of(*made("axes: {tp: 2, vpp: [1, 2], pp: 2}\n"));
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[0].plan.dp, 4);
  EXPECT_EQ(points[0].plan.zero, 1);
  EXPECT_TRUE(points[0].plan.dp_overlap);
  EXPECT_FALSE(points[0].plan.sequence_parallel);
  EXPECT_EQ(points[0].plan.schedule, parallel::ScheduleKind::one_f_one_b);
  EXPECT_EQ(points[1].plan.schedule, parallel::ScheduleKind::interleaved);
}

TEST(SpaceFile, a_flag_replaces_the_values_of_the_axis) {
  parallel::PartialPlan fixed;
  fixed.tp = 8;  // not in the list
  fixed.recompute = parallel::Recompute::full;
  fixed.offload = parallel::Offload{.weights = true};
  const auto points = points_of(*made(
      "axes: {tp: [1, 2], recompute: [none, selective], zero: [0, 2], offload_optimizer: [true, false]}\n", fixed));
  ASSERT_EQ(points.size(), 2U);
  for (const auto& point : points) {
    EXPECT_EQ(point.plan.tp, 8);
    EXPECT_EQ(point.plan.recompute, parallel::Recompute::full);
    EXPECT_EQ(point.plan.offload, (parallel::Offload{true, false, false}));
  }
}

TEST(SpaceFile, axes_and_those_without_effect_are_named) {
  const auto space =
      made("axes: {tp: [1, 2], ag_redo: [true, false], fused_activation: [true, false], tier: {dp: 1}}\n");
  EXPECT_EQ(space->axes(), (std::vector<std::string>{"tp", "ag_redo", "fused_activation", "tier.dp"}));
  EXPECT_EQ(space->without_effect(), (std::vector<std::string>{"ag_redo", "fused_activation"}));
  EXPECT_EQ(space->points(), 4);
}

TEST(SpaceFile, a_walk_stops_when_the_visitor_returns_false) {
  const auto space = made("axes: {tp: [1, 2, 4]}\n");
  int seen = 0;
  SpaceWalk(*space).families([&](const Family&) { return ++seen < 2; });
  EXPECT_EQ(seen, 2);
}

TEST(SpaceFile, too_many_points_to_count_are_an_error) {
  std::string text = "axes:\n  tp: 1\n";
  for (const auto* axis : {"first_stage_layers", "last_stage_layers", "micro_batch", "vpp"}) {
    text += std::string("  ") + axis + ": 1..60000\n";
  }
  parallel::PartialPlan fixed;
  fixed.pp = 2;
  EXPECT_TRUE(made(text, fixed));  // micro_batch divides, the others 60,000 each
  EXPECT_EQ(made(text, fixed)->points(), 60'000LL * 60'000 * 60'000 * 4);
}

}  // namespace
}  // namespace orrery::explore::space_file_test
