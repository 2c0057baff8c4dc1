// Flags that `estimate` and `plan` share: a request from flags, a scenario file, or both.
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
  config::Node fields;                            // given fields by name
  config::Node values = config::mapping_node();   // choices of a plan of which several values are given
  config::Node section = config::mapping_node();  // fields of the command's own section of the scenario

  [[nodiscard]] bool has(const std::string& field) const { return fields.find(field) != nullptr; }

  // Errors of a field name its flag; this adds the place where the field was written, such as a line of the scenario.
  [[nodiscard]] Failure placed(Failure failure) const;
};

class RequestFlags {
 public:
  RequestFlags();

  // Headings of the help. `omitted`: fields that have no flag in this command.
  void declare(Command& command, const std::string& plan_heading, const std::string& job_heading = "The job",
               const std::vector<std::string>& omitted = {});

  // Values below everything that is given: the fields of a space file, and required fields that may then be missing.
  struct Base {
    config::Node fields = config::mapping_node();
    std::vector<std::string> optional = {};
    bool values = false;       // whether choices of a plan may have several values: 4,8 and 1..16
    std::string section = {};  // key of the command's own fields in the scenario: "campaign"
  };

  // Priority: flags, then --set, then the scenario file, then the base. Reports all errors, including missing fields;
  // `example` is a complete command for that error.
  [[nodiscard]] Result<TypedRequest> read(const std::string& example, const Base& base) const;
  // The same job under another plan: `changes` are fields of the plan instead of the given ones, such as
  // "tp=4 micro-batch=auto"; auto: the value is chosen.
  [[nodiscard]] Result<TypedRequest> read_against(const std::string& example, const std::string& changes) const;
  // Whether anything is given.
  [[nodiscard]] bool any() const { return flags_.any() || !source_->scenario.empty() || !source_->settings.empty(); }
  // Gives a field that this command takes by a flag of its own.
  void give(const std::string& field, const std::string& text) { flags_.give(field, text); }
  // Whether a field was given by a flag and not by a file.
  [[nodiscard]] bool is_flag(const std::string& field) const { return flags_.has(field); }
  [[nodiscard]] Result<TypedRequest> read(const std::string& example) const { return read(example, Base{}); }

 private:
  struct Source {
    std::string scenario;
    std::vector<std::string> settings;
  };
  [[nodiscard]] Result<config::Node> scenario_fields(const config::Node& base) const;
  [[nodiscard]] static Result<TypedRequest> typed_from(config::Node fields, const std::string& example,
                                                       const Base& base);

  RecordFlags flags_;
  std::shared_ptr<Source> source_ = std::make_shared<Source>();
};

}  // namespace orrery::cli
