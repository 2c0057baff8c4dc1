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

constexpr std::size_t kMostTold = 3;  // of one kind of doubt

using Known = std::vector<bool>;  // by position: has been heard of

struct Spot {
  std::uint32_t position = 0, step = 0;
  friend bool operator==(const Spot&, const Spot&) = default;
};

// Runs the graphs without a clock: whatever can be done is done. Nothing that is done takes anything away from others
// but a message from another receive of the same address, which is the k-th's as it is in the machine.
class UntimedRun {
 public:
  explicit UntimedRun(const CustomUse& use) : use_(use), n_(static_cast<std::uint32_t>(use.programs.size())) {
    for (const CustomProgram& program : use.programs) {
      std::vector<std::uint32_t> parents;
      for (const CustomStep& step : program.steps) { parents.push_back(step.parents); }
      left_.push_back(std::move(parents));
      known_.emplace_back(program.steps.size(), Known());
      over_.emplace_back(program.steps.size(), false);
    }
    heard_.assign(n_, Known(n_, false));
    sent_.assign(n_, 0);
    received_.assign(n_, 0);
  }

  Result<std::vector<std::string>> run() {
    for (std::uint32_t position = 0; position < n_; ++position) {
      for (const std::uint32_t step : use_.programs[position].start) { ready_.push_back({position, step}); }
    }
    while (!ready_.empty()) {
      const Spot next = ready_.front();
      ready_.pop_front();
      begin(next);
    }
    std::vector<std::string> doubts;
    if (const auto stuck = first_stuck()) {
      Failure failure = reason(*stuck);
      if (!depends_on_order()) { return tl::make_unexpected(std::move(failure)); }
      doubts.push_back(
          fmt::format("custom collective {}: may deadlock, depending on which of several receives of the "
                      "same messages runs first: {}",
                      use_.prefix, failure.text()));
      return doubts;
    }
    doubt_messages(doubts);
    doubt_news(doubts);
    doubt_bytes(doubts);
    return doubts;
  }

 private:
  struct Pending {
    std::deque<Spot> sent, awaited;
  };
  struct Notices {
    std::uint32_t given = 0;
    std::deque<Spot> asking;
  };

  [[nodiscard]] const CustomStep& at(const Spot& place) const {
    return use_.programs[place.position].steps[place.step];
  }
  [[nodiscard]] Known& known(const Spot& place) { return known_[place.position][place.step]; }

  [[nodiscard]] MessageKey key_of(const Spot& place) const {
    const CustomStep& step = at(place);
    const std::uint32_t peer = use_.members[step.peer];
    const bool sends = step.act == CustomStep::Act::send;
    return {step.tag, step.amount, sends ? place.position : peer, sends ? peer : place.position};
  }

  void begin(const Spot& place) {
    Known& mine = known(place);
    mine.resize(n_, false);
    mine[place.position] = true;
    switch (at(place).act) {
      case CustomStep::Act::compute: return end(place);
      case CustomStep::Act::send: return use_.rendezvous ? ask(place) : go(place);
      case CustomStep::Act::receive: {
        if (use_.rendezvous) { announce(place); }
        Pending& pending = pending_[key_of(place)];
        if (pending.sent.empty()) { return pending.awaited.push_back(place); }
        const Spot sender = pending.sent.front();
        pending.sent.pop_front();
        return hand_over(sender, place);
      }
    }
  }

  // The message is under way; its sender needs nobody any more.
  void go(const Spot& place) {
    sent_[place.position] += at(place).amount;
    Pending& pending = pending_[key_of(place)];
    if (pending.awaited.empty()) {
      pending.sent.push_back(place);
    } else {
      const Spot receiver = pending.awaited.front();
      pending.awaited.pop_front();
      hand_over(place, receiver);
    }
    end(place);
  }

  // Rendezvous: a receive says that it is ready, and any such notice of its address but for the size lets a sender go.
  [[nodiscard]] MessageKey notice(const Spot& place) const {
    MessageKey where = key_of(place);
    where.bytes = 0;
    return where;
  }
  void ask(const Spot& place) {
    Notices& notices = notices_[notice(place)];
    if (notices.given == 0) { return notices.asking.push_back(place); }
    --notices.given;
    go(place);
  }
  void announce(const Spot& place) {
    Notices& notices = notices_[notice(place)];
    if (notices.asking.empty()) {
      ++notices.given;
      return;
    }
    const Spot sender = notices.asking.front();
    notices.asking.pop_front();
    go(sender);
  }

  void hand_over(const Spot& sender, const Spot& receiver) {
    received_[receiver.position] += at(receiver).amount;
    const Known news = known(sender);
    learn(known(receiver), news);
    end(receiver);
  }

  static void learn(Known& mine, const Known& news) {
    mine.resize(news.size(), false);
    for (std::size_t i = 0; i < news.size(); ++i) { mine[i] = mine[i] || news[i]; }
  }

  void end(const Spot& place) {
    over_[place.position][place.step] = true;
    const Known news = known(place);
    learn(heard_[place.position], news);
    for (const std::uint32_t child : at(place).children) {
      learn(known_[place.position][child], news);
      if (--left_[place.position][child] == 0) { ready_.push_back({place.position, child}); }
    }
  }

  // ---- why it does not end -----------------------------------------------------------------------------------------

  // Several receives of one address, or several ends of a message that a notice is for: which comes first is a matter
  // of time, which there is none of here.
  [[nodiscard]] bool depends_on_order() const {
    using Act = CustomStep::Act;
    std::unordered_map<MessageKey, std::uint32_t, MessageKeyHash> receives, sends;
    for (std::uint32_t position = 0; position < n_; ++position) {
      for (std::uint32_t step = 0; step < use_.programs[position].steps.size(); ++step) {
        const Spot place{position, step};
        if (at(place).act == Act::compute) { continue; }
        const MessageKey where = use_.rendezvous ? notice(place) : key_of(place);
        if (at(place).act == Act::receive && ++receives[where] > 1) { return true; }
        if (at(place).act == Act::send && ++sends[where] > 1 && use_.rendezvous) { return true; }
      }
    }
    return false;
  }

  // A message that does not come or go, as opposed to those that wait for it.
  [[nodiscard]] std::optional<Spot> first_stuck() const {
    for (std::uint32_t position = 0; position < n_; ++position) {
      if (const auto step = stuck_step(position)) { return Spot{position, *step}; }
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<std::uint32_t> stuck_step(std::uint32_t position) const {
    for (std::uint32_t step = 0; step < over_[position].size(); ++step) {
      if (!over_[position][step] && left_[position][step] == 0) { return step; }
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<Spot> partner(const Spot& place) const {
    const MessageKey wanted = key_of(place);
    const std::uint32_t peer = use_.members[at(place).peer];
    for (std::uint32_t step = 0; step < over_[peer].size(); ++step) {
      const Spot other{peer, step};
      if (over_[peer][step] || at(other).act == CustomStep::Act::compute || at(other).act == at(place).act) {
        continue;
      }
      if (key_of(other) == wanted) { return other; }
    }
    return std::nullopt;
  }

  [[nodiscard]] Failure reason(Spot stuck) const {
    std::vector<Spot> way;
    while (std::find(way.begin(), way.end(), stuck) == way.end()) {
      way.push_back(stuck);
      const auto other = partner(stuck);
      if (!other) { return Failure{{{where(stuck), never(stuck)}}, false}; }
      // The partner has not started: its position waits for something else.
      const auto before = stuck_step(other->position);
      if (!before) { break; }
      stuck = {other->position, *before};
    }
    std::string circle;
    for (auto i = std::find(way.begin(), way.end(), stuck); i != way.end(); ++i) {
      circle += fmt::format("position {} in node {}, which waits for ", i->position, at(*i).id);
    }
    return Failure{{{where(stuck), fmt::format("deadlock: {}position {}", circle, stuck.position)}}, false};
  }

  [[nodiscard]] Place where(const Spot& place) const {
    return {fmt::format("{}.{}.et", use_.prefix, place.position), 0, 0, fmt::format("node {}", at(place).id)};
  }

  [[nodiscard]] std::string never(const Spot& place) const {
    const CustomStep& step = at(place);
    if (step.act == CustomStep::Act::send) {
      return fmt::format("sends {1} B with tag {2} to position {0}, which has no matching receive (rendezvous)",
                         use_.members[step.peer], step.amount, step.tag);
    }
    return fmt::format("waits for {} B with tag {} from position {}, which has too few matching sends", step.amount,
                       step.tag, use_.members[step.peer]);
  }

  // ---- what is odd -------------------------------------------------------------------------------------------------

  void doubt(std::vector<std::string>& doubts, std::size_t count, const std::string& text) const {
    if (count <= kMostTold) { doubts.push_back(fmt::format("custom collective {}: {}", use_.prefix, text)); }
    if (count == kMostTold + 1) {
      doubts.push_back(fmt::format("custom collective {}: more messages of this kind are not shown", use_.prefix));
    }
  }

  void doubt_messages(std::vector<std::string>& doubts) const {
    std::set<std::pair<std::uint32_t, std::uint64_t>> unread;  // position, node
    for (const auto& [where, pending] : pending_) {
      for (const Spot& place : pending.sent) { unread.insert({place.position, at(place).id}); }
    }
    std::size_t count = 0;
    for (const auto& [position, node] : unread) {
      doubt(doubts, ++count, fmt::format("no position receives the message of node {} of position {}", node, position));
    }
  }

  void doubt_news(std::vector<std::string>& doubts) const {
    std::size_t count = 0;
    for (std::uint32_t position = 0; position < n_; ++position) {
      const auto missing = std::find(heard_[position].begin(), heard_[position].end(), false);
      if (missing == heard_[position].end()) { continue; }
      doubt(doubts, ++count,
            fmt::format("no data of position {1} reaches position {0}, so the graphs are not a correct {2}", position,
                        missing - heard_[position].begin(), name_of(use_.collective)));
    }
  }

  void doubt_bytes(std::vector<std::string>& doubts) const {
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
      doubt(doubts, ++count,
            fmt::format("position {} {} {} B, but {} of {} B needs at least {} B; message sizes are taken from the "
                        "graphs, not from the node",
                        position, sends_less ? "sends" : "receives", sends_less ? sent_[position] : received_[position],
                        name_of(use_.collective), size, sends_less ? out : in));
    }
  }

  const CustomUse& use_;
  std::uint32_t n_;
  std::vector<std::vector<std::uint32_t>> left_;  // by position, step: parents that are not over
  std::vector<std::vector<Known>> known_;         // by position, step
  std::vector<std::vector<bool>> over_;
  std::vector<Known> heard_;
  std::vector<std::uint64_t> sent_, received_;  // bytes, by position
  std::deque<Spot> ready_;
  std::unordered_map<MessageKey, Pending, MessageKeyHash> pending_;
  std::unordered_map<MessageKey, Notices, MessageKeyHash> notices_;
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
