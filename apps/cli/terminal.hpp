// The edge to the terminal and the machine: output streams, colours, progress, the clock, the environment.
#pragma once

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "orrery/core/error.hpp"
#include "orrery/report/text.hpp"

namespace orrery::cli {

// Standard output cannot take more. `closed`: the reader left (`| head`), which is nobody's mistake.
class OutputError : public std::runtime_error {
 public:
  OutputError(const std::string& message, bool reader_left) : std::runtime_error(message), closed(reader_left) {}
  bool closed;
};

// To standard output, flushed. Throws OutputError.
void print(std::string_view text);

// To standard error: what belongs beside an output that is saved, such as notes on it.
void print_aside(std::string_view text);

// One line on standard error per diagnostic, `error: ` in front.
void print_errors(const Failure& failure);

// Colours when standard output is a terminal that shows them and NO_COLOR is not set.
[[nodiscard]] report::TextStyle terminal_style();

// Where the catalogue is: $ORRERY_DATA, else beside an installed program, else the source tree's. Fails when there is
// no such folder.
[[nodiscard]] Result<std::string> data_directory();

// The whole file or nothing: written beside its place and renamed, with the mode of the file that was there; symbolic
// links are followed. What is no regular file, such as a device or a pipe, is written to as it is. Fails with the place
// and the system's reason.
[[nodiscard]] tl::expected<void, Failure> write_file(const std::string& path, std::string_view text,
                                                     const Place& place);

// How far long work is: one line on standard error that updates itself, from two seconds on and only on a terminal.
class Progress {
 public:
  explicit Progress(std::string unit = "points");
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(std::int64_t done, std::int64_t points);

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_, shown_;
  std::string unit_;
  bool on_terminal_;
  bool line_is_open_ = false;
};

}  // namespace orrery::cli
