#include "orrery/profile/collective_entry.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "orrery/profile/collective_kind.hpp"
#include "orrery/profile/decimal.hpp"
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

// Ranks of the group of a record: its list if that is whole, else those that the file lists for its name.
std::vector<std::uint64_t> group_ranks(const Profile& profile, const CommRecord& record) {
  std::vector<std::uint64_t> ranks = ranks_of_text(record.ranks);
  for (const ListedGroup& group : profile.groups) {
    if (ranks.empty() && group.name == record.group) { ranks = group.ranks; }
  }
  return ranks;
}

std::string group_key(const Profile& profile, const CommRecord& record) {
  const std::vector<std::uint64_t> ranks = group_ranks(profile, record);
  return ranks.empty() ? record.group : fmt::format("{}", fmt::join(ranks, ","));
}

// A position in a group as a rank.
std::optional<std::uint64_t> rank_at(const std::vector<std::uint64_t>& ranks, std::optional<std::int64_t> position) {
  if (!position || *position < 0) { return std::nullopt; }
  const auto at = static_cast<std::uint64_t>(*position);
  if (ranks.empty()) { return at; }
  return at < ranks.size() ? std::optional(ranks[at]) : std::nullopt;
}

// "nccl:send 0->1", "nccl:recv 1<-0": the own position in the group, and that of the peer.
std::optional<std::int64_t> peer_of_name(std::string_view name) {
  const std::size_t arrow = std::min(name.find("->"), name.find("<-"));
  return arrow == std::string_view::npos ? std::nullopt : integer_of<std::int64_t>(name.substr(arrow + 2));
}

// The ranks of a message or the root, from the record of the kernel or its operator, else from the name of the call.
void set_ends(const Profile& profile, std::uint64_t own, const CommRecord* record, std::string_view call_name,
              CollectiveEntry& entry) {
  const std::vector<std::uint64_t> ranks =
      record == nullptr ? std::vector<std::uint64_t>() : group_ranks(profile, *record);
  const std::string& kind = kind_of(entry);
  if (!is_message(entry)) {
    const bool rooted = kind == "broadcast" || kind == "reduce" || kind == "gather" || kind == "scatter";
    if (rooted && record != nullptr) { entry.root = rank_at(ranks, record->peer_or_root); }
    return;
  }
  std::optional<std::uint64_t> peer;
  if (record != nullptr) {
    // These are ranks; "rank" is a position.
    const auto named = kind == "send" ? record->destination : record->source;
    peer =
        named && *named >= 0 ? std::optional(static_cast<std::uint64_t>(*named)) : rank_at(ranks, record->peer_or_root);
  }
  if (!peer) { peer = rank_at(ranks, peer_of_name(call_name)); }
  if (!peer || *peer == own) { return; }
  entry.from = kind == "send" ? own : *peer;
  entry.to = kind == "send" ? *peer : own;
}

bool names_group(const CommRecord& record) {
  return !record.group.empty() || !record.ranks.empty() || !record.id.empty();
}

// Size of the tensors that an operator or annotation of a collective was called with; 0 without shapes.
std::uint64_t input_bytes(const Profile& profile, const Event& operation) {
  if (operation.detail == 0 || profile.comm(operation) != nullptr) { return 0; }
  const auto& [dims, types] = profile.shapes[operation.detail - 1];
  return tensor_bytes(profile.names[dims], profile.names[types]);
}

}  // namespace

const std::string& kind_of(const CollectiveEntry& entry) {
  return entry.operation.empty() ? entry.kind : entry.operation;
}

bool is_message(const CollectiveEntry& entry) { return kind_of(entry) == "send" || kind_of(entry) == "recv"; }

bool synchronizes(const CollectiveEntry& entry) {
  const std::string& kind = kind_of(entry);
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
    const Event* const recorded = call == calls.end() ? nullptr : operators.record_around(*call->second, profile);
    const CommRecord* about = entry.record;  // that of the operator has the root
    if (recorded != nullptr && (about == nullptr || !about->peer_or_root)) { about = profile.comm(*recorded); }
    set_ends(profile, plan.rank, about, around == nullptr ? std::string_view() : profile.name(*around), entry);
    if (entry.from) {
      const std::string group = about == nullptr ? std::string() : group_key(profile, *about);
      entry.key = fmt::format("{} {}>{} {}", group, *entry.from, *entry.to, entry.step);
    } else if (is_message(entry)) {
      entry.key.clear();
    } else if (entry.record != nullptr && names_group(*entry.record)) {
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
