// One struct per technique. Each answers in the coordinates of its own: member 0 is the root, a ring goes forward.
// `Frame` turns members and blocks into those of the caller.
#include "orrery/network/moves.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace orrery::network {

namespace {

constexpr std::uint32_t kMostInStep = 8;  // messages of a member of two trees in one step: at most 2 x 2, and one more

enum class Way : std::uint8_t { out, in };

std::uint32_t rounds_up(std::uint32_t value, std::uint32_t by) { return (value + by - 1) / by; }
std::uint32_t log2_up(std::uint32_t n) { return static_cast<std::uint32_t>(std::bit_width(n - 1)); }

bool is_rooted(Operation operation) {
  return operation == Operation::broadcast || operation == Operation::reduce || operation == Operation::gather ||
         operation == Operation::scatter;
}

// Modulo n; a and b are below n.
std::uint32_t plus(std::uint32_t a, std::uint32_t b, std::uint32_t n) { return a + b < n ? a + b : a + b - n; }
std::uint32_t minus(std::uint32_t a, std::uint32_t b, std::uint32_t n) { return a >= b ? a - b : a + n - b; }

// ---- ring ----------------------------------------------------------------------------------------------------------

struct RingSteps {
  std::uint32_t n;
  Operation operation;

  [[nodiscard]] std::uint32_t steps() const {
    if (operation == Operation::all_reduce) { return 2 * (n - 1); }
    return operation == Operation::all_to_all ? n / 2 : n - 1;
  }

  [[nodiscard]] std::uint32_t sends(std::uint32_t p, std::uint32_t s) const {
    switch (operation) {
      case Operation::all_to_all: return (s < n / 2 ? 1 : 0) + (s < (n - 1) / 2 ? 1 : 0);
      case Operation::broadcast: return s == p && p + 1 < n ? 1 : 0;
      case Operation::reduce: return p > 0 && s == n - 1 - p ? 1 : 0;
      case Operation::scatter: return s >= p && s + 1 < n ? 1 : 0;
      case Operation::gather: return p > 0 && s <= n - 1 - p ? 1 : 0;
      case Operation::all_reduce:
      case Operation::all_gather:
      case Operation::reduce_scatter:
      case Operation::barrier: break;
    }
    return 1;
  }

  [[nodiscard]] Move send(std::uint32_t p, std::uint32_t s, std::uint32_t i) const {
    const std::uint32_t next = plus(p, 1, n), before = minus(p, 1, n);
    switch (operation) {
      case Operation::all_reduce:
        if (s + 1 < n) { return {next, 0, minus(before, s, n), 1, 1, true}; }
        return {next, 0, minus(p, s - (n - 1), n), 1, 1, false};
      case Operation::reduce_scatter: return {next, 0, minus(before, s, n), 1, 1, true};
      case Operation::all_gather: return {next, 0, minus(p, s, n), 1, 1, false};
      case Operation::all_to_all:  // what has gone s hops already, and has further to go
        if (i == 0) { return {next, minus(p, s, n), next, 1, n / 2 - s, false}; }
        return {before, plus(p, s, n), before, n - 1, (n - 1) / 2 - s, false};
      case Operation::broadcast: return {next, 0, 0, 1, 1, false};
      case Operation::reduce: return {before, 0, 0, 1, 1, true};
      case Operation::scatter: return {next, 0, n - 1 - s + p, 1, 1, false};  // the farthest first
      case Operation::gather: return {before, 0, p + s, 1, 1, false};         // the nearest first
      case Operation::barrier: break;
    }
    return {};
  }

  // Who sends the i-th message that p receives; all i-th messages are sent as i-th ones.
  [[nodiscard]] std::uint32_t source(std::uint32_t p, std::uint32_t /*step*/, std::uint32_t i) const {
    const bool back = operation == Operation::reduce || operation == Operation::gather || i == 1;
    return back ? plus(p, 1, n) : minus(p, 1, n);
  }
  [[nodiscard]] std::uint32_t receives(std::uint32_t p, std::uint32_t s) const {
    const bool end = operation == Operation::broadcast || operation == Operation::scatter ? p == 0 : p == n - 1;
    if (is_rooted(operation) && end) { return 0; }
    return sends(source(p, s, 0), s);
  }
};

// ---- direct --------------------------------------------------------------------------------------------------------

struct DirectSteps {
  std::uint32_t n;
  Operation operation;
  std::uint32_t window;  // 1 … n - 1

  [[nodiscard]] std::uint32_t rounds() const { return rounds_up(n - 1, window); }
  [[nodiscard]] std::uint32_t steps() const { return rounds() * (operation == Operation::all_reduce ? 2 : 1); }
  [[nodiscard]] std::uint32_t in_round(std::uint32_t s) const {
    return std::min(window, n - 1 - (s % rounds()) * window);
  }
  [[nodiscard]] bool from_root() const { return operation == Operation::broadcast || operation == Operation::scatter; }

  // Of the root, or of the others.
  [[nodiscard]] std::uint32_t count(std::uint32_t p, std::uint32_t s, bool root_is_busy) const {
    if (!is_rooted(operation)) { return in_round(s); }
    if (root_is_busy) { return p == 0 ? in_round(s) : 0; }
    return p > 0 && s == (p - 1) / window ? 1 : 0;
  }
  [[nodiscard]] std::uint32_t sends(std::uint32_t p, std::uint32_t s) const { return count(p, s, from_root()); }
  [[nodiscard]] std::uint32_t receives(std::uint32_t p, std::uint32_t s) const { return count(p, s, !from_root()); }

  [[nodiscard]] std::uint32_t offset(std::uint32_t s, std::uint32_t i) const { return (s % rounds()) * window + i + 1; }

  [[nodiscard]] Move send(std::uint32_t p, std::uint32_t s, std::uint32_t i) const {
    const std::uint32_t to = plus(p, offset(s, i), n);
    switch (operation) {
      case Operation::all_reduce:
        if (s < rounds()) { return {to, 0, to, 1, 1, true}; }
        return {to, 0, p, 1, 1, false};
      case Operation::reduce_scatter: return {to, 0, to, 1, 1, true};
      case Operation::all_gather: return {to, 0, p, 1, 1, false};
      case Operation::all_to_all: return {to, p, to, 1, 1, false};
      case Operation::broadcast: return {to, 0, 0, 1, 1, false};
      case Operation::scatter: return {to, 0, to, 1, 1, false};
      case Operation::reduce: return {0, 0, 0, 1, 1, true};
      case Operation::gather: return {0, 0, p, 1, 1, false};
      case Operation::barrier: break;
    }
    return {};
  }
  [[nodiscard]] std::uint32_t source(std::uint32_t p, std::uint32_t s, std::uint32_t i) const {
    if (!is_rooted(operation)) { return minus(p, offset(s, i), n); }
    return from_root() ? 0 : offset(s, i);
  }
};

// ---- halving and doubling ------------------------------------------------------------------------------------------

// Member p and the one whose number differs in one bit. Scattering starts with the nearest and half of the blocks:
// those whose numbers agree with the peer's in the bits so far.
struct HalvingSteps {
  std::uint32_t n;
  Operation operation;

  [[nodiscard]] std::uint32_t rounds() const { return log2_up(n); }
  [[nodiscard]] std::uint32_t steps() const { return rounds() * (operation == Operation::all_reduce ? 2 : 1); }
  [[nodiscard]] bool scatters(std::uint32_t s) const {
    return operation == Operation::reduce_scatter || (operation == Operation::all_reduce && s < rounds());
  }
  // The bit of step s.
  [[nodiscard]] std::uint32_t bit(std::uint32_t s) const {
    const bool ascending = scatters(s) || operation == Operation::broadcast || operation == Operation::gather;
    return std::uint32_t{1} << (ascending ? s : rounds() - 1 - s % rounds());
  }

  // Binomial trees: who is at the lower end of an edge of this step, and whether it has an upper end.
  [[nodiscard]] bool is_low(std::uint32_t p, std::uint32_t s) const {
    const std::uint32_t b = bit(s);
    const bool low = by_size() ? p < b : p % (2 * b) == 0;
    return low && p + b < n;
  }
  [[nodiscard]] bool is_high(std::uint32_t p, std::uint32_t s) const {
    const std::uint32_t b = bit(s);
    return by_size() ? p >= b && p < 2 * b : p % (2 * b) == b;
  }
  [[nodiscard]] bool by_size() const { return operation == Operation::broadcast || operation == Operation::reduce; }
  [[nodiscard]] bool from_root() const { return operation == Operation::broadcast || operation == Operation::scatter; }

  [[nodiscard]] std::uint32_t sends(std::uint32_t p, std::uint32_t s) const {
    if (!is_rooted(operation)) { return 1; }
    return (from_root() ? is_low(p, s) : is_high(p, s)) ? 1 : 0;
  }
  [[nodiscard]] std::uint32_t receives(std::uint32_t p, std::uint32_t s) const {
    if (!is_rooted(operation)) { return 1; }
    return (from_root() ? is_high(p, s) : is_low(p, s)) ? 1 : 0;
  }
  [[nodiscard]] Move send(std::uint32_t p, std::uint32_t s, std::uint32_t /*i*/) const {
    const std::uint32_t b = bit(s);
    const std::uint32_t high = p | b, peer = is_rooted(operation) && from_root() ? p + b : p ^ b;
    if (by_size()) { return {peer, 0, 0, 1, 1, operation == Operation::reduce}; }
    if (is_rooted(operation)) { return {peer, 0, high, 1, std::min(b, n - high), false}; }
    const std::uint32_t stride = 2 * b;
    const bool reduces = scatters(s);
    return {peer, 0, (reduces ? peer : p) % stride, stride, n / stride, reduces};
  }
  [[nodiscard]] std::uint32_t source(std::uint32_t p, std::uint32_t s, std::uint32_t /*i*/) const { return p ^ bit(s); }
};

// ---- double binary tree --------------------------------------------------------------------------------------------

// The tree of expand.hpp's double_tree(), a node at a time: node m > 0 whose lowest set bit is b has children b/2 away,
// and nearer where that is beyond the end; node 0 is above all. The second tree is the mirror image (n even) or the
// same one member back (n odd). All of a depth send in the same step.
struct TreeSteps {
  std::uint32_t n;
  Operation operation;

  struct List {
    std::array<Move, kMostInStep> moves;
    std::uint32_t count = 0;
    void add(const Move& move) { moves[count++] = move; }
  };

  [[nodiscard]] std::uint32_t levels() const { return log2_up(n); }
  [[nodiscard]] std::uint32_t steps() const { return operation == Operation::all_reduce ? 2 * levels() : levels() + 1; }

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

  // Its edges of this step downwards, or the one upwards.
  void edges(List& list, std::uint32_t p, std::uint32_t tree, bool down, bool reduces) const {
    const std::uint32_t node = this->node(p, tree);
    const auto add = [&](std::uint32_t other) {
      // In a rooted operation member 0 is the root also of the second tree, where it is a leaf.
      const std::uint32_t peer = member(other, tree);
      if (operation != Operation::all_reduce && tree == 1 && (peer == 0 || p == 0)) { return; }
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

  [[nodiscard]] List list(std::uint32_t p, std::uint32_t s, Way way) const {
    List list;
    const bool broadcasts = operation == Operation::broadcast;
    // Between the root and the top of the second tree, member n - 1.
    const std::uint32_t handover = broadcasts ? 0 : levels();
    if (operation != Operation::all_reduce && s == handover) {
      const std::uint32_t from = broadcasts ? 0 : n - 1, to = broadcasts ? n - 1 : 0;
      if (p == (way == Way::out ? from : to)) { list.add({way == Way::out ? to : from, 0, 1, 1, 1, !broadcasts}); }
      return list;
    }
    const bool upwards = operation == Operation::reduce || (operation == Operation::all_reduce && s < levels());
    // The depth of the upper ends of this step's edges.
    const std::uint32_t upper = upwards ? levels() - 1 - s : s - (broadcasts ? 1 : levels());
    const bool is_upper = upwards == (way == Way::in);
    for (std::uint32_t tree = 0; tree < 2; ++tree) {
      if (depth(node(p, tree)) == upper + (is_upper ? 0 : 1)) { edges(list, p, tree, is_upper, upwards); }
    }
    return list;
  }
};

// ---- in the switch -------------------------------------------------------------------------------------------------

struct SwitchSteps {
  std::uint32_t n;
  Operation operation;
  std::uint32_t root;

  [[nodiscard]] static std::uint32_t steps() { return 2; }
  [[nodiscard]] bool reduces() const {
    return operation == Operation::all_reduce || operation == Operation::reduce_scatter ||
           operation == Operation::reduce;
  }

  [[nodiscard]] std::uint32_t count(std::uint32_t p, std::uint32_t s, Way way) const {
    const bool up = s == 0;
    const bool root_only = operation == (up ? Operation::broadcast : Operation::reduce);
    const bool all_but_root = !up && operation == Operation::broadcast;
    if ((p == n) != (up == (way == Way::in))) { return 0; }
    if (p == n) { return root_only ? 1 : all_but_root ? n - 1 : n; }
    if (root_only) { return p == root ? 1 : 0; }
    return all_but_root && p == root ? 0 : 1;
  }

  // The i-th of the members that a step is about.
  [[nodiscard]] std::uint32_t concerned(std::uint32_t s, std::uint32_t i) const {
    const bool one = operation == (s == 0 ? Operation::broadcast : Operation::reduce);
    if (one) { return root; }
    return s == 1 && operation == Operation::broadcast && i >= root ? i + 1 : i;
  }

  [[nodiscard]] Move move(std::uint32_t p, std::uint32_t s, std::uint32_t i) const {
    const std::uint32_t member = p == n ? concerned(s, i) : p;
    const std::uint32_t peer = p == n ? member : n;
    const bool up = s == 0;
    switch (operation) {
      case Operation::reduce_scatter:
        if (up) { return {peer, 0, 0, 1, n, true}; }
        return {peer, 0, member, 1, 1, false};
      case Operation::all_gather:
        if (up) { return {peer, 0, member, 1, 1, false}; }
        return {peer, 0, plus(member, 1, n), 1, n - 1, false};
      case Operation::barrier: return {peer, 0, 0, 1, 0, false};
      case Operation::all_reduce:
      case Operation::broadcast:
      case Operation::reduce:
      case Operation::all_to_all:
      case Operation::gather:
      case Operation::scatter: break;
    }
    return {peer, 0, 0, 1, 1, up && reduces()};
  }
};

// ---- barrier -------------------------------------------------------------------------------------------------------

// Everybody tells the one 1, 2, 4, … further on.
struct BarrierSteps {
  std::uint32_t n;

  [[nodiscard]] std::uint32_t steps() const { return log2_up(n); }
  [[nodiscard]] static std::uint32_t sends(std::uint32_t /*p*/, std::uint32_t /*s*/) { return 1; }
  [[nodiscard]] static std::uint32_t receives(std::uint32_t /*p*/, std::uint32_t /*s*/) { return 1; }
  [[nodiscard]] Move send(std::uint32_t p, std::uint32_t s, std::uint32_t /*i*/) const {
    return {plus(p, (std::uint32_t{1} << s) % n, n), 0, 0, 1, 0, false};
  }
  [[nodiscard]] std::uint32_t source(std::uint32_t p, std::uint32_t s, std::uint32_t /*i*/) const {
    return minus(p, (std::uint32_t{1} << s) % n, n);
  }
};

// ---- frame ---------------------------------------------------------------------------------------------------------

// The caller's members as those of a technique, and back: the root becomes 0; a backward ring is a mirrored one.
struct Frame {
  std::uint32_t n;
  std::uint32_t root;
  bool mirrored;

  explicit Frame(const Steps& steps)
      : n(steps.members),
        root(is_rooted(steps.operation) ? steps.root : 0),
        mirrored(steps.backward && steps.technique == Technique::ring && steps.operation != Operation::barrier) {}

  [[nodiscard]] std::uint32_t flip(std::uint32_t p) const { return mirrored && p != 0 ? n - p : p; }
  [[nodiscard]] std::uint32_t inside(std::uint32_t p) const { return flip(minus(p, root, n)); }
  [[nodiscard]] std::uint32_t outside(std::uint32_t p) const { return plus(flip(p), root, n); }
  [[nodiscard]] Move outside(Move move, std::uint32_t blocks) const {
    move.peer = outside(move.peer);
    move.row = outside(move.row);
    if (blocks == n) {
      move.first = outside(move.first);
      if (mirrored) { move.stride = n - move.stride; }
    }
    return move;
  }
};

// Calls `use` with the technique's steps, where they come from one struct with sends, send, receives and source.
template <class Use>
auto with(const Steps& steps, Use&& use) {
  const std::uint32_t n = steps.members;
  if (steps.operation == Operation::barrier) { return use(BarrierSteps{n}); }
  if (steps.technique == Technique::direct) {
    const std::uint32_t window = steps.window == 0 ? n - 1 : std::min(steps.window, n - 1);
    return use(DirectSteps{n, steps.operation, window});
  }
  if (steps.technique == Technique::halving_doubling) { return use(HalvingSteps{n, steps.operation}); }
  return use(RingSteps{n, steps.operation});
}

bool is_tree(const Steps& steps) {
  return steps.technique == Technique::double_tree && steps.operation != Operation::barrier;
}
bool is_switch(const Steps& steps) { return steps.technique == Technique::in_switch; }

std::uint32_t message_count(const Steps& steps, std::uint32_t member, std::uint32_t step, Way way) {
  if (is_switch(steps)) { return SwitchSteps{steps.members, steps.operation, steps.root}.count(member, step, way); }
  const std::uint32_t p = Frame(steps).inside(member);
  if (is_tree(steps)) { return TreeSteps{steps.members, steps.operation}.list(p, step, way).count; }
  return with(steps, [&](const auto& form) { return way == Way::out ? form.sends(p, step) : form.receives(p, step); });
}

Move message(const Steps& steps, std::uint32_t member, std::uint32_t step, std::uint32_t i, Way way) {
  if (is_switch(steps)) { return SwitchSteps{steps.members, steps.operation, steps.root}.move(member, step, i); }
  const Frame frame(steps);
  const std::uint32_t p = frame.inside(member), blocks = block_count(steps);
  if (is_tree(steps)) {
    Move move = TreeSteps{steps.members, steps.operation}.list(p, step, way).moves[i];
    move.peer = frame.outside(move.peer);
    return move;
  }
  return with(steps, [&](const auto& form) {
    if (way == Way::out) { return frame.outside(form.send(p, step, i), blocks); }
    const std::uint32_t source = form.source(p, step, i);
    Move move = form.send(source, step, is_rooted(steps.operation) ? 0 : i);
    if (is_rooted(steps.operation) && source == 0) {  // of the root's messages of the step, the one to p
      for (std::uint32_t k = 1; move.peer != p; ++k) { move = form.send(source, step, k); }
    }
    move.peer = source;
    return frame.outside(move, blocks);
  });
}

}  // namespace

std::string refusal(const Steps& steps) {
  const bool all_to_all = steps.operation == Operation::all_to_all;
  const bool parts = steps.operation == Operation::gather || steps.operation == Operation::scatter;
  if (steps.members == 0) { return "a collective needs members"; }
  if (is_rooted(steps.operation) && steps.root >= steps.members) { return "the root is no member"; }
  switch (steps.technique) {
    case Technique::ring:
    case Technique::direct: return {};
    case Technique::halving_doubling:
      if (all_to_all) { return "halvingDoubling cannot do an ALL_TO_ALL"; }
      if (!is_rooted(steps.operation) && steps.operation != Operation::barrier && !std::has_single_bit(steps.members)) {
        return "halvingDoubling needs a power of two; there are " + std::to_string(steps.members) + " ranks";
      }
      return {};
    case Technique::double_tree:
      if (all_to_all || parts || steps.operation == Operation::all_gather ||
          steps.operation == Operation::reduce_scatter) {
        return "doubleBinaryTree does all-reduce, broadcast and reduce only";
      }
      return {};
    case Technique::in_switch:
      if (all_to_all || parts) { return "a switch has nothing to reduce or copy in an all-to-all, gather or scatter"; }
      return {};
  }
  return {};
}

std::uint32_t step_count(const Steps& steps) {
  if (steps.members <= 1) { return 0; }
  if (is_switch(steps)) { return SwitchSteps::steps(); }
  if (is_tree(steps)) { return TreeSteps{steps.members, steps.operation}.steps(); }
  return with(steps, [](const auto& form) { return form.steps(); });
}

std::uint32_t block_count(const Steps& steps) {
  switch (steps.operation) {
    case Operation::all_reduce:
      if (steps.technique == Technique::double_tree) { return 2; }
      return is_switch(steps) ? 1 : steps.members;
    case Operation::broadcast:
    case Operation::reduce: return steps.technique == Technique::double_tree ? 2 : 1;
    case Operation::all_gather:
    case Operation::reduce_scatter:
    case Operation::all_to_all:
    case Operation::gather:
    case Operation::scatter: return steps.members;
    case Operation::barrier: break;
  }
  return 1;
}

std::uint32_t send_count(const Steps& steps, std::uint32_t member, std::uint32_t step) {
  return message_count(steps, member, step, Way::out);
}
std::uint32_t receive_count(const Steps& steps, std::uint32_t member, std::uint32_t step) {
  return message_count(steps, member, step, Way::in);
}
Move send(const Steps& steps, std::uint32_t member, std::uint32_t step, std::uint32_t i) {
  return message(steps, member, step, i, Way::out);
}
Move receive(const Steps& steps, std::uint32_t member, std::uint32_t step, std::uint32_t i) {
  return message(steps, member, step, i, Way::in);
}

std::uint32_t next_busy_step(const Steps& steps, std::uint32_t member, std::uint32_t step) {
  const std::uint32_t end = step_count(steps);
  while (step < end && send_count(steps, member, step) == 0 && receive_count(steps, member, step) == 0) { ++step; }
  return step;
}

}  // namespace orrery::network
