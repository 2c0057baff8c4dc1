#include "orrery/api/feeder.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace orrery::api {

namespace fs = std::filesystem;

namespace {

constexpr std::array<std::string_view, 3> kSuffixes = {".et", ".et.gz", ".et.zst"};

// The rank in "7.et.gz"; nothing if that is not the file of a rank.
std::optional<std::uint64_t> rank_of(std::string_view rest) {
  std::uint64_t rank = 0;
  const auto [stopped, error] = std::from_chars(rest.data(), rest.data() + rest.size(), rank);
  if (error != std::errc()) { return std::nullopt; }
  const std::string_view suffix(stopped, static_cast<std::size_t>(rest.data() + rest.size() - stopped));
  const bool known = std::find(kSuffixes.begin(), kSuffixes.end(), suffix) != kSuffixes.end();
  return known ? std::optional(rank) : std::nullopt;
}

// The files of a prefix by rank. Of several for a rank, the first by name.
std::map<std::uint64_t, std::string> files_of(const std::string& prefix) {
  const fs::path path(prefix);
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const std::string begin = path.filename().string() + ".";
  std::map<std::uint64_t, std::string> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(begin)) { continue; }
    const auto rank = rank_of(std::string_view(name).substr(begin.size()));
    if (!rank) { continue; }
    const std::string file = prefix + name.substr(begin.size() - 1);
    const auto [found, is_new] = files.try_emplace(*rank, file);
    if (!is_new) { found->second = std::min(found->second, file); }
  }
  return files;
}

}  // namespace

Result<Feeder> open_feeder(const std::string& path, const FeederOptions& options) {
  return Feeder::open(path, options);
}

Result<std::vector<Feeder>> open_feeders(const std::string& prefix, const FeederOptions& options) {
  const auto files = files_of(prefix);
  if (files.empty()) { return fail(Place{prefix, 0, 0, {}}, fmt::format("{}.0.et does not exist", prefix)); }
  std::vector<Feeder> feeders;
  Failure failure;
  for (const auto& [rank, file] : files) {
    const std::size_t expected = feeders.size() + failure.diagnostics.size();
    if (rank != expected) {
      failure.diagnostics.push_back(
          {Place{prefix, 0, 0, {}}, fmt::format("rank {} has no file, but rank {} has {}", expected, rank, file)});
      break;
    }
    auto feeder = open_feeder(file, options);
    if (feeder) {
      feeders.push_back(std::move(*feeder));
    } else {
      failure.diagnostics.push_back(feeder.error().diagnostics.front());
    }
  }
  if (!failure.diagnostics.empty()) { return tl::make_unexpected(std::move(failure)); }
  return feeders;
}

}  // namespace orrery::api
