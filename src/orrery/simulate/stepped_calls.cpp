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
  const auto schedule = network::member_schedule(asked.collective, asked.algorithm, members);
  const bool is_given = asked.algorithm != CollectiveAlgorithm::in_switch && network::refusal(schedule).empty();
  return is_given ? schedule
                  : network::member_schedule(asked.collective, network::usual_algorithm(asked.collective), members);
}

bool is_flat_ring(const network::Schedule& schedule) {
  return schedule.phases.empty() || schedule.phases[0].pattern == network::Pattern::flat_ring;
}

bool is_in_switch(const network::SchedulePhase& phase) {
  return network::kind_of(phase.pattern) == network::StepKind::in_switch;
}

// Jobs on a topology have tiers that are not oversubscribed (FlowJob::devices); schedules are chosen with those that
// are.
hardware::Cluster with_tiers(hardware::Cluster cluster, const hardware::Topology& topology) {
  const auto dimensions = hardware::dimensions_of(*cluster.topology, topology);
  for (std::size_t d = 0; d < cluster.dimensions.size() && d < dimensions.size(); ++d) {
    cluster.dimensions[d].bandwidth = dimensions[d].bandwidth;
    cluster.dimensions[d].oversubscription = dimensions[d].oversubscription;
    if (cluster.dimensions[d].size == dimensions[d].size) { cluster.dimensions[d].parts = dimensions[d].parts; }
  }
  return cluster;
}

}  // namespace

SteppedCalls::SteppedCalls(const hardware::Cluster& cluster, network::NodeEgress egress, TopologyLoads& loads)
    : cluster_(with_tiers(cluster, loads.topology())), fabric_(cluster_, egress), loads_(loads) {}

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

// The schedule of the closed form, if that is asked for and has its switches here.
SteppedCalls::Way SteppedCalls::way_of(const Asked& asked, const std::vector<std::uint32_t>& ranks) const {
  Way way;
  way.flat = schedule_of(asked);
  way.algorithm = way.flat.algorithm;
  way.protocol = fabric_.price(asked.collective, asked.bytes, asked.shape, asked.algorithm).protocol;
  const bool is_free =
      asked.algorithm == CollectiveAlgorithm::automatic || asked.algorithm == CollectiveAlgorithm::hierarchical;
  if (!is_free || !asked.shape.regular) { return way; }
  const auto schedule = [&](CollectiveAlgorithm algorithm) {
    return fabric_.schedule(asked.collective, asked.bytes, asked.shape, algorithm);
  };
  network::Schedule chosen = schedule(asked.algorithm);
  const auto runs_here = [&] {
    return is_flat_ring(chosen) || std::none_of(chosen.phases.begin(), chosen.phases.end(), is_in_switch) ||
           has_its_switches(network::CompositionRun(chosen, asked.shape, std::vector<char>(ranks.size(), 0)), ranks);
  };
  if (!runs_here()) {
    chosen = schedule(CollectiveAlgorithm::hierarchical);
    const network::Schedule ring = schedule(CollectiveAlgorithm::flat_ring);
    const bool is_shorter = !ring.phases.empty() && fabric_.price(ring).time < fabric_.price(chosen).time;
    if (is_shorter && asked.algorithm == CollectiveAlgorithm::automatic) { chosen = ring; }
  }
  if (chosen.phases.empty()) { return way; }
  const network::Price price = fabric_.price(chosen);
  way.protocol = price.protocol;
  if (is_flat_ring(chosen)) { return way; }
  way.algorithm = price.algorithm;
  way.by_dimension = chosen;
  return way;
}

bool SteppedCalls::has_its_switches(const network::CompositionRun& run, const std::vector<std::uint32_t>& ranks) const {
  const network::Schedule& schedule = run.schedule();
  for (std::size_t p = 0; p < schedule.phases.size(); ++p) {
    if (is_in_switch(schedule.phases[p]) && switch_of(run.line(p, 0), ranks) == kNone) { return false; }
  }
  return true;
}

// The switch that all devices of the line have a cable to; kNone: there is none.
std::uint32_t SteppedCalls::switch_of(const std::vector<std::uint32_t>& line,
                                      const std::vector<std::uint32_t>& ranks) const {
  const hardware::Topology& topology = loads_.topology();
  if (cables_.empty()) {
    cables_.resize(topology.devices);
    for (const hardware::TopologyLink& link : topology.links) {
      if (link.from < topology.devices && link.to >= topology.devices) { cables_[link.from].push_back(link.to); }
    }
  }
  const auto cables_of = [&](std::uint32_t position) -> const auto& {
    return cables_[loads_.device_of(ranks[position])];
  };
  for (const std::uint32_t node : cables_of(line.front())) {
    const bool joins_all = std::all_of(line.begin(), line.end(), [&](std::uint32_t position) {
      const auto& cables = cables_of(position);
      return std::find(cables.begin(), cables.end(), node) != cables.end();
    });
    if (joins_all) { return node; }
  }
  return kNone;
}

CollectiveAlgorithm SteppedCalls::start(const Asked& asked, std::uint64_t now) {
  std::vector<std::uint32_t> ranks = asked.ranks;
  std::sort(ranks.begin(), ranks.end(),
            [&](std::uint32_t a, std::uint32_t b) { return loads_.device_of(a) < loads_.device_of(b); });
  const Way way = way_of(asked, ranks);
  if (way.by_dimension) {
    open_[asked.number] = 1;
    open_by_dimension(asked, way, std::move(ranks), now);
    return way.algorithm;
  }
  const network::LevelRules rules = network::level_rules(cluster_, way.protocol, way.flat.algorithm);
  const std::uint32_t lanes = goes_round(way.flat) ? domain_of(ranks) : 1;
  const double bytes = asked.collective == Collective::barrier ? 0.0 : asked.bytes.value() / lanes;
  open_[asked.number] = lanes;
  const std::uint64_t after_base = now + picoseconds(rules.base);
  for (std::uint32_t k = 0; k < lanes; ++k) {
    open_lane(asked, way.flat, rules, network::ring_order(ranks, lanes, k), bytes, after_base);
  }
  return way.algorithm;
}

void SteppedCalls::open_by_dimension(const Asked& asked, const Way& way, std::vector<std::uint32_t> ranks,
                                     std::uint64_t now) {
  const std::uint32_t number = lanes_.take();
  Lane& lane = lanes_[number];
  network::PhaseRules rules = network::phase_rules(fabric_, *way.by_dimension, asked.shape, way.protocol);
  const std::uint64_t after_base = now + picoseconds(rules.base);
  network::CompositionRun run(*way.by_dimension, asked.shape, rules.both_ways);
  lane = {};
  lane.number = asked.number;
  lane.ranks = std::move(ranks);
  lane.members.resize(2 * lane.ranks.size() * run.lanes());  // of a switch, too
  lane.by_dimension = std::make_unique<ByDimension>(ByDimension{std::move(run), std::move(rules), {}});
  lane.by_dimension->run.start();
  send_by_dimension(number, after_base);
}

// All messages that can leave now.
void SteppedCalls::send_by_dimension(std::uint32_t number, std::uint64_t now) {
  Lane& lane = lanes_[number];
  ByDimension& way = *lane.by_dimension;
  for (const network::CompositionRun::Message& one : way.run.take_messages()) {
    const std::uint32_t made = messages_.take();
    messages_[made] = {number, one.from, one.to, 0, 0, one.bytes, {}, one.phase, one.lane, one.place};
    find_route(lane, messages_[made]);
    const Member& member = lane.members[route_number(lane, messages_[made])];
    messages_[made].level = member.level;
    const Seconds latency = Seconds(way.rules.latency[one.phase][member.level]) + member.added;
    departures_.push_back({now + picoseconds(latency), made});
  }
}

// A member has a last route for each dimension.
std::size_t SteppedCalls::route_number(const Lane& lane, const Message& message) {
  const std::size_t lanes = lane.by_dimension ? lane.by_dimension->run.lanes() : 1;
  return message.from * lanes + message.along;
}

std::uint32_t SteppedCalls::node_of(Lane& lane, std::uint32_t participant, std::size_t phase) {
  if (!lane.by_dimension || participant < lane.ranks.size()) { return loads_.device_of(lane.ranks[participant]); }
  const std::uint32_t origin = participant - static_cast<std::uint32_t>(lane.ranks.size());
  const auto [found, is_new] =
      lane.by_dimension->switches.try_emplace(key_of(origin, static_cast<std::uint32_t>(phase)));
  if (is_new) { found->second = switch_of(lane.by_dimension->run.line(phase, origin), lane.ranks); }
  return found->second;
}

void SteppedCalls::open_lane(const Asked& asked, const network::MemberSchedule& schedule,
                             const network::LevelRules& rules, std::vector<std::uint32_t> ranks, double bytes,
                             std::uint64_t now) {
  const std::uint32_t number = lanes_.take();
  const std::uint32_t members = network::participant_count(schedule);
  lanes_[number] = {asked.number,     schedule,
                    std::move(ranks), bytes / network::block_count(schedule),
                    rules.levels,     std::vector<Member>(members),
                    members,          {},
                    nullptr};
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

void SteppedCalls::find_route(Lane& lane, const Message& message) {
  const bool is_by_message = loads_.topology().routing == hardware::Routing::spread;
  Member& member = lane.members[route_number(lane, message)];
  if (member.peer == message.to && member.routes == loads_.failures() && !is_by_message) { return; }
  const std::uint32_t sender = node_of(lane, message.from, message.phase);
  const std::uint32_t receiver = node_of(lane, message.to, message.phase);
  member.peer = message.to;
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
  const std::uint32_t made = messages_.take();
  messages_[made] = {number, p, message.peer, member.step, 0, lane.block_bytes * message.count, {}, 0, 0, 0};
  find_route(lane, messages_[made]);
  messages_[made].level = member.level;
  departures_.push_back({now + picoseconds(Seconds(lane.levels[member.level].latency) + member.added), made});
}

const std::vector<std::uint32_t>& SteppedCalls::route_of(Message& message) {
  Lane& lane = lanes_[message.lane];
  if (loads_.topology().routing != hardware::Routing::adaptive) {
    find_route(lane, message);
    return lane.members[route_number(lane, message)].route;
  }
  alive_.resize(loads_.topology().links.size(), 0.0);
  for (const std::uint32_t link : message.route) { alive_[link] -= 1; }
  const std::uint32_t from = node_of(lane, message.from, message.phase);
  const std::uint32_t to = node_of(lane, message.to, message.phase);
  message.route = loads_.routes(from, to).route_by_load(from, to, alive_);
  for (const std::uint32_t link : message.route) { alive_[link] += 1; }
  return message.route;
}

SteppedCalls::Flow SteppedCalls::flow_of(std::uint32_t number) {
  Message& message = messages_[number];
  if (!(message.bytes > 0)) { return {}; }
  const auto& links = loads_.topology().links;
  const Lane& lane = lanes_[message.lane];
  const auto time_on = [&](std::uint32_t link) {
    const std::uint8_t level = links[link].level;
    const double payload =
        lane.by_dimension ? lane.by_dimension->rules.payload[message.phase][level] : lane.levels[level].payload;
    return Seconds(message.bytes / (links[link].bandwidth * payload));
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
  if (lane.by_dimension) {
    network::CompositionRun& run = lane.by_dimension->run;
    run.arrive({message.from, message.to, message.phase, message.along, message.bytes, message.place});
    send_by_dimension(message.lane, now);
    return run.is_finished() ? close_lane(message.lane) : kNone;
  }
  Member& member = lane.members[message.to];
  if (message.step != member.step) {
    ++lane.early[key_of(message.to, message.step)];
    return kNone;
  }
  if (--member.missing > 0) { return kNone; }
  member.step = network::next_busy_step(lane.schedule, message.to, member.step + 1);
  enter_steps(message.lane, message.to, now);
  return lane.unfinished > 0 ? kNone : close_lane(message.lane);
}

// The number of the call whose last lane it was, otherwise kNone.
std::uint32_t SteppedCalls::close_lane(std::uint32_t number) {
  const std::uint32_t call = lanes_[number].number;
  lanes_[number] = {};
  lanes_.give_back(number);
  const auto open = open_.find(call);
  if (--open->second > 0) { return kNone; }
  open_.erase(open);
  return call;
}

SteppedCalls::Ends SteppedCalls::ends_of(std::uint32_t number) {
  const Message& message = messages_[number];
  const Lane& lane = lanes_[message.lane];
  const auto rank_of = [&](std::uint32_t participant) {
    return participant < lane.ranks.size() ? lane.ranks[participant] : kNone;
  };
  return {rank_of(message.from), rank_of(message.to), message.level, static_cast<std::uint64_t>(message.bytes)};
}

}  // namespace orrery::simulate
