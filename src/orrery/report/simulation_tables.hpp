// The tables of a simulation: ranks, dimensions, links, collectives, operators. CSV and JSON use the same description
// of the columns.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "orrery/results/simulation.hpp"

namespace orrery::report {

inline constexpr std::string_view kSimulationTables[] = {  // NOLINT(*-avoid-c-arrays)
    "ranks", "dimensions", "links", "collectives", "operators"};

// A cell: empty, a count, a figure, text.
using Cell = std::variant<std::monostate, std::uint64_t, double, std::string>;

struct Sheet {
  std::string name;
  std::vector<std::string> columns;
  std::vector<std::vector<Cell>> rows;
};

// `name`: one of kSimulationTables. The simulation must have tables. Times are in ns, with a fraction if the semantics
// use ps.
[[nodiscard]] Sheet sheet_of(const results::Simulation& simulation, std::string_view name);

// A header line, then one line per row.
[[nodiscard]] std::string csv(const Sheet& sheet);

}  // namespace orrery::report
