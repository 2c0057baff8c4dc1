// Device memory of ranks over time.
#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "orrery/config/json.hpp"
#include "orrery/config/units_text.hpp"
#include "orrery/report/simulation_json.hpp"
#include "orrery/report/table.hpp"

namespace orrery::report {

namespace {

// Ranks with equal rows, by their first rank.
struct MemoryClass {
  const results::MemoryRank* row = nullptr;
  std::uint64_t first = 0, ranks = 0;
};

std::vector<MemoryClass> memory_classes(const results::MemoryOverTime& memory) {
  std::vector<MemoryClass> classes;
  using Key = std::tuple<double, double, std::vector<std::pair<std::uint64_t, double>>>;
  std::map<Key, std::size_t> known;
  for (const auto& run : memory.ranks.runs()) {
    Key key{run.value.mean, run.value.capacity, {}};
    for (const results::MemoryPoint& point : run.value.points) {
      std::get<2>(key).emplace_back(point.time_ns, point.bytes);
    }
    const auto [found, is_new] = known.try_emplace(std::move(key), classes.size());
    if (is_new) { classes.push_back({&run.value, run.first, 0}); }
    classes[found->second].ranks += run.end - run.first;
  }
  return classes;
}

// Of all ranks, if they have the same one.
std::optional<double> common_capacity(const std::vector<MemoryClass>& classes) {
  if (classes.empty()) { return std::nullopt; }
  const double first = classes.front().row->capacity;
  const bool agree =
      std::all_of(classes.begin(), classes.end(), [&](const MemoryClass& one) { return one.row->capacity == first; });
  return agree ? std::optional(first) : std::nullopt;
}

}  // namespace

std::string memory_text(const results::Simulation& simulation) {
  if (!simulation.memory) { return {}; }
  const results::MemoryOverTime& memory = *simulation.memory;
  const auto classes = memory_classes(memory);
  const std::optional<double> common = common_capacity(classes);
  const bool has_capacity = common.value_or(1.0) > 0;
  std::string text = "\ndevice memory over time\n";
  if (common && *common > 0) {
    text = fmt::format("\ndevice memory over time: {} usable\n", config::format_bytes(Bytes(*common)));
  }
  Table table;
  table.column("from rank", Table::Align::left).column("ranks").column("all the time").column("peak");
  if (!common) { table.column("usable"); }
  if (has_capacity) { table.column("of usable"); }
  table.column("first reached").column("mean");
  constexpr std::size_t kMostRows = 12;
  for (std::size_t i = 0; i < std::min(classes.size(), kMostRows); ++i) {
    const results::MemoryRank& row = *classes[i].row;
    constexpr double kNanosecond = 1e-9;
    std::vector<std::string> cells = {std::to_string(classes[i].first), std::to_string(classes[i].ranks),
                                      config::format_bytes(Bytes(row.held)), config::format_bytes(Bytes(row.peak))};
    if (!common) { cells.push_back(config::format_bytes(Bytes(row.capacity))); }
    if (has_capacity) { cells.push_back(percent(row.peak / row.capacity)); }
    cells.push_back(config::format_seconds(Seconds(static_cast<double>(row.peak_ns) * kNanosecond)));
    cells.push_back(config::format_bytes(Bytes(row.mean)));
    table.row(std::move(cells));
  }
  text += table.text();
  if (classes.size() > kMostRows) { text += fmt::format("the first {} of {} classes\n", kMostRows, classes.size()); }
  return text;
}

config::Node memory_json(const results::MemoryOverTime& memory) {
  const auto point_json = [](const results::MemoryPoint& point) {
    return config::json_object({{"time_ns", point.time_ns}, {"bytes", point.bytes}});
  };
  const auto classes = memory_classes(memory);
  const std::optional<double> common = common_capacity(classes);
  config::Node json = config::json_object({});
  if (common && *common > 0) { config::add_fields(json, {{"capacity_B", *common}}); }
  const auto class_json = [&](const MemoryClass& ranks) {
    const results::MemoryRank& row = *ranks.row;
    config::Node one = config::json_object({{"first_rank", ranks.first},
                                            {"ranks", ranks.ranks},
                                            {"held_B", row.held},
                                            {"peak_B", row.peak},
                                            {"peak_ns", row.peak_ns},
                                            {"mean_B", row.mean},
                                            {"points", config::json_list(row.points, point_json)}});
    if (!common) { config::add_fields(one, {{"capacity_B", row.capacity}}); }
    return one;
  };
  config::add_fields(json, {{"classes", config::json_list(classes, class_json)}});
  return json;
}

}  // namespace orrery::report
