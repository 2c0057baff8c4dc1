#include "orrery/simulate/flow_machine.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "orrery/simulate/flow_time.hpp"
#include "orrery/simulate/rate.hpp"
#include "orrery/simulate/stop.hpp"

namespace orrery::simulate {

namespace {

// Ports of devices, and behind them those of the topology's links, each in the class of its level, and of a pool.
std::uint32_t ports_of(const FlowJob& job) {
  const auto classes = static_cast<std::uint32_t>(job.cluster.dimensions.size()) + 1;
  const auto ranks = static_cast<std::uint32_t>(job.job.rank_graphs.size());
  const std::size_t links = job.devices.empty() ? 0 : hardware::build(*job.cluster.topology).links.size();
  return classes * (2 * ranks + static_cast<std::uint32_t>(links) + PoolLevels(job).ports());
}

// The ports of links from which uses are kept; none, unless the job asks for them.
std::uint32_t first_link_port(const FlowJob& job) {
  const auto classes = static_cast<std::uint32_t>(job.cluster.dimensions.size()) + 1;
  const auto ranks = static_cast<std::uint32_t>(job.job.rank_graphs.size());
  return job.by_link ? classes * 2 * ranks : kNone;
}

}  // namespace

FlowMachine::FlowMachine(const FlowJob& job, bool shared, std::optional<std::uint32_t> apart)
    : flow_job_(job),
      job_(job.job),
      fabric_(flow_job_.cluster, flow_job_.egress),
      dimensions_(static_cast<std::uint32_t>(job.cluster.dimensions.size())),
      nodes_(job.job, rounds_),
      kernels_(job.job.rank_graphs.size()),
      match_(job.job),
      places_(job.job.rank_graphs.size()),
      collectives_(match_.all().size()),
      flows_(ports_of(job), dimensions_ + 1, shared, first_link_port(job)),
      pool_(job),
      counts_(job.job.tables ? 2 * (dimensions_ + 1) * job.job.rank_graphs.size() : 0),
      apart_(apart) {
  for (const hardware::Cluster& part : job.parts) { part_fabrics_.emplace_back(part, job.egress); }
  if (!job.devices.empty()) { topology_.emplace(job.cluster, job.devices); }
  // Without sharing, the calls of the closed form are the reference.
  if (topology_ && job.job.by_message && shared) { stepped_.emplace(job.cluster, job.egress, *topology_); }
  if (topology_ && job.cluster.topology->in_switch) { switches_.emplace(job.cluster, topology_->topology()); }
  first_pool_port_ = ports_of(job) / (dimensions_ + 1) - pool_.ports();
}

void FlowMachine::run() {
  for (std::uint32_t rank = 0; rank < job_.rank_graphs.size(); ++rank) {
    const std::uint64_t start = flow_job_.starts_ps.empty() ? 0 : flow_job_.starts_ps[rank];
    start == 0 ? nodes_.free_roots(rank) : rounds_.at(start, {PhysicalEventKind::rank_start, rank, 0});
  }
  for (std::uint32_t i = 0; i < flow_job_.changes.size(); ++i) {
    rounds_.at(picoseconds(flow_job_.changes[i].time), {PhysicalEventKind::link_change, i, 0});
  }
  rounds_.run(Handler{*this}, [this] { end_round(); });
  if (!stalled_.empty()) { stop_at_stalled(); }
}

void FlowMachine::handle(const PhysicalEvent& event) {
  switch (event.kind) {
    case PhysicalEventKind::node_end: return nodes_.end_later(event.ref, event.extra);
    case PhysicalEventKind::flow_end:
      if (live_[event.ref].version == event.extra) { end_flow(event.ref); }
      return;
    case PhysicalEventKind::kernel_end: return end_kernel(event.ref, event.extra);
    case PhysicalEventKind::rank_start: return nodes_.free_roots(event.ref);
    case PhysicalEventKind::link_change: return change_link(event.ref);
    case PhysicalEventKind::departure: return depart(event.ref);
    case PhysicalEventKind::memory_request:
    case PhysicalEventKind::memory_end:
    case PhysicalEventKind::request:
    case PhysicalEventKind::delivered:
    case PhysicalEventKind::reduced:
    case PhysicalEventKind::wake:
    case PhysicalEventKind::step_end:
    case PhysicalEventKind::sent:
    case PhysicalEventKind::custom_step_end: break;
  }
  throw_internal_error("event of flows", __FILE__, __LINE__);
}

// What the ranks behind the first of these access: graphs of many ranks do not fit into caches.
void FlowMachine::prefetch(std::span<const std::uint32_t> ranks) const {
  constexpr std::size_t kSteps = 4, kAhead = 2;  // ranks between the steps
  for (std::size_t step = 0; step < kSteps; ++step) {
    const std::size_t ahead = (kSteps - step) * kAhead;
    if (ahead >= ranks.size()) { continue; }
    nodes_.prefetch(ranks[ahead], static_cast<int>(step));
    if (step == 0) { match_.prefetch(ranks[ahead]); }
    if (step == 1) { match_.prefetch_series(ranks[ahead]); }
  }
}

// Ranks first: the flows that they start in this round share ports from now on.
void FlowMachine::end_round() {
  for (auto ranks = nodes_.take_touched(); !ranks.empty(); ranks = nodes_.take_touched()) {
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      prefetch(ranks.subspan(i));
      const std::uint32_t rank = ranks[i];
      do {
        nodes_.end_all(rank);
        for (const std::uint32_t node : nodes_.take_startable(rank)) { start(rank, node); }
      } while (nodes_.has_ended_nodes(rank));
    }
  }
  flows_.settle(rounds_.now(), [&](std::uint32_t flow, std::uint64_t end) {
    ++live_[flow].version;
    if (!stalled_.empty()) { stalled_.erase(flow); }
    if (end == kNever && !flow_job_.changes.empty()) {
      stalled_.insert(flow);
      return;
    }
    if (end > kMostTime) { throw TooLong{}; }
    rounds_.at(end, {PhysicalEventKind::flow_end, flow, live_[flow].version});
  });
}

void FlowMachine::start(std::uint32_t rank, std::uint32_t node) {
  if (!nodes_.begin(rank, node)) { return; }
  const NodeTask& task = job_.rank_graphs[rank].nodes[node];
  switch (task.act) {
    case Act::busy: return compute(rank, node);
    case Act::collective: return join(rank, node);
    case Act::send: return send(rank, node);
    case Act::receive: return receive(rank, node);
    case Act::memory: return access_memory(rank, node);
    case Act::no_op:
    case Act::metadata: return;
  }
}

// ---- kernels -------------------------------------------------------------------------------------------------------

void FlowMachine::compute(std::uint32_t rank, std::uint32_t node) {
  const NodeTask& task = job_.rank_graphs[rank].nodes[node];
  if (task.amount > kMostTime - rounds_.now()) { throw TooLong{}; }
  if (task.slot != Slot::gpu) {
    return rounds_.at(rounds_.now() + task.amount, {PhysicalEventKind::node_end, rank, node});
  }
  const KernelClock::End end = kernels_.start(rounds_.now(), rank, node, task.amount);
  rounds_.at(end.time, {PhysicalEventKind::kernel_end, rank, end.version});
}

void FlowMachine::end_kernel(std::uint32_t rank, std::uint32_t version) {
  const std::uint32_t node = kernels_.finish(rank, version);
  if (node != kNone) { nodes_.end_later(rank, node); }
}

// On all members of a collective that starts or ends.
void FlowMachine::slow_kernels(const CollectiveRun& run, const NodeTask& task, bool starts) {
  if (task.tag == 0) { return; }
  constexpr std::uint64_t kWholeRate = 1'000'000;
  const FlowShare share = task.tag * kWholeShare / kWholeRate;
  for (const auto& [rank, node] : run.members) {
    KernelClock::End end;
    if (!kernels_.change(rounds_.now(), rank, share, starts, end)) { continue; }
    rounds_.at(end.time, {PhysicalEventKind::kernel_end, rank, end.version});
  }
}

// ---- flows ---------------------------------------------------------------------------------------------------------

void FlowMachine::demand(std::uint32_t rank, const Load& load, bool in) {
  const std::uint32_t number = port(rank, load.dimension, in);
  demands_.push_back({number, in ? load.in : load.out});
  if (counts_.empty()) { return; }
  counts_[number].bytes += in ? load.received : load.sent;
  ++counts_[number].messages;
}

// The call takes at least as long as the busiest link; its shares are those of the whole time.
void FlowMachine::add_links(Call& call, const std::vector<TopologyLoads::Load>& loads, Seconds alone) {
  const auto seconds_on = [&](const TopologyLoads::Load& load) {
    const hardware::TopologyLink& link = topology_->topology().links[load.link];
    const double payload = flow_job_.cluster.dimensions[link.level].link.efficiency;
    return Seconds(load.bytes / (link.bandwidth * payload));
  };
  Seconds time = alone;
  for (const TopologyLoads::Load& load : loads) { time = std::max(time, seconds_on(load)); }
  for (Load& load : call.loads) {
    load.out = static_cast<FlowShare>(static_cast<double>(load.out) * (alone / time));
    load.in = static_cast<FlowShare>(static_cast<double>(load.in) * (alone / time));
  }
  call.time = picoseconds(time);
  const auto ports = 2 * static_cast<std::uint32_t>(job_.rank_graphs.size());
  for (const TopologyLoads::Load& load : loads) {
    const std::uint32_t level = topology_->topology().links[load.link].level;
    call.links.push_back({(ports + load.link) * (dimensions_ + 1) + level, share_of(seconds_on(load), time)});
  }
}

std::vector<results::LinkUse> FlowMachine::link_uses() const {
  std::map<std::pair<std::uint32_t, std::uint32_t>, results::LinkUse> uses;  // by kind and link
  const auto ports = 2 * static_cast<std::uint32_t>(job_.rank_graphs.size());
  for (const auto& [who, use] : flows_.port_uses()) {
    const FlowKind& kind = flow_kinds_[who.first];
    if (who.second / (dimensions_ + 1) >= first_pool_port_) { continue; }
    const std::uint32_t number = who.second / (dimensions_ + 1) - ports;
    const hardware::TopologyLink& link = topology_->topology().links[number];
    results::LinkUse& made = uses[{kind.kind, number}];
    made.kind = flow_job_.kinds[kind.kind];
    made.link = number;
    made.from = topology_->topology().nodes[link.from].name;
    made.to = topology_->topology().nodes[link.to].name;
    made.bandwidth_Bps = link.bandwidth;
    made.busy_ps += use.busy;
    made.lost_ps += use.lost * kind.devices;
  }
  std::vector<results::LinkUse> rows;
  for (auto& [who, use] : uses) { rows.push_back(std::move(use)); }
  return rows;
}

void FlowMachine::demand_links(const Call& call) {
  demands_.insert(demands_.end(), call.links.begin(), call.links.end());
}

// Starts a flow with demands_.
void FlowMachine::start_flow(std::uint64_t time, const FlowKind& kind, const Use& use) {
  if (apart_ == kind.kind) { demands_.clear(); }
  const auto known = std::find(flow_kinds_.begin(), flow_kinds_.end(), kind);
  const auto number = static_cast<std::uint32_t>(known - flow_kinds_.begin());
  if (known == flow_kinds_.end()) { flow_kinds_.push_back(kind); }
  const std::uint32_t flow = flows_.start(rounds_.now(), time, number, demands_);
  demands_.clear();
  if (flow >= live_.size()) { live_.resize(flow + 1); }
  live_[flow].use = use;
}

void FlowMachine::end_flow(std::uint32_t flow) {
  const Use use = live_[flow].use;
  flows_.end(rounds_.now(), flow);
  ++live_[flow].version;
  if (use.memory_rank != kNone) { return nodes_.end_later(use.memory_rank, use.memory_node); }
  ++messages_;
  if (use.stepped != kNone) { return arrive(use.stepped); }
  if (use.collective != kNone) { return end_collective(use.collective); }
  Message& message = messages_in_flight_[use.message];
  message.has_arrived = true;
  nodes_.end_later(message.sender.rank, message.sender.ref);
  if (message.receiver.kind == Continuation::Kind::none) { return; }
  nodes_.end_later(message.receiver.rank, message.receiver.ref);
  messages_in_flight_.give_back(use.message);
}

// ---- collectives ---------------------------------------------------------------------------------------------------

void FlowMachine::end_collective(std::uint32_t number) {
  CollectiveRun& run = collectives_[number];
  run.end = rounds_.now();
  if (run.way != nullptr) { switches_->give_back(*run.way); }
  slow_kernels(run, match_.all()[number].task, false);
  for (const auto& [rank, node] : run.members) { nodes_.end_later(rank, node); }
  std::vector<std::pair<std::uint32_t, std::uint32_t>>().swap(run.members);
}

// Chakra counts the shard of an all-gather, nccl-tests the whole buffer.
Bytes FlowMachine::whole_buffer(const NodeTask& task) const {
  const bool is_shard = task.collective == Collective::all_gather && !flow_job_.whole_buffers;
  const double parts = is_shard ? static_cast<double>(flow_job_.groups[task.group].shape.size()) : 1.0;
  return Bytes(static_cast<double>(task.amount) * parts);
}

const FlowMachine::Call& FlowMachine::collective_call(const NodeTask& task) {
  const auto [found, is_new] = calls_.try_emplace({task.group, task.collective, task.amount});
  if (!is_new && found->second.routes == routes_) { return found->second; }
  found->second = {};
  found->second.routes = routes_;
  const network::Group& shape = flow_job_.groups[task.group].shape;
  const Bytes bytes = whole_buffer(task);
  if (order_chunks(task, found->second)) { return found->second; }
  const std::uint32_t part = flow_job_.groups[task.group].part;
  const network::Fabric& fabric = part == 0 ? fabric_ : part_fabrics_[part - 1];
  const network::Traffic traffic = fabric.traffic(task.collective, bytes, shape, flow_job_.algorithm);
  Call& call = found->second;
  call.algorithm = traffic.price.algorithm;
  if (traffic.price.time == infinite<Seconds>()) { return call; }
  call.time = picoseconds(traffic.price.time);
  call.latency = picoseconds(traffic.price.base + traffic.price.latency);
  call.reduction = picoseconds(traffic.price.reduction);
  for (const network::PortLoad& load : traffic.ports) {
    call.loads.push_back({static_cast<std::uint16_t>(load.dimension), share_of(load.out, traffic.price.time),
                          share_of(load.in, traffic.price.time), static_cast<std::uint64_t>(load.sent.value()),
                          static_cast<std::uint64_t>(load.received.value())});
  }
  if (topology_) {
    const network::Schedule schedule = fabric.schedule(task.collective, bytes, shape, flow_job_.algorithm);
    add_links(call, topology_->collective(schedule, shape, members_of(task.group)), traffic.price.time);
  }
  return call;
}

void FlowMachine::join(std::uint32_t rank, std::uint32_t node) {
  const std::uint32_t number = match_.collective_of(rank, node, places_[rank]);
  CollectiveRun& run = collectives_[number];
  run.last_start = rounds_.now();
  if (run.members.empty()) {
    run.first_start = rounds_.now();
    run.members.reserve(match_.all()[number].ranks);
  }
  run.members.emplace_back(rank, node);
  if (run.members.size() < match_.all()[number].ranks) { return; }
  const NodeTask& task = match_.all()[number].task;
  const Call& call = starting_call(number);
  if (call.loads.empty() && call.time == 0 && task.amount > 0 && flow_job_.groups[task.group].shape.size() > 1) {
    throw Stop{rank, job_.rank_graphs[rank].nodes[node].id,
               fmt::format("is a {}, for which the cluster has no algorithm", name_of(task.collective))};
  }
  if (goes_by_message(number)) { return start_messages(number); }
  run.algorithm = call.algorithm;
  for (const auto& [member, member_node] : run.members) {
    for (const Load& load : call.loads) {
      demand(member, load, false);
      demand(member, load, true);
    }
  }
  demand_links(call);
  slow_kernels(run, task, true);
  const FlowGroup& group = flow_job_.groups[task.group];
  const auto members = static_cast<std::uint64_t>(group.shape.size());
  start_flow(call.time, {group.kind, members * group.copies}, {.collective = number});
}

// ---- second memory tier --------------------------------------------------------------------------------------------

void FlowMachine::access_memory(std::uint32_t rank, std::uint32_t node) {
  const NodeTask task = job_.rank_graphs.task(rank, node);
  const hardware::SecondTier& tier = flow_job_.cluster.second_tier;
  const Seconds time = tier.latency + pool_.slowest(rank, task).second;
  const Seconds link = Bytes(static_cast<double>(task.amount)) / tier.bandwidth;
  demands_.push_back({port(rank, static_cast<std::uint16_t>(dimensions_), task.tag == kLoad), share_of(link, time)});
  for (const PoolLevels::Need& need : pool_.needs(rank, task)) {
    demands_.push_back(
        {(first_pool_port_ + need.port) * (dimensions_ + 1) + dimensions_, share_of(need.time, time), need.copies});
  }
  start_flow(picoseconds(time), {kind_for(rank, kMemory), flow_job_.ranks_for(rank)},
             {.memory_rank = rank, .memory_node = node});
}

// ---- messages ------------------------------------------------------------------------------------------------------

const FlowMachine::Call& FlowMachine::message_call(std::uint32_t rank, const RankBinding::Peer& peer,
                                                   std::uint64_t bytes) {
  const std::uint16_t dimension = peer.dimensions;
  const auto [found, is_new] =
      transfers_.try_emplace({bytes, dimension, topology_ ? rank : 0, topology_ ? peer.rank : 0});
  if (!is_new && found->second.routes == routes_) { return found->second; }
  found->second = {};
  found->second.routes = routes_;
  network::Traffic traffic = fabric_.transfer_traffic(Bytes(static_cast<double>(bytes)), dimension);
  if (topology_) {  // its own route instead of the longest of the dimension
    traffic.price.time +=
        topology_->added_latency(rank, peer.rank) - flow_job_.cluster.dimensions[dimension].route_latency;
  }
  const FlowShare share = share_of(traffic.ports[0].out, traffic.price.time);
  found->second.time = picoseconds(traffic.price.time);
  found->second.latency = picoseconds(traffic.price.time - traffic.ports[0].out);
  found->second.loads = {{dimension, share, share, bytes, bytes}};
  if (topology_) {
    add_links(found->second, topology_->message(rank, peer.rank, static_cast<double>(bytes)), traffic.price.time);
  }
  return found->second;
}

void FlowMachine::send(std::uint32_t rank, std::uint32_t node) {
  const NodeTask& task = job_.rank_graphs[rank].nodes[node];
  const std::uint32_t number = messages_in_flight_.take();
  Message& message = messages_in_flight_[number];
  message = {{Continuation::Kind::node, rank, node, 0}, {}, false};
  const RankBinding::Peer peer = job_.rank_graphs.peer(rank, task);
  const Call& call = message_call(rank, peer, task.amount);
  demand(rank, call.loads.front(), false);
  demand(peer.rank, call.loads.front(), true);
  demand_links(call);
  start_flow(call.time, {kind_for(rank, kMessages), flow_job_.ranks_for(rank)}, {.message = number});
  if (const auto receiver = matcher_.send({task.tag, task.amount, rank, peer.rank, 0}, number)) {
    match(message, *receiver);
  }
}

void FlowMachine::receive(std::uint32_t rank, std::uint32_t node) {
  const NodeTask& task = job_.rank_graphs[rank].nodes[node];
  const Continuation self{Continuation::Kind::node, rank, node, 0};
  const std::uint32_t sender = job_.rank_graphs.peer(rank, task).rank;
  const auto number = matcher_.receive({task.tag, task.amount, sender, rank, 0}, self);
  if (!number) { return; }
  Message& message = messages_in_flight_[*number];
  match(message, self);
  if (!message.has_arrived) { return; }
  nodes_.end_later(rank, node);
  messages_in_flight_.give_back(*number);
}

void FlowMachine::match(Message& message, const Continuation& receiver) {
  message.receiver = receiver;
  nodes_.start_receiving(receiver.rank);
}

// ---- counts --------------------------------------------------------------------------------------------------------

std::vector<results::SimulatedLink> FlowMachine::links() const {
  constexpr std::uint32_t kSwitch = results::SimulatedLink::kSwitch;
  std::vector<results::SimulatedLink> links;
  for (std::uint32_t dimension = 0; dimension < dimensions_; ++dimension) {
    for (std::uint32_t rank = 0; rank < job_.rank_graphs.size(); ++rank) {
      for (const bool in : {false, true}) {
        const std::uint32_t number = port(rank, dimension, in);
        if (number >= counts_.size() || counts_[number].messages == 0) { continue; }
        const PortCount& count = counts_[number];
        links.push_back(
            {dimension, in ? kSwitch : rank, in ? rank : kSwitch, count.bytes, flows_.busy(number), count.messages, 0});
      }
    }
  }
  return links;
}

}  // namespace orrery::simulate
