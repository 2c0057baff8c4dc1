// `orrery jobs`: jobs that arrive at one cluster.
#include <memory>

#include "apps/cli/commands.hpp"
#include "apps/cli/terminal.hpp"
#include "orrery/api/jobs.hpp"
#include "orrery/report/jobs.hpp"

namespace orrery::cli {

namespace of_jobs_command {
namespace {

constexpr const char* kFooter = R"(Examples
  orrery jobs examples/jobs/pac-ml.yaml
  orrery jobs examples/jobs/pac-ml.yaml --policy deadline --gantt gantt.svg
  orrery jobs examples/jobs/plans.yaml --json

FILE is YAML: servers, fabric (switched, ramp), arrivals (Poisson, fixed, trace), policy, queue, limit, and kinds of jobs with
their widths and times, or with a plan of "orrery estimate" that is searched for each width (docs/format/jobs.md).
Exit codes: 0 done, 2 bad input, 3 internal error.
)";

struct Options {
  std::string file, policy, gantt;
  bool json = false;
};

Result<int> run(const Options& options) {
  if (options.file.empty()) { return fail("FILE is missing; for example: orrery jobs examples/jobs/pac-ml.yaml"); }
  ORRERY_TRY(root, config::read_file(options.file));
  if (!options.policy.empty()) {
    config::Node policy = config::plain_node(options.policy, flag_place("--policy"));
    if (config::Node* before = root.find("policy")) {
      *before = std::move(policy);
    } else if (root.kind == config::Kind::mapping) {
      config::add(root, "policy", std::move(policy));
    }
  }
  ORRERY_TRY(file, jobs::read_file(root, options.file));
  ORRERY_TRY(data, data_directory());
  Progress progress("arrivals");
  ORRERY_TRY(result, api::run_jobs(data, file, [&](std::int64_t done) { progress.update(done, file.arrivals.count); }));
  if (!options.gantt.empty()) {
    if (result.jobs.empty()) {
      return fail(flag_place("--gantt"), "is drawn for at most 10000 arrivals; set arrivals.count");
    }
    const auto written = write_file(options.gantt, report::gantt_svg(result), flag_place("--gantt"));
    if (!written) { return tl::make_unexpected(written.error()); }
  }
  print(options.json ? report::jobs_json(result) : report::jobs_text(result, terminal_style()));
  return 0;
}

}  // namespace
}  // namespace of_jobs_command

Command jobs_command() {
  using namespace of_jobs_command;
  Command command("jobs",
                  "Simulate training jobs that arrive at one cluster: blocking, utilisation, waiting, fairness.");
  const auto options = std::make_shared<Options>();
  command.positional({"FILE", "FILE", "cluster, arrivals, policy and kinds of jobs", ""},
                     [options](const std::string& text) { options->file = text; });
  command.option({"--policy",
                  "NAME",
                  "instead of the file's (fcfs, backfill, max-parallelism, acceptable-jct, deadline, random)",
                  "The run",
                  {"fcfs", "backfill", "max-parallelism", "acceptable-jct", "deadline", "random"}},
                 [options](const std::string& text) { options->policy = text; });
  const std::string output(kOutputGroup);
  command.option({"--gantt", "FILE", "draw the first 500 jobs on the servers as SVG", output},
                 [options](const std::string& text) { options->gantt = text; });
  command.toggle({"--json", "", "print one JSON document (orrery.jobs/1) and nothing else", output},
                 [options](bool on) { options->json = on; });
  command.footer(kFooter);
  command.action([options] { return run(*options); });
  return command;
}

}  // namespace orrery::cli
