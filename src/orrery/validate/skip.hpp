// Rows without a prediction, and the reasons that all kinds of rows share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "orrery/core/error.hpp"

namespace orrery::validate {

template <class T>
using Skippable = tl::expected<T, std::string>;  // or the reason why the row is skipped

[[nodiscard]] inline tl::unexpected<std::string> skip(std::string reason) {
  return tl::make_unexpected(std::move(reason));
}

// A column that a prediction needs.
struct Need {
  bool stated;
  std::string_view column;
};

// "not stated: heads, global_batch"; nullopt when all are.
[[nodiscard]] std::optional<std::string> not_stated(const std::vector<Need>& needs);

// The reason to skip communication of fewer than two devices; nullopt for two or more.
[[nodiscard]] std::optional<std::string> too_few_devices(std::int64_t gpus);

[[nodiscard]] std::string unknown_accelerator(std::string_view gpu_type);

}  // namespace orrery::validate
