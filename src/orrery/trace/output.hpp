// A file that appears under its name when it is complete: written beside its place, then renamed. A name that ends in
// ".gz" is compressed with gzip. Symbolic links are followed; what is no regular file, such as a device or a pipe, is
// written to as it is. Private to the room but for partial_path().
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "orrery/core/error.hpp"

namespace orrery::trace {

// Where a file of that name stands while it is not complete, so that a program that is stopped can remove it. Empty
// where it is written in place.
[[nodiscard]] std::string partial_path(const std::string& path);

class Output {
 public:
  // Fails when there is no writing to that place.
  [[nodiscard]] static Result<Output> open(const std::string& path, int compression_level = 6);

  Output(Output&&) noexcept;
  Output& operator=(Output&&) noexcept;
  ~Output();  // without close() there is no file

  // Small pieces are gathered.
  [[nodiscard]] Result<void> put(std::string_view bytes);

  // Puts the file in its place; its bytes.
  [[nodiscard]] Result<std::uint64_t> close();

 private:
  struct State;
  explicit Output(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace orrery::trace
