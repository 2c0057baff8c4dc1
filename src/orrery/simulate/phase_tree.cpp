// Double binary tree: the whole chunk is reduced up a tree and broadcast down. Chunks alternate between two trees. In
// each tree all ranks except one form a perfect binary tree, numbered in order; the remaining rank is the root above
// its top.
#include <bit>

#include "orrery/simulate/phase_runner.hpp"

namespace orrery::simulate {

namespace {

enum TreeStep : std::uint32_t { kLeafReady, kChildReduced, kParentReduced, kLeafOver, kRootReduced };

// The parent and children of a rank in the tree, as positions in the ring.
struct TreePlace {
  bool is_root = false;
  std::uint32_t parent = kNone;
  std::uint32_t left = kNone, right = kNone;  // the root has one child, on the left

  [[nodiscard]] bool is_leaf() const { return left == kNone; }
};

// In the upper tree positions 0 … n-2 are numbers 1 … n-1 of the perfect tree and position n-1 is the root; in the
// lower one positions are numbers, and position 0 is the root.
TreePlace place_of(std::uint32_t position, std::uint32_t n, bool upper) {
  const auto at = [&](std::uint32_t number) { return upper ? number - 1 : number; };
  const std::uint32_t root = upper ? n - 1 : 0;
  const std::uint32_t top = n / 2;
  TreePlace place;
  if (position == root) {
    place.is_root = true;
    place.left = at(top);
    return place;
  }
  const std::uint32_t number = upper ? position + 1 : position;
  const std::uint32_t lowest = number & (~number + 1);  // its lowest bit: twice the distance of its children
  place.parent = number == top ? root : at((number - lowest) | (lowest << 1));
  if (lowest > 1) {
    place.left = at(number - lowest / 2);
    place.right = at(number + lowest / 2);
  }
  return place;
}

}  // namespace

void PhaseRunner::start_tree(std::uint32_t id) {
  const Chunk& chunk = chunks_[id];
  const ChunkPhase& phase = *chunk.current;
  const TreePlace place = place_of(chunk.position, phase.ring.size, chunk.upper_tree);
  const auto rank_at = [&](std::uint32_t position) { return phase.ring.at(position, chunk.rank, chunk.position); };
  if (place.is_leaf()) { return endpoints_.pass(id, chunk, kLeafReady, false, {true, false, false}); }
  expect(id, rank_at(place.left), phase.message);
  if (place.right != kNone) { expect(id, rank_at(place.right), phase.message); }
}

void PhaseRunner::tree_receive(std::uint32_t id, std::uint32_t from) {
  Chunk& chunk = chunks_[id];
  const ChunkPhase& phase = *chunk.current;
  const TreePlace place = place_of(chunk.position, phase.ring.size, chunk.upper_tree);
  if (place.is_root) { return endpoints_.pass(id, chunk, kRootReduced, true, {false, true, true}); }
  if (place.is_leaf()) { return endpoints_.pass(id, chunk, kLeafOver, false, {}); }
  if (from == phase.ring.at(place.parent, chunk.rank, chunk.position)) {
    return endpoints_.pass(id, chunk, kParentReduced, true, {false, true, true});
  }
  const bool first = chunk.received++ == 0;
  endpoints_.pass(id, chunk, kChildReduced, true, {false, true, !first});
}

bool PhaseRunner::tree_step(std::uint32_t id, std::uint32_t step) {
  Chunk& chunk = chunks_[id];
  const ChunkPhase& phase = *chunk.current;
  const TreePlace place = place_of(chunk.position, phase.ring.size, chunk.upper_tree);
  const auto rank_at = [&](std::uint32_t position) { return phase.ring.at(position, chunk.rank, chunk.position); };
  const auto send_to = [&](std::uint32_t position) {
    const std::uint32_t target = rank_at(position);
    send(chunk, {target, target, kNone}, phase.message, network_.flight_ns(chunk.rank, target, phase.message));
  };
  switch (static_cast<TreeStep>(step)) {
    case kChildReduced:
      if (++chunk.tokens < 2) { return false; }
      [[fallthrough]];
    case kLeafReady:
      send_to(place.parent);
      expect(id, rank_at(place.parent), phase.message);
      return false;
    case kParentReduced:
      send_to(place.left);
      send_to(place.right);
      return true;
    case kRootReduced: send_to(place.left); return true;
    case kLeafOver: return true;
  }
  return true;
}

}  // namespace orrery::simulate
