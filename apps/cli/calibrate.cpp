// `orrery calibrate`: figures of a cluster and of a software stack from measurements of it.
#include <charconv>
#include <filesystem>
#include <memory>

#include <fmt/format.h>

#include "apps/cli/commands.hpp"
#include "apps/cli/terminal.hpp"
#include "orrery/api/calibrate.hpp"
#include "orrery/core/text.hpp"
#include "orrery/network/names.hpp"
#include "orrery/report/calibration.hpp"

namespace orrery::cli {

namespace of_calibrate {
namespace {

constexpr const char* kFooter = R"(Examples
  orrery calibrate --data runs.csv --out-stack my-stack.yaml --out-cluster my-cluster.yaml
  orrery calibrate --cluster dgx-h100 --collectives nccl.txt --out-cluster my-cluster.yaml
  orrery calibrate --data runs.csv --collectives nccl.txt --kernels gemm.csv \
      --out-stack my-stack.yaml --out-cluster my-cluster.yaml

Runs are a table with the columns args and measured_s (and, if you like, id): args are the words after "orrery", such as
estimate --model llama-3.1-8b --cluster dgx-h100 --devices 8 --global-batch 64 --seq 8192 --stack nemo.
Collectives are the output of nccl-tests as it is printed, or a CSV table with the columns of collectives.csv. Kernels are
a table with the columns op, gpu_type, dtype, m, n, k and time_us, or with commands such as gemm H100 bf16 4096 4096 4096.
The new files are used with --cluster my-cluster.yaml and --stack my-stack.yaml (docs/guide/calibrate.md).
Exit codes: 0 done, 2 bad input, 3 internal error.
)";

struct Options {
  api::CalibrateRequest request;
  std::string op, devices, out_stack, out_cluster;
  bool json = false;
};

Result<std::int64_t> count_of(const std::string& flag, const std::string& text) {
  std::int64_t count = 0;
  if (text.empty()) { return count; }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error == std::errc{} && end == text.data() + text.size() && count >= 2) { return count; }
  return fail(flag_place(flag), fmt::format("{} is not a whole number of at least 2", quote(text)));
}

Result<std::optional<Collective>> operation_of(const std::string& text) {
  if (text.empty()) { return std::nullopt; }
  std::vector<std::string> known;
  for (const auto& [value, name] : config::EnumNames<Collective>::value) {
    if (text == name) { return value; }
    known.emplace_back(name);
  }
  return fail(flag_place("--op"), fmt::format("unknown operation {}; valid: {}", quote(text), join(known, ", ")));
}

std::string entry_name(const std::string& file) { return std::filesystem::path(file).stem().string(); }

Result<std::monostate> write(const std::string& file, const std::string& text, const char* flag) {
  if (file.empty()) { return std::monostate{}; }
  if (text.empty()) {
    return fail(flag_place(flag), "no run names a stack: give --data with commands that were measured");
  }
  const auto written = write_file(file, text, flag_place(flag));
  if (!written) { return tl::make_unexpected(written.error()); }
  return std::monostate{};
}

Result<int> run(const Options& options) {
  api::CalibrateRequest request = options.request;
  ORRERY_TRY(devices, count_of("--devices", options.devices));
  ORRERY_TRY(op, operation_of(options.op));
  request.devices = devices;
  request.op = op;
  request.cluster_name = entry_name(options.out_cluster);
  request.stack_name = entry_name(options.out_stack);
  ORRERY_TRY(data, data_directory());
  const auto progress = std::make_shared<Progress>("predictions");
  request.progress = [progress](std::int64_t done, std::int64_t most) { progress->update(done, most); };
  ORRERY_TRY(calibration, api::calibrate(data, request));
  ORRERY_TRY(cluster_written, write(options.out_cluster, calibration.cluster_yaml, "--out-cluster"));
  ORRERY_TRY(stack_written, write(options.out_stack, calibration.stack_yaml, "--out-stack"));
  (void)cluster_written;
  (void)stack_written;
  print(options.json ? report::calibration_json(calibration) : report::calibration_text(calibration, terminal_style()));
  return 0;
}

void add_inputs(Command& command, const std::shared_ptr<Options>& options) {
  const std::string group = "Measurements";
  const auto list = [&](const char* flag, const char* doc, std::vector<std::string> api::CalibrateRequest::* member) {
    command.repeated({flag, "FILE...", doc, group},
                     [options, member](const std::string& file) { (options->request.*member).push_back(file); });
  };
  list("--data", "CSV tables of runs: columns args, measured_s and optionally id", &api::CalibrateRequest::runs);
  list("--collectives", "outputs of nccl-tests, or CSV tables of collectives", &api::CalibrateRequest::collectives);
  list("--kernels", "CSV tables of GEMMs", &api::CalibrateRequest::kernels);
  command.option({"--op", "NAME", "operation of outputs of nccl-tests that do not name it", group},
                 [options](const std::string& op) { options->op = op; });
  command.option({"--devices", "N", "ranks of outputs of nccl-tests that do not list them", group},
                 [options](const std::string& count) { options->devices = count; });
}

}  // namespace
}  // namespace of_calibrate

Command calibrate_command() {
  using namespace of_calibrate;
  Command command("calibrate", "Fit a cluster and a software stack to your own measurements.");
  const auto options = std::make_shared<Options>();
  add_inputs(command, options);
  const std::string of = "What is fitted", output(kOutputGroup);
  command.option(
      {"--cluster", "NAME|FILE", "cluster to start from [default: the one that all runs name]", of, {}, "clusters"},
      [options](const std::string& name) { options->request.cluster = name; });
  command.option(
      {"--stack", "NAME|FILE", "software stack to start from [default: the one that all runs use]", of, {}, "stacks"},
      [options](const std::string& name) { options->request.stack = name; });
  command.option({"--out-cluster", "FILE", "write the cluster with the new figures as YAML", output},
                 [options](const std::string& file) { options->out_cluster = file; });
  command.option({"--out-stack", "FILE", "write the software stack with the new figures as YAML", output},
                 [options](const std::string& file) { options->out_stack = file; });
  command.toggle({"--json", "", "print one JSON document (orrery.calibrate/1) and nothing else", output},
                 [options](bool on) { options->json = on; });
  command.footer(kFooter);
  command.action([options] { return run(*options); });
  return command;
}

}  // namespace orrery::cli
