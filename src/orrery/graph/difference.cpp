#include "orrery/graph/difference.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "orrery/core/text.hpp"
#include "orrery/graph/matching.hpp"
#include "orrery/graph/statistics.hpp"

namespace orrery::graph {

namespace {

constexpr std::size_t kElements = 8;  // of a list that a message shows
constexpr std::size_t kIds = 12;      // of dependencies that a message names

std::string element_text(const Value& value, std::size_t i) {
  if (const auto number = value.as_int(i)) { return std::to_string(*number); }
  if (const auto number = value.as_uint(i)) { return std::to_string(*number); }
  if (const auto number = value.as_double(i)) { return fmt::format("{}", *number); }
  return "?";
}

std::string value_text(const Value& value) {
  if (const auto text = value.as_text()) { return quote(*text); }
  if (!is_list(value.type())) { return value.type() == ValueType::none ? "nothing" : element_text(value, 0); }
  std::string text = "[";
  const auto texts = value.texts();
  for (std::size_t i = 0; i < std::min(value.size(), kElements); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ", ", is_text(value.type()) ? quote(texts[i]) : element_text(value, i));
  }
  return text + (value.size() > kElements ? fmt::format(", … {} in all]", value.size()) : "]");
}

std::string change(const Attribute& a, const Attribute& b) {
  const bool same_type = a.value.type() == b.value.type();
  if (a.value == b.value) { return fmt::format("{}: its comment, or fields that are not in the schema", a.name); }
  return fmt::format("{}: {}{} -> {}{}", a.name, value_text(a.value),
                     same_type ? "" : fmt::format(" ({})", name_of(a.value.type())), value_text(b.value),
                     same_type ? "" : fmt::format(" ({})", name_of(b.value.type())));
}

// Attributes of one list that the other does not have, in their order; each occurrence matches one of the other.
template <class List>
std::pair<std::vector<Attribute>, std::vector<Attribute>> unmatched(const List& a, const List& b,
                                                                    const DifferenceOptions& options) {
  std::vector<Attribute> of_a;
  std::vector<Attribute> of_b;
  for (const Attribute& attribute : b) {
    if (counts(attribute.name, options)) { of_b.push_back(attribute); }
  }
  for (const Attribute& attribute : a) {
    if (!counts(attribute.name, options)) { continue; }
    const auto same = std::find(of_b.begin(), of_b.end(), attribute);
    if (same == of_b.end()) {
      of_a.push_back(attribute);
    } else {
      of_b.erase(same);
    }
  }
  return {std::move(of_a), std::move(of_b)};
}

template <class List>
void compare_attributes(const List& a, const List& b, const DifferenceOptions& options,
                        std::vector<std::string>& what) {
  if (std::equal(a.begin(), a.end(), b.begin(), b.end())) { return; }
  auto [of_a, of_b] = unmatched(a, b, options);
  for (const Attribute& attribute : of_a) {
    const auto other = std::find_if(of_b.begin(), of_b.end(), [&](const auto& x) { return x.name == attribute.name; });
    if (other == of_b.end()) {
      what.push_back(fmt::format("{}: {} -> absent", attribute.name, value_text(attribute.value)));
    } else {
      what.push_back(change(attribute, *other));
      of_b.erase(other);
    }
  }
  for (const Attribute& attribute : of_b) {
    what.push_back(fmt::format("{}: absent -> {}", attribute.name, value_text(attribute.value)));
  }
}

std::string ids_text(const std::vector<std::uint64_t>& ids) {
  const std::span<const std::uint64_t> shown(ids.data(), std::min(ids.size(), kIds));
  return fmt::format("{}{}", fmt::join(shown, ", "),
                     ids.size() > kIds ? fmt::format(" and {} more", ids.size() - kIds) : "");
}

class Comparer {
 public:
  Comparer(const Graph& a, const Graph& b, const DifferenceOptions& options)
      : a_(a), b_(b), options_(options), matching_(match(a, b, options)) {}

  Difference difference() {
    if (options_.metadata) { compare_metadata(); }
    for (NodeIndex node = 0; node < a_.node_count(); ++node) {
      const NodeIndex other = matching_.of_a[node];
      if (other == kUnmatched) {
        ++result_.only_in_a;
        report({DifferenceKind::only_in_a, a_.id(node), std::nullopt, std::string(a_.name(node)), {}});
      } else {
        ++result_.matched;
        compare(node, other);
      }
    }
    for (NodeIndex node = 0; node < b_.node_count(); ++node) {
      if (matching_.of_b[node] != kUnmatched) { continue; }
      ++result_.only_in_b;
      report({DifferenceKind::only_in_b, std::nullopt, b_.id(node), std::string(b_.name(node)), {}});
    }
    return std::move(result_);
  }

 private:
  void report(DifferingNode node) {
    if (result_.first.size() < options_.most) { result_.first.push_back(std::move(node)); }
  }

  void compare_metadata() {
    std::vector<std::string> what;
    if (a_.metadata().version != b_.metadata().version) {
      what.push_back(fmt::format("version: {} -> {}", quote(a_.metadata().version), quote(b_.metadata().version)));
    }
    compare_attributes(a_.metadata().attributes, b_.metadata().attributes, options_, what);
    if (a_.metadata().unknown != b_.metadata().unknown) { what.emplace_back("fields that are not in the schema"); }
    result_.metadata = what.size();
    if (!what.empty()) { report({DifferenceKind::metadata, std::nullopt, std::nullopt, "", std::move(what)}); }
  }

  void compare(NodeIndex a, NodeIndex b) {
    what_.clear();
    if (options_.names && a_.name(a) != b_.name(b)) {
      what_.push_back(fmt::format("name: {} -> {}", quote(a_.name(a)), quote(b_.name(b))));
    }
    if (a_.type(a) != b_.type(b)) {
      what_.push_back(fmt::format("type: {} -> {}", type_text(a_.type(a)), type_text(b_.type(b))));
    }
    if (options_.times) {
      compare_numbers("start_time_micros", a_.start_us(a), b_.start_us(b));
      compare_numbers("duration_micros", a_.duration_us(a), b_.duration_us(b));
    }
    if (options_.io && a_.inputs(a) != b_.inputs(b)) { what_.emplace_back("inputs differ"); }
    if (options_.io && a_.outputs(a) != b_.outputs(b)) { what_.emplace_back("outputs differ"); }
    compare_attributes(a_.attributes(a), b_.attributes(b), options_, what_);
    if (a_.unknown(a) != b_.unknown(b)) { what_.emplace_back("fields that are not in the schema"); }
    compare_dependencies("data_deps", a_.data_deps(a), b_.data_deps(b));
    compare_dependencies("ctrl_deps", a_.ctrl_deps(a), b_.ctrl_deps(b));
    if (what_.empty()) { return; }
    ++result_.changed;
    report({DifferenceKind::changed, a_.id(a), b_.id(b), std::string(a_.name(a)), what_});
  }

  void compare_numbers(const char* field, std::uint64_t a, std::uint64_t b) {
    if (a != b) { what_.push_back(fmt::format("{}: {} -> {}", field, a, b)); }
  }

  // Missing parents are all equal: their ids have no meaning.
  void compare_dependencies(const char* field, std::span<const NodeIndex> a, std::span<const NodeIndex> b) {
    parents_of_b_.assign(b.begin(), b.end());
    for (NodeIndex& parent : parents_of_b_) { parent = b_.present(parent) ? parent : kUnmatched; }
    std::sort(parents_of_b_.begin(), parents_of_b_.end());
    std::vector<bool> used(parents_of_b_.size(), false);
    std::vector<std::uint64_t> without;
    for (const NodeIndex parent : a) {
      const bool is_present = a_.present(parent);
      const NodeIndex expected = is_present ? matching_.of_a[parent] : kUnmatched;
      auto at = std::lower_bound(parents_of_b_.begin(), parents_of_b_.end(), expected) - parents_of_b_.begin();
      while (std::cmp_less(at, parents_of_b_.size()) && parents_of_b_[static_cast<std::size_t>(at)] == expected &&
             used[static_cast<std::size_t>(at)]) {
        ++at;
      }
      const auto position = static_cast<std::size_t>(at);
      if (position < parents_of_b_.size() && parents_of_b_[position] == expected &&
          !(is_present && expected == kUnmatched)) {
        used[position] = true;
      } else {
        without.push_back(a_.id(parent));
      }
    }
    std::vector<std::uint64_t> with;
    for (std::size_t i = 0; i < parents_of_b_.size(); ++i) {
      if (used[i]) { continue; }
      with.push_back(parents_of_b_[i] == kUnmatched ? missing_id(b) : b_.id(parents_of_b_[i]));
    }
    if (without.empty() && with.empty()) { return; }
    std::string text = fmt::format("{}:", field);
    if (!without.empty()) { text += fmt::format(" without {} of A", ids_text(without)); }
    if (!with.empty()) { text += fmt::format("{} with {} of B", without.empty() ? "" : ";", ids_text(with)); }
    what_.push_back(std::move(text));
  }

  [[nodiscard]] std::uint64_t missing_id(std::span<const NodeIndex> parents) const {
    for (const NodeIndex parent : parents) {
      if (!b_.present(parent)) { return b_.id(parent); }
    }
    return 0;
  }

  const Graph& a_;
  const Graph& b_;
  const DifferenceOptions& options_;
  Matching matching_;
  Difference result_;
  std::vector<std::string> what_;
  std::vector<NodeIndex> parents_of_b_;
};

}  // namespace

std::string_view name_of(DifferenceKind kind) {
  switch (kind) {
    case DifferenceKind::metadata: return "metadata";
    case DifferenceKind::changed: return "changed";
    case DifferenceKind::only_in_a: return "only in A";
    case DifferenceKind::only_in_b: return "only in B";
  }
  return "differs";
}

Difference difference(const Graph& a, const Graph& b, const DifferenceOptions& options) {
  return Comparer(a, b, options).difference();
}

}  // namespace orrery::graph
