#include "orrery/trace/feeder_index.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace orrery::trace {

using Position = FeederIndex::Position;

namespace {

constexpr std::size_t kMostIndexed = 0xFFFFFFFD;

template <class T>
std::size_t bytes_of(const graph::Column<T>& column) {
  return column.size() * sizeof(T);
}

// The position of an id in ascending ids, or their number. Parents are usually shortly before their children, so the
// search starts at a guess and doubles its steps.
std::size_t position_of(std::uint64_t id, std::span<const std::uint64_t> ids, std::size_t guess) {
  std::size_t low = 0;
  std::size_t high = ids.size();
  if (guess < ids.size()) {
    std::size_t step = 1;
    if (ids[guess] < id) {
      low = guess;
      for (; guess + step < ids.size() && ids[guess + step] < id; step *= 2) { low = guess + step; }
      high = std::min(ids.size(), guess + step + 1);
    } else {
      high = guess + 1;
      for (; guess >= step && ids[guess - step] >= id; step *= 2) { high = guess - step + 1; }
      low = guess >= step ? guess - step : 0;
    }
  }
  const auto found = std::lower_bound(ids.begin() + static_cast<std::ptrdiff_t>(low),
                                      ids.begin() + static_cast<std::ptrdiff_t>(high), id);
  return found != ids.end() && *found == id ? static_cast<std::size_t>(found - ids.begin()) : ids.size();
}

}  // namespace

std::optional<Position> FeederIndex::find(std::uint64_t id) const {
  const std::size_t position =
      ids_.empty() ? static_cast<std::size_t>(id - first_) : position_of(id, ids_, ids_.size());
  return position < size() ? std::optional(static_cast<Position>(position)) : std::nullopt;
}

FeederIndex::State FeederIndex::state(Position node) const {
  switch (open_parents_[node]) {
    case 0: return State::ready;
    case kIssued: return State::issued;
    case kComplete: return State::complete;
    default: return State::waiting;
  }
}

std::optional<Position> FeederIndex::issue() {
  const auto node = ready_.pop();
  if (!node) { return std::nullopt; }
  open_parents_[*node] = kIssued;
  ++issued_;
  return node;
}

void FeederIndex::complete(Position node) {
  open_parents_[node] = kComplete;
  --issued_;
  ++completed_;
  for (const Position child : children(node)) {
    if (--open_parents_[child] == 0) { ready_.insert(child); }
  }
}

std::vector<std::uint32_t> FeederIndex::blocked_parents() const {
  std::vector<std::uint32_t> open_parents(open_parents_.begin(), open_parents_.end());
  std::vector<Position> ready;
  for (Position node = 0; node < size(); ++node) {
    if (open_parents[node] == 0) { ready.push_back(node); }
  }
  std::size_t done = 0;
  while (!ready.empty()) {
    const Position node = ready.back();
    ready.pop_back();
    ++done;
    for (const Position child : children(node)) {
      if (--open_parents[child] == 0) { ready.push_back(child); }
    }
  }
  if (done == size()) { open_parents.clear(); }
  return open_parents;
}

std::size_t FeederIndex::memory() const {
  return bytes_of(ids_) + bytes_of(places_) + bytes_of(open_parents_) + bytes_of(begin_) + bytes_of(children_) +
         ready_.memory();
}

void FeederIndexBuilder::reserve(std::size_t nodes) {
  nodes = std::min(nodes, kMostIndexed);
  places_.reserve(nodes);
  parent_count_.reserve(nodes);
}

void FeederIndexBuilder::add(std::uint64_t id, std::uint64_t place) {
  if (places_.empty()) { first_ = id; }
  if (consecutive_ && id != first_ + places_.size()) { switch_to_ids(); }
  if (!consecutive_) { ids_.push_back(id); }
  places_.push_back(place);
  parent_count_.push_back(0);
}

void FeederIndexBuilder::add_parent(std::uint64_t id) {
  ++parent_count_.back();
  if (consecutive_ && (id < first_ || id - first_ >= kAbsent)) { switch_to_ids(); }
  if (consecutive_) {
    parent_positions_.push_back(static_cast<Position>(id - first_));
  } else {
    parent_ids_.push_back(id);
  }
}

// Ids are not consecutive: from now on all of them and those of the parents are kept.
void FeederIndexBuilder::switch_to_ids() {
  consecutive_ = false;
  ids_.reserve(std::max(places_.size() + 1, places_.capacity()));
  for (std::size_t i = 0; i < places_.size(); ++i) { ids_.push_back(first_ + i); }
  parent_ids_.reserve(parent_positions_.size() + 1);
  for (const Position parent : parent_positions_) { parent_ids_.push_back(first_ + parent); }
  parent_positions_ = {};
}

bool FeederIndexBuilder::too_large() const {
  return places_.size() > kMostIndexed || parent_positions_.size() + parent_ids_.size() > kMostIndexed;
}

FeederIndex FeederIndexBuilder::finish() {
  FeederIndex index;
  index.first_ = first_;
  const graph::Column<Position> rank = sort(index);
  resolve(index);
  connect(index, rank);
  index.ready_ = ReadySet(index.size());
  for (Position node = 0; node < index.size(); ++node) {
    if (index.open_parents_[node] == 0) { index.ready_.insert(node); }
  }
  return index;
}

// Sorts nodes by id. Returns the position of each node in the order of add(); empty if that is the order of ids.
graph::Column<Position> FeederIndexBuilder::sort(FeederIndex& index) {
  graph::Column<Position> rank;
  if (std::is_sorted(ids_.begin(), ids_.end())) {
    index.ids_ = std::move(ids_);
    index.places_ = std::move(places_);
  } else {
    graph::Column<Position> order(places_.size());
    std::iota(order.begin(), order.end(), Position{0});
    std::sort(order.begin(), order.end(),
              [&](Position a, Position b) { return ids_[a] != ids_[b] ? ids_[a] < ids_[b] : a < b; });
    rank.resize(order.size());
    for (Position position = 0; position < order.size(); ++position) {
      rank[order[position]] = position;
      index.ids_.push_back(ids_[order[position]]);
      index.places_.push_back(places_[order[position]]);
    }
    ids_ = {};
    places_ = {};
  }
  const auto twice = std::adjacent_find(index.ids_.begin(), index.ids_.end());
  if (twice != index.ids_.end()) {
    const auto at = static_cast<std::size_t>(twice - index.ids_.begin());
    duplicate_ = Duplicate{*twice, index.places_[at], index.places_[at + 1]};
  }
  return rank;
}

// Converts ids of parents to positions. Missing parents get a position that no node has.
void FeederIndexBuilder::resolve(const FeederIndex& index) {
  if (consecutive_) { return; }
  parent_positions_.resize(parent_ids_.size());
  std::size_t guess = 0;
  for (std::size_t i = 0; i < parent_ids_.size(); ++i) {
    const std::size_t found = position_of(parent_ids_[i], index.ids_, guess);
    const bool absent = found == index.ids_.size();
    parent_positions_[i] = absent ? kAbsent : static_cast<Position>(found);
    if (!absent) { guess = found; }
  }
}

// Lists of children from lists of parents, by a counting sort. It begins with the last node, so that children are in
// ascending order.
void FeederIndexBuilder::connect(FeederIndex& index, const graph::Column<Position>& rank) {
  const auto position = [&](std::size_t node) { return rank.empty() ? static_cast<Position>(node) : rank[node]; };
  index.begin_.assign(index.places_.size() + 1, 0);
  for (const Position parent : parent_positions_) {
    if (parent < index.places_.size()) { ++index.begin_[parent]; }
  }
  std::partial_sum(index.begin_.begin(), index.begin_.end(), index.begin_.begin());
  index.children_.resize(index.begin_.back());
  index.open_parents_.assign(index.places_.size(), 0);
  std::size_t edge = parent_positions_.size();
  for (std::size_t node = parent_count_.size(); node-- > 0;) {
    for (std::uint32_t i = parent_count_[node]; i > 0; --i) {
      const Position parent = parent_positions_[--edge];
      if (parent >= index.places_.size()) {
        const std::uint64_t id = consecutive_ ? first_ + parent : parent_ids_[edge];
        missing_ = {index.places_[position(node)], index.id(position(node)), id, missing_.count + 1};
        continue;
      }
      index.children_[--index.begin_[parent]] = position(node);
      ++index.open_parents_[position(node)];
    }
  }
  parent_positions_ = {};
  parent_ids_ = {};
  parent_count_ = {};
}

}  // namespace orrery::trace
