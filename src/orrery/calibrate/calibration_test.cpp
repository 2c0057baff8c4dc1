#include "orrery/calibrate/calibration.hpp"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/cost/kernel_cost.hpp"
#include "orrery/hardware/catalogue.hpp"
#include "orrery/network/fabric.hpp"

namespace orrery::calibrate::calibration_test {
namespace {

using results::CalibrationKind;
using ::testing::Contains;

Target dgx() {
  const hardware::Catalogue catalogue(ORRERY_DATA_DIR);
  return {catalogue.cluster_template("dgx-h100").value(), {}};
}

hardware::Kernel square(std::int64_t n) {
  hardware::Kernel kernel;
  kernel.kind = hardware::KernelKind::gemm;
  kernel.m = kernel.n = kernel.k = n;
  const auto size = static_cast<double>(n);
  kernel.flops = Flops(2.0 * size * size * size);
  kernel.bytes = Bytes(6.0 * size * size);
  return kernel;
}

// GEMMs and all-reduces on two nodes, as `truth` would take them.
std::vector<Measurement> measurements_of(const Target& start, const Target& truth) {
  std::vector<Measurement> rows;
  for (const std::int64_t n : {64, 256, 1024, 4096, 8192, 16384}) {
    const auto time = [n](const Target& t) { return cost::kernel_cost(square(n), t.cluster.accelerator).time; };
    rows.push_back({"gemm " + std::to_string(n), CalibrationKind::kernel, time(truth).value(), start, time});
  }
  const hardware::Cluster nodes = hardware::scaled(start.cluster, 16).value();
  const hardware::Cluster true_nodes = hardware::scaled(truth.cluster, 16).value();
  for (double bytes = 1024; bytes < 4e9; bytes *= 4) {
    const auto time = [bytes](const Target& t) {
      return network::Fabric(t.cluster)
          .price(Collective::all_gather, Bytes(bytes), {{{0, 8}, {1, 2}}}, CollectiveAlgorithm::automatic)
          .time;
    };
    rows.push_back({"gather", CalibrationKind::collective, time({true_nodes, {}}).value(), {nodes, {}}, time});
  }
  return rows;
}

TEST(Calibration, finds_a_machine_that_differs_from_its_entry) {
  const Target start = dgx();
  Target truth = start;
  truth.cluster.accelerator.matrix_efficiency_of["bf16"] = 0.92 * start.cluster.accelerator.matrix_efficiency;
  truth.cluster.dimensions[1].link.efficiency *= 0.85;
  const auto figures = figures_of(start, {hardware::Precision::bf16});
  const auto fitted = fit_figures(start, figures, measurements_of(start, truth), {});
  ASSERT_TRUE(fitted) << fitted.error().text();
  const auto& accelerator = fitted->target.cluster.accelerator;
  const double products = truth.cluster.accelerator.matrix_efficiency_of["bf16"];
  EXPECT_NEAR(accelerator.matrix_efficiency_of.at("bf16") / products, 1.0, 0.03);
  const double fitted_link = fitted->target.cluster.dimensions[1].link.efficiency;
  EXPECT_NEAR(fitted_link / truth.cluster.dimensions[1].link.efficiency, 1.0, 0.05);
  for (const auto& row : fitted->result.rows) {
    EXPECT_TRUE(row.explained) << row.id << " " << row.measured << " " << row.after;
    EXPECT_LE(std::abs(std::log(row.after / row.measured)), std::abs(std::log(row.before / row.measured)) + 0.02);
  }
}

TEST(Calibration, of_right_figures_changes_nothing) {
  const Target start = dgx();
  const auto fitted =
      fit_figures(start, figures_of(start, {hardware::Precision::bf16}), measurements_of(start, start), {});
  ASSERT_TRUE(fitted) << fitted.error().text();
  for (const auto& figure : fitted->result.figures) {
    EXPECT_NEAR(figure.after / figure.before, 1.0, 1e-9) << figure.name;
    EXPECT_TRUE(figure.movers.empty()) << figure.name;
  }
}

TEST(Calibration, lists_figures_that_no_row_depends_on) {
  const Target start = dgx();
  const auto fitted =
      fit_figures(start, figures_of(start, {hardware::Precision::bf16}), measurements_of(start, start), {});
  ASSERT_TRUE(fitted);
  EXPECT_THAT(fitted->result.undetermined, Contains("attention_efficiency of h100-sxm"));
  for (const auto& figure : fitted->result.figures) { EXPECT_GT(figure.rows, 0U) << figure.name; }
}

TEST(Calibration, a_row_without_a_prediction_is_an_error) {
  const Target start = dgx();
  const std::vector<Measurement> rows = {
      {"bad", CalibrationKind::run, 1.0, start, [](const Target&) { return infinite<Seconds>(); }}};
  const auto fitted = fit_figures(start, figures_of(start, {}), rows, {});
  ASSERT_FALSE(fitted);
  EXPECT_EQ(fitted.error().text(), "bad: the prediction is not a positive time");
}

}  // namespace
}  // namespace orrery::calibrate::calibration_test
