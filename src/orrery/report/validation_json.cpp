#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "orrery/config/json.hpp"
#include "orrery/report/json.hpp"

namespace orrery::report {

namespace {

using config::add_fields;
using config::add_item;
using config::json_document;
using config::json_object;
using config::JsonValue;
using config::Node;
using config::sequence_node;
using config::set_field;

void add_score(Node& json, const results::FamilyScore& score) {
  const auto error = [&](double value) { return score.scored > 0 ? JsonValue(value) : JsonValue(nullptr); };
  add_fields(json, {{"rows", score.rows},
                    {"predicted", score.predicted},
                    {"skipped", score.skipped},
                    {"mape", error(score.mape)},
                    {"median_ape", error(score.median_ape)},
                    {"p90_ape", error(score.p90_ape)},
                    {"bias", error(score.bias)},
                    {"coverage", score.ranged > 0
                                     ? JsonValue(static_cast<double>(score.covered) / static_cast<double>(score.ranged))
                                     : JsonValue(nullptr)},
                    {"width", score.ranged > 0 ? JsonValue(score.width) : JsonValue(nullptr)},
                    {"max_ape", error(score.max_ape)},
                    {"scored", score.scored},
                    {"infeasible", score.infeasible}});
}

Node score_json(const results::FamilyScore& score) {
  Node json = json_object({});
  add_score(json, score);
  return json;
}

bool is_of(const results::Prediction& row, const results::FamilyScore& score) {
  return row.kind == score.kind && row.family == score.family && row.metric == score.metric;
}

// How often each text occurs, in the order of their first occurrences.
Node occurrences_json(const std::vector<std::string>& texts) {
  std::vector<std::pair<std::string, int>> counts;
  for (const std::string& text : texts) {
    const auto found =
        std::find_if(counts.begin(), counts.end(), [&](const auto& count) { return count.first == text; });
    if (found == counts.end()) {
      counts.emplace_back(text, 1);
    } else {
      ++found->second;
    }
  }
  Node json = json_object({});
  for (const auto& [text, count] : counts) { add_fields(json, {{text, count}}); }
  return json;
}

// The reasons for rows of a family without a prediction, with the number of rows.
Node skipped_json(const results::Validation& validation, const results::FamilyScore& score) {
  std::vector<std::string> reasons;
  for (const auto& row : validation.predictions) {
    if (row.predicted_s || !is_of(row, score)) { continue; }
    reasons.push_back(row.skipped_reason);
  }
  return occurrences_json(reasons);
}

// The values used for columns that contradict each other, with the number of rows.
Node taken_json(const results::Validation& validation, const results::FamilyScore& score) {
  std::vector<std::string> taken;
  for (const auto& row : validation.predictions) {
    if (!row.predicted_s || row.taken_as.empty() || !is_of(row, score)) { continue; }
    taken.push_back(row.taken_as);
  }
  return occurrences_json(taken);
}

Node worst_json(const results::Validation& validation, const results::FamilyScore& score) {
  Node list = sequence_node();
  for (const auto& row : validation.predictions) {
    if (row.terms.empty() || !is_of(row, score)) { continue; }
    Node terms = json_object({});
    for (const auto& term : row.terms) { set_field(terms, term.name, term.seconds); }
    add_item(list, json_object({{"id", row.id},
                                {"measured_s", *row.measured_s},
                                {"predicted_s", *row.predicted_s},
                                {"error", *row.signed_error()},
                                {"terms_s", std::move(terms)}}));
  }
  return list;
}

}  // namespace

std::string validation_json(const results::Validation& validation) {
  Node families = sequence_node();
  for (const auto& score : validation.families) {
    Node one = json_object({{"kind", score.kind}, {"family", score.family}});
    if (!score.metric.empty()) { add_fields(one, {{"metric", score.metric}}); }
    add_score(one, score);
    add_fields(one, {{"skipped_reasons", skipped_json(validation, score)}});
    if (Node taken = taken_json(validation, score); !taken.members.empty()) {
      add_fields(one, {{"taken_as", std::move(taken)}});
    }
    if (Node worst = worst_json(validation, score); !worst.items.empty()) {
      add_fields(one, {{"worst", std::move(worst)}});
    }
    add_item(families, std::move(one));
  }
  Node kinds = json_object({});
  for (const auto& score : validation.kinds) { add_fields(kinds, {{score.kind, score_json(score)}}); }
  Node serving = sequence_node();
  for (const auto& score : validation.serving) {
    add_item(serving, json_object({{"figure", score.figure},
                                   {"rows", score.rows},
                                   {"median_ape", score.median_ape},
                                   {"configurations_and_loads", score.groups},
                                   {"grouped_median_log_error", score.grouped_log}}));
  }
  Node json = json_object({{"schema", "orrery.validate/1"},
                           {"families", std::move(families)},
                           {"kinds", std::move(kinds)},
                           {"overall", score_json(validation.overall)}});
  if (!validation.serving.empty()) { add_fields(json, {{"serving", std::move(serving)}}); }
  return json_document(json);
}

}  // namespace orrery::report
