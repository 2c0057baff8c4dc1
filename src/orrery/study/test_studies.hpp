// Studies of tests: text to study, a model of points that is easy to check, and rows of a run.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "orrery/study/run.hpp"
#include "orrery/study/study.hpp"

namespace orrery::study::testing {

inline Study study_from(const std::string& yaml) {
  auto tree = config::parse_yaml(yaml, "study.yaml");
  EXPECT_TRUE(tree.has_value());
  auto study = study_of(*tree, "study.yaml");
  EXPECT_TRUE(study.has_value()) << (study ? "" : study.error().text());
  return study ? *study : Study{};
}

inline std::string error_of(const std::string& yaml) {
  auto tree = config::parse_yaml(yaml, "study.yaml");
  if (!tree) { return tree.error().text(); }
  auto study = study_of(*tree, "study.yaml");
  return study ? "" : study.error().text();
}

inline std::vector<Point> points_of(const Study& study, const Facts& facts = {}) {
  auto points = Points::make(study, facts);
  EXPECT_TRUE(points.has_value());
  std::vector<Point> list;
  while (auto point = points->next()) { list.push_back(*point); }
  return list;
}

// step time = 1 + the point's first number; every seventh point fails, and texts are kept.
class CountingEvaluator final : public Evaluator {
 public:
  void evaluate(const Point& point, results::StudyRow& row) override {
    if (point.id % 7 == 6) {
      row.status = results::StudyStatus::failed;
      row.reason = "every seventh";
      return;
    }
    const double* number = results::number_of(point.columns.front());
    row.of(results::Metric::step_time_s) = 1.0 + (number != nullptr ? *number : 0.0);
    row.plan = "{\"tp\": 8}";
    row.input_hash = std::to_string(point.id);
  }
};

inline Work counting_work(const Study& study) {
  return {study, [&study] { return *Points::make(study, {}); }, [] { return std::make_unique<CountingEvaluator>(); },
          [] { return Facts(); }};
}

}  // namespace orrery::study::testing
