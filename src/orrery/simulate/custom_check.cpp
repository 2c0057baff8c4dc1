#include "orrery/simulate/custom_check.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "orrery/simulate/event.hpp"

namespace orrery::simulate {

namespace {

constexpr std::size_t kMostReported = 3;  // anomalies of one kind

using Sources = std::vector<bool>;  // by position: its data has arrived

struct StepAt {
  std::uint32_t position = 0, step = 0;
  friend bool operator==(const StepAt&, const StepAt&) = default;
};

// Runs the graphs without a clock: every step that can run runs. The order matters only for receives of the same key:
// the k-th receive gets the k-th message, as in the machine.
class UntimedRun {
 public:
  explicit UntimedRun(const CustomUse& use) : use_(use), n_(static_cast<std::uint32_t>(use.programs.size())) {
    for (const CustomProgram& program : use.programs) {
      std::vector<std::uint32_t> parents;
      for (const CustomStep& step : program.steps) { parents.push_back(step.parents); }
      open_parents_.push_back(std::move(parents));
      sources_.emplace_back(program.steps.size(), Sources());
      ended_.emplace_back(program.steps.size(), false);
    }
    reached_.assign(n_, Sources(n_, false));
    sent_.assign(n_, 0);
    received_.assign(n_, 0);
  }

  Result<std::vector<std::string>> run() {
    for (std::uint32_t position = 0; position < n_; ++position) {
      for (const std::uint32_t step : use_.programs[position].start) { ready_.push_back({position, step}); }
    }
    while (!ready_.empty()) {
      const StepAt next = ready_.front();
      ready_.pop_front();
      begin(next);
    }
    std::vector<std::string> anomalies;
    if (const auto stuck = first_stuck()) {
      Failure failure = reason(*stuck);
      if (!depends_on_order()) { return tl::make_unexpected(std::move(failure)); }
      anomalies.push_back(
          fmt::format("custom collective {}: may deadlock, depending on which of several receives of the "
                      "same messages runs first: {}",
                      use_.prefix, failure.text()));
      return anomalies;
    }
    find_unreceived(anomalies);
    find_missing_sources(anomalies);
    find_missing_bytes(anomalies);
    return anomalies;
  }

 private:
  struct Pending {
    std::deque<StepAt> messages, receives;
  };
  struct ReadyMessages {
    std::uint32_t arrived = 0;
    std::deque<StepAt> waiting;
  };

  [[nodiscard]] const CustomStep& at(const StepAt& place) const {
    return use_.programs[place.position].steps[place.step];
  }
  [[nodiscard]] Sources& sources(const StepAt& place) { return sources_[place.position][place.step]; }

  [[nodiscard]] MessageKey key_of(const StepAt& place) const {
    const CustomStep& step = at(place);
    const std::uint32_t peer = use_.members[step.peer];
    const bool sends = step.act == CustomStep::Act::send;
    return {step.tag, step.amount, sends ? place.position : peer, sends ? peer : place.position};
  }

  void begin(const StepAt& place) {
    Sources& own = sources(place);
    own.resize(n_, false);
    own[place.position] = true;
    switch (at(place).act) {
      case CustomStep::Act::compute: return end(place);
      case CustomStep::Act::send: return use_.rendezvous ? request_departure(place) : depart(place);
      case CustomStep::Act::receive: {
        if (use_.rendezvous) { announce(place); }
        Pending& pending = pending_[key_of(place)];
        if (pending.messages.empty()) { return pending.receives.push_back(place); }
        const StepAt sender = pending.messages.front();
        pending.messages.pop_front();
        return deliver(sender, place);
      }
    }
  }

  // The message departs, and its send step ends.
  void depart(const StepAt& place) {
    sent_[place.position] += at(place).amount;
    Pending& pending = pending_[key_of(place)];
    if (pending.receives.empty()) {
      pending.messages.push_back(place);
    } else {
      const StepAt receiver = pending.receives.front();
      pending.receives.pop_front();
      deliver(place, receiver);
    }
    end(place);
  }

  // Rendezvous: a receive sends a ready-to-receive message, which is matched by key without the size and lets one send
  // depart.
  [[nodiscard]] MessageKey ready_key(const StepAt& place) const {
    MessageKey where = key_of(place);
    where.bytes = 0;
    return where;
  }
  void request_departure(const StepAt& place) {
    ReadyMessages& ready = ready_messages_[ready_key(place)];
    if (ready.arrived == 0) { return ready.waiting.push_back(place); }
    --ready.arrived;
    depart(place);
  }
  void announce(const StepAt& place) {
    ReadyMessages& ready = ready_messages_[ready_key(place)];
    if (ready.waiting.empty()) {
      ++ready.arrived;
      return;
    }
    const StepAt sender = ready.waiting.front();
    ready.waiting.pop_front();
    depart(sender);
  }

  void deliver(const StepAt& sender, const StepAt& receiver) {
    received_[receiver.position] += at(receiver).amount;
    const Sources of_sender = sources(sender);
    merge(sources(receiver), of_sender);
    end(receiver);
  }

  static void merge(Sources& into, const Sources& from) {
    into.resize(from.size(), false);
    for (std::size_t i = 0; i < from.size(); ++i) { into[i] = into[i] || from[i]; }
  }

  void end(const StepAt& place) {
    ended_[place.position][place.step] = true;
    const Sources arrived = sources(place);
    merge(reached_[place.position], arrived);
    for (const std::uint32_t child : at(place).children) {
      merge(sources_[place.position][child], arrived);
      if (--open_parents_[place.position][child] == 0) { ready_.push_back({place.position, child}); }
    }
  }

  // ---- deadlocks ---------------------------------------------------------------------------------------------------

  // Whether there are several receives of one key or, under rendezvous, several sends: their order depends on times,
  // which this run does not have.
  [[nodiscard]] bool depends_on_order() const {
    using Act = CustomStep::Act;
    std::unordered_map<MessageKey, std::uint32_t, MessageKeyHash> receives, sends;
    for (std::uint32_t position = 0; position < n_; ++position) {
      for (std::uint32_t step = 0; step < use_.programs[position].steps.size(); ++step) {
        const StepAt place{position, step};
        if (at(place).act == Act::compute) { continue; }
        const MessageKey where = use_.rendezvous ? ready_key(place) : key_of(place);
        if (at(place).act == Act::receive && ++receives[where] > 1) { return true; }
        if (at(place).act == Act::send && ++sends[where] > 1 && use_.rendezvous) { return true; }
      }
    }
    return false;
  }

  // A send or receive that has not ended although its parents have.
  [[nodiscard]] std::optional<StepAt> first_stuck() const {
    for (std::uint32_t position = 0; position < n_; ++position) {
      if (const auto step = stuck_step(position)) { return StepAt{position, *step}; }
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<std::uint32_t> stuck_step(std::uint32_t position) const {
    for (std::uint32_t step = 0; step < ended_[position].size(); ++step) {
      if (!ended_[position][step] && open_parents_[position][step] == 0) { return step; }
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<StepAt> partner(const StepAt& place) const {
    const MessageKey key = key_of(place);
    const std::uint32_t peer = use_.members[at(place).peer];
    for (std::uint32_t step = 0; step < ended_[peer].size(); ++step) {
      const StepAt other{peer, step};
      if (ended_[peer][step] || at(other).act == CustomStep::Act::compute || at(other).act == at(place).act) {
        continue;
      }
      if (key_of(other) == key) { return other; }
    }
    return std::nullopt;
  }

  [[nodiscard]] Failure reason(StepAt stuck) const {
    std::vector<StepAt> path;
    while (std::find(path.begin(), path.end(), stuck) == path.end()) {
      path.push_back(stuck);
      const auto other = partner(stuck);
      if (!other) { return Failure{{{where(stuck), missing_partner(stuck)}}, false}; }
      // The partner has not started: its position waits for something else.
      const auto before = stuck_step(other->position);
      if (!before) { break; }
      stuck = {other->position, *before};
    }
    std::string cycle;
    for (auto i = std::find(path.begin(), path.end(), stuck); i != path.end(); ++i) {
      cycle += fmt::format("position {} in node {}, which waits for ", i->position, at(*i).id);
    }
    return Failure{{{where(stuck), fmt::format("deadlock: {}position {}", cycle, stuck.position)}}, false};
  }

  [[nodiscard]] Place where(const StepAt& place) const {
    return {fmt::format("{}.{}.et", use_.prefix, place.position), 0, 0, fmt::format("node {}", at(place).id)};
  }

  [[nodiscard]] std::string missing_partner(const StepAt& place) const {
    const CustomStep& step = at(place);
    if (step.act == CustomStep::Act::send) {
      return fmt::format("sends {1} B with tag {2} to position {0}, which has no matching receive (rendezvous)",
                         use_.members[step.peer], step.amount, step.tag);
    }
    return fmt::format("waits for {} B with tag {} from position {}, which has too few matching sends", step.amount,
                       step.tag, use_.members[step.peer]);
  }

  // ---- anomalies ---------------------------------------------------------------------------------------------------

  void report(std::vector<std::string>& anomalies, std::size_t count, const std::string& text) const {
    if (count <= kMostReported) { anomalies.push_back(fmt::format("custom collective {}: {}", use_.prefix, text)); }
    if (count == kMostReported + 1) {
      anomalies.push_back(fmt::format("custom collective {}: more messages of this kind are not shown", use_.prefix));
    }
  }

  void find_unreceived(std::vector<std::string>& anomalies) const {
    std::set<std::pair<std::uint32_t, std::uint64_t>> unread;  // position, node
    for (const auto& [where, pending] : pending_) {
      for (const StepAt& place : pending.messages) { unread.insert({place.position, at(place).id}); }
    }
    std::size_t count = 0;
    for (const auto& [position, node] : unread) {
      report(anomalies, ++count,
             fmt::format("no position receives the message of node {} of position {}", node, position));
    }
  }

  void find_missing_sources(std::vector<std::string>& anomalies) const {
    std::size_t count = 0;
    for (std::uint32_t position = 0; position < n_; ++position) {
      const auto missing = std::find(reached_[position].begin(), reached_[position].end(), false);
      if (missing == reached_[position].end()) { continue; }
      report(anomalies, ++count,
             fmt::format("no data of position {1} reaches position {0}, so the graphs are not a correct {2}", position,
                         missing - reached_[position].begin(), name_of(use_.collective)));
    }
  }

  void find_missing_bytes(std::vector<std::string>& anomalies) const {
    if (n_ < 2) { return; }
    const std::uint64_t size = use_.bytes, shard = size / n_;
    const bool whole = use_.collective == Collective::all_reduce;
    const bool gathers = use_.collective == Collective::all_gather;
    const std::uint64_t out = whole || gathers ? size : shard * (n_ - 1);
    const std::uint64_t in = whole                                           ? size
                             : gathers                                       ? size * (n_ - 1)
                             : use_.collective == Collective::reduce_scatter ? shard
                                                                             : shard * (n_ - 1);
    std::size_t count = 0;
    for (std::uint32_t position = 0; position < n_; ++position) {
      const bool sends_less = sent_[position] < out;
      if (!sends_less && received_[position] >= in) { continue; }
      report(
          anomalies, ++count,
          fmt::format("position {} {} {} B, but {} of {} B needs at least {} B; message sizes are taken from the "
                      "graphs, not from the node",
                      position, sends_less ? "sends" : "receives", sends_less ? sent_[position] : received_[position],
                      name_of(use_.collective), size, sends_less ? out : in));
    }
  }

  const CustomUse& use_;
  std::uint32_t n_;
  std::vector<std::vector<std::uint32_t>> open_parents_;  // by position, step: parents that have not ended
  std::vector<std::vector<Sources>> sources_;             // by position, step
  std::vector<std::vector<bool>> ended_;
  std::vector<Sources> reached_;
  std::vector<std::uint64_t> sent_, received_;  // bytes, by position
  std::deque<StepAt> ready_;
  std::unordered_map<MessageKey, Pending, MessageKeyHash> pending_;
  std::unordered_map<MessageKey, ReadyMessages, MessageKeyHash> ready_messages_;
};

}  // namespace

Result<void> check_partners(const CustomUse& use) {
  for (std::uint32_t position = 0; position < use.programs.size(); ++position) {
    for (const CustomStep& step : use.programs[position].steps) {
      if (step.act == CustomStep::Act::compute || use.members[step.peer] != position) { continue; }
      return fail(
          Place{fmt::format("{}.{}.et", use.prefix, position), 0, 0, fmt::format("node {}", step.id)},
          "sends to or receives from its own rank: positions count the ranks of the group in ascending order, peers in "
          "the order of the list; list the ranks in ascending order");
    }
  }
  return {};
}

Result<std::vector<std::string>> check_custom(const CustomUse& use) {
  if (auto partners = check_partners(use); !partners) { return tl::make_unexpected(partners.error()); }
  return UntimedRun(use).run();
}

}  // namespace orrery::simulate
