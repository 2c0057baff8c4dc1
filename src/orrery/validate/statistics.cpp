#include "orrery/validate/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

namespace orrery::validate {

namespace {

double median(const std::vector<double>& sorted) {
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : 0.5 * (sorted[middle - 1] + sorted[middle]);
}

// In whole numbers, since 0.9 n is not exact.
double ninetieth(const std::vector<double>& sorted) { return sorted[(9 * sorted.size() + 9) / 10 - 1]; }

}  // namespace

results::FamilyScore score(std::string kind, std::string family,
                           const std::vector<const results::Prediction*>& predictions) {
  results::FamilyScore out;
  out.kind = std::move(kind);
  out.family = std::move(family);
  std::vector<double> errors;
  double sum = 0.0, signed_sum = 0.0;
  for (const auto* prediction : predictions) {
    ++out.rows;
    ++(prediction->predicted_s ? out.predicted : out.skipped);
    if (prediction->predicted_s && !prediction->feasible) { ++out.infeasible; }
    if (const auto error = prediction->signed_error()) {
      errors.push_back(std::abs(*error));
      sum += errors.back();
      signed_sum += *error;
      if (prediction->p10_s && prediction->p90_s) {
        ++out.ranged;
        out.width += (*prediction->p90_s - *prediction->p10_s) / *prediction->predicted_s;
        if (*prediction->p10_s <= *prediction->measured_s && *prediction->measured_s <= *prediction->p90_s) {
          ++out.covered;
        }
      }
    }
  }
  out.scored = static_cast<std::int64_t>(errors.size());
  if (errors.empty()) { return out; }
  if (out.ranged > 0) { out.width /= static_cast<double>(out.ranged); }
  std::sort(errors.begin(), errors.end());
  out.mape = sum / static_cast<double>(errors.size());
  out.bias = signed_sum / static_cast<double>(errors.size());
  out.median_ape = median(errors);
  out.p90_ape = ninetieth(errors);
  out.max_ape = errors.back();
  return out;
}

namespace {

struct ServingFigure {
  const char* name;
  std::string_view median, mean;  // columns
};
constexpr ServingFigure kServingFigures[] = {{"TTFT", "ttft_p50_ms", "ttft_mean_ms"},
                                             {"TPOT", "tpot_p50_ms", "tpot_mean_ms"},
                                             {"output throughput", "output_tokens_per_s", ""}};

// The smallest value up to which half of all weight lies.
double weighted_median(std::vector<std::pair<double, double>> weighted) {  // value, weight
  std::sort(weighted.begin(), weighted.end());
  double all = 0.0, sum = 0.0;
  for (const auto& [value, weight] : weighted) { all += weight; }
  for (const auto& [value, weight] : weighted) {
    sum += weight;
    if (sum >= 0.5 * all) { return value; }
  }
  return 0.0;
}

results::ServingScore score_of(const ServingFigure& figure, const std::vector<results::Prediction>& predictions) {
  std::map<std::string, const results::Prediction*> rows;  // by id: the median rather than the mean
  for (const auto& prediction : predictions) {
    const bool is_median = prediction.metric == figure.median;
    if (prediction.group.empty() || !prediction.signed_error() || (!is_median && prediction.metric != figure.mean)) {
      continue;
    }
    const auto [row, is_new] = rows.try_emplace(prediction.id, &prediction);
    if (!is_new && is_median) { row->second = &prediction; }
  }
  std::map<std::string, std::vector<double>> groups;
  std::vector<double> errors;
  for (const auto& [id, prediction] : rows) {
    errors.push_back(std::abs(*prediction->signed_error()));
    groups[prediction->group].push_back(std::abs(std::log(*prediction->predicted_s / *prediction->measured_s)));
  }
  results::ServingScore out;
  out.figure = figure.name;
  out.rows = static_cast<std::int64_t>(errors.size());
  out.groups = static_cast<std::int64_t>(groups.size());
  if (errors.empty()) { return out; }
  std::sort(errors.begin(), errors.end());
  out.median_ape = median(errors);
  std::vector<std::pair<double, double>> weighted;
  for (const auto& [name, logs] : groups) {
    for (const double value : logs) { weighted.emplace_back(value, 1.0 / static_cast<double>(logs.size())); }
  }
  out.grouped_log = weighted_median(std::move(weighted));
  return out;
}

}  // namespace

std::vector<results::ServingScore> serving_scores(const std::vector<results::Prediction>& predictions) {
  std::vector<results::ServingScore> scores;
  for (const ServingFigure& figure : kServingFigures) {
    scores.push_back(score_of(figure, predictions));
    if (scores.back().rows == 0) { scores.pop_back(); }
  }
  return scores;
}

}  // namespace orrery::validate
