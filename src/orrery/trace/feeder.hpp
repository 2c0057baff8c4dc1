// Feeds the nodes of an execution graph in an order in which they can execute: a node is ready when its parents are
// complete. A simulator's loop:
//
//   ORRERY_TRY(feeder, Feeder::open("w.0.et"));
//   while (!feeder.done()) {
//     ORRERY_TRY(node, feeder.next());          // issues a node
//     if (node == nullptr) { … wait until one of those issued finishes … }
//     … *node …
//     feeder.complete(node->id);                // now or later, in any order; check its result
//   }
//
// Order: of the ready nodes, the one with the smallest id, whatever the order in the file. This is the order of the
// reference feeder and of the simulators that use it; completing the same nodes in the same order always gives the same
// results.
//
// A graph that cannot finish is rejected by open(), with the reason: a missing parent, two nodes with one id, a cycle.
// If next() returns no node, issued nodes are incomplete, or all nodes are done; it never means a hang. Misuse
// (completing a node that was not issued, is already complete or does not exist) is a Failure that changes
// nothing.
//
// Memory, for an uncompressed file: 16 bytes per node, 8 more if ids are not consecutive, 4 per dependency; while it is
// opened 8 more per node and 4 per dependency, 12 if ids are not consecutive. Independent of the size of the file: the
// mapped part of it, and the cached records. Records are decoded from the file on demand.
// A compressed file, or a pipe, has no random access: it is read to a graph in memory first.
//
// Feeders share nothing. One feeder must be used by one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "orrery/core/error.hpp"
#include "orrery/graph/graph.hpp"
#include "orrery/trace/chakra.hpp"

namespace orrery::trace {

struct FeederOptions {
  // The dependencies to respect. Converters leave control dependencies on nodes that they removed.
  graph::Children::Of follow = graph::Children::Of::both;

  // Whether missing parents count as complete; otherwise they are a failure.
  bool ignore_missing = false;

  // Decoded records in the cache of node().
  std::size_t cached_records = 256;

  // How much of a file may be mapped at once.
  std::uint64_t mapped_bytes = std::uint64_t{64} << 20;

  ReadOptions read;
};

class Feeder {
 public:
  [[nodiscard]] static Result<Feeder> open(const std::string& path, const FeederOptions& options = {});

  // The bytes of a file, which must outlive the feeder unless they are compressed. `name` is its name in errors.
  [[nodiscard]] static Result<Feeder> of_bytes(std::string_view bytes, const std::string& name,
                                               const FeederOptions& options = {});

  [[nodiscard]] static Result<Feeder> of_graph(graph::Graph graph, const std::string& name,
                                               const FeederOptions& options = {});

  Feeder(Feeder&&) noexcept;
  Feeder& operator=(Feeder&&) noexcept;
  ~Feeder();

  // Issues the ready node with the smallest id; nullptr when none is ready. The record and its texts are valid until
  // the next call of next() or node(). Fails only if the file is no longer readable; the node counts as issued then.
  [[nodiscard]] Result<const graph::NodeRecord*> next();

  // Marks an issued node as complete.
  [[nodiscard]] Result<void> complete(std::uint64_t id);

  // Any node, in any state.
  [[nodiscard]] Result<const graph::NodeRecord*> node(std::uint64_t id);

  [[nodiscard]] bool done() const;           // every node is complete
  [[nodiscard]] std::size_t nodes() const;   // in the graph
  [[nodiscard]] std::size_t ready() const;   // not issued, parents complete
  [[nodiscard]] std::size_t issued() const;  // not complete
  [[nodiscard]] std::size_t completed() const;

  // Metadata of the file. Valid as long as the feeder.
  [[nodiscard]] const graph::Metadata& metadata() const;

  // Whether records are decoded from the file, not kept in memory.
  [[nodiscard]] bool streams() const;

  [[nodiscard]] std::size_t index_memory() const;  // bytes of the index of all nodes

 private:
  struct State;
  explicit Feeder(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace orrery::trace
