// The terminal and the system: output streams, colours, progress, clock, environment.
#pragma once

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "orrery/core/error.hpp"
#include "orrery/report/text.hpp"

namespace orrery::cli {

// Standard output cannot be written. `closed`: its reader has closed the pipe (`| head`), which is no error.
class OutputError : public std::runtime_error {
 public:
  OutputError(const std::string& message, bool reader_left) : std::runtime_error(message), closed(reader_left) {}
  bool closed;
};

// To standard output, flushed. Throws OutputError.
void print(std::string_view text);

// To standard error: notes on an output that may be saved.
void print_aside(std::string_view text);

// One line on standard error per diagnostic, `error: ` in front.
void print_errors(const Failure& failure);

// Colours if standard output is a terminal that supports them and NO_COLOR is not set.
[[nodiscard]] report::TextStyle terminal_style();

// The folder of the catalogue: $ORRERY_DATA, else that of the installed program, else that of the source tree. Fails if
// there is none.
[[nodiscard]] Result<std::string> data_directory();

// Writes the whole file or nothing: to a temporary name, then renamed, with the mode of an existing file; symbolic
// links are followed. A device or a pipe is written to directly. Fails with the place and the reason of the system.
[[nodiscard]] tl::expected<void, Failure> write_file(const std::string& path, std::string_view text,
                                                     const Place& place);

// Progress of a long command on standard error: on a terminal one line that is updated, after two seconds; else, as in
// a log, a line every ten seconds ($ORRERY_PROGRESS_S overrides).
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
  std::chrono::duration<double> log_pace_;
  std::string unit_;
  bool on_terminal_;
  bool line_is_open_ = false;
};

}  // namespace orrery::cli
