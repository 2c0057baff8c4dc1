#include "orrery/estimate/priced.hpp"

#include <algorithm>
#include <array>
#include <type_traits>

#include "orrery/core/error.hpp"
#include "orrery/cost/kernel_cost.hpp"
#include "orrery/parallel/blocks.hpp"

namespace orrery::estimate {

using parallel::Block;
using parallel::BlockId;
using parallel::BlockUse;
using parallel::CollectiveLaunch;
using parallel::GroupKind;
using parallel::Item;
using parallel::KernelLaunch;
using parallel::OptionalBlockId;
using parallel::Purpose;
using parallel::Segment;

namespace {

CommunicationTime operator*(double count, const CommunicationTime& traffic) {
  return {count * traffic.busy, count * traffic.exposed};
}

}  // namespace

TrafficKind traffic_kind(GroupKind group) {
  switch (group) {
    case GroupKind::tp:
    case GroupKind::etp: return TrafficKind::tp;
    case GroupKind::cp: return TrafficKind::cp;
    case GroupKind::ep:
    case GroupKind::ep_node:
    case GroupKind::ep_across: return TrafficKind::ep;
    case GroupKind::tables:
    case GroupKind::table_copies: return TrafficKind::emb;
    case GroupKind::host: return TrafficKind::host;
    case GroupKind::dp:
    case GroupKind::shard:
    case GroupKind::copies:
    case GroupKind::expert_dp:
    case GroupKind::embedding:
    case GroupKind::mirror:
    case GroupKind::world: return TrafficKind::dp;
  }
  throw_internal_error("known group", __FILE__, __LINE__);
}

Cost& Cost::add(double count, const Cost& other) {
  time += count * other.time;
  compute += count * other.compute;
  recompute += count * other.recompute;
  recompute_waits += count * other.recompute_waits;
  optimizer += count * other.optimizer;
  launch += count * other.launch;
  for (std::size_t k = 0; k < kTrafficKinds; ++k) {
    traffic[k].busy += count * other.traffic[k].busy;
    traffic[k].exposed += count * other.traffic[k].exposed;
  }
  recompute_flops += count * other.recompute_flops;
  return *this;
}

Cost operator*(double count, Cost cost) {
  cost.time *= count;
  cost.compute *= count;
  cost.recompute *= count;
  cost.recompute_waits *= count;
  cost.optimizer *= count;
  cost.launch *= count;
  for (CommunicationTime& traffic : cost.traffic) { traffic = count * traffic; }
  cost.recompute_flops *= count;
  return cost;
}

namespace {

// Kernels and blocking collectives count as the purpose of their item. Waiting for communication counts as exposed, in
// recomputation as recompute.
void charge_kernel(Cost& cost, Purpose purpose, const hardware::Kernel& kernel, Seconds time) {
  cost.time += time;
  switch (purpose) {
    case Purpose::forward:
    case Purpose::backward:
    case Purpose::weight_gradient: cost.compute += time; break;
    case Purpose::recompute:
      cost.recompute += time;
      cost.recompute_flops += kernel.flops;
      break;
    case Purpose::optimizer: cost.optimizer += time; break;
  }
}

CommunicationTime& communication_of(Cost& cost, const CollectiveLaunch& collective) {
  return cost.of(traffic_kind(collective.call.group));
}

// An item of this purpose waits for `collective`, which may be the item itself.
void charge_wait(Cost& cost, Purpose purpose, const CollectiveLaunch& collective, Seconds time) {
  if (purpose == Purpose::recompute) {
    cost.recompute += time;
    cost.recompute_waits += time;
  } else {
    communication_of(cost, collective).exposed += time;
  }
  cost.time += time;
}

// A cost that is also summed by pass.
struct CostByPass : Cost {
  Pass own = Pass::forward;
  BlockPasses by_pass;

  BlockPasses::Part* part(Purpose purpose) {
    const auto of = [&](Pass pass) { return &by_pass.passes[static_cast<std::size_t>(pass)]; };
    switch (purpose) {
      case Purpose::forward: return of(Pass::forward);
      case Purpose::backward: return of(Pass::input_gradient);
      case Purpose::weight_gradient: return of(Pass::weight_gradient);
      case Purpose::optimizer: return of(own);
      case Purpose::recompute: return nullptr;
    }
    return nullptr;
  }
};

void charge_kernel(CostByPass& cost, Purpose purpose, const hardware::Kernel& kernel, Seconds time) {
  charge_kernel(static_cast<Cost&>(cost), purpose, kernel, time);
  if (purpose != Purpose::optimizer && purpose != Purpose::recompute) { cost.part(purpose)->compute += time; }
}

void charge_wait(CostByPass& cost, Purpose purpose, const CollectiveLaunch& collective, Seconds time) {
  charge_wait(static_cast<Cost&>(cost), purpose, collective, time);
  if (auto* part = cost.part(purpose)) {
    part->exposed[static_cast<std::size_t>(traffic_kind(collective.call.group))] += time;
  }
}

}  // namespace

Seconds price_hop(const parallel::Program& program, const network::Fabric& fabric, int dimension) {
  return fabric.transfer(program.transfer_bytes, dimension);
}

Seconds price_input_gather(const parallel::Program& program, const network::Fabric& fabric) {
  const auto call = parallel::input_gather(program);
  return call ? price_call(*call, fabric, program.mesh) : Seconds(0);
}

namespace {

// The host has not launched all kernels of a block before `launch`. Exposed expert all-to-alls that overlap with
// launching count as launch time: without them the block would not end sooner.
void charge_launch(Cost& cost, Seconds launch) {
  Seconds& experts = cost.of(TrafficKind::ep).exposed;
  const Seconds experts_alone = min(experts, max(Seconds(0), cost.time - launch));
  cost.launch = max(Seconds(0), launch - cost.time) + (experts - experts_alone);
  cost.time = max(cost.time, launch);
  experts = experts_alone;
}

}  // namespace

namespace {

// time_of(call): of a collective. Ledger: Cost or CostByPass. `own`: of block_passes().
template <class Ledger, class TimeOf>
Ledger price_items(const Block& block, const network::Fabric& fabric, TimeOf&& time_of, Pass own = Pass::forward) {
  Ledger cost;
  if constexpr (std::is_same_v<Ledger, CostByPass>) { cost.own = own; }
  network::InlineList<Seconds, parallel::kMostItems> ends;  // end of each collective, by item
  Seconds stream;  // when the collectives' stream is free; the compute stream is free at cost.time
  struct {
    Purpose purpose = {};
    const CollectiveLaunch* launch = nullptr;
  } last;  // latest collective
  for (std::size_t i = 0; i < block.items.size(); ++i) {
    const Item& item = block.items[i];
    ends.push_back(stream);
    if (const auto awaited = item.waits_for()) {
      const std::size_t other = (*awaited).index();
      charge_wait(cost, item.purpose, *block.items[other].collective(), max(Seconds(0), ends[other] - cost.time));
    }
    if (const KernelLaunch* launch = item.kernel()) {
      charge_kernel(cost, item.purpose, launch->kernel, price_kernel(*launch, fabric));
    }
    const CollectiveLaunch* collective = item.collective();
    if (collective == nullptr) { continue; }
    // Waiting for collectives in flight is charged to the latest of them.
    if (!collective->asynchronous && last.launch != nullptr && stream > cost.time) {
      charge_wait(cost, item.purpose, *last.launch, stream - cost.time);
    }
    const Seconds time = time_of(collective->call);
    communication_of(cost, *collective).busy += time;
    stream = max(stream, cost.time) + time;
    ends[i] = stream;
    last = {item.purpose, collective};
    if (!collective->asynchronous) { charge_wait(cost, item.purpose, *collective, stream - cost.time); }
  }
  if (last.launch != nullptr) { charge_wait(cost, last.purpose, *last.launch, max(Seconds(0), stream - cost.time)); }
  charge_launch(cost, block.launch);
  return cost;
}

// Time and load of one port of a call that is alone, or of a part of it.
struct CallPort {
  int dimension = 0;
  Seconds time, load;
};
using CallPorts = network::InlineList<CallPort, 2 * hardware::kMaxDimensions>;

void add_ports(CallPorts& ports, Collective collective, Bytes bytes, const network::Group& group,
               network::PriceCache& cache) {
  if (group.extents.empty() || bytes == Bytes(0)) { return; }
  const network::CallLoads& loads = cache.loads(collective, bytes, group);
  for (const auto& port : loads.ports) { ports.push_back({port.dimension, loads.time, port.load}); }
}

CallPorts ports_of(const parallel::CollectiveCall& call, const parallel::Mesh& mesh, network::PriceCache& cache) {
  CallPorts ports;
  const network::Group& group = mesh.group(call.group);
  switch (route_of(call, mesh)) {
    case Route::host: break;  // ports of the second tier are its own
    case Route::collective: add_ports(ports, call.collective, call.bytes, group, cache); break;
    case Route::node_dispatch: {
      const auto bytes = parallel::node_dispatch_bytes(call, mesh);
      add_ports(ports, call.collective, bytes.inside, mesh.group(bytes.inside_group), cache);
      add_ports(ports, call.collective, bytes.across, mesh.group(GroupKind::ep_across), cache);
      break;
    }
    case Route::ring_steps: {
      if (group.extents.empty() || call.bytes == Bytes(0)) { break; }
      const auto members = static_cast<double>(group.size());
      const auto step = cache.fabric().transfer_traffic(call.bytes / members, group.extents.back().dimension);
      const network::PortLoad& port = step.ports[0];
      ports.push_back({port.dimension, (members - 1.0) * step.price.time, (members - 1.0) * port.out});
      break;
    }
  }
  return ports;
}

}  // namespace

Cost price_block(const Block& block, const network::Fabric& fabric, const parallel::Mesh& mesh,
                 network::PriceCache* cache) {
  return price_items<Cost>(block, fabric,
                           [&](const parallel::CollectiveCall& call) { return price_call(call, fabric, mesh, cache); });
}

namespace {

// A collective of replicas that compute waits for: a gather is of weights, the others are of gradients.
bool reduces_gradients(const Block& block) {
  return std::any_of(block.items.begin(), block.items.end(), [](const Item& item) {
    return item.purpose == Purpose::optimizer && item.collective() != nullptr &&
           item.collective()->call.collective != Collective::all_gather;
  });
}

// Whether there are collectives of weight gradients; waits of weight gradients are for them.
bool gathers_for_weights(const Block& block) {
  return std::any_of(block.items.begin(), block.items.end(), [](const Item& item) {
    return item.collective() != nullptr && item.purpose == Purpose::weight_gradient;
  });
}

// Without such collectives, every wait is for input gradients.
BlockPasses split_kernels(const Block& block, const Cost& cost, const network::Fabric& fabric) {
  BlockPasses found;
  auto& input = found.passes[static_cast<std::size_t>(Pass::input_gradient)];
  auto& weight = found.passes[static_cast<std::size_t>(Pass::weight_gradient)];
  for (const Item& item : block.items) {
    if (item.purpose != Purpose::weight_gradient || item.kernel() == nullptr) { continue; }
    weight.compute += price_kernel(*item.kernel(), fabric);
  }
  input.compute = max(Seconds(0), cost.compute - weight.compute);
  for (std::size_t k = 0; k < kTrafficKinds; ++k) { input.exposed[k] = cost.traffic[k].exposed; }
  return found;
}

}  // namespace

BlockPasses block_passes(const Block& block, const Cost& cost, Pass own, const network::Fabric& fabric,
                         const parallel::Mesh& mesh) {
  BlockPasses found;
  if (own == Pass::input_gradient && reduces_gradients(block)) { own = Pass::weight_gradient; }
  if (own != Pass::input_gradient) {
    auto& part = found.passes[static_cast<std::size_t>(own)];
    part.compute = cost.compute;
    for (std::size_t k = 0; k < kTrafficKinds; ++k) { part.exposed[k] = cost.traffic[k].exposed; }
    return found;
  }
  if (!gathers_for_weights(block)) { return split_kernels(block, cost, fabric); }
  const auto priced = price_items<CostByPass>(
      block, fabric, [&](const parallel::CollectiveCall& call) { return price_call(call, fabric, mesh); }, own);
  found = priced.by_pass;
  // Less what the host's launches hide of expert all-to-alls.
  for (std::size_t k = 0; k < kTrafficKinds; ++k) {
    Seconds sum;
    for (const auto& part : found.passes) { sum += part.exposed[k]; }
    if (!(sum > Seconds(0))) { continue; }
    for (auto& part : found.passes) { part.exposed[k] *= priced.traffic[k].exposed / sum; }
  }
  return found;
}

PortUses port_uses(const Block& block, Seconds time, const parallel::Mesh& mesh, network::PriceCache& cache) {
  PortUses uses;
  uses.time = time;
  for (const Item& item : block.items) {
    if (item.collective() == nullptr) { continue; }
    for (const CallPort& port : ports_of(item.collective()->call, mesh, cache)) {
      PortUse& use = uses.dimensions[static_cast<std::size_t>(port.dimension)];
      uses.used |= 1U << static_cast<unsigned>(port.dimension);
      const bool is_small = 2.0 * port.load <= port.time;
      (is_small ? use.small_time : use.time) += port.time;
      (is_small ? use.small_load : use.load) += port.load;
    }
  }
  return uses;
}

void find_contended_times(PortUses& uses, unsigned dimensions, const Block& block, const parallel::Mesh& mesh,
                          network::PriceCache& cache) {
  const unsigned wanted = uses.used & dimensions & ~uses.contended_on;
  if (wanted == 0) { return; }
  uses.contended_on |= wanted;
  // If compute waits for every call, and the host for none, the block takes as much longer as its calls.
  const auto is_simple = [&](const Item& item) {
    const CollectiveLaunch* launch = item.collective();
    return launch == nullptr || (!launch->asynchronous && route_of(launch->call, mesh) != Route::node_dispatch);
  };
  const bool adds_up = uses.time > block.launch && std::all_of(block.items.begin(), block.items.end(), is_simple);
  for (std::size_t d = 0; wanted >> d != 0; ++d) {
    if ((wanted >> d & 1U) == 0) { continue; }
    PortUse& use = uses.dimensions[d];
    use.contended = uses.time;
    if (use.time == Seconds(0)) { continue; }
    const auto time_of = [&](const parallel::CollectiveCall& call) {
      Seconds time = price_call(call, cache.fabric(), mesh, &cache);
      for (const CallPort& port : ports_of(call, mesh, cache)) {
        if (port.dimension == static_cast<int>(d)) { time = max(time, 2.0 * port.load); }
      }
      return time;
    };
    use.contended =
        adds_up ? uses.time + (2.0 * use.load - use.time) : price_items<Cost>(block, cache.fabric(), time_of).time;
  }
}

namespace {

Seconds block_time(const std::vector<Cost>& blocks, OptionalBlockId id) {
  return id ? blocks[(*id).index()].time : Seconds(0);
}

// Time during which a block's collectives occupy cores; transfers of the second tier do not.
Seconds time_on_cores(const std::vector<Cost>& blocks, OptionalBlockId id) {
  if (!id) { return Seconds(0); }
  const Cost& cost = blocks[(*id).index()];
  return cost.time - cost.of(TrafficKind::host).busy;
}

// How much longer compute takes while concurrent collectives occupy a part of the cores: it runs at the remaining speed
// while they run, or until it ends.
Seconds interference_loss(Seconds work, Seconds collectives, double part) {
  return min(part * collectives, part / (1.0 - part) * work);
}

// What gathers and reductions do to concurrent executions: found once for executions that run concurrently with the
// same.
class ConcurrentEffects {
 public:
  ConcurrentEffects(const std::vector<Cost>& blocks, Concurrency concurrency)
      : blocks_(blocks), concurrency_(concurrency) {}

  // Ports are shared with `next` and `running`; `next` and `reduced` occupy cores.
  void set(BlockId work, OptionalBlockId next, OptionalBlockId reduced, OptionalBlockId running) {
    if (work_ == work && next_ == next && reduced_ == reduced && running_ == running) { return; }
    work_ = work;
    next_ = next;
    reduced_ = reduced;
    running_ = running;
    sharing_ = concurrency_.ports == nullptr ? Sharing{} : sharing_of(work);
    if (concurrency_.interference > 0.0) {
      slowed_ =
          interference_loss(blocks_[work.index()].time, time_on_cores(blocks_, next) + time_on_cores(blocks_, reduced),
                            concurrency_.interference);
    }
  }

  [[nodiscard]] const Sharing& sharing() const { return sharing_; }
  [[nodiscard]] Seconds slowed() const { return slowed_; }

 private:
  [[nodiscard]] Sharing sharing_of(BlockId work) const {
    const auto uses = [&](OptionalBlockId id) { return id ? (*concurrency_.ports)[(*id).index()] : nullptr; };
    const PortUses* own = uses(work);
    const PortUses* gather = uses(next_);
    const PortUses* reduction = uses(running_);
    if (own == nullptr || own->used == 0 || (gather == nullptr && reduction == nullptr)) { return {}; }
    if (gather == nullptr || reduction == nullptr) {
      return estimate::sharing(*own, gather == nullptr ? *reduction : *gather);
    }
    PortUses concurrent = *reduction;
    concurrent += *gather;
    return estimate::sharing(*own, concurrent);
  }

  const std::vector<Cost>& blocks_;
  Concurrency concurrency_;
  OptionalBlockId work_, next_, reduced_, running_;
  Sharing sharing_;
  Seconds slowed_;
};

// An execution that has started and would end at streams.compute, while the side stream is busy until streams.side:
// both become slower as long as both run.
void share_ports(const Sharing& rates, Seconds start, Streams& streams) {
  const Seconds left = streams.side - start, work = streams.compute - start;
  if (!(left > Seconds(0)) || !(work > Seconds(0))) { return; }
  const double progress = std::max(rates.progress, 1e-3);
  const Seconds together = min(work, left / progress);  // of the execution's time alone
  streams.compute += rates.longer * together;
  const Seconds meeting_end = start + (1.0 + rates.longer) * together;
  streams.side = meeting_end + max(Seconds(0), left - progress * together);
}

}  // namespace

Streams run_segment(const Segment& segment, const std::vector<Cost>& blocks, Streams streams, Concurrency concurrency) {
  if (segment.empty()) { return streams; }
  if (std::none_of(segment.begin(), segment.end(),
                   [](const auto& use) { return use.gather || use.reduce || use.is_blocking_gather; })) {
    for (const BlockUse& use : segment) {  // alone; added one by one, as below
      const Seconds work = block_time(blocks, use.work);
      for (std::int64_t i = 0; i < use.repeat; ++i) { streams.compute += work; }
    }
    return streams;
  }
  Seconds ready = streams.compute;  // when the weights of the next execution have arrived
  const Seconds first = block_time(blocks, segment.front().gather);
  if (first > Seconds(0)) {
    ready = max(streams.side, streams.compute) + first;
    streams.side = ready;
  }
  ConcurrentEffects concurrent(blocks, concurrency);
  const bool has_effects = concurrency.interference > 0.0 || concurrency.ports != nullptr;
  OptionalBlockId reduced, running;  // reduction of the previous execution, and the last one issued
  for (std::size_t u = 0; u < segment.size(); ++u) {
    const BlockUse& use = segment[u];
    const Seconds work = block_time(blocks, use.work);
    const Seconds reduce = block_time(blocks, use.reduce);
    if (use.is_blocking_gather) {
      const Seconds start = max(max(streams.compute, ready), streams.side);
      streams.compute = streams.side = start + static_cast<double>(use.repeat) * work;
      const Seconds gather = block_time(blocks, parallel::next_gather(segment, u, use.repeat - 1));
      if (gather > Seconds(0)) { streams.side = ready = streams.side + gather; }
      reduced = {};
      continue;
    }
    for (std::int64_t i = 0; i < use.repeat; ++i) {
      const Seconds start = max(streams.compute, ready);
      const OptionalBlockId next = parallel::next_gather(segment, u, i);
      const Seconds gather = block_time(blocks, next);
      if (gather > Seconds(0)) {
        ready = max(streams.side, start) + gather;
        streams.side = ready;
      }
      streams.compute = start + work;
      if (has_effects) {
        concurrent.set(use.work, next, reduced, running);
        if (concurrent.sharing().any()) {
          const Seconds side = streams.side;
          share_ports(concurrent.sharing(), start, streams);
          if (gather > Seconds(0)) { ready += streams.side - side; }
        }
        streams.compute += concurrent.slowed();
        streams.slowed += concurrent.slowed();
        reduced = use.reduce;
        if (use.reduce) { running = use.reduce; }
      }
      if (use.reduce) { streams.side = max(streams.side, streams.compute) + reduce; }
    }
  }
  return streams;
}

Seconds earliest_end(const Segment& segment, const std::vector<Cost>& blocks, Seconds& side) {
  Seconds end;
  for (const BlockUse& use : segment) {
    const Seconds gather = block_time(blocks, use.gather);
    const Seconds work = block_time(blocks, use.work);
    for (std::int64_t i = 0; i < use.repeat; ++i) {
      side += gather;
      if (use.gather) { end = max(end, side); }
      end += work;
    }
  }
  return end;
}

Seconds segment_time(const Segment& segment, const std::vector<Cost>& blocks) {
  Seconds time;
  for (const BlockUse& use : segment) { time += static_cast<double>(use.repeat) * blocks[use.work.index()].time; }
  return time;
}

Cost segment_work(const Segment& segment, const std::vector<Cost>& blocks) {
  Cost cost;
  for (const BlockUse& use : segment) { cost.add(static_cast<double>(use.repeat), blocks[use.work.index()]); }
  return cost;
}

Side segment_side(const Segment& segment, const std::vector<Cost>& blocks) {
  Side side;
  const auto add = [&](OptionalBlockId id, std::int64_t repeat) {
    if (!id) { return; }
    const Cost& cost = blocks[(*id).index()];
    const Seconds host = cost.of(TrafficKind::host).busy;
    side += static_cast<double>(repeat) * Side{cost.time - host, host};
  };
  for (const BlockUse& use : segment) {
    add(use.gather, use.repeat);
    add(use.reduce, use.repeat);
  }
  return side;
}

Seconds segment_reductions(const Segment& segment, const std::vector<Cost>& blocks) {
  Seconds sum;
  for (const BlockUse& use : segment) { sum += static_cast<double>(use.repeat) * time_on_cores(blocks, use.reduce); }
  return sum;
}

}  // namespace orrery::estimate
