#include "orrery/launch/facts.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "orrery/config/record.hpp"
#include "orrery/workload/records.hpp"

namespace orrery::launch {

namespace {

using config::Node;
using workload::Model;

constexpr std::array<std::string_view, 10> kOther{"name",   "description",    "sources",        "vision",
                                                  "causal", "recommender",    "encoder_layers", "position_rows",
                                                  "tower",  "quantized_4_bit"};

// 50, not 50.0.
std::string value_of(const Node& node) {
  std::string text = config::inline_text(node);
  if (node.kind == config::Kind::real && text.ends_with(".0")) { text.resize(text.size() - 2); }
  return text;
}

void collect(const Node& node, const Node& defaults, const std::string& path, std::vector<Fact>& facts) {
  for (const auto& member : node.members) {
    const std::string field = path.empty() ? member.key : path + "." + member.key;
    if (std::find(kOther.begin(), kOther.end(), field) != kOther.end()) { continue; }
    const Node* usual = defaults.find(member.key);
    const Node& other = usual == nullptr ? Node{} : *usual;
    if (member.value.kind == config::Kind::mapping) {
      collect(member.value, other, field, facts);
    } else if (!(member.value == other)) {
      facts.push_back({field, value_of(member.value)});
    }
  }
}

bool follows(const Model& model, const Fact& fact) {
  return model.is_latent() && (fact.field == "kv_heads" || fact.field == "head_dim");
}

}  // namespace

std::vector<Fact> described(const Model& model) {
  const auto& record = config::Described<Model>::record();
  std::vector<Fact> facts;
  collect(record.to_node(model), record.to_node(Model{}), "", facts);
  std::erase_if(facts, [&](const Fact& fact) { return follows(model, fact); });
  if (model.position == workload::Position::learned && model.position_rows != model.max_seq) {
    facts.push_back({"position_rows", std::to_string(model.position_rows)});
  }
  if (model.has_tower()) {
    facts.push_back({"tower", fmt::format("of {} layers, {} wide", model.tower.layers, model.tower.hidden)});
  }
  return facts;
}

std::string text_of(const std::vector<Fact>& facts) {
  std::string text;
  for (const auto& fact : facts) { text += fmt::format("{}{} {}", text.empty() ? "" : ", ", fact.field, fact.value); }
  return text;
}

void note_unsaid(const TrainingRun& run, std::string_view why, Sheet& sheet) {
  std::vector<Fact> unsaid;
  for (auto& fact : described(run.model)) {
    if (!sheet.says(fact.field) && !sheet.has_note_on(fact.field)) { unsaid.push_back(std::move(fact)); }
  }
  if (unsaid.empty()) { return; }
  sheet.note("--model " + run.model.name, fmt::format("{} {}", why, text_of(unsaid)));
  for (const auto& fact : unsaid) { sheet.notes_field(fact.field); }
}

void note_defaults(const TrainingRun& run, const ToolDefaults& defaults, Sheet& sheet) {
  const auto& model = run.model;
  std::string open;
  const auto add = [&](std::string_view what, std::string_view value) {
    open += fmt::format("{}{} ({} launches {})", open.empty() ? "" : ", ", what, defaults.tool, value);
  };
  if (model.position == workload::Position::rotary && model.rope.base == 0.0) { add("rope.base", defaults.rope_base); }
  if (model.norm_eps == 0.0) { add("norm_eps", defaults.norm_eps); }
  if (!open.empty()) { sheet.note("--model " + model.name, "its description does not have " + open); }
}

}  // namespace orrery::launch
