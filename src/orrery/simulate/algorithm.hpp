// The collective algorithms of ASTRA-sim by name, and one of physical semantics (inSwitch). builtin.cpp lists them; how
// each moves bytes is in phase_runner.cpp (ring, direct, halving and doubling), phase_tree.cpp (double binary tree) and
// custom_collectives.cpp (given as graphs).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace orrery::simulate {

// ASTRA-sim replays the recorded duration of a broadcast; physical semantics runs it.
enum class Collective : std::uint8_t { all_reduce, all_gather, reduce_scatter, all_to_all, broadcast };
inline constexpr std::size_t kCollectives = 5;

[[nodiscard]] std::string_view name_of(Collective collective);  // "ALL_REDUCE"

enum class Method : std::uint8_t { ring, direct, halving_doubling, double_binary_tree, in_switch };

struct DimensionAlgorithm {
  Method method = Method::ring;
  bool flat = false;                    // one*: all ranks as one dimension
  std::optional<std::uint32_t> window;  // direct: messages in flight at once; absent: to all peers

  friend bool operator==(const DimensionAlgorithm&, const DimensionAlgorithm&) = default;
};

// What a file specifies for a collective: an algorithm per dimension, or the prefix of graphs.
using Choice = std::variant<std::vector<DimensionAlgorithm>, std::string>;

// A name of the list below, "direct" and "oneDirect" with a number behind or without.
[[nodiscard]] std::optional<DimensionAlgorithm> algorithm(std::string_view name);

[[nodiscard]] std::string name_of(const DimensionAlgorithm& algorithm);

struct Builtin {
  std::string_view name;
  Method method;
  bool flat;
  bool takes_window;
};
[[nodiscard]] std::span<const Builtin> builtin_algorithms();

}  // namespace orrery::simulate
