// `orrery plan`: the best plans for a job.
#include <chrono>
#include <memory>

#include "apps/cli/commands.hpp"
#include "apps/cli/counts.hpp"
#include "apps/cli/emit.hpp"
#include "apps/cli/mad_max.hpp"
#include "apps/cli/plan_choices.hpp"
#include "apps/cli/request_flags.hpp"
#include "apps/cli/terminal.hpp"
#include "orrery/api/orrery.hpp"
#include "orrery/campaign/spec.hpp"
#include "orrery/report/json.hpp"
#include "orrery/report/text.hpp"

namespace orrery::cli {

namespace of_plan {
namespace {

constexpr const char* kExample =
    "orrery plan --model llama-3.1-8b --cluster dgx-h100 --devices 64 --global-batch 512 --seq 8192";

constexpr const char* kFooter = R"(Examples
  orrery plan --model llama-3.1-8b --cluster dgx-h100 --devices 64 --global-batch 512 --seq 8192
  orrery plan --model llama-3.1-405b --cluster dgx-h100 --devices 16384 --global-batch 2048 --seq 8192 \
              --top 10 --explain
  orrery plan --model gpt3-175b --cluster dgx-a100 --devices 1024 --global-batch 1536 --seq 2048 \
              --tp 8 --recompute full --json
  orrery plan --model llama-3.1-70b --cluster dgx-h100 --devices 256 --global-batch 512 --seq 8192 \
              --tp 4,8 --pp 1..8 --schedule 1f1b,zero-bubble
  orrery plan --model deepseek-v3 --cluster dgx-h100 --devices 2048 --global-batch 15360 --seq 4096 \
              --precision fp8 --schedule dualpipe
  orrery plan --model llama-3.1-70b --cluster dgx-h100 --devices 8 --task inference --prompt 2048 \
              --generate 256 --batch 64
  orrery plan --model llama-2-70b --cluster dgx-a100 --device-counts 64:1024:x2 --global-batch 1024 \
              --seq 4096 --objective cost --within 30s
  orrery plan --model llama-3.1-405b --cluster dgx-h100 --devices 16384 --global-batch 2048 --seq 8192 \
              --objective days --tokens 15.6T
  orrery plan --model llama-3.1-8b --cluster dgx-h100 --devices 64 --global-batch 512 --seq 8192 \
              --emit megatron > run.sh

Deployments that serve requests: orrery plan --task serve --help
Exit codes: 0 done, 1 no plan fits, 2 bad input, 3 internal error.
)";

struct Options {
  RequestFlags job;
  RecordFlags search{search_record().fields()};
  EmitFlag emit;
  bool json = false;
};

struct Question {
  TypedRequest typed;
  SearchChoices choices;
  std::vector<std::int64_t> device_counts;
  std::optional<explore::SpaceFile> space;
  double headroom = 0.0;
  campaign::Spec spec;  // for objectives of campaigns
};

// The space file's scenario has a lower priority than flags. If the file derives batches from plans, no batch is
// required.
Result<TypedRequest> typed_over(const Options& options, const std::optional<explore::SpaceFile>& space) {
  RequestFlags::Base base;
  base.values = true;
  base.section = "campaign";
  if (space) {
    base.fields = space->scenario;
    if (space->max_batch) { base.optional = {"global_batch", "batch"}; }
  }
  auto typed = options.job.read(kExample, base);
  const bool has_both = typed && space && space->max_batch && (typed->has("global_batch") || typed->has("batch"));
  if (has_both) {
    return fail(flag_place("--global-batch"), "the space file says max_batch: batches follow from plans");
  }
  return typed;
}

Result<std::vector<std::int64_t>> counts_of(const SearchChoices& choices, const Options& options) {
  if (auto wrong = problems(choices); !wrong.empty()) { return tl::make_unexpected(Failure{std::move(wrong)}); }
  ORRERY_TRY(list, counts("--device-counts", choices.device_counts));
  if (!list.empty() && options.job.is_flag("devices")) {
    return fail(flag_place("--device-counts"), "cannot be combined with --devices");
  }
  return list;
}

// The section "campaign" of the scenario, and --tokens.
Result<campaign::Spec> campaign_of(const TypedRequest& typed, const SearchChoices& choices) {
  ORRERY_TRY(spec, campaign::spec_record().read_over(campaign::Spec{}, typed.section));
  if (!choices.tokens.empty()) { spec.tokens = choices.tokens; }
  if (!choices.tokens.empty() && !results::is_of_campaign(choices.objective)) {
    return fail(flag_place("--tokens"), "has an effect only with --objective days, usd, kwh or co2");
  }
  return spec;
}

Result<Question> question(const Options& options) {
  auto choices = search_choices(options.search);
  std::optional<explore::SpaceFile> space;
  if (choices && choices->space != kDefaultSpace && choices->space != kWideSpace) {
    ORRERY_TRY(file, explore::read_space_file(choices->space));
    space = std::move(file);
  }
  auto typed = typed_over(options, space);
  auto counts = choices ? counts_of(*choices, options) : Result<std::vector<std::int64_t>>{};
  const auto headroom = choices ? headroom_of(choices->headroom) : Result<double>(0.0);
  if (!typed || !choices || !counts || !headroom) {
    Failure failure;
    const auto add = [&](const Failure& more) {
      failure.diagnostics.insert(failure.diagnostics.end(), more.diagnostics.begin(), more.diagnostics.end());
    };
    if (!typed) { add(typed.error()); }
    if (!choices) { add(choices.error()); }
    if (!counts) { add(counts.error()); }
    if (!headroom) { add(headroom.error()); }
    return tl::make_unexpected(std::move(failure));
  }
  ORRERY_TRY(spec, campaign_of(*typed, *choices));
  return Question{std::move(*typed), *choices, std::move(*counts), std::move(space), *headroom, std::move(spec)};
}

api::PlanRequest plan_request(const Question& asked) {
  api::PlanRequest request;
  request.job = asked.typed.request;
  request.space = asked.space;
  request.wide = asked.choices.space == kWideSpace;
  request.values = asked.typed.values;
  request.headroom = asked.headroom;
  request.device_counts = asked.device_counts;
  request.objective = asked.choices.objective;
  request.campaign = asked.spec;
  request.within = asked.choices.within;
  request.variants = asked.choices.variants;
  request.front = asked.choices.pareto;
  request.top = static_cast<std::size_t>(asked.choices.top);
  request.exhaustive = asked.choices.exhaustive;
  request.explain = asked.choices.explain;
  request.what_if = asked.choices.what_if;
  request.threads = asked.choices.threads;
  return request;
}

Result<results::PlanSearch> searched(const Question& asked) {
  auto request = plan_request(asked);
  ORRERY_TRY(data, data_directory());
  Progress progress;
  request.progress = [&progress](std::int64_t done, std::int64_t points) { progress.update(done, points); };
  using Clock = std::chrono::steady_clock;
  std::optional<Clock::time_point> end;  // end of the search itself
  Progress questions("changes looked at");
  request.what_if_progress = [&](std::int64_t done, std::int64_t all) {
    if (!end) { end = Clock::now(); }
    questions.update(done, all);
  };
  const auto start = Clock::now();
  auto search = api::Orrery(data).plan(request);
  const std::chrono::duration<double> wall = end.value_or(Clock::now()) - start;
  if (!search) { return tl::make_unexpected(asked.typed.placed(search.error())); }
  search->wall_s = wall.count();
  return search;
}

Result<int> print_best(const Question& asked, const results::Estimate& best, launch::Tool tool) {
  ORRERY_TRY(data, data_directory());
  return print_launch(api::Orrery(data), asked.typed, api::request_of(asked.typed.request, best), tool);
}

Result<int> print_sample(const Question& asked, bool json) {
  ORRERY_TRY(data, data_directory());
  const auto seed = static_cast<std::uint64_t>(asked.choices.seed.value_or(0));
  const auto sample = api::Orrery(data).sample(plan_request(asked), *asked.choices.sample, seed);
  if (!sample) { return tl::make_unexpected(asked.typed.placed(sample.error())); }
  print(json ? report::sample_json(*sample) : report::sample_text(*sample));
  return 0;
}

Result<int> run(const Options& options) {
  ORRERY_TRY(asked, question(options));
  ORRERY_TRY(tool, options.emit.tool({{"--json", options.json},
                                      {"--explain", asked.choices.explain},
                                      {"--what-if", asked.choices.what_if},
                                      {"--sample", asked.choices.sample.has_value()}}));
  if (is_mad_max(asked.typed) && !tool) { return print_mad_max_plan(asked.typed, asked.choices, options.json); }
  if (asked.choices.sample) { return print_sample(asked, options.json); }
  ORRERY_TRY(search, searched(asked));
  const bool nothing_fits = search.best.empty();
  if (tool && !nothing_fits) { return print_best(asked, search.best.front(), *tool); }
  if (options.json) {  // print the counts even if no plan was found
    print(report::plan_json(search));
  } else if (!nothing_fits) {
    print(report::plan_text(search, terminal_style()));
  }
  if (nothing_fits) { return tl::make_unexpected(Failure{{{{}, search.nothing_fits}}, true}); }
  return 0;
}

}  // namespace
}  // namespace of_plan

Command plan_command() {
  using namespace of_plan;
  Command command("plan",
                  "Search for the parallel plans with the shortest step, or batch of requests, that fit in memory.");
  const auto options = std::make_shared<Options>();
  options->job.declare(command,
                       "Fixed instead of searched, when given; several values (4,8 or 1..16) restrict the search");
  options->search.declare(command, [](const std::string&) { return std::string("The search"); });
  command.toggle(
      {"--json", "", "one JSON document (orrery.plan/1), nothing else, on standard output", std::string(kOutputGroup)},
      [options](bool on) { options->json = on; });
  options->emit.declare(command, "the best plan");
  command.footer(kFooter);
  command.action([options] { return run(*options); });
  return command;
}

}  // namespace orrery::cli
