#include "orrery/profile/collective_entry.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "orrery/profile/collective_kind.hpp"
#include "orrery/profile/facts.hpp"
#include "orrery/profile/kernel_shape.hpp"
#include "orrery/profile/metadata.hpp"
#include "orrery/profile/operators.hpp"

namespace orrery::profile {

namespace {

struct StepSpan {
  std::int64_t start = 0, end = 0;
  std::int64_t number = 0;
};

std::vector<StepSpan> step_spans(const RankPlan& plan) {
  std::vector<StepSpan> spans;
  if (plan.guessed_steps) { return spans; }  // their numbers may differ between ranks
  std::map<std::uint64_t, std::int64_t> begins;
  for (const PlannedNode& node : plan.nodes) {
    if (node.kind == NodeKind::step_begin) { begins.emplace(node.step, node.start); }
    if (node.kind != NodeKind::step_end || !begins.contains(node.step)) { continue; }
    spans.push_back({begins[node.step], node.start, static_cast<std::int64_t>(node.step)});
  }
  std::sort(spans.begin(), spans.end(), [](const StepSpan& a, const StepSpan& b) { return a.start < b.start; });
  return spans;
}

// The step in which a time lies; -1 before the first, the number of the step before for a time between two.
std::int64_t step_at(const std::vector<StepSpan>& spans, std::int64_t time) {
  std::int64_t step = -1;
  for (const StepSpan& span : spans) {
    if (time < span.start) { break; }
    step = span.number;
  }
  return step;
}

// The group of a record: its ranks if the list is whole, else those that the file lists for its name, else the name.
std::string group_key(const Profile& profile, const CommRecord& record) {
  std::vector<std::uint64_t> ranks = ranks_of_text(record.ranks);
  for (const ListedGroup& group : profile.groups) {
    if (ranks.empty() && group.name == record.group) { ranks = group.ranks; }
  }
  return ranks.empty() ? record.group : fmt::format("{}", fmt::join(ranks, ","));
}

// Size of the tensors that an operator or annotation of a collective was called with; 0 without shapes.
std::uint64_t input_bytes(const Profile& profile, const Event& operation) {
  if (operation.detail == 0 || profile.comm(operation) != nullptr) { return 0; }
  const auto& [dims, types] = profile.shapes[operation.detail - 1];
  return tensor_bytes(profile.names[dims], profile.names[types]);
}

}  // namespace

bool synchronizes(const CollectiveEntry& entry) {
  const std::string& kind = entry.operation.empty() ? entry.kind : entry.operation;
  return kind == "all_reduce" || kind == "all_gather" || kind == "reduce_scatter" || kind == "all_to_all" ||
         kind == "barrier";
}

bool may_synchronize(const CollectiveEntry& entry) {
  return synchronizes(entry) || (entry.kind == "send_recv" && entry.operation.empty());
}

std::vector<CollectiveEntry> collective_entries(const Profile& profile, const RankPlan& plan, std::size_t rank) {
  const OperatorIndex operators(profile);
  std::unordered_map<std::uint64_t, const Event*> calls;
  for (const Event& event : profile.events) {
    if (event.category == Category::call && event.correlation != 0) { calls.try_emplace(event.correlation, &event); }
  }
  const std::vector<StepSpan> spans = step_spans(plan);
  std::map<std::string, std::uint64_t> numbers;
  std::map<std::pair<std::int64_t, std::string>, std::uint64_t> step_numbers;
  std::vector<CollectiveEntry> entries;
  for (const PlanNode node : plan.communication) {
    const Event& event = *plan.nodes[node].event;
    CollectiveEntry entry;
    entry.rank = rank;
    entry.node = node;
    entry.start = event.start;
    entry.end = event.end();
    entry.record = profile.comm(event);
    entry.kind = collective_kind(profile.name(event), entry.record);
    const auto call = calls.find(event.correlation);
    const Event* const around = call == calls.end() ? nullptr : operators.collective_around(*call->second);
    if (around != nullptr && (entry.kind == "send_recv" || entry.kind == "other")) {
      entry.operation = collective_kind_of_name(profile.name(*around));
    }
    if (around != nullptr && entry.record == nullptr) { entry.input_bytes = input_bytes(profile, *around); }
    entry.step = call == calls.end() ? -2 : step_at(spans, call->second->start);
    entry.number = ++step_numbers[{entry.step, entry.kind}];
    if (entry.record != nullptr) {
      const std::string group = group_key(profile, *entry.record);
      entry.key = !entry.record->id.empty() ? "id " + entry.record->id
                  : entry.record->sequence  ? fmt::format("{} seq {}", group, *entry.record->sequence)
                                            : fmt::format("{} {} {}", group, entry.kind, ++numbers[group + entry.kind]);
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace orrery::profile
