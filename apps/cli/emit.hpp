// `--emit TOOL`: prints the launch configuration of a plan instead of the result.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/cli/command.hpp"
#include "apps/cli/request_flags.hpp"
#include "orrery/api/orrery.hpp"
#include "orrery/launch/launch.hpp"

namespace orrery::cli {

class EmitFlag {
 public:
  // `what`: what the help calls the plan, "the plan" or "the best plan".
  void declare(Command& command, const std::string& what) const;

  // The requested tool, if any. `others`: flags that print something else on standard output, and whether they
  // are given.
  [[nodiscard]] Result<std::optional<launch::Tool>> tool(const std::vector<std::pair<std::string, bool>>& others) const;

 private:
  std::shared_ptr<std::optional<std::string>> typed_ = std::make_shared<std::optional<std::string>>();
};

// Prints only the launch configuration on standard output, so that it can be saved; the predicted time and the settings
// that it cannot express go to standard error. `request`: the given one, or that with the plan of a search.
[[nodiscard]] Result<int> print_launch(const api::Orrery& orrery, const TypedRequest& typed,
                                       const estimate::Request& request, launch::Tool tool);

}  // namespace orrery::cli
