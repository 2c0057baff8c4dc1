// `orrery generate`: a plan as Chakra execution graphs.
#include <array>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "apps/cli/commands.hpp"
#include "apps/cli/granularity.hpp"
#include "apps/cli/interrupt.hpp"
#include "apps/cli/request_flags.hpp"
#include "apps/cli/terminal.hpp"
#include "orrery/api/generate.hpp"
#include "orrery/core/text.hpp"
#include "orrery/report/generation.hpp"
#include "orrery/report/table.hpp"

namespace orrery::cli {

namespace of_generate {
namespace {

constexpr const char* kExample =
    "orrery generate --model llama-3.1-8b --cluster dgx-h100 --devices 8 --global-batch 8 --seq 4096 --out run";

constexpr const char* kFooter = R"(Examples
  orrery generate --model llama-3.1-8b --cluster dgx-h100 --devices 8 --tp 2 --pp 2 \
                  --global-batch 8 --seq 4096 --out run
  orrery trace check run.*.et
  orrery simulate --workload run --cluster dgx-h100
  orrery generate --model llama-3.1-405b --cluster dgx-h100 --devices 16384 --tp 8 --pp 16 \
                  --global-batch 2048 --seq 8192 --classes --granularity block --out big

Written: run.0.et, run.1.et, ... and run.groups.json (process groups in ASTRA-sim's format). With --classes: one graph
per pipeline stage (run.class0.et, ...) and run.classes.json. orrery simulate reads both.
Nothing is written under these names until all files are complete. A plan that does not fit in memory is written with a
warning.
Exit codes: 0 done, 2 bad input, 3 internal error.
)";

struct Options {
  RequestFlags job;
  std::string out, granularity = "operator", steps = "1";
  bool classes = false, force = false, json = false;
};

Result<std::int64_t> steps_of(const std::string& text) {
  constexpr std::uint64_t kMost = 1'000'000'000;
  const auto steps = orrery::whole_number(text);
  if (steps && *steps >= 1 && *steps <= kMost) { return static_cast<std::int64_t>(*steps); }
  return fail(flag_place("--steps"),
              fmt::format("{} is not valid; valid: a whole number from 1 to {}", quote(text), kMost));
}

Result<int> run(const Options& options) {
  ORRERY_TRY(typed, options.job.read(kExample));
  if (options.out.empty()) {
    return fail(flag_place("--out"), "is missing; name the prefix of the files to write, such as run");
  }
  if (typed.request.semantics == estimate::Semantics::mad_max) {
    return fail(flag_place("--semantics"), "mad-max has no program of operators to write; valid: physical");
  }
  api::GenerateRequest request{typed.request, options.out, {}, {}};
  ORRERY_TRY(granularity, granularity_of(options.granularity));
  ORRERY_TRY(steps, steps_of(options.steps));
  request.options = {granularity, steps};
  request.files = {options.classes, options.force, InterruptFlag::is_set};
  ORRERY_TRY(data, data_directory());
  const auto written = [&] {
    const InterruptFlag interrupt;
    return api::generate(data, request);
  }();
  if (!written) { return tl::make_unexpected(typed.placed(written.error())); }
  for (const std::string& warning : written->warnings) { print_aside("warning: " + report::printable(warning) + "\n"); }
  print(options.json ? report::generation_json(*written) : report::generation_text(*written));
  return 0;
}

}  // namespace
}  // namespace of_generate

Command generate_command() {
  using namespace of_generate;
  Command command("generate", "Write a plan as Chakra execution graphs, one per rank or one per class of ranks.");
  const auto options = std::make_shared<Options>();
  options->job.declare(command, "Plan (values that are not given are chosen, and printed)");
  const std::string output(kOutputGroup);
  const auto text = [&](Flag flag, std::string Options::* field) {
    command.option(std::move(flag), [options, field](const std::string& value) { (*options).*field = value; });
  };
  text({"--out", "PREFIX",
        "write PREFIX.<rank>.et; a suffix selects another format: PREFIX.et.gz, PREFIX.et.zst, PREFIX.jsonl, "
        "PREFIX.jsonl.gz, PREFIX.jsonl.zst [required]",
        output},
       &Options::out);
  text(granularity_flag(output), &Options::granularity);
  text({"--steps", "N", "training steps, or batches of requests, one after the other (default: 1)", output},
       &Options::steps);
  command.toggle({"--classes", "", "write one graph per pipeline stage and PREFIX.classes.json", output},
                 [options](bool on) { options->classes = on; });
  command.toggle({"--force", "", "replace the files of an earlier job with this prefix", output},
                 [options](bool on) { options->force = on; });
  command.toggle({"--json", "", "print one JSON document (orrery.generate/1) and nothing else", output},
                 [options](bool on) { options->json = on; });
  command.footer(kFooter);
  command.action([options] { return run(*options); });
  return command;
}

}  // namespace orrery::cli
