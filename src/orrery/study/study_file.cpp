#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "orrery/config/record.hpp"
#include "orrery/core/text.hpp"
#include "orrery/study/study.hpp"
#include "orrery/study/study_axes.hpp"
#include "orrery/study/study_conflicts.hpp"
#include "orrery/study/study_units.hpp"

namespace orrery::study {

using config::Kind;
using config::Node;

namespace {

const std::vector<std::string>& study_keys() {
  static const std::vector<std::string> keys{"schema",    "name",        "description", "base",        "let",
                                             "axes",      "derive",      "where",       "constraints", "figures",
                                             "plan",      "space",       "expansion",   "search",      "sampler",
                                             "threshold", "sensitivity", "objective",   "pareto"};
  return keys;
}

// Columns of the table of points that axes cannot have.
bool is_fixed_column(const std::string& name) {
  static constexpr std::array<std::string_view, 7> kOthers{"id",        "status", "reason", "plan",
                                                           "breakdown", "comm",   "memory"};
  return std::find(kOthers.begin(), kOthers.end(), name) != kOthers.end() || name == "input_hash" ||
         std::find(results::kMetricNames.begin(), results::kMetricNames.end(), name) != results::kMetricNames.end();
}

// Reads one study; every error is collected.
class StudyReader {
 public:
  StudyReader(Node tree, std::string file) {
    study_.tree = std::move(tree);
    study_.file = std::move(file);
  }

  Result<Study> run() {
    const Node& tree = study_.tree;
    if (tree.kind != Kind::mapping) { return fail(tree.place, "a study must be a mapping (lines of \"key: value\")"); }
    check_keys(tree, study_keys(), wrong_);
    text("name", study_.name);
    text("description", study_.description);
    if (const Node* schema = tree.find("schema"); schema != nullptr && schema->scalar != "orrery.study/1") {
      wrong_.push_back({schema->place, fmt::format("unknown schema {}; valid: orrery.study/1", quote(schema->scalar))});
    }
    base();
    constants();
    if (const Node* axes = tree.find("axes")) { study_.axes = axes_of(*axes, wrong_); }
    sampler();
    grids_have_values();
    derived("derive", study_.derived);
    formulas("where", study_.where);
    formulas("constraints", study_.constraints);
    derived("figures", study_.figures);
    inner();
    threshold();
    sensitivity();
    objective();
    name_columns();
    known_names();
    if (wrong_.empty()) { wrong_ = conflicts(study_); }
    if (wrong_.empty()) { wrong_ = unit_mistakes(study_, places_); }
    if (!wrong_.empty()) { return tl::make_unexpected(config::failure_of(std::move(wrong_))); }
    return std::move(study_);
  }

 private:
  [[nodiscard]] const Node* at(const char* key) const { return study_.tree.find(key); }
  void text(const char* key, std::string& out) {
    const Node* node = at(key);
    if (node == nullptr) { return; }
    if (!node->is_scalar()) { wrong_.push_back({node->place, fmt::format("{} must be a text", key)}); }
    out = node->scalar;
  }
  void base() {
    const Node* node = at("base");
    study_.base = node != nullptr ? *node : config::mapping_node();
    if (node == nullptr) { study_.base.place = study_.tree.place; }
    if (study_.base.kind != Kind::mapping) {
      wrong_.push_back({node->place, "base must be a mapping: a scenario, as \"orrery estimate --scenario\" takes it"});
      study_.base = config::mapping_node();
    }
  }
  void constants() {
    const Node* node = at("let");
    if (node == nullptr) { return; }
    if (node->kind != Kind::mapping) {
      wrong_.push_back({node->place, "let must be a mapping of names to values or formulas"});
      return;
    }
    for (const auto& member : node->members) {
      auto formula = formula_of(member.value);
      if (!formula) { continue; }
      auto value = formula->value([&](const std::string& name) { return constant(name); });
      if (!value) {
        wrong_.push_back({member.value.place, fmt::format("{}: {}", quote(formula->text()), value.error())});
        continue;
      }
      study_.constants.emplace_back(member.key, std::move(*value));
    }
  }
  [[nodiscard]] std::optional<StudyCell> constant(const std::string& name) const {
    for (const auto& [known, value] : study_.constants) {
      if (known == name) { return value; }
    }
    return std::nullopt;
  }
  std::optional<Formula> formula_of(const Node& node) {
    if (!node.is_scalar()) {
      wrong_.push_back({node.place, "must be a formula, such as \"budget / node_price\""});
      return std::nullopt;
    }
    auto formula = Formula::parse(node.scalar, node.place);
    if (formula) { return std::move(*formula); }
    for (auto& more : formula.error().diagnostics) { wrong_.push_back(std::move(more)); }
    return std::nullopt;
  }
  void formulas(const char* key, std::vector<Formula>& out) {
    const Node* node = at(key);
    if (node == nullptr) { return; }
    const std::vector<Node> one{*node};
    for (const Node& item : node->kind == Kind::sequence ? node->items : one) {
      if (auto formula = formula_of(item)) {
        out.push_back(std::move(*formula));
        places_.push_back(item.place);
      }
    }
  }
  // {path: formula}, or {path: "formula in GB/s"}.
  void derived(const char* key, std::vector<Derived>& out) {
    const Node* node = at(key);
    if (node == nullptr) { return; }
    if (node->kind != Kind::mapping) {
      wrong_.push_back({node->place, fmt::format("{} must be a mapping of names to formulas", key)});
      return;
    }
    for (const auto& member : node->members) {
      Derived one;
      one.column = {column_name(member.key), member.key, {}, true};
      one.place = member.value.place;
      Node formula = member.value;
      const std::size_t in = formula.scalar.rfind(" in ");
      if (in != std::string::npos) {
        one.unit = formula.scalar.substr(in + 4);
        const auto quantity = quantity_of("1 " + one.unit);
        if (!quantity) { wrong_.push_back({member.value.place, fmt::format("unknown unit {}", quote(one.unit))}); }
        if (quantity) { one.unit_size = quantity->value; }
        if (quantity) { one.column.unit = quantity->unit; }
        formula.scalar.resize(in);
      }
      if (auto parsed = formula_of(formula)) {
        one.formula = std::move(*parsed);
        out.push_back(std::move(one));
      }
    }
  }
  void grids_have_values() {
    for (const Axis& axis : study_.axes) {
      const bool sampled = study_.sampler.kind != SamplerKind::grid;
      if (!axis.values.empty() || !axis.range || sampled) { continue; }
      wrong_.push_back({axis.place, R"(a range needs "points" or "times", unless a sampler chooses the points)"});
    }
  }
  void sampler() {
    const Node* node = at("sampler");
    if (node == nullptr) { return; }
    if (node->kind != Kind::mapping) {
      wrong_.push_back({node->place, "sampler must be a mapping: {kind: sobol, points: 1000}"});
      return;
    }
    check_keys(*node, {"kind", "points", "seed"}, wrong_);
    const Node* kind = node->find("kind");
    const std::string name = kind != nullptr ? kind->scalar : "";
    if (name == "latin_hypercube") { study_.sampler.kind = SamplerKind::latin_hypercube; }
    if (name == "sobol") { study_.sampler.kind = SamplerKind::sobol; }
    if (name != "grid" && study_.sampler.kind == SamplerKind::grid) {
      wrong_.push_back({kind != nullptr ? kind->place : node->place,
                        fmt::format("sampler kind {} is not valid; valid: grid, latin_hypercube, sobol", quote(name))});
    }
    const auto count = [&](const char* key) {
      const Node* value = node->find(key);
      const auto number = value != nullptr && value->is_scalar() ? whole_number(value->scalar) : std::nullopt;
      if (value != nullptr && !number) {
        wrong_.push_back({value->place, fmt::format("{} must be a whole number", key)});
      }
      return number;
    };
    study_.sampler.points =
        static_cast<std::int64_t>(std::min<std::uint64_t>(count("points").value_or(0), kMostPoints + 1));
    study_.sampler.seed = count("seed").value_or(0);
    if (study_.sampler.kind != SamplerKind::grid && study_.sampler.points < 1) {
      wrong_.push_back({node->place, "the sampler needs points: {kind: sobol, points: 1000}"});
    }
    if (study_.sampler.kind == SamplerKind::sobol && study_.axes.size() > 10) {
      wrong_.push_back(
          {node->place, fmt::format("sobol is for at most 10 axes, the study has {}; latin_hypercube has no "
                                    "limit",
                                    study_.axes.size())});
    }
  }
  void inner() {
    if (const Node* plan = at("plan")) {
      if (plan->scalar != "search" && plan->scalar != "given") {
        wrong_.push_back(
            {plan->place,
             fmt::format("plan: {} is not valid; valid: search, given (what base and axes say)", quote(plan->scalar))});
      }
      study_.inner = plan->scalar == "search" ? Inner::search : Inner::given;
    }
    if (const Node* expansion = at("expansion")) {
      if (expansion->scalar != "serial" && expansion->scalar != "parallel") {
        wrong_.push_back({expansion->place, fmt::format("expansion: {} is not valid; valid: serial, parallel",
                                                        quote(expansion->scalar))});
      }
      if (study_.base.find("expansion") != nullptr) {
        wrong_.push_back({expansion->place, "expansion is also a field of base"});
      }
      config::add(study_.base, "expansion", *expansion);  // a field of the scenario
    }
    text("space", study_.space);
    study_.search = config::mapping_node();
    if (const Node* search = at("search")) { study_.search = *search; }
    for (const char* key : {"space", "search"}) {
      if (at(key) != nullptr && study_.inner == Inner::given) {
        wrong_.push_back({at(key)->place, fmt::format("{} has an effect only with plan: search", key)});
      }
    }
    if (study_.search.kind != Kind::mapping) {
      wrong_.push_back({study_.search.place, "search must be a mapping of choices to values: {tp: [4, 8]}"});
    }
  }
  void threshold() {
    const Node* node = at("threshold");
    if (node == nullptr) { return; }
    const std::vector<std::string> keys{"path", "from", "to", "tolerance", "samples", "first", "second"};
    const Node* path = node->kind == Kind::mapping ? node->find("path") : nullptr;
    if (path == nullptr || node->find("first") == nullptr || node->find("second") == nullptr) {
      wrong_.push_back({node->place, "threshold needs path, from, to, first and second"});
      return;
    }
    check_keys(*node, keys, wrong_);
    Node ends = config::mapping_node();
    ends.place = node->place;
    for (const char* key : {"from", "to"}) {
      if (const Node* end = node->find(key)) { config::add(ends, key, *end); }
    }
    const auto range = range_of(ends, wrong_);
    Threshold found;
    found.path = path->scalar;
    if (range) { found.range = range->range; }
    found.range.is_log = found.range.low > 0.0;
    if (const auto part = fraction(*node, "tolerance", 1e-6, 0.5)) { found.tolerance = *part; }
    if (const Node* samples = node->find("samples")) {
      const auto count = whole_number(samples->scalar).value_or(0);
      if (count < 2 || count > 1000) { wrong_.push_back({samples->place, "samples must be between 2 and 1000"}); }
      found.samples = static_cast<std::int64_t>(count);
    }
    found.first = settings_of(*node->find("first"), wrong_);
    found.second = settings_of(*node->find("second"), wrong_);
    study_.threshold = std::move(found);
  }
  std::optional<double> fraction(const Node& node, const char* key, double least, double most) {
    const Node* value = node.find(key);
    if (value == nullptr) { return std::nullopt; }
    const auto quantity = value->is_scalar() ? quantity_of(value->scalar) : std::nullopt;
    if (quantity && quantity->unit.empty() && quantity->value >= least && quantity->value <= most) {
      return quantity->value;
    }
    wrong_.push_back({value->place, fmt::format("{} must be between {} and {}, or a percentage", key, least, most)});
    return std::nullopt;
  }
  void sensitivity() {
    const Node* node = at("sensitivity");
    if (node == nullptr) { return; }
    const Node* of = node->kind == Kind::mapping ? node->find("of") : nullptr;
    if (of == nullptr || of->kind != Kind::sequence || of->items.empty()) {
      wrong_.push_back(
          {node->place, "sensitivity needs a list of paths: {increase: 10 %, of: [cluster.accelerator.memory]}"});
      return;
    }
    check_keys(*node, {"increase", "of"}, wrong_);
    Sensitivities found;
    found.factor = 1.0 + fraction(*node, "increase", 1e-6, 100.0).value_or(0.1);
    for (const Node& path : of->items) { found.paths.push_back(path.scalar); }
    study_.sensitivities = std::move(found);
  }
  void objective() {
    text("objective", study_.objective);
    if (study_.objective == "step_time") { study_.objective = "step_time_s"; }
    if (study_.objective == "cost") { study_.objective = "cost_usd"; }
    if (study_.objective == "energy") { study_.objective = "energy_J"; }
    const std::vector<std::string> known(results::kMetricNames.begin(), results::kMetricNames.end());
    const auto check = [&](const std::string& name, const Place& place) {
      const bool is_figure = std::any_of(study_.figures.begin(), study_.figures.end(),
                                         [&](const Derived& figure) { return figure.column.name == name; });
      if (is_figure || std::find(known.begin(), known.end(), name) != known.end()) { return; }
      const auto near = nearest(name, known);
      wrong_.push_back(
          {place, fmt::format("{} is not a column of results; {}", quote(name),
                              near ? fmt::format("did you mean {}?", quote(*near)) : "valid: " + join(known, ", "))});
    };
    if (at("objective") != nullptr) { check(study_.objective, at("objective")->place); }
    const Node* pareto = at("pareto");
    if (pareto == nullptr) { return; }
    if (pareto->kind != Kind::sequence || pareto->items.size() < 2 || pareto->items.size() > 3) {
      wrong_.push_back({pareto->place, "pareto needs two or three columns: [step_time_s, price_usd]"});
      return;
    }
    for (const Node& item : pareto->items) {
      check(item.scalar, item.place);
      study_.front.push_back(item.scalar);
    }
  }
  void name_columns() {
    std::set<std::string> seen;
    const auto settle = [&](results::StudyColumn& column, const Place& place) {
      if (is_fixed_column(column.name)) { column.name = "axis_" + column.name; }
      if (!seen.insert(column.name).second) {
        wrong_.push_back({place, fmt::format("{} is an axis or a derived value twice", quote(column.path))});
      }
    };
    for (Axis& axis : study_.axes) {
      for (auto& column : axis.columns) { settle(column, axis.place); }
    }
    for (Derived& one : study_.derived) { settle(one.column, one.place); }
    for (Derived& one : study_.figures) { settle(one.column, one.place); }
  }
  // Names without dots are constants, columns or, after the evaluation, results.
  void known_names() {
    std::vector<std::string> known;
    for (const auto& [name, value] : study_.constants) { known.push_back(name); }
    const auto add = [&](const results::StudyColumn& column) {
      known.push_back(column.name);
      known.push_back(column.path);
    };
    for (const Axis& axis : study_.axes) {
      for (const auto& column : axis.columns) { add(column); }
    }
    const auto check = [&](const Formula& formula, const Place& place) {
      for (const std::string& name : formula.names()) {
        const bool in_base = study_.base.find(name) != nullptr;
        if (name.find('.') != std::string::npos || in_base) { continue; }
        if (std::find(known.begin(), known.end(), name) != known.end()) { continue; }
        const auto near = nearest(name, known);
        wrong_.push_back({place, fmt::format("{}: unknown name {}{}", quote(formula.text()), quote(name),
                                             near            ? fmt::format("; did you mean {}?", quote(*near))
                                             : known.empty() ? ""
                                                             : "; valid: " + join(known, ", "))});
      }
    };
    for (const Derived& one : study_.derived) {
      check(one.formula, one.place);
      add(one.column);
    }
    for (std::size_t i = 0; i < study_.where.size(); ++i) { check(study_.where[i], places_[i]); }
    for (const auto name : results::kMetricNames) { known.emplace_back(name); }
    for (const Derived& one : study_.figures) {
      check(one.formula, one.place);
      add(one.column);
    }
    for (std::size_t i = 0; i < study_.constraints.size(); ++i) {
      check(study_.constraints[i], places_[study_.where.size() + i]);
    }
  }

  Study study_;
  std::vector<Diagnostic> wrong_;
  std::vector<Place> places_;  // of where, then of constraints
};

}  // namespace

std::vector<results::StudyColumn> Study::columns() const {
  std::vector<results::StudyColumn> list;
  for (const Axis& axis : axes) { list.insert(list.end(), axis.columns.begin(), axis.columns.end()); }
  for (const Derived& one : derived) { list.push_back(one.column); }
  for (const Derived& one : figures) { list.push_back(one.column); }
  return list;
}

Result<Study> study_of(Node tree, std::string file) { return StudyReader(std::move(tree), std::move(file)).run(); }

Result<Study> read_study(const std::string& path) {
  ORRERY_TRY(tree, config::read_file(path));
  return study_of(std::move(tree), path);
}

}  // namespace orrery::study
