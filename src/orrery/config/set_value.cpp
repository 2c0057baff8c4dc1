#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "orrery/config/node.hpp"
#include "orrery/config/tree_builder.hpp"
#include "orrery/core/text.hpp"

namespace orrery::config {

namespace {

void put_at(Node& node, const Place& place) {
  node.place = place;
  for (Node& item : node.items) { put_at(item, place); }
  for (Member& member : node.members) {
    member.line = member.column = 0;
    put_at(member.value, place);
  }
}

std::string unescaped_step(std::string_view step) {
  std::string key;
  for (std::size_t i = 0; i < step.size(); ++i) {
    const bool escaped = step[i] == '~' && i + 1 < step.size() && (step[i + 1] == '0' || step[i + 1] == '1');
    if (escaped) { ++i; }
    key += escaped ? (step[i] == '0' ? '~' : '/') : step[i];
  }
  return key;
}

Result<std::vector<std::string>> steps_of(std::string_view path, const Place& place) {
  const bool pointer = path.starts_with('/');
  const char separator = pointer ? '/' : '.';
  std::string_view rest = pointer ? path.substr(1) : path;
  std::vector<std::string> steps;
  for (bool more = true; more;) {
    const std::size_t end = rest.find(separator);
    const std::string_view step = rest.substr(0, end);
    if (step.empty()) { return fail(place, fmt::format("{} has an empty key", quote(path))); }
    steps.push_back(pointer ? unescaped_step(step) : std::string(step));
    more = end != std::string_view::npos;
    if (more) { rest.remove_prefix(end + 1); }
  }
  if (steps.size() > static_cast<std::size_t>(kMaxDepth)) {
    return fail(place, fmt::format("has {} levels; at most {} are valid", steps.size(), kMaxDepth));
  }
  return steps;
}

Result<Node*> item_at(Node& list, const std::string& step, const Place& place) {
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(step.data(), step.data() + step.size(), index);
  if (error != std::errc() || end != step.data() + step.size()) {
    return fail(place, fmt::format("{} is a list; {} is not an index", quote(list.place.path), quote(step)));
  }
  if (index >= list.items.size()) {
    return fail(place, fmt::format("{} is not an index of {}, a list of {} items counted from 0", index,
                                   quote(list.place.path), list.items.size()));
  }
  return &list.items[index];
}

// The node one level below; created if it is missing.
Result<Node*> step_into(Node& node, const std::string& step, const Place& place) {
  if (node.kind == Kind::sequence) { return item_at(node, step, place); }
  if (node.kind == Kind::null) {
    node.kind = Kind::mapping;
    node.scalar.clear();
  }
  if (node.kind != Kind::mapping) {
    return fail(place, fmt::format("{} is the value {} and has no fields", quote(node.place.path), quote(node.scalar)));
  }
  if (Node* found = node.find(step)) { return found; }
  Node& made = add(node, step, null_node());
  made.place = place;
  return &made;
}

}  // namespace

tl::expected<void, Failure> set(Node& root, std::string_view dotted_path, std::string_view value, const Place& place) {
  ORRERY_TRY(steps, steps_of(dotted_path, place));
  if (value.find_first_not_of(" \t") == std::string_view::npos) {
    return fail(place, "has no value; write null to clear the field");
  }
  auto parsed = parse_yaml(value, {});
  if (!parsed) { return fail(place, fmt::format("{}: {}", quote(value), parsed.error().diagnostics.front().message)); }
  Node changed = root;  // a failed step must not leave a partial path
  Node* node = &changed;
  for (const std::string& step : steps) {
    ORRERY_TRY(next, step_into(*node, step, place));
    node = next;
  }
  *node = std::move(*parsed);
  put_at(*node, place);
  root = std::move(changed);
  return {};
}

tl::expected<void, Failure> set(Node& root, std::string_view dotted_path, std::string_view value) {
  return set(root, dotted_path, value, Place{"", 0, 0, fmt::format("--set {}", dotted_path)});
}

tl::expected<void, Failure> set_assignment(Node& root, std::string_view path_equals_value) {
  const std::size_t equals = path_equals_value.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    return fail(Place{"", 0, 0, "--set"},
                fmt::format("{} is not valid; write path.to.field=value", quote(path_equals_value)));
  }
  return set(root, path_equals_value.substr(0, equals), path_equals_value.substr(equals + 1));
}

}  // namespace orrery::config
