// orrery-web: the server behind `orrery web`, which starts it (setup.hpp).
#include <spawn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

#include <fmt/format.h>

#include "apps/server/answers.hpp"
#include "apps/server/server.hpp"

namespace orrery::server {

namespace {

// Those of apps/cli/run.cpp.
enum ExitCode { kDone = 0, kBadInput = 2, kInternalError = 3 };

constexpr std::array kEndingSignals = {SIGINT, SIGTERM, SIGHUP};
std::atomic<int> ending_signal = 0;  // NOLINT: a signal handler can access globals only

extern "C" void note_ending(int signal) { ending_signal = signal; }

// An ignored signal stays ignored, so that a server under nohup survives the end of its terminal.
void set_ending(void (*action)(int)) {
  for (const int signal : kEndingSignals) {
    if (std::signal(signal, action) == SIG_IGN) { (void)std::signal(signal, SIG_IGN); }
  }
}

void print_aside(const std::string& text) { (void)std::fwrite(text.data(), 1, text.size(), stderr); }

// Control characters of flags, which a terminal would obey, are shown as "?".
int refuse(std::string message, int code) {
  std::replace_if(message.begin(), message.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  print_aside("error: " + message + "\n");
  return code;
}

// The setup in the file that `text` has the descriptor of.
std::optional<Setup> read_setup(std::string_view text) {
  int file = -1;
  const auto number = std::from_chars(text.data(), text.data() + text.size(), file);
  if (number.ec != std::errc() || number.ptr != text.data() + text.size() || file <= STDERR_FILENO) {
    return std::nullopt;
  }
  std::string content;
  std::array<char, 65536> part;
  ssize_t count = 0;
  while ((count = ::read(file, part.data(), part.size())) > 0) {
    content.append(part.data(), static_cast<std::size_t>(count));
  }
  (void)::close(file);
  return unpacked(content);
}

void open_browser(const std::string& url) {
  std::string program = "xdg-open", target = url;
  const std::array<char*, 3> arguments = {program.data(), target.data(), nullptr};
  pid_t child = 0;
  if (::posix_spawnp(&child, program.c_str(), nullptr, nullptr, arguments.data(), environ) != 0) {
    print_aside("note: no browser can be opened (xdg-open is missing)\n");
  }
}

int serve(const Setup& setup) {
  Server web(setup);
  const auto port = web.bind();
  if (!port) { return refuse(message_of(port.error()), kBadInput); }
  const std::string shown = is_loopback(setup.address) ? "localhost" : setup.address;
  const std::string url =
      fmt::format("http://{}:{}/{}", shown, *port, setup.token.empty() ? "" : "?token=" + setup.token);
  errno = 0;
  if (std::printf("%s\n", url.c_str()) < 0 || std::fflush(stdout) != 0) {
    const int code = errno;
    return code == EPIPE ? kDone : refuse("standard output: " + std::generic_category().message(code), kInternalError);
  }
  print_aside("Ctrl-C ends the server\n");
  if (setup.opens_page) { open_browser(url); }
  set_ending(note_ending);
  std::thread serving([&web] { web.run(); });
  while (ending_signal == 0) { std::this_thread::sleep_for(std::chrono::milliseconds(50)); }
  web.stop();
  serving.join();
  set_ending(SIG_DFL);
  (void)std::raise(ending_signal);
  return kDone;
}

int exit_code_of(std::string_view descriptor) {
  const auto setup = read_setup(descriptor);
  if (!setup) {
    return refuse("\"orrery web\" of the same build starts this program, which serves its page", kBadInput);
  }
  try {
    return serve(*setup);
  } catch (const std::exception& error) { return refuse(error.what(), kInternalError); }
}

}  // namespace

}  // namespace orrery::server

int main(int count, char** values) {
  // A closed pipe and a file beyond the limit of its size (ulimit -f) are errors of the write instead.
  (void)std::signal(SIGPIPE, SIG_IGN);
  (void)std::signal(SIGXFSZ, SIG_IGN);
  return orrery::server::exit_code_of(count == 2 ? values[1] : "");
}
