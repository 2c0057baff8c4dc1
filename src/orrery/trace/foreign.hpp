// Files of other tools that users pass where a trace is expected: what such a file is, from its first bytes, and which
// command reads it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "orrery/core/error.hpp"
#include "orrery/trace/source.hpp"

namespace orrery::trace {

// Bytes of the start of a file that are enough to recognize it: the keys of PyTorch's traces come after a description
// of the devices.
inline constexpr std::size_t kForeignBytes = std::size_t{1} << 16;

// Profiles of PyTorch, which other rooms read.
enum class ProfileFormat : std::uint8_t {
  none,
  kineto,          // Chrome trace JSON of the profiler: host and device, with times
  execution_trace  // PyTorch execution trace: operators of the host with their tensors, without times
};
[[nodiscard]] ProfileFormat profile_format(std::string_view start);

// The same of a file. Fails if it cannot be read.
[[nodiscard]] Result<ProfileFormat> profile_format_of_file(const std::string& path);

// What a file is that starts with these bytes, and what to do with it, as the message of an error. Nothing when it may
// be a Chakra trace or JSON lines.
//   Chrome trace (Kineto), PyTorch execution trace, Chakra graph in JSON, text workload of ASTRA-sim 1.0, result of
//   orrery, other JSON that is indented or a list, tar and zip archives
[[nodiscard]] std::optional<std::string> foreign_format(std::string_view start);

// The same of a file that is no profile; of what may be a Chakra trace, that it is one. Fails if it cannot be read.
[[nodiscard]] Result<std::string> kind_of_file(const std::string& path);

// Fails with the message above, at the place of the file.
[[nodiscard]] Result<void> refuse_foreign(Source& source, const std::string& name);

}  // namespace orrery::trace
