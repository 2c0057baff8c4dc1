#include "orrery/campaign/grids.hpp"

#include <charconv>
#include <map>

#include <fmt/format.h>

#include "orrery/config/record.hpp"
#include "orrery/core/text.hpp"

namespace orrery::campaign {

namespace {

struct GridTable {
  std::string source;
  std::int64_t year = 0;
  std::map<std::string, double> grids, unverified;
};

const config::Record<GridTable>& grid_record() {
  static const auto record =
      config::Record<GridTable>("grids", "Carbon intensity of electricity.")
          .required("source", &GridTable::source, "where the figures are from")
          .required("year", &GridTable::year, "of the figures")
          .required("grids", &GridTable::grids, "g CO2e/kWh by country", {.positive = true})
          .optional("unverified", &GridTable::unverified, "the same, from memory", {.positive = true});
  return record;
}

}  // namespace

Result<Grid> grid_of(const std::string& data_directory, const std::string& name) {
  double value = 0.0;
  const auto [stopped, error] = std::from_chars(name.data(), name.data() + name.size(), value);
  if (error == std::errc{} && stopped == name.data() + name.size() && value >= 0.0) {
    return Grid{value, fmt::format("{:g} g CO2e/kWh", value)};
  }
  ORRERY_TRY(root, config::read_file(data_directory + "/grids.yaml"));
  ORRERY_TRY(table, grid_record().read(root));
  if (const auto found = table.grids.find(name); found != table.grids.end()) {
    return Grid{found->second, fmt::format("{}, {:g} g CO2e/kWh ({})", name, found->second, table.year)};
  }
  if (const auto found = table.unverified.find(name); found != table.unverified.end()) {
    return Grid{found->second, fmt::format("{}, {:g} g CO2e/kWh ({}, unverified)", name, found->second, table.year)};
  }
  std::vector<std::string> names;
  for (const auto& [known, intensity] : table.grids) { names.push_back(known); }
  for (const auto& [known, intensity] : table.unverified) { names.push_back(known); }
  return fail({"", 0, 0, "--grid"},
              fmt::format("{} is neither g CO2e/kWh nor one of {}", quote(name), join(names, ", ")));
}

}  // namespace orrery::campaign
