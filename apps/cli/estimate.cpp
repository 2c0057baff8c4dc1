// `orrery estimate`: one plan.
#include <memory>

#include "apps/cli/commands.hpp"
#include "apps/cli/emit.hpp"
#include "apps/cli/mad_max.hpp"
#include "apps/cli/request_flags.hpp"
#include "apps/cli/terminal.hpp"
#include "orrery/api/explanation.hpp"
#include "orrery/api/orrery.hpp"
#include "orrery/report/json.hpp"
#include "orrery/report/text.hpp"

namespace orrery::cli {

namespace of_estimate {
namespace {

constexpr const char* kExample =
    "orrery estimate --model llama-3.1-8b --cluster dgx-h100 --devices 64 --global-batch 512 --seq 8192";

constexpr const char* kFooter = R"(Examples
  orrery estimate --model llama-3.1-8b --cluster dgx-h100 --devices 64 --global-batch 512 --seq 8192
  orrery estimate --model gpt3-175b --cluster dgx-a100 --devices 1024 --global-batch 1536 --seq 2048 \
                  --tp 8 --pp 8 --micro-batch 1 --recompute selective --sequence-parallel --terms
  orrery estimate --model llama-3.1-70b --cluster dgx-h100 --devices 8 --tp 8 \
                  --task inference --prompt 2048 --generate 256 --batch 64
  orrery estimate --scenario job.yaml --set tp=4 --json
  orrery estimate --model llama-3.1-8b --cluster dgx-h100 --devices 64 --global-batch 512 --seq 8192 \
                  --tp 1 --against "tp=8 micro-batch=2"

A plan that does not fit in memory is estimated as well; the answer says that it does not fit (exit code 0).
Exit codes: 0 done, 2 bad input, 3 internal error.
)";

struct Options {
  RequestFlags job;
  EmitFlag emit;
  bool terms = false;
  bool json = false;
  std::string timeline, against;
};

// The other plan of --against, and how it differs from `one`.
Result<std::optional<results::Comparison>> compared(const Options& options, const api::Orrery& orrery,
                                                    const results::Estimate& one) {
  if (options.against.empty()) { return std::optional<results::Comparison>(); }
  ORRERY_TRY(typed, options.job.read_against(kExample, options.against));
  auto other = orrery.estimate(typed.request);
  if (!other) { return tl::make_unexpected(typed.placed(other.error())); }
  auto difference = api::difference(other->estimate, one);
  return std::optional(
      results::Comparison{std::move(other->estimate), std::move(other->chosen), std::move(difference)});
}

Result<int> run(const Options& options) {
  ORRERY_TRY(tool,
             options.emit.tool(
                 {{"--json", options.json}, {"--terms", options.terms}, {"--against", !options.against.empty()}}));
  ORRERY_TRY(typed, options.job.read(kExample));
  if (is_mad_max(typed) && !options.against.empty()) {
    return fail(flag_place("--against"), "is not valid with --semantics mad-max");
  }
  if (is_mad_max(typed) && !tool) { return print_mad_max_estimate(typed, options.json, options.timeline); }
  if (!options.timeline.empty()) { return fail(flag_place("--timeline"), "is valid with --semantics mad-max only"); }
  ORRERY_TRY(data, data_directory());
  const api::Orrery orrery(data);
  if (tool) { return print_launch(orrery, typed, typed.request, *tool); }
  const auto answer = orrery.estimate(typed.request, {options.terms || options.json, options.terms});
  if (!answer) { return tl::make_unexpected(typed.placed(answer.error())); }
  ORRERY_TRY(against, compared(options, orrery, answer->estimate));
  print(options.json ? report::estimate_json(answer->estimate, answer->chosen, against)
                     : report::estimate_text(answer->estimate, answer->chosen, terminal_style()) +
                           (against ? report::comparison_text(*against) : std::string()));
  return 0;
}

}  // namespace
}  // namespace of_estimate

Command estimate_command() {
  using namespace of_estimate;
  Command command(
      "estimate",
      "Predict time, memory and communication of a training step, or of a batch of requests, for one parallel plan.");
  const auto options = std::make_shared<Options>();
  options->job.declare(command, "Plan (values that are not given are chosen, and printed)");
  const std::string output(kOutputGroup);
  command.toggle(
      {"--terms", "",
       "also print every operator of the critical rank, and the groups of pipeline stages with identical work. JSON "
       "always has the operators (time_s per execution, count executions per step); this flag adds the groups",
       output},
      [options](bool on) { options->terms = on; });
  command.toggle({"--json", "", "print one JSON document (orrery.estimate/1) and nothing else", output},
                 [options](bool on) { options->json = on; });
  command.option(
      {"--timeline", "FILE",
       "--semantics mad-max: write the compute and the communication stream of one device as a Chrome trace", output},
      [options](const std::string& text) { options->timeline = text; });
  command.option(
      {"--against", "FIELD=VALUE",
       "also how another plan of the same job differs and why: its fields that are not as given, separated by spaces, "
       "such as \"tp=4 zero=1 pp=auto\" (auto: chosen)",
       output},
      [options](const std::string& text) { options->against = text; });
  options->emit.declare(command, "the plan");
  command.footer(kFooter);
  command.action([options] { return run(*options); });
  return command;
}

}  // namespace orrery::cli
