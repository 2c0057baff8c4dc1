// Compression of files that are written. Private to the room.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace orrery::trace {

// A stream of compressed bytes.
class Packer {
 public:
  Packer() = default;
  Packer(const Packer&) = delete;
  Packer& operator=(const Packer&) = delete;
  virtual ~Packer() = default;

  // Appends to `packed` what the stream has for `bytes`, at most 1 GiB; `ends`: with the end of the stream.
  virtual void pack(std::string_view bytes, bool ends, std::string& packed) = 0;
};

// By the end of the name: gzip for ".gz" (of `gzip_level`, 1 to 9), zstd for ".zst"; none for others.
[[nodiscard]] std::unique_ptr<Packer> packer_for(std::string_view path, int gzip_level);

}  // namespace orrery::trace
