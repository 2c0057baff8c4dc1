#include "orrery/config/json.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "orrery/core/error.hpp"

namespace orrery::config {

namespace {

// Digits d1 d2 … dn and an exponent e that mean d1.d2…dn x 10^e, as plain text where that is short.
void append_decimal(std::string_view digits, int exponent, std::string& out) {
  constexpr int kMostBeforePoint = 15;  // more digits than a double has would claim a precision that it lacks
  constexpr int kMostZeros = 4;
  const int before_point = exponent + 1;
  const auto count = static_cast<int>(digits.size());
  if (before_point >= count && before_point <= kMostBeforePoint) {
    out += digits;
    out.append(static_cast<std::size_t>(before_point - count), '0');
    out += ".0";
  } else if (before_point > 0 && before_point <= kMostBeforePoint) {
    out += digits.substr(0, static_cast<std::size_t>(before_point));
    out += '.';
    out += digits.substr(static_cast<std::size_t>(before_point));
  } else if (before_point > -kMostZeros && before_point <= 0) {
    out += "0.";
    out.append(static_cast<std::size_t>(-before_point), '0');
    out += digits;
  } else {
    out += digits.front();
    if (count > 1) { out += '.'; }
    out += digits.substr(1);
    out += exponent < 0 ? "e-" : "e+";
    const int magnitude = std::abs(exponent);
    if (magnitude < 10) { out += '0'; }
    out += std::to_string(magnitude);
  }
}

// Whether a text lies halfway between two doubles, so that it reads back as `value` only by the rule for ties. Only
// whole numbers above 2^53 have so short texts.
bool is_halfway(std::string_view text, double value) {
  constexpr double kFirst = 9007199254740992.0;
  if (value < kFirst) { return false; }
  long double spelled = 0;
  std::from_chars(text.data(), text.data() + text.size(), spelled);
  const long double exact = value;
  const long double neighbour = std::nextafter(value, spelled > exact ? std::numeric_limits<double>::infinity() : 0.0);
  return 2 * std::abs(spelled - exact) >= std::abs(neighbour - exact);
}

// The fewest digits that read back as the same double by any rule for ties: "1.25e+03".
std::string_view scientific(double value, std::array<char, 32>& buffer) {
  char* const first = buffer.data();
  char* const last = first + buffer.size();
  const auto text = [&](const std::to_chars_result& written) {
    return std::string_view(first, static_cast<std::size_t>(written.ptr - first));
  };
  const std::string_view shortest = text(std::to_chars(first, last, value, std::chars_format::scientific));
  if (!is_halfway(shortest, value)) { return shortest; }
  const auto digits = static_cast<int>(shortest.find('e')) - (shortest.find('.') == std::string_view::npos ? 0 : 1);
  return text(std::to_chars(first, last, value, std::chars_format::scientific, digits));
}

void append_number(double value, std::string& out) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  if (std::signbit(value)) { out += '-'; }
  if (value == 0.0) {
    out += "0.0";
    return;
  }
  std::array<char, 32> buffer{};
  const std::string_view text = scientific(std::abs(value), buffer);
  const std::size_t mark = text.find('e');
  std::array<char, 20> digits{};
  const auto end = std::copy_if(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(mark), digits.begin(),
                                [](char c) { return c != '.'; });
  int exponent = 0;
  const std::string_view power = text.substr(mark + (text[mark + 1] == '+' ? 2 : 1));
  std::from_chars(power.data(), power.data() + power.size(), exponent);
  append_decimal({digits.data(), static_cast<std::size_t>(end - digits.begin())}, exponent, out);
}

// The number of bytes of the UTF-8 character at the front; for what is none, minus the bytes that one mark replaces.
int character_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const unsigned first = byte(0);
  if (first < 0x80U) { return 1; }
  const int length = first >= 0xc2U && first <= 0xdfU   ? 2
                     : first >= 0xe0U && first <= 0xefU ? 3
                     : first >= 0xf0U && first <= 0xf4U ? 4
                                                        : 0;
  if (length == 0) { return -1; }
  // The range of the second byte excludes overlong forms, surrogates and code points above U+10FFFF.
  const unsigned low = first == 0xe0U ? 0xa0U : first == 0xf0U ? 0x90U : 0x80U;
  const unsigned high = first == 0xedU ? 0x9fU : first == 0xf4U ? 0x8fU : 0xbfU;
  if (byte(1) < low || byte(1) > high) { return -1; }
  for (int i = 2; i < length; ++i) {
    if ((byte(static_cast<std::size_t>(i)) & 0xc0U) != 0x80U) { return -i; }
  }
  return length;
}

void append_escape(unsigned char byte, std::string& out) {
  constexpr std::string_view kHexadecimal = "0123456789abcdef";
  switch (byte) {
    case '"': out += "\\\""; return;
    case '\\': out += "\\\\"; return;
    case '\b': out += "\\b"; return;
    case '\f': out += "\\f"; return;
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    default: break;
  }
  out += "\\u00";
  out += kHexadecimal[byte >> 4U];
  out += kHexadecimal[byte & 0xfU];
}

void append_text(std::string_view text, std::string& out) {
  constexpr std::string_view kReplacement = "\xef\xbf\xbd";
  out += '"';
  while (!text.empty()) {
    const auto is_plain = [](char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; };
    const auto plain = static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is_plain) - text.begin());
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) { break; }
    const int length = character_length(text);
    const auto taken = static_cast<std::size_t>(std::abs(length));
    if (length < 0) {
      out += kReplacement;
    } else if (length == 1) {
      append_escape(static_cast<unsigned char>(text.front()), out);
    } else {
      out += text.substr(0, taken);
    }
    text.remove_prefix(taken);
  }
  out += '"';
}

// A JSON number equal to a YAML one: no plus, no leading zeros, digits on both sides of the point.
void append_yaml_number(std::string_view scalar, std::string& out) {
  const bool negative = scalar.starts_with('-');
  if (negative || scalar.starts_with('+')) { scalar.remove_prefix(1); }
  if (scalar.starts_with(".i") || scalar.starts_with(".I") || scalar.starts_with(".n") || scalar.starts_with(".N")) {
    out += "null";
    return;
  }
  const std::size_t whole_end = std::min(scalar.find_first_of(".eE"), scalar.size());
  std::string_view whole = scalar.substr(0, whole_end);
  while (whole.size() > 1 && whole.front() == '0') { whole.remove_prefix(1); }
  std::string_view rest = scalar.substr(whole_end);
  const bool bare_point = rest.starts_with('.') && (rest.size() == 1 || rest[1] == 'e' || rest[1] == 'E');
  if (bare_point) { rest.remove_prefix(1); }
  if (negative) { out += '-'; }
  out += whole.empty() ? std::string_view("0") : whole;
  out += rest;
}

Node json_scalar(Kind kind, std::string text) {
  Node node;
  node.kind = kind;
  node.scalar = std::move(text);
  return node;
}

}  // namespace

Node json_number(double value) {
  if (!std::isfinite(value)) { return null_node(); }
  std::string text;
  append_number(value, text);
  return json_scalar(Kind::real, std::move(text));
}

Node json_count(std::uint64_t value) { return json_scalar(Kind::integer, std::to_string(value)); }

Node json_texts(std::span<const std::string> texts) {
  Node list = sequence_node();
  list.items.reserve(texts.size());
  for (const std::string& text : texts) { list.items.push_back(text_node(text)); }
  return list;
}

Node& add_fields(Node& object, std::initializer_list<JsonField> fields) {
  object.members.reserve(object.members.size() + fields.size());
  for (const JsonField& field : fields) { add(object, std::string(field.key), std::move(field.value.node_)); }
  return object;
}

Node json_object(std::initializer_list<JsonField> fields) {
  Node object = mapping_node();
  add_fields(object, fields);
  return object;
}

void set_field(Node& object, std::string_view key, JsonValue value) {
  if (Node* old = object.find(key)) {
    *old = std::move(value.node_);
  } else {
    add(object, std::string(key), std::move(value.node_));
  }
}

JsonValue text_or_null(const std::string& text) { return text.empty() ? JsonValue(nullptr) : JsonValue(text); }

void add_item(Node& list, JsonValue value) { append(list, std::move(value.node_)); }

void JsonWriter::start_line() {
  out_ += '\n';
  out_.append(levels_.size() * static_cast<std::size_t>(indent_), ' ');
}

void JsonWriter::start_value() {
  if (after_key_ || levels_.empty()) {
    after_key_ = false;
    return;
  }
  ORRERY_ASSERT(levels_.back().is_list);
  if (!levels_.back().is_empty) { out_ += ','; }
  levels_.back().is_empty = false;
  start_line();
}

void JsonWriter::key(std::string_view name) {
  ORRERY_ASSERT(!levels_.empty() && !levels_.back().is_list && !after_key_);
  if (!levels_.back().is_empty) { out_ += ','; }
  levels_.back().is_empty = false;
  start_line();
  append_text(name, out_);
  out_ += ": ";
  after_key_ = true;
}

void JsonWriter::open(char bracket) {
  start_value();
  out_ += bracket;
  levels_.push_back({.is_list = bracket == '[', .is_empty = true});
}

void JsonWriter::close() {
  ORRERY_ASSERT(!levels_.empty() && !after_key_);
  const Level level = levels_.back();
  levels_.pop_back();
  if (!level.is_empty) { start_line(); }
  out_ += level.is_list ? ']' : '}';
}

void JsonWriter::scalar(std::string_view text) {
  start_value();
  out_ += text;
}

void JsonWriter::value(std::uint64_t number) {
  std::array<char, 20> buffer{};
  const auto written = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number);
  scalar({buffer.data(), static_cast<std::size_t>(written.ptr - buffer.data())});
}

void JsonWriter::value(double number) {
  start_value();
  append_number(number, out_);
}

void JsonWriter::value(std::string_view text) {
  start_value();
  append_text(text, out_);
}

void JsonWriter::value(const Node& node) {
  switch (node.kind) {
    case Kind::null: return scalar("null");
    case Kind::boolean: return scalar(node.scalar);
    case Kind::integer:
    case Kind::real: start_value(); return append_yaml_number(node.scalar, out_);
    case Kind::text: return value(std::string_view(node.scalar));
    case Kind::sequence:
      open_list();
      for (const Node& item : node.items) { value(item); }
      return close();
    case Kind::mapping:
      open_object();
      for (const Member& member : node.members) {
        key(member.key);
        value(member.value);
      }
      return close();
  }
}

std::string json_document(const Node& root, int indent) {
  std::string out;
  JsonWriter(out, indent).value(root);
  return out + "\n";
}

std::string json_text(std::string_view text) {
  std::string out;
  append_text(text, out);
  return out;
}

std::string print_json(const Node& node) {
  std::string out;
  JsonWriter(out).value(node);
  return out;
}

}  // namespace orrery::config
