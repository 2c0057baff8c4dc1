// `--emit TOOL`: the launch configuration of a plan instead of the answer, for commands that have a plan to show.
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
  // `what` is launched: "the plan", "the best plan".
  void declare(Command& command, const std::string& what) const;

  // The tool that was asked for, if any. `others`: flags that print something else on standard output, and whether they
  // were given.
  [[nodiscard]] Result<std::optional<launch::Tool>> tool(const std::vector<std::pair<std::string, bool>>& others) const;

 private:
  std::shared_ptr<std::optional<std::string>> typed_ = std::make_shared<std::optional<std::string>>();
};

// The launch on standard output and nothing else, so that it can be saved; what the plan comes to, and what the launch
// does not say, on standard error. `request` is what `typed` holds, or that with the plan a search found.
[[nodiscard]] Result<int> print_launch(const api::Orrery& orrery, const TypedRequest& typed,
                                       const estimate::Request& request, launch::Tool tool);

}  // namespace orrery::cli
