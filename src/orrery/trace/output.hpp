// A file that appears under its name when it is complete: written to NAME.partial, then renamed. A name that ends in
// ".gz" or ".zst" is compressed with gzip or zstd. Symbolic links are followed; a device or a pipe is written to
// directly. Private to the room except partial_path().
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "orrery/core/error.hpp"

namespace orrery::trace {

// The name of a file while it is not complete, so that an interrupted program can remove it. Empty for files that are
// written directly.
[[nodiscard]] std::string partial_path(const std::string& path);

class Output {
 public:
  // Fails if the file cannot be created.
  [[nodiscard]] static Result<Output> open(const std::string& path, int compression_level = 6);

  Output(Output&&) noexcept;
  Output& operator=(Output&&) noexcept;
  ~Output();  // without close() there is no file

  // Buffered.
  [[nodiscard]] Result<void> put(std::string_view bytes);

  // Everything that was put is in the incomplete file.
  [[nodiscard]] Result<void> flush();

  // Renames the file to its final name; returns its bytes.
  [[nodiscard]] Result<std::uint64_t> close();

 private:
  struct State;
  explicit Output(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace orrery::trace
