// Appends parts of JSON. Private to the room.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace orrery::trace {

// "text" with escapes; text must be UTF-8.
void append_quoted(std::string& out, std::string_view text);

// The same for any bytes: {"base64":"…"} where they are not UTF-8, so that nothing is lost.
void append_text_or_bytes(std::string& out, std::string_view text);

void append_base64(std::string& out, std::string_view bytes);

// Nothing if it is not base64 with padding.
[[nodiscard]] std::optional<std::string> decoded_base64(std::string_view text);

void append_unsigned(std::string& out, std::uint64_t number);
void append_signed(std::string& out, std::int64_t number);

// The shortest number that reads back to the same bits; "NaN", "Infinity", "-Infinity" in quotes, and NaNs that are not
// the usual one with their bits: "NaN:7ff8000000000001".
void append_double(std::string& out, double number);
void append_float(std::string& out, float number);

}  // namespace orrery::trace
