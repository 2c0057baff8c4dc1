// `orrery serve`: requests on a deployment of an inference engine.
#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <memory>

#include "apps/cli/commands.hpp"
#include "apps/cli/record_flags.hpp"
#include "apps/cli/terminal.hpp"
#include "orrery/api/serve.hpp"
#include "orrery/config/node.hpp"
#include "orrery/report/serving.hpp"

namespace orrery::cli {

namespace of_serve {
namespace {

constexpr const char* kFooter = R"(Examples
  orrery serve --model llama-3.1-8b --cluster dgx-h100 --rate 8 --isl 1024 --osl 128
  orrery serve --model llama-3.1-70b --cluster dgx-h100 --tp 4 --precision fp8 --concurrency 64 --isl 2048 --osl 256
  orrery serve --model llama-3.1-8b --cluster dgx-h100 --rate 8 --goodput --slo "ttft_p99=1s tpot_p99=30ms"
  orrery serve --model llama-3.1-8b --cluster dgx-h100 --trace requests.csv --replicas 4 --requests-out out.csv
  orrery serve examples/serving/chat.yaml --sweep

A scenario is YAML with the same fields (rate: 8, max_sequences: 256); flags override it.
Exit codes: 0 done, 1 no load meets the service level, 2 bad input, 3 internal error.
)";

// Settings of the engine that are not flags: they describe the profile.
constexpr std::array<std::string_view, 4> kProfileFields = {"name", "description", "stack", "sources"};
constexpr std::array<std::string_view, 12> kLoadFields = {
    "rate", "concurrency", "trace",        "trace_speed", "trace_block_tokens", "cv",
    "isl",  "osl",         "length_range", "length_cv",   "prefix_groups",      "prefix_tokens"};
constexpr std::array<std::string_view, 5> kRunFields = {"requests", "think", "warm_up", "seed", "slo"};

template <std::size_t N>
bool is_one_of(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

const std::vector<config::FieldInfo>& engine_fields() {
  return config::Described<serving::EngineSettings>::record().fields();
}

struct Options {
  RecordFlags scenario{config::Described<serving::Scenario>::record().fields()};
  RecordFlags engine{engine_fields()};
  std::string file, requests, timeline;
  bool sweep = false, goodput = false, json = false;
};

// Moves the fields of the engine out of a scenario.
config::Node take_engine_fields(config::Node& fields) {
  config::Node engine = config::mapping_node();
  for (const auto& field : engine_fields()) {
    const config::Node* value = fields.find(field.name);
    if (is_one_of(kProfileFields, field.name) || value == nullptr) { continue; }
    config::add(engine, field.name, *value);
    std::erase_if(fields.members, [&](const config::Member& member) { return member.key == field.name; });
  }
  return engine;
}

// Paths in a scenario are relative to its folder.
void resolve_paths(config::Node& fields, const std::string& file) {
  const auto folder = std::filesystem::path(file).parent_path();
  for (const char* name : {"model", "cluster", "prefill_cluster", "engine", "stack", "trace"}) {
    config::Node* value = fields.find(name);
    if (value == nullptr || value->kind != config::Kind::text) { continue; }
    const std::filesystem::path path(value->scalar);
    const std::string end = path.extension().string();
    const bool is_path = end == ".yaml" || end == ".yml" || end == ".json" || end == ".csv";
    if (is_path && path.is_relative()) { value->scalar = (folder / path).string(); }
  }
}

Result<api::ServeRequest> request_of(const Options& options) {
  config::Node fields = config::mapping_node();
  if (!options.file.empty()) {
    ORRERY_TRY(root, config::read_file(options.file));
    if (root.kind != config::Kind::mapping) {
      return fail(root.place, "a scenario is a mapping of fields, such as \"rate: 8\"");
    }
    fields = std::move(root);
    resolve_paths(fields, options.file);
  }
  api::ServeRequest request;
  request.engine = take_engine_fields(fields);
  options.scenario.lay_over(fields);
  options.engine.lay_over(request.engine);
  for (const char* name : {"model", "cluster"}) {
    if (fields.find(name) == nullptr) {
      return fail(flag_place(flag_name(name)),
                  "is missing; for example: orrery serve --model llama-3.1-8b --cluster dgx-h100 --rate 8");
    }
  }
  ORRERY_TRY(scenario, config::Described<serving::Scenario>::record().read(fields));
  request.scenario = std::move(scenario);
  request.each = !options.requests.empty() || !options.timeline.empty();
  return request;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Result<void> write_files(const Options& options, const results::Serving& serving) {
  if (!options.requests.empty()) {
    auto done = write_file(options.requests, report::serving_requests_csv(serving), flag_place("--requests-out"));
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
  print(options.json ? report::serving_curve_json(*curve) : report::serving_curve_text(*curve, terminal_style()));
  return 0;
}

Result<int> run(const Options& options) {
  if (options.sweep && options.goodput) { return fail(flag_place("--goodput"), "is not valid with --sweep"); }
  ORRERY_TRY(request, request_of(options));
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

void declare_output(Command& command, const std::shared_ptr<Options>& options) {
  const std::string output(kOutputGroup);
  command.toggle(
      {"--sweep", "", "the operating curve: nine loads, each twice the one before, around the given one", output},
      [options](bool on) { options->sweep = on; });
  command.toggle({"--goodput", "", "the highest load that meets --slo, by bisection from the given one", output},
                 [options](bool on) { options->goodput = on; });
  command.option({"--requests-out", "FILE", "write one CSV row for each request", output},
                 [options](const std::string& text) { options->requests = text; });
  command.option({"--timeline", "FILE", "write queue, prefill and decode of each request as a Chrome trace", output},
                 [options](const std::string& text) { options->timeline = text; });
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
  command.positional({"SCENARIO", "", "YAML with the fields below", ""},
                     [options](const std::string& text) { options->file = text; });
  options->scenario.declare(command, [](const std::string& field) -> std::string {
    if (is_one_of(kLoadFields, field)) { return "The load"; }
    return is_one_of(kRunFields, field) ? "The run" : "The deployment";
  });
  options->engine.declare(command, [](const std::string& field) -> std::string {
    return is_one_of(kProfileFields, field) ? "" : "The engine (default: its profile's)";
  });
  declare_output(command, options);
  command.footer(kFooter);
  command.action([options] { return run(*options); });
  return command;
}

}  // namespace orrery::cli
