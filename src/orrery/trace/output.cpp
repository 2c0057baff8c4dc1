#include "orrery/trace/output.hpp"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "orrery/trace/pack.hpp"

namespace orrery::trace {

namespace fs = std::filesystem;

namespace {

// The target of a chain of symbolic links, which need not exist.
fs::path followed(fs::path path) {
  constexpr int kMostLinks = 40;
  std::error_code error;
  for (int i = 0; i < kMostLinks && fs::is_symlink(path, error); ++i) {
    const fs::path target = fs::read_symlink(path, error);
    if (error) { break; }
    path = path.parent_path() / target;  // an absolute target replaces the path
  }
  return path;
}

bool is_in_place(const std::string& path) {
  std::error_code error;
  const fs::file_status there = fs::status(path, error);
  return fs::exists(there) && !fs::is_regular_file(there);
}

}  // namespace

std::string partial_path(const std::string& path) {
  return is_in_place(path) ? std::string() : followed(path).string() + ".partial";
}

struct Output::State {
  explicit State(std::string name) : path(std::move(name)), partial(partial_path(path)) {
    file = std::fopen(partial.empty() ? path.c_str() : partial.c_str(), "wb");
    error = file == nullptr ? errno : 0;
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (file == nullptr) { return; }
    std::fclose(file);
    if (!partial.empty()) { std::remove(partial.c_str()); }
  }

  [[nodiscard]] tl::unexpected<Failure> failure() const {
    return fail(Place{path, 0, 0, {}}, fmt::format("cannot be written: {}", std::generic_category().message(error)));
  }

  Result<void> put_raw(std::string_view more) {
    if (error == 0 && std::fwrite(more.data(), 1, more.size(), file) != more.size()) { error = errno; }
    if (error != 0) { return failure(); }
    bytes += more.size();
    return {};
  }

  Result<void> pack(std::string_view more, bool ends) {
    packed.clear();
    packer->pack(more, ends, packed);
    return put_raw(packed);
  }

  Result<void> flush() {
    std::string_view rest = buffer;
    while (!rest.empty()) {
      const std::string_view part = rest.substr(0, std::size_t{1} << 30);
      if (auto put = packer ? pack(part, false) : put_raw(part); !put) { return put; }
      rest.remove_prefix(part.size());
    }
    buffer.clear();
    return {};
  }

  std::string path;
  std::string partial;
  std::FILE* file = nullptr;
  int error = 0;
  std::unique_ptr<Packer> packer;  // none for files that are not compressed
  std::string packed;
  std::uint64_t bytes = 0;
  std::string buffer;
};

Output::Output(std::unique_ptr<State> state) : state_(std::move(state)) {}
Output::Output(Output&&) noexcept = default;
Output& Output::operator=(Output&&) noexcept = default;
Output::~Output() = default;

Result<Output> Output::open(const std::string& path, int compression_level) {
  if (path.empty()) { return fail("the name of the file to write is empty"); }
  auto state = std::make_unique<State>(path);
  if (state->error != 0) { return state->failure(); }
  state->packer = packer_for(path, compression_level);
  return Output(std::move(state));
}

Result<void> Output::put(std::string_view bytes) {
  constexpr std::size_t kFlush = std::size_t{1} << 18;
  state_->buffer += bytes;
  return state_->buffer.size() < kFlush ? Result<void>() : state_->flush();
}

Result<void> Output::flush() {
  if (auto flushed = state_->flush(); !flushed) { return flushed; }
  if (std::fflush(state_->file) != 0) { state_->error = errno; }
  return state_->error == 0 ? Result<void>() : state_->failure();
}

Result<std::uint64_t> Output::close() {
  State& state = *state_;
  if (auto flushed = state.flush(); !flushed) { return tl::make_unexpected(std::move(flushed).error()); }
  if (state.packer) {
    if (auto packed = state.pack({}, true); !packed) { return tl::make_unexpected(std::move(packed).error()); }
  }
  if (std::fclose(std::exchange(state.file, nullptr)) != 0) { state.error = errno; }
  if (state.partial.empty()) { return state.error == 0 ? Result<std::uint64_t>(state.bytes) : state.failure(); }
  std::error_code error;
  const fs::path place = followed(state.path);
  if (state.error == 0 && fs::exists(place, error)) {
    fs::permissions(state.partial, fs::status(place, error).permissions(), error);
  }
  if (state.error == 0) {
    fs::rename(state.partial, place, error);
    state.error = error.value();
  }
  if (state.error == 0) { return state.bytes; }
  std::remove(state.partial.c_str());
  return state.failure();
}

}  // namespace orrery::trace
