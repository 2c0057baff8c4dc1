#include "apps/cli/mad_max.hpp"

#include <chrono>

#include <fmt/format.h>

#include "apps/cli/terminal.hpp"
#include "orrery/api/orrery.hpp"
#include "orrery/report/mad_max.hpp"

namespace orrery::cli {

namespace {

// Search flags without meaning for MAD-Max, whose whole space is always priced.
std::vector<Diagnostic> foreign_choices(const SearchChoices& choices) {
  std::vector<Diagnostic> found;
  const auto note = [&](bool given, const char* flag) {
    if (given) { found.push_back({flag_place(flag), "is valid with --semantics physical only"}); }
  };
  note(choices.space != kDefaultSpace, "--space");
  note(!choices.headroom.empty(), "--headroom");
  note(!choices.device_counts.empty(), "--device-counts");
  note(choices.within.has_value(), "--within");
  note(choices.objective != results::Objective::step_time, "--objective");
  note(choices.pareto, "--pareto");
  note(choices.explain, "--explain");
  note(choices.what_if, "--what-if");
  note(choices.sample.has_value(), "--sample");
  return found;
}

std::string nothing_fits(const results::MadMaxSearch& search) {
  if (search.evaluated == 0) {
    return "no combination of strategies gives every replica a whole number of samples of this batch";
  }
  return fmt::format(
      "none of {} combinations of strategies fits in memory by MAD-Max's rule; --no-memory-rule disables the rule",
      search.evaluated);
}

}  // namespace

bool is_mad_max(const TypedRequest& typed) { return typed.request.semantics == estimate::Semantics::mad_max; }

Result<int> print_mad_max_estimate(const TypedRequest& typed, bool json, const std::string& timeline) {
  ORRERY_TRY(data, data_directory());
  const auto answer = api::Orrery(data).mad_max_estimate(typed.request, !timeline.empty());
  if (!answer) { return tl::make_unexpected(typed.placed(answer.error())); }
  if (!timeline.empty()) {
    const auto written = write_file(timeline, report::mad_max_timeline(*answer), flag_place("--timeline"));
    if (!written) { return tl::make_unexpected(written.error()); }
  }
  print(json ? report::mad_max_json(*answer) : report::mad_max_text(*answer, terminal_style()));
  return 0;
}

Result<int> print_mad_max_plan(const TypedRequest& typed, const SearchChoices& choices, bool json) {
  if (auto found = foreign_choices(choices); !found.empty()) { return tl::make_unexpected(Failure{std::move(found)}); }
  ORRERY_TRY(data, data_directory());
  const auto start = std::chrono::steady_clock::now();
  auto search = api::Orrery(data).mad_max_plan(typed.request, static_cast<std::size_t>(choices.top));
  if (!search) { return tl::make_unexpected(typed.placed(search.error())); }
  search->wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  print(json ? report::mad_max_plan_json(*search) : report::mad_max_plan_text(*search, terminal_style()));
  if (search->best.empty()) { return tl::make_unexpected(Failure{{{{}, nothing_fits(*search)}}, true}); }
  return 0;
}

}  // namespace orrery::cli
