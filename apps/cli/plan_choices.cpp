#include "apps/cli/plan_choices.hpp"

#include <algorithm>
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

namespace {

constexpr std::int64_t kMostDevices = 100'000'000;
constexpr std::size_t kMostCounts = 1000;

std::optional<std::int64_t> count_of(std::string_view text) {
  std::int64_t count = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(end - text.size(), end, count);
  const bool is_number = error == std::errc{} && stopped == end;
  return is_number && count >= 1 && count <= kMostDevices ? std::optional(count) : std::nullopt;
}

// "64", or "64:1024:x2".
bool append_counts(std::string_view item, std::vector<std::int64_t>& counts) {
  const std::size_t first_end = item.find(':');
  const auto first = count_of(item.substr(0, first_end));
  if (!first) { return false; }
  if (first_end == std::string_view::npos) {
    counts.push_back(*first);
    return true;
  }
  const std::size_t last_end = item.find(":x", first_end + 1);
  if (last_end == std::string_view::npos) { return false; }
  const auto last = count_of(item.substr(first_end + 1, last_end - first_end - 1));
  const auto factor = count_of(item.substr(last_end + 2));
  if (!last || !factor || *factor < 2 || *last < *first) { return false; }
  for (std::int64_t count = *first; count <= *last; count *= *factor) { counts.push_back(count); }
  return true;
}

}  // namespace

Result<std::vector<std::int64_t>> device_counts(const std::string& text) {
  std::vector<std::int64_t> counts;
  std::string_view rest = text;
  while (!text.empty()) {
    const std::size_t end = rest.find(',');
    const std::string_view item = rest.substr(0, end);
    if (!append_counts(item, counts)) {
      return fail(flag_place("--device-counts"),
                  fmt::format("{} is neither a number of devices nor a range FIRST:LAST:xFACTOR such as 64:1024:x2",
                              quote(item)));
    }
    if (end == std::string_view::npos) { break; }
    rest.remove_prefix(end + 1);
  }
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  if (counts.size() > kMostCounts) {
    return fail(flag_place("--device-counts"), fmt::format("{} numbers; at most {}", counts.size(), kMostCounts));
  }
  return counts;
}

}  // namespace orrery::cli
