#include "orrery/config/codec.hpp"

#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "orrery/core/text.hpp"

namespace orrery::config {

namespace {

// Integers up to 2^53 are exact as doubles; up to it a real without a fraction is read as an integer.
constexpr double kLargestExact = 9007199254740992.0;  // 2^53

std::string limit_text(double limit, const TypeInfo& type) {
  if (type.dimension) { return print_quantity(limit, *type.dimension); }
  const bool whole = limit == std::floor(limit) && std::abs(limit) < kLargestExact;
  return whole ? fmt::format("{:.0f}", limit) : fmt::format("{}", limit);
}

// The value in a message: "is a list", "has no value", "\"x\" is not valid".
std::string found_text(const Node& node) {
  switch (node.kind) {
    case Kind::null: return "has no value";
    case Kind::sequence: return "is a list";
    case Kind::mapping: return "is a mapping";
    case Kind::boolean:
    case Kind::integer:
    case Kind::real:
    case Kind::text: return fmt::format("{} is not valid", quote(node.scalar));
  }
  return {};
}

void complain_kind(const Node& node, const Reading& reading, std::string_view wanted) {
  reading.complain(node, fmt::format("{}; {} must be {}", found_text(node), reading.field, wanted));
}

// A number in quotes is text; the message must name the quotes.
void complain_number(const Node& node, const Reading& reading, std::string_view wanted) {
  if (node.kind != Kind::text) { return complain_kind(node, reading, wanted); }
  const Kind plain = plain_kind(node.scalar);
  const bool number_in_quotes = node.quoted && (plain == Kind::integer || plain == Kind::real);
  const std::string_view hint = number_in_quotes ? ", written without quotes" : "";
  reading.complain(node, fmt::format("{} is {}; {} must be {}{}", quote(node.scalar),
                                     number_in_quotes ? "text" : "not a number", reading.field, wanted, hint));
}

std::string_view without_plus(std::string_view text) { return text.starts_with('+') ? text.substr(1) : text; }

double real_value(std::string_view scalar) {
  const std::string_view text = without_plus(scalar);
  if (text.find_first_of("iInN") != std::string_view::npos) { return std::nan(""); }  // .inf, .nan
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? value : HUGE_VAL;
}

bool respects_limits(double value, const Node& node, const Reading& reading, const TypeInfo& type) {
  const Limits& limits = reading.limits;
  const bool low = (limits.min && value < *limits.min) || (limits.positive && value <= 0.0);
  const bool high = limits.max && value > *limits.max;
  if (!low && !high) { return true; }
  const bool never_negative = limits.positive || (limits.min && *limits.min >= 0.0);
  const std::string_view fault = high ? "too large" : (value < 0.0 && never_negative ? "negative" : "too small");
  Limits of_value = limits;
  of_value.nonempty = false;  // is about the list that the value stands in
  reading.complain(node, fmt::format("{} is {}; {} must be {}", quote(node.scalar), fault, reading.field,
                                     bounds_text(of_value, type)));
  return false;
}

void complain_range(const Node& node, const Reading& reading, bool low, std::int64_t lowest, std::int64_t highest) {
  Limits of_value = reading.limits;
  of_value.nonempty = false;
  const bool bounded = low ? of_value.min.has_value() : of_value.max.has_value();
  const std::string bounds = bounded ? bounds_text(of_value, {"integer"})
                                     : fmt::format("at {} {}", low ? "least" : "most", low ? lowest : highest);
  reading.complain(node, fmt::format("{} is too {}; {} must be {}", quote(node.scalar), low ? "small" : "large",
                                     reading.field, bounds));
}

std::optional<std::int64_t> whole_part(const Node& node, const Reading& reading, std::int64_t lowest,
                                       std::int64_t highest) {
  if (node.kind == Kind::integer) {
    std::int64_t value = 0;
    const std::string_view text = without_plus(node.scalar);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && value >= lowest && value <= highest) { return value; }
    complain_range(node, reading, text.starts_with('-'), lowest, highest);
    return std::nullopt;
  }
  if (node.kind != Kind::real) {
    complain_number(node, reading, "an integer");
    return std::nullopt;
  }
  const double value = real_value(node.scalar);
  const bool in_range = value >= static_cast<double>(lowest) && value <= static_cast<double>(highest);
  if (std::isnan(value)) {
    reading.complain(
        node, fmt::format("{} is not a finite number; {} must be an integer", quote(node.scalar), reading.field));
  } else if (in_range && value != std::floor(value)) {
    reading.complain(node,
                     fmt::format("{} is not a whole number; {} must be an integer", quote(node.scalar), reading.field));
  } else if (!in_range || std::abs(value) > kLargestExact) {
    complain_range(node, reading, value < 0.0, lowest, highest);
  } else {
    return static_cast<std::int64_t>(value);
  }
  return std::nullopt;
}

bool respects_nonempty(std::size_t size, const Node& node, const Reading& reading) {
  if (size > 0 || !reading.limits.nonempty) { return true; }
  reading.complain(node, fmt::format("{} must not be empty", reading.field));
  return false;
}

}  // namespace

void Reading::complain(const Node& at, std::string message) const {
  if (complaints.size() < kMaxComplaints) { complaints.push_back({at.place, std::move(message)}); }
}

std::string bounds_text(const Limits& limits, const TypeInfo& type) {
  std::string text;
  const auto say = [&](const std::string& part) { text += (text.empty() ? "" : " and ") + part; };
  if (limits.positive) { say("greater than 0"); }
  if (limits.min && limits.max) {
    say(fmt::format("between {} and {}", limit_text(*limits.min, type), limit_text(*limits.max, type)));
  } else if (limits.min) {
    say("at least " + limit_text(*limits.min, type));
  } else if (limits.max) {
    say("at most " + limit_text(*limits.max, type));
  }
  if (limits.nonempty) { say("not empty"); }
  return text;
}

std::optional<bool> read_boolean(const Node& node, const Reading& reading) {
  if (node.kind == Kind::boolean) { return node.scalar == "true"; }
  if (node.kind == Kind::text) {
    reading.complain(node, fmt::format("{} is not valid; {} must be true or false{}", quote(node.scalar), reading.field,
                                       node.quoted ? ", written without quotes" : ""));
  } else {
    complain_kind(node, reading, "true or false");
  }
  return std::nullopt;
}

std::optional<std::int64_t> read_integer(const Node& node, const Reading& reading, std::int64_t lowest,
                                         std::int64_t highest) {
  const auto value = whole_part(node, reading, lowest, highest);
  if (!value || !respects_limits(static_cast<double>(*value), node, reading, {"integer"})) { return std::nullopt; }
  return value;
}

std::optional<double> read_real(const Node& node, const Reading& reading) {
  if (node.kind != Kind::integer && node.kind != Kind::real) {
    complain_number(node, reading, "a number");
    return std::nullopt;
  }
  const double value = real_value(node.scalar);
  if (!std::isfinite(value)) {
    reading.complain(node,
                     fmt::format("{} is not a finite number; {} must be finite", quote(node.scalar), reading.field));
    return std::nullopt;
  }
  if (!respects_limits(value, node, reading, {"number"})) { return std::nullopt; }
  return value;
}

std::optional<std::string> read_text(const Node& node, const Reading& reading) {
  if (node.kind == Kind::null || !node.is_scalar()) {
    complain_kind(node, reading, "text");
    return std::nullopt;
  }
  if (!respects_nonempty(node.scalar.size(), node, reading)) { return std::nullopt; }
  return node.scalar;
}

std::optional<double> read_quantity(const Node& node, const Reading& reading, Dimension dimension) {
  if (node.kind == Kind::null || !node.is_scalar()) {
    complain_kind(node, reading, fmt::format("a {}", dimension_name(dimension)));
    return std::nullopt;
  }
  const auto value = parse_quantity(node.scalar, dimension, reading.limits.unit);
  if (!value) {
    reading.complain(node, value.error());
    return std::nullopt;
  }
  if (!respects_limits(*value, node, reading, {"", dimension})) { return std::nullopt; }
  return *value;
}

std::optional<std::size_t> read_choice(const Node& node, const Reading& reading,
                                       std::span<const std::string_view> names) {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (node.is_scalar() && node.kind != Kind::null && node.scalar == names[i]) { return i; }
  }
  if (node.kind == Kind::null || !node.is_scalar()) {
    complain_kind(node, reading, choice_text(names));
    return std::nullopt;
  }
  const std::vector<std::string> candidates(names.begin(), names.end());
  const auto near = nearest(node.scalar, candidates);
  const std::string hint = near ? fmt::format("; did you mean \"{}\"?", *near) : "";
  reading.complain(node, fmt::format("{} is not valid; {} must be {}{}", quote(node.scalar), reading.field,
                                     choice_text(names), hint));
  return std::nullopt;
}

bool is_list(const Node& node, const Reading& reading) {
  if (node.kind == Kind::sequence) { return respects_nonempty(node.items.size(), node, reading); }
  complain_kind(node, reading,
                node.is_scalar() && node.kind != Kind::null
                    ? fmt::format("a list, such as [{}]", node.scalar.substr(0, 40))
                    : "a list");
  return false;
}

bool is_map(const Node& node, const Reading& reading) {
  if (node.kind == Kind::mapping) { return respects_nonempty(node.members.size(), node, reading); }
  complain_kind(node, reading, "a mapping of names to values");
  return false;
}

std::string choice_text(std::span<const std::string_view> names) {
  const std::vector<std::string> texts(names.begin(), names.end());
  return "one of " + join(texts, ", ");
}

}  // namespace orrery::config
