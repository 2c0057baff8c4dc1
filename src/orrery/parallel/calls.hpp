// How the calls and kernels of a program are carried out: what pricing and graph generation must agree on.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "orrery/core/collective.hpp"
#include "orrery/core/error.hpp"
#include "orrery/hardware/cluster.hpp"
#include "orrery/parallel/mesh.hpp"
#include "orrery/parallel/program.hpp"

namespace orrery::parallel {

enum class Route : std::uint8_t {
  collective,     // one collective of its group
  ring_steps,     // ring attention: n - 1 steps; in each, every member sends its part to the next one
  node_dispatch,  // tokens to experts, inside a node and between nodes at the same time (workload::NodeDispatch)
  host,           // to or from the second memory tier, or an update there
};

[[nodiscard]] inline Route route_of(const CollectiveCall& call, const Mesh& mesh) {
  if (call.group == GroupKind::host) { return Route::host; }
  if (call.node_dispatch.copies > 0.0 && mesh.group(GroupKind::ep).size() > 1) { return Route::node_dispatch; }
  const bool sends_around_ring = call.group == GroupKind::cp && call.collective != Collective::all_to_all;
  return sends_around_ring ? Route::ring_steps : Route::collective;
}

// The host's part of an update. It starts when the first chunk of gradients has arrived.
[[nodiscard]] inline Seconds host_update_time(const CollectiveCall& call, const hardware::SecondTier& tier) {
  if (call.bytes == Bytes(0)) { return Seconds(0); }
  ORRERY_ASSERT(tier.update_rate() > BytesPerSecond(0));
  return tier.latency + call.bytes / tier.update_rate();
}

// Of such a dispatch or combine: concurrently `across` bytes between nodes and `inside` bytes within a node. Both are
// sizes of an all-to-all, which include what stays.
struct NodeDispatchBytes {
  Bytes inside, across;
  GroupKind inside_group = GroupKind::ep_node;  // ep where all of its ranks are on one node
};

[[nodiscard]] inline NodeDispatchBytes node_dispatch_bytes(const CollectiveCall& call, const Mesh& mesh) {
  const auto nodes = static_cast<double>(mesh.group(GroupKind::ep_across).size());
  const bool one_node = nodes == 1.0;
  if (call.node_dispatch.low_latency) {
    return {call.bytes / nodes, one_node ? Bytes(0) : call.bytes, one_node ? GroupKind::ep : GroupKind::ep_node};
  }
  const auto bytes_over = [&](GroupKind places) {
    const auto count = static_cast<double>(mesh.group(places).size());
    return call.bytes * (call.node_dispatch.places_reached(count) / call.node_dispatch.copies);
  };
  return {bytes_over(GroupKind::ep), one_node ? Bytes(0) : bytes_over(GroupKind::ep_across),
          one_node ? GroupKind::ep : GroupKind::ep_node};
}

// The all-gather with which a task begins whose input has arrived in parts; none where inputs arrive whole. Named
// "transfer.gather" in graphs and terms.
inline constexpr std::string_view kInputGather = "transfer.gather";
[[nodiscard]] inline std::optional<CollectiveCall> input_gather(const Program& program) {
  if (!program.gathers_transfers || program.plan.pp == 1) { return std::nullopt; }
  const Bytes whole = static_cast<double>(program.plan.tp) * program.transfer_bytes;
  return CollectiveCall{.collective = Collective::all_gather, .group = GroupKind::tp, .bytes = whole};
}

// The gather of the execution behind execution `done` of use `u`.
[[nodiscard]] inline OptionalBlockId next_gather(const Segment& segment, std::size_t u, std::int64_t done) {
  if (done + 1 < segment[u].repeat) { return segment[u].gather; }
  return u + 1 < segment.size() ? segment[u + 1].gather : OptionalBlockId();
}

// A kernel of decode after the KV cache has grown by `tokens` since it was lowered.
[[nodiscard]] inline hardware::Kernel grown_kernel(const KernelLaunch& launch, std::int64_t tokens) {
  hardware::Kernel kernel = launch.kernel;
  const workload::Growth& growth = launch.growth;
  const std::int64_t most = growth.most > 0 ? growth.most : tokens;  // a window is full after so many
  const auto counted = static_cast<double>(std::min(tokens, most));
  kernel.n += std::min(tokens, most) * growth.n;
  kernel.flops += counted * growth.flops;
  kernel.bytes += counted * growth.bytes;
  kernel.held.kv_cache += counted * growth.bytes;
  return kernel;
}

}  // namespace orrery::parallel
