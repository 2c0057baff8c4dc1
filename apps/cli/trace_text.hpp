// Text workloads as input of `orrery trace convert`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/cli/command.hpp"
#include "orrery/api/text_workload.hpp"

namespace orrery::cli {

struct TextArguments {
  std::string dimensions, passes, cycle, model_group;
  bool process_groups = false;

  // Whether one of the files is a text workload. Fails if it is not the only file, or if flags have no effect.
  [[nodiscard]] Result<bool> apply_to(const std::vector<std::string>& files) const;
  [[nodiscard]] Result<api::TextWorkloadOptions> options() const;
};

void declare_text(Command& command, const std::shared_ptr<TextArguments>& arguments);

}  // namespace orrery::cli
