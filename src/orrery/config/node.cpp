#include "orrery/config/node.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "orrery/core/text.hpp"

namespace orrery::config {

namespace {

Node scalar_node(Kind kind, std::string text) {
  Node node;
  node.kind = kind;
  node.scalar = std::move(text);
  return node;
}

// [-+]? ( digits ( . digits? )? | . digits ) ( [eE] [-+]? digits )?
Kind number_kind(std::string_view text) {
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) { text.remove_prefix(1); }
  for (const std::string_view special : {".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN"}) {
    if (text == special) { return Kind::real; }
  }
  const std::size_t whole = skip_digits(text, 0);
  if (whole > 0 && whole == text.size()) { return Kind::integer; }
  std::size_t i = whole;
  std::size_t digits = whole;
  if (i < text.size() && text[i] == '.') {
    const std::size_t fraction = skip_digits(text, i + 1);
    digits += fraction - (i + 1);
    i = fraction;
  }
  if (digits == 0) { return Kind::text; }
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    if (i < text.size() && (text[i] == '-' || text[i] == '+')) { ++i; }
    const std::size_t exponent = skip_digits(text, i);
    if (exponent == i) { return Kind::text; }
    i = exponent;
  }
  return i == text.size() ? Kind::real : Kind::text;
}

}  // namespace

Kind plain_kind(std::string_view text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") { return Kind::null; }
  if (text == "true" || text == "false") { return Kind::boolean; }
  return number_kind(text);
}

Node::Node() = default;
Node::Node(const Node& other) = default;
Node::Node(Node&& other) noexcept = default;
Node& Node::operator=(const Node& other) = default;
Node& Node::operator=(Node&& other) noexcept = default;
Node::~Node() = default;

const Member* Node::member(std::string_view key) const {
  const auto found = std::find_if(members.begin(), members.end(), [&](const Member& m) { return m.key == key; });
  return found == members.end() ? nullptr : &*found;
}

const Node* Node::find(std::string_view key) const {
  const Member* found = member(key);
  return found == nullptr ? nullptr : &found->value;
}

Node* Node::find(std::string_view key) { return const_cast<Node*>(std::as_const(*this).find(key)); }

std::vector<std::string> Node::keys() const {
  std::vector<std::string> names;
  names.reserve(members.size());
  for (const Member& m : members) { names.push_back(m.key); }
  return names;
}

bool operator==(const Node& a, const Node& b) {
  const auto same_member = [](const Member& x, const Member& y) { return x.key == y.key && x.value == y.value; };
  return a.kind == b.kind && a.scalar == b.scalar && a.items == b.items &&
         std::equal(a.members.begin(), a.members.end(), b.members.begin(), b.members.end(), same_member);
}

Place Member::place() const { return {value.place.file, line, column, value.place.path}; }

Node plain_node(std::string text, Place place) {
  const Kind kind = plain_kind(text);
  Node node = scalar_node(kind, kind == Kind::null ? std::string() : std::move(text));
  node.place = std::move(place);
  return node;
}

Node null_node() { return {}; }
Node boolean_node(bool value) { return scalar_node(Kind::boolean, value ? "true" : "false"); }
Node integer_node(std::int64_t value) { return scalar_node(Kind::integer, fmt::format("{}", value)); }

Node real_node(double value) {
  if (std::isnan(value)) { return scalar_node(Kind::real, ".nan"); }
  if (std::isinf(value)) { return scalar_node(Kind::real, value < 0 ? "-.inf" : ".inf"); }
  std::string text = fmt::format("{}", value);
  const bool looks_whole = text.find_first_of(".e") == std::string::npos;
  return scalar_node(Kind::real, looks_whole ? text + ".0" : std::move(text));
}

Node text_node(std::string value) { return scalar_node(Kind::text, std::move(value)); }

Node sequence_node(std::vector<Node> items) {
  Node node = scalar_node(Kind::sequence, {});
  node.items = std::move(items);
  return node;
}

Node mapping_node() { return scalar_node(Kind::mapping, {}); }

Node& add(Node& mapping, std::string key, Node value) {
  ORRERY_ASSERT(mapping.kind == Kind::mapping && mapping.find(key) == nullptr);
  return mapping.members.emplace_back(Member{std::move(key), 0, 0, std::move(value)}).value;
}

Node& append(Node& sequence, Node item) {
  ORRERY_ASSERT(sequence.kind == Kind::sequence);
  return sequence.items.emplace_back(std::move(item));
}

}  // namespace orrery::config
