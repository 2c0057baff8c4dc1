#include "orrery/parallel/plan_record.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "orrery/core/text.hpp"

namespace orrery::parallel {

namespace {

using config::Node;
using config::Reading;

constexpr std::int64_t kMostDimension = 99;

std::optional<std::int64_t> number_from(const PlanChoice& choice, const Node& node, const Reading& reading) {
  using Range = std::numeric_limits<std::int64_t>;
  switch (choice.kind) {
    case ChoiceKind::number: return config::read_integer(node, reading, Range::min(), Range::max());
    case ChoiceKind::boolean: return config::read_boolean(node, reading);
    case ChoiceKind::name: return config::read_choice(node, reading, choice.names);
    case ChoiceKind::words:
    case ChoiceKind::pins: break;
  }
  throw_internal_error("a choice of one number", __FILE__, __LINE__);
}

// The parts that a text names, each with its value. Empty pieces are skipped.
using Parts = std::vector<std::pair<const PlanPart*, std::int64_t>>;

const PlanPart* part_named(const PlanChoice& choice, std::string_view word) {
  const auto found =
      std::find_if(choice.parts.begin(), choice.parts.end(), [&](const PlanPart& part) { return part.word == word; });
  return found == choice.parts.end() ? nullptr : &*found;
}

// "weights,optimizer": a place in the list is 1 for those that are named and 0 for the others.
std::optional<Parts> words_from(const PlanChoice& choice, std::string_view text, const Node& node,
                                const Reading& reading) {
  Parts parts;
  for (const PlanPart& part : choice.parts) { parts.emplace_back(&part, 0); }
  while (!text.empty()) {
    const auto comma = std::min(text.find(','), text.size());
    const std::string_view word = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const PlanPart* const part = part_named(choice, word);
    if (part == nullptr) {
      std::vector<std::string> names;
      for (const PlanPart& one : choice.parts) { names.emplace_back(one.word); }
      const auto near = nearest(word, names);
      reading.complain(
          node, fmt::format("{} {}; {}", quote(word), choice.not_a_word,
                            near ? fmt::format("did you mean {}?", quote(*near)) : "valid: " + join(names, ", ")));
      return std::nullopt;
    }
    parts[static_cast<std::size_t>(part - choice.parts.data())].second = 1;
  }
  return parts;
}

// "tp=0": a group and the dimension it is pinned to.
bool add_pin(const PlanChoice& choice, std::string_view text, Parts& parts) {
  const auto equals = std::min(text.find('='), text.size());
  const PlanPart* const part = part_named(choice, text.substr(0, equals));
  const std::string_view number = text.substr(std::min(equals + 1, text.size()));
  std::int64_t dimension = -1;
  const auto [end, wrong] = std::from_chars(number.data(), number.data() + number.size(), dimension);
  const bool is_number = wrong == std::errc{} && end == number.data() + number.size();
  const bool is_new = std::none_of(parts.begin(), parts.end(), [&](const auto& pin) { return pin.first == part; });
  if (part == nullptr || !is_number || !is_new || dimension < 0 || dimension > kMostDimension) { return false; }
  parts.emplace_back(part, dimension);
  return true;
}

std::optional<Parts> pins_from(const PlanChoice& choice, std::string_view text, const Node& node,
                               const Reading& reading) {
  Parts parts;
  while (!text.empty()) {
    const auto end = std::min(text.find_first_of(" ,"), text.size());
    const std::string_view one = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (one.empty() || add_pin(choice, one, parts)) { continue; }
    reading.complain(
        node,
        fmt::format("{} is not a group with its network dimension; valid: tp, cp, dp and pp, each at most once, as in "
                    "\"tp=0 dp=1\" (expert groups follow tp, cp and dp)",
                    quote(one)));
    return std::nullopt;
  }
  return parts;
}

void read_text(const PlanChoice& choice, const Node& node, PartialPlan& partial, const Reading& reading) {
  const auto text = config::read_text(node, reading);
  if (!text) { return; }
  const auto parts = choice.kind == ChoiceKind::words ? words_from(choice, *text, node, reading)
                                                      : pins_from(choice, *text, node, reading);
  if (!parts) { return; }
  choice.take_back(partial);
  if (text->find_first_not_of(" ,") == std::string::npos) { return; }
  for (const auto& [part, value] : *parts) { part->give(partial, value); }
}

Node node_of(const PlanChoice& choice, std::int64_t value) {
  switch (choice.kind) {
    case ChoiceKind::number: return config::integer_node(value);
    case ChoiceKind::boolean: return config::boolean_node(value != 0);
    case ChoiceKind::name: return config::text_node(std::string(choice.names[static_cast<std::size_t>(value)]));
    case ChoiceKind::words:
    case ChoiceKind::pins: break;
  }
  throw_internal_error("a choice of one number", __FILE__, __LINE__);
}

config::TypeInfo type_of(const PlanChoice& choice) {
  switch (choice.kind) {
    case ChoiceKind::number: return {"integer"};
    case ChoiceKind::boolean: return {"true or false"};
    case ChoiceKind::name: return {config::choice_text(choice.names)};
    case ChoiceKind::words:
    case ChoiceKind::pins: return {"text"};
  }
  return {};
}

}  // namespace

config::Limits limits_of(const PlanChoice& choice) {
  config::Limits limits{.min = {}, .max = {}, .positive = false, .nonempty = false, .unit = {}};
  if (choice.kind != ChoiceKind::number) { return limits; }
  limits.min = static_cast<double>(choice.min);
  limits.max = static_cast<double>(choice.max);
  return limits;
}

config::FieldInfo field_info(const PlanChoice& choice) {
  const config::TypeInfo type = type_of(choice);
  return {std::string(choice.name),
          type,
          false,
          config::inline_text(to_node(choice, PartialPlan{})),
          config::bounds_text(limits_of(choice), type),
          "",
          std::string(choice.help)};
}

config::Node schema_of(const PlanChoice& choice) {
  const auto plain = [&] {
    switch (choice.kind) {
      case ChoiceKind::number: return config::number_schema("integer", limits_of(choice));
      case ChoiceKind::boolean: return config::typed_schema("boolean");
      case ChoiceKind::name: return config::choice_schema(choice.names);
      case ChoiceKind::words:
      case ChoiceKind::pins: break;
    }
    return config::text_schema(limits_of(choice));
  };
  return choice.usual || choice.has_text() ? plain() : config::nullable_schema(plain());
}

void read(const PlanChoice& choice, const Node& node, PartialPlan& partial, const Reading& reading) {
  if (choice.has_text()) { return read_text(choice, node, partial, reading); }
  if (node.kind == config::Kind::null && !choice.usual) { return choice.take_back(partial); }
  if (const auto value = number_from(choice, node, reading)) { choice.parts.front().give(partial, *value); }
}

config::Node to_node(const PlanChoice& choice, const PartialPlan& partial) {
  if (choice.has_text()) { return config::text_node(text_of(choice, whole_plan(partial))); }
  const auto given = choice.parts.front().given(partial);
  if (!given && !choice.usual) { return config::null_node(); }
  return node_of(choice, given ? *given : *choice.usual);
}

}  // namespace orrery::parallel
