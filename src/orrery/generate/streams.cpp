#include "orrery/generate/streams.hpp"

#include <algorithm>

#include "orrery/core/error.hpp"
#include "orrery/parallel/calls.hpp"

namespace orrery::generate {

using parallel::Block;
using parallel::BlockId;
using parallel::CollectiveCall;
using parallel::GroupKind;
using parallel::OptionalBlockId;
using parallel::Segment;

void join(NodeIds& ids, const NodeIds& more) {
  for (const NodeId id : more) {
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) { ids.push_back(id); }
  }
}

namespace {

NodeIds joined(NodeIds ids, const NodeIds& more) {
  join(ids, more);
  return ids;
}

// The gather of the execution behind execution `done` of use `u`.
OptionalBlockId next_gather(const Segment& segment, std::size_t u, std::int64_t done) {
  if (done + 1 < segment[u].repeat) { return segment[u].gather; }
  return u + 1 < segment.size() ? segment[u + 1].gather : OptionalBlockId();
}

}  // namespace

void Streams::run(Execution& execution, const Segment& segment, const Arrivals* arrivals, std::int64_t grown) {
  const auto gather = [&](OptionalBlockId id) {
    if (arrivals != nullptr || !id) { return; }
    flush(execution);
    overlap(*id, execution.compute);
  };
  NodeIds arrived;  // weights of the next execution
  if (!segment.empty() && segment.front().gather) {
    gather(segment.front().gather);
    arrived = overlapped_;
  }
  std::size_t number = 0;
  for (std::size_t u = 0; u < segment.size(); ++u) {
    for (std::int64_t i = 0; i < segment[u].repeat && !writer_.failed(); ++i) {
      const bool waits = arrivals != nullptr || segment[u].gather.has_value();
      if (waits) { flush(execution); }
      if (arrivals != nullptr) {
        join(execution.compute, (*arrivals)[number]);
      } else if (waits) {
        join(execution.compute, arrived);
      }
      const auto gather_next = [&] {
        if (const auto next = next_gather(segment, u, i)) {
          gather(next);
          arrived = overlapped_;
        }
      };
      if (segment[u].is_blocking_gather) {
        run_blocking_gather(execution, segment[u].work);
        gather_next();
        ++number;
        continue;
      }
      gather_next();
      run_block(execution, segment[u].work, grown);
      if (segment[u].reduce) {
        flush(execution);
        overlap(*segment[u].reduce, execution.compute);
      }
      ++number;
    }
  }
  flush(execution);
}

// A collective of replicas that waits for the overlapped stream, and for which both streams wait.
void Streams::run_blocking_gather(Execution& execution, BlockId id) {
  flush(execution);
  join(execution.compute, overlapped_);
  run_block(execution, id, 0);
  flush(execution);
  overlapped_ = execution.compute;
}

Streams::Arrivals Streams::gather_all(const Segment& segment, const NodeIds& start) {
  Arrivals arrivals;
  for (const auto& use : segment) {
    for (std::int64_t i = 0; i < use.repeat; ++i) {
      if (use.gather) { overlap(*use.gather, start); }
      arrivals.push_back(use.gather ? overlapped_ : NodeIds());
    }
  }
  return arrivals;
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
void Streams::run_block(Execution& execution, BlockId id, std::int64_t grown) {
  const Block& block = program_.block(id);
  NodeId launch = 0;
  if (granularity_ != Granularity::operators && has_only_kernels(block)) {
    Work sum;
    for (std::size_t i = 0; i < block.items.size(); ++i) {
      const auto* kernel = block.items[i].kernel();
      sum += grown > 0 ? works_.grown(*kernel, grown) : works_.of(id, i);
    }
    sum.time = max(sum.time, block.launch);
    add_kernel(execution, block.name, sum);
  } else {
    if (block.launch > Seconds(0)) {
      flush(execution);
      launch = writer_.host("host.launch", block.launch, execution.compute);
    }
    ends_.assign(block.items.size(), {});
    for (std::size_t i = 0; i < block.items.size(); ++i) { run_item(execution, id, i, grown); }
    finish_block(execution, block, launch);
  }
  if (granularity_ != Granularity::segment) { flush(execution); }
}

void Streams::run_item(Execution& execution, BlockId id, std::size_t number, std::int64_t grown) {
  const parallel::Item& item = program_.block(id).items[number];
  if (const auto awaited = item.waits_for()) {
    flush(execution);
    join(execution.compute, ends_[(*awaited).index()]);
  }
  if (const auto* kernel = item.kernel()) {
    add_kernel(execution, item.name, grown > 0 ? works_.grown(*kernel, grown) : works_.of(id, number));
    return;
  }
  const auto* launch = item.collective();
  if (launch == nullptr) { return; }
  flush(execution);
  NodeIds ends = issue(item.name, launch->call, execution.lane, joined(execution.compute, execution.collectives));
  if (ends.empty()) { return; }
  execution.collectives = ends;
  if (!launch->asynchronous) { execution.compute = ends; }
  ends_[number] = std::move(ends);
}

void Streams::finish_block(Execution& execution, const Block& block, NodeId launch) {
  for (std::size_t i = 0; i < block.items.size(); ++i) {
    const auto* collective = block.items[i].collective();
    if (collective == nullptr || !collective->asynchronous || ends_[i].empty()) { continue; }
    flush(execution);
    join(execution.compute, ends_[i]);
  }
  if (launch != 0) {
    flush(execution);
    join(execution.compute, {launch});
  }
}

void Streams::add_kernel(Execution& execution, std::string_view name, const Work& work) {
  if (pending_.kernels == 0) { pending_.name = name; }
  pending_.work += work;
  ++pending_.kernels;
  if (granularity_ == Granularity::operators) { flush(execution); }
}

void Streams::flush(Execution& execution) {
  if (pending_.kernels == 0) { return; }
  const NodeId node = writer_.compute(pending_.name, pending_.work, execution.compute);
  execution.compute.assign(1, node);
  pending_ = {};
}

NodeIds Streams::issue(std::string_view name, const CollectiveCall& call, Lane lane, const NodeIds& parents) {
  switch (route_of(call, program_.mesh)) {
    case parallel::Route::host: return issue_transfer(name, call, parents);
    case parallel::Route::ring_steps: return issue_ring_steps(name, call.bytes, parents);
    case parallel::Route::node_dispatch: return issue_node_dispatch(name, call, lane, parents);
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

NodeIds Streams::issue_transfer(std::string_view name, const CollectiveCall& call, const NodeIds& parents) {
  if (call.bytes == Bytes(0)) { return {}; }
  NodeIds ends;
  if (call.transfer != parallel::TierTransfer::store) {
    ends.push_back(writer_.memory(name, graph::NodeType::mem_load, call.bytes, parents));
  }
  if (call.transfer != parallel::TierTransfer::load) {
    ends.push_back(writer_.memory(name, graph::NodeType::mem_store, call.bytes, parents));
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
