// Reading single keys of a Hugging Face configuration outside a record: keys that come under several names, or with
// several types. A missing or strange value gives the fallback.
#pragma once

#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "orrery/config/node.hpp"

namespace orrery::workload::huggingface {

// The first of these keys that the file has with another value than null.
[[nodiscard]] inline const config::Node* first_of(const config::Node& node,
                                                  std::initializer_list<std::string_view> keys) {
  for (const auto key : keys) {
    const config::Node* found = node.find(key);
    if (found != nullptr && found->kind != config::Kind::null) { return found; }
  }
  return nullptr;
}

[[nodiscard]] inline double number(const config::Node& node, std::initializer_list<std::string_view> keys,
                                   double fallback) {
  const config::Node* found = first_of(node, keys);
  if (found == nullptr || (found->kind != config::Kind::integer && found->kind != config::Kind::real)) {
    return fallback;
  }
  double value = -1.0;
  std::from_chars(found->scalar.data(), found->scalar.data() + found->scalar.size(), value);
  return value >= 0.0 && value <= 1e12 ? value : fallback;
}

[[nodiscard]] inline std::int64_t count(const config::Node& node, std::initializer_list<std::string_view> keys,
                                        std::int64_t fallback) {
  constexpr double kLargest = 1e9;  // products of two stay below 2^63
  const double value = number(node, keys, static_cast<double>(fallback));
  return value <= kLargest ? static_cast<std::int64_t>(value) : fallback;
}

[[nodiscard]] inline std::string text(const config::Node& node, std::initializer_list<std::string_view> keys) {
  const config::Node* found = first_of(node, keys);
  return found == nullptr || found->kind != config::Kind::text ? std::string() : found->scalar;
}

[[nodiscard]] inline bool flag(const config::Node& node, std::string_view key, bool fallback) {
  const config::Node* found = node.find(key);
  return found == nullptr || found->kind != config::Kind::boolean ? fallback : found->scalar == "true";
}

}  // namespace orrery::workload::huggingface
