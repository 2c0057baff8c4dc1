#include "apps/cli/granularity.hpp"

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "orrery/core/text.hpp"

namespace orrery::cli {

using generate::Granularity;

namespace {

constexpr std::array<std::pair<std::string_view, Granularity>, 3> kGranularities = {
    {{"operator", Granularity::operators}, {"block", Granularity::block}, {"segment", Granularity::segment}}};

}  // namespace

Flag granularity_flag(const std::string& heading) {
  return {"--granularity",
          "operator|block|segment",
          "a COMP node is a kernel, or all kernels of a block or of a segment between two communications (default: "
          "operator)",
          heading,
          {"operator", "block", "segment"}};
}

Result<Granularity> granularity_of(const std::string& text) {
  std::vector<std::string> known;
  for (const auto& [name, granularity] : kGranularities) {
    if (name == text) { return granularity; }
    known.emplace_back(name);
  }
  const auto near = nearest(text, known);
  return fail(flag_place("--granularity"),
              fmt::format("{} is not valid; {}", quote(text),
                          near ? fmt::format("did you mean {}?", *near) : "valid: " + join(known, ", ")));
}

}  // namespace orrery::cli
