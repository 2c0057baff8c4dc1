// Flags of a deployment and its load, and the scenario file below them: `orrery serve`, `orrery plan --task serve`.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "apps/cli/record_flags.hpp"
#include "orrery/api/serve.hpp"

namespace orrery::cli {

class ServeFlags {
 public:
  ServeFlags();

  // `wants`: whether a field of the scenario or of the engine becomes a flag.
  void declare(Command& command, const std::function<bool(std::string_view field)>& wants);
  void file(const std::string& name) { file_ = name; }
  // As the flag of a field of the scenario would.
  void give(const std::string& field, const std::string& text) { scenario_.give(field, text); }

  // Errors name `example` where the model or the cluster is missing.
  [[nodiscard]] Result<api::ServeRequest> read(const std::string& example) const;

 private:
  RecordFlags scenario_, engine_;
  std::string file_;
};

}  // namespace orrery::cli
