#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

#include <fmt/format.h>

#include "orrery/config/node.hpp"
#include "orrery/config/units_text.hpp"
#include "orrery/core/text.hpp"

namespace orrery::config {

namespace {

namespace fs = std::filesystem;

// The file in the same folder whose name is nearest. Folders with very many files are not searched to the end.
std::string missing_file_message(const fs::path& path) {
  constexpr int kMostEntries = 10'000;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    return fmt::format("does not exist: there is no folder {}", quote(folder.string()));
  }
  std::vector<std::string> names;
  fs::directory_iterator entry(folder, error);
  for (int i = 0; !error && entry != fs::directory_iterator() && i < kMostEntries; ++i) {
    names.push_back(entry->path().filename().string());
    entry.increment(error);
  }
  std::sort(names.begin(), names.end());
  const auto near = nearest(path.filename().string(), names);
  if (!near) { return "does not exist"; }
  const fs::path proposal = path.has_parent_path() ? folder / *near : fs::path(*near);
  return fmt::format("does not exist; did you mean {}?", quote(proposal.string()));
}

std::string kind_of_file(fs::file_type type) {
  switch (type) {
    case fs::file_type::directory: return "is a folder, not a file";
    case fs::file_type::block:
    case fs::file_type::character: return "is a device, not a file";
    case fs::file_type::fifo: return "is a pipe, not a file";
    case fs::file_type::socket: return "is a socket, not a file";
    case fs::file_type::none:
    case fs::file_type::not_found:
    case fs::file_type::regular:
    case fs::file_type::symlink:
    case fs::file_type::unknown:
    default: return "is not a regular file";
  }
}

std::string reason(int error) { return std::generic_category().message(error); }

std::string too_large_message(double bytes, std::size_t max_bytes) {
  return fmt::format("is too large ({}); at most {} are read", format_bytes(Bytes(bytes)),
                     print_quantity(Bytes(static_cast<double>(max_bytes))));
}

// Reads at most one byte more than allowed: files in /proc say that they hold nothing, and files grow.
Result<std::string> content_of(const std::string& path, std::size_t size, std::size_t max_bytes) {
  const Place place{path, 0, 0, {}};
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file) { return fail(place, fmt::format("cannot be read: {}", reason(errno))); }
  std::string content;
  std::size_t step = std::max<std::size_t>(size + 1, 4096);
  while (content.size() <= max_bytes) {
    const std::size_t before = content.size();
    content.resize(before + std::min(step, max_bytes + 1 - before));
    const std::size_t got = std::fread(content.data() + before, 1, content.size() - before, file.get());
    const bool ended = before + got < content.size();
    content.resize(before + got);
    if (ended) { break; }
    step = std::size_t{1} << 20;
  }
  if (std::ferror(file.get()) != 0) { return fail(place, fmt::format("cannot be read: {}", reason(errno))); }
  if (content.size() > max_bytes) {
    return fail(place, too_large_message(static_cast<double>(content.size()), max_bytes));
  }
  return content;
}

// Profiles of PyTorch are JSON, too, and easily passed where another file is meant: what the file is, from its first
// bytes, and which command reads it.
std::optional<std::string> profile_message(std::string_view start) {
  const std::size_t first = start.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || start[first] != '{') { return std::nullopt; }
  const auto has = [&](std::string_view key) { return start.find(key) != std::string_view::npos; };
  if (has("\"traceEvents\"") || (has("\"schemaVersion\"") && has("\"deviceProperties\""))) {
    return "is a profile of PyTorch (Kineto, a Chrome trace in JSON); \"orrery trace stats\" and \"orrery trace "
           "import\" "
           "read it";
  }
  if (has("\"schema\"") && has("\"nodes\"") && has("\"pid\"")) {
    return "is a PyTorch execution trace; \"orrery trace link\" reads it";
  }
  return std::nullopt;
}

// Before the size is checked, which of a profile says nothing that helps.
Result<void> refuse_profile(const std::string& path) {
  constexpr std::size_t kStart = std::size_t{1} << 14;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file) { return {}; }
  std::string start(kStart, '\0');
  start.resize(std::fread(start.data(), 1, start.size(), file.get()));
  if (auto message = profile_message(start)) { return fail(Place{path, 0, 0, {}}, std::move(*message)); }
  return {};
}

}  // namespace

Result<std::string> read_text_file(const std::string& path, std::size_t max_bytes) {
  if (path.empty()) { return fail("no file name is given"); }
  const Place place{path, 0, 0, {}};
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) { return fail(place, missing_file_message(path)); }
  if (error) { return fail(place, fmt::format("cannot be read: {}", error.message())); }
  if (!fs::is_regular_file(status)) { return fail(place, kind_of_file(status.type())); }
  const std::uintmax_t size = fs::file_size(path, error);
  if (error) { return fail(place, fmt::format("cannot be read: {}", error.message())); }
  if (auto other = refuse_profile(path); !other) { return tl::make_unexpected(std::move(other).error()); }
  if (size > max_bytes) { return fail(place, too_large_message(static_cast<double>(size), max_bytes)); }
  return content_of(path, static_cast<std::size_t>(size), max_bytes);
}

Result<Node> read_file(const std::string& path) {
  ORRERY_TRY(text, read_text_file(path));
  std::string extension = fs::path(path).extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension == ".json" ? parse_json(text, path) : parse_yaml(text, path);
}

}  // namespace orrery::config
