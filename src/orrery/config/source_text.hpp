// Checks of a text before either parser reads it. Private to the room.
#pragma once

#include <string>
#include <string_view>

#include "orrery/config/tree_builder.hpp"
#include "orrery/core/error.hpp"

namespace orrery::config {

// Line and column (in bytes, both 1-based) of the byte at `offset`.
[[nodiscard]] Spot spot_at(std::string_view text, std::size_t offset);

// Offset of the first byte that is not well-formed UTF-8; npos if all are.
[[nodiscard]] std::size_t first_ill_formed(std::string_view text);

// The text without a byte order mark. Fails if it is blank, larger than kMaxFileBytes, binary, or not UTF-8.
[[nodiscard]] Result<std::string_view> checked_text(std::string_view text, const std::string& file);

}  // namespace orrery::config
