#include "orrery/generate/streams.hpp"

#include <algorithm>
#include <array>

#include "orrery/core/error.hpp"
#include "orrery/parallel/calls.hpp"

namespace orrery::generate {

using parallel::Block;
using parallel::BlockId;
using parallel::CollectiveCall;
using parallel::GroupKind;
using parallel::OptionalBlockId;
using parallel::Segment;

namespace {

NodeIds joined(NodeIds ids, const NodeIds& more) {
  join(ids, more);
  return ids;
}

}  // namespace

void Streams::run(Execution& execution, const SegmentRun& run) {
  Walk walk{.run = run};
  while (step(execution, walk)) {}
}

void Streams::run_pair(Execution& first, const std::vector<SegmentRun>& first_runs, Execution& second,
                       const std::vector<SegmentRun>& second_runs, const parallel::PairOrder& order) {
  struct Half {
    Execution& execution;
    const std::vector<SegmentRun>& runs;
    std::size_t next = 0;
    Walk walk{};
  };
  std::array halves{Half{first, first_runs}, Half{second, second_runs}};
  in_pair_.emplace();
  for (const std::uint8_t number : order.halves) {
    Half& half = halves[number];
    if (half.walk.run.segment == nullptr) { half.walk.run = half.runs[half.next]; }
    if (step(half.execution, half.walk)) { continue; }
    if (writer_.failed()) { break; }
    half.walk = {};
    ++half.next;
  }
  in_pair_.reset();
  for (const Half& half : halves) { ORRERY_ASSERT(writer_.failed() || half.next == half.runs.size()); }
}

NodeIds Streams::behind(const NodeIds& parents, NodeIds LastNodes::* last) const {
  return in_pair_ ? joined(parents, (*in_pair_).*last) : parents;
}

bool Streams::step(Execution& execution, Walk& walk) {
  const Segment& segment = *walk.run.segment;
  writer_.set_prefix(walk.run.prefix);
  const bool goes_on = walk.use < segment.size() || !walk.begun;
  if (!walk.begun) {
    walk.begun = true;
    if (!segment.empty()) { gather(execution, walk, segment.front().gather); }
    walk.arrived = overlapped_;
  } else if (!goes_on) {
    flush(execution);
    if (walk.run.waits_for_overlapped) { join(execution.compute, overlapped_); }
  } else if (!walk.in_block) {
    begin_execution(execution, walk);
  } else if (walk.item < program_.block(segment[walk.use].work).items.size()) {
    run_item(execution, walk);
  } else {
    end_execution(execution, walk);
  }
  writer_.set_prefix({});
  return goes_on && !writer_.failed();
}

void Streams::gather(Execution& execution, const Walk& walk, OptionalBlockId id) {
  if (walk.run.arrivals != nullptr || !id) { return; }
  flush(execution);
  overlap(*id, execution.compute);
}

void Streams::begin_execution(Execution& execution, Walk& walk) {
  const Segment& segment = *walk.run.segment;
  const auto* arrivals = walk.run.arrivals;
  if (arrivals != nullptr) {
    flush(execution);
    join(execution.compute, (*arrivals)[walk.number]);
  } else if (segment[walk.use].gather) {
    flush(execution);
    join(execution.compute, walk.arrived);
  }
  if (segment[walk.use].is_blocking_gather) {  // of replicas; waits for the overlapped stream, and both wait for it
    flush(execution);
    join(execution.compute, overlapped_);
  } else {
    gather_next(execution, walk);
  }
  begin_block(execution, walk);
}

void Streams::gather_next(Execution& execution, Walk& walk) {
  const auto next = next_gather(*walk.run.segment, walk.use, walk.done);
  if (!next) { return; }
  gather(execution, walk, next);
  walk.arrived = overlapped_;
}

void Streams::end_execution(Execution& execution, Walk& walk) {
  const auto& use = (*walk.run.segment)[walk.use];
  end_block(execution, walk);
  if (use.is_blocking_gather) {
    flush(execution);
    overlapped_ = execution.compute;
    gather_next(execution, walk);
  }
  if (use.reduce && !walk.run.leaves_reductions) {
    flush(execution);
    overlap(*use.reduce, execution.compute);
  }
  ++walk.number;
  if (++walk.done < use.repeat) { return; }
  walk.done = 0;
  ++walk.use;
}

Arrivals Streams::gather_all(const Segment& segment, const NodeIds& start) {
  Arrivals arrivals;
  for (const auto& use : segment) {
    for (std::int64_t i = 0; i < use.repeat; ++i) {
      if (use.gather) { overlap(*use.gather, start); }
      arrivals.push_back(use.gather ? overlapped_ : NodeIds());
    }
  }
  return arrivals;
}

void Streams::reduce_all(const Segment& segment, const NodeIds& start) {
  for (const auto& use : segment) {
    for (std::int64_t i = 0; use.reduce && i < use.repeat; ++i) { overlap(*use.reduce, start); }
  }
}

void Streams::overlap(BlockId id, const NodeIds& start) {
  NodeIds parents = joined(overlapped_, start);
  for (const auto& item : program_.block(id).items) {
    ORRERY_ASSERT(item.collective() != nullptr);
    const NodeIds ends = issue(item.name, item.collective()->call, Lane::overlapped, parents);
    if (!ends.empty()) { parents = overlapped_ = ends; }
  }
}

bool Streams::has_only_kernels(const Block& block) const {
  return std::all_of(block.items.begin(), block.items.end(), [](const auto& item) { return item.kernel() != nullptr; });
}

// At coarse granularity the host time of a block without communication is a part of its node: the block takes as long
// as its kernels or as the host needs to launch them.
void Streams::begin_block(Execution& execution, Walk& walk) {
  const BlockId id = (*walk.run.segment)[walk.use].work;
  const Block& block = program_.block(id);
  walk.in_block = true;
  walk.item = 0;
  walk.launch = 0;
  walk.ends.assign(block.items.size(), {});
  if (!in_pair_ && granularity_ != Granularity::operators && has_only_kernels(block)) {
    Work sum;
    for (; walk.item < block.items.size(); ++walk.item) {
      const auto* kernel = block.items[walk.item].kernel();
      sum += walk.run.grown > 0 ? works_.grown(*kernel, walk.run.grown) : works_.of(id, walk.item);
    }
    sum.time = max(sum.time, block.launch);
    add_kernel(execution, block.name, sum);
  } else if (block.launch > Seconds(0)) {
    flush(execution);
    walk.launch = writer_.host("host.launch", block.launch, behind(execution.compute, &LastNodes::launch));
    if (in_pair_) { in_pair_->launch = {walk.launch}; }
  }
}

void Streams::run_item(Execution& execution, Walk& walk) {
  const BlockId id = (*walk.run.segment)[walk.use].work;
  const std::size_t number = walk.item++;
  const parallel::Item& item = program_.block(id).items[number];
  if (const auto awaited = item.waits_for()) {
    flush(execution);
    join(execution.compute, walk.ends[(*awaited).index()]);
  }
  if (const auto* kernel = item.kernel()) {
    const std::int64_t grown = walk.run.grown;
    add_kernel(execution, item.name, grown > 0 ? works_.grown(*kernel, grown) : works_.of(id, number));
    return;
  }
  const auto* launch = item.collective();
  if (launch == nullptr) { return; }
  flush(execution);
  NodeIds parents = joined(execution.compute, execution.collectives);
  const bool computes = in_pair_ && occupies_compute(program_, *launch);
  if (computes) { parents = behind(parents, &LastNodes::kernel); }
  NodeIds ends = issue(item.name, launch->call, execution.lane, parents);
  if (ends.empty()) { return; }
  if (computes) { in_pair_->kernel = ends; }
  execution.collectives = ends;
  if (!launch->asynchronous) { execution.compute = ends; }
  walk.ends[number] = std::move(ends);
}

void Streams::end_block(Execution& execution, Walk& walk) {
  const Block& block = program_.block((*walk.run.segment)[walk.use].work);
  for (std::size_t i = 0; i < block.items.size(); ++i) {
    const auto* collective = block.items[i].collective();
    if (collective == nullptr || !collective->asynchronous || walk.ends[i].empty()) { continue; }
    flush(execution);
    join(execution.compute, walk.ends[i]);
  }
  if (walk.launch != 0) {
    flush(execution);
    join(execution.compute, {walk.launch});
  }
  if (granularity_ != Granularity::segment) { flush(execution); }
  walk.in_block = false;
}

void Streams::add_kernel(Execution& execution, std::string_view name, const Work& work) {
  PendingKernels& pending = execution.pending;
  if (pending.count == 0) { pending.name = name; }
  pending.work += work;
  ++pending.count;
  if (granularity_ == Granularity::operators) { flush(execution); }
}

void Streams::flush(Execution& execution) {
  if (execution.pending.count == 0) { return; }
  const NodeIds parents = behind(execution.compute, &LastNodes::kernel);
  const NodeId node = writer_.compute(execution.pending.name, execution.pending.work, parents);
  execution.compute.assign(1, node);
  if (in_pair_) { in_pair_->kernel = execution.compute; }
  execution.pending = {};
}

NodeIds Streams::issue(std::string_view name, const CollectiveCall& call, Lane lane, const NodeIds& parents) {
  if (route_of(call, program_.mesh) == parallel::Route::host) { return issue_transfer(name, call, lane, parents); }
  NodeIds ends = issue_exchange(name, call, lane, behind(parents, &LastNodes::collective));
  if (in_pair_ && !ends.empty()) { in_pair_->collective = ends; }
  return ends;
}

NodeIds Streams::issue_exchange(std::string_view name, const CollectiveCall& call, Lane lane, const NodeIds& parents) {
  switch (route_of(call, program_.mesh)) {
    case parallel::Route::ring_steps: return issue_ring_steps(name, call.bytes, parents);
    case parallel::Route::node_dispatch: return issue_node_dispatch(name, call, lane, parents);
    case parallel::Route::host:
    case parallel::Route::collective: break;
  }
  if (call.bytes == Bytes(0) || writer_.groups().members(call.group, writer_.rank()).degree <= 1) { return {}; }
  return {write_collective(name, call, call.group, call.bytes, lane, parents)};
}

NodeId Streams::write_collective(std::string_view name, const CollectiveCall& call, GroupKind group, Bytes bytes,
                                 Lane lane, const NodeIds& parents) {
  const double slows_kernels = lane == Lane::overlapped ? interference_ : 0.0;
  return writer_.collective(name, call.collective, writer_.family(group, lane), bytes, parents, slows_kernels);
}

NodeIds Streams::issue_transfer(std::string_view name, const CollectiveCall& call, Lane lane, const NodeIds& parents) {
  if (call.bytes == Bytes(0)) { return {}; }
  NodeIds ends;
  if (call.transfer == parallel::TierTransfer::update) {
    const auto& [gradients, weights] = call.update;
    if (gradients > Bytes(0)) { ends.push_back(writer_.memory(name, graph::NodeType::mem_store, gradients, parents)); }
    ends.push_back(writer_.host(name, host_update_time(call, tier_), parents));
    if (weights > Bytes(0)) { ends.push_back(writer_.memory(name, graph::NodeType::mem_load, weights, parents)); }
    return ends;
  }
  const bool together =
      call.sharers != GroupKind::host && writer_.groups().members(call.sharers, writer_.rank()).degree > 1;
  const GroupFamily* sharers = together ? &writer_.family(call.sharers, lane) : nullptr;
  if (call.transfer != parallel::TierTransfer::store) {
    ends.push_back(writer_.memory(name, graph::NodeType::mem_load, call.bytes, parents, sharers));
  }
  if (call.transfer != parallel::TierTransfer::load) {
    ends.push_back(writer_.memory(name, graph::NodeType::mem_store, call.bytes, parents, sharers));
  }
  return ends;
}

// Every member sends its part to the next one, then forwards what it has received, n - 1 times.
NodeIds Streams::issue_ring_steps(std::string_view name, Bytes bytes, const NodeIds& parents) {
  constexpr std::uint64_t kTags = std::uint64_t{1} << 28;  // readers take tags modulo 500,000,000
  const RankSet ring = writer_.groups().members(GroupKind::cp, writer_.rank());
  if (ring.degree <= 1 || bytes == Bytes(0)) { return {}; }
  const std::int64_t here = ring.position(writer_.rank());
  const Bytes part = bytes / static_cast<double>(ring.degree);
  NodeIds last = parents;
  for (std::int64_t step = 1; step < ring.degree; ++step) {
    const std::uint64_t tag = ring_messages_++ % kTags;
    const std::int64_t next = ring.rank((here + 1) % ring.degree);
    const std::int64_t previous = ring.rank((here + ring.degree - 1) % ring.degree);
    const NodeId sent = writer_.send(name, {next, tag, part, true}, last);
    const NodeId received = writer_.receive(name, {previous, tag, part, true}, last);
    last = {sent, received};
  }
  return last;
}

NodeIds Streams::issue_node_dispatch(std::string_view name, const CollectiveCall& call, Lane lane,
                                     const NodeIds& parents) {
  if (call.bytes == Bytes(0)) { return {}; }
  const auto bytes = node_dispatch_bytes(call, program_.mesh);
  NodeIds ends;
  const auto add = [&](GroupKind group, Bytes size) {
    if (size == Bytes(0) || writer_.groups().members(group, writer_.rank()).degree <= 1) { return; }
    ends.push_back(write_collective(name, call, group, size, lane, parents));
  };
  add(GroupKind::ep_across, bytes.across);
  add(bytes.inside_group, bytes.inside);
  return ends;
}

}  // namespace orrery::generate
