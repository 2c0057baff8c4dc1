#include "apps/cli/trace_text.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "apps/cli/trace.hpp"
#include "orrery/config/units_text.hpp"
#include "orrery/core/text.hpp"

namespace orrery::cli {

namespace {

constexpr const char* kGroup = "Text workloads of ASTRA-sim 1.0";

Result<std::vector<std::uint64_t>> sizes_of(const std::string& text) {
  std::vector<std::uint64_t> sizes;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    ORRERY_TRY(size, whole_number("--dimensions", text.substr(begin, end - begin), 1));
    sizes.push_back(size);
    begin = end + 1;
  }
  return sizes;
}

// A time with a unit in whole nanoseconds.
Result<std::uint64_t> nanoseconds_of(const std::string& text) {
  const auto seconds = config::parse_quantity(text, config::Dimension::seconds, "ns");
  if (!seconds) { return fail(flag_place("--cycle"), seconds.error()); }
  const double ns = *seconds * 1e9;
  const double whole = std::round(ns);
  if (whole < 1 || whole > 1e15 || std::abs(ns - whole) > 1e-9 * whole) {
    return fail(flag_place("--cycle"), quote(text) + " is not a whole number of nanoseconds");
  }
  return static_cast<std::uint64_t>(whole);
}

}  // namespace

Result<bool> TextArguments::apply_to(const std::vector<std::string>& files) const {
  const auto text = std::find_if(files.begin(), files.end(), api::is_text_workload);
  if (text != files.end()) {
    if (files.size() == 1) { return true; }
    return fail(Place{*text, 0, 0, {}}, "is a text workload, which must be the only input file");
  }
  const std::array given = {std::pair("--dimensions", !dimensions.empty()), std::pair("--passes", !passes.empty()),
                            std::pair("--cycle", !cycle.empty()), std::pair("--model-group", !model_group.empty()),
                            std::pair("--process-groups", process_groups)};
  for (const auto& [flag, is_given] : given) {
    if (is_given) { return fail(flag_place(flag), "applies to text workloads only, and no input file is one"); }
  }
  return false;
}

Result<api::TextWorkloadOptions> TextArguments::options() const {
  api::TextWorkloadOptions made;
  if (dimensions.empty()) {
    return fail(flag_place("--dimensions"),
                "is missing; a text workload does not specify the number of ranks: 8 is 8 ranks, 8,4 is 32 "
                "ranks in groups of 8");
  }
  ORRERY_TRY(sizes, sizes_of(dimensions));
  made.dimensions = std::move(sizes);
  if (!passes.empty()) {
    ORRERY_TRY(number, whole_number("--passes", passes, 1));
    made.passes = number;
  }
  if (!cycle.empty()) {
    ORRERY_TRY(ns, nanoseconds_of(cycle));
    made.cycle_ns = ns;
  }
  if (!model_group.empty()) {
    ORRERY_TRY(ranks, whole_number("--model-group", model_group, 1));
    made.model_group = ranks;
  }
  made.process_groups = process_groups;
  return made;
}

void declare_text(Command& command, const std::shared_ptr<TextArguments>& arguments) {
  const auto into = [&](const char* name, const char* value, const char* doc, std::string TextArguments::* field) {
    command.option({name, value, doc, kGroup},
                   [arguments, field](const std::string& text) { (*arguments).*field = text; });
  };
  into("--dimensions", "N,...",
       "sizes of the network dimensions, innermost first: 8,4 is 32 ranks [required for text workloads]",
       &TextArguments::dimensions);
  into("--passes", "N", "iterations of the training loop [default 1]", &TextArguments::passes);
  into("--cycle", "TIME", "duration of a cycle, the unit of times in the file [default 1ns]", &TextArguments::cycle);
  into("--model-group", "N", "HYBRID_TRANSFORMER: ranks per model-parallel group [default: as in the file]",
       &TextArguments::model_group);
  command.toggle({"--process-groups", "",
                  "also write the process group (pg_name) of each collective, not only its network dimensions", kGroup},
                 [arguments](bool on) { arguments->process_groups = on; });
}

}  // namespace orrery::cli
