// The dependencies of all nodes of a feeder: parents left per node, and children. Private to the room.
//
// A position is the rank of a node in the order of ids. Bytes per node: 4 (number of incomplete parents) + 8 (place of
// its record) + 4 (start of its children) + 1/8 (whether it is ready), 8 more for its id if ids are not consecutive; 4
// per dependency.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "orrery/graph/columns.hpp"
#include "orrery/trace/ready_set.hpp"

namespace orrery::trace {

class FeederIndex {
 public:
  using Position = std::uint32_t;
  enum class State : std::uint8_t { waiting, ready, issued, complete };

  [[nodiscard]] std::size_t size() const { return open_parents_.size(); }
  [[nodiscard]] std::uint64_t id(Position node) const { return ids_.empty() ? first_ + node : ids_[node]; }
  [[nodiscard]] std::uint64_t place(Position node) const { return places_[node]; }
  [[nodiscard]] std::optional<Position> find(std::uint64_t id) const;

  [[nodiscard]] State state(Position node) const;
  [[nodiscard]] std::uint32_t open_parents(Position node) const { return open_parents_[node]; }
  [[nodiscard]] std::size_t ready() const { return ready_.size(); }
  [[nodiscard]] std::size_t issued() const { return issued_; }
  [[nodiscard]] std::size_t completed() const { return completed_; }

  // Issues the ready node with the smallest id.
  std::optional<Position> issue();

  // Completes an issued node: children without other incomplete parents become ready.
  void complete(Position node);

  // Executes the graph. Returns, per node, the number of its parents that never complete; empty if every node
  // completes.
  [[nodiscard]] std::vector<std::uint32_t> blocked_parents() const;

  [[nodiscard]] std::size_t memory() const;  // bytes

 private:
  friend class FeederIndexBuilder;

  // Values of open_parents_ that are not a count.
  static constexpr std::uint32_t kIssued = 0xFFFFFFFE;
  static constexpr std::uint32_t kComplete = 0xFFFFFFFF;

  [[nodiscard]] std::span<const Position> children(Position node) const {
    return {children_.data() + begin_[node], children_.data() + begin_[node + 1]};
  }

  std::uint64_t first_ = 0;           // the smallest id
  graph::Column<std::uint64_t> ids_;  // ascending; empty: consecutive from first_
  graph::Column<std::uint64_t> places_;
  graph::Column<std::uint32_t> open_parents_;
  graph::Column<std::uint32_t> begin_;
  graph::Column<Position> children_;
  ReadySet ready_;
  std::size_t issued_ = 0;
  std::size_t completed_ = 0;
};

// Takes nodes in any order.
class FeederIndexBuilder {
 public:
  // A dependency on a missing node.
  struct Missing {
    std::uint64_t place = 0;  // of the first node that has one
    std::uint64_t node = 0;   // its id
    std::uint64_t parent = 0;
    std::uint64_t count = 0;  // of such dependencies
  };

  // A second node with an id.
  struct Duplicate {
    std::uint64_t id = 0;
    std::uint64_t first = 0;  // places
    std::uint64_t second = 0;
  };

  // Reserves memory for about so many nodes; unused memory costs nothing.
  void reserve(std::size_t nodes);

  void add(std::uint64_t id, std::uint64_t place);
  void add_parent(std::uint64_t id);  // of the node added last

  [[nodiscard]] std::size_t size() const { return places_.size(); }

  // Whether the limits are exceeded: 2^32 - 2 nodes, and as many dependencies.
  [[nodiscard]] bool too_large() const;

  // The builder is empty afterwards. Missing parents count as complete.
  [[nodiscard]] FeederIndex finish();

  // Known after finish().
  [[nodiscard]] const Missing& missing() const { return missing_; }
  [[nodiscard]] const std::optional<Duplicate>& duplicate() const { return duplicate_; }

 private:
  using Position = FeederIndex::Position;
  static constexpr Position kAbsent = 0xFFFFFFFF;

  void switch_to_ids();
  [[nodiscard]] graph::Column<Position> sort(FeederIndex& index);
  void resolve(const FeederIndex& index);
  void connect(FeederIndex& index, const graph::Column<Position>& rank);

  // While ids are consecutive, the first one and the distances of parents from it are enough.
  bool consecutive_ = true;
  std::uint64_t first_ = 0;
  graph::Column<std::uint64_t> ids_;
  graph::Column<std::uint64_t> places_;
  graph::Column<std::uint32_t> parent_count_;
  graph::Column<Position> parent_positions_;  // node by node
  graph::Column<std::uint64_t> parent_ids_;   // instead, if ids are not consecutive
  Missing missing_;
  std::optional<Duplicate> duplicate_;
};

}  // namespace orrery::trace
