// Flags of a record: one per field, with type, default, bounds and doc from its descriptor. Values stay text until the
// record reads them, under the same rules as a file's.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/cli/command.hpp"
#include "orrery/config/record.hpp"

namespace orrery::cli {

// `global_batch` -> `--global-batch`.
[[nodiscard]] std::string flag_name(const std::string& field);

// Help of fields that are in files only, as lines of a section.
[[nodiscard]] std::string file_fields_help(std::span<const config::FieldInfo> fields);

class RecordFlags {
 public:
  explicit RecordFlags(std::vector<config::FieldInfo> fields) : fields_(std::move(fields)) {}

  // Declares the flags of the fields for which `group` returns a heading; "" omits a field.
  void declare(Command& command, const std::function<std::string(const std::string& field)>& group);

  // The given values over `fields` (a mapping): a flag replaces a file's value.
  void lay_over(config::Node& fields) const;
  [[nodiscard]] bool has(const std::string& field) const;
  [[nodiscard]] bool any() const { return !typed_->empty(); }
  void give(const std::string& field, const std::string& text) { typed_->emplace_back(field, text); }

 private:
  std::vector<config::FieldInfo> fields_;
  std::shared_ptr<std::vector<std::pair<std::string, std::string>>> typed_ =
      std::make_shared<std::vector<std::pair<std::string, std::string>>>();  // field, text
};

}  // namespace orrery::cli
