// Reading hardware descriptions: catalogue entries by name and users' files by path.
//
// Layout of a data directory: accelerators/<name>.yaml, links/<name>.yaml, clusters/<name>.yaml, stacks/<name>.yaml.
//
// A cluster holds its accelerator and its dimensions' link classes inline, or refers to them: by catalogue name
// (`accelerator: h100-sxm`), by the path of a file, which counts from the cluster's own folder, or by either and with
// changes (`accelerator: {use: h100-sxm, memory: 96 GiB}`). A figure that is changed loses the entry's citation. Its
// topology may be the path of a network file of ASTRA-sim, with changes or without.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/hardware/cluster.hpp"
#include "orrery/hardware/entry.hpp"
#include "orrery/hardware/stack.hpp"

namespace orrery::hardware {

// Whether a caller tells the accelerators of a cluster apart (Cluster::nodes). A caller that does not say so gets no
// such cluster: figures of the first nodes alone would be wrong without a sign of it.
struct UnlikeNodes {
  std::string_view refused_by;  // who does not model it, for the error; empty: it is modelled

  static const UnlikeNodes modelled, refused;
};
inline constexpr UnlikeNodes UnlikeNodes::modelled{""};
inline constexpr UnlikeNodes UnlikeNodes::refused{"this command"};

class Catalogue {
 public:
  explicit Catalogue(std::string data_directory) : directory_(std::move(data_directory)) {}

  // `name_or_path`: a catalogue name, or the path of a YAML/JSON file (it has a '/' or ends in .yaml/.yml/.json).
  [[nodiscard]] Result<Accelerator> accelerator(const std::string& name_or_path) const;
  [[nodiscard]] Result<LinkClass> link(const std::string& name_or_path) const;
  [[nodiscard]] Result<Stack> stack(const std::string& name_or_path) const;
  // The profile of that software on an accelerator (Stack::instead_on).
  [[nodiscard]] Result<Stack> stack_on(const std::string& name_or_path, const Accelerator& accelerator) const;
  // `devices` = 0 keeps the file's own count (a template's default is one node). Fails where the devices are of several
  // kinds of nodes, unless the caller models that.
  [[nodiscard]] Result<Cluster> cluster(const std::string& name_or_path, std::int64_t devices,
                                        UnlikeNodes unlike = UnlikeNodes::refused) const;

  // For callers that need no accelerator: a cluster, or a network file of ASTRA-sim as a cluster without an
  // accelerator. With several kinds of nodes, too.
  [[nodiscard]] Result<Cluster> network(const std::string& name_or_path, std::int64_t devices) const;

  // The tree of a cluster with its accelerator and links in place of their names, to be changed and read by
  // cluster_of_tree. `place`: where the name was written.
  [[nodiscard]] Result<config::Node> cluster_tree(const std::string& name_or_path, const Place& place = {}) const;
  // References in the tree may be new.
  [[nodiscard]] Result<Cluster> cluster_of_tree(config::Node tree, std::int64_t devices,
                                                UnlikeNodes unlike = UnlikeNodes::refused) const;
  // As its description states it, for any number of devices where it grows: the start of a file of one's own.
  [[nodiscard]] Result<Cluster> cluster_template(const std::string& name_or_path,
                                                 UnlikeNodes unlike = UnlikeNodes::refused) const;

  [[nodiscard]] Result<std::vector<EntrySummary>> accelerators() const;
  [[nodiscard]] Result<std::vector<EntrySummary>> links() const;
  [[nodiscard]] Result<std::vector<EntrySummary>> clusters() const;
  [[nodiscard]] Result<std::vector<EntrySummary>> stacks() const;

  // The entry of any kind as YAML with its sources, for `orrery describe`. `others` are names of other kinds (models)
  // that the error for an unknown name may propose.
  [[nodiscard]] Result<std::string> description(const std::string& name_or_path,
                                                std::vector<std::string> others = {}) const;

  // Names of every kind, sorted, for messages about a name that may be of any kind.
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  // If `name` is an accelerator and no cluster: the error that says so and names the clusters that have it.
  [[nodiscard]] std::optional<std::string> clusters_of(const std::string& name) const;

  std::string directory_;
};

// Files of entries, with their sources.
[[nodiscard]] std::string yaml_of(const Cluster& cluster);
[[nodiscard]] std::string yaml_of(const Stack& stack);

}  // namespace orrery::hardware
