// The records of a feeder: of a file, decoded on demand, or of a graph in memory. Private to the room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/graph/graph.hpp"
#include "orrery/trace/chakra.hpp"
#include "orrery/trace/feeder.hpp"
#include "orrery/trace/source.hpp"

namespace orrery::trace {

// Returned records are valid until the next call.
class NodeStore {
 public:
  struct Item {
    std::uint64_t place = 0;  // argument of at()
    const graph::NodeRecord* record = nullptr;
  };

  virtual ~NodeStore() = default;

  // One record after another, from the first; nullptr after the last. at() ends the iteration.
  virtual Result<Item> next() = 0;
  virtual Result<const graph::NodeRecord*> at(std::uint64_t place) = 0;

  // Estimated number of records, after some calls of next().
  [[nodiscard]] virtual std::size_t estimate() const = 0;
  [[nodiscard]] virtual const graph::Metadata& metadata() const = 0;
  [[nodiscard]] virtual std::string where(std::uint64_t place) const = 0;  // "byte 12, "; empty in a graph
};

// An uncompressed file, or bytes: no copy is kept.
class FileNodes final : public NodeStore {
 public:
  // `source` has whole().
  [[nodiscard]] static Result<std::unique_ptr<NodeStore>> of(std::unique_ptr<Source> source, const std::string& name,
                                                             const FeederOptions& options);

  Result<Item> next() override;
  Result<const graph::NodeRecord*> at(std::uint64_t place) override;
  [[nodiscard]] std::size_t estimate() const override;
  [[nodiscard]] const graph::Metadata& metadata() const override { return stream_.metadata(); }
  [[nodiscard]] std::string where(std::uint64_t place) const override;

 private:
  FileNodes(std::unique_ptr<Source> source, ChakraStream stream, std::uint64_t most_resident)
      : source_(std::move(source)), stream_(std::move(stream)), most_resident_(most_resident) {}

  void touched(std::uint64_t begin);

  std::unique_ptr<Source> source_;
  ChakraStream stream_;
  std::uint64_t most_resident_;
  std::uint64_t last_ = 0;      // where the record of the last call begins
  std::uint64_t resident_ = 0;  // bytes of the file that may have been mapped since the last release
  std::size_t records_ = 0;
};

class GraphNodes final : public NodeStore {
 public:
  explicit GraphNodes(graph::Graph graph) : graph_(std::move(graph)) {}

  Result<Item> next() override;
  Result<const graph::NodeRecord*> at(std::uint64_t place) override;
  [[nodiscard]] std::size_t estimate() const override { return graph_.node_count(); }
  [[nodiscard]] const graph::Metadata& metadata() const override { return graph_.metadata(); }
  [[nodiscard]] std::string where(std::uint64_t /*place*/) const override { return {}; }

 private:
  graph::Graph graph_;
  graph::NodeRecord record_;
  graph::NodeIndex next_ = 0;
};

// Copies of recent records: a direct-mapped cache by position.
class RecordCache {
 public:
  explicit RecordCache(std::size_t slots) : slots_(slots) {}

  [[nodiscard]] const graph::NodeRecord* find(std::uint32_t position) const;

  // The copy; the record itself if the cache has no entries.
  const graph::NodeRecord* keep(std::uint32_t position, const graph::NodeRecord& record);

 private:
  struct Slot {
    bool used = false;
    std::uint32_t position = 0;
    graph::NodeRecord record;
    std::string texts;  // of the record
  };

  std::vector<Slot> slots_;
};

}  // namespace orrery::trace
