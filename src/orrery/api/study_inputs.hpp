// What the scenario of a study's point names: model, cluster and stack with the point's changes.
//
// A setting is a field of a scenario ("devices"), or a path into what it names: "cluster.second_tier.bandwidth",
// "model.layers", "stack.memory_reserve". In the base, `cluster`, `model` and `stack` are a name, a file (relative to
// the study), a description, or {use: name, …changes}.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "orrery/api/inputs.hpp"
#include "orrery/api/mad_max.hpp"
#include "orrery/study/points.hpp"
#include "orrery/study/study.hpp"

namespace orrery::api {

using Settings = std::vector<study::Setting>;

// Used by one thread: it keeps what it has read.
class StudyInputs {
 public:
  StudyInputs(std::string data_directory, const study::Study& study);

  [[nodiscard]] Result<estimate::Request> request(const Settings& settings);
  [[nodiscard]] Result<Inputs> inputs(const Settings& settings, const estimate::Request& request, Length length);
  [[nodiscard]] Result<MadMaxInputs> mad_max_inputs(const Settings& settings, const estimate::Request& request);

  // Everything but the choices of a plan, as text: requests with equal texts are the same job on the same machine.
  [[nodiscard]] static std::string job_text(const Settings& settings);
  // The value at a path of the effective scenario.
  [[nodiscard]] Result<config::Node> value(const Settings& settings, const std::string& path);
  [[nodiscard]] study::Facts facts();

  // Descriptions that the base and the axes name, as texts: "cluster dgx-a100".
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> named_descriptions(
      const std::vector<study::Axis>& axes);
  // The machine with its changes, to be written to a file.
  [[nodiscard]] Result<config::Node> part_tree(const std::string& part, const Settings& settings,
                                               const std::string& stack_name = {});
  [[nodiscard]] static bool changes(const Settings& settings, const std::string& part);
  // The scenario without changes of model, cluster and stack.
  [[nodiscard]] Result<config::Node> fields(const Settings& settings) const;

 private:
  [[nodiscard]] bool is_mad_max(const config::Node& name) const;
  [[nodiscard]] Result<config::Node> named_tree(const std::string& part, const config::Node& name);
  [[nodiscard]] Result<config::Node> whole_tree(const std::string& part, const config::Node& value);
  [[nodiscard]] std::string path_of(const config::Node& name) const;

  template <class T>
  using Kept = std::unordered_map<std::string, Result<T>>;

  std::string data_directory_;
  const study::Study& study_;
  hardware::Catalogue catalogue_;
  Kept<config::Node> trees_;      // by part and name
  Kept<workload::Model> models_;  // by name and changes
  Kept<hardware::Cluster> clusters_;
  Kept<hardware::Stack> stacks_;
  std::optional<Result<estimate::Spreads>> spreads_;
};

}  // namespace orrery::api
