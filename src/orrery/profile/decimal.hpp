// Numbers as decimal text. Private to the room except nanoseconds_of (kineto_read.hpp).
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace orrery::profile {

template <class Integer>
[[nodiscard]] std::optional<Integer> integer_of(std::string_view text) {
  Integer value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) { return std::nullopt; }
  return value;
}

}  // namespace orrery::profile
