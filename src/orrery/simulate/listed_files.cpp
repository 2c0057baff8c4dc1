#include "orrery/simulate/listed_files.hpp"

#include <charconv>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>

#include <dirent.h>

namespace orrery::simulate {

namespace {

constexpr std::size_t kFewRanks = 64;    // are asked for one by one
constexpr std::size_t kMostEntries = 4;  // per rank
constexpr std::string_view kExtension = ".et";

struct CloseFolder {
  void operator()(::DIR* folder) const { ::closedir(folder); }
};

// The rank in a name NAME.<rank>.et, written as this program writes it: without zeros in front.
std::optional<std::size_t> rank_of(std::string_view file, std::string_view name) {
  if (!file.starts_with(name) || !file.ends_with(kExtension)) { return std::nullopt; }
  file.remove_prefix(name.size());
  if (file.size() < 2 + kExtension.size() || file.front() != '.') { return std::nullopt; }
  const std::string_view digits = file.substr(1, file.size() - 1 - kExtension.size());
  std::size_t rank = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  const bool is_number = error == std::errc() && end == digits.data() + digits.size();
  return is_number && (digits.front() != '0' || digits.size() == 1) ? std::optional(rank) : std::nullopt;
}

}  // namespace

std::vector<bool> listed_files(const std::string& prefix, std::size_t ranks) {
  std::vector<bool> listed(ranks);
  if (ranks < kFewRanks) { return listed; }
  const std::filesystem::path path(prefix);
  const std::string name = path.filename().string(), parent = path.parent_path().string();
  const std::unique_ptr<::DIR, CloseFolder> folder(::opendir(parent.empty() ? "." : parent.c_str()));
  for (std::size_t left = kMostEntries * ranks; folder && left > 0; --left) {
    const ::dirent* const entry = ::readdir(folder.get());
    if (entry == nullptr) { break; }
    if (entry->d_type != DT_REG) { continue; }
    const auto rank = rank_of(static_cast<const char*>(entry->d_name), name);
    if (rank && *rank < ranks) { listed[*rank] = true; }
  }
  return listed;
}

}  // namespace orrery::simulate
