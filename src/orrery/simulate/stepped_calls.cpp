#include "orrery/simulate/stepped_calls.hpp"

#include <algorithm>
#include <map>

#include "orrery/simulate/flow_time.hpp"

namespace orrery::simulate {

namespace {

std::uint64_t key_of(std::uint32_t member, std::uint32_t step) { return std::uint64_t{member} << 32U | step; }

bool goes_round(const network::MemberSchedule& schedule) {
  return schedule.algorithm == CollectiveAlgorithm::ring &&
         (schedule.collective == Collective::all_reduce || schedule.collective == Collective::all_gather ||
          schedule.collective == Collective::reduce_scatter);
}

network::MemberSchedule schedule_of(const SteppedCalls::Asked& asked) {
  const auto members = static_cast<std::uint32_t>(asked.ranks.size());
  const bool is_given =
      asked.algorithm != CollectiveAlgorithm::automatic && asked.algorithm != CollectiveAlgorithm::in_switch;
  if (is_given) {
    const auto schedule = network::member_schedule(asked.collective, asked.algorithm, members);
    if (network::refusal(schedule).empty()) { return schedule; }
  }
  return network::member_schedule(asked.collective, network::usual_algorithm(asked.collective), members);
}

}  // namespace

// Members in each scale-up domain, if a call has equally many in several domains; otherwise 1.
std::uint32_t SteppedCalls::domain_of(const std::vector<std::uint32_t>& ranks) const {
  if (!loads_.topology().has_scale_up) { return 1; }
  const auto size = static_cast<std::uint32_t>(cluster_.node_size());
  std::map<std::uint32_t, std::uint32_t> members;
  for (const std::uint32_t rank : ranks) { ++members[loads_.device_of(rank) / size]; }
  const std::uint32_t first = members.begin()->second;
  const bool is_even =
      std::all_of(members.begin(), members.end(), [&](const auto& one) { return one.second == first; });
  return is_even && members.size() > 1 ? first : 1;
}

CollectiveAlgorithm SteppedCalls::start(const Asked& asked, std::uint64_t now) {
  const network::MemberSchedule schedule = schedule_of(asked);
  const network::LevelRules rules = network::level_rules(cluster_, asked.protocol, schedule.algorithm);
  std::vector<std::uint32_t> ranks = asked.ranks;
  std::sort(ranks.begin(), ranks.end(),
            [&](std::uint32_t a, std::uint32_t b) { return loads_.device_of(a) < loads_.device_of(b); });
  const std::uint32_t lanes = goes_round(schedule) ? domain_of(ranks) : 1;
  const double bytes = asked.collective == Collective::barrier ? 0.0 : asked.bytes.value() / lanes;
  open_[asked.number] = lanes;
  const std::uint64_t after_base = now + picoseconds(rules.base);
  for (std::uint32_t k = 0; k < lanes; ++k) {
    open_lane(asked, schedule, rules, network::ring_order(ranks, lanes, k), bytes, after_base);
  }
  return schedule.algorithm;
}

void SteppedCalls::open_lane(const Asked& asked, const network::MemberSchedule& schedule,
                             const network::LevelRules& rules, std::vector<std::uint32_t> ranks, double bytes,
                             std::uint64_t now) {
  const std::uint32_t number = lanes_.take();
  const std::uint32_t members = network::participant_count(schedule);
  lanes_[number] = {asked.number,     schedule,
                    std::move(ranks), bytes / network::block_count(schedule),
                    rules.levels,     std::vector<Member>(members),
                    members,          {}};
  for (std::uint32_t p = 0; p < members; ++p) {
    lanes_[number].members[p].step = network::next_busy_step(schedule, p, 0);
    enter_steps(number, p, now);
  }
}

// All steps whose earlier receives are complete: sends their messages, stops at the first with missing ones.
void SteppedCalls::enter_steps(std::uint32_t number, std::uint32_t p, std::uint64_t now) {
  Lane& lane = lanes_[number];
  Member& member = lane.members[p];
  while (member.step < network::step_count(lane.schedule)) {
    const std::uint32_t sends = network::send_count(lane.schedule, p, member.step);
    for (std::uint32_t i = 0; i < sends; ++i) { send_message(number, p, i, now); }
    member.missing = network::receive_count(lane.schedule, p, member.step);
    if (const auto early = lane.early.find(key_of(p, member.step)); early != lane.early.end()) {
      member.missing -= early->second;
      lane.early.erase(early);
    }
    if (member.missing > 0) { return; }
    member.step = network::next_busy_step(lane.schedule, p, member.step + 1);
  }
  --lane.unfinished;
}

void SteppedCalls::find_route(const Lane& lane, Member& member, std::uint32_t from, std::uint32_t to) {
  const bool is_by_message = loads_.topology().routing == hardware::Routing::spread;
  if (member.peer == to && member.routes == loads_.failures() && !is_by_message) { return; }
  const std::uint32_t sender = loads_.device_of(lane.ranks[from]), receiver = loads_.device_of(lane.ranks[to]);
  member.peer = to;
  member.routes = loads_.failures();
  member.route = loads_.routes(sender, receiver).route(sender, receiver, is_by_message ? ++spread_ : 0);
  member.level = 0;
  for (const std::uint32_t link : member.route) {
    member.level = std::max(member.level, loads_.topology().links[link].level);
  }
  member.added = hardware::added_latency(loads_.topology(), member.route);
}

void SteppedCalls::send_message(std::uint32_t number, std::uint32_t p, std::uint32_t i, std::uint64_t now) {
  Lane& lane = lanes_[number];
  Member& member = lane.members[p];
  const network::StepMessage message = network::send(lane.schedule, p, member.step, i);
  find_route(lane, member, p, message.peer);
  const std::uint32_t made = messages_.take();
  messages_[made] = {number, p, message.peer, member.step, member.level, lane.block_bytes * message.count, {}};
  departures_.push_back({now + picoseconds(Seconds(lane.levels[member.level].latency) + member.added), made});
}

const std::vector<std::uint32_t>& SteppedCalls::route_of(Message& message) {
  Lane& lane = lanes_[message.lane];
  Member& member = lane.members[message.from];
  if (loads_.topology().routing != hardware::Routing::adaptive) {
    find_route(lane, member, message.from, message.to);
    return member.route;
  }
  alive_.resize(loads_.topology().links.size(), 0.0);
  for (const std::uint32_t link : message.route) { alive_[link] -= 1; }
  const std::uint32_t from = loads_.device_of(lane.ranks[message.from]), to = loads_.device_of(lane.ranks[message.to]);
  message.route = loads_.routes(from, to).route_by_load(from, to, alive_);
  for (const std::uint32_t link : message.route) { alive_[link] += 1; }
  return message.route;
}

SteppedCalls::Flow SteppedCalls::flow_of(std::uint32_t number) {
  Message& message = messages_[number];
  if (!(message.bytes > 0)) { return {}; }
  const auto& links = loads_.topology().links;
  const auto& levels = lanes_[message.lane].levels;
  const auto time_on = [&](std::uint32_t link) {
    return Seconds(message.bytes / (links[link].bandwidth * levels[links[link].level].payload));
  };
  const std::vector<std::uint32_t>& route = route_of(message);
  Seconds slowest;
  for (const std::uint32_t link : route) { slowest = std::max(slowest, time_on(link)); }
  Flow flow{std::max<std::uint64_t>(1, picoseconds(slowest)), {}};
  for (const std::uint32_t link : route) { flow.links.push_back({link, share_of(time_on(link), slowest)}); }
  return flow;
}

std::uint32_t SteppedCalls::arrive(std::uint32_t number, std::uint64_t now) {
  const Message message = std::move(messages_[number]);
  messages_.give_back(number);
  for (const std::uint32_t link : message.route) { alive_[link] -= 1; }
  Lane& lane = lanes_[message.lane];
  Member& member = lane.members[message.to];
  if (message.step != member.step) {
    ++lane.early[key_of(message.to, message.step)];
    return kNone;
  }
  if (--member.missing > 0) { return kNone; }
  member.step = network::next_busy_step(lane.schedule, message.to, member.step + 1);
  enter_steps(message.lane, message.to, now);
  if (lane.unfinished > 0) { return kNone; }
  const std::uint32_t call = lane.number;
  lane = {};
  lanes_.give_back(message.lane);
  const auto open = open_.find(call);
  if (--open->second > 0) { return kNone; }
  open_.erase(open);
  return call;
}

SteppedCalls::Ends SteppedCalls::ends_of(std::uint32_t number) {
  const Message& message = messages_[number];
  const Lane& lane = lanes_[message.lane];
  return {lane.ranks[message.from], lane.ranks[message.to], message.level, static_cast<std::uint64_t>(message.bytes)};
}

}  // namespace orrery::simulate
