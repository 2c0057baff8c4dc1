// Id to position. Consecutive ids need no memory, dense ids a table, others a hash table of positions.
// Private to rooms that build graphs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "orrery/graph/columns.hpp"

namespace orrery::graph {

class IdIndex {
 public:
  IdIndex() = default;

  // Of several nodes with one id, find() returns the first. `ids` is not kept: pass it to find() again.
  explicit IdIndex(std::span<const std::uint64_t> ids);

  // The first node with that id. `ids`: those of the constructor.
  [[nodiscard]] std::optional<NodeIndex> find(std::uint64_t id, std::span<const std::uint64_t> ids) const {
    if (storage_ == Storage::counting) {
      const std::uint64_t position = id - first_;
      return position < ids.size() ? std::optional(static_cast<NodeIndex>(position)) : std::nullopt;
    }
    return find_in_table(id, ids);
  }

  [[nodiscard]] std::size_t memory() const { return table_.size() * sizeof(NodeIndex); }  // bytes

 private:
  enum class Storage : std::uint8_t { counting, dense, hashed };

  void fill_dense(std::span<const std::uint64_t> ids, std::uint64_t range);
  void fill_hashed(std::span<const std::uint64_t> ids);
  [[nodiscard]] std::optional<NodeIndex> find_in_table(std::uint64_t id, std::span<const std::uint64_t> ids) const;
  [[nodiscard]] std::size_t slot(std::uint64_t id) const;

  Storage storage_ = Storage::counting;
  std::uint64_t first_ = 0;  // smallest id
  int shift_ = 64;           // hashed: 64 - log2 of the table's size
  Column<NodeIndex> table_;
};

}  // namespace orrery::graph
