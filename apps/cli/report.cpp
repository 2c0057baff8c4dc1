// `orrery report`: a page of a study's results.
#include <memory>

#include "apps/cli/commands.hpp"
#include "apps/cli/terminal.hpp"
#include "orrery/api/explore.hpp"

namespace orrery::cli {

namespace of_report {
namespace {

constexpr const char* kFooter = R"(Examples
  orrery report results.sqlite --out results.html

One page without any request to the network: the Pareto front, maps of two axes, sensitivities, breakdowns, and all rows
as a table that sorts and filters. It opens in any browser of the last years and prints.
Exit codes: 0 done, 2 bad input, 3 internal error.
)";

struct Options {
  std::string database, out;
};

Result<int> run(const Options& options) {
  if (options.database.empty()) {
    return fail({}, "a database is missing; example: orrery report results.sqlite --out results.html");
  }
  if (options.out.empty()) {
    return fail(flag_place("--out"), "is missing: the file for the page, for example results.html");
  }
  ORRERY_TRY(page, api::study_page(options.database));
  const auto written = write_file(options.out, page, flag_place("--out"));
  if (!written) { return tl::make_unexpected(written.error()); }
  return 0;
}

}  // namespace
}  // namespace of_report

Command report_command() {
  using namespace of_report;
  Command command("report", "Write a page with charts of a study's results.");
  const auto options = std::make_shared<Options>();
  command.positional({"database", "DATABASE", "results of orrery explore", "The results"},
                     [options](const std::string& file) { options->database = file; });
  command.option({"--out", "FILE", "the page, one HTML file", std::string(kOutputGroup)},
                 [options](const std::string& file) { options->out = file; });
  command.footer(kFooter);
  command.action([options] { return run(*options); });
  return command;
}

}  // namespace orrery::cli
