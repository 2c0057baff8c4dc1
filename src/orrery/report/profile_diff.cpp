#include <algorithm>
#include <cstdlib>
#include <map>

#include <fmt/format.h>

#include "orrery/config/json.hpp"
#include "orrery/config/units_text.hpp"
#include "orrery/report/profile.hpp"
#include "orrery/report/style.hpp"
#include "orrery/report/table.hpp"

namespace orrery::report {

namespace {

using profile::KernelFacts;

struct DifferingKernel {
  std::string name;
  std::uint64_t count_a = 0, count_b = 0;
  std::int64_t sum_a = 0, sum_b = 0;

  [[nodiscard]] std::int64_t change() const { return sum_b - sum_a; }
  [[nodiscard]] bool same() const { return count_a == count_b && sum_a == sum_b; }
};

// Those that differ, the largest change first.
std::vector<DifferingKernel> kernel_changes(const std::vector<KernelFacts>& a, const std::vector<KernelFacts>& b) {
  std::map<std::string, DifferingKernel> by_name;
  for (const KernelFacts& kernel : a) {
    by_name[kernel.name].count_a = kernel.count;
    by_name[kernel.name].sum_a = kernel.sum_ns;
  }
  for (const KernelFacts& kernel : b) {
    by_name[kernel.name].count_b = kernel.count;
    by_name[kernel.name].sum_b = kernel.sum_ns;
  }
  std::vector<DifferingKernel> all;
  for (auto& [name, kernel] : by_name) {
    if (kernel.same()) { continue; }
    all.push_back(std::move(kernel));
    all.back().name = name;
  }
  std::stable_sort(all.begin(), all.end(), [](const DifferingKernel& x, const DifferingKernel& y) {
    return std::abs(x.change()) > std::abs(y.change());
  });
  return all;
}

std::string signed_time(std::int64_t nanoseconds) {
  const std::string text = config::format_seconds(Seconds(std::abs(static_cast<double>(nanoseconds)) * 1e-9));
  return (nanoseconds < 0 ? "-" : "+") + text;
}

std::string kernel_changes_text(const std::string& header, const std::vector<DifferingKernel>& all, std::size_t most) {
  if (all.empty()) { return fmt::format("  {}s: no difference\n", header); }
  constexpr std::size_t kColumn = 52;
  Table table;
  table.column(header, Table::Align::left)
      .column("count A")
      .column("count B")
      .column("time A")
      .column("time B")
      .column("B - A");
  for (std::size_t i = 0; i < all.size() && i < most; ++i) {
    const DifferingKernel& one = all[i];
    table.row({cut_to(printable(one.name), kColumn), grouped(static_cast<long long>(one.count_a)),
               grouped(static_cast<long long>(one.count_b)),
               config::format_seconds(Seconds(static_cast<double>(one.sum_a) * 1e-9)),
               config::format_seconds(Seconds(static_cast<double>(one.sum_b) * 1e-9)), signed_time(one.change())});
  }
  std::string text = table.text(2);
  if (all.size() > most) { text += fmt::format("  and {} more\n", all.size() - most); }
  return text;
}

config::Node kernel_change_json(const DifferingKernel& one) {
  return config::json_object({{"name", one.name},
                              {"count_a", one.count_a},
                              {"count_b", one.count_b},
                              {"sum_a_ns", one.sum_a},
                              {"sum_b_ns", one.sum_b}});
}

config::Node kernel_change_list(std::vector<DifferingKernel> all, std::size_t most) {
  all.resize(std::min(all.size(), most));
  return config::json_list(all, kernel_change_json);
}

}  // namespace

bool same_work(const ProfileFacts& a, const ProfileFacts& b) {
  return kernel_changes(a.facts.top_kernels, b.facts.top_kernels).empty() &&
         kernel_changes(a.facts.top_operators, b.facts.top_operators).empty();
}

std::string profile_diff_text(const ProfileFacts& a, const ProfileFacts& b, std::size_t most, TextStyle style) {
  std::string text = fmt::format("A {}\nB {}\n", bold(printable(a.file), style), bold(printable(b.file), style));
  text += fmt::format("  device busy {} in A, {} in B; exposed communication {} and {}\n",
                      config::format_seconds(Seconds(static_cast<double>(a.facts.whole.busy_ns) * 1e-9)),
                      config::format_seconds(Seconds(static_cast<double>(b.facts.whole.busy_ns) * 1e-9)),
                      config::format_seconds(Seconds(static_cast<double>(a.facts.whole.exposed_comm_ns) * 1e-9)),
                      config::format_seconds(Seconds(static_cast<double>(b.facts.whole.exposed_comm_ns) * 1e-9)));
  text += kernel_changes_text("kernel", kernel_changes(a.facts.top_kernels, b.facts.top_kernels), most);
  text += kernel_changes_text("operator", kernel_changes(a.facts.top_operators, b.facts.top_operators), most);
  return text;
}

std::string profile_diff_json(const ProfileFacts& a, const ProfileFacts& b, std::size_t most) {
  return config::json_document(config::json_object(
      {{"schema", "orrery.trace-diff/1"},
       {"a", a.file},
       {"b", b.file},
       {"format", "kineto"},
       {"identical", same_work(a, b)},
       {"busy_a_ns", a.facts.whole.busy_ns},
       {"busy_b_ns", b.facts.whole.busy_ns},
       {"kernels", kernel_change_list(kernel_changes(a.facts.top_kernels, b.facts.top_kernels), most)},
       {"operators", kernel_change_list(kernel_changes(a.facts.top_operators, b.facts.top_operators), most)}}));
}

}  // namespace orrery::report
