// `orrery trace`: its subcommands, and functions that they share.
#include "apps/cli/trace.hpp"

#include <array>
#include <charconv>

#include <fmt/format.h>

#include "apps/cli/commands.hpp"
#include "apps/cli/terminal.hpp"
#include "orrery/core/text.hpp"
#include "orrery/report/table.hpp"

namespace orrery::cli {

namespace {

constexpr const char* kTraceFooter = R"(Examples
  orrery trace info run.*.et
  orrery trace check run.*.et && orrery trace stats run.0.et
  orrery trace print run.0.et | head -3
  orrery trace convert run.0.et --fold name --out run.dot
  orrery trace import rank*.pt.trace.json.gz --out job

Input files are Chakra traces (protobuf) of any schema version, or JSON lines; uncompressed, gzip or zstd;
stats, link and import read profiles of PyTorch (docs/guide/profiles.md).
)";

}  // namespace

Command trace_command() {
  Command command("trace", "Inspect, check, compare and convert execution traces (Chakra).");
  std::vector<Command> all;
  all.push_back(trace_info_command());
  all.push_back(trace_check_command());
  all.push_back(trace_print_command());
  all.push_back(trace_stats_command());
  all.push_back(trace_diff_command());
  all.push_back(trace_convert_command());
  all.push_back(trace_anonymize_command());
  all.push_back(trace_timeline_command());
  all.push_back(trace_link_command());
  all.push_back(trace_import_command());
  command.subcommands(std::move(all));
  command.footer(kTraceFooter);
  return command;
}

api::TraceOptions TraceArguments::options() const {
  api::TraceOptions options;
  options.tolerant = tolerant;
  const auto progress = std::make_shared<Progress>("MB");
  options.progress = [progress](std::uint64_t done, std::uint64_t all) {
    constexpr std::uint64_t kMegabyte = 1'000'000;
    progress->update(static_cast<std::int64_t>(done / kMegabyte), static_cast<std::int64_t>(all / kMegabyte));
  };
  return options;
}

void declare_files(Command& command, const SharedTraceArguments& arguments, const std::string& value,
                   const std::string& doc) {
  command.positionals({"file", value, doc, ""},
                      [arguments](const std::string& file) { arguments->files.push_back(file); });
  command.toggle({"--tolerant", "", "skip malformed records and report them, instead of rejecting the file", "Reading"},
                 [arguments](bool on) { arguments->tolerant = on; });
}

void declare_json(Command& command, const SharedTraceArguments& arguments, const std::string& schema) {
  command.toggle(
      {"--json", "", fmt::format("print one JSON document ({}) and nothing else", schema), std::string(kOutputGroup)},
      [arguments](bool on) { arguments->json = on; });
}

Result<void> need_files(const TraceArguments& arguments) {
  if (arguments.files.empty()) { return fail(flag_place("FILE"), "is missing; name a trace file"); }
  return {};
}

Result<std::uint64_t> whole_number(const std::string& flag, const std::string& text, std::uint64_t least) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < least) {
    return fail(flag_place(flag), fmt::format("{} is not a whole number of at least {}", quote(text), least));
  }
  return number;
}

void print_notes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) { print_aside("note: " + report::printable(note) + "\n"); }
}

}  // namespace orrery::cli
