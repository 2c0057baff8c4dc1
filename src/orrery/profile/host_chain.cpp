#include "orrery/profile/host_chain.hpp"

#include <algorithm>

#include "orrery/profile/facts.hpp"
#include "orrery/profile/repeated_steps.hpp"
#include "orrery/profile/stream_waits.hpp"
#include "orrery/profile/thread_wakes.hpp"

namespace orrery::profile {

namespace {

// What happens on a thread at a time. The order is that of things at the same time.
enum class ItemKind : std::uint8_t { begin, step_end, mark, wake, step_begin, call, end };

struct Item {
  std::int64_t time = 0;
  ItemKind kind = ItemKind::call;
  const Event* call = nullptr;
  std::uint64_t number = 0;  // of steps: the step; of marks and wakes: the wake
};

class HostBuilder {
 public:
  HostBuilder(const Profile& profile, const OperatorIndex& operators, const DeviceWork& work, RankPlan& plan)
      : profile_(profile), operators_(operators), work_(work), plan_(plan), items_(profile.threads.size()) {}

  HostChain build(const std::vector<const Event*>& calls) {
    std::vector<bool> threads(profile_.threads.size());
    reserve_items(calls);
    for (const Event* call : calls) {
      threads[call->track] = true;
      items_[call->track].push_back({call->start, ItemKind::call, call, 0});
    }
    if (!steps(threads)) { guess_steps(); }
    wakes_ = wakes_of(profile_, threads);
    woken_.assign(wakes_.size(), kNoNode);
    marks_.assign(wakes_.size(), kNoNode);
    for (std::size_t i = 0; i < wakes_.size(); ++i) {
      const Wake& wake = wakes_[i];
      items_[wake.waker].push_back({wake.done, ItemKind::mark, nullptr, i});
      items_[wake.sleeper].push_back({wake.awake, ItemKind::wake, nullptr, i});
    }
    ends(threads);
    reserve();
    for (TrackIndex thread = 0; thread < items_.size(); ++thread) {
      chain(thread);
      std::vector<Item>().swap(items_[thread]);  // releases the memory, which an assignment would keep
    }
    for (std::size_t i = 0; i < wakes_.size(); ++i) { connect(i); }
    made_.before_call.sort();
    made_.return_of.sort();
    return std::move(made_);
  }

 private:
  // Room for the calls of each thread, and a few items more: growing would need them twice.
  void reserve_items(const std::vector<const Event*>& calls) {
    std::vector<std::size_t> counts(profile_.threads.size());
    for (const Event* call : calls) { ++counts[call->track]; }
    for (std::size_t thread = 0; thread < counts.size(); ++thread) {
      if (counts[thread] > 0) { items_[thread].reserve(counts[thread] + counts[thread] / 8 + 16); }
    }
  }

  // Room for the host's nodes (work before an item, the item, its return) and the device's.
  void reserve() {
    std::size_t nodes = work_.operations().size();
    for (const auto& items : items_) { nodes += 3 * items.size(); }
    plan_.nodes.reserve(nodes);
  }

  // Whether there are any.
  bool steps(std::vector<bool>& threads) {
    bool any = false;
    for (const Event& event : profile_.events) {
      if (event.category != Category::operation && event.category != Category::annotation) { continue; }
      const auto number = step_number(profile_.name(event));
      if (!number) { continue; }
      any = true;
      threads[event.track] = true;
      items_[event.track].push_back({event.start, ItemKind::step_begin, nullptr, *number});
      items_[event.track].push_back({event.end(), ItemKind::step_end, nullptr, *number});
    }
    return any;
  }

  void guess_steps() {
    const RepeatedSteps found = repeated_steps(work_);
    for (std::size_t i = 1; i < found.begins.size(); ++i) {
      items_[found.thread].push_back({found.begins[i - 1], ItemKind::step_begin, nullptr, i});
      items_[found.thread].push_back({found.begins[i], ItemKind::step_end, nullptr, i});
    }
    plan_.guessed_steps = !found.begins.empty();
  }

  // The first and the last event of each thread: there is work before the first call and after the last.
  void ends(const std::vector<bool>& threads) {
    std::vector<std::int64_t> first(threads.size(), INT64_MAX);
    std::vector<std::int64_t> last(threads.size(), INT64_MIN);
    bool any = false;
    for (const Event& event : profile_.events) {
      const bool on_host = event.category == Category::operation || event.category == Category::annotation ||
                           event.category == Category::call;
      if (!on_host || !threads[event.track]) { continue; }
      first[event.track] = std::min(first[event.track], event.start);
      last[event.track] = std::max(last[event.track], event.end());
      plan_.first_ns = any ? std::min(plan_.first_ns, event.start) : event.start;
      plan_.last_ns = any ? std::max(plan_.last_ns, event.end()) : event.end();
      any = true;
    }
    for (TrackIndex thread = 0; thread < last.size(); ++thread) {
      if (items_[thread].empty()) { continue; }
      items_[thread].push_back({last[thread], ItemKind::end, nullptr, 0});
      // A thread whose first event is woken up by another thread does not start by itself.
      const bool woken = std::any_of(wakes_.begin(), wakes_.end(), [&](const Wake& wake) {
        return wake.sleeper == thread && wake.asleep == wake.awake;
      });
      if (!woken) { items_[thread].push_back({first[thread], ItemKind::begin, nullptr, 0}); }
    }
  }

  PlanNode add(NodeKind kind, TrackIndex thread, std::int64_t start, std::int64_t duration, PlanNode previous) {
    PlannedNode node;
    node.kind = kind;
    node.track = thread;
    node.start = start;
    node.duration = duration;
    if (previous != kNoNode) { node.deps.push_back({previous, Cause::order, 0}); }
    plan_.nodes.push_back(std::move(node));
    return static_cast<PlanNode>(plan_.nodes.size() - 1);
  }

  void chain(TrackIndex thread) {
    auto& items = items_[thread];
    std::stable_sort(items.begin(), items.end(),
                     [](const Item& a, const Item& b) { return a.time != b.time ? a.time < b.time : a.kind < b.kind; });
    PlanNode last = kNoNode;
    std::int64_t now = items.empty() ? 0 : items.front().time;
    for (std::size_t i = 0; i < items.size(); ++i) {
      const Item& item = items[i];
      if (last == kNoNode && item.kind == ItemKind::wake) {
        now = item.time;  // the first thing on the thread: only its waker decides when
      } else if (last == kNoNode) {
        last = add(NodeKind::point, thread, item.time, 0, kNoNode);
      } else if (item.time > now) {
        last = segment(thread, item, now, last);
      }
      now = std::max(now, item.time);
      last = act(thread, item, i + 1 < items.size() ? items[i + 1].time : INT64_MAX, now, last);
      now = std::max(now, plan_.nodes[last].end());
    }
  }

  // Work until an item. Before a wake-up, only what the thread did before it slept.
  PlanNode segment(TrackIndex thread, const Item& item, std::int64_t now, PlanNode last) {
    const std::int64_t until =
        item.kind == ItemKind::wake ? std::clamp(wakes_[item.number].asleep, now, item.time) : item.time;
    if (until == now) { return last; }
    const PlanNode node = add(NodeKind::segment, thread, now, until - now, last);
    if (item.call != nullptr) { plan_.nodes[node].operation = operators_.around(*item.call); }
    return node;
  }

  PlanNode act(TrackIndex thread, const Item& item, std::int64_t next, std::int64_t now, PlanNode last) {
    switch (item.kind) {
      case ItemKind::step_begin:
      case ItemKind::step_end: {
        const auto kind = item.kind == ItemKind::step_begin ? NodeKind::step_begin : NodeKind::step_end;
        const PlanNode node = add(kind, thread, now, 0, last);
        plan_.nodes[node].step = item.number;
        return node;
      }
      case ItemKind::mark: return marks_[item.number] = add(NodeKind::point, thread, now, 0, last);
      case ItemKind::wake: return woken_[item.number] = add(NodeKind::point, thread, now, 0, last);
      case ItemKind::begin:
      case ItemKind::end: return last;
      case ItemKind::call: break;
    }
    const std::int64_t duration = std::max<std::int64_t>(std::min(item.call->end(), next) - now, 0);
    made_.before_call.add(item.call, last);
    const PlanNode node = add(NodeKind::call, thread, now, duration, last);
    plan_.nodes[node].event = item.call;
    plan_.nodes[node].operation = operators_.around(*item.call);
    const CallKind kind = call_kind(profile_.name(*item.call));
    if (kind == CallKind::other || kind == CallKind::stream_wait || kind == CallKind::event_record) { return node; }
    const PlanNode returned = add(NodeKind::return_, thread, now + duration, 0, node);
    plan_.nodes[returned].event = item.call;
    made_.return_of.add(item.call, returned);
    return returned;
  }

  void connect(std::size_t wake) {
    if (woken_[wake] == kNoNode || marks_[wake] == kNoNode) { return; }
    PlannedNode& node = plan_.nodes[woken_[wake]];
    const PlannedNode& mark = plan_.nodes[marks_[wake]];
    if (mark.start > node.start) { return; }
    node.deps.push_back({marks_[wake], Cause::wake, node.start - mark.end()});
    ++plan_.counts.wakes;
  }

  const Profile& profile_;
  const OperatorIndex& operators_;
  const DeviceWork& work_;
  RankPlan& plan_;
  std::vector<std::vector<Item>> items_;
  std::vector<Wake> wakes_;
  std::vector<PlanNode> woken_, marks_;
  HostChain made_;
};

}  // namespace

std::vector<const Event*> calls_that_matter(const Profile& profile, const DeviceWork& work,
                                            const std::vector<Event>& polls) {
  std::vector<const Event*> calls;
  for (const Event& poll : polls) { calls.push_back(&poll); }
  for (const Event& event : profile.events) {
    if (event.category != Category::call) { continue; }
    const CallKind kind = call_kind(profile.name(event));
    if (!work.launched_by(event).empty() || (kind != CallKind::other && kind != CallKind::query)) {
      calls.push_back(&event);
    }
  }
  std::stable_sort(calls.begin(), calls.end(), [](const Event* a, const Event* b) { return a->start < b->start; });
  return calls;
}

HostChain build_host(const Profile& profile, const std::vector<const Event*>& calls, const OperatorIndex& operators,
                     const DeviceWork& work, RankPlan& plan) {
  return HostBuilder(profile, operators, work, plan).build(calls);
}

}  // namespace orrery::profile
