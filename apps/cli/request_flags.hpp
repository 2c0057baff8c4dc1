// What `estimate` and `plan` share: a request typed as flags, in a scenario file, or both.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/cli/command.hpp"
#include "apps/cli/record_flags.hpp"
#include "orrery/config/node.hpp"
#include "orrery/estimate/request.hpp"

namespace orrery::cli {

struct TypedRequest {
  estimate::Request request;
  config::Node fields;  // what was typed, by field name

  [[nodiscard]] bool has(const std::string& field) const { return fields.find(field) != nullptr; }

  // Complaints about a field name its flag; here they get the place where the field was written, such as a line of the
  // scenario.
  [[nodiscard]] Failure placed(Failure failure) const;
};

class RequestFlags {
 public:
  RequestFlags();

  // `plan_heading`: the help's heading over the fields of the plan.
  void declare(Command& command, const std::string& plan_heading);

  // What lies under all that is typed: fields of a space file, and those of the needed ones that may be missing then.
  struct Base {
    config::Node fields = config::mapping_node();
    std::vector<std::string> optional = {};
  };

  // Base, then scenario file, then --set, then flags. Every mistake is collected, what is missing included; `example`
  // is a command that has it all.
  [[nodiscard]] Result<TypedRequest> read(const std::string& example, const Base& base) const;
  // Whether a field was typed as a flag, and does not come from a file.
  [[nodiscard]] bool is_flag(const std::string& field) const { return flags_.has(field); }
  [[nodiscard]] Result<TypedRequest> read(const std::string& example) const { return read(example, Base{}); }

 private:
  struct Source {
    std::string scenario;
    std::vector<std::string> settings;
  };
  [[nodiscard]] Result<config::Node> scenario_fields(const config::Node& base) const;

  RecordFlags flags_;
  std::shared_ptr<Source> source_ = std::make_shared<Source>();
};

}  // namespace orrery::cli
