// Reading model descriptions: catalogue names, Hugging Face config.json, Orrery model YAML.
#pragma once

#include <string>
#include <vector>

#include "orrery/config/node.hpp"
#include "orrery/core/error.hpp"
#include "orrery/hardware/catalogue.hpp"
#include "orrery/workload/model.hpp"

namespace orrery::workload {

// `name_or_path`: a name in <data_directory>/models/ or <data_directory>/madmax/models/, the path of a file, or the
// path of a folder that holds a config.json. JSON is read as a Hugging Face configuration, which needs "model_type",
// unless it has Orrery's key "layers" or "recommender"; anything else as Orrery's own description. The model comes back
// completed and consistent (see model.hpp); all mistakes of a file are reported at once.
// `as`: the model_type to read a Hugging Face configuration as.
[[nodiscard]] Result<Model> load_model(const std::string& data_directory, const std::string& name_or_path,
                                       const std::string& as = {});

// A model from a tree in Orrery's own format, such as `describe` prints.
[[nodiscard]] Result<Model> model_of_tree(config::Node tree);

// Whether a file, or a folder with a config.json, holds a model: it has a key that only descriptions of models have.
[[nodiscard]] bool is_model_file(const std::string& path);

[[nodiscard]] std::vector<std::string> model_names(const std::string& data_directory);
[[nodiscard]] Result<std::vector<hardware::EntrySummary>> list_models(const std::string& data_directory);
// The models of MAD-Max's configurations, in the same way.
[[nodiscard]] Result<std::vector<hardware::EntrySummary>> list_mad_max_models(const std::string& data_directory);

// The model printed as YAML with its sources, which reads back, and its parameter counts as comments.
[[nodiscard]] std::string describe(const Model& model);

}  // namespace orrery::workload
