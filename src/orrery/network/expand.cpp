#include "orrery/network/expand.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>
#include <utility>

#include "orrery/network/chunking.hpp"

namespace orrery::network {
namespace {

// Expands one schedule on one group.
class Expander {
 public:
  Expander(const Schedule& schedule, const Group& group)
      : schedule_(schedule), extents_(effective_extents(group)), shape_(shape_of(schedule)) {}

  Expansion run() {
    number_members_and_blocks();
    for (std::size_t p = 0; p < schedule_.phases.size(); ++p) {
      phase_ = p;
      extent_ = extent_of(schedule_.phases[p]);
      for (chunk_ = 0; chunk_ < schedule_.chunks; ++chunk_) { expand_phase(); }
    }
    sort_transfers();
    return std::move(result_);
  }

 private:
  // By round, older chunks (later stages) first, then phase and step; in the order of creation within a step.
  void sort_transfers() {
    const auto& unsorted = result_.transfers;
    std::vector<std::size_t> order(unsorted.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const auto key = [&](std::size_t i) {
      const Transfer& t = unsorted[i];
      return std::tuple(t.round, shape_.stages.size() - shape_.stage_of_phase[t.phase],
                        first_concurrent(schedule_, t.phase), t.step, t.phase, i);
    };
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
    std::vector<Transfer> ordered;
    ordered.reserve(unsorted.size());
    for (const std::size_t i : order) { ordered.push_back(unsorted[i]); }
    result_.transfers = std::move(ordered);
  }

  // Strides of the members, and how many blocks the buffer has along every extent.
  void number_members_and_blocks() {
    for (std::size_t e = 0; e < extents_.size(); ++e) {
      strides_[e] = result_.members;
      result_.members *= extents_[e].members;
      cuts_[e] = extents_[e].members;
    }
    for (const SchedulePhase& phase : schedule_.phases) {
      const bool tree = phase.pattern == Pattern::tree_up || phase.pattern == Pattern::tree_down;
      const bool whole = phase.pattern == Pattern::chain || phase.pattern == Pattern::multicast;
      if (tree) { cuts_[extent_of(phase)] = 2; }
      if (whole) { cuts_[extent_of(phase)] = 1; }
    }
    for (std::size_t e = 0; e < extents_.size(); ++e) { result_.blocks_per_chunk *= cuts_[e]; }
    if (all_to_all()) { result_.blocks_per_chunk = result_.members * result_.members; }
    if (!schedule_.phases.empty() && schedule_.phases[0].pattern == Pattern::flat_ring) {
      result_.blocks_per_chunk = result_.members * ring_count();
    }
    result_.blocks = result_.blocks_per_chunk * schedule_.chunks;
    const std::int64_t blocks_per_buffer = all_to_all() ? result_.members : result_.blocks_per_chunk;
    result_.block_bytes = schedule_.bytes / static_cast<double>(blocks_per_buffer * schedule_.chunks);
  }

  [[nodiscard]] bool all_to_all() const { return schedule_.collective == Collective::all_to_all; }
  [[nodiscard]] const SchedulePhase& phase() const { return schedule_.phases[phase_]; }

  [[nodiscard]] std::size_t extent_of(const SchedulePhase& phase) const {
    std::size_t e = 0;
    while (extents_[e].dimension != phase.dimension) { ++e; }
    return e;
  }

  [[nodiscard]] std::int64_t coordinate(std::int64_t position, std::size_t e) const {
    return position / strides_[e] % extents_[e].members;
  }

  // Rings of a flat ring: one for each member of a node.
  [[nodiscard]] std::int64_t ring_count() const { return result_.members / extents_.back().members; }

  void expand_phase() {
    if (all_to_all()) { return exchange(); }
    if (phase().pattern == Pattern::flat_ring) { return flat_ring(); }
    for (std::int64_t position = 0; position < result_.members; ++position) {
      if (coordinate(position, extent_) != 0) { continue; }
      origin_ = position;
      if (phase().pattern == Pattern::scatter && !holds_root_data()) { continue; }
      expand_line();
    }
  }

  // Before a scatter along an extent only members with the root's coordinates of the outer extents have data.
  [[nodiscard]] bool holds_root_data() const {
    for (std::size_t e = extent_ + 1; e < extents_.size(); ++e) {
      if (coordinate(origin_, e) != 0) { return false; }
    }
    return true;
  }

  // One line of members along the phase's extent, starting at origin_.
  void expand_line() {
    switch (phase().pattern) {
      case Pattern::ring: return ring();
      case Pattern::chain: return chain();
      case Pattern::scatter: return phase().steps == 1 ? scatter_at_once() : scatter_along();
      case Pattern::tree_up: return tree_up();
      case Pattern::tree_down: return tree_down();
      case Pattern::all_pairs: return all_pairs();
      case Pattern::exchange:
      case Pattern::flat_ring: return;  // not line by line
      case Pattern::switch_up: return switch_up();
      case Pattern::switch_down: return switch_down();
      case Pattern::multicast: return multicast();
    }
  }

  // Reducing: shard x is sent around the ring and ends, fully reduced, at member x. Gathering: from member x around.
  void ring() {
    const std::int64_t n = phase().members;
    const std::int64_t lead = phase().reduces ? 1 : 0;
    for (std::int64_t step = 0; step < n - 1; ++step) {
      for (std::int64_t i = 0; i < n; ++i) { send(step, i, (i + 1) % n, (i - lead - step + 2 * n) % n); }
    }
  }

  // The member at `place` of ring `rotation`: along every extent but the outermost the order is rotated so that the
  // ring leaves the line at coordinate `rotation`.
  [[nodiscard]] std::int64_t at(std::int64_t place, std::int64_t rotation) const {
    std::int64_t position = 0;
    for (std::size_t e = 0; e < extents_.size(); ++e) {
      const std::int64_t m = extents_[e].members;
      const bool outermost = e + 1 == extents_.size();
      position += (place % m + (outermost ? 0 : rotation % m + 1)) % m * strides_[e];
      place /= m;
      rotation /= outermost ? 1 : m;
    }
    return position;
  }

  // The extent of the hop from `place` to the next one: that of the outermost coordinate that changes.
  [[nodiscard]] std::size_t extent_of_hop(std::int64_t place) const {
    std::size_t e = 0;
    for (; e + 1 < extents_.size() && place % extents_[e].members == extents_[e].members - 1; ++e) {
      place /= extents_[e].members;
    }
    return e;
  }

  // The shard that a member owns, by the order of blocks.
  [[nodiscard]] std::int64_t shard_of(std::int64_t position) const {
    std::int64_t shard = 0;
    for (std::size_t e = 0; e < extents_.size(); ++e) { shard = shard * extents_[e].members + coordinate(position, e); }
    return shard;
  }

  // As ring(), through all members.
  void flat_ring() {
    const std::int64_t n = result_.members;
    const std::int64_t lead = phase().reduces ? 1 : 0;
    for (std::int64_t rotation = 0; rotation < ring_count(); ++rotation) {
      for (std::int64_t step = 0; step < n - 1; ++step) {
        for (std::int64_t i = 0; i < n; ++i) {
          if (extent_of_hop(i) != extent_) { continue; }
          const std::int64_t shard = shard_of(at((i - lead - step + 2 * n) % n, rotation));
          put(step, at(i, rotation), at((i + 1) % n, rotation), shard * ring_count() + rotation, 1);
        }
      }
    }
  }

  void chain() {
    for (std::int64_t step = 0; step < phase().steps; ++step) { send(step, step, step + 1, 0); }
  }

  // Farthest shard first: shard k leaves the root in step n - 1 - k and arrives in the last step.
  void scatter_along() {
    const std::int64_t n = phase().members;
    for (std::int64_t step = 0; step < n - 1; ++step) {
      for (std::int64_t hop = 0; hop <= step; ++hop) { send(step, hop, hop + 1, n - 1 - step + hop); }
    }
  }

  void scatter_at_once() {
    for (std::int64_t i = 1; i < phase().members; ++i) { send(0, 0, i, i); }
  }

  void all_pairs() {
    const std::int64_t n = phase().members;
    for (std::int64_t offset = 1; offset < n; ++offset) {
      for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t peer = (i + offset) % n;
        send(0, i, peer, phase().reduces ? peer : i);
      }
    }
  }

  // A member's own contribution comes last: then the switch has all contributions.
  void switch_up() {
    const std::int64_t n = phase().members;
    for (std::int64_t shard = 0; shard < n; ++shard) {
      for (std::int64_t k = 1; k <= n; ++k) { send(0, (shard + k) % n, shard, shard); }
    }
  }

  // A member's copy to itself comes first: it is the one that enters the switch.
  void switch_down() {
    const std::int64_t n = phase().members;
    for (std::int64_t shard = 0; shard < n; ++shard) {
      for (std::int64_t k = 0; k < n; ++k) { send(0, shard, (shard + k) % n, shard); }
    }
  }

  void multicast() {
    for (std::int64_t i = 0; i < phase().members; ++i) { send(0, 0, i, 0); }
  }

  void tree_up() {
    for (int which = 0; which < 2; ++which) {
      const auto tree = double_tree(phase().members, which);
      for (std::int64_t i = 0; i < phase().members; ++i) {
        const TreeNode& node = tree[static_cast<std::size_t>(i)];
        if (node.parent) { send(phase().steps - node.depth, i, *node.parent, which); }
      }
    }
  }

  // In a broadcast the first step sends the second tree's half to that tree's root; the root of the broadcast receives
  // nothing.
  void tree_down() {
    const bool rooted = schedule_.collective == Collective::broadcast;
    for (int which = 0; which < 2; ++which) {
      const auto tree = double_tree(phase().members, which);
      for (std::int64_t i = 0; i < phase().members; ++i) {
        const TreeNode& node = tree[static_cast<std::size_t>(i)];
        if (rooted && i == 0) { continue; }
        if (node.parent) { send(node.depth - (rooted ? 0 : 1), *node.parent, i, which); }
        if (!node.parent && rooted) { send(0, 0, i, which); }
      }
    }
  }

  // all_to_all. Blocks have reached their destination's coordinates of all earlier extents. Along this extent each
  // block is sent hop by hop in the shorter direction of a ring, or in one step otherwise.
  void exchange() {
    const std::int64_t n = phase().members;
    for (std::int64_t offset = 1; offset < n; ++offset) {
      for (std::int64_t block = 0; block < result_.blocks_per_chunk; ++block) {
        const std::int64_t source = block / result_.members;
        const std::int64_t destination = block % result_.members;
        const std::int64_t from = coordinate(source, extent_);
        if ((from + offset) % n != coordinate(destination, extent_)) { continue; }
        origin_ = 0;
        for (std::size_t e = 0; e < extents_.size(); ++e) {
          if (e != extent_) { origin_ += coordinate(e < extent_ ? destination : source, e) * strides_[e]; }
        }
        if (phase().pattern != Pattern::ring) {
          add(0, from, (from + offset) % n, block, 1);
          continue;
        }
        const bool ahead = 2 * offset <= n;
        const std::int64_t stride = ahead ? 1 : n - 1;
        const std::int64_t hops = ahead ? offset : n - offset;
        for (std::int64_t hop = 0; hop < hops; ++hop) {
          add(hop, (from + hop * stride) % n, (from + (hop + 1) * stride) % n, block, 1);
        }
      }
    }
  }

  // Sends the blocks with coordinate x along this extent, the inner coordinates of this line and any outer coordinates.
  void send(std::int64_t step, std::int64_t from, std::int64_t to, std::int64_t x) {
    std::int64_t block = 0;
    for (std::size_t e = 0; e < extent_; ++e) { block = block * cuts_[e] + coordinate(origin_, e); }
    block = block * cuts_[extent_] + x;
    std::int64_t blocks = 1;
    for (std::size_t e = extent_ + 1; e < extents_.size(); ++e) { blocks *= cuts_[e]; }
    add(step, from, to, block * blocks, blocks);
  }

  void add(std::int64_t step, std::int64_t from, std::int64_t to, std::int64_t block, std::int64_t blocks) {
    put(step, origin_ + from * strides_[extent_], origin_ + to * strides_[extent_], block, blocks);
  }

  void put(std::int64_t step, std::int64_t source, std::int64_t destination, std::int64_t block, std::int64_t blocks) {
    const StageShape& stage = shape_.stages[shape_.stage_of_phase[phase_]];
    Transfer transfer;
    transfer.round = chunk_ + stage.first_level + (level_per_step(phase().pattern) ? step : 0);
    transfer.chunk = chunk_;
    transfer.step = step;
    transfer.phase = phase_;
    transfer.source = source;
    transfer.destination = destination;
    transfer.first_block = chunk_ * result_.blocks_per_chunk + block;
    transfer.blocks = blocks;
    transfer.reduces = phase().reduces;
    result_.transfers.push_back(transfer);
  }

  const Schedule& schedule_;
  const InlineList<Extent, kMaxExtents> extents_;
  const ScheduleShape shape_;
  std::array<std::int64_t, kMaxExtents> strides_{}, cuts_{};
  Expansion result_;

  std::size_t phase_ = 0, extent_ = 0;  // being expanded
  std::int64_t chunk_ = 0, origin_ = 0;
};

}  // namespace

std::size_t first_concurrent(const Schedule& schedule, std::size_t phase) {
  while (schedule.phases[phase].concurrent) { --phase; }
  return phase;
}

Expansion expand(const Schedule& schedule, const Group& group) { return Expander(schedule, group).run(); }

// Member r > 0 whose lowest set bit is b has children at distance b/2; odd members are leaves. The second tree is the
// mirror image (n even) or the first tree shifted by one member (n odd), so that its inner members are the leaves of
// the first tree.
// Source: P. Sanders, J. Speck, J. L. Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan",
// Parallel Computing 35 (2009) 581-594; layout as in NVIDIA/nccl src/graph/trees.cc.
std::vector<TreeNode> double_tree(std::int64_t n, int which) {
  const auto image = [&](std::int64_t member) {
    if (which == 0) { return member; }
    return n % 2 == 0 ? n - 1 - member : (member + n - 1) % n;
  };
  std::vector<TreeNode> tree(static_cast<std::size_t>(n));
  for (std::int64_t member = 1; member < n; ++member) {
    const auto parent_of = [n](std::int64_t m) {
      const std::int64_t bit = m & -m;
      const std::int64_t up = (m ^ bit) | (bit << 1);
      return up < n ? up : m ^ bit;
    };
    TreeNode node;
    node.parent = image(parent_of(member));
    for (std::int64_t above = member; above != 0; above = parent_of(above)) { ++node.depth; }
    tree[static_cast<std::size_t>(image(member))] = node;
  }
  return tree;
}

}  // namespace orrery::network
