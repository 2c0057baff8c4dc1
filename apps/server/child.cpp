#include "apps/server/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>

namespace orrery::server {

namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr std::size_t kMostErrors = std::size_t{1} << 20;
constexpr auto kPause = 50ms;

class Pipe {
 public:
  Pipe() {
    if (::pipe2(ends_.data(), O_CLOEXEC) != 0) { ends_ = {-1, -1}; }
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close_read();
    close_write();
  }
  [[nodiscard]] bool is_open() const { return ends_[0] >= 0; }
  [[nodiscard]] int read_end() const { return ends_[0]; }
  [[nodiscard]] int write_end() const { return ends_[1]; }
  void close_read() { close(ends_[0]); }
  void close_write() { close(ends_[1]); }

 private:
  static void close(int& end) {
    if (end >= 0) { (void)::close(end); }
    end = -1;
  }
  std::array<int, 2> ends_{-1, -1};
};

// The environment of this process, with the pace of progress lines.
std::vector<std::string> child_environment() {
  std::vector<std::string> values;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, "ORRERY_PROGRESS_S=", 18) != 0) { values.emplace_back(*entry); }
  }
  values.emplace_back("ORRERY_PROGRESS_S=0.2");
  return values;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) { result.push_back(text.data()); }
  result.push_back(nullptr);
  return result;
}

// `arguments`: the program's path first.
std::optional<pid_t> spawn(std::vector<std::string> arguments, const std::string& folder, const Pipe& out,
                           const Pipe& err) {
  auto environment = child_environment();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.write_end(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.write_end(), STDERR_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);  // the server's sockets
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  pid_t child = 0;
  const int failed = posix_spawn(&child, arguments.front().c_str(), &actions, nullptr, pointers(arguments).data(),
                                 pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  return failed == 0 ? std::optional(child) : std::nullopt;
}

// Reads what a pipe has now; false at its end.
bool drain(int from, std::string& into) {
  std::array<char, 65536> buffer;
  const ssize_t count = ::read(from, buffer.data(), buffer.size());
  if (count > 0) { into.append(buffer.data(), static_cast<std::size_t>(count)); }
  return count > 0 || (count < 0 && (errno == EINTR || errno == EAGAIN));
}

// Hands whole lines of `text` from `start` on to `take`, and returns where the rest starts.
std::size_t hand_lines(const std::string& text, std::size_t start, const std::function<void(std::string_view)>& take) {
  for (std::size_t end = 0; (end = text.find('\n', start)) != std::string::npos; start = end + 1) {
    take(std::string_view(text).substr(start, end - start));
  }
  return start;
}

// Collects the output until the child closes it or has to end.
std::optional<ChildResult::End> collect(const Pipe& out, const Pipe& err, const ChildLimits& limits,
                                        const ChildWatch& watch, ChildResult& result) {
  const auto deadline = Clock::now() + limits.time;
  std::array<pollfd, 2> open = {pollfd{out.read_end(), POLLIN, 0}, pollfd{err.read_end(), POLLIN, 0}};
  std::size_t told = 0;
  while (open[0].fd >= 0 || open[1].fd >= 0) {
    (void)::poll(open.data(), open.size(), static_cast<int>(kPause.count()));
    for (std::size_t i = 0; i < open.size(); ++i) {
      std::string& into = i == 0 ? result.out : result.err;
      if (open[i].fd >= 0 && open[i].revents != 0 && !drain(open[i].fd, into)) { open[i].fd = -1; }
    }
    told = hand_lines(result.err, told, watch.line);
    if (result.out.size() > limits.output || result.err.size() > kMostErrors) {
      return ChildResult::End::too_much_output;
    }
    if (Clock::now() > deadline) { return ChildResult::End::timed_out; }
    if (!watch.is_wanted()) { return ChildResult::End::stopped; }
  }
  return std::nullopt;
}

}  // namespace

ChildResult run_child(const std::string& program, const std::vector<std::string>& arguments, const std::string& folder,
                      const ChildLimits& limits, const ChildWatch& watch) {
  ChildResult result;
  std::vector<std::string> values = {program};
  values.insert(values.end(), arguments.begin(), arguments.end());
  Pipe out, err;
  if (!out.is_open() || !err.is_open()) { return result; }
  const auto child = spawn(std::move(values), folder, out, err);
  if (!child) { return result; }
  const rlimit memory{limits.memory, limits.memory};
  (void)::prlimit(*child, RLIMIT_AS, &memory, nullptr);
  out.close_write();
  err.close_write();
  const auto cut_short = collect(out, err, limits, watch, result);
  if (cut_short) { (void)::kill(*child, SIGKILL); }
  int status = 0;
  while (::waitpid(*child, &status, 0) < 0 && errno == EINTR) {}
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
  result.end = cut_short ? *cut_short : WIFEXITED(status) ? ChildResult::End::exited : ChildResult::End::crashed;
  return result;
}

}  // namespace orrery::server
