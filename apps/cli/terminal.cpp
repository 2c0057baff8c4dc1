#include "apps/cli/terminal.hpp"

#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "orrery/core/text.hpp"
#include "orrery/report/table.hpp"

namespace orrery::cli {

namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing writes the environment
  return value == nullptr ? "" : value;
}

std::string system_reason(int code) { return std::generic_category().message(code); }

thread_local CapturedOutput* captured = nullptr;  // NOLINT: printing is a side effect of a thread

}  // namespace

CapturedOutput::CapturedOutput(std::string folder) : data(std::move(folder)) { captured = this; }
CapturedOutput::~CapturedOutput() { captured = nullptr; }
CapturedOutput* CapturedOutput::current() { return captured; }

void print(std::string_view text) {
  if (captured != nullptr) {
    captured->out += text;
    return;
  }
  errno = 0;
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (written) { return; }
  const int code = errno;
  throw OutputError("standard output: " + system_reason(code), code == EPIPE);
}

void print_aside(std::string_view text) {
  if (captured != nullptr) {
    captured->err += text;
  } else {
    (void)std::fwrite(text.data(), 1, text.size(), stderr);
  }
}

void print_errors(const Failure& failure) {
  for (const auto& diagnostic : failure.diagnostics) {
    print_aside("error: " + report::printable(diagnostic.text()) + "\n");
  }
}

report::TextStyle terminal_style() {
  const std::string terminal = environment("TERM");
  const bool shows_colour =
      captured == nullptr && isatty(STDOUT_FILENO) == 1 && !terminal.empty() && terminal != "dumb";
  return {.colour = shows_colour && environment("NO_COLOR").empty()};
}

Result<std::string> data_directory() {
  std::error_code none;
  if (captured != nullptr && !captured->data.empty()) { return captured->data; }
  if (std::string given = environment("ORRERY_DATA"); !given.empty()) {
    if (std::filesystem::is_directory(given, none)) { return given; }
    return fail({"", 0, 0, "ORRERY_DATA"}, fmt::format("{} is not a folder", quote(given)));
  }
  const auto program = std::filesystem::read_symlink("/proc/self/exe", none);
  const auto installed = program.parent_path().parent_path() / "share/orrery/data";
  if (!none && std::filesystem::is_directory(installed, none)) { return installed.string(); }
  if (std::filesystem::is_directory(ORRERY_DATA_DIR, none)) { return ORRERY_DATA_DIR; }
  return fail("no catalogue at " + installed.string() +
              " or " ORRERY_DATA_DIR "; set the environment variable ORRERY_DATA to its folder");
}

namespace {

// The reason of the system if the text cannot be written; nothing on success.
std::optional<std::string> written(const std::filesystem::path& path, std::string_view text) {
  errno = 0;
  std::ofstream out(path, std::ios::binary);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.close();
  if (out) { return std::nullopt; }
  return system_reason(errno == 0 ? EIO : errno);
}

// Writes to a temporary name and renames, with the mode of an existing file.
std::optional<std::string> replaced(const std::filesystem::path& path, std::string_view text) {
  const std::filesystem::path beside = fmt::format("{}.{}.tmp", path.string(), getpid());
  auto reason = written(beside, text);
  std::error_code error;
  const auto before = std::filesystem::status(path, error);
  if (!reason && std::filesystem::exists(before)) {
    std::filesystem::permissions(beside, before.permissions(), error);
    if (error) { reason = error.message(); }
  }
  if (!reason) {
    std::filesystem::rename(beside, path, error);
    if (error) { reason = error.message(); }
  }
  if (reason) { std::filesystem::remove(beside, error); }
  return reason;
}

// The target of a chain of symbolic links, which need not exist.
std::filesystem::path followed(std::filesystem::path path) {
  constexpr int kMostLinks = 40;
  std::error_code error;
  for (int i = 0; i < kMostLinks && std::filesystem::is_symlink(path, error); ++i) {
    const auto target = std::filesystem::read_symlink(path, error);
    if (error) { break; }
    path = path.parent_path() / target;  // an absolute target replaces the path
  }
  return path;
}

}  // namespace

tl::expected<void, Failure> write_file(const std::string& path, std::string_view text, const Place& place) {
  std::error_code error;
  const auto there = std::filesystem::status(path, error);
  const bool in_place = std::filesystem::exists(there) && !std::filesystem::is_regular_file(there);
  const auto reason = in_place ? written(path, text) : replaced(followed(path), text);
  if (!reason) { return {}; }
  return fail(place, fmt::format("{} cannot be written: {}", path, *reason));
}

namespace {

// Between lines of progress in a log: $ORRERY_PROGRESS_S, else ten seconds.
std::chrono::duration<double> log_pace() {
  constexpr std::chrono::duration<double> kUsual{10.0};
  const std::string given = environment("ORRERY_PROGRESS_S");
  double seconds = 0.0;
  const auto read = std::from_chars(given.data(), given.data() + given.size(), seconds);
  return read.ec == std::errc() && seconds > 0.0 ? std::chrono::duration<double>(seconds) : kUsual;
}

}  // namespace

Progress::Progress(std::string unit)
    : start_(Clock::now()),
      shown_(start_),
      log_pace_(log_pace()),
      unit_(std::move(unit)),
      captured_(CapturedOutput::current()),
      on_terminal_(isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (line_is_open_) { (void)std::fputs("\r\x1b[K", stderr); }
}

void Progress::update(std::int64_t done, std::int64_t points) {
  if (captured_ != nullptr) {
    if (captured_->stop) { throw Stopped(); }
    return;
  }
  using namespace std::chrono_literals;
  const auto now = Clock::now();
  const bool is_due = on_terminal_ ? now - start_ >= 2s && now - shown_ >= 100ms : now - shown_ >= log_pace_;
  if (points <= 0 || !is_due) { return; }
  shown_ = now;
  line_is_open_ = on_terminal_;
  const std::string text = fmt::format("{} of {} {}, {} %", grouped(done), grouped(points), unit_, 100 * done / points);
  const std::string line = on_terminal_ ? "\r" + text + "\x1b[K" : text + "\n";
  (void)std::fwrite(line.data(), 1, line.size(), stderr);
  (void)std::fflush(stderr);
}

}  // namespace orrery::cli
