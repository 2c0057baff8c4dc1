#include <array>
#include <charconv>

#include "orrery/simulate/algorithm.hpp"

namespace orrery::simulate {

namespace {

constexpr std::array<Builtin, 8> kBuiltin = {{
    {"ring", Method::ring, false, false},
    {"oneRing", Method::ring, true, false},
    {"direct", Method::direct, false, true},
    {"oneDirect", Method::direct, true, true},
    {"halvingDoubling", Method::halving_doubling, false, false},
    {"oneHalvingDoubling", Method::halving_doubling, true, false},
    {"doubleBinaryTree", Method::double_binary_tree, false, false},
    {"inSwitch", Method::in_switch, false, false},
}};

std::optional<std::uint32_t> whole(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number == 0) { return std::nullopt; }
  return number;
}

}  // namespace

std::span<const Builtin> builtin_algorithms() { return kBuiltin; }

std::optional<DimensionAlgorithm> algorithm(std::string_view name) {
  for (const Builtin& builtin : kBuiltin) {
    if (name == builtin.name) { return DimensionAlgorithm{builtin.method, builtin.flat, std::nullopt}; }
    if (builtin.takes_window && name.starts_with(builtin.name)) {
      const auto window = whole(name.substr(builtin.name.size()));
      if (window) { return DimensionAlgorithm{builtin.method, builtin.flat, window}; }
    }
  }
  return std::nullopt;
}

std::string name_of(const DimensionAlgorithm& algorithm) {
  for (const Builtin& builtin : kBuiltin) {
    if (builtin.method != algorithm.method || builtin.flat != algorithm.flat) { continue; }
    return std::string(builtin.name) + (algorithm.window ? std::to_string(*algorithm.window) : "");
  }
  return {};
}

std::string_view name_of(Collective collective) {
  constexpr std::array<std::string_view, kCollectives> kNames = {"ALL_REDUCE", "ALL_GATHER", "REDUCE_SCATTER",
                                                                 "ALL_TO_ALL", "BROADCAST"};
  return kNames[static_cast<std::size_t>(collective)];
}

}  // namespace orrery::simulate
