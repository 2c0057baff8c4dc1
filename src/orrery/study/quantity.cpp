#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "orrery/config/node.hpp"
#include "orrery/config/units_text.hpp"
#include "orrery/study/formula.hpp"

namespace orrery::study {

namespace {

using config::Dimension;

struct BaseUnit {
  Dimension dimension;
  std::string_view unit;
};
constexpr std::array<BaseUnit, 6> kBaseUnits{{{Dimension::bytes, "B"},
                                              {Dimension::seconds, "s"},
                                              {Dimension::flops, "FLOP"},
                                              {Dimension::bytes_per_second, "B/s"},
                                              {Dimension::flops_per_second, "FLOP/s"},
                                              {Dimension::hertz, "Hz"}}};

struct MoreUnit {
  std::string_view unit;
  double size;
  std::string_view base;
};
// Units of formulas that no field of a scenario has.
constexpr std::array<MoreUnit, 9> kMoreUnits{{{"W", 1.0, "W"},
                                              {"kW", 1e3, "W"},
                                              {"MW", 1e6, "W"},
                                              {"GW", 1e9, "W"},
                                              {"J", 1.0, "J"},
                                              {"MJ", 1e6, "J"},
                                              {"kWh", 3.6e6, "J"},
                                              {"USD", 1.0, "USD"},
                                              {"%", 0.01, ""}}};

std::optional<Quantity> unit_of(std::string_view unit) {
  for (const auto& more : kMoreUnits) {
    if (more.unit == unit) { return Quantity{more.size, std::string(more.base)}; }
  }
  for (const auto& base : kBaseUnits) {
    const auto size = config::parse_quantity(fmt::format("1 {}", unit), base.dimension);
    if (size) { return Quantity{*size, std::string(base.unit)}; }
  }
  return std::nullopt;
}

}  // namespace

std::optional<double> unit_size(std::string_view unit) {
  const auto known = unit_of(unit);
  return known ? std::optional(known->value) : std::nullopt;
}

std::optional<Quantity> quantity_of(std::string_view text) {
  double number = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || !std::isfinite(number)) { return std::nullopt; }
  std::string_view rest = text.substr(static_cast<std::size_t>(end - text.data()));
  while (rest.starts_with(' ')) { rest.remove_prefix(1); }
  if (rest.empty()) { return Quantity{number, {}}; }
  for (const auto& base : kBaseUnits) {
    if (const auto value = config::parse_quantity(text, base.dimension)) {
      return Quantity{*value, std::string(base.unit)};
    }
  }
  const auto unit = unit_of(rest);
  if (!unit) { return std::nullopt; }
  return Quantity{number * unit->value, unit->unit};
}

}  // namespace orrery::study
