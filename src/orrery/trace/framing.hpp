// Where records begin and end. Private to the room.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "orrery/core/error.hpp"

namespace orrery::trace {

// A protobuf message holds less than 2 GiB.
inline constexpr std::uint64_t kMostRecordBytes = 0x7FFFFFFF;

// Bytes of the longest length.
inline constexpr std::size_t kMostLengthBytes = 10;

struct Frame {
  std::size_t length_bytes = 0;    // of the length itself
  std::uint64_t record_bytes = 0;  // of the message after it; may be more than there is
};

// The length at the start of `bytes` (not empty). Fails with what is wrong with it, without place.
[[nodiscard]] inline tl::expected<Frame, const char*> frame_of(std::string_view bytes) {
  Frame frame;
  for (std::size_t i = 0; i < bytes.size() && i < kMostLengthBytes; ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    frame.record_bytes |= std::uint64_t{byte & 0x7FU} << (7 * i);
    if (byte < 0x80) {
      frame.length_bytes = i + 1;
      return frame;
    }
  }
  return tl::make_unexpected(bytes.size() < kMostLengthBytes ? "the file ends inside the length of a record"
                                                             : "the length of a record has more than ten bytes");
}

}  // namespace orrery::trace
