// The bytes of a file, one window after another: a mapped file, bytes in memory, or a stream that is decompressed while
// reading.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "orrery/core/error.hpp"
#include "orrery/trace/chakra.hpp"

namespace orrery::trace {

class Source {
 public:
  virtual ~Source() = default;

  // The next bytes, at least `wanted` unless the file ends before. Valid until the next call.
  virtual std::string_view ahead(std::size_t wanted) = 0;

  // Why the bytes end too early: a failed read, damaged compression. Set when ahead() reaches it.
  [[nodiscard]] const std::optional<Failure>& damage() const { return damage_; }

  // Skips bytes that ahead() has returned.
  virtual void consume(std::size_t bytes) = 0;

  // Bytes on disk that were read so far.
  [[nodiscard]] virtual std::uint64_t file_bytes() const = 0;

  // All bytes, if they are in memory or mapped; else nothing.
  [[nodiscard]] virtual std::optional<std::string_view> whole() const { return std::nullopt; }

  // Goes to a byte of whole().
  virtual void seek(std::size_t /*position*/) {}

  // These bytes of whole() are not needed for now: their memory can be released. They can still be read.
  virtual void forget(std::size_t /*begin*/, std::size_t /*end*/) {}

  [[nodiscard]] Compression compression() const { return compression_; }

 protected:
  Compression compression_ = Compression::none;
  std::optional<Failure> damage_;
};

// How the bytes of an uncompressed regular file are reached. Pages of a mapped file may count to the memory of the
// process until they are needed elsewhere; a file that is read once from its start needs a buffer only.
enum class Access : std::uint8_t { mapped, buffered };

// A file by its name: anything readable.
[[nodiscard]] Result<std::unique_ptr<Source>> open_source(const std::string& path, Access access = Access::mapped);

// Bytes that outlive the source.
[[nodiscard]] Result<std::unique_ptr<Source>> source_of_bytes(std::string_view bytes, const std::string& name);

}  // namespace orrery::trace
