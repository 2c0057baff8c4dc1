#include "apps/cli/plan_choices.hpp"

#include <charconv>
#include <string_view>

#include <fmt/format.h>

#include "apps/cli/command.hpp"
#include "orrery/core/text.hpp"

namespace orrery::cli {

namespace {

constexpr std::int64_t kMostSampled = 1'000'000;

}  // namespace

const config::Record<SearchChoices>& search_record() {
  static const auto record = [] {
    config::Record<SearchChoices> fields("search", "How plans are searched.");
    fields.optional("top", &SearchChoices::top, "number of plans to show", {.min = 1, .max = 1000})
        .optional("objective", &SearchChoices::objective, "what the best plan minimizes")
        .optional("tokens", &SearchChoices::tokens,
                  "of the campaign whose days, usd, kwh or co2 are minimized; its other fields are in the section "
                  "\"campaign\" of a scenario; default: 1T")
        .optional("device_counts", &SearchChoices::device_counts,
                  "numbers of devices to search separately, instead of --devices: 128,256,512 or 64:1024:x2")
        .optional("within", &SearchChoices::within, "upper limit of the step time, such as 10s", {.positive = true})
        .optional("space", &SearchChoices::space,
                  "plans to search: default, wide (also offload, tp-overlap, hybrid sharding, schedules, uneven end "
                  "stages), or YAML with the values of each axis")
        .optional("headroom", &SearchChoices::headroom,
                  "part of a device's usable memory that plans leave free, such as 5%")
        .optional("variants", &SearchChoices::variants,
                  "the best plans of all; default: the best plan of each combination of degrees")
        .optional("exhaustive", &SearchChoices::exhaustive, "price every point: verifies the pruned result")
        .optional("pareto", &SearchChoices::pareto,
                  "also the Pareto front of time, memory and devices; prices every point")
        .optional("threads", &SearchChoices::threads, "0: one per hardware thread", {.min = 0, .max = 1024})
        .optional("explain", &SearchChoices::explain, "why the best plan wins, compared with neighbouring plans")
        .optional("what_if", &SearchChoices::what_if,
                  "changes of memory, bandwidths, peak and batch, up to fourfold, at which other degrees win; about a "
                  "hundred searches")
        .optional("sample", &SearchChoices::sample,
                  "no search: this number of random points of the space with their results and the flags of \"orrery "
                  "estimate\" for each",
                  {.min = 1, .max = kMostSampled})
        .optional("seed", &SearchChoices::seed, "random seed of --sample; default: 0", {.min = 0});
    return fields;
  }();
  return record;
}

Result<SearchChoices> search_choices(const RecordFlags& flags) {
  config::Node fields = config::mapping_node();
  flags.lay_over(fields);
  return search_record().read_over(SearchChoices{}, fields);
}

std::vector<Diagnostic> problems(const SearchChoices& choices) {
  std::vector<Diagnostic> found;
  const auto sampled_without = [&](bool given, const char* flag) {
    if (choices.sample && given) {
      found.push_back({flag_place("--sample"), fmt::format("searches nothing: without {}", flag)});
    }
  };
  sampled_without(choices.explain, "--explain");
  sampled_without(choices.what_if, "--what-if");
  sampled_without(choices.pareto, "--pareto");
  sampled_without(choices.exhaustive, "--exhaustive");
  sampled_without(choices.within.has_value(), "--within");
  sampled_without(!choices.device_counts.empty(), "--device-counts");
  if (choices.seed && !choices.sample) { found.push_back({flag_place("--seed"), "is valid with --sample only"}); }
  return found;
}

Result<double> headroom_of(const std::string& text) {
  if (text.empty()) { return 0.0; }
  const bool percent = text.ends_with('%');
  const char* const end = text.data() + text.size() - (percent ? 1 : 0);
  double value = 0.0;
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (percent) { value /= 100.0; }
  if (error == std::errc{} && stopped == end && value >= 0.0 && value < 1.0) { return value; }
  return fail(flag_place("--headroom"), fmt::format("{} is not a part of the memory, such as 5%", quote(text)));
}

}  // namespace orrery::cli
