#include "orrery/validate/skip.hpp"

#include <fmt/format.h>

#include "orrery/core/text.hpp"

namespace orrery::validate {

std::optional<std::string> not_stated(const std::vector<Need>& needs) {
  std::vector<std::string> missing;
  for (const auto& [stated, column] : needs) {
    if (!stated) { missing.emplace_back(column); }
  }
  if (missing.empty()) { return std::nullopt; }
  return "not stated: " + join(missing, ", ");
}

std::optional<std::string> too_few_devices(std::int64_t gpus) {
  if (gpus >= 2) { return std::nullopt; }
  return fmt::format("gpus {}: communication needs at least 2", gpus);
}

std::string unknown_accelerator(std::string_view gpu_type) {
  return fmt::format("no accelerator {} in the catalogue", quote(gpu_type));
}

}  // namespace orrery::validate
