#include <array>
#include <charconv>

#include "orrery/graph/chakra_collective.hpp"
#include "orrery/simulate/algorithm.hpp"

namespace orrery::simulate {

namespace {

constexpr std::array<Builtin, 8> kBuiltin = {{
    {"ring", CollectiveAlgorithm::ring, false, false},
    {"oneRing", CollectiveAlgorithm::ring, true, false},
    {"direct", CollectiveAlgorithm::direct, false, true},
    {"oneDirect", CollectiveAlgorithm::direct, true, true},
    {"halvingDoubling", CollectiveAlgorithm::halving_doubling, false, false},
    {"oneHalvingDoubling", CollectiveAlgorithm::halving_doubling, true, false},
    {"doubleBinaryTree", CollectiveAlgorithm::tree, false, false},
    {"inSwitch", CollectiveAlgorithm::in_switch, false, false},
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

std::string_view name_of(Collective collective) { return graph::name_of(graph::chakra_type(collective)); }

}  // namespace orrery::simulate
