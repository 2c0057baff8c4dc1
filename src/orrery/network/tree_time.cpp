#include "orrery/network/tree_time.hpp"

#include <algorithm>
#include <map>

namespace orrery::network {

namespace {

// Ends of the stages of one chunk, seconds. Stages without a message: 0.
struct ChunkEnds {
  std::vector<double> up, down;  // by node of the tree: on the link above it
  std::vector<double> done;      // by node: a switch has all that comes from below, reduced
  double sent = 0;               // the top has sent it to all below
};

class TreeRecurrence {
 public:
  TreeRecurrence(const hardware::Topology& topology, std::span<const LevelRule> levels, const TreeLimits& limits,
                 const TreeCall& call)
      : topology_(topology), levels_(levels), limits_(limits), call_(call), chunks_(chunks_of(call, limits)) {}

  TreeTime run() {
    TreeTime made;
    for (std::uint32_t k = 0; k < chunks_.count; ++k) { made.time = std::max(made.time, add_chunk(k)); }
    made.latency = std::min(latency(), made.time);
    made.carried.assign(carried_.begin(), carried_.end());
    return made;
  }

 private:
  [[nodiscard]] const SwitchTree& tree() const { return call_.tree; }
  [[nodiscard]] bool is_switch(std::size_t i) const { return tree().nodes[i] >= topology_.devices; }
  [[nodiscard]] LinkBytes bytes_above(std::size_t i) const {
    return bytes_on(call_, i, chunks_.on_way[i], chunks_.bytes);
  }
  [[nodiscard]] const ChunkEnds* earlier(std::uint32_t k, std::uint32_t by) const {
    return k >= by ? &ends_[k - by] : nullptr;
  }

  // The end of a transfer that can start at `ready`, behind the one before it on the link.
  double transfer(std::uint32_t link, double bytes, double ready, double before) {
    const hardware::TopologyLink& on = topology_.links[link];
    const LevelRule& rule = levels_[on.level];
    if (bytes > 0) { carried_[link] += bytes; }
    return std::max(ready + rule.latency, before) + bytes / (on.bandwidth * rule.payload);
  }

  // Up, then down; the end of the chunk.
  double add_chunk(std::uint32_t k) {
    const std::size_t count = tree().nodes.size();
    ChunkEnds& now = ends_.emplace_back();
    now.up.assign(count, 0.0);
    now.down.assign(count, 0.0);
    now.done.assign(count, 0.0);
    std::vector<double> arriving(count, 0.0);
    double last = 0;
    for (std::size_t i = count; i-- > 0;) {
      reduce(k, i, arriving[i]);
      last = std::max(last, now.done[i]);
      if (i == 0) { break; }
      const LinkBytes bytes = bytes_above(i);
      if (!bytes.up) { continue; }
      const std::uint32_t parent = tree().parent[i];
      now.up[i] = send_up(k, i, *bytes.up);
      now.done[parent] = std::max(now.done[parent], now.up[i]);
      arriving[parent] += *bytes.up;
    }
    for (std::size_t i = 1; i < count; ++i) {
      const LinkBytes bytes = bytes_above(i);
      if (!bytes.down) { continue; }
      now.down[i] = send_down(k, i, *bytes.down);
      if (tree().parent[i] == 0) { now.sent = std::max(now.sent, now.down[i]); }
      last = std::max(last, now.down[i]);
    }
    return last;
  }

  // done[i] is when the last message from below arrives; one chunk after the other.
  void reduce(std::uint32_t k, std::size_t i, double bytes) {
    if (!is_switch(i) || !reduces_upwards(call_.collective) || bytes <= 0) { return; }
    const ChunkEnds* before = earlier(k, 1);
    double& done = ends_[k].done[i];
    const double free = before != nullptr ? before->done[i] : 0.0;
    done = std::max(done, free) + (limits_.rate > 0 ? bytes / limits_.rate : 0.0);
  }

  double send_up(std::uint32_t k, std::size_t i, double bytes) {
    const auto& cables = tree().up[i];
    const std::uint32_t parent = tree().parent[i];
    double ready = ends_[k].done[i];
    if (const ChunkEnds* room = earlier(k, chunks_.window)) {
      ready = std::max(ready, parent == 0 ? room->sent : room->up[parent]);
    }
    const ChunkEnds* before = earlier(k, static_cast<std::uint32_t>(cables.size()));
    return transfer(cables[k % cables.size()], bytes, ready, before != nullptr ? before->up[i] : 0.0);
  }

  double send_down(std::uint32_t k, std::size_t i, double bytes) {
    const auto& cables = tree().up[i];
    const std::uint32_t parent = tree().parent[i];
    const bool turns = parent == 0 || chunks_.on_way[parent];
    const double ready = turns ? ends_[k].done[parent] : ends_[k].down[parent];
    const ChunkEnds* before = earlier(k, static_cast<std::uint32_t>(cables.size()));
    return transfer(cables[k % cables.size()] ^ 1U, bytes, ready, before != nullptr ? before->down[i] : 0.0);
  }

  // Of the deepest way up, and down again.
  [[nodiscard]] double latency() const {
    std::vector<double> way(tree().nodes.size(), 0.0);
    double most = 0;
    for (std::size_t i = 1; i < way.size(); ++i) {
      way[i] = way[tree().parent[i]] + levels_[topology_.links[tree().up[i].front()].level].latency;
      most = std::max(most, way[i]);
    }
    return 2 * most;
  }

  const hardware::Topology& topology_;
  std::span<const LevelRule> levels_;
  TreeLimits limits_;
  const TreeCall& call_;
  TreeChunks chunks_;
  std::vector<ChunkEnds> ends_;  // by chunk
  std::map<std::uint32_t, double> carried_;
};

}  // namespace

TreeTime tree_time(const hardware::Topology& topology, std::span<const LevelRule> levels, const TreeLimits& limits,
                   const TreeCall& call) {
  return TreeRecurrence(topology, levels, limits, call).run();
}

}  // namespace orrery::network
