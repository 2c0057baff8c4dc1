#include "apps/cli/stragglers.hpp"

#include <charconv>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "apps/cli/commands.hpp"
#include "apps/cli/machine_flags.hpp"
#include "orrery/core/text.hpp"

namespace orrery::cli {

Result<simulate::Straggler> straggler_of(const std::string& text) {
  const auto wrong = [&] {
    return fail(flag_place("--slow"), quote(text) + " is not RANKS:FACTOR, such as 3:1.2 or 8-15:1.1");
  };
  const std::size_t colon = text.find(':'), dash = text.find('-');
  if (colon == std::string::npos) { return wrong(); }
  const auto number = [](std::string_view part, auto& value) {
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    return error == std::errc() && end == part.data() + part.size();
  };
  simulate::Straggler made;
  const std::string_view all(text), ranks = all.substr(0, colon);
  const bool is_range = dash < colon;
  if (!number(is_range ? ranks.substr(0, dash) : ranks, made.first)) { return wrong(); }
  made.last = made.first;
  if (is_range && !number(ranks.substr(dash + 1), made.last)) { return wrong(); }
  constexpr double kLeast = 0.01, kMost = 1000;
  if (!number(all.substr(colon + 1), made.slowdown) || made.last < made.first) { return wrong(); }
  if (!(made.slowdown >= kLeast && made.slowdown <= kMost)) {
    return fail(flag_place("--slow"), fmt::format("{}: the factor must be {} to {}", text, kLeast, kMost));
  }
  return made;
}

}  // namespace orrery::cli
