#include "orrery/graph/finding.hpp"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace orrery::graph {

std::string_view name_of(Problem problem) {
  switch (problem) {
    case Problem::duplicate_id: return "duplicate id";
    case Problem::missing_parent: return "missing parent";
    case Problem::cycle: return "cycle";
    case Problem::self_dependency: return "self-dependency";
    case Problem::duplicate_dependency: return "duplicate dependency";
    case Problem::unknown_type: return "unknown type";
    case Problem::missing_attribute: return "missing attribute";
    case Problem::unusable_attribute: return "unusable attribute";
    case Problem::group_members: return "group members";
    case Problem::collective_type: return "collective type";
    case Problem::collective_size: return "collective size";
    case Problem::collective_order: return "collective order";
    case Problem::collective_membership: return "collective membership";
    case Problem::unmatched_send: return "unmatched send";
    case Problem::unmatched_receive: return "unmatched receive";
    case Problem::message_size: return "message size";
    case Problem::deadlock: return "deadlock";
    case Problem::missing_rank: return "missing rank";
    case Problem::not_compared: return "not compared";
    case Problem::odd_attribute: return "odd attribute";
  }
  return "problem";
}

void Findings::add(Problem problem, Example example, bool unsound) {
  const auto at = std::lower_bound(found_.begin(), found_.end(), problem, [&](const Finding& a, Problem wanted) {
    return a.problem < wanted || (a.problem == wanted && !unsound && a.unsound);
  });
  Finding& finding = at != found_.end() && at->problem == problem && at->unsound == unsound
                         ? *at
                         : *found_.insert(at, Finding{problem, unsound, 0, {}});
  ++finding.count;
  if (finding.examples.size() < most_) { finding.examples.push_back(std::move(example)); }
}

std::vector<Finding> Findings::take() { return std::move(found_); }

std::string ranks_text(const std::vector<std::uint64_t>& ranks) {
  constexpr std::ptrdiff_t kMostRanks = 16;
  const auto count = static_cast<std::ptrdiff_t>(ranks.size());
  if (count <= kMostRanks) { return fmt::format("{}", fmt::join(ranks, ", ")); }
  return fmt::format("{}, … ({} ranks)", fmt::join(ranks.begin(), ranks.begin() + kMostRanks, ", "), count);
}

bool is_sound(const std::vector<Finding>& findings) {
  return std::none_of(findings.begin(), findings.end(), [](const Finding& finding) { return finding.unsound; });
}

}  // namespace orrery::graph
