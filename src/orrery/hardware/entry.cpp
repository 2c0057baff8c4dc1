#include "orrery/hardware/entry.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "orrery/config/record.hpp"
#include "orrery/core/text.hpp"
#include "orrery/hardware/citations.hpp"

namespace orrery::hardware {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".yaml";

fs::path folder_of(const std::string& data_directory, const EntryKind& kind) {
  return fs::path(data_directory) / kind.folder;
}

bool ends_like_a_file(std::string_view text) {
  return text.ends_with(".yaml") || text.ends_with(".yml") || text.ends_with(".json");
}

}  // namespace

void count_sources(const Sources& sources, EntrySummary& summary) {
  for (const auto& [key, citation] : sources) {
    const int figures = static_cast<int>(cited_figures(key).size());
    summary.figures += figures;
    if (is_unverified(citation)) { summary.unverified += figures; }
  }
}

std::vector<std::string> entry_names(const std::string& data_directory, const EntryKind& kind) {
  std::vector<std::string> names;
  std::error_code error;
  const fs::path folder = folder_of(data_directory, kind);
  const std::size_t before_name = folder.native().size() + 1;
  auto it = fs::recursive_directory_iterator(folder, error);
  for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    std::string_view name = it->path().native();
    if (!name.ends_with(kSuffix)) { continue; }
    name.remove_prefix(before_name);
    name.remove_suffix(kSuffix.size());
    if (name.empty() || name.ends_with('/')) { continue; }  // a hidden file without a suffix
    names.push_back(std::string(kind.prefix).append(name));
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool has_entry(const std::string& data_directory, const EntryKind& kind, std::string_view name) {
  if (!name.starts_with(kind.prefix)) { return false; }
  const std::string_view rest = name.substr(kind.prefix.size());
  if (rest.empty()) { return false; }
  if (rest.find('/') == std::string_view::npos) {
    std::error_code error;
    return fs::exists(folder_of(data_directory, kind) / std::string(rest).append(kSuffix), error);
  }
  const auto known = entry_names(data_directory, kind);
  return std::binary_search(known.begin(), known.end(), name);
}

std::vector<std::string> proposed_entries(std::string_view name, const std::vector<std::string>& known) {
  const auto is_letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  if (std::none_of(name.begin(), name.end(), is_letter)) { return {}; }  // "." is in "llama-3.1-8b" by chance
  if (auto few = completions(name, known); !few.empty()) { return few; }
  const std::string* longer = nullptr;  // of many, the shortest
  for (const auto& candidate : known) {
    const bool is_shorter = longer == nullptr || candidate.size() < longer->size();
    if (candidate.starts_with(name) && is_shorter) { longer = &candidate; }
  }
  if (longer != nullptr) { return {*longer}; }
  if (auto near = nearest(name, known)) { return {*near}; }
  const auto holds = [&](const std::string& candidate) { return candidate.find(name) != std::string::npos; };
  if (const auto found = std::find_if(known.begin(), known.end(), holds); found != known.end()) { return {*found}; }
  return {};
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& known) {
  std::vector<std::string> proposed = proposed_entries(name, known);
  for (auto& entry : proposed) { entry = quote(entry); }
  return proposed.empty() ? std::string{} : fmt::format("; did you mean {}?", either(proposed));
}

std::string unknown_entry(const EntryKind& kind, std::string_view name, const std::vector<std::string>& known) {
  return fmt::format("unknown {} {}{} (\"orrery list {}\" shows all)", kind.singular, quote(name),
                     did_you_mean(name, known), kind.plural());
}

Result<std::string> entry_file(const std::string& data_directory, const EntryKind& kind,
                               const std::string& name_or_path, const Place& place) {
  if (ends_like_a_file(name_or_path)) { return name_or_path; }
  if (has_entry(data_directory, kind, name_or_path)) {
    return (folder_of(data_directory, kind) / (name_or_path.substr(kind.prefix.size()) + std::string(kSuffix)))
        .string();
  }
  std::error_code error;
  const bool is_path = name_or_path.find('/') != std::string::npos;
  if (is_path && fs::exists(fs::symlink_status(name_or_path, error))) {
    return name_or_path;
  }  // a link may lead nowhere
  return fail(place, unknown_entry(kind, name_or_path, entry_names(data_directory, kind)));
}

std::string file_stem(const std::string& path) { return fs::path(path).stem().string(); }

Result<config::Node> entry_node(const std::string& data_directory, const EntryKind& kind,
                                const std::string& name_or_path, const Place& place) {
  ORRERY_TRY(file, entry_file(data_directory, kind, name_or_path, place));
  ORRERY_TRY(node, config::read_file(file));
  if (node.kind != config::Kind::mapping) {
    return fail(node.place, fmt::format("a description of {} must be a mapping (lines of \"key: value\")",
                                        config::with_article(kind.singular)));
  }
  return node;
}

}  // namespace orrery::hardware
