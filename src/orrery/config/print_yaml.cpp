#include <algorithm>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "orrery/config/node.hpp"

namespace orrery::config {

namespace {

// A double-quoted scalar.
std::string quoted_scalar(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\u{:04x}", byte);
    } else {
      out += c;
    }
  }
  return out + "\"";
}

// Whether YAML reads the text back as this very text when it stands without quotes. Errs on the side of quotes.
bool is_plain_text(std::string_view text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (text.empty() || text.size() > 200 || !(is_letter(text.front()) || is_digit(text.front())) || text.back() == ' ') {
    return false;
  }
  const bool harmless = std::all_of(text.begin(), text.end(), [&](char c) {
    return is_letter(c) || is_digit(c) || c == ' ' || c == '.' || c == '/' || c == '-' || c == '+';
  });
  // Other YAML readers take these for booleans, octal or hexadecimal numbers.
  for (const std::string_view word : {"yes", "no", "on",   "off",   "y",    "n",     "Yes", "No", "On", "Off",
                                      "Y",   "N",  "True", "False", "TRUE", "FALSE", "YES", "NO", "ON", "OFF"}) {
    if (text == word) { return false; }
  }
  const bool based = text.size() > 1 && text[0] == '0' && is_letter(text[1]);
  return harmless && !based && plain_kind(text) == Kind::text;
}

std::string yaml_text(std::string_view text) { return is_plain_text(text) ? std::string(text) : quoted_scalar(text); }

std::string yaml_scalar(const Node& node) {
  switch (node.kind) {
    case Kind::null: return "null";
    case Kind::boolean:
    case Kind::integer:
    case Kind::real: return node.scalar;
    case Kind::text: return yaml_text(node.scalar);
    case Kind::sequence: return "[]";
    case Kind::mapping: return "{}";
  }
  return {};
}

bool is_leaf(const Node& node) { return node.is_scalar() || (node.items.empty() && node.members.empty()); }

// "[1, 2, 4]" when all items are leaves and fit on a line; "" otherwise.
std::string flow_list(const Node& node) {
  constexpr std::size_t kLongest = 100;
  std::string line;
  for (const Node& item : node.items) {
    if (!is_leaf(item) || line.size() > kLongest) { return {}; }
    line += (line.empty() ? "[" : ", ") + yaml_scalar(item);
  }
  return line.size() > kLongest ? std::string() : line + "]";
}

// YAML takes "key:" for a key only within 1024 characters; a longer one is announced by "? ".
std::string yaml_key(const std::string& key, int indent) {
  constexpr std::size_t kLongest = 500;
  std::string text = yaml_text(key);
  if (text.size() <= kLongest) { return text + ":"; }
  return fmt::format("? {}\n{:{}}:", text, "", indent);
}

void print_block(const Node& node, int indent, std::string& out);

// What follows "key:" or "-". A list below a key is indented; a mapping in a list starts on the dash's line.
void print_value(const Node& node, int indent, bool in_list, std::string& out) {
  std::string line = is_leaf(node) ? yaml_scalar(node) : std::string();
  if (line.empty() && node.kind == Kind::sequence) { line = flow_list(node); }
  if (!line.empty()) {
    out += ' ' + line + '\n';
    return;
  }
  out += in_list ? " " : fmt::format("\n{:{}}", "", indent + 2);
  print_block(node, indent + 2, out);
}

// The caller has already indented the first line.
void print_block(const Node& node, int indent, std::string& out) {
  const std::string margin(static_cast<std::size_t>(indent), ' ');
  bool first = true;
  const auto start_line = [&] {
    if (!first) { out += margin; }
    first = false;
  };
  for (const Node& item : node.items) {
    start_line();
    out += '-';
    print_value(item, indent, true, out);
  }
  for (const Member& member : node.members) {
    start_line();
    out += yaml_key(member.key, indent);
    print_value(member.value, indent, false, out);
  }
}

}  // namespace

std::string print_yaml(const Node& node) {
  if (is_leaf(node)) { return yaml_scalar(node) + "\n"; }
  std::string out;
  print_block(node, 0, out);
  return out;
}

}  // namespace orrery::config
