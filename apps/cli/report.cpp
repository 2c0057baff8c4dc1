// `orrery report`: a page of a study's results, or of campaigns and jobs.
#include <filesystem>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "apps/cli/commands.hpp"
#include "apps/cli/terminal.hpp"
#include "orrery/api/report_page.hpp"
#include "orrery/core/text.hpp"

namespace orrery::cli {

namespace of_report {
namespace {

constexpr const char* kFooter = R"(Examples
  orrery report results.sqlite --out results.html
  orrery report today.json faster-restart.json jobs.json --out results.html

One page without any request to the network. Of a study: the Pareto front, maps of two axes, sensitivities, breakdowns, and
all rows as a table that sorts and filters. Of JSON that "orrery campaign --json" and "orrery jobs --json" printed: where
the time goes, useful time against size, what-ifs, and the jobs on the servers. It opens in any browser of the last years
and prints.
Exit codes: 0 done, 2 bad input, 3 internal error.
)";

struct Options {
  std::vector<std::string> files;
  std::string out;
};

Result<int> run(const Options& options) {
  if (options.files.empty()) {
    return fail({}, "a file of results is missing; example: orrery report results.sqlite --out results.html");
  }
  if (options.out.empty()) {
    return fail(flag_place("--out"), "is missing: the file for the page, for example results.html");
  }
  for (const auto& file : options.files) {
    std::error_code error;  // a file that does not exist is no other file
    if (std::filesystem::equivalent(file, options.out, error)) {
      return fail(flag_place("--out"), fmt::format("{} is a file of results, which the page would overwrite; name "
                                                   "another file, for example results.html",
                                                   quote(options.out)));
    }
  }
  ORRERY_TRY(page, api::results_page(options.files));
  const auto written = write_file(options.out, page, flag_place("--out"));
  if (!written) { return tl::make_unexpected(written.error()); }
  return 0;
}

}  // namespace
}  // namespace of_report

Command report_command() {
  using namespace of_report;
  Command command("report", "Write a page with charts of a study's results, campaigns or jobs.");
  const auto options = std::make_shared<Options>();
  command.positionals(
      {"file", "FILE", "results of orrery explore (a database), or of campaign --json and jobs --json (.json)",
       "The results"},
      [options](const std::string& file) { options->files.push_back(file); });
  command.option({"--out", "FILE", "the page, one HTML file", std::string(kOutputGroup)},
                 [options](const std::string& file) { options->out = file; });
  command.footer(kFooter);
  command.action([options] { return run(*options); });
  return command;
}

}  // namespace orrery::cli
