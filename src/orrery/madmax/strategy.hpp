// Hierarchical strategies per class of layers: "emb=(mp); mlp=(tp,ddp)". Position 0 is inside a node, position 1
// between nodes; one element alone spans the machine at the figures between nodes. Degrees follow from the machine.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/madmax/system.hpp"
#include "orrery/madmax/work.hpp"

namespace orrery::madmax {

enum class Parallelism : std::uint8_t {
  ddp,   // copies, each with a part of the batch
  fsdp,  // copies with sharded weights, gathered before use
  tp,    // GEMMs sharded; all shards process the same samples
  mp,    // embedding tables sharded by rows and tables
};
[[nodiscard]] std::string_view name_of(Parallelism parallelism);

struct Strategy {
  std::array<Parallelism, 2> parallelism{};  // inside a node, between nodes
  int levels = 1;

  [[nodiscard]] bool has(Parallelism kind) const;
  friend bool operator==(const Strategy& a, const Strategy& b) {
    return a.levels == b.levels && a.parallelism[0] == b.parallelism[0] &&
           (a.levels == 1 || a.parallelism[1] == b.parallelism[1]);
  }
};

[[nodiscard]] std::string text_of(const Strategy& strategy);  // "(tp,ddp)"

// One strategy for every class that a model has. Entries of other classes are ignored.
struct Strategies {
  std::array<Strategy, kClasses> of{};

  [[nodiscard]] const Strategy& operator[](LayerClass layer_class) const {
    return of[static_cast<std::size_t>(layer_class)];
  }
  [[nodiscard]] Strategy& operator[](LayerClass layer_class) { return of[static_cast<std::size_t>(layer_class)]; }
};

// "emb=(mp); mlp=(ddp)": the classes that `work` has, in their order.
[[nodiscard]] std::string text_of(const Strategies& strategies, const SampleWork& work);

// Strategies as given, by class. `transformer` is expanded to attention and fc; fc becomes moe where it has experts.
using GivenStrategies = std::map<LayerClass, Strategy>;

// Reports all mistakes of a --strategy at once, each with the valid ones: unknown classes and strategies, those that
// the model or the machine does not have, more than two levels, fsdp at position 1.
[[nodiscard]] Result<GivenStrategies> strategies_from(std::string_view text, const SampleWork& work,
                                                      const System& system);

// Defaults for classes without a strategy, as in MAD-Max's tasks: tables mp in a recommender and ddp elsewhere, dense
// layers fsdp, experts of a recommender as its mlp.
[[nodiscard]] Strategies completed(const GivenStrategies& given, const SampleWork& work);

// The baseline of MAD-Max's gains.
[[nodiscard]] inline Strategies baseline(const SampleWork& work) { return completed({}, work); }

// All valid strategies of a class on a machine, in a fixed order: those of one level first.
[[nodiscard]] std::vector<Strategy> choices(LayerClass layer_class, const SampleWork& work, const System& system);

// Devices of a level of a strategy.
[[nodiscard]] std::int64_t degree(const Strategy& strategy, int level, const System& system);
// Copies that each work on a part of the batch: the product of degrees of ddp and fsdp.
[[nodiscard]] std::int64_t copies(const Strategy& strategy, const System& system);
// Parts that weights are sharded over: the product of degrees of tp, fsdp and mp.
[[nodiscard]] std::int64_t shards(const Strategy& strategy, const System& system);

// The classes of a name in --strategy and --local-batch: `transformer` stands for two.
[[nodiscard]] Result<std::vector<LayerClass>> classes_named(std::string_view name, const SampleWork& work,
                                                            const char* flag);

}  // namespace orrery::madmax
