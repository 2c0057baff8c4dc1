// `orrery serve`: requests on a deployment of an inference engine.
#include <chrono>
#include <memory>

#include <fmt/format.h>

#include "apps/cli/commands.hpp"
#include "apps/cli/serve_flags.hpp"
#include "apps/cli/terminal.hpp"
#include "orrery/api/serve.hpp"
#include "orrery/report/serving.hpp"

namespace orrery::cli {

namespace of_serve {
namespace {

constexpr const char* kFooter = R"(Examples
  orrery serve --model llama-3.1-8b --cluster dgx-h100 --rate 8 --isl 1024 --osl 128
  orrery serve --model llama-3.1-70b --cluster dgx-h100 --tp 4 --precision fp8 --concurrency 64 --isl 2048 --osl 256
  orrery serve --model llama-3.1-8b --cluster dgx-h100 --rate 8 --goodput --slo "ttft_p99=1s tpot_p99=30ms"
  orrery serve --model llama-3.1-8b --cluster dgx-h100 --trace requests.csv --replicas 4 --requests-out out.csv
  orrery serve examples/serving/chat.yaml --sweep --picture curve.svg

A scenario is YAML with the same fields (rate: 8, max_sequences: 256); flags override it.
Exit codes: 0 done, 1 no load meets the service level or is sustained, 2 bad input, 3 internal error.
)";

struct Options {
  ServeFlags serve;
  std::string requests, timeline, picture;
  bool sweep = false, goodput = false, json = false;
};

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Result<void> write_files(const Options& options, const results::Serving& serving) {
  if (!options.requests.empty()) {
    auto done = write_file(options.requests, report::serving_requests_csv(serving), flag_place("--requests-out"));
    if (!done) { return done; }
  }
  if (!options.picture.empty()) {
    auto done = write_file(options.picture, report::serving_run_svg(serving), flag_place("--picture"));
    if (!done) { return done; }
  }
  if (options.timeline.empty()) { return {}; }
  return write_file(options.timeline, report::serving_timeline(serving), flag_place("--timeline"));
}

Result<int> run_curve(const Options& options, const std::string& data, const api::ServeRequest& request) {
  if (request.each) {
    return fail(flag_place(options.requests.empty() ? "--timeline" : "--requests-out"),
                "is of one run; not valid with --sweep or --goodput");
  }
  const double start = seconds_now();
  auto curve = options.goodput ? api::serve_goodput(data, request) : api::serve_sweep(data, request);
  if (!curve) { return tl::make_unexpected(curve.error()); }
  curve->wall_s = seconds_now() - start;
  if (!options.picture.empty()) {
    auto done = write_file(options.picture, report::serving_curve_svg(*curve), flag_place("--picture"));
    if (!done) { return tl::make_unexpected(done.error()); }
  }
  print(options.json ? report::serving_curve_json(*curve) : report::serving_curve_text(*curve, terminal_style()));
  const bool is_missed = !request.scenario.slo.empty() && !curve->best;
  return is_missed ? 1 : 0;
}

Result<int> run(const Options& options) {
  if (options.sweep && options.goodput) { return fail(flag_place("--goodput"), "is not valid with --sweep"); }
  ORRERY_TRY(request, options.serve.read("orrery serve --model llama-3.1-8b --cluster dgx-h100 --rate 8"));
  request.each = !options.requests.empty() || !options.timeline.empty();
  ORRERY_TRY(data, data_directory());
  if (options.sweep || options.goodput) { return run_curve(options, data, request); }
  const double start = seconds_now();
  auto serving = api::serve(data, request);
  if (!serving) { return tl::make_unexpected(serving.error()); }
  serving->wall_s = seconds_now() - start;
  if (auto done = write_files(options, *serving); !done) { return tl::make_unexpected(done.error()); }
  print(options.json ? report::serving_json(*serving) : report::serving_text(*serving, terminal_style()));
  return 0;
}

// A number of requests; or, as --requests-out, a file for a row of each.
void declare_requests(Command& command, const std::shared_ptr<Options>& options) {
  command.option({"--requests", "N|FILE.csv",
                  "requests of the run; default: 1,000, ten for each client, or the trace. FILE.csv: as --requests-out",
                  "The run"},
                 [options](const std::string& text) {
                   if (text.ends_with(".csv")) {
                     options->requests = text;
                   } else {
                     options->serve.give("requests", text);
                   }
                 });
}

void declare_output(Command& command, const std::shared_ptr<Options>& options) {
  const std::string output(kOutputGroup);
  command.toggle(
      {"--sweep", "", "the operating curve: nine loads, each twice the one before, around the given one", output},
      [options](bool on) { options->sweep = on; });
  command.toggle({"--goodput", "",
                  "the highest load that meets --slo (without it: the highest that is sustained, requests being "
                  "completed as fast as they arrive), by bisection "
                  "from the given one",
                  output},
                 [options](bool on) { options->goodput = on; });
  command.option({"--requests-out", "FILE", "write one CSV row for each request", output},
                 [options](const std::string& text) { options->requests = text; });
  command.option(
      {"--timeline", "FILE", "write stages, queue, prefill and decode of each request as a Chrome trace", output},
      [options](const std::string& text) { options->timeline = text; });
  command.option({"--picture", "FILE",
                  "draw the run over time as SVG: TTFT, requests, arrivals, output, engines; with --sweep or "
                  "--goodput: TTFT, TPOT and goodput against the load",
                  output},
                 [options](const std::string& text) { options->picture = text; });
  command.toggle({"--json", "", "print one JSON document (orrery.serve/1) and nothing else", output},
                 [options](bool on) { options->json = on; });
}

}  // namespace
}  // namespace of_serve

Command serve_command() {
  using namespace of_serve;
  Command command(
      "serve", "Simulate requests on an inference engine: TTFT, TPOT, goodput and price of a deployment under a load.");
  const auto options = std::make_shared<Options>();
  command.positional({"SCENARIO", "[SCENARIO]", "a scenario, a YAML file with the fields below", ""},
                     [options](const std::string& text) { options->serve.file(text); });
  options->serve.declare(command, [](std::string_view field) { return field != "requests"; });
  declare_requests(command, options);
  declare_output(command, options);
  command.footer(fmt::format(
      "Stages (list \"stages\" of a scenario, not flags): what a request passes outside the engines\n{}\n{}",
      file_fields_help(config::Described<serving::Stage>::record().fields()), kFooter));
  command.action([options] { return run(*options); });
  return command;
}

}  // namespace orrery::cli
