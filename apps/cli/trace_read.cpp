// `orrery trace info`, `check`, `print`, `stats`, `diff`: commands that only read.
#include <algorithm>
#include <optional>

#include "apps/cli/commands.hpp"
#include "apps/cli/terminal.hpp"
#include "apps/cli/trace.hpp"
#include "orrery/api/profile.hpp"
#include "orrery/core/text.hpp"
#include "orrery/report/trace.hpp"

namespace orrery::cli {

namespace {

constexpr const char* kInfoFooter = R"(Examples
  orrery trace info run.0.et
  orrery trace info --json run.*.et.gz

The schema version is inferred from the records; the version that a file claims is often missing or wrong.
Exit codes: 0 done, 2 bad input, 3 internal error.
)";

constexpr const char* kCheckFooter = R"(Examples
  orrery trace check run.*.et
  orrery trace check --groups comm_group.json run.*.et
  orrery trace check --partial run.0.et run.1.et

Each file is checked for duplicate ids, missing parents, cycles, self-dependencies, duplicate dependencies, unknown
types, and attributes that are missing or unusable for the type of the node.
Files whose names differ only in the number before the suffix (run.0.et, run.1.et) are the ranks of a job. A job is
checked for collectives whose type, size, order or members differ between ranks, unmatched sends and receives, groups
with ranks that do not exist, and deadlocks.
Exit codes: 0 sound, 1 unsound, 2 bad input (a file cannot be read), 3 internal error.
)";

constexpr const char* kPrintFooter = R"(Examples
  orrery trace print run.0.et | head -3
  orrery trace print run.0.et.gz | jq -c 'select(.type == "COMM_COLL_NODE") | [.id, .name]'

Field names are those of the Chakra schema. "orrery trace convert --out FILE.jsonl" also writes the metadata.
Exit codes: 0 done, 2 bad input (the printed lines are then only part of the file), 3 internal error.
)";

constexpr const char* kStatsFooter = R"(Examples
  orrery trace stats run.0.et
  orrery trace stats --json run.*.et
  orrery trace stats rank0.pt.trace.json.gz

Bytes are comm_size of communication nodes and tensor_size of other nodes. Times are recorded durations.
Of profiles of PyTorch (Kineto), it prints busy times by stream and step, exposed communication, collectives, and the
kernels and operators with the longest device time.
Exit codes: 0 done, 2 bad input, 3 internal error.
)";

constexpr const char* kDiffFooter = R"(Examples
  orrery trace diff before.et after.et
  orrery trace diff --ignore times,attr:rf_id before.et after.et
  orrery trace diff before.pt.trace.json.gz after.pt.trace.json.gz

Nodes are matched by their content and neighbours; their ids and their order in the file have no effect.
Profiles of PyTorch (Kineto) are compared by the count and the device time of each kernel and operator.
Exit codes: 0 equal, 1 different, 2 bad input, 3 internal error.
)";

struct CheckOptions {
  api::TraceCheckOptions check;
  std::optional<std::string> examples;
};

Result<int> run_info(const TraceArguments& arguments) {
  if (auto ok = need_files(arguments); !ok) { return tl::make_unexpected(ok.error()); }
  ORRERY_TRY(info, api::trace_info(arguments.files, arguments.options()));
  print(arguments.json ? report::trace_info_json(info) : report::trace_info_text(info, terminal_style()));
  return 0;
}

Result<int> run_check(const TraceArguments& arguments, CheckOptions options) {
  if (auto ok = need_files(arguments); !ok) { return tl::make_unexpected(ok.error()); }
  if (options.examples) {
    ORRERY_TRY(number, whole_number("--examples", *options.examples, 1));
    options.check.examples = static_cast<std::size_t>(number);
  }
  ORRERY_TRY(check, api::trace_check(arguments.files, options.check, arguments.options()));
  print(arguments.json ? report::trace_check_json(check) : report::trace_check_text(check, terminal_style()));
  return check.sound() ? 0 : 1;
}

Result<int> run_print(const TraceArguments& arguments) {
  if (auto ok = need_files(arguments); !ok) { return tl::make_unexpected(ok.error()); }
  if (arguments.files.size() > 1) { return fail(flag_place("FILE"), "takes one file"); }
  std::uint64_t printed = 0;
  auto notes = api::trace_print(
      arguments.files.front(),
      [&](std::string_view text) {
        printed += text.size();
        print(text);
      },
      arguments.options());
  if (!notes) {
    Failure failure = std::move(notes).error();
    if (printed > 0) { failure.diagnostics.back().message += "; the printed lines are only part of the file"; }
    return tl::make_unexpected(std::move(failure));
  }
  print_notes(*notes);
  return 0;
}

Result<int> run_profile_stats(const TraceArguments& arguments, std::size_t most) {
  ORRERY_TRY(stats, api::profile_stats(arguments.files, arguments.options()));
  print(arguments.json ? report::profile_stats_json(stats, most)
                       : report::profile_stats_text(stats, most, terminal_style()));
  return 0;
}

Result<int> run_stats(const TraceArguments& arguments, const std::string& most) {
  if (auto ok = need_files(arguments); !ok) { return tl::make_unexpected(ok.error()); }
  ORRERY_TRY(number, whole_number("--most", most, 0));
  ORRERY_TRY(kineto, api::are_kineto(arguments.files));
  const auto profiles = static_cast<std::size_t>(std::count(kineto.begin(), kineto.end(), true));
  if (profiles == arguments.files.size()) { return run_profile_stats(arguments, static_cast<std::size_t>(number)); }
  if (profiles > 0) {
    return fail(flag_place("FILE"), "takes either Kineto profiles or Chakra traces; the files are of both kinds");
  }
  ORRERY_TRY(stats, api::trace_stats(arguments.files, static_cast<std::size_t>(number), arguments.options()));
  print(arguments.json ? report::trace_stats_json(stats) : report::trace_stats_text(stats, terminal_style()));
  return 0;
}

Result<graph::DifferenceOptions> difference_options(const std::string& ignored, const std::string& most) {
  graph::DifferenceOptions options;
  ORRERY_TRY(number, whole_number("--first", most, 0));
  options.most = static_cast<std::size_t>(number);
  for (std::size_t at = 0; at < ignored.size();) {
    const std::string what = ignored.substr(at, ignored.find(',', at) - at);
    at += what.size() + 1;
    if (what == "names") {
      options.names = false;
    } else if (what == "times") {
      options.times = false;
    } else if (what == "io") {
      options.io = false;
    } else if (what == "metadata") {
      options.metadata = false;
    } else if (what.starts_with("attr:") && what.size() > 5) {
      options.attributes.push_back(what.substr(5));
    } else {
      return fail(flag_place("--ignore"), quote(what) + " is not valid; use names, times, io, metadata or attr:NAME");
    }
  }
  return options;
}

// Kernels and operators with their device times.
Result<int> run_profile_diff(const TraceArguments& arguments, const std::string& ignored, std::size_t most) {
  if (!ignored.empty()) { return fail(flag_place("--ignore"), "is not valid for Kineto profiles"); }
  ORRERY_TRY(facts, api::profile_stats(arguments.files, arguments.options()));
  print(arguments.json ? report::profile_diff_json(facts[0], facts[1], most)
                       : report::profile_diff_text(facts[0], facts[1], most, terminal_style()));
  return report::same_work(facts[0], facts[1]) ? 0 : 1;
}

Result<int> run_diff(const TraceArguments& arguments, const std::string& ignored, const std::string& most) {
  if (arguments.files.size() != 2) { return fail(flag_place("A B"), "takes two files"); }
  ORRERY_TRY(options, difference_options(ignored, most));
  ORRERY_TRY(kineto, api::are_kineto(arguments.files));
  if (kineto[0] && kineto[1]) { return run_profile_diff(arguments, ignored, options.most); }
  if (kineto[0] || kineto[1]) {
    return fail(flag_place("A B"), "one file is a Kineto profile and the other is not; both must be of one kind");
  }
  ORRERY_TRY(diff, api::trace_diff(arguments.files[0], arguments.files[1], options, arguments.options()));
  print(arguments.json ? report::trace_diff_json(diff) : report::trace_diff_text(diff, terminal_style()));
  return diff.difference.none() ? 0 : 1;
}

}  // namespace

Command trace_info_command() {
  Command command("trace info",
                  "Print what a trace contains: schema version, nodes by type, dependencies, collectives, groups.");
  const auto arguments = std::make_shared<TraceArguments>();
  declare_files(command, arguments, "FILE...", "traces");
  declare_json(command, arguments, "orrery.trace-info/1");
  command.footer(kInfoFooter);
  command.action([arguments] { return run_info(*arguments); });
  return command;
}

Command trace_check_command() {
  Command command("trace check", "Check whether traces can be executed: each file, and the ranks of a job together.");
  const auto arguments = std::make_shared<TraceArguments>();
  const auto options = std::make_shared<CheckOptions>();
  declare_files(command, arguments, "FILE...", "traces");
  const std::string job = "Job";
  command.option({"--groups", "FILE", "JSON file with the ranks of process groups: {\"name\": [0, 1]}", job},
                 [options](const std::string& file) { options->check.groups = file; });
  command.toggle(
      {"--partial", "",
       "only some ranks of the job are given; do not report missing ranks, nor communication with them", job},
      [options](bool on) { options->check.partial = on; });
  declare_json(command, arguments, "orrery.trace-check/1");
  command.option({"--examples", "N", "examples printed for each problem [default 3]", std::string(kOutputGroup)},
                 [options](const std::string& number) { options->examples = number; });
  command.footer(kCheckFooter);
  command.action([arguments, options] { return run_check(*arguments, *options); });
  return command;
}

Command trace_print_command() {
  Command command("trace print", "Print the nodes of a trace as JSON, one object per line.");
  const auto arguments = std::make_shared<TraceArguments>();
  declare_files(command, arguments, "FILE", "a trace");
  command.footer(kPrintFooter);
  command.action([arguments] { return run_print(*arguments); });
  return command;
}

Command trace_stats_command() {
  Command command(
      "trace stats",
      "Print counts, bytes and recorded time by node type, collective, process group and name; the critical path; the "
      "structure of the graph.");
  const auto arguments = std::make_shared<TraceArguments>();
  const auto most = std::make_shared<std::string>("10");
  declare_files(command, arguments, "FILE...", "traces");
  declare_json(command, arguments, "orrery.trace-stats/1");
  command.option(
      {"--most", "N", "names and nodes of the critical path to print [default 10]", std::string(kOutputGroup)},
      [most](const std::string& number) { *most = number; });
  command.footer(kStatsFooter);
  command.action([arguments, most] { return run_stats(*arguments, *most); });
  return command;
}

Command trace_diff_command() {
  Command command("trace diff", "Compare two traces, independently of node ids.");
  const auto arguments = std::make_shared<TraceArguments>();
  const auto ignored = std::make_shared<std::string>();
  const auto most = std::make_shared<std::string>("20");
  declare_files(command, arguments, "A B", "two traces");
  command.option({"--ignore", "WHAT,...",
                  "differences to ignore, separated by commas: names, times, io, metadata, attr:NAME", "Comparing"},
                 [ignored](const std::string& what) { *ignored = what; });
  declare_json(command, arguments, "orrery.trace-diff/1");
  command.option({"--first", "N", "differences to print [default 20]", std::string(kOutputGroup)},
                 [most](const std::string& number) { *most = number; });
  command.footer(kDiffFooter);
  command.action([arguments, ignored, most] { return run_diff(*arguments, *ignored, *most); });
  return command;
}

}  // namespace orrery::cli
