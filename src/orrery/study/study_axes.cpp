#include "orrery/study/study_axes.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "orrery/config/record.hpp"
#include "orrery/core/text.hpp"

namespace orrery::study {

using config::Kind;
using config::Node;

namespace {

constexpr std::size_t kMostAxisValues = 1'000'000;

std::string unit_of_cells(const std::vector<AxisValue>& values, const std::vector<Node>& nodes) {
  const bool has_cell = !values.empty() && !values.front().cells.empty();
  if (!has_cell || results::number_of(values.front().cells.front()) == nullptr) { return {}; }
  const auto quantity = quantity_of(nodes.front().scalar);
  return quantity ? quantity->unit : std::string();
}

// "MP8_DP128" as tp 8, dp 128. Nothing: it is something else.
std::optional<std::vector<Setting>> settings_of_split(const Node& node) {
  const std::string_view text = node.scalar;
  const std::size_t middle = text.find("_DP");
  if (!node.is_scalar() || !text.starts_with("MP") || middle == std::string_view::npos) { return std::nullopt; }
  const auto tp = whole_number(text.substr(2, middle - 2));
  const auto dp = whole_number(text.substr(middle + 3));
  if (!tp || !dp || *tp == 0 || *dp == 0) { return std::nullopt; }
  const auto setting = [&](const char* path, std::uint64_t value) {
    Node number = config::integer_node(static_cast<std::int64_t>(value));
    number.place = node.place;
    return Setting{path, std::move(number)};
  };
  return std::vector<Setting>{setting("tp", *tp), setting("pp", 1), setting("dp", *dp)};
}

AxisValue plan_value(const Node& node, std::vector<Diagnostic>& wrong) {
  AxisValue value;
  if (node.kind == Kind::mapping) {
    value.settings = settings_of(node, wrong);
    value.cells = {StudyCell(config::inline_text(node))};
    return value;
  }
  auto split = settings_of_split(node);
  if (!split) {
    wrong.push_back({node.place, fmt::format("{} is not a plan; write MP8_DP128, or the choices of a plan such as "
                                             "{{tp: 8, pp: 2}}",
                                             quote(node.scalar))});
    return value;
  }
  value.settings = std::move(*split);
  value.cells = {StudyCell(node.scalar)};
  return value;
}

void add_values_of_range(Axis& axis, const std::string& path, const RangeText& text, std::vector<Diagnostic>& wrong) {
  const Range& range = text.range;
  axis.range = range;
  std::vector<double> values;
  if (text.times) {
    for (double v = range.low; v <= range.high * (1.0 + 1e-9) && values.size() <= kMostAxisValues; v *= *text.times) {
      values.push_back(v);
    }
  } else if (text.points) {
    const std::int64_t n = *text.points;
    for (std::int64_t i = 0; i < n; ++i) {
      values.push_back(range.at(n == 1 ? 0.0 : static_cast<double>(i) / static_cast<double>(n - 1)));
    }
  }
  if (values.size() > kMostAxisValues) {
    wrong.push_back({range.place, fmt::format("the axis has more than {} values", kMostAxisValues)});
    return;
  }
  for (const double number : values) {
    Node node = range.node(number);
    AxisValue value{{cell_of(node)}, {{path, std::move(node)}}};
    if (axis.values.empty() || axis.values.back().cells != value.cells) { axis.values.push_back(std::move(value)); }
  }
  axis.columns.front().unit = range.unit.empty() ? "" : quantity_of("1 " + range.unit)->unit;
}

// One path with its values.
Axis path_axis(const std::string& path, const std::string& name, const Node& values, std::vector<Diagnostic>& wrong) {
  Axis axis;
  axis.place = values.place;
  axis.columns.push_back({name.empty() ? column_name(path) : name, path, {}, false});
  if (values.kind == Kind::mapping) {
    const auto range = range_of(values, wrong);
    if (range) { add_values_of_range(axis, path, *range, wrong); }
    return axis;
  }
  if (values.kind != Kind::sequence) {
    wrong.push_back(
        {values.place, fmt::format("axis {} needs a list of values, or {{from: …, to: …, points: N}}", quote(path))});
    return axis;
  }
  if (values.items.empty()) { wrong.push_back({values.place, fmt::format("axis {} has no values", quote(path))}); }
  for (const Node& node : values.items) {
    axis.values.push_back(path == "plan" ? plan_value(node, wrong) : AxisValue{{cell_of(node)}, {{path, node}}});
  }
  axis.columns.front().unit = unit_of_cells(axis.values, values.items);
  return axis;
}

// Several paths that change together.
Axis zip_axis(const Node& node, std::vector<Diagnostic>& wrong) {
  Axis axis;
  axis.place = node.place;
  if (node.kind != Kind::mapping || node.members.empty()) {
    wrong.push_back({node.place, "zip needs a mapping of paths to lists of equal length"});
    return axis;
  }
  for (const auto& member : node.members) {
    Axis one = path_axis(member.key, {}, member.value, wrong);
    if (axis.columns.empty()) {
      axis.columns = std::move(one.columns);
      axis.values = std::move(one.values);
      continue;
    }
    if (one.values.size() != axis.values.size()) {
      wrong.push_back(
          {member.value.place, fmt::format("zip: {} has {} values, {} has {}", quote(member.key), one.values.size(),
                                           quote(axis.columns.front().path), axis.values.size())});
      return axis;
    }
    axis.columns.push_back(std::move(one.columns.front()));
    for (std::size_t i = 0; i < axis.values.size(); ++i) {
      axis.values[i].cells.insert(axis.values[i].cells.end(), one.values[i].cells.begin(), one.values[i].cells.end());
      for (auto& setting : one.values[i].settings) { axis.values[i].settings.push_back(std::move(setting)); }
    }
  }
  return axis;
}

// Named alternatives, each of which sets several paths.
Axis choice_axis(const Node& item, std::vector<Diagnostic>& wrong) {
  Axis axis;
  axis.place = item.place;
  check_keys(item, {"choice", "of"}, wrong);
  const Node* name = item.find("choice");
  const Node* of = item.find("of");
  if (!name->is_scalar() || name->scalar.empty() || of == nullptr || of->kind != Kind::mapping || of->members.empty()) {
    wrong.push_back(
        {item.place, "a choice needs a name and its alternatives: {choice: machine, of: {a: {cluster: dgx-a100}}}"});
    return axis;
  }
  axis.columns.push_back({column_name(name->scalar), name->scalar, {}, false});
  for (const auto& member : of->members) {
    axis.values.push_back({{StudyCell(member.key)}, settings_of(member.value, wrong)});
  }
  return axis;
}

Axis axis_of_item(const Node& item, std::vector<Diagnostic>& wrong) {
  if (item.kind != Kind::mapping || item.members.empty()) {
    wrong.push_back({item.place, "an axis is a mapping: {path: [values]}, {zip: …} or {choice: name, of: …}"});
    return {};
  }
  if (item.find("choice") != nullptr) { return choice_axis(item, wrong); }
  if (const Node* path = item.find("path")) {
    check_keys(item, {"path", "name", "values"}, wrong);
    const Node* values = item.find("values");
    const Node* name = item.find("name");
    if (!path->is_scalar() || values == nullptr) {
      wrong.push_back({item.place, "an axis with a path needs values"});
      return {};
    }
    return path_axis(path->scalar, name != nullptr ? name->scalar : "", *values, wrong);
  }
  if (item.members.size() != 1) {
    wrong.push_back({item.members[1].place(), fmt::format("an axis has one path; write {} as another item of the list, "
                                                          "or zip both",
                                                          quote(item.members[1].key))});
    return {};
  }
  const auto& member = item.members.front();
  return member.key == "zip" ? zip_axis(member.value, wrong) : path_axis(member.key, {}, member.value, wrong);
}

}  // namespace

StudyCell cell_of(const Node& value) {
  if (!value.is_scalar()) { return config::inline_text(value); }
  if (value.kind == Kind::null) { return "null"; }
  if (value.quoted && value.kind == Kind::text) {
    const auto quantity = quantity_of(value.scalar);
    return quantity && !quantity->unit.empty() ? StudyCell(quantity->value) : StudyCell(value.scalar);
  }
  const auto quantity = quantity_of(value.scalar);
  return quantity ? StudyCell(quantity->value) : StudyCell(value.scalar);
}

double Range::at(double part) const {
  const double value = is_log ? low * std::pow(high / low, part) : low + (high - low) * part;
  return is_whole ? std::round(value) : value;
}

Node Range::node(double value) const {
  const bool whole = value == std::round(value) && std::abs(value) < 1e15;
  std::string number = whole ? fmt::format("{:.0f}", value) : fmt::format("{:.7g}", value);
  if (!unit.empty()) { number += " " + unit; }
  return config::plain_node(std::move(number), place);
}

AxisValue Axis::at(double part) const {
  if (range) {
    Node node = range->node(range->at(part));
    return {{cell_of(node)}, {{columns.front().path, std::move(node)}}};
  }
  const auto count = static_cast<double>(values.size());
  return values[std::min(values.size() - 1, static_cast<std::size_t>(part * count))];
}

std::string column_name(std::string_view path) {
  std::string name;
  for (const char c : path) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c);
    name += plain ? c : '_';
  }
  return name;
}

void check_keys(const Node& node, const std::vector<std::string>& known, std::vector<Diagnostic>& wrong) {
  for (const auto& member : node.members) {
    if (std::find(known.begin(), known.end(), member.key) != known.end()) { continue; }
    const auto near = nearest(member.key, known);
    wrong.push_back({member.place(), fmt::format("unknown key {}; {}", quote(member.key),
                                                 near ? fmt::format("did you mean {}?", quote(*near))
                                                      : "valid: " + join(known, ", "))});
  }
}

std::vector<Setting> settings_of(const Node& node, std::vector<Diagnostic>& wrong) {
  std::vector<Setting> settings;
  if (node.kind != Kind::mapping) {
    wrong.push_back({node.place, "must be a mapping of paths to values, such as {cluster: dgx-a100, devices: 1024}"});
    return settings;
  }
  for (const auto& member : node.members) {
    if (member.key != "plan") {
      settings.push_back({member.key, member.value});
      continue;
    }
    const AxisValue plan = plan_value(member.value, wrong);
    settings.insert(settings.end(), plan.settings.begin(), plan.settings.end());
  }
  return settings;
}

std::vector<Axis> axes_of(const Node& node, std::vector<Diagnostic>& wrong) {
  std::vector<Axis> axes;
  if (node.kind == Kind::mapping) {
    for (const auto& member : node.members) { axes.push_back(path_axis(member.key, {}, member.value, wrong)); }
  } else if (node.kind == Kind::sequence) {
    for (const Node& item : node.items) { axes.push_back(axis_of_item(item, wrong)); }
  } else {
    wrong.push_back({node.place, "axes must be a list: [{devices: [256, 512]}, {precision: [bf16, fp8]}]"});
  }
  return axes;
}

namespace {

// The number and unit of one end of a range.
struct End {
  double number = 0.0;
  std::string unit;
  bool is_whole = false;
};

std::optional<End> end_of_range(const Node& node, const char* key, std::vector<Diagnostic>& wrong) {
  const Node* end = node.find(key);
  if (end == nullptr || !end->is_scalar()) {
    wrong.push_back(
        {node.place, fmt::format("a range needs \"{}\": {{from: 10 GB/s, to: 1000 GB/s, points: 9}}", key)});
    return std::nullopt;
  }
  const std::string& text = end->scalar;
  End found;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), found.number);
  if (error != std::errc{} || !quantity_of(text)) {
    wrong.push_back({end->place, fmt::format("{} is not a number with or without a unit", quote(text))});
    return std::nullopt;
  }
  std::string_view unit(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
  while (unit.starts_with(' ')) { unit.remove_prefix(1); }
  found.unit = unit;
  found.is_whole = end->kind == Kind::integer;
  return found;
}

constexpr double kMost = 1e7;  // as points of a study

std::optional<double> number_at(const Node& node, const char* key, double least, std::vector<Diagnostic>& wrong) {
  const Node* value = node.find(key);
  if (value == nullptr) { return std::nullopt; }
  const auto quantity = value->is_scalar() ? quantity_of(value->scalar) : std::nullopt;
  if (quantity && quantity->unit.empty() && quantity->value >= least && quantity->value <= kMost) {
    return quantity->value;
  }
  const std::string text = value->is_scalar() ? value->scalar : config::inline_text(*value);
  wrong.push_back(
      {value->place, fmt::format("{}: {} is not a number from {} to {:.0f}", key, quote(text), least, kMost)});
  return std::nullopt;
}

}  // namespace

std::optional<RangeText> range_of(const Node& node, std::vector<Diagnostic>& wrong) {
  const std::size_t before = wrong.size();
  check_keys(node, {"from", "to", "points", "times", "scale"}, wrong);
  const auto low = end_of_range(node, "from", wrong), high = end_of_range(node, "to", wrong);
  if (!low || !high) { return std::nullopt; }
  RangeText text;
  text.range = {low->number, high->number, low->unit, false, low->is_whole && high->is_whole && low->unit.empty(),
                node.place};
  if (low->unit != high->unit) {
    wrong.push_back({node.place, fmt::format("both ends of a range need the same unit; from has {}, to has {}",
                                             quote(low->unit), quote(high->unit))});
  }
  if (!(low->number < high->number)) { wrong.push_back({node.place, "a range needs from < to"}); }
  const Node* scale = node.find("scale");
  if (scale != nullptr && scale->scalar != "log" && scale->scalar != "linear") {
    wrong.push_back({scale->place, fmt::format("scale: {} is not valid; valid: linear, log", quote(scale->scalar))});
  }
  const auto points = number_at(node, "points", 2.0, wrong);
  if (points && *points != std::floor(*points)) { wrong.push_back({node.place, "points must be a whole number"}); }
  if (points) { text.points = static_cast<std::int64_t>(*points); }
  text.times = number_at(node, "times", 1.001, wrong);
  text.range.is_log = text.times.has_value() || (scale != nullptr && scale->scalar == "log");
  if (text.range.is_log && !(low->number > 0.0)) {
    wrong.push_back({node.place, "a logarithmic range needs from > 0"});
  }
  if (wrong.size() != before) { return std::nullopt; }
  return text;
}

}  // namespace orrery::study
