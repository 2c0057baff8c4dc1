// The program.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

#include "apps/cli/run.hpp"

namespace orrery::cli {

namespace {

// If a standard stream is closed (`2>&-`), the first opened file would get its number, and output to the stream would
// go to that file. Opening /dev/null with the wrong access mode prevents this; using the stream still fails.
void reserve_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    const bool is_closed = ::fcntl(stream, F_GETFD) == -1;                                       // NOLINT(*-vararg)
    if (is_closed) { (void)::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY); }  // NOLINT(*-vararg)
  }
}

}  // namespace

}  // namespace orrery::cli

int main(int count, char** values) {
  orrery::cli::reserve_standard_streams();
  // A closed pipe and a file beyond the limit of its size (ulimit -f) are errors of the write instead.
  (void)std::signal(SIGPIPE, SIG_IGN);
  (void)std::signal(SIGXFSZ, SIG_IGN);
  return orrery::cli::exit_code_of(std::vector<std::string>(values + (count > 0 ? 1 : 0), values + count));
}
