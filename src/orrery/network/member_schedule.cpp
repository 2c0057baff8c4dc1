// One struct per algorithm. Each has its own numbering of members: member 0 is the root, rings go forward.
// `Renumbering` converts members and blocks to those of the caller.
#include "orrery/network/member_schedule.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "orrery/core/error.hpp"
#include "orrery/core/integers.hpp"

namespace orrery::network {

namespace {

constexpr std::uint32_t kMostInStep = 8;  // messages of a member in one step over two trees: at most 2 x 2, plus one

enum class Direction : std::uint8_t { out, in };

// Modulo n; a and b are below n.
std::uint32_t plus(std::uint32_t a, std::uint32_t b, std::uint32_t n) { return a + b < n ? a + b : a + b - n; }
std::uint32_t minus(std::uint32_t a, std::uint32_t b, std::uint32_t n) { return a >= b ? a - b : a + n - b; }

// ---- ring ----------------------------------------------------------------------------------------------------------

struct RingSteps {
  std::uint32_t n;
  Collective collective;

  [[nodiscard]] std::uint32_t steps() const {
    if (collective == Collective::all_reduce) { return 2 * (n - 1); }
    return collective == Collective::all_to_all ? n / 2 : n - 1;
  }

  [[nodiscard]] std::uint32_t sends(std::uint32_t p, std::uint32_t s) const {
    switch (collective) {
      case Collective::all_to_all: return (s < n / 2 ? 1 : 0) + (s < (n - 1) / 2 ? 1 : 0);
      case Collective::broadcast: return s == p && p + 1 < n ? 1 : 0;
      case Collective::reduce: return p > 0 && s == n - 1 - p ? 1 : 0;
      case Collective::scatter: return s >= p && s + 1 < n ? 1 : 0;
      case Collective::gather: return p > 0 && s <= n - 1 - p ? 1 : 0;
      case Collective::all_reduce:
      case Collective::all_gather:
      case Collective::reduce_scatter:
      case Collective::barrier: break;
    }
    return 1;
  }

  [[nodiscard]] StepMessage send(std::uint32_t p, std::uint32_t s, std::uint32_t i) const {
    const std::uint32_t next = plus(p, 1, n), before = minus(p, 1, n);
    switch (collective) {
      case Collective::all_reduce:
        if (s + 1 < n) { return {next, 0, minus(before, s, n), 1, 1, true}; }
        return {next, 0, minus(p, s - (n - 1), n), 1, 1, false};
      case Collective::reduce_scatter: return {next, 0, minus(before, s, n), 1, 1, true};
      case Collective::all_gather: return {next, 0, minus(p, s, n), 1, 1, false};
      case Collective::all_to_all:  // shards that were sent s hops and are not yet at their destination
        if (i == 0) { return {next, minus(p, s, n), next, 1, n / 2 - s, false}; }
        return {before, plus(p, s, n), before, n - 1, (n - 1) / 2 - s, false};
      case Collective::broadcast: return {next, 0, 0, 1, 1, false};
      case Collective::reduce: return {before, 0, 0, 1, 1, true};
      case Collective::scatter: return {next, 0, n - 1 - s + p, 1, 1, false};  // the farthest first
      case Collective::gather: return {before, 0, p + s, 1, 1, false};         // the nearest first
      case Collective::barrier: break;
    }
    return {};
  }

  // The sender of the i-th message that p receives, which is also the i-th message of the sender.
  [[nodiscard]] std::uint32_t source(std::uint32_t p, std::uint32_t /*step*/, std::uint32_t i) const {
    const bool back = collective == Collective::reduce || collective == Collective::gather || i == 1;
    return back ? plus(p, 1, n) : minus(p, 1, n);
  }
  [[nodiscard]] std::uint32_t receives(std::uint32_t p, std::uint32_t s) const {
    const bool end = collective == Collective::broadcast || collective == Collective::scatter ? p == 0 : p == n - 1;
    if (is_rooted(collective) && end) { return 0; }
    return sends(source(p, s, 0), s);
  }
};

// ---- direct --------------------------------------------------------------------------------------------------------

struct DirectSteps {
  std::uint32_t n;
  Collective collective;
  std::uint32_t window;  // 1 … n - 1

  [[nodiscard]] std::uint32_t rounds() const { return ceil_div(n - 1, window); }
  [[nodiscard]] std::uint32_t steps() const { return rounds() * (collective == Collective::all_reduce ? 2 : 1); }
  [[nodiscard]] std::uint32_t in_round(std::uint32_t s) const {
    return std::min(window, n - 1 - (s % rounds()) * window);
  }
  [[nodiscard]] bool from_root() const {
    return collective == Collective::broadcast || collective == Collective::scatter;
  }

  // The number of messages of member p: of the root if `root_is_busy`, else of the others.
  [[nodiscard]] std::uint32_t count(std::uint32_t p, std::uint32_t s, bool root_is_busy) const {
    if (!is_rooted(collective)) { return in_round(s); }
    if (root_is_busy) { return p == 0 ? in_round(s) : 0; }
    return p > 0 && s == (p - 1) / window ? 1 : 0;
  }
  [[nodiscard]] std::uint32_t sends(std::uint32_t p, std::uint32_t s) const { return count(p, s, from_root()); }
  [[nodiscard]] std::uint32_t receives(std::uint32_t p, std::uint32_t s) const { return count(p, s, !from_root()); }

  [[nodiscard]] std::uint32_t offset(std::uint32_t s, std::uint32_t i) const { return (s % rounds()) * window + i + 1; }

  [[nodiscard]] StepMessage send(std::uint32_t p, std::uint32_t s, std::uint32_t i) const {
    const std::uint32_t to = plus(p, offset(s, i), n);
    switch (collective) {
      case Collective::all_reduce:
        if (s < rounds()) { return {to, 0, to, 1, 1, true}; }
        return {to, 0, p, 1, 1, false};
      case Collective::reduce_scatter: return {to, 0, to, 1, 1, true};
      case Collective::all_gather: return {to, 0, p, 1, 1, false};
      case Collective::all_to_all: return {to, p, to, 1, 1, false};
      case Collective::broadcast: return {to, 0, 0, 1, 1, false};
      case Collective::scatter: return {to, 0, to, 1, 1, false};
      case Collective::reduce: return {0, 0, 0, 1, 1, true};
      case Collective::gather: return {0, 0, p, 1, 1, false};
      case Collective::barrier: break;
    }
    return {};
  }
  [[nodiscard]] std::uint32_t source(std::uint32_t p, std::uint32_t s, std::uint32_t i) const {
    if (!is_rooted(collective)) { return minus(p, offset(s, i), n); }
    return from_root() ? 0 : offset(s, i);
  }
};

// ---- halving and doubling ------------------------------------------------------------------------------------------

// Member p and the member whose number differs in one bit. Scattering starts with the lowest bit and half of the
// blocks: those whose numbers agree with the peer's in the bits of the steps so far.
struct HalvingSteps {
  std::uint32_t n;
  Collective collective;

  [[nodiscard]] std::uint32_t rounds() const { return ceil_log2(n); }
  [[nodiscard]] std::uint32_t steps() const { return rounds() * (collective == Collective::all_reduce ? 2 : 1); }
  [[nodiscard]] bool scatters(std::uint32_t s) const {
    return collective == Collective::reduce_scatter || (collective == Collective::all_reduce && s < rounds());
  }
  // The bit of step s.
  [[nodiscard]] std::uint32_t bit(std::uint32_t s) const {
    const bool ascending = scatters(s) || collective == Collective::broadcast || collective == Collective::gather;
    return std::uint32_t{1} << (ascending ? s : rounds() - 1 - s % rounds());
  }

  // Binomial trees: whether p is the lower end of an edge of this step, and whether that edge has an upper end.
  [[nodiscard]] bool is_low(std::uint32_t p, std::uint32_t s) const {
    const std::uint32_t b = bit(s);
    const bool low = by_size() ? p < b : p % (2 * b) == 0;
    return low && p + b < n;
  }
  [[nodiscard]] bool is_high(std::uint32_t p, std::uint32_t s) const {
    const std::uint32_t b = bit(s);
    return by_size() ? p >= b && p < 2 * b : p % (2 * b) == b;
  }
  [[nodiscard]] bool by_size() const { return collective == Collective::broadcast || collective == Collective::reduce; }
  [[nodiscard]] bool from_root() const {
    return collective == Collective::broadcast || collective == Collective::scatter;
  }

  [[nodiscard]] std::uint32_t sends(std::uint32_t p, std::uint32_t s) const {
    if (!is_rooted(collective)) { return 1; }
    return (from_root() ? is_low(p, s) : is_high(p, s)) ? 1 : 0;
  }
  [[nodiscard]] std::uint32_t receives(std::uint32_t p, std::uint32_t s) const {
    if (!is_rooted(collective)) { return 1; }
    return (from_root() ? is_high(p, s) : is_low(p, s)) ? 1 : 0;
  }
  [[nodiscard]] StepMessage send(std::uint32_t p, std::uint32_t s, std::uint32_t /*i*/) const {
    const std::uint32_t b = bit(s);
    const std::uint32_t high = p | b, peer = is_rooted(collective) && from_root() ? p + b : p ^ b;
    if (by_size()) { return {peer, 0, 0, 1, 1, collective == Collective::reduce}; }
    if (is_rooted(collective)) { return {peer, 0, high, 1, std::min(b, n - high), false}; }
    const std::uint32_t stride = 2 * b;
    const bool reduces = scatters(s);
    return {peer, 0, (reduces ? peer : p) % stride, stride, n / stride, reduces};
  }
  [[nodiscard]] std::uint32_t source(std::uint32_t p, std::uint32_t s, std::uint32_t /*i*/) const { return p ^ bit(s); }
};

// ---- double binary tree --------------------------------------------------------------------------------------------

// Node m > 0 whose lowest set bit is b has children at distance b/2, or at a smaller one if that is beyond the end;
// node 0 is the root, odd nodes are leaves. The second tree is the mirror image (n even) or the first tree shifted by
// one member (n odd), so that its inner members are the leaves of the first tree. All nodes of a depth send in the same
// step. Source: P. Sanders, J. Speck, J. L. Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and
// scan", Parallel Computing 35 (2009) 581-594; layout as in NVIDIA/nccl src/graph/trees.cc.
struct TreeSteps {
  std::uint32_t n;
  Collective collective;

  struct List {
    std::array<StepMessage, kMostInStep> messages;
    std::uint32_t count = 0;
    void add(const StepMessage& message) { messages[count++] = message; }
  };

  [[nodiscard]] std::uint32_t levels() const { return ceil_log2(n); }
  [[nodiscard]] std::uint32_t steps() const {
    return collective == Collective::all_reduce ? 2 * levels() : levels() + 1;
  }

  [[nodiscard]] std::uint32_t member(std::uint32_t node, std::uint32_t tree) const {
    if (tree == 0) { return node; }
    return n % 2 == 0 ? n - 1 - node : minus(node, 1, n);
  }
  [[nodiscard]] std::uint32_t node(std::uint32_t member, std::uint32_t tree) const {
    if (tree == 0) { return member; }
    return n % 2 == 0 ? n - 1 - member : plus(member, 1, n);
  }
  [[nodiscard]] std::uint32_t parent(std::uint32_t node) const {
    const std::uint32_t low = node & (~node + 1);
    const std::uint32_t up = (node ^ low) | (low << 1);
    return up < n ? up : node ^ low;
  }
  [[nodiscard]] std::uint32_t depth(std::uint32_t node) const {
    std::uint32_t depth = 0;
    for (; node != 0; node = parent(node)) { ++depth; }
    return depth;
  }

  // Adds the edges of p in a tree: those to its children (`down`) or the one to its parent.
  void edges(List& list, std::uint32_t p, std::uint32_t tree, bool down, bool reduces) const {
    const std::uint32_t node = this->node(p, tree);
    const auto add = [&](std::uint32_t other) {
      // In a rooted collective member 0 is the root also of the second tree, where it is a leaf.
      const std::uint32_t peer = member(other, tree);
      if (collective != Collective::all_reduce && tree == 1 && (peer == 0 || p == 0)) { return; }
      list.add({peer, 0, tree, 1, 1, reduces});
    };
    if (!down) {
      if (node != 0) { add(parent(node)); }
      return;
    }
    if (node == 0) {
      if (n > 1) { add(std::bit_floor(n - 1)); }
      return;
    }
    const std::uint32_t half = (node & (~node + 1)) / 2;
    if (half == 0) { return; }
    add(node - half);
    for (std::uint32_t away = half; away > 0; away /= 2) {
      if (node + away < n) { return add(node + away); }
    }
  }

  [[nodiscard]] List list(std::uint32_t p, std::uint32_t s, Direction direction) const {
    List list;
    const bool broadcasts = collective == Collective::broadcast;
    // The message between the root and the top of the second tree, member n - 1.
    const std::uint32_t second_root_step = broadcasts ? 0 : levels();
    if (collective != Collective::all_reduce && s == second_root_step) {
      const std::uint32_t from = broadcasts ? 0 : n - 1, to = broadcasts ? n - 1 : 0;
      if (p == (direction == Direction::out ? from : to)) {
        list.add({direction == Direction::out ? to : from, 0, 1, 1, 1, !broadcasts});
      }
      return list;
    }
    const bool upwards = collective == Collective::reduce || (collective == Collective::all_reduce && s < levels());
    // The depth of the upper ends of this step's edges.
    const std::uint32_t upper = upwards ? levels() - 1 - s : s - (broadcasts ? 1 : levels());
    const bool is_upper = upwards == (direction == Direction::in);
    for (std::uint32_t tree = 0; tree < 2; ++tree) {
      if (depth(node(p, tree)) == upper + (is_upper ? 0 : 1)) { edges(list, p, tree, is_upper, upwards); }
    }
    return list;
  }
};

// ---- in the switch -------------------------------------------------------------------------------------------------

struct SwitchSteps {
  std::uint32_t n;
  Collective collective;
  std::uint32_t root;

  [[nodiscard]] static std::uint32_t steps() { return 2; }
  [[nodiscard]] bool reduces() const {
    return collective == Collective::all_reduce || collective == Collective::reduce_scatter ||
           collective == Collective::reduce;
  }

  [[nodiscard]] std::uint32_t count(std::uint32_t p, std::uint32_t s, Direction direction) const {
    const bool up = s == 0;
    const bool root_only = collective == (up ? Collective::broadcast : Collective::reduce);
    const bool all_but_root = !up && collective == Collective::broadcast;
    if ((p == n) != (up == (direction == Direction::in))) { return 0; }
    if (p == n) { return root_only ? 1 : all_but_root ? n - 1 : n; }
    if (root_only) { return p == root ? 1 : 0; }
    return all_but_root && p == root ? 0 : 1;
  }

  // The i-th of the members that take part in a step.
  [[nodiscard]] std::uint32_t participant(std::uint32_t s, std::uint32_t i) const {
    const bool one = collective == (s == 0 ? Collective::broadcast : Collective::reduce);
    if (one) { return root; }
    return s == 1 && collective == Collective::broadcast && i >= root ? i + 1 : i;
  }

  [[nodiscard]] StepMessage message(std::uint32_t p, std::uint32_t s, std::uint32_t i) const {
    const std::uint32_t member = p == n ? participant(s, i) : p;
    const std::uint32_t peer = p == n ? member : n;
    const bool up = s == 0;
    switch (collective) {
      case Collective::reduce_scatter:
        if (up) { return {peer, 0, 0, 1, n, true}; }
        return {peer, 0, member, 1, 1, false};
      case Collective::all_gather:
        if (up) { return {peer, 0, member, 1, 1, false}; }
        return {peer, 0, plus(member, 1, n), 1, n - 1, false};
      case Collective::barrier: return {peer, 0, 0, 1, 0, false};
      case Collective::all_reduce:
      case Collective::broadcast:
      case Collective::reduce:
      case Collective::all_to_all:
      case Collective::gather:
      case Collective::scatter: break;
    }
    return {peer, 0, 0, 1, 1, up && reduces()};
  }
};

// ---- barrier -------------------------------------------------------------------------------------------------------

// Every member sends to the member at distance 1, 2, 4, …
struct BarrierSteps {
  std::uint32_t n;

  [[nodiscard]] std::uint32_t steps() const { return ceil_log2(n); }
  [[nodiscard]] static std::uint32_t sends(std::uint32_t /*p*/, std::uint32_t /*s*/) { return 1; }
  [[nodiscard]] static std::uint32_t receives(std::uint32_t /*p*/, std::uint32_t /*s*/) { return 1; }
  [[nodiscard]] StepMessage send(std::uint32_t p, std::uint32_t s, std::uint32_t /*i*/) const {
    return {plus(p, (std::uint32_t{1} << s) % n, n), 0, 0, 1, 0, false};
  }
  [[nodiscard]] std::uint32_t source(std::uint32_t p, std::uint32_t s, std::uint32_t /*i*/) const {
    return minus(p, (std::uint32_t{1} << s) % n, n);
  }
};

// ---- numbering of members ------------------------------------------------------------------------------------------

// Converts the caller's members to those of an algorithm and back: the root becomes 0, a backward ring is mirrored.
struct Renumbering {
  std::uint32_t n;
  std::uint32_t root;
  bool mirrored;

  explicit Renumbering(const MemberSchedule& schedule)
      : n(schedule.members),
        root(is_rooted(schedule.collective) ? schedule.root : 0),
        mirrored(schedule.backward && schedule.algorithm == CollectiveAlgorithm::ring &&
                 schedule.collective != Collective::barrier) {}

  [[nodiscard]] std::uint32_t flip(std::uint32_t p) const { return mirrored && p != 0 ? n - p : p; }
  [[nodiscard]] std::uint32_t to_algorithm(std::uint32_t p) const { return flip(minus(p, root, n)); }
  [[nodiscard]] std::uint32_t to_caller(std::uint32_t p) const { return plus(flip(p), root, n); }
  [[nodiscard]] StepMessage to_caller(StepMessage message, std::uint32_t blocks) const {
    message.peer = to_caller(message.peer);
    message.row = to_caller(message.row);
    if (blocks == n) {
      message.first = to_caller(message.first);
      if (mirrored) { message.stride = n - message.stride; }
    }
    return message;
  }
};

// Calls `use` with the struct of the algorithm; not for trees and switches, whose structs have another interface.
template <class Use>
auto with_algorithm(const MemberSchedule& schedule, Use&& use) {
  const std::uint32_t n = schedule.members;
  if (schedule.collective == Collective::barrier) { return use(BarrierSteps{n}); }
  switch (schedule.algorithm) {
    case CollectiveAlgorithm::direct: {
      const std::uint32_t window = schedule.window == 0 ? n - 1 : std::min(schedule.window, n - 1);
      return use(DirectSteps{n, schedule.collective, window});
    }
    case CollectiveAlgorithm::halving_doubling: return use(HalvingSteps{n, schedule.collective});
    case CollectiveAlgorithm::ring: return use(RingSteps{n, schedule.collective});
    case CollectiveAlgorithm::tree:
    case CollectiveAlgorithm::in_switch:
    case CollectiveAlgorithm::automatic:
    case CollectiveAlgorithm::hierarchical:
    case CollectiveAlgorithm::flat_ring: break;
  }
  throw_internal_error("an algorithm with its own struct", __FILE__, __LINE__);
}

bool is_tree(const MemberSchedule& schedule) {
  return schedule.algorithm == CollectiveAlgorithm::tree && schedule.collective != Collective::barrier;
}
bool is_switch(const MemberSchedule& schedule) { return schedule.algorithm == CollectiveAlgorithm::in_switch; }

std::uint32_t message_count(const MemberSchedule& schedule, std::uint32_t member, std::uint32_t step,
                            Direction direction) {
  if (is_switch(schedule)) {
    return SwitchSteps{schedule.members, schedule.collective, schedule.root}.count(member, step, direction);
  }
  const std::uint32_t p = Renumbering(schedule).to_algorithm(member);
  if (is_tree(schedule)) { return TreeSteps{schedule.members, schedule.collective}.list(p, step, direction).count; }
  return with_algorithm(schedule, [&](const auto& algorithm) {
    return direction == Direction::out ? algorithm.sends(p, step) : algorithm.receives(p, step);
  });
}

StepMessage message_at(const MemberSchedule& schedule, std::uint32_t member, std::uint32_t step, std::uint32_t i,
                       Direction direction) {
  if (is_switch(schedule)) {
    return SwitchSteps{schedule.members, schedule.collective, schedule.root}.message(member, step, i);
  }
  const Renumbering renumbering(schedule);
  const std::uint32_t p = renumbering.to_algorithm(member), blocks = block_count(schedule);
  if (is_tree(schedule)) {
    StepMessage message = TreeSteps{schedule.members, schedule.collective}.list(p, step, direction).messages[i];
    message.peer = renumbering.to_caller(message.peer);
    return message;
  }
  return with_algorithm(schedule, [&](const auto& algorithm) {
    if (direction == Direction::out) { return renumbering.to_caller(algorithm.send(p, step, i), blocks); }
    const std::uint32_t source = algorithm.source(p, step, i);
    StepMessage message = algorithm.send(source, step, is_rooted(schedule.collective) ? 0 : i);
    if (is_rooted(schedule.collective) && source == 0) {  // the message of the root in this step that is for p
      for (std::uint32_t k = 1; message.peer != p; ++k) { message = algorithm.send(source, step, k); }
    }
    message.peer = source;
    return renumbering.to_caller(message, blocks);
  });
}

}  // namespace

std::string refusal(const MemberSchedule& schedule) {
  const bool all_to_all = schedule.collective == Collective::all_to_all;
  const bool parts = schedule.collective == Collective::gather || schedule.collective == Collective::scatter;
  if (schedule.members == 0) { return "a collective needs members"; }
  if (is_rooted(schedule.collective) && schedule.root >= schedule.members) { return "the root is no member"; }
  switch (schedule.algorithm) {
    case CollectiveAlgorithm::ring:
    case CollectiveAlgorithm::direct: return {};
    case CollectiveAlgorithm::halving_doubling:
      if (all_to_all) { return "halvingDoubling cannot do an ALL_TO_ALL"; }
      if (!is_rooted(schedule.collective) && schedule.collective != Collective::barrier &&
          !std::has_single_bit(schedule.members)) {
        return "halvingDoubling needs a power of two; there are " + std::to_string(schedule.members) + " ranks";
      }
      return {};
    case CollectiveAlgorithm::tree:
      if (all_to_all || parts || schedule.collective == Collective::all_gather ||
          schedule.collective == Collective::reduce_scatter) {
        return "doubleBinaryTree does all-reduce, broadcast and reduce only";
      }
      return {};
    case CollectiveAlgorithm::in_switch:
      if (all_to_all || parts) { return "a switch has nothing to reduce or copy in an all-to-all, gather or scatter"; }
      return {};
    case CollectiveAlgorithm::hierarchical: return "hierarchical has schedules along dimensions only";
    case CollectiveAlgorithm::automatic:
    case CollectiveAlgorithm::flat_ring: return "auto and flat_ring have no steps of their own";
  }
  return {};
}

std::uint32_t step_count(const MemberSchedule& schedule) {
  if (schedule.members <= 1) { return 0; }
  if (is_switch(schedule)) { return SwitchSteps::steps(); }
  if (is_tree(schedule)) { return TreeSteps{schedule.members, schedule.collective}.steps(); }
  return with_algorithm(schedule, [](const auto& algorithm) { return algorithm.steps(); });
}

std::uint32_t block_count(const MemberSchedule& schedule) {
  switch (schedule.collective) {
    case Collective::all_reduce:
      if (schedule.algorithm == CollectiveAlgorithm::tree) { return 2; }
      return is_switch(schedule) ? 1 : schedule.members;
    case Collective::broadcast:
    case Collective::reduce: return schedule.algorithm == CollectiveAlgorithm::tree ? 2 : 1;
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::all_to_all:
    case Collective::gather:
    case Collective::scatter: return schedule.members;
    case Collective::barrier: break;
  }
  return 1;
}

MemberSchedule member_schedule(Collective collective, CollectiveAlgorithm algorithm, std::uint32_t members) {
  if (algorithm == CollectiveAlgorithm::flat_ring) { algorithm = CollectiveAlgorithm::ring; }
  MemberSchedule schedule;
  schedule.collective = collective;
  schedule.algorithm = algorithm;
  schedule.members = members;
  return schedule;
}

CollectiveAlgorithm usual_algorithm(Collective collective) {
  switch (collective) {
    case Collective::all_reduce:
    case Collective::all_gather:
    case Collective::reduce_scatter: return CollectiveAlgorithm::ring;
    case Collective::all_to_all:
    case Collective::gather:
    case Collective::scatter: return CollectiveAlgorithm::direct;
    case Collective::broadcast:
    case Collective::reduce: return CollectiveAlgorithm::tree;
    case Collective::barrier: return CollectiveAlgorithm::halving_doubling;
  }
  throw_internal_error("known collective", __FILE__, __LINE__);
}

std::vector<std::uint32_t> ring_order(const std::vector<std::uint32_t>& members, std::size_t domain, std::size_t k) {
  std::vector<std::uint32_t> order(members.size());
  for (std::size_t i = 0; i < members.size(); ++i) { order[i] = members[i - i % domain + (i + k) % domain]; }
  return order;
}

std::uint32_t send_count(const MemberSchedule& schedule, std::uint32_t member, std::uint32_t step) {
  return message_count(schedule, member, step, Direction::out);
}
std::uint32_t receive_count(const MemberSchedule& schedule, std::uint32_t member, std::uint32_t step) {
  return message_count(schedule, member, step, Direction::in);
}
StepMessage send(const MemberSchedule& schedule, std::uint32_t member, std::uint32_t step, std::uint32_t i) {
  return message_at(schedule, member, step, i, Direction::out);
}
StepMessage receive(const MemberSchedule& schedule, std::uint32_t member, std::uint32_t step, std::uint32_t i) {
  return message_at(schedule, member, step, i, Direction::in);
}

std::uint32_t next_busy_step(const MemberSchedule& schedule, std::uint32_t member, std::uint32_t step) {
  const std::uint32_t end = step_count(schedule);
  while (step < end && send_count(schedule, member, step) == 0 && receive_count(schedule, member, step) == 0) {
    ++step;
  }
  return step;
}

}  // namespace orrery::network
