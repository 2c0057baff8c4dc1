// Reading model descriptions: catalogue names, Hugging Face config.json, Orrery model YAML.
#pragma once

#include <string>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/hardware/catalogue.hpp"
#include "orrery/workload/model.hpp"

namespace orrery::workload {

// `name_or_path`: a name in <data_directory>/models/, or the path of a file. A JSON file with "model_type" is read as a
// Hugging Face configuration; anything else as Orrery's own description.
[[nodiscard]] Result<Model> load_model(const std::string& data_directory, const std::string& name_or_path);

[[nodiscard]] Result<std::vector<hardware::EntrySummary>> list_models(const std::string& data_directory);

// The entry printed as YAML with its sources and parameter counts.
[[nodiscard]] std::string describe(const Model& model);

}  // namespace orrery::workload
