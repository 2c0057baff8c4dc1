// Feeds the nodes of an execution graph in an order in which they may run: a node is ready when its parents are
// complete. A simulator's loop:
//
//   ORRERY_TRY(feeder, Feeder::open("w.0.et"));
//   while (!feeder.done()) {
//     ORRERY_TRY(node, feeder.next());          // issues a node
//     if (node == nullptr) { … wait until one of those issued finishes … }
//     … *node …
//     feeder.complete(node->id);                // now or later, in any order; look at what it says
//   }
//
// Order: of the nodes that are ready, the one with the smallest id, whatever their order in the file. It is the order
// of the reference feeder and of the simulators that issue by it, and the same nodes completed in the same order always
// give the same answers.
//
// A graph that cannot come to its end is refused when it is opened, with the reason: a parent that is not there, two
// nodes with one id, nodes that wait for each other. So next() without a node means that nodes are out, or that all is
// done; it never means a hang. Misuse (completing what was not issued, twice, or what is not there) is a Failure that
// changes nothing.
//
// Memory, of a plain file: 16 bytes a node, 8 more where ids do not count up one by one, 4 a dependency; while it is
// opened 8 more a node and 4 a dependency, where ids do not count up 12. Beside that what does not grow with the file:
// what is mapped in of it, and the cached records. Records are decoded from the file when they are asked for.
// A file that is compressed, or a pipe, cannot be gone back into: it is read to a graph in memory and fed from there.
//
// Nothing is shared between feeders. One feeder is for one thread at a time.
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
  // Which dependencies hold a node back. Converters leave control dependencies on nodes that they removed.
  graph::Children::Of follow = graph::Children::Of::both;

  // Whether parents that are not there count as complete; otherwise they are a failure.
  bool ignore_missing = false;

  // Records that are kept decoded, for those who look at a node again.
  std::size_t cached_records = 256;

  // So much of a file may be mapped in at once.
  std::uint64_t mapped_bytes = std::uint64_t{64} << 20;

  ReadOptions read;
};

class Feeder {
 public:
  [[nodiscard]] static Result<Feeder> open(const std::string& path, const FeederOptions& options = {});

  // The bytes of a file, which must outlive the feeder unless they are compressed. `name` stands for it in errors.
  [[nodiscard]] static Result<Feeder> of_bytes(std::string_view bytes, const std::string& name,
                                               const FeederOptions& options = {});

  [[nodiscard]] static Result<Feeder> of_graph(graph::Graph graph, const std::string& name,
                                               const FeederOptions& options = {});

  Feeder(Feeder&&) noexcept;
  Feeder& operator=(Feeder&&) noexcept;
  ~Feeder();

  // Issues the ready node with the smallest id; nullptr when none is ready. The record and its texts are valid until
  // the next call of next() or node(). Fails only if the file cannot be read any more; the node is out all the same.
  [[nodiscard]] Result<const graph::NodeRecord*> next();

  // A node that was issued has finished.
  [[nodiscard]] Result<void> complete(std::uint64_t id);

  // Any node, whatever its state.
  [[nodiscard]] Result<const graph::NodeRecord*> node(std::uint64_t id);

  [[nodiscard]] bool done() const;           // every node is complete
  [[nodiscard]] std::size_t nodes() const;   // in the graph
  [[nodiscard]] std::size_t ready() const;   // not issued, parents complete
  [[nodiscard]] std::size_t issued() const;  // not complete
  [[nodiscard]] std::size_t completed() const;

  // What the file says of itself. Valid as long as the feeder.
  [[nodiscard]] const graph::Metadata& metadata() const;

  // Whether records are decoded from the file, and not held in memory.
  [[nodiscard]] bool streams() const;

  [[nodiscard]] std::size_t index_memory() const;  // bytes of what is kept of every node

 private:
  struct State;
  explicit Feeder(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace orrery::trace
