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
  fsdp,  // copies whose weights are spread, gathered before use
  tp,    // products cut, one batch shared
  mp,    // of tables: rows and tables spread
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

// One strategy for every class that a model has; others are not looked at.
struct Strategies {
  std::array<Strategy, kClasses> of{};

  [[nodiscard]] const Strategy& operator[](LayerClass layer_class) const {
    return of[static_cast<std::size_t>(layer_class)];
  }
  [[nodiscard]] Strategy& operator[](LayerClass layer_class) { return of[static_cast<std::size_t>(layer_class)]; }
};

// "emb=(mp); mlp=(ddp)": the classes that `work` has, in their order.
[[nodiscard]] std::string text_of(const Strategies& strategies, const Work& work);

// What was typed, by class. `transformer` has become attention and fc; fc of a model whose fc has experts, moe.
using Typed = std::map<LayerClass, Strategy>;

// Every mistake of a --strategy at once, each saying what is allowed: unknown classes and strategies, those that the
// model or the machine does not have, more than two levels, fsdp at position 1.
[[nodiscard]] Result<Typed> strategies_from(std::string_view text, const Work& work, const System& system);

// Of a class that is not typed: tables mp in a recommender and ddp elsewhere, dense layers fsdp, experts of a
// recommender what its mlp has: MAD-Max's own tasks.
[[nodiscard]] Strategies completed(const Typed& typed, const Work& work);

// The baseline of MAD-Max's gains.
[[nodiscard]] inline Strategies baseline(const Work& work) { return completed({}, work); }

// All that a class may have on a machine, in a fixed order; those of the fewest levels first.
[[nodiscard]] std::vector<Strategy> choices(LayerClass layer_class, const Work& work, const System& system);

// Devices of each element of a strategy, from the machine.
[[nodiscard]] std::int64_t degree(const Strategy& strategy, int level, const System& system);
// Copies that each work on a part of the batch: the product of degrees of ddp and fsdp.
[[nodiscard]] std::int64_t copies(const Strategy& strategy, const System& system);
// Parts that weights are spread over: the product of degrees of tp, fsdp and mp.
[[nodiscard]] std::int64_t shards(const Strategy& strategy, const System& system);

// A class by its name in --strategy and --local-batch; `transformer` is two.
[[nodiscard]] Result<std::vector<LayerClass>> classes_named(std::string_view name, const Work& work, const char* flag);

}  // namespace orrery::madmax
