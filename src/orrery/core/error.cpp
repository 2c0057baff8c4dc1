#include "orrery/core/error.hpp"

#include <fmt/format.h>

namespace orrery {

std::string Diagnostic::text() const {
  std::string where = place.file;
  if (place.line > 0) { where += fmt::format(":{}", place.line); }
  if (place.line > 0 && place.column > 0) { where += fmt::format(":{}", place.column); }
  if (!where.empty() && !place.path.empty()) { where += ' '; }
  where += place.path;
  return where.empty() ? message : fmt::format("{}: {}", where, message);
}

std::string Failure::text() const {
  std::string lines;
  for (const auto& diagnostic : diagnostics) {
    if (!lines.empty()) { lines += '\n'; }
    lines += diagnostic.text();
  }
  return lines;
}

tl::unexpected<Failure> fail(Place place, std::string message) {
  return tl::make_unexpected(Failure{{Diagnostic{std::move(place), std::move(message)}}});
}

tl::unexpected<Failure> fail(std::string message) { return fail(Place{}, std::move(message)); }

void throw_internal_error(const char* expression, const char* file, int line) {
  throw InternalError(fmt::format("internal error: {}:{}: {} does not hold", file, line, expression));
}

}  // namespace orrery
