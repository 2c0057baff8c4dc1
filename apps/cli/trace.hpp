// Shared by the subcommands of `orrery trace`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/cli/command.hpp"
#include "orrery/api/trace.hpp"

namespace orrery::cli {

[[nodiscard]] Command trace_info_command();
[[nodiscard]] Command trace_check_command();
[[nodiscard]] Command trace_print_command();
[[nodiscard]] Command trace_stats_command();
[[nodiscard]] Command trace_diff_command();
[[nodiscard]] Command trace_convert_command();
[[nodiscard]] Command trace_anonymize_command();
[[nodiscard]] Command trace_timeline_command();
[[nodiscard]] Command trace_link_command();
[[nodiscard]] Command trace_import_command();

// Files, --tolerant and --json, which most subcommands have.
struct TraceArguments {
  std::vector<std::string> files;
  bool tolerant = false;
  bool json = false;

  // Options for reading traces; progress is shown on standard error.
  [[nodiscard]] api::TraceOptions options() const;
};

using SharedTraceArguments = std::shared_ptr<TraceArguments>;

// FILE..., --tolerant.
void declare_files(Command& command, const SharedTraceArguments& arguments, const std::string& value,
                   const std::string& doc);
// --json with the schema of its document.
void declare_json(Command& command, const SharedTraceArguments& arguments, const std::string& schema);

// Fails if no files are given.
[[nodiscard]] Result<void> need_files(const TraceArguments& arguments);

// Reads a flag's value: a whole number of at least `least`.
[[nodiscard]] Result<std::uint64_t> whole_number(const std::string& flag, const std::string& text, std::uint64_t least);

// Prints notes on standard error, one line each, with `note: ` in front.
void print_notes(const std::vector<std::string>& notes);

inline constexpr const char* kTraceExitCodes = "Exit codes: 0 done, 2 bad input, 3 internal error.\n";

}  // namespace orrery::cli
