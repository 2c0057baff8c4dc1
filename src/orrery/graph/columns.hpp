// The columns of a graph, for a reader that fills them itself: it decodes ranges of a file on several threads. All
// other code uses GraphBuilder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "orrery/graph/record.hpp"
#include "orrery/graph/text.hpp"

namespace orrery::graph {

// Position of a node in its graph, in the order of addition. Positions from node_count() on are missing parents (see
// Graph::present).
using NodeIndex = std::uint32_t;

// Uninitialized memory; huge pages if it is large.
void* allocate_column(std::size_t bytes);
void release_column(void* memory, std::size_t bytes);

template <class T>
struct ColumnAllocator {
  using value_type = T;

  ColumnAllocator() = default;
  template <class U>
  ColumnAllocator(const ColumnAllocator<U>& /*other*/) {}  // NOLINT(google-explicit-constructor)

  T* allocate(std::size_t count) { return static_cast<T*>(allocate_column(count * sizeof(T))); }
  void deallocate(T* memory, std::size_t count) { release_column(memory, count * sizeof(T)); }

  template <class U>
  void construct(U* at) noexcept {
    ::new (static_cast<void*>(at)) U;
  }
  template <class U, class... Args>
  void construct(U* at, Args&&... args) {
    ::new (static_cast<void*>(at)) U(std::forward<Args>(args)...);
  }

  friend bool operator==(const ColumnAllocator&, const ColumnAllocator&) { return true; }
};

// A vector whose resize() does not initialize new elements.
template <class T>
using Column = std::vector<T, ColumnAllocator<T>>;

// One attribute: sixteen bytes. Texts and lists are a Text whose view is their payload.
struct AttributeCell {
  std::uint64_t bits;  // a number's bits, or the Text's pointer
  std::uint32_t key;   // index into Columns::keys
  ValueType type;
  bool has_extra;  // there is an AttributeExtra for it
};

struct AttributeExtra {
  std::uint32_t attribute;  // index of its cell
  Text doc;
  Text unknown;
};

struct IoTexts {
  Text values;
  Text shapes;
  Text types;
};

struct NodeExtra {
  NodeIndex node;
  Text unknown;
};

struct Columns {
  // One entry per node.
  Column<std::uint64_t> id;
  Column<Text> name;
  Column<NodeType> type;
  Column<std::uint64_t> start_us;
  Column<std::uint64_t> duration_us;
  Column<std::uint64_t> offset;   // byte of the file where the record of the node starts; 0 when there is no file
  Column<std::uint32_t> inputs;   // 1 + index into io; 0 = none
  Column<std::uint32_t> outputs;  // 1 + index into io; 0 = none

  // One entry per node and one more: where the node's entries start in `ctrl`, `data`, `attributes`.
  Column<std::uint32_t> ctrl_begin;
  Column<std::uint32_t> data_begin;
  Column<std::uint32_t> attribute_begin;

  Column<NodeIndex> ctrl;
  Column<NodeIndex> data;
  Column<std::uint64_t> missing;  // ids of missing parents, each once: parent node_count() + i is missing[i]

  Column<AttributeCell> attributes;
  Column<IoTexts> io;
  std::vector<Text> keys;                       // names of attributes, each once, in the order of first use
  std::vector<AttributeExtra> attribute_extra;  // ascending
  std::vector<NodeExtra> node_extra;            // ascending
  Metadata metadata;                            // views of `blocks`

  TextBlocks blocks;           // the storage of all Texts
  std::size_t text_bytes = 0;  // size of the blocks
};

}  // namespace orrery::graph
