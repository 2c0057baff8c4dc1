// Kernels of a simulation against the peaks of the accelerator.
#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "orrery/config/json.hpp"
#include "orrery/config/units_text.hpp"
#include "orrery/report/simulation.hpp"
#include "orrery/report/simulation_json.hpp"
#include "orrery/report/table.hpp"

namespace orrery::report {

namespace {

using config::json_object;
using results::RooflineRank;

constexpr double kPicosecond = 1e-12;

double part(double amount, double peak, std::uint64_t time_ps) {
  const double most = peak * static_cast<double>(time_ps) * kPicosecond;
  return most > 0 ? amount / most : 0.0;
}

double intensity(const RooflineRank& rank) { return rank.bytes > 0 ? rank.operations / rank.bytes : 0.0; }

double share(std::uint64_t time, std::uint64_t of) {
  return of > 0 ? static_cast<double>(time) / static_cast<double>(of) : 0.0;
}

// Ranks with equal rows, by their first rank.
struct RooflineClass {
  RooflineRank row;
  std::uint64_t first = 0, ranks = 0;
};

std::vector<RooflineClass> classes_of(const results::Roofline& roofline) {
  std::vector<RooflineClass> classes;
  using Key = std::tuple<double, double, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, double, double>;
  std::map<Key, std::size_t> known;
  for (const auto& run : roofline.ranks.runs()) {
    const RooflineRank& row = run.value;
    const auto [found, is_new] =
        known.try_emplace({row.operations, row.bytes, row.kernel_ps, row.memory_bound_ps, row.without_figures_ps,
                           row.finish_ps, row.peak_flops, row.memory_Bps},
                          classes.size());
    if (is_new) { classes.push_back({row, run.first, 0}); }
    classes[found->second].ranks += run.end - run.first;
  }
  return classes;
}

// Different peaks, each once, with the first rank that has them.
std::vector<RooflineClass> peaks_of(const std::vector<RooflineClass>& classes) {
  std::vector<RooflineClass> peaks;
  for (const RooflineClass& one : classes) {
    const bool is_known = std::any_of(peaks.begin(), peaks.end(), [&](const RooflineClass& other) {
      return other.row.peak_flops == one.row.peak_flops && other.row.memory_Bps == one.row.memory_Bps;
    });
    if (!is_known) { peaks.push_back(one); }
  }
  return peaks;
}

std::string peaks_text(const std::vector<RooflineClass>& peaks) {
  std::string text = "\n";
  for (const RooflineClass& one : peaks) {
    text +=
        fmt::format("roofline{}: {}, {} of device memory, equal at {:.3g} FLOP/B\n",
                    peaks.size() > 1 ? fmt::format(" from rank {}", one.first) : "",
                    config::format_rate(FlopsPerSecond(one.row.peak_flops)),
                    config::format_rate(BytesPerSecond(one.row.memory_Bps)), one.row.peak_flops / one.row.memory_Bps);
  }
  return text;
}

std::string beyond_hfu_text(const results::Roofline& roofline) {
  if (!(roofline.hfu_flops > 0)) { return {}; }
  const auto percent_of_hfu = [&](double flops) {
    return fmt::format("{:+.2f} %", flops / roofline.hfu_flops * 100.0);
  };
  std::string text =
      fmt::format("operations of all ranks: {}, of the estimate's HFU: {}\n",
                  config::format_flops(Flops(roofline.operations())), config::format_flops(Flops(roofline.hfu_flops)));
  for (const results::FlopsPart& part : roofline.beyond_hfu) {
    text += fmt::format("  {}  {}\n", percent_of_hfu(part.flops), part.name);
  }
  return text;
}

}  // namespace

std::string roofline_text(const results::Simulation& simulation) {
  if (!simulation.roofline) { return {}; }
  const results::Roofline& roofline = *simulation.roofline;
  const auto classes = classes_of(roofline);
  const auto peaks = peaks_of(classes);
  const bool has_peaks = std::all_of(peaks.begin(), peaks.end(), [](const RooflineClass& one) {
    return one.row.peak_flops > 0 && one.row.memory_Bps > 0;
  });
  if (!has_peaks) { return "\nroofline: the machine has no peaks (peak-perf and local-mem-bw of the system file)\n"; }
  std::string text = peaks_text(peaks);
  Table table;
  table.column("from rank", Table::Align::left).column("ranks").column("operations").column("bytes").column("FLOP/B");
  table.column("FLOP/s of run").column("of kernels").column("memory of run").column("of kernels");
  table.column("bound by memory");
  constexpr std::size_t kMostRows = 12;
  std::uint64_t without = 0;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const RooflineRank& row = classes[i].row;
    without += row.without_figures;
    if (i >= kMostRows) { continue; }
    table.row({std::to_string(classes[i].first), std::to_string(classes[i].ranks),
               config::format_flops(Flops(row.operations)), config::format_bytes(Bytes(row.bytes)),
               fmt::format("{:.4g}", intensity(row)), percent(part(row.operations, row.peak_flops, row.finish_ps)),
               percent(part(row.operations, row.peak_flops, row.kernel_ps)),
               percent(part(row.bytes, row.memory_Bps, row.finish_ps)),
               percent(part(row.bytes, row.memory_Bps, row.kernel_ps)),
               percent(share(row.memory_bound_ps, row.kernel_ps))});
  }
  text += table.text();
  if (classes.size() > kMostRows) { text += fmt::format("the first {} of {} classes\n", kMostRows, classes.size()); }
  if (without > 0) { text += "kernels without num_ops and tensor_size are left out\n"; }
  return text + beyond_hfu_text(roofline);
}

config::Node roofline_json(const results::Roofline& roofline) {
  const auto classes = classes_of(roofline);
  const auto peaks = peaks_of(classes);
  config::Node json = json_object({});
  if (peaks.size() == 1) {
    config::add_fields(json,
                       {{"peak_flops", peaks.front().row.peak_flops}, {"memory_Bps", peaks.front().row.memory_Bps}});
  }
  const auto class_json = [&](const RooflineClass& ranks) {
    const RooflineRank& row = ranks.row;
    config::Node one = json_object({{"first_rank", ranks.first},
                                    {"ranks", ranks.ranks},
                                    {"operations", row.operations},
                                    {"bytes", row.bytes},
                                    {"intensity", intensity(row)},
                                    {"kernels", row.kernels},
                                    {"kernels_without_figures", row.without_figures},
                                    {"finish_s", static_cast<double>(row.finish_ps) * kPicosecond},
                                    {"kernel_s", static_cast<double>(row.kernel_ps) * kPicosecond},
                                    {"memory_bound_s", static_cast<double>(row.memory_bound_ps) * kPicosecond},
                                    {"flops_of_run", part(row.operations, row.peak_flops, row.finish_ps)},
                                    {"flops_of_kernels", part(row.operations, row.peak_flops, row.kernel_ps)},
                                    {"memory_of_run", part(row.bytes, row.memory_Bps, row.finish_ps)},
                                    {"memory_of_kernels", part(row.bytes, row.memory_Bps, row.kernel_ps)}});
    if (peaks.size() > 1) { config::add_fields(one, {{"peak_flops", row.peak_flops}, {"memory_Bps", row.memory_Bps}}); }
    return one;
  };
  config::add_fields(json, {{"classes", config::json_list(classes, class_json)}});
  if (!(roofline.hfu_flops > 0)) { return json; }
  config::add_fields(json, {{"operations", roofline.operations()},
                            {"hfu_flops", roofline.hfu_flops},
                            {"beyond_hfu", config::json_list(roofline.beyond_hfu, [](const results::FlopsPart& part) {
                               return json_object({{"name", part.name}, {"flops", part.flops}});
                             })}});
  return json;
}

}  // namespace orrery::report
