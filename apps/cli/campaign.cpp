// `orrery campaign`: a plan, trained to the end on machines that fail.
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "apps/cli/commands.hpp"
#include "apps/cli/request_flags.hpp"
#include "apps/cli/terminal.hpp"
#include "apps/cli/trace.hpp"
#include "orrery/api/campaign.hpp"
#include "orrery/campaign/spec.hpp"
#include "orrery/core/text.hpp"
#include "orrery/report/campaign.hpp"

namespace orrery::cli {

namespace of_campaign {
namespace {

constexpr const char* kExample =
    "orrery campaign --model llama-3.1-8b --cluster dgx-h100 --devices 1024 --global-batch 1024 --seq 8192 --tokens "
    "15T";

constexpr const char* kFooter = R"(Examples
  orrery campaign --model llama-3.1-8b --cluster dgx-h100 --devices 1024 --global-batch 1024 --seq 8192 --tokens 15T
  orrery campaign --model llama-3.1-405b --cluster dgx-h100 --devices 16384 --global-batch 2048 --seq 8192 \
                  --tp 8 --pp 16 --tokens 15.6T --restart 10min --start 2026-12-01 --explain
  orrery campaign --model llama-3.1-70b --cluster dgx-h100 --devices 2048 --global-batch 2048 --seq 8192 \
                  --tokens 2T --usd-per-device-hour 2.5 --price-date 2026-11 --grid FR --simulate 1000
  orrery campaign --model llama-3.1-8b --cluster dgx-h100 --devices 256 --global-batch 512 --seq 8192 \
                  --budget-usd 250000 --usd-per-device-hour 2 --price-date 2026-11 --json
  orrery campaign --model llama-3.1-8b --cluster dgx-h100 --devices 64 --global-batch 256 --seq 4096 --tokens 100B \
                  --sites 4 --site-bandwidth 10Gb/s --local-steps 128 --outer-bits 16
  orrery campaign --log incidents.csv --log-devices 16384 --log-days 54

In a scenario file these fields are in a section "campaign:"; lists (domains, capacity) are possible there only.
Exit codes: 0 done, 2 bad input, 3 internal error.
)";

struct Options {
  RequestFlags job;
  RecordFlags spec{campaign::spec_record().fields()};
  std::string simulate, seed, threads;
  std::string log, log_devices, log_days, picture;
  bool json = false, explain = false, what_if = true;
};

struct Asked {
  TypedRequest typed;
  api::CampaignRequest request;
};

Result<Asked> asked_by(const Options& options) {
  RequestFlags::Base base;
  base.section = "campaign";
  auto typed = options.job.read(kExample, base);
  config::Node fields = typed ? typed->section : config::mapping_node();
  options.spec.lay_over(fields);
  auto spec = campaign::spec_record().read_over(campaign::Spec{}, fields);
  Failure failure;
  const auto add = [&](const Failure& more) {
    failure.diagnostics.insert(failure.diagnostics.end(), more.diagnostics.begin(), more.diagnostics.end());
  };
  if (!typed) { add(typed.error()); }
  if (!spec) { add(spec.error()); }
  if (spec) { add(Failure{campaign::problems(*spec)}); }
  if (!failure.diagnostics.empty()) { return tl::make_unexpected(std::move(failure)); }
  Asked asked{std::move(*typed), {}};
  asked.request.job = asked.typed.request;
  asked.request.spec = std::move(*spec);
  asked.request.what_if = options.what_if;
  constexpr std::uint64_t kMostCampaigns = 100'000'000;
  if (!options.simulate.empty()) {
    ORRERY_TRY(count, whole_number("--simulate", options.simulate, 1));
    if (count > kMostCampaigns) { return fail(flag_place("--simulate"), "must be at most 100000000"); }
    asked.request.simulate = static_cast<std::int64_t>(count);
  }
  if (!options.seed.empty()) {
    ORRERY_TRY(seed, whole_number("--seed", options.seed, 0));
    asked.request.seed = seed;
  }
  if (!options.threads.empty()) {
    ORRERY_TRY(threads, whole_number("--threads", options.threads, 0));
    asked.request.threads = static_cast<int>(std::min<std::uint64_t>(threads, 1024));
  }
  return asked;
}

// The rates of --log.
Result<results::IncidentFit> fitted(const Options& options) {
  const auto positive = [](const std::string& flag, const std::string& text) -> Result<double> {
    const auto value = campaign::count_of(text);
    if (value) { return *value; }
    return fail(flag_place(flag), fmt::format("{} is not a number above 0", quote(text)));
  };
  if (options.log_devices.empty()) {
    return fail(flag_place("--log"), "needs the number of accelerators of the list: --log-devices 16384");
  }
  ORRERY_TRY(devices, positive("--log-devices", options.log_devices));
  ORRERY_TRY(days, options.log_days.empty() ? Result<double>(0.0) : positive("--log-days", options.log_days));
  return api::fit_incident_log(options.log, devices, days);
}

Result<int> run(const Options& options) {
  std::optional<results::IncidentFit> fit;
  if (!options.log.empty()) {
    ORRERY_TRY(rates, fitted(options));
    if (!options.job.any()) {
      print(options.json ? report::incidents_json(rates) : report::incidents_text(rates, terminal_style()));
      return 0;
    }
    fit = rates;
  }
  ORRERY_TRY(asked, asked_by(options));
  ORRERY_TRY(data, data_directory());
  const auto& given = asked.request.spec;
  if (fit && (given.failures_per_1000_node_days || given.failures_low || given.failures_high)) {
    return fail(flag_place("--log"),
                "gives the failure rate and its interval; leave out "
                "--failures-per-1000-node-days, --failures-low and --failures-high");
  }
  if (fit) {  // the fitted rate and its 80 % interval
    asked.request.spec.failures_per_1000_node_days = fit->all.rate;
    asked.request.spec.failures_low = fit->all.low80;
    asked.request.spec.failures_high = fit->all.high80;
  }
  Progress progress("campaigns");
  asked.request.progress = [&](std::int64_t done) { progress.update(done, asked.request.simulate); };
  const auto answer = api::run_campaign(data, asked.request);
  if (!answer) { return tl::make_unexpected(asked.typed.placed(answer.error())); }
  if (!options.picture.empty()) {
    const auto written = write_file(options.picture, report::campaign_svg(*answer), flag_place("--picture"));
    if (!written) { return tl::make_unexpected(written.error()); }
  }
  print(options.json ? report::campaign_json(*answer)
                     : report::campaign_text(*answer, options.explain, terminal_style()));
  return 0;
}

void declare(Command& command, const std::shared_ptr<Options>& options) {
  options->spec.declare(command, [](const std::string& field) {
    const bool is_list = field == "domains" || field == "capacity";
    return is_list ? std::string() : std::string(campaign::group_of(field));
  });
  options->job.declare(command, "Plan (values that are not given are chosen, and printed)");
  const std::string output(kOutputGroup);
  const std::string log = "Rates from a list of incidents";
  command.option(
      {"--log", "FILE",
       "CSV with time_h, cause, downtime_min: fits failure rates; with a job, its campaign has the fitted rate", log},
      [options](const std::string& text) { options->log = text; });
  command.option({"--log-devices", "N", "accelerators that the list is about", log},
                 [options](const std::string& text) { options->log_devices = text; });
  command.option({"--log-days", "N", "length of the list [default: until its last incident]", log},
                 [options](const std::string& text) { options->log_days = text; });
  command.option(
      {"--simulate", "N", "also N campaigns by events; their mean should agree with the closed form", output},
      [options](const std::string& text) { options->simulate = text; });
  command.option({"--seed", "N", "of --simulate [default 0]", output},
                 [options](const std::string& text) { options->seed = text; });
  command.option({"--threads", "N", "of --simulate; the result is the same for any number [default: all]", output},
                 [options](const std::string& text) { options->threads = text; });
  command.option({"--picture", "FILE", "draw the bar of the time, and useful time against size, as SVG", output},
                 [options](const std::string& text) { options->picture = text; });
  command.toggle({"--explain", "", "the formula of each part of the time, with its numbers", output},
                 [options](bool on) { options->explain = on; });
  command.toggle({"--what-if", "", "changes that would shorten the campaign", output, {}, {}, "--no-what-if"},
                 [options](bool on) { options->what_if = on; });
  command.toggle({"--json", "", "print one JSON document (orrery.campaign/1) and nothing else", output},
                 [options](bool on) { options->json = on; });
}

}  // namespace
}  // namespace of_campaign

Command campaign_command() {
  using namespace of_campaign;
  Command command(
      "campaign",
      "Predict days, interruptions, money, energy and carbon of a whole training run on machines that fail.");
  const auto options = std::make_shared<Options>();
  declare(command, options);
  command.footer(kFooter);
  command.action([options] { return run(*options); });
  return command;
}

}  // namespace orrery::cli
