#include "orrery/api/study_tree.hpp"

#include <charconv>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "orrery/config/record.hpp"
#include "orrery/core/text.hpp"
#include "orrery/study/formula.hpp"

namespace orrery::api {

using config::Kind;
using config::Node;

namespace {

// The first step of a path, which is removed from it.
std::string_view taken_step(std::string_view& path) {
  const std::size_t dot = path.find('.');
  const std::string_view step = path.substr(0, dot);
  path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
  return step;
}

std::vector<std::string> names_of_items(const Node& list) {
  std::vector<std::string> names;
  for (const Node& item : list.items) {
    const Node* name = item.find("name");
    if (name != nullptr) { names.push_back(name->scalar); }
  }
  return names;
}

const Node* item_of(const Node& list, std::string_view step) {
  if (const auto index = whole_number(step)) { return *index < list.items.size() ? &list.items[*index] : nullptr; }
  for (const Node& item : list.items) {
    const Node* name = item.find("name");
    if (name != nullptr && name->scalar == step) { return &item; }
  }
  return nullptr;
}

}  // namespace

tl::expected<void, Failure> assign(Node& root, std::string_view path, const Node& value) {
  Node* node = &root;
  const std::string whole(path);
  while (!path.empty()) {
    const std::string step(taken_step(path));
    if (step.empty()) { return fail(value.place, fmt::format("the path {} has an empty step", quote(whole))); }
    if (node->kind == Kind::null) { node->kind = Kind::mapping; }
    if (node->kind == Kind::sequence) {
      const Node* item = item_of(*node, step);
      if (item == nullptr) {
        const auto names = names_of_items(*node);
        return fail(value.place, fmt::format("path {}: {} is none of the {} items{}", quote(whole), quote(step),
                                             node->items.size(), names.empty() ? "" : ": " + join(names, ", ")));
      }
      node = const_cast<Node*>(item);
      continue;
    }
    if (node->kind != Kind::mapping) {
      return fail(value.place,
                  fmt::format("path {}: {} is a value and has no fields", quote(whole), quote(node->scalar)));
    }
    Node* next = node->find(step);
    if (next == nullptr) {
      Node& made = config::add(*node, step, config::null_node());
      made.place = value.place;
      node->members.back().line = value.place.line;
      node->members.back().column = value.place.column;
      next = &made;
    }
    node = next;
  }
  *node = value;
  return {};
}

const Node* value_at(const Node& root, std::string_view path) {
  const Node* node = &root;
  while (!path.empty() && node != nullptr) {
    const std::string_view step = taken_step(path);
    node = node->kind == Kind::sequence ? item_of(*node, step) : node->find(step);
  }
  return node;
}

Result<Node> scaled_value(const Node& value, double factor) {
  if (value.kind == Kind::mapping) {
    Node scaled = value;
    for (auto& member : scaled.members) {
      ORRERY_TRY(one, scaled_value(member.value, factor));
      member.value = std::move(one);
    }
    return scaled;
  }
  const std::string& text = value.scalar;
  double number = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (!value.is_scalar() || error != std::errc{} || !study::quantity_of(text)) {
    return fail(value.place, fmt::format("{} is not a number or a quantity", quote(config::inline_text(value))));
  }
  const std::string unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const double scaled = number * factor;
  if (value.kind == Kind::integer && scaled != std::round(scaled)) {
    return fail(value.place, fmt::format("{} times {} is not a whole number", factor, text));
  }
  const bool is_integer = value.kind == Kind::integer;
  return config::plain_node(is_integer ? fmt::format("{:.0f}", scaled) : fmt::format("{}{}", scaled, unit),
                            value.place);
}

}  // namespace orrery::api
