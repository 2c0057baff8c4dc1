#include "orrery/profile/rank_plan.hpp"

#include <algorithm>
#include <optional>

#include "orrery/profile/device_work.hpp"
#include "orrery/profile/facts.hpp"
#include "orrery/profile/host_chain.hpp"
#include "orrery/profile/operators.hpp"
#include "orrery/profile/polls.hpp"
#include "orrery/profile/stream_waits.hpp"

namespace orrery::profile {

namespace {

std::int64_t median(std::vector<std::int64_t>& values, std::int64_t otherwise) {
  if (values.empty()) { return otherwise; }
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Medians of an idle device that are used where a profile shows none.
constexpr Latencies kUsual = {7'000, 1'000, 5'000};  // ns

class Planner {
 public:
  explicit Planner(const Profile& profile)
      : profile_(profile),
        work_(profile),
        operators_(std::in_place, profile),
        polls_(polls_of(profile, work_)),
        calls_(calls_that_matter(profile, work_, polls_)),
        waits_(waits_of(profile, work_, *operators_, calls_)) {
    plan_.rank = profile.rank.value_or(0);
  }

  RankPlan plan() {
    measure_latencies();
    host_ = build_host(profile_, calls_, *operators_, work_, plan_);
    first_device_ = static_cast<PlanNode>(plan_.nodes.size());
    for (std::uint32_t i = 0; i < work_.operations().size(); ++i) { add_device(i); }
    operators_.reset();  // its memory is needed for the dependencies
    for (std::uint32_t i = 0; i < work_.operations().size(); ++i) { add_dependencies(i); }
    for (const Event* call : calls_) { block(*call); }
    plan_.counts.polls = polls_.size();
    plan_.polls = std::move(polls_);
    return std::move(plan_);
  }

 private:
  [[nodiscard]] const Event& event(std::uint32_t operation) const { return *work_[operation].event; }

  // The latest end of what an operation waits for on the device; nothing if it waits for nothing there.
  [[nodiscard]] std::optional<std::int64_t> device_ready(std::uint32_t operation) const {
    std::optional<std::int64_t> ready;
    const auto later = [&](std::uint32_t source) {
      ready = std::max(ready.value_or(event(source).end()), event(source).end());
    };
    if (work_[operation].previous != kNone) { later(work_[operation].previous); }
    for (const StreamWait& wait : waits_.of_operation[operation]) { later(wait.source); }
    return ready;
  }

  void measure_latencies() {
    std::vector<std::int64_t> launches;
    std::vector<std::int64_t> gaps;
    for (std::uint32_t i = 0; i < work_.operations().size(); ++i) {
      const Event* const call = work_[i].call;
      if (call == nullptr || work_[i].first_of_call != i) { continue; }
      const auto ready = device_ready(i);
      const std::int64_t start = event(i).start;
      if ((!ready || *ready <= call->start) && start >= call->start && start - call->start < 10 * kUnexplained) {
        launches.push_back(start - call->start);
      }
      if (ready && call->end() + kUnexplained < *ready && start >= *ready && start - *ready < kUnexplained) {
        gaps.push_back(start - *ready);
      }
    }
    std::vector<std::int64_t> returns;
    for (const auto& [call, sources] : waits_.of_call) {
      for (const std::uint32_t source : sources) {
        const std::int64_t end = event(source).end();
        if (end > call->start + kClockTolerance && end <= call->end() && call->end() - end < kUnexplained) {
          returns.push_back(call->end() - end);
        }
      }
    }
    plan_.latencies = {median(launches, kUsual.launch), median(gaps, kUsual.gap), median(returns, kUsual.return_)};
  }

  void add_device(std::uint32_t operation) {
    const Event& event = *work_[operation].event;
    PlannedNode node;
    node.kind = NodeKind::device;
    node.event = &event;
    node.start = event.start;
    node.duration = event.duration;
    node.track = event.track;
    if (const Event* const call = work_[operation].call; call != nullptr) {
      node.operation = operators_->around(*call);
    }
    if (work_[operation].communicates) { plan_.communication.push_back(static_cast<PlanNode>(plan_.nodes.size())); }
    plan_.device_end_ns = std::max(plan_.device_end_ns, event.end());
    plan_.nodes.push_back(std::move(node));
    ++plan_.counts.device_operations;
  }

  [[nodiscard]] PlanNode node_of(std::uint32_t operation) const { return first_device_ + operation; }

  void add_dependencies(std::uint32_t operation) {
    const DeviceOperation& self = work_[operation];
    PlannedNode& node = plan_.nodes[node_of(operation)];
    if (self.previous != kNone) {
      node.deps.push_back({node_of(self.previous), Cause::stream, plan_.latencies.gap});
      plan_.counts.overlaps += event(self.previous).end() > node.start ? 1 : 0;
    }
    for (const StreamWait& wait : waits_.of_operation[operation]) {
      node.deps.push_back({node_of(wait.source), wait.cause, plan_.latencies.gap});
      ++(wait.cause == Cause::named_wait ? plan_.counts.named_waits : plan_.counts.rule_waits);
    }
    if (self.call == nullptr) {
      ++plan_.counts.without_call;
    } else if (self.first_of_call == operation) {
      node.deps.push_back({*host_.before_call.find(self.call), Cause::launch, plan_.latencies.launch});
      plan_.counts.starts_before_call += node.start < self.call->start ? 1 : 0;
    } else {
      ++plan_.counts.graph_operations;
      inside_graph(operation, node);
    }
    settle(operation, node);
  }

  // Operations that one call launched keep their recorded order: no host takes part.
  void inside_graph(std::uint32_t operation, PlannedNode& node) {
    const auto all = work_.launched_by(*work_[operation].call);
    const auto self = std::lower_bound(all.begin(), all.end(), operation);
    constexpr std::ptrdiff_t kLook = 64;
    std::uint32_t source = kNone;
    for (auto at = self - std::min<std::ptrdiff_t>(self - all.begin(), kLook); at != self; ++at) {
      if (event(*at).end() <= node.start && (source == kNone || event(*at).end() > event(source).end())) {
        source = *at;
      }
    }
    if (source != kNone && source != work_[operation].previous) {
      node.deps.push_back({node_of(source), Cause::stream, plan_.latencies.gap});
    }
  }

  // Sets the lag of the dependency that decided the recorded start to what was recorded, where it is no waiting.
  void settle(std::uint32_t operation, PlannedNode& node) {
    if (node.deps.empty()) { return; }
    if (excess(node) > kUnexplained) { explain(node); }
    Dependency* binding = nullptr;
    for (Dependency& dependency : node.deps) {
      if (binding == nullptr || ready(dependency) > ready(*binding)) { binding = &dependency; }
    }
    const std::int64_t late = node.start - ready(*binding);
    // None may contradict the record.
    for (Dependency& dependency : node.deps) {
      dependency.lag -= std::max<std::int64_t>(ready(dependency) - node.start, 0);
    }
    binding->lag += std::max<std::int64_t>(late, 0);
    if (late > kUnexplained && work_[operation].first_of_call == operation) {
      node.unexplained = late;
      plan_.counts.unexplained_idle_ns += late;
    }
  }

  [[nodiscard]] std::int64_t ready(const Dependency& dependency) const {
    return plan_.nodes[dependency.node].end() + dependency.lag;
  }

  // How much later than everything that is known to allow it an operation started.
  [[nodiscard]] std::int64_t excess(const PlannedNode& node) const {
    std::int64_t latest = ready(node.deps.front());
    for (const Dependency& dependency : node.deps) { latest = std::max(latest, ready(dependency)); }
    return node.start - latest;
  }

  // An operation of another stream that ended just when this one started.
  void explain(PlannedNode& node) {
    std::uint32_t best = kNone;
    for (TrackIndex stream = 0; stream < work_.stream_count(); ++stream) {
      if (stream == node.track) { continue; }
      const auto& operations = work_.stream(stream);
      auto after = std::lower_bound(operations.begin(), operations.end(), node.start,
                                    [&](std::uint32_t other, std::int64_t time) { return event(other).start < time; });
      if (after == operations.begin()) { continue; }
      std::uint32_t source = *std::prev(after);
      while (source != kNone && event(source).end() > node.start + kClockTolerance) { source = work_[source].previous; }
      if (source == kNone || node.start - event(source).end() > kUnexplained) { continue; }
      if (best == kNone || event(source).end() > event(best).end()) { best = source; }
    }
    if (best == kNone) { return; }
    node.deps.push_back({node_of(best), Cause::coincidence, plan_.latencies.gap});
    ++plan_.counts.coincidences;
  }

  // A blocking call returns after what it waits for; what is left of it is its own cost.
  void block(const Event& call) {
    const auto found = waits_.of_call.find(&call);
    const PlanNode* const returns = host_.return_of.find(&call);
    if (found == waits_.of_call.end() || returns == nullptr) { return; }
    PlannedNode& node = plan_.nodes[*returns];
    PlannedNode& body = plan_.nodes[*returns - 1];
    const std::int64_t end = body.start + body.duration;
    std::int64_t waited_until = body.start;
    for (const std::uint32_t source : found->second) { waited_until = std::max(waited_until, event(source).end()); }
    const bool waited = waited_until > body.start;
    const std::int64_t own = waited ? std::min(body.duration, plan_.latencies.return_) : body.duration;
    for (const std::uint32_t source : found->second) {
      std::int64_t lag = plan_.latencies.return_;
      if (waited && event(source).end() == waited_until) { lag = end - waited_until; }
      lag = std::min(lag, end - event(source).end());
      node.deps.push_back({node_of(source), Cause::sync, lag});
    }
    if (call_kind(profile_.name(call)) == CallKind::copy) {
      // The host's part of a copy is work; it blocks until the device is done.
      const std::int64_t blocked = std::max<std::int64_t>(std::min(waited_until, end) - body.start - own, 0);
      plan_.counts.blocked_ns += blocked;
      plan_.counts.blocked_with_cause_ns += blocked;
    } else {
      count_blocked(body.duration, own, waited ? std::max<std::int64_t>(end - waited_until, 0) : body.duration, waited);
    }
    body.duration = own;
    node.start = end;
  }

  void count_blocked(std::int64_t duration, std::int64_t own, std::int64_t rest, bool waited) {
    // What a call takes without waiting is its own cost; more than that needs a cause.
    const std::int64_t usual = plan_.latencies.return_ + kUnexplained;
    if (!waited && duration <= usual) { return; }
    const std::int64_t blocked = std::max<std::int64_t>(duration - own, waited ? 0 : duration);
    const std::int64_t without = waited ? std::max<std::int64_t>(rest - usual, 0) : duration;
    plan_.counts.blocked_ns += blocked;
    plan_.counts.blocked_with_cause_ns += std::max<std::int64_t>(blocked - without, 0);
  }

  const Profile& profile_;
  DeviceWork work_;
  std::optional<OperatorIndex> operators_;
  std::vector<Event> polls_;
  std::vector<const Event*> calls_;
  Waits waits_;
  RankPlan plan_;
  HostChain host_;
  PlanNode first_device_ = 0;
};

}  // namespace

RankPlan plan_of(const Profile& profile) { return Planner(profile).plan(); }

}  // namespace orrery::profile
