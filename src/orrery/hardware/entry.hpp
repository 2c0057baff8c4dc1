// Finding catalogue entries. A kind of entry is a folder of a data directory, an entry a YAML file in it, its name the
// path from that folder without the suffix ("h100-sxm"), with the prefix of its kind ("madmax/" and a configuration's).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/config/node.hpp"
#include "orrery/core/error.hpp"
#include "orrery/hardware/accelerator.hpp"

namespace orrery::hardware {

struct EntryKind {
  std::string_view folder;       // below the data directory
  std::string_view singular;     // for messages
  std::string_view listed = {};  // what `orrery list` calls it, when not like its folder
  std::string_view prefix = {};  // of every name

  [[nodiscard]] std::string_view plural() const { return listed.empty() ? folder : listed; }
};

inline constexpr EntryKind kAcceleratorEntries{"accelerators", "accelerator"};
inline constexpr EntryKind kLinkEntries{"links", "link class"};
inline constexpr EntryKind kClusterEntries{"clusters", "cluster"};
inline constexpr EntryKind kStackEntries{"stacks", "stack"};
inline constexpr EntryKind kModelEntries{"models", "model"};

// MAD-Max's configurations. Its systems state other figures than our clusters do (see madmax/system.hpp).
inline constexpr std::string_view kMadMaxPrefix = "madmax/";
inline constexpr EntryKind kMadMaxModels{"madmax/models", "model", "models", kMadMaxPrefix};
inline constexpr EntryKind kMadMaxSystems{"madmax/systems", "cluster", "clusters", kMadMaxPrefix};

// What a listing shows of one entry.
struct EntrySummary {
  std::string name;
  std::string description;
  int figures = 0;     // figures with a citation or an "unverified" mark
  int unverified = 0;  // of those, figures without a source that was read
};

void count_sources(const Sources& sources, EntrySummary& summary);

// Names of a kind, sorted. Empty when the folder does not exist.
[[nodiscard]] std::vector<std::string> entry_names(const std::string& data_directory, const EntryKind& kind);

// Whether entry_names() has `name`; looks for its file alone.
[[nodiscard]] bool has_entry(const std::string& data_directory, const EntryKind& kind, std::string_view name);

// The file behind a catalogue name or a path (it ends in .yaml, .yml or .json, or has a '/' and is no catalogue name).
// An unknown name fails with the nearest one and the command that lists them; `place` is where the name was written.
[[nodiscard]] Result<std::string> entry_file(const std::string& data_directory, const EntryKind& kind,
                                             const std::string& name_or_path, const Place& place = {});

// Names to propose for an unknown one: those that continue it ("h100" -> "h100-nvl", "h100-pcie", "h100-sxm") if they
// are few, the shortest of them if they are many, else the nearest one, else one that contains it.
[[nodiscard]] std::vector<std::string> proposed_entries(std::string_view name, const std::vector<std::string>& known);

// The same as the end of a message: `; did you mean "dgx-h100"?`, or nothing.
[[nodiscard]] std::string did_you_mean(std::string_view name, const std::vector<std::string>& known);

// `unknown cluster "dgx-h10"; did you mean "dgx-h100"? ("orrery list clusters" shows all)`.
[[nodiscard]] std::string unknown_entry(const EntryKind& kind, std::string_view name,
                                        const std::vector<std::string>& known);

// The default name of an entry: its file without folder and suffix.
[[nodiscard]] std::string file_stem(const std::string& path);

// The entry's tree. The root must be a mapping.
[[nodiscard]] Result<config::Node> entry_node(const std::string& data_directory, const EntryKind& kind,
                                              const std::string& name_or_path, const Place& place = {});

}  // namespace orrery::hardware
