// The collective algorithms of ASTRA-sim by name, and one of physical semantics (inSwitch). builtin.cpp lists them.
// phase_runner.cpp (ring, direct, halving and doubling), phase_tree.cpp (double binary tree) and custom_collectives.cpp
// (given as graphs) run them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "orrery/core/collective.hpp"

namespace orrery::simulate {

// The collectives that are simulated are the first of the enum: ASTRA-sim's four and broadcast. ASTRA-sim replays the
// recorded duration of broadcasts; physical semantics sends their bytes.
inline constexpr std::size_t kCollectives = 5;

[[nodiscard]] std::string_view name_of(Collective collective);  // "ALL_REDUCE", as in a graph

// `method` is one of ring, direct, halving_doubling, tree and in_switch.
struct DimensionAlgorithm {
  CollectiveAlgorithm method = CollectiveAlgorithm::ring;
  bool flat = false;                    // one*: all ranks as one dimension
  std::optional<std::uint32_t> window;  // direct: messages in flight at once; absent: to all peers

  friend bool operator==(const DimensionAlgorithm&, const DimensionAlgorithm&) = default;
};

// The choice of a system file for a collective: an algorithm per dimension, or the prefix of graphs.
using Choice = std::variant<std::vector<DimensionAlgorithm>, std::string>;

// The algorithm of a name in the list below; "direct" and "oneDirect" may end with a window ("direct2").
[[nodiscard]] std::optional<DimensionAlgorithm> algorithm(std::string_view name);

[[nodiscard]] std::string name_of(const DimensionAlgorithm& algorithm);

struct Builtin {
  std::string_view name;
  CollectiveAlgorithm method;
  bool flat;
  bool takes_window;
};
[[nodiscard]] std::span<const Builtin> builtin_algorithms();

}  // namespace orrery::simulate
