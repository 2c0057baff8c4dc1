#include "orrery/network/stepped_collective.hpp"

#include <algorithm>
#include <queue>
#include <unordered_map>
#include <utility>

#include "orrery/core/error.hpp"
#include "orrery/network/composition_run.hpp"
#include "orrery/network/flow_network.hpp"

namespace orrery::network {

namespace {

std::vector<double> payload_rates(const hardware::Topology& topology, std::span<const LevelRule> levels) {
  std::vector<double> rates;
  for (const hardware::TopologyLink& link : topology.links) {
    rates.push_back(link.bandwidth * levels[link.level].payload);
  }
  return rates;
}

class SteppedRun {
 public:
  SteppedRun(hardware::Routes& routes, std::span<const LevelRule> levels,
             std::span<const SteppedCollective> collectives, FairRates::Method method)
      : routes_(routes),
        levels_(levels),
        collectives_(collectives),
        network_(payload_rates(routes.topology(), levels), method),
        alive_(routes.topology().links.size(), 0.0) {
    times_.finish.assign(collectives.size(), 0.0);
    times_.carried.assign(routes.topology().links.size(), 0.0);
  }

  SteppedTimes run() {
    runs_.resize(collectives_.size());
    for (std::uint32_t c = 0; c < collectives_.size(); ++c) {
      const SteppedCollective& collective = collectives_[c];
      std::size_t members = participant_count(collective.schedule);
      if (const auto& given = collective.by_dimension) {
        runs_[c].emplace(given->schedule, given->group, given->both_ways);
        members = runs_[c]->members() * runs_[c]->lanes();
      }
      first_.push_back(static_cast<std::uint32_t>(members_.size()));
      members_.resize(members_.size() + members);
      times_.finish[c] = collective.start;
    }
    for (std::uint32_t c = 0; c < collectives_.size(); ++c) {
      if (runs_[c]) {
        runs_[c]->start();
        send_messages(c, collectives_[c].start);
        continue;
      }
      for (std::uint32_t p = 0; p < participant_count(collectives_[c].schedule); ++p) {
        members_[first_[c] + p].step = next_busy_step(collectives_[c].schedule, p, 0);
        enter_steps(c, p, collectives_[c].start);
      }
    }
    while (!starts_.empty() || !network_.empty()) { advance(); }
    check_ends();
    times_.updates = network_.updates();
    times_.full = network_.rates().counts().full;
    times_.repairs = network_.rates().counts().repairs;
    return std::move(times_);
  }

 private:
  struct Member {
    std::uint32_t step = 0;     // the first whose messages it has not all received
    std::uint32_t missing = 0;  // of that step
    double since = 0;           // the last arrival of earlier steps
    // The route of its last message: most algorithms send to the same member again and again.
    std::uint32_t peer = ~0U;
    std::uint8_t level = 0;  // outermost of the route
    double added = 0;        // latency of the route, see hardware::added_latency
    std::vector<std::uint32_t> route;
  };
  struct Message {
    std::uint32_t collective = 0, from = 0, to = 0;  // participants
    std::uint16_t phase = 0, lane = 0;               // by dimension
    std::uint64_t step = 0;                          // by dimension: CompositionRun::Message::place
    double bytes = 0;
  };
  struct Start {
    double time = 0;
    std::uint64_t number = 0;  // ties: in the order in which messages were made
    Message message;
    bool operator>(const Start& other) const { return time != other.time ? time > other.time : number > other.number; }
  };
  struct Flow {
    Message message;
    std::vector<std::uint32_t> links;
  };

  // All steps whose earlier receives are complete: sends their messages, stops at the first with missing ones.
  void enter_steps(std::uint32_t c, std::uint32_t p, double now) {
    const MemberSchedule& schedule = collectives_[c].schedule;
    Member& member = members_[first_[c] + p];
    while (member.step < step_count(schedule)) {
      for (std::uint32_t i = 0; i < send_count(schedule, p, member.step); ++i) { send_message(c, p, i, now); }
      member.missing = receive_count(schedule, p, member.step);
      const auto early = early_.find(key_of(c, p, member.step));
      if (early != early_.end()) {
        member.missing -= early->second;
        early_.erase(early);
      }
      if (member.missing > 0) { return; }
      member.step = next_busy_step(schedule, p, member.step + 1);
    }
  }

  void send_message(std::uint32_t c, std::uint32_t p, std::uint32_t i, double now) {
    const SteppedCollective& collective = collectives_[c];
    Member& member = members_[first_[c] + p];
    const StepMessage message = send(collective.schedule, p, member.step, i);
    double bytes = collective.block_bytes * message.count;
    if (!collective.pair_bytes.empty()) {
      bytes = collective.pair_bytes[std::size_t{p} * collective.schedule.members + message.peer];
    }
    if (member.peer != message.peer || is_by_message()) { find_route(collective, member, p, message.peer); }
    const double latency = levels_[member.level].latency + member.added;
    starts_.push({now + latency, made_++, {c, p, message.peer, 0, 0, member.step, bytes}});
  }

  // Of a collective by dimension: all that can leave now.
  void send_messages(std::uint32_t c, double now) {
    const SteppedCollective& collective = collectives_[c];
    for (const CompositionRun::Message& one : runs_[c]->take_messages()) {
      const Message message{c, one.from, one.to, one.phase, one.lane, one.place, one.bytes};
      Member& member = sender_of(message);
      if (member.peer != one.to || is_by_message()) { find_route(collective, member, one.from, one.to); }
      const double latency = collective.by_dimension->latency[one.phase][member.level] + member.added;
      starts_.push({now + latency, made_++, message});
    }
  }

  // Where the sender's last route is; each dimension has one.
  [[nodiscard]] Member& sender_of(const Message& message) {
    const std::size_t lanes = runs_[message.collective] ? runs_[message.collective]->lanes() : 1;
    return members_[first_[message.collective] + message.from * lanes + message.lane];
  }

  [[nodiscard]] bool is_by_message() const { return routes_.topology().routing == hardware::Routing::spread; }
  [[nodiscard]] bool is_by_load() const { return routes_.topology().routing == hardware::Routing::adaptive; }

  void find_route(const SteppedCollective& collective, Member& member, std::uint32_t from, std::uint32_t to) {
    member.peer = to;
    member.route = routes_.route(collective.nodes[from], collective.nodes[to], is_by_message() ? ++spread_ : 0);
    member.level = 0;
    for (const std::uint32_t link : member.route) {
      member.level = std::max(member.level, routes_.topology().links[link].level);
    }
    member.added = hardware::added_latency(routes_.topology(), member.route).value();
  }

  // All events of the next instant.
  void advance() {
    double now = network_.empty() ? starts_.top().time : network_.next_end();
    if (!starts_.empty()) { now = std::min(now, starts_.top().time); }
    const double until = now + kInstant * now;
    bool has_changed = false;
    if (!network_.empty() && network_.next_end() <= until) {
      ended_ = network_.take_ended(until);
      std::sort(ended_.begin(), ended_.end());
      for (const auto& [number, end] : ended_) {
        for (const std::uint32_t link : flows_[number].links) { alive_[link] -= 1; }
        arrive(flows_[number].message, end);
      }
      has_changed = true;
    }
    while (!starts_.empty() && starts_.top().time <= until) {
      const Start start = starts_.top();
      starts_.pop();
      has_changed = begin(start) || has_changed;
    }
    if (has_changed) { network_.settle(now); }
  }

  // Whether a flow has started.
  bool begin(const Start& start) {
    const Message& message = start.message;
    const SteppedCollective& collective = collectives_[message.collective];
    Member& member = sender_of(message);
    if (message.bytes <= 0) {
      arrive(message, start.time);
      return false;
    }
    if (is_by_load()) {
      member.route = routes_.route_by_load(collective.nodes[message.from], collective.nodes[message.to], alive_);
    } else if (member.peer != message.to || is_by_message()) {
      find_route(collective, member, message.from, message.to);
    }
    const std::uint32_t number = network_.start(start.time, message.bytes, member.route);
    if (flows_.size() <= number) { flows_.resize(number + 1); }
    flows_[number].message = message;
    if (is_by_load()) {
      flows_[number].links = member.route;
      for (const std::uint32_t link : member.route) { alive_[link] += 1; }
    }
    for (const std::uint32_t link : member.route) { times_.carried[link] += message.bytes; }
    return true;
  }

  void arrive(const Message& message, double now) {
    ++times_.messages;
    const std::uint32_t c = message.collective;
    times_.finish[c] = std::max(times_.finish[c], now);
    if (runs_[c]) {
      runs_[c]->arrive({message.from, message.to, message.phase, message.lane, message.bytes, message.step});
      return send_messages(c, now);
    }
    Member& member = members_[first_[c] + message.to];
    member.since = std::max(member.since, now);
    if (message.step != member.step) {
      ++early_[key_of(c, message.to, static_cast<std::uint32_t>(message.step))];
      return;
    }
    if (--member.missing > 0) { return; }
    const MemberSchedule& schedule = collectives_[c].schedule;
    member.step = next_busy_step(schedule, message.to, member.step + 1);
    enter_steps(c, message.to, member.since);
  }

  [[nodiscard]] std::uint64_t key_of(std::uint32_t c, std::uint32_t p, std::uint32_t step) const {
    return std::uint64_t{first_[c] + p} << 32U | step;
  }

  void check_ends() const {
    for (std::uint32_t c = 0; c < collectives_.size(); ++c) {
      if (runs_[c]) {
        ORRERY_ASSERT(runs_[c]->is_finished());
        continue;
      }
      const MemberSchedule& schedule = collectives_[c].schedule;
      for (std::uint32_t p = 0; p < participant_count(schedule); ++p) {
        ORRERY_ASSERT(members_[first_[c] + p].step >= step_count(schedule));
      }
    }
  }

  hardware::Routes& routes_;
  std::span<const LevelRule> levels_;
  std::span<const SteppedCollective> collectives_;
  FlowNetwork network_;
  std::vector<std::optional<CompositionRun>> runs_;  // by collective: of those by dimension
  std::vector<std::uint32_t> first_;                 // by collective: its first member
  std::vector<Member> members_;
  std::unordered_map<std::uint64_t, std::uint32_t> early_;  // arrivals of later steps
  std::priority_queue<Start, std::vector<Start>, std::greater<>> starts_;
  std::vector<Flow> flows_;
  std::vector<double> alive_;  // flows, by link; adaptive only
  std::vector<FlowNetwork::Ended> ended_;
  std::uint64_t made_ = 0, spread_ = 0;
  SteppedTimes times_;
};

}  // namespace

SteppedTimes run_collectives(hardware::Routes& routes, std::span<const LevelRule> levels,
                             std::span<const SteppedCollective> collectives, FairRates::Method method) {
  ORRERY_ASSERT(levels.size() >= routes.topology().levels.size());
  return SteppedRun(routes, levels, collectives, method).run();
}

}  // namespace orrery::network
