#include "orrery/config/foreign_file.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "orrery/core/text.hpp"

namespace orrery::config {

namespace {

std::string kind_text(const Node& node) {
  switch (node.kind) {
    case Kind::null: return "nothing";
    case Kind::sequence: return "a list";
    case Kind::mapping: return "a mapping";
    case Kind::boolean:
    case Kind::integer:
    case Kind::real:
    case Kind::text: break;
  }
  return quote(node.scalar);
}

std::optional<double> finite_number(const Node& node) {
  if (node.kind != Kind::integer && node.kind != Kind::real) { return std::nullopt; }
  double value = 0;
  const char* end = node.scalar.data() + node.scalar.size();
  const auto [stopped, error] =
      std::from_chars(node.scalar.data() + (node.scalar.starts_with('+') ? 1 : 0), end, value);
  if (error != std::errc() || stopped != end || !std::isfinite(value)) { return std::nullopt; }
  return value;
}

}  // namespace

Result<ForeignFile> ForeignFile::open(const std::string& path) {
  ORRERY_TRY(root, config::read_file(path));
  if (root.kind != Kind::mapping) {
    return fail(root.place, "is " + kind_text(root) + "; expected: a mapping of keys to values");
  }
  return ForeignFile(std::move(root));
}

const Node* ForeignFile::find(std::string_view key) {
  known_.emplace_back(key);
  return root_.find(key);
}

void ForeignFile::ignored(std::string_view key, std::string_view why) {
  if (find(key) == nullptr) { return; }
  warnings_.push_back(Diagnostic{root_.member(key)->place(), std::string(why)}.text());
}

std::optional<double> ForeignFile::real(const Node& node, std::string_view key) {
  const auto value = finite_number(node);
  if (!value) { add_error(node.place, fmt::format("{} is {}; expected: a number", key, kind_text(node))); }
  return value;
}

std::optional<double> ForeignFile::real(std::string_view key) {
  const Node* node = find(key);
  return node == nullptr ? std::nullopt : real(*node, key);
}

std::optional<std::uint64_t> ForeignFile::whole(std::string_view key, std::uint64_t least, std::uint64_t most) {
  const Node* node = find(key);
  if (node == nullptr) { return std::nullopt; }
  const auto value = real(*node, key);
  if (!value) { return std::nullopt; }
  if (*value < 0 || std::trunc(*value) < static_cast<double>(least) || *value > static_cast<double>(most)) {
    add_error(node->place, fmt::format("{} is {}; valid: at least {}", key, node->scalar, least) +
                               (*value > static_cast<double>(most) ? fmt::format(" and at most {}", most) : ""));
    return std::nullopt;
  }
  return static_cast<std::uint64_t>(*value);
}

bool ForeignFile::flag(std::string_view key) {
  const Node* node = find(key);
  if (node == nullptr) { return false; }
  if (node->kind == Kind::boolean) { return node->scalar == "true"; }
  const auto value = finite_number(*node);
  if (!value || (*value != 0 && *value != 1)) {
    add_error(node->place, fmt::format("{} is {}; valid: 0 or 1", key, kind_text(*node)));
  }
  return value == 1.0;
}

std::optional<std::size_t> ForeignFile::choice(const Node& node, std::string_view key,
                                               std::span<const std::string_view> names) {
  const auto found = std::find(names.begin(), names.end(), node.scalar);
  if (node.is_scalar() && found != names.end()) { return static_cast<std::size_t>(found - names.begin()); }
  const std::vector<std::string> all(names.begin(), names.end());
  const auto near = node.is_scalar() ? nearest(node.scalar, all) : std::nullopt;
  add_error(node.place, near ? fmt::format("{} is {}; did you mean {}?", key, kind_text(node), *near)
                             : fmt::format("{} is {}; valid: {}", key, kind_text(node), join(all, ", ")));
  return std::nullopt;
}

std::optional<std::size_t> ForeignFile::choice(std::string_view key, std::span<const std::string_view> names) {
  const Node* node = find(key);
  return node == nullptr ? std::nullopt : choice(*node, key, names);
}

std::vector<const Node*> ForeignFile::list(std::string_view key, bool required) {
  const Node* node = find(key);
  std::vector<const Node*> items;
  if (node == nullptr) {
    if (required) { missing(key); }
    return items;
  }
  if (node->kind != Kind::sequence) {
    add_error(node->place, fmt::format("{} is {}; expected: a list", key, kind_text(*node)));
    return items;
  }
  for (const Node& item : node->items) { items.push_back(&item); }
  if (items.empty()) { add_error(node->place, fmt::format("{} is an empty list", key)); }
  return items;
}

void ForeignFile::missing(std::string_view key) {
  Place place;
  place.file = root_.place.file;
  add_error(place, fmt::format("{} is missing", key));
}

Result<void> ForeignFile::finish(std::vector<std::string>& warnings) {
  for (const Member& member : root_.members) {
    if (std::find(known_.begin(), known_.end(), member.key) != known_.end()) { continue; }
    const auto near = nearest(member.key, known_);
    warnings_.push_back(Diagnostic{
        member.place(), near ? fmt::format("unknown key {} has no effect; did you mean {}?", quote(member.key), *near)
                             : fmt::format("unknown key {} has no effect", quote(member.key))}
                            .text());
  }
  if (!errors_.empty()) { return tl::make_unexpected(Failure{errors_, false}); }
  warnings.insert(warnings.end(), warnings_.begin(), warnings_.end());
  return {};
}

}  // namespace orrery::config
