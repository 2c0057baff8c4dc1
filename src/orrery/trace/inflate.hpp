// Decompression step by step. Private to the room.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "orrery/core/error.hpp"
#include "orrery/trace/chakra.hpp"

namespace orrery::trace {

// Recognized from the first bytes of a file.
[[nodiscard]] Compression compression_of(std::string_view first_bytes);

class Inflater {
 public:
  virtual ~Inflater() = default;

  struct InflateStep {
    std::size_t taken = 0;    // bytes of the input that were used
    std::size_t written = 0;  // bytes of the output that were filled
  };

  // Decompresses some of `in` to `out` (not empty). Consecutive members of a file are one stream. Fails with the
  // damage of the data, without place.
  virtual tl::expected<InflateStep, std::string> step(std::string_view in, char* out, std::size_t room) = 0;

  // Whether the input is complete here.
  [[nodiscard]] virtual bool complete() const = 0;
};

[[nodiscard]] std::unique_ptr<Inflater> make_inflater(Compression compression);

}  // namespace orrery::trace
