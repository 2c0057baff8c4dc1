// `orrery validate`: predictions against measurements.
#include <charconv>
#include <memory>

#include <fmt/format.h>

#include "apps/cli/commands.hpp"
#include "apps/cli/terminal.hpp"
#include "orrery/api/orrery.hpp"
#include "orrery/core/text.hpp"
#include "orrery/report/csv.hpp"
#include "orrery/report/json.hpp"
#include "orrery/report/text.hpp"

namespace orrery::cli {

namespace of_validate {
namespace {

constexpr const char* kFooter = R"(Examples
  orrery validate
  orrery validate --data mine.csv --out predictions.csv
  orrery validate --family vtrain_multi --json
  orrery validate --worst 3
  orrery validate --data serving

Tables that ship: training, training_vtrain_single_node, dlrm_moe, inference, kernels, collectives and commands, which are
read by default; serving (1,520 runs of inference servers, each with several figures; about 20 s of one core), pytorch and
pytorch_kernels (1,296 measurements of two cards).

A table has the columns of training.csv, dlrm_moe.csv, inference.csv, kernels.csv or collectives.csv in data/measurements;
the header decides the kind of table. So do tables of whole training runs (gpu_hours, energy_mwh, carbon_t) and of training
over wide areas (inner_steps, metric, value), whose figures are predicted one by one. Measured columns have no effect on predictions; their cells may be empty.
A serving table (docs/models/serving.md: ttft_p50_ms, tpot_p50_ms, output_tokens_per_s, and the deployment and its load)
has a prediction for each metric, in the metric's unit, in the columns measured and predicted of --out.
A table with the columns id, args and measured_s (and, if you like, source) has a command in each row: args are the words
after "orrery", such as estimate --model llama-3.1-8b --cluster dgx-h100 --devices 8 --global-batch 64 --seq 8192.
Exit codes: 0 done, 2 bad input, 3 internal error.
)";

struct Options {
  std::vector<std::string> data, families;
  std::string out;
  std::string worst;
  bool json = false;
};

Result<std::size_t> count_of_worst(const std::string& text) {
  std::size_t count = 0;
  if (text.empty()) { return count; }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error == std::errc{} && end == text.data() + text.size()) { return count; }
  return fail({"", 0, 0, "--worst"}, fmt::format("{} is not a whole number of at least 0", quote(text)));
}

Result<int> run(const Options& options) {
  ORRERY_TRY(worst, count_of_worst(options.worst));
  ORRERY_TRY(data, data_directory());
  const api::Orrery orrery(data);
  ORRERY_TRY(validation, orrery.validate(options.data, options.families, worst));
  if (!options.out.empty()) {
    const auto written = write_file(options.out, report::predictions_csv(validation.predictions), flag_place("--out"));
    if (!written) { return tl::make_unexpected(written.error()); }
  }
  print(options.json ? report::validation_json(validation) : report::validation_text(validation, terminal_style()));
  return 0;
}

}  // namespace
}  // namespace of_validate

Command validate_command() {
  using namespace of_validate;
  Command command("validate", "Compare predictions with published measurements.");
  const auto options = std::make_shared<Options>();
  const std::string tables = "Tables";
  const std::string output(kOutputGroup);
  command.repeated(
      {"--data", "FILE...",
       "CSV tables of measurements, or names of tables that ship with Orrery [default: those of single times]", tables},
      [options](const std::string& file) { options->data.push_back(file); });
  command.repeated({"--family", "NAME...",
                    "only rows of these families: publications or campaigns, as in the column \"family\"", tables},
                   [options](const std::string& name) { options->families.push_back(name); });
  command.option({"--out", "FILE", "write the prediction of each row as CSV", output},
                 [options](const std::string& file) { options->out = file; });
  command.option({"--worst", "N", "print the terms of the N largest errors of each family [default 0]", output},
                 [options](const std::string& count) { options->worst = count; });
  command.toggle({"--json", "", "print one JSON document (orrery.validate/1) and nothing else", output},
                 [options](bool on) { options->json = on; });
  command.footer(kFooter);
  command.action([options] { return run(*options); });
  return command;
}

}  // namespace orrery::cli
