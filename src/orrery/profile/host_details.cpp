#include "orrery/profile/host_details.hpp"

#include <algorithm>
#include <unordered_map>

#include "orrery/profile/collective_kind.hpp"
#include "orrery/profile/metadata.hpp"
#include "orrery/profile/operators.hpp"

namespace orrery::profile {

namespace {

std::uint64_t add_groups(Profile& profile, const HostTrace& host) {
  std::uint64_t added = 0;
  for (const ListedGroup& group : host.groups) {
    if (group.ranks.empty()) { continue; }
    const auto found = std::find_if(profile.groups.begin(), profile.groups.end(),
                                    [&](const ListedGroup& listed) { return listed.name == group.name; });
    if (found == profile.groups.end()) {
      profile.groups.push_back(group);
    } else if (found->ranks.empty()) {
      found->ranks = group.ranks;
    } else {
      continue;
    }
    ++added;
  }
  return added;
}

void add_to_operators(Profile& profile, const HostTrace& host, const Link& link, HostDetails& added) {
  for (std::size_t i = 0; i < host.nodes.size(); ++i) {
    const HostNode& node = host.nodes[i];
    if (node.detail == 0 || link.event_of[i] == nullptr) { continue; }
    Event& event = profile.events[static_cast<std::size_t>(link.event_of[i] - profile.events.data())];
    if (Profile::has_comm(event.category, profile.name(event))) {
      const CommRecord& record = host.comms[node.detail - 1];
      added.waits += record.name == "wait" ? 1 : 0;
      if (event.detail > 0) {
        CommRecord& known = profile.comms[event.detail - 1];
        if (!known.peer_or_root) { known.peer_or_root = record.peer_or_root; }
        continue;
      }
      profile.comms.push_back(record);
      event.detail = static_cast<std::uint32_t>(profile.comms.size());
    } else if (event.detail == 0 && host.names[host.shapes[node.detail - 1].first] != "[]") {
      const auto& [shapes, types] = host.shapes[node.detail - 1];
      profile.shapes.emplace_back(profile.names.add(host.names[shapes]), profile.names.add(host.names[types]));
      event.detail = static_cast<std::uint32_t>(profile.shapes.size());
      ++added.shapes;
    }
  }
}

// Kernels take the record of the operator that launched them.
std::uint64_t add_to_kernels(Profile& profile) {
  const OperatorIndex operators(profile);
  std::unordered_map<std::uint64_t, const Event*> calls;
  for (const Event& event : profile.events) {
    if (event.category == Category::call && event.correlation != 0) { calls.try_emplace(event.correlation, &event); }
  }
  std::uint64_t added = 0;
  for (Event& event : profile.events) {
    if (event.category != Category::kernel || event.detail > 0 || !is_communication(profile.name(event))) { continue; }
    const auto call = calls.find(event.correlation);
    const Event* const record = call == calls.end() ? nullptr : operators.record_around(*call->second, profile);
    if (record == nullptr) { continue; }
    event.detail = record->detail;
    ++added;
  }
  return added;
}

}  // namespace

HostDetails add_host_details(Profile& profile, const HostTrace& host, const Link& link) {
  HostDetails added;
  added.groups = add_groups(profile, host);
  add_to_operators(profile, host, link, added);
  added.collectives = add_to_kernels(profile);
  return added;
}

}  // namespace orrery::profile
