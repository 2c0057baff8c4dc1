// `orrery estimate`: one plan.
#include <memory>

#include "apps/cli/commands.hpp"
#include "apps/cli/emit.hpp"
#include "apps/cli/mad_max.hpp"
#include "apps/cli/request_flags.hpp"
#include "apps/cli/terminal.hpp"
#include "orrery/api/orrery.hpp"
#include "orrery/report/json.hpp"
#include "orrery/report/text.hpp"

namespace orrery::cli {

namespace {

constexpr const char* kExample =
    "orrery estimate --model llama-3.1-8b --cluster dgx-h100 --devices 64 --global-batch 512 --seq 8192";

constexpr const char* kFooter = R"(Examples
  orrery estimate --model llama-3.1-8b --cluster dgx-h100 --devices 64 --global-batch 512 --seq 8192
  orrery estimate --model gpt3-175b --cluster dgx-a100 --devices 1024 --global-batch 1536 --seq 2048 \
                  --tp 8 --pp 8 --micro-batch 1 --recompute selective --sequence-parallel --terms
  orrery estimate --model deepseek-v3-mtp --cluster hgx-h800 --devices 2048 --global-batch 15360 --seq 4096 \
                  --precision fp8 --pp 16 --ep 64 --schedule dualpipe --micro-batch 1 --stack hai-llm
  orrery estimate --model llama-3.1-70b --cluster dgx-h100 --devices 8 --tp 8 \
                  --task inference --prompt 2048 --generate 256 --batch 64
  orrery estimate --model llama-2-70b --cluster dgx-h100 --devices 8 --tp 4 --task finetune --lora 16 \
                  --global-batch 8 --seq 8192
  orrery estimate --scenario job.yaml --set tp=4 --json
  orrery estimate --scenario job.yaml --emit megatron > run.sh

A plan that does not fit in memory is estimated all the same, and the answer says so (exit code 0).
Exit codes: 0 done, 2 bad input, 3 internal error.
)";

struct Options {
  RequestFlags job;
  EmitFlag emit;
  bool terms = false;
  bool json = false;
  std::string timeline;
};

Result<int> run(const Options& options) {
  ORRERY_TRY(tool, options.emit.tool({{"--json", options.json}, {"--terms", options.terms}}));
  ORRERY_TRY(typed, options.job.read(kExample));
  if (is_mad_max(typed) && !tool) { return print_mad_max_estimate(typed, options.json, options.timeline); }
  if (!options.timeline.empty()) { return fail(flag_place("--timeline"), "is of --semantics mad-max"); }
  ORRERY_TRY(data, data_directory());
  const api::Orrery orrery(data);
  if (tool) { return print_launch(orrery, typed, typed.request, *tool); }
  const auto answer = orrery.estimate(typed.request, {options.terms || options.json, options.terms});
  if (!answer) { return tl::make_unexpected(typed.placed(answer.error())); }
  print(options.json ? report::estimate_json(answer->estimate, answer->chosen)
                     : report::estimate_text(answer->estimate, answer->chosen, terminal_style()));
  return 0;
}

}  // namespace

Command estimate_command() {
  Command command(
      "estimate",
      "Time, memory and communication of a training step, or of a batch of requests, under one parallel plan.");
  const auto options = std::make_shared<Options>();
  options->job.declare(command, "The plan (what is left open is settled and shown)");
  const std::string output(kOutputGroup);
  command.toggle(
      {"--terms", "",
       "also every operator of the critical rank, and the rank classes; JSON has the operators in any case (time_s "
       "is per execution, count executions a step) and the classes with this flag",
       output},
      [options](bool on) { options->terms = on; });
  command.toggle({"--json", "", "one JSON document (orrery.estimate/1), nothing else, on standard output", output},
                 [options](bool on) { options->json = on; });
  command.option(
      {"--timeline", "FILE", "mad-max: also both streams of a device, as a trace that Perfetto shows", output},
      [options](const std::string& text) { options->timeline = text; });
  options->emit.declare(command, "the plan");
  command.footer(kFooter);
  command.action([options] { return run(*options); });
  return command;
}

}  // namespace orrery::cli
