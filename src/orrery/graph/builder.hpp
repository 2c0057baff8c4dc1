// Builds a graph node by node, in any order: a dependency may name a node that is added later, or never.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "orrery/core/error.hpp"
#include "orrery/graph/graph.hpp"

namespace orrery::graph {

class GraphBuilder {
 public:
  GraphBuilder();

  // Copies the record, which may be reused. `offset`: byte of the file where the record starts, if any.
  void add(const NodeRecord& node, std::uint64_t offset = 0);

  // Replaces the metadata (process groups that were added are kept).
  void set_metadata(const Metadata& metadata);

  // Adds a group's rank list to the metadata (keys::process_group_prefix).
  void add_group(const ProcessGroup& group);

  // The metadata of set_metadata(), with the texts that it views and their bytes: for readers that fill columns
  // themselves.
  struct OwnedMetadata {
    Metadata metadata;
    TextBlocks blocks;
    std::size_t text_bytes = 0;
  };
  [[nodiscard]] static OwnedMetadata copied(const Metadata& metadata);

  [[nodiscard]] std::size_t node_count() const { return columns_.id.size(); }

  // The graph; the builder is empty afterwards. Fails when there are more nodes, dependencies of a kind or attributes
  // than a graph can hold (2^32 - 2 each).
  [[nodiscard]] Result<Graph> finish();

 private:
  void append_attribute(const Attribute& attribute);
  std::uint32_t append_io(const std::optional<IoInfo>& io);
  KeyIndex key(std::string_view name);
  [[nodiscard]] Attribute copied(const Attribute& attribute);
  void resolve(const Column<std::uint64_t>& ids, Column<NodeIndex>& into, const IdIndex& index);

  Columns columns_;
  TextPool texts_;
  Column<std::uint64_t> data_ids_;
  Column<std::uint64_t> ctrl_ids_;
  std::unordered_map<std::string_view, KeyIndex> keys_;
  KeyIndex expected_key_ = 0;
  std::unordered_map<std::uint64_t, NodeIndex> missing_;
  std::vector<Attribute> groups_;
};

}  // namespace orrery::graph
