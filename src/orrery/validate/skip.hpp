// Rows that no prediction is made for, and why: what the rules of every kind of row say alike.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

namespace orrery::validate {

template <class T>
using OrSkip = tl::expected<T, std::string>;  // or the reason why the row is skipped

[[nodiscard]] inline tl::unexpected<std::string> skip(std::string reason) {
  return tl::make_unexpected(std::move(reason));
}

// Columns that a row cannot do without.
struct Need {
  bool stated;
  std::string_view column;
};

// "not stated: heads, global_batch"; nullopt when all are.
[[nodiscard]] std::optional<std::string> not_stated(const std::vector<Need>& needs);

// Of what takes two; nullopt when there are.
[[nodiscard]] std::optional<std::string> nobody_to_talk_to(std::int64_t gpus);

[[nodiscard]] std::string unknown_accelerator(std::string_view gpu_type);

}  // namespace orrery::validate
