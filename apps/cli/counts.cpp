#include "apps/cli/counts.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "apps/cli/command.hpp"
#include "orrery/core/text.hpp"

namespace orrery::cli {

namespace {

constexpr std::int64_t kLargest = 100'000'000;
constexpr std::size_t kMostCounts = 1000;

std::optional<std::int64_t> count_of(std::string_view text, std::int64_t least = 1) {
  std::int64_t count = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(end - text.size(), end, count);
  const bool is_number = error == std::errc{} && stopped == end;
  return is_number && count >= least && count <= kLargest ? std::optional(count) : std::nullopt;
}

// "64", or "64:1024:x2".
bool append_counts(std::string_view item, std::int64_t least, std::vector<std::int64_t>& counts) {
  const std::size_t first_end = item.find(':');
  const bool is_range = first_end != std::string_view::npos;
  const auto first = count_of(item.substr(0, first_end), is_range ? 1 : least);
  if (!first) { return false; }
  if (!is_range) {
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

Result<std::vector<std::int64_t>> counts(const std::string& flag, const std::string& text, std::int64_t least) {
  std::vector<std::int64_t> list;
  std::string_view rest = text;
  while (!text.empty()) {
    const std::size_t end = rest.find(',');
    const std::string_view item = rest.substr(0, end);
    if (!append_counts(item, least, list)) {
      return fail(flag_place(flag),
                  fmt::format("{} is neither a number nor a range FIRST:LAST:xFACTOR such as 64:1024:x2", quote(item)));
    }
    if (end == std::string_view::npos) { break; }
    rest.remove_prefix(end + 1);
  }
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  if (list.size() > kMostCounts) {
    return fail(flag_place(flag), fmt::format("{} numbers; at most {}", list.size(), kMostCounts));
  }
  return list;
}

}  // namespace orrery::cli
