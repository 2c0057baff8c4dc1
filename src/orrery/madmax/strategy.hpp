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

enum class Split : std::uint8_t {
  ddp,   // copies, each with its part of the batch
  fsdp,  // copies with sharded weights, gathered before use
  tp,    // GEMMs split, one batch shared
  mp,    // embedding tables sharded by rows and tables
};
[[nodiscard]] std::string_view name_of(Split split);

struct Strategy {
  std::array<Split, 2> splits{};
  int levels = 1;

  [[nodiscard]] bool has(Split split) const;
  friend bool operator==(const Strategy& a, const Strategy& b) {
    return a.levels == b.levels && a.splits[0] == b.splits[0] && (a.levels == 1 || a.splits[1] == b.splits[1]);
  }
};

[[nodiscard]] std::string text_of(const Strategy& strategy);  // "(tp,ddp)"

// One strategy for every class that a model has; other entries are not read.
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
using Typed = std::map<LayerClass, Strategy>;

// Reports all mistakes of a --strategy at once, each with the valid ones: unknown classes and strategies, those that
// the model or the machine does not have, more than two levels, fsdp at position 1.
[[nodiscard]] Result<Typed> strategies_from(std::string_view text, const SampleWork& work, const System& system);

// Defaults for classes without a strategy, as in MAD-Max's tasks: tables mp in a recommender and ddp elsewhere, dense
// layers fsdp, experts of a recommender as its mlp.
[[nodiscard]] Strategies completed(const Typed& typed, const SampleWork& work);

// The baseline of MAD-Max's gains.
[[nodiscard]] inline Strategies baseline(const SampleWork& work) { return completed({}, work); }

// All valid strategies of a class on a machine, in a fixed order; those of one level first.
[[nodiscard]] std::vector<Strategy> choices(LayerClass layer_class, const SampleWork& work, const System& system);

// Devices of each element of a strategy, from the machine.
[[nodiscard]] std::int64_t degree(const Strategy& strategy, int level, const System& system);
// Copies that each work on a part of the batch: the product of degrees of ddp and fsdp.
[[nodiscard]] std::int64_t copies(const Strategy& strategy, const System& system);
// Parts that weights are sharded over: the product of degrees of tp, fsdp and mp.
[[nodiscard]] std::int64_t shards(const Strategy& strategy, const System& system);

// A class by its name in --strategy and --local-batch; `transformer` is two.
[[nodiscard]] Result<std::vector<LayerClass>> classes_named(std::string_view name, const SampleWork& work,
                                                            const char* flag);

}  // namespace orrery::madmax
