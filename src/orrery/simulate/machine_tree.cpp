// Double binary tree: the whole chunk goes up a tree to be reduced and down again. Two trees take turns. Each has all
// ranks but one as a perfect binary tree, numbered in order; the one that is left is the root above its top.
#include <bit>

#include "orrery/simulate/machine.hpp"

namespace orrery::simulate {

namespace {

enum TreeStep : std::uint32_t { kLeafReady, kChildReduced, kParentReduced, kLeafOver, kRootReduced };

// A rank's place in the tree, by positions in the ring.
struct Place {
  bool is_root = false;
  std::uint32_t parent = kNone;
  std::uint32_t left = kNone, right = kNone;  // the root has one child, on the left

  [[nodiscard]] bool is_leaf() const { return left == kNone; }
};

// In the upper tree positions 0 … n-2 are numbers 1 … n-1 of the perfect tree and position n-1 is the root; in the
// lower one positions are numbers, and position 0 is the root.
Place place_of(std::uint32_t position, std::uint32_t n, bool upper) {
  const auto at = [&](std::uint32_t number) { return upper ? number - 1 : number; };
  const std::uint32_t root = upper ? n - 1 : 0;
  const std::uint32_t top = n / 2;
  Place place;
  if (position == root) {
    place.is_root = true;
    place.left = at(top);
    return place;
  }
  const std::uint32_t number = upper ? position + 1 : position;
  const std::uint32_t lowest = number & (~number + 1);  // its lowest bit: how many numbers its half of the tree has
  place.parent = number == top ? root : at((number - lowest) | (lowest << 1));
  if (lowest > 1) {
    place.left = at(number - lowest / 2);
    place.right = at(number + lowest / 2);
  }
  return place;
}

}  // namespace

void Machine::start_tree(std::uint32_t id) {
  Chunk& chunk = chunks_[id];
  const Phase& phase = phase_of(chunk);
  const Running& running = running_[chunk.collective];
  const std::uint32_t turn = running.trees[chunk.phase] + chunk.ordinal * phase.tree_uses + phase.tree_number;
  chunk.upper_tree = turn % 2 == 0;
  const Place place = place_of(chunk.here, phase.ring.size, chunk.upper_tree);
  const auto rank_at = [&](std::uint32_t position) { return phase.ring.at(position, chunk.rank, chunk.here); };
  if (place.is_leaf()) { return delay(id, kLeafReady, false, {true, false, false}); }
  expect_native(id, rank_at(place.left), phase.message);
  if (place.right != kNone) { expect_native(id, rank_at(place.right), phase.message); }
}

void Machine::tree_receive(std::uint32_t id, std::uint32_t from) {
  Chunk& chunk = chunks_[id];
  const Phase& phase = phase_of(chunk);
  const Place place = place_of(chunk.here, phase.ring.size, chunk.upper_tree);
  if (place.is_root) { return delay(id, kRootReduced, true, {false, true, true}); }
  if (place.is_leaf()) { return delay(id, kLeafOver, false, {}); }
  if (from == phase.ring.at(place.parent, chunk.rank, chunk.here)) {
    return delay(id, kParentReduced, true, {false, true, true});
  }
  const bool first = chunk.got++ == 0;
  delay(id, kChildReduced, true, {false, true, !first});
}

void Machine::tree_step(std::uint32_t id, std::uint32_t step) {
  Chunk& chunk = chunks_[id];
  const Phase& phase = phase_of(chunk);
  const Place place = place_of(chunk.here, phase.ring.size, chunk.upper_tree);
  const auto rank_at = [&](std::uint32_t position) { return phase.ring.at(position, chunk.rank, chunk.here); };
  const auto send_to = [&](std::uint32_t position) {
    const std::uint32_t target = rank_at(position);
    send_native(chunk, target, phase.message, flight_ns(chunk.rank, target, phase.message));
  };
  switch (static_cast<TreeStep>(step)) {
    case kChildReduced:
      if (++chunk.tokens < 2) { return; }
      [[fallthrough]];
    case kLeafReady: send_to(place.parent); return expect_native(id, rank_at(place.parent), phase.message);
    case kParentReduced:
      send_to(place.left);
      send_to(place.right);
      break;
    case kRootReduced: send_to(place.left); break;
    case kLeafOver: break;
  }
  phase_over(id);
}

}  // namespace orrery::simulate
