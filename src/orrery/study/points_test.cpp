#include "orrery/study/points.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "orrery/study/test_studies.hpp"

namespace orrery::study::points_test {

using testing::error_of;
using ::testing::HasSubstr;
using testing::points_of;
using testing::study_from;

namespace {

std::vector<std::string> texts_of(const std::vector<Point>& points) {
  std::vector<std::string> texts;
  for (const auto& point : points) {
    std::string text = std::to_string(point.id) + ":";
    for (const auto& setting : point.settings) { text += " " + setting.path + "=" + setting.value.scalar; }
    texts.push_back(text);
  }
  return texts;
}

}  // namespace

TEST(Points, the_last_axis_changes_fastest_and_zipped_paths_change_together) {
  const auto study = study_from("axes: [{a: [1, 2]}, {zip: {b: [x, y], c: [5, 6]}}]");
  EXPECT_THAT(texts_of(points_of(study)),
              ::testing::ElementsAre("0: a=1 b=x c=5", "1: a=1 b=y c=6", "2: a=2 b=x c=5", "3: a=2 b=y c=6"));
}

TEST(Points, conditions_select_and_ids_have_no_gaps) {
  const auto study = study_from("axes: [{tp: [1, 2, 4, 8]}, {pp: [1, 2, 4]}]\nwhere: tp * pp == 8");
  EXPECT_THAT(texts_of(points_of(study)), ::testing::ElementsAre("0: tp=2 pp=4", "1: tp=4 pp=2", "2: tp=8 pp=1"));
}

// 1e6 USD buy floor(1e6 / 300e3) = 3 nodes of 8 devices; (500 - 200) GB/s are left for the other link.
TEST(Points, derived_values_are_settings_in_their_unit) {
  const auto study = study_from(
      "let: {budget: 1000000, all: 500 GB/s}\naxes: [{inner: [200 GB/s]}]\n"
      "derive: {devices: 8 * floor(budget / 300000), outer: all - inner in GB/s}");
  EXPECT_THAT(texts_of(points_of(study)), ::testing::ElementsAre("0: inner=200 GB/s devices=24 outer=300 GB/s"));
}

TEST(Points, choices_set_several_paths_and_plans_are_degrees) {
  const auto study = study_from("axes: [{choice: machine, of: {a: {cluster: x, devices: 4}}}, {plan: [MP8_DP128]}]");
  EXPECT_THAT(texts_of(points_of(study)), ::testing::ElementsAre("0: cluster=x devices=4 tp=8 pp=1 dp=128"));
  EXPECT_EQ(study.columns()[0].name, "machine");
  EXPECT_EQ(study.columns()[1].name, "axis_plan");
}

TEST(Points, ranges_are_linear_logarithmic_or_multiplied) {
  const auto of = [](const std::string& range) {
    return texts_of(points_of(study_from("axes: [{a: " + range + "}]")));
  };
  EXPECT_THAT(of("{from: 10 GB/s, to: 30 GB/s, points: 3}"),
              ::testing::ElementsAre("0: a=10 GB/s", "1: a=20 GB/s", "2: a=30 GB/s"));
  EXPECT_THAT(of("{from: 1, to: 100, points: 3, scale: log}"), ::testing::ElementsAre("0: a=1", "1: a=10", "2: a=100"));
  EXPECT_THAT(of("{from: 1, to: 9, times: 2}"), ::testing::ElementsAre("0: a=1", "1: a=2", "2: a=4", "3: a=8"));
}

TEST(Points, a_condition_without_a_value_makes_a_point_with_its_problem) {
  const auto points = points_of(study_from("axes: [{a: [0, 1]}]\nwhere: 1 / a > 0"));
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[0].problem, "where 1 / a > 0: division by zero");
  EXPECT_EQ(points[1].problem, "");
}

TEST(Points, skipping_gives_the_same_points_as_walking) {
  const auto study = study_from("axes: [{a: [1, 2, 3, 4, 5]}, {b: [1, 2, 3]}]\nwhere: (a + b) % 2 == 0");
  const auto all = points_of(study);
  for (const auto& wanted : all) {
    auto points = Points::make(study, {});
    const auto found = points->skip_to(wanted.id);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->columns, wanted.columns);
  }
  EXPECT_FALSE(Points::make(study, {})->skip_to(static_cast<std::int64_t>(all.size())).has_value());
}

TEST(Points, too_many_are_refused_with_their_number) {
  const auto study =
      study_from("axes: [{a: {from: 1, to: 4000, points: 4000}}, {b: {from: 1, to: 4000, points: 4000}}]");
  const auto points = Points::make(study, {});
  ASSERT_FALSE(points.has_value());
  EXPECT_THAT(points.error().text(), HasSubstr("study.yaml:1:7 /axes: the study has 1.6e+07 points; at most 10000000"));
}

// Sobol and Latin hypercube: of n = 2^k points of an axis, one is in each n-th part.
TEST(Points, samplers_are_stratified_in_every_axis_and_repeat) {
  for (const std::string kind : {"sobol", "latin_hypercube"}) {
    std::string axes;
    for (int i = 0; i < 10; ++i) { axes += "{x" + std::to_string(i) + ": {from: 0.0, to: 1.0}}, "; }
    const auto text = "axes: [" + axes + "]\nsampler: {kind: " + kind + ", points: 64, seed: 3}";
    const auto points = points_of(study_from(text));
    ASSERT_EQ(points.size(), 64U);
    for (std::size_t axis = 0; axis < 10; ++axis) {
      std::set<int> parts;
      for (const auto& point : points) {
        parts.insert(static_cast<int>(64.0 * *results::number_of(point.columns[axis])));
      }
      EXPECT_EQ(parts.size(), 64U) << kind << " axis " << axis;
    }
    EXPECT_EQ(texts_of(points), texts_of(points_of(study_from(text))));
  }
}

// The first two axes of Sobol's sequence are a (0, k, 2) net: 64 points, one in each of 8 x 8 squares.
TEST(Points, two_axes_of_sobol_fill_squares_evenly) {
  const auto points = points_of(
      study_from("axes: [{x: {from: 0.0, to: 1.0}}, {y: {from: 0.0, to: 1.0}}]\nsampler: {kind: sobol, points: 64}"));
  std::set<std::pair<int, int>> squares;
  for (const auto& point : points) {
    squares.insert({static_cast<int>(8.0 * *results::number_of(point.columns[0])),
                    static_cast<int>(8.0 * *results::number_of(point.columns[1]))});
  }
  EXPECT_EQ(squares.size(), 64U);
}

// Two lists and a range of whole numbers have 2 x 3 x 4 = 24 combinations. 1,000 samples find all of them, each once,
// and points can be found by their id.
TEST(Points, samplers_of_lists_have_a_combination_once) {
  for (const std::string kind : {"sobol", "latin_hypercube"}) {
    const auto study = study_from(
        "axes: [{a: [1, 2]}, {b: [x, y, z]}, {c: {from: 1, to: 4}}]\nsampler: {kind: " + kind + ", points: 1000}");
    const auto points = points_of(study);
    ASSERT_EQ(points.size(), 24U) << kind;
    const auto texts = texts_of(points);
    EXPECT_EQ(std::set<std::string>(texts.begin(), texts.end()).size(), 24U) << kind;
    for (std::size_t i = 0; i < points.size(); ++i) {
      EXPECT_EQ(points[i].id, static_cast<std::int64_t>(i));
      EXPECT_EQ(Points::make(study, {})->skip_to(points[i].id)->columns, points[i].columns) << kind << ' ' << i;
    }
  }
}

TEST(StudyFile, mistakes_have_a_place_and_the_nearest_name) {
  EXPECT_THAT(error_of("axis: [1]"), HasSubstr("study.yaml:1:1 /axis: unknown key \"axis\"; did you mean \"axes\"?"));
  EXPECT_THAT(error_of("axes: [{a: []}]"), HasSubstr("axis \"a\" has no values"));
  EXPECT_THAT(error_of("axes: [{zip: {a: [1, 2], b: [1]}}]"), HasSubstr("zip: \"b\" has 1 values, \"a\" has 2"));
  EXPECT_THAT(error_of("axes: [{a: [1]}, {a: [2]}]"), HasSubstr("\"a\" is an axis or a derived value twice"));
  EXPECT_THAT(error_of("axes: [{a: {from: 1 GB/s, to: 2 GB, points: 2}}]"), HasSubstr("need the same unit"));
  EXPECT_THAT(error_of("axes: [{a: {from: 3, to: 2, points: 2}}]"), HasSubstr("needs from < to"));
  EXPECT_THAT(error_of("axes: [{a: {from: 1, to: 2}}]"), HasSubstr("needs \"points\" or \"times\""));
  EXPECT_THAT(error_of("axes: [{alpha: [1]}]\nwhere: alhpa > 1"),
              HasSubstr("unknown name \"alhpa\"; did you mean \"alpha\"?"));
  EXPECT_THAT(error_of("plan: best"), HasSubstr("plan: \"best\" is not valid; valid: search, given"));
  EXPECT_THAT(error_of("axes: [{plan: [MP8DP8]}]"), HasSubstr("\"MP8DP8\" is not a plan"));
  EXPECT_THAT(error_of("objective: step_tme_s"), HasSubstr("did you mean \"step_time_s\"?"));
  EXPECT_THAT(error_of("sampler: {kind: random, points: 5}"), HasSubstr("valid: grid, latin_hypercube, sobol"));
  EXPECT_THAT(error_of("let: {a: 1 / 0}"), HasSubstr("division by zero"));
}

}  // namespace orrery::study::points_test
