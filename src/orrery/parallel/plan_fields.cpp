#include "orrery/parallel/plan_fields.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "orrery/core/error.hpp"

namespace orrery::parallel {

namespace {

struct Index {
  std::array<const PlanChoice*, kPlanFields> choices{};
  std::array<const PlanPart*, kPlanFields> parts{};
};

const Index& index() {
  static const Index made = [] {
    Index rows;
    for (const PlanChoice& choice : plan_choices()) {
      for (const PlanPart& part : choice.parts) {
        const auto at = static_cast<std::size_t>(part.field);
        ORRERY_ASSERT(rows.parts[at] == nullptr);
        rows.choices[at] = &choice;
        rows.parts[at] = &part;
      }
    }
    ORRERY_ASSERT(std::find(rows.parts.begin(), rows.parts.end(), nullptr) == rows.parts.end());
    return rows;
  }();
  return made;
}

}  // namespace

const PlanChoice* find_choice(std::string_view name) {
  const auto& all = plan_choices();
  const auto found = std::find_if(all.begin(), all.end(), [&](const PlanChoice& one) { return one.name == name; });
  return found == all.end() ? nullptr : &*found;
}

const PlanChoice& choice_of(PlanField field) { return *index().choices[static_cast<std::size_t>(field)]; }
const PlanPart& part_of(PlanField field) { return *index().parts[static_cast<std::size_t>(field)]; }

std::vector<const PlanChoice*> choices_from(std::span<const std::string_view> first) {
  std::vector<const PlanChoice*> list;
  for (const std::string_view name : first) {
    list.push_back(find_choice(name));
    ORRERY_ASSERT(list.back() != nullptr);
  }
  for (const PlanChoice& choice : plan_choices()) {
    if (std::find(list.begin(), list.end(), &choice) == list.end()) { list.push_back(&choice); }
  }
  return list;
}

std::vector<const PlanChoice*> choices_from(std::initializer_list<std::string_view> first) {
  return choices_from(std::span(first.begin(), first.size()));
}

std::string flag_of(const PlanChoice& choice) {
  std::string flag = fmt::format("--{}", choice.name);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

Plan whole_plan(const PartialPlan& partial) {
  Plan plan;
  for (const PlanChoice& choice : plan_choices()) {
    for (const PlanPart& part : choice.parts) {
      if (const auto value = part.given(partial)) { part.set(plan, *value); }
    }
  }
  return plan;
}

bool is_given(const PlanChoice& choice, const PartialPlan& partial) {
  return std::any_of(choice.parts.begin(), choice.parts.end(),
                     [&](const PlanPart& part) { return part.given(partial).has_value(); });
}

bool departs(const PlanChoice& choice, const PartialPlan& partial) {
  if (choice.has_text() || !choice.usual) { return is_given(choice, partial); }
  return choice.parts.front().given(partial).value_or(*choice.usual) != *choice.usual;
}

std::optional<std::int64_t> fixed_value(PlanField field, const PartialPlan& partial) {
  const PlanChoice& choice = choice_of(field);
  const auto value = part_of(field).given(partial);
  const bool is_open = choice.usual_is_open && !choice.has_text() && value == choice.usual;
  return is_open ? std::nullopt : value;
}

std::string text_of(const PlanChoice& choice, const Plan& plan) {
  std::string text;
  for (const PlanPart& part : choice.parts) {
    const std::int64_t value = part.get(plan);
    if (choice.kind == ChoiceKind::words && value != 0) {
      text += fmt::format("{}{}", text.empty() ? "" : ",", part.word);
    }
    if (choice.kind == ChoiceKind::pins && value >= 0) {
      text += fmt::format("{}{}={}", text.empty() ? "" : " ", part.word, value);
    }
  }
  return text;
}

}  // namespace orrery::parallel
