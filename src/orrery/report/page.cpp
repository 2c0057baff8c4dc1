#include "orrery/report/page.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "orrery/config/json.hpp"
#include "orrery/config/node.hpp"
#include "orrery/report/page_document.hpp"
#include "orrery/report/study.hpp"

namespace orrery::report {

using config::JsonWriter;
using config::Kind;
using config::Node;
using results::StudyCell;
using results::StudyRow;
using results::StudyTable;

namespace {

// "cluster.second_tier.bandwidth" -> "second tier bandwidth"
std::string title_of_path(std::string_view path) {
  const std::size_t dot = path.find('.');
  std::string title(dot == std::string_view::npos ? path : path.substr(dot + 1));
  for (char& c : title) {
    if (c == '_' || c == '.') { c = ' '; }
  }
  return title;
}

std::string title_of_metric(std::string_view name) {
  static const std::map<std::string_view, const char*> titles{{"devices", "devices"},
                                                              {"step_time_s", "step time"},
                                                              {"samples_per_s", "samples per second"},
                                                              {"tokens_per_s", "tokens per second"},
                                                              {"mfu", "MFU"},
                                                              {"cost_usd", "cost of a step"},
                                                              {"energy_J", "energy of a step"},
                                                              {"power_W", "power"},
                                                              {"price_usd", "price of the cluster"},
                                                              {"memory_B", "memory"},
                                                              {"memory_capacity_B", "memory capacity"},
                                                              {"model_states_B", "model states"},
                                                              {"second_tier_B", "second tier in use"},
                                                              {"threshold", "threshold"}};
  const auto found = titles.find(name);
  return found == titles.end() ? std::string(name) : found->second;
}

constexpr const char* kPasses = "passes, without recomputation and bubbles";

class PageData {
 public:
  explicit PageData(const StudyTable& table) : table_(table) {
    for (const StudyRow& row : table.rows) {
      plans_.push_back(parsed(row.plan));
      for (auto& [name, list] : stack_nodes_) { list.push_back(parsed(text_of_stack(row, name))); }
    }
  }

  std::string text() {
    JsonWriter json(out_, 0);
    json.open_object();
    facts(json);
    json.key("columns");
    json.open_list();
    columns(json);
    json.close();
    plan_fields(json);
    stacks(json);
    json.close();
    std::erase(out_, '\n');
    return std::move(out_);
  }

 private:
  static Node parsed(const std::string& text) {
    if (text.empty()) { return config::mapping_node(); }
    auto node = config::parse_json(text, {});
    return node ? std::move(*node) : config::mapping_node();
  }
  static const std::string& text_of_stack(const StudyRow& row, const std::string& name) {
    if (name == "step time by cause") { return row.breakdown; }
    if (name == kPasses) { return row.passes; }
    return name == "communication by group" ? row.comm : row.memory;
  }
  static void number(std::string& list, double value) {
    if (!list.empty()) { list += ','; }
    if (std::isfinite(value)) {
      list += fmt::format("{:.10g}", value);
    } else {
      list += "null";
    }
  }
  static void nothing(std::string& list) { list += list.empty() ? "null" : ",null"; }

  void facts(JsonWriter& json) {
    const auto& info = table_.info;
    const auto text = [&](const char* key, std::string_view value) {
      json.key(key);
      json.value(value);
    };
    const auto texts = [&](const char* key, const std::vector<std::string>& list) {
      json.key(key);
      json.open_list();
      for (const auto& one : list) { json.value(std::string_view(one)); }
      json.close();
    };
    json.key("count");
    json.value(static_cast<std::uint64_t>(table_.rows.size()));
    text("name", info.name);
    text("description", info.description);
    text("objective", info.objective);
    text("study", info.study);
    texts("front", info.front);
    texts("notModelled", info.not_modelled);
    texts("provenance", {fmt::format("Orrery {}, semantics {}", info.version, info.semantics),
                         fmt::format("study and catalogue entries {} (a hash), {} of {} points", info.hash,
                                     table_.rows.size(), info.points),
                         "catalogue entries: " + info.inputs, "units are SI; money is USD; power is nameplate power",
                         "charts: Chart.js, MIT licence"});
    json.key("sensitivities");
    json.value(config::json_list(table_.sensitivities, [](const auto& one) {
      return config::json_object({{"point", one.point},
                                  {"path", one.path},
                                  {"factor", one.factor},
                                  {"step", one.step_time_s},
                                  {"base", one.base_step_time_s}});
    }));
  }

  // One column: its description, then values, or a dictionary and positions in it (-1: nothing).
  template <class CellOf>
  void column(JsonWriter& json, const std::string& name, const std::string& title, const std::string& unit,
              const char* kind, CellOf&& cell_of, const std::string& path = {}) {
    bool is_text = false;
    for (const StudyRow& row : table_.rows) { is_text = is_text || results::text_of_cell(cell_of(row)) != nullptr; }
    std::string values;
    std::vector<std::string> dictionary;
    std::map<std::string, std::size_t> known;
    for (const StudyRow& row : table_.rows) {
      const StudyCell cell = cell_of(row);
      const double* figure = results::number_of(cell);
      if (!is_text) {
        figure != nullptr ? number(values, *figure) : nothing(values);
        continue;
      }
      if (std::holds_alternative<std::monostate>(cell)) {
        number(values, -1.0);
        continue;
      }
      const std::string text = figure != nullptr ? cell_text(cell, unit) : *results::text_of_cell(cell);
      const auto [at, is_new] = known.emplace(text, dictionary.size());
      if (is_new) { dictionary.push_back(text); }
      number(values, static_cast<double>(at->second));
    }
    Node object =
        config::json_object({{"name", name}, {"title", title}, {"unit", unit}, {"kind", kind}, {"path", path}});
    if (results::is_more_better(name)) { config::set_field(object, "more", config::boolean_node(true)); }
    if (is_text) { config::set_field(object, "dictionary", dictionary); }
    std::string head = config::json_document(object, 0);
    std::erase(head, '\n');
    head.pop_back();  // the object's bracket
    json.value(config::integer_node(0));
    out_.pop_back();
    out_ += head + ",\"values\":[" + values + "]}";
  }
  void columns(JsonWriter& json) {
    column(json, "id", "point", "", "id", [](const StudyRow& row) { return StudyCell(static_cast<double>(row.id)); });
    for (std::size_t i = 0; i < table_.columns.size(); ++i) {
      const auto& one = table_.columns[i];
      column(
          json, one.name, title_of_path(one.path), one.unit, one.is_derived ? "derived" : "axis",
          [i](const StudyRow& row) { return i < row.columns.size() ? row.columns[i] : StudyCell(); }, one.path);
    }
    column(json, "status", "status", "", "status", [](const StudyRow& row) {
      return StudyCell(std::string(results::kStudyStatusNames[static_cast<std::size_t>(row.status)]));
    });
    for (std::size_t m = 0; m < results::kMetricNames.size(); ++m) {
      const std::string name(results::kMetricNames[m]);
      const std::string unit =
          name == "threshold" ? threshold_unit(table_.info) : std::string(results::metric_unit(name));
      column(json, name, title_of_metric(name), unit, "metric",
             [m](const StudyRow& row) { return row.metrics[m] ? StudyCell(*row.metrics[m]) : StudyCell(); });
    }
    column(json, "plan", "plan", "", "plan",
           [&](const StudyRow& row) { return row.plan.empty() ? StudyCell() : StudyCell(plan_text(row)); });
    column(json, "reason", "reason", "", "reason",
           [](const StudyRow& row) { return row.reason.empty() ? StudyCell() : StudyCell(row.reason); });
  }

  // "tp 8, dp 16, zero 1": the degrees, and the choices that are not the same in all rows.
  [[nodiscard]] std::string plan_text(const StudyRow& row) {
    if (shown_.empty()) { find_shown(); }
    const Node& plan = plans_[static_cast<std::size_t>(&row - table_.rows.data())];
    std::string text;
    for (const auto& member : plan.members) {
      const bool is_split =
          (member.key == "cp" || member.key == "ep" || member.key == "vpp") && member.value.scalar != "1";
      if (!shown_.contains(member.key) && !is_split) { continue; }
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", member.key, member.value.scalar);
    }
    return text;
  }
  void find_shown() {
    shown_ = {"tp", "pp", "dp", "strategy"};
    std::map<std::string, std::string> first;
    for (const Node& plan : plans_) {
      for (const auto& member : plan.members) {
        const auto [at, is_new] = first.emplace(member.key, member.value.scalar);
        if (!is_new && at->second != member.value.scalar) { shown_.insert(member.key); }
      }
    }
    shown_.erase("micro_batches");
  }
  void plan_fields(JsonWriter& json) {
    json.key("planFields");
    json.open_object();
    for (const char* field : {"tp", "pp", "dp", "cp", "ep", "zero", "recompute", "offload"}) {
      std::set<std::string> different;
      for (const Node& plan : plans_) {
        if (const Node* value = plan.find(field)) { different.insert(value->scalar); }
      }
      if (different.size() < 2) { continue; }
      json.key(field);
      json.open_list();
      for (const Node& plan : plans_) {
        const Node* value = plan.find(field);
        json.value(std::string_view(value != nullptr ? value->scalar : ""));
      }
      json.close();
    }
    json.close();
  }

  // Leaves of a nested object of numbers: "forward exposed tp".
  static void leaves(const Node& node, const std::string& path, std::vector<std::pair<std::string, double>>& found) {
    for (const auto& member : node.members) {
      const std::string key = member.key == "exposed_by_group" ? "exposed" : member.key;
      const std::string name = path.empty() ? key : path + " " + key;
      if (member.value.kind == Kind::mapping) {
        leaves(member.value, name, found);
      } else if (const auto quantity = cell_number(member.value)) {
        found.emplace_back(name, *quantity);
      }
    }
  }
  static std::optional<double> cell_number(const Node& node) {
    if (node.kind != Kind::real && node.kind != Kind::integer) { return std::nullopt; }
    double number = 0.0;
    const auto [end, error] = std::from_chars(node.scalar.data(), node.scalar.data() + node.scalar.size(), number);
    return error == std::errc{} ? std::optional(number) : std::nullopt;
  }
  static bool is_total(const std::string& name) {
    if (name.ends_with(" exposed_comm")) { return true; }  // of a pass: the sum of its groups
    return name == "total" || name == "capacity" || name == "stage" || name == "second_tier" || name == "tables";
  }
  void stacks(JsonWriter& json) {
    json.key("stacks");
    json.open_object();
    for (const auto& [name, nodes] : stack_nodes_) {
      std::vector<std::string> order;
      std::map<std::string, std::vector<double>> lists;
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        std::vector<std::pair<std::string, double>> found;
        leaves(nodes[i], {}, found);
        for (auto& [leaf, value] : found) {
          if (is_total(leaf)) { continue; }
          if (name == kPasses) { std::replace(leaf.begin(), leaf.end(), '_', ' '); }
          auto& list = lists[leaf];
          if (list.empty()) {
            list.resize(nodes.size(), 0.0);
            order.push_back(leaf);
          }
          list[i] = value;
        }
      }
      json.key(name);
      json.open_list();
      for (const auto& leaf : order) {
        std::string values;
        const auto& list = lists[leaf];
        if (std::all_of(list.begin(), list.end(), [](double value) { return value == 0.0; })) { continue; }
        for (const double value : list) { number(values, value); }
        json.value(config::integer_node(0));
        out_.pop_back();
        out_ += "{\"name\":" + config::json_text(leaf) + ",\"values\":[" + values + "]}";
      }
      json.close();
    }
    json.close();
  }

  const StudyTable& table_;
  std::vector<Node> plans_;
  std::vector<std::pair<std::string, std::vector<Node>>> stack_nodes_{
      {"step time by cause", {}}, {kPasses, {}}, {"communication by group", {}}, {"memory by class", {}}};
  std::set<std::string> shown_;
  std::string out_;
};

}  // namespace

std::string study_page(const StudyTable& table) {
  const std::string title = table.info.name.empty() ? "Study" : table.info.name;
  return page_document(title, PageData(table).text(), embedded_text("page.js"));
}

}  // namespace orrery::report
