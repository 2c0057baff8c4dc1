// `orrery explore`: studies over clusters and plans.
#include <charconv>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "apps/cli/commands.hpp"
#include "apps/cli/interrupt.hpp"
#include "apps/cli/processes.hpp"
#include "apps/cli/terminal.hpp"
#include "orrery/api/explore.hpp"
#include "orrery/core/text.hpp"
#include "orrery/report/study.hpp"

namespace orrery::cli {

namespace of_explore {
namespace {

constexpr const char* kFooter = R"(Examples
  orrery explore examples/studies/comet/expansion.yaml --db expansion.sqlite
  orrery explore study.yaml --db results.sqlite --resume --threads 2
  mpirun -n 8 orrery explore study.yaml --db results.sqlite
  orrery explore study.yaml --point 17 --out-folder point-17
  orrery report results.sqlite --out results.html

A study names a base scenario and axes over anything that a scenario can say; docs/guide/explore.md is the guide,
docs/format/study.md the format, docs/format/study-results.md the tables of the database. Every point is a row: with its
best plan and figures, or with the reason why it has none. Ctrl-C, a kill or a failure loses at most the points in work;
--resume continues.
Exit codes: 0 done, 1 no point is ok, 2 bad input, 3 internal error.
)";

struct Options {
  std::string study, database, threads, point, folder;
  bool resume = false, json = false;
};

Result<std::int64_t> whole_number_of(const std::string& text, const char* flag, std::int64_t least) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc{} && end == text.data() + text.size() && number >= least) { return number; }
  return fail(flag_place(flag), fmt::format("{} is not a whole number of at least {}", quote(text), least));
}

Result<int> write_point(const Options& options) {
  if (!options.database.empty()) {
    return fail(flag_place("--db"), "has no effect with --point, which prices the point from the study alone");
  }
  ORRERY_TRY(id, whole_number_of(options.point, "--point", 0));
  ORRERY_TRY(data, data_directory());
  ORRERY_TRY(point, api::point_files(data, options.study, id));
  if (options.folder.empty()) {
    for (const auto& file : point.files) { print(fmt::format("# {}\n{}", file.name, file.text)); }
    return 0;
  }
  std::error_code error;
  std::filesystem::create_directories(options.folder, error);
  if (error) { return fail(flag_place("--out-folder"), fmt::format("{}: {}", quote(options.folder), error.message())); }
  for (const auto& file : point.files) {
    const auto path = (std::filesystem::path(options.folder) / file.name).string();
    const auto written = write_file(path, file.text, flag_place("--out-folder"));
    if (!written) { return tl::make_unexpected(written.error()); }
  }
  for (const auto& note : point.notes) { print_aside(fmt::format("note: {}\n", note)); }
  return 0;
}

Result<int> run(const Options& options) {
  if (options.study.empty()) {
    return fail({}, "a study is missing; example: orrery explore study.yaml --db results.sqlite");
  }
  if (!options.point.empty()) { return write_point(options); }
  if (!options.folder.empty()) { return fail(flag_place("--out-folder"), "has an effect only with --point"); }
  if (options.database.empty()) {
    return fail(flag_place("--db"), "is missing: the file for results, for example results.sqlite");
  }
  ORRERY_TRY(processes, Processes::start());
  api::StudyRequest request;
  request.file = options.study;
  request.database = options.database;
  request.resume = options.resume;
  request.version = ORRERY_VERSION;
  request.ranks = processes->ranks();
  if (!options.threads.empty()) {
    ORRERY_TRY(threads, whole_number_of(options.threads, "--threads", 1));
    if (threads > 1024) { return fail(flag_place("--threads"), fmt::format("{} is more than 1024", threads)); }
    request.threads = static_cast<int>(threads);
  } else if (request.ranks != nullptr) {
    request.threads = 1;
  }
  ORRERY_TRY(data, data_directory());
  Progress progress;
  const bool is_first = request.ranks == nullptr || request.ranks->rank() == 0;
  if (is_first) {
    request.progress = [&](std::int64_t done, std::int64_t points) { progress.update(done, points); };
  }
  const InterruptFlag interrupt;
  request.is_stopped = [] { return InterruptFlag::is_set(); };
  auto answer = api::explore(data, request);
  if (!answer) { return processes->failed(answer.error()); }
  processes->finish();
  if (!*answer) { return 0; }
  const api::StudyAnswer& found = **answer;
  if (found.stopped) {
    print_aside(fmt::format("stopped; {} of {} points are in {}: --resume continues\n",
                            found.summary.counts[0] + found.summary.counts[1] + found.summary.counts[2],
                            found.info.points, options.database));
    return 0;
  }
  const report::StudyEnd end{found.info, found.columns, found.summary, found.sensitivities, options.database};
  print(options.json ? report::study_json(end) : report::study_text(end, terminal_style()));
  return found.summary.best || found.info.points == 0 ? 0 : 1;
}

}  // namespace
}  // namespace of_explore

Command explore_command() {
  using namespace of_explore;
  Command command("explore", "Run a study of many clusters and plans and store its results in a database.");
  const auto options = std::make_shared<Options>();
  const std::string output(kOutputGroup), study = "The study";
  command.positional({"study", "STUDY", "the study, a YAML file", study},
                     [options](const std::string& file) { options->study = file; });
  command.option({"--db", "FILE", "SQLite database for the results", output},
                 [options](const std::string& file) { options->database = file; });
  command.toggle({"--resume", "", "continue the study that the database has, if there is one", output},
                 [options](bool on) { options->resume = on; });
  command.option({"--threads", "N", "threads of this process [default: all cores; under mpirun 1]", study},
                 [options](const std::string& count) { options->threads = count; });
  command.option({"--point", "ID", "write the scenario of one point instead, for orrery estimate --scenario", study},
                 [options](const std::string& id) { options->point = id; });
  command.option({"--out-folder", "DIR", "with --point: the folder for its files [default: standard output]", output},
                 [options](const std::string& folder) { options->folder = folder; });
  command.toggle({"--json", "", "print one JSON document (orrery.explore/1) and nothing else", output},
                 [options](bool on) { options->json = on; });
  command.footer(kFooter);
  command.action([options] { return run(*options); });
  return command;
}

}  // namespace orrery::cli
