#include "orrery/api/calibrate.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "orrery/calibrate/calibration.hpp"
#include "orrery/calibrate/nccl_output.hpp"
#include "orrery/config/node.hpp"
#include "orrery/core/text.hpp"
#include "orrery/cost/kernel_cost.hpp"
#include "orrery/estimate/estimator.hpp"
#include "orrery/hardware/catalogue.hpp"
#include "orrery/network/fabric.hpp"
#include "orrery/validate/commands.hpp"
#include "orrery/validate/csv.hpp"
#include "orrery/validate/kind.hpp"
#include "orrery/validate/measurement.hpp"
#include "orrery/validate/rules.hpp"
#include "orrery/validate/setups.hpp"

namespace orrery::api {

namespace of_calibrate {
namespace {

using calibrate::Measurement;
using calibrate::Target;
using results::CalibrationKind;
using validate::Csv;
using validate::CsvRow;
using validate::TableKind;

// Nothing that a calibration reads is larger.
constexpr std::size_t kMostBytes = std::size_t{64} << 20;

Result<std::string> text_of(const std::string& path) {
  const Place place{path, 0, 0, {}};
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) { return fail(place, "does not exist"); }
  if (std::filesystem::is_directory(status)) { return fail(place, "is a folder, not a file"); }
  if (std::filesystem::is_regular_file(status)) { return config::read_text_file(path, kMostBytes); }
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file.is_open() || file.bad()) { return fail(place, "cannot be read"); }
  if (text.size() > kMostBytes) { return fail(place, "is larger than 64 MiB"); }
  return text;
}

network::Group everyone_of(const hardware::Cluster& cluster) {
  network::Group group;
  for (std::size_t d = 0; d < cluster.dimensions.size(); ++d) {
    if (cluster.dimensions[d].size > 1) { group.extents.push_back({static_cast<int>(d), cluster.dimensions[d].size}); }
  }
  return group;
}

// Reads the rows of all files; rows that cannot be used are listed with the reason.
class Reader {
 public:
  Reader(const std::string& data_directory, const CalibrateRequest& request)
      : catalogue_(data_directory), request_(request) {
    parts_.data_directory = data_directory;
  }

  Result<results::Calibration> run() {
    for (const auto& file : request_.runs) {
      ORRERY_TRY(done, read_table(file));
      (void)done;
    }
    ORRERY_TRY(target, read_target());
    target_ = std::move(target);
    keep_own_runs();
    for (auto& kernel : std::exchange(waiting_, {})) { add(kernel.id, kernel.seconds, std::move(kernel.row)); }
    for (const auto& file : request_.collectives) {
      ORRERY_TRY(done, read_collectives(file));
      (void)done;
    }
    for (const auto& file : request_.kernels) {
      ORRERY_TRY(done, read_table(file));
      (void)done;
    }
    if (measurements_.empty()) { return fail(nothing()); }
    ORRERY_TRY(fitted, calibrate::fit_figures(*target_, figures(), measurements_, request_.progress));
    return finished(std::move(fitted));
  }

 private:
  // ---- the machine -------------------------------------------------------------------------------------------------

  // The only name that all runs have, or that of the flag.
  Result<std::string> name_of_all(const std::string& given, const char* flag, const std::set<std::string>& named) {
    if (!given.empty()) { return given; }
    if (named.size() == 1) { return *named.begin(); }
    if (named.empty() && (!unused_.empty() || has_no_files())) { return fail(nothing()); }
    if (named.empty()) {
      return fail(Place{{}, 0, 0, flag}, "is missing: no run names one; for example --cluster dgx-h100");
    }
    const std::vector<std::string> all(named.begin(), named.end());
    return fail(Place{{}, 0, 0, flag}, fmt::format("is missing: the runs name several ({})", join(all, ", ")));
  }

  Result<Target> read_target() {
    std::set<std::string> clusters, stacks;
    for (const auto& row : runs_) {
      clusters.insert(row.cluster);
      stacks.insert(row.stack);
    }
    ORRERY_TRY(cluster_name, name_of_all(request_.cluster, "--cluster", clusters));
    Target target;
    ORRERY_TRY(cluster, catalogue_.cluster_template(cluster_name, hardware::UnlikeNodes{"calibrate"}));
    target.cluster = std::move(cluster);
    if (runs_.empty()) { return target; }
    ORRERY_TRY(stack_name, name_of_all(request_.stack, "--stack", stacks));
    ORRERY_TRY(stack, catalogue_.stack(stack_name));
    target.stack = std::move(stack);
    return target;
  }

  // Moves runs of the machine and stack to the measurements; of other ones they are unused.
  void keep_own_runs() {
    for (auto& row : runs_) {
      const auto& [cluster, stack] = row.measurement.target;
      if (cluster.name != target_->cluster.name) {
        unused_.push_back({row.measurement.id, fmt::format("on {}, not {}", cluster.name, target_->cluster.name)});
      } else if (stack.name != target_->stack.name) {
        unused_.push_back({row.measurement.id, fmt::format("with stack {}, not {}", stack.name, target_->stack.name)});
      } else {
        formats_.insert(row.formats.begin(), row.formats.end());
        measurements_.push_back(std::move(row.measurement));
      }
    }
  }

  // ---- tables ------------------------------------------------------------------------------------------------------

  Result<std::monostate> read_table(const std::string& file) {
    ORRERY_TRY(csv, validate::read_table(file));
    const TableKind kind = validate::kind_of(csv);
    switch (kind) {
      case TableKind::commands: return read_rows(csv, kind, validate::command_fields());
      case TableKind::kernels: return read_rows(csv, kind, validate::kernel_fields());
      case TableKind::collectives: return read_rows(csv, kind, validate::collective_fields());
      case TableKind::training:
      case TableKind::dlrm_moe:
      case TableKind::campaigns:
      case TableKind::wan:
      case TableKind::inference:
      case TableKind::serving: break;
    }
    return fail(
        Place{file, 1, 0, {}},
        "not a table of commands (columns args and measured_s), kernels (op, gpu_type, dtype, m, n, k, time_us) "
        "or collectives");
  }

  template <class Row>
  Result<std::monostate> read_rows(const Csv& csv, TableKind kind, std::span<const validate::Field<Row>> fields) {
    ORRERY_TRY(columns, validate::Columns<Row>::of(csv, fields, validate::name_of(kind)));
    for (const CsvRow& line : csv.rows) {
      const std::string id(validate::cell_text(csv, line, "id"));
      const std::string name = id.empty() ? fmt::format("{}:{}", csv.file, line.line) : id;
      ORRERY_TRY(measured, validate::measurement_of(kind, csv, line));
      if (!measured.seconds) {
        unused_.push_back({name, "not measured"});
        continue;
      }
      auto row = columns.row(line);
      if constexpr (std::is_same_v<Row, validate::CommandRow>) { row.table = csv.file; }
      add(name, *measured.seconds, std::move(row));
    }
    return std::monostate{};
  }

  void add(const std::string& id, double seconds, const validate::CommandRow& row) {
    if (auto kernel = validate::kernel_of(row)) { return add(id, seconds, *kernel); }
    auto scenario = validate::scenario_of(row, parts_);
    if (!scenario) {
      unused_.push_back({id, scenario.error()});
      return;
    }
    if (scenario->attention_only) {
      unused_.push_back({id, "rows of attn are not used"});
      return;
    }
    Run run;
    run.cluster = scenario->cluster.name;
    run.stack = scenario->stack.name;
    const auto format = scenario->job.precision;
    const bool is_narrow = hardware::element_size(format) < Bytes(2.0);
    run.formats = {format, is_narrow ? hardware::Precision::bf16 : format};
    const auto shared = std::make_shared<const validate::CommandScenario>(std::move(*scenario));
    run.measurement = {id, CalibrationKind::run, seconds, {shared->cluster, shared->stack}, [shared](const Target& t) {
                         estimate::Estimator estimator(shared->model, t.cluster, t.stack, shared->job);
                         return estimator.step_time(shared->plan);
                       }};
    runs_.push_back(std::move(run));
  }

  void add(const std::string& id, double seconds, validate::KernelRow row) {
    if (!target_) {  // of a table of runs, which name the machine
      waiting_.push_back({id, seconds, std::move(row)});
      return;
    }
    if (row.gpu_type.empty()) { row.gpu_type = target_->cluster.accelerator.name; }
    auto parts = validate::parts_for(parts_.data_directory, {row});
    const auto scenario = parts ? validate::scenario_of(row, *parts)
                                : validate::Skippable<validate::KernelScenario>(validate::skip("gpu_type: unknown"));
    if (!scenario) {
      unused_.push_back({id, scenario.error()});
      return;
    }
    if (scenario->accelerator.name != target_->cluster.accelerator.name) {
      unused_.push_back(
          {id, fmt::format("on {}, not {}", scenario->accelerator.name, target_->cluster.accelerator.name)});
      return;
    }
    formats_.insert(scenario->kernel.precision);
    measurements_.push_back(
        {id, CalibrationKind::kernel, seconds, *target_, [kernel = scenario->kernel](const Target& t) {
           return cost::kernel_cost(kernel, t.cluster.accelerator).time;
         }});
  }

  void add(const std::string& id, double seconds, const validate::CollectiveRow& row) {
    auto parts = validate::parts_for(parts_.data_directory, {row});
    if (!parts) {
      unused_.push_back({id, parts.error().text()});
      return;
    }
    const auto scenario = validate::scenario_of(row, *parts);
    if (!scenario) {
      unused_.push_back({id, scenario.error()});
      return;
    }
    if (scenario->cluster.accelerator.name != target_->cluster.accelerator.name) {
      unused_.push_back(
          {id, fmt::format("on {}, not {}", scenario->cluster.accelerator.name, target_->cluster.accelerator.name)});
      return;
    }
    if (!scenario->collective) {
      unused_.push_back({id, "messages are not used"});
      return;
    }
    add_collective(id, seconds, scenario->cluster, *scenario->collective, scenario->bytes, scenario->algorithm);
  }

  void add_collective(const std::string& id, double seconds, const hardware::Cluster& cluster, Collective collective,
                      Bytes bytes, CollectiveAlgorithm algorithm) {
    const network::Group group = everyone_of(cluster);
    const auto time = [=](const Target& t) {
      const network::Fabric fabric(t.cluster);
      const Seconds asked = fabric.price(collective, bytes, group, algorithm).time;
      return is_finite(asked) ? asked : fabric.price(collective, bytes, group, CollectiveAlgorithm::automatic).time;
    };
    measurements_.push_back({id, CalibrationKind::collective, seconds, {cluster, target_->stack}, time});
  }

  Result<std::monostate> read_collectives(const std::string& file) {
    if (file.ends_with(".csv")) { return read_table(file); }
    ORRERY_TRY(text, text_of(file));
    ORRERY_TRY(runs, calibrate::parse_nccl_output(text, file, {request_.op, request_.devices}));
    for (const auto& run : runs) {
      const auto cluster = hardware::scaled(target_->cluster, run.ranks);
      if (!cluster) {
        return fail(Place{file, run.rows.front().line, 0, {}},
                    fmt::format("{} ranks: {}", run.ranks, cluster.error().diagnostics.front().message));
      }
      for (const auto& row : run.rows) {
        add_collective(fmt::format("{}:{}", file, row.line), row.seconds, *cluster, run.collective, Bytes(row.bytes),
                       CollectiveAlgorithm::automatic);
      }
    }
    return std::monostate{};
  }

  // ---- the answer --------------------------------------------------------------------------------------------------

  [[nodiscard]] bool has_no_files() const {
    return request_.runs.empty() && request_.collectives.empty() && request_.kernels.empty();
  }

  [[nodiscard]] std::string nothing() const {
    if (unused_.empty()) { return "nothing to fit: give --data, --collectives or --kernels"; }
    return fmt::format("none of {} rows can be used; the first, {}: {}", unused_.size(), unused_.front().id,
                       unused_.front().reason);
  }

  [[nodiscard]] std::vector<calibrate::Figure> figures() const {
    return calibrate::figures_of(*target_, {formats_.begin(), formats_.end()});
  }

  [[nodiscard]] results::Calibration finished(calibrate::Fitted fitted) {
    results::Calibration result = std::move(fitted.result);
    result.cluster = target_->cluster.name;
    result.stack = target_->stack.name;
    result.unused = std::move(unused_);
    Target& target = fitted.target;
    for (const auto& figure : figures()) {
      const auto found = std::find_if(result.figures.begin(), result.figures.end(), [&](const auto& one) {
        return one.name == figure.name && one.of == figure.of && one.owner == calibrate::name_of(figure.owner);
      });
      if (found == result.figures.end()) { continue; }
      calibrate::cite(target, figure,
                      fmt::format("fitted: orrery calibrate, {} of {} rows depend on it; standard deviation {:.0f} %",
                                  found->rows, result.rows.size(), 100.0 * found->uncertainty));
    }
    if (!request_.cluster_name.empty()) { target.cluster.name = request_.cluster_name; }
    if (!request_.stack_name.empty()) { target.stack.name = request_.stack_name; }
    result.cluster_yaml = hardware::yaml_of(target.cluster);
    if (!result.stack.empty()) { result.stack_yaml = hardware::yaml_of(target.stack); }
    return result;
  }

  struct Kernel {
    std::string id;
    double seconds = 0;
    validate::KernelRow row;
  };
  struct Run {
    std::string cluster, stack;                    // names
    std::array<hardware::Precision, 2> formats{};  // of its layers, and of its head
    Measurement measurement;
  };

  hardware::Catalogue catalogue_;
  const CalibrateRequest& request_;
  validate::Parts parts_;
  std::optional<Target> target_;
  std::vector<Run> runs_;
  std::vector<Kernel> waiting_;
  std::vector<Measurement> measurements_;
  std::vector<results::UnusedRow> unused_;
  std::set<hardware::Precision> formats_;  // of GEMMs
};

}  // namespace
}  // namespace of_calibrate

Result<results::Calibration> calibrate(const std::string& data_directory, const CalibrateRequest& request) {
  return of_calibrate::Reader(data_directory, request).run();
}

}  // namespace orrery::api
