// Tables of whole training runs (campaigns) and of training over wide areas: rows with several figures, each of which
// is one prediction.
//
// Campaigns (columns of data/validation-like tables: model, params_b, tokens_b, accelerator, devices, ...):
//   gpu_hours   steps of the run's published plan, stage by stage; else from its MFU: 6 x active parameters x tokens /
//   (peak x MFU);
//               divided by the share of useful time at usual failures. A basis that says "upper bound" is not scored
//   energy_mwh  hours (stated, else predicted) x power per device, x PUE unless the basis says that it is without
//   carbon_t    energy (stated, else predicted) x intensity, x PUE where the basis of the carbon has it and that of the
//               energy does not
// Wide areas: compute_utilization_pct, gbps_for_cu_N (a point of a grid of 50 bandwidths from 0.1 to 1,000 Gb/s, as in
// arXiv:2503.09799), hours_at_1gbps (of rows whose id names a run with a published time of compute).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "orrery/validate/columns.hpp"
#include "orrery/validate/rows.hpp"
#include "orrery/validate/skip.hpp"

namespace orrery::validate {

struct Parts;

struct CampaignColumns : Row {  // family: the column "kind"
  std::string model, accelerator, gpu_hours_basis, energy_basis, carbon_basis;
  std::optional<double> params_b, active_params_b, tokens_b, gpu_hours, energy_mwh, power_w, pue, g_per_kwh, mfu;
  std::optional<std::int64_t> devices;
};
struct WanColumns : Row {   // family: the column "method"
  std::string run, metric;  // run: the column "id", which names the run, as the model does elsewhere
  std::optional<double> params_b, step_s, bits_per_param, bandwidth_gbps, outer_s;
  std::optional<std::int64_t> inner_steps, replicas;
};
[[nodiscard]] std::span<const Field<CampaignColumns>> campaign_fields();
[[nodiscard]] std::span<const Field<WanColumns>> wan_fields();

// The measured columns of campaigns.
[[nodiscard]] std::span<const std::string_view> campaign_metrics();

// One figure of a row.
struct FigureRow : Row {
  std::variant<CampaignColumns, WanColumns> of;
  std::string metric;
};
struct FigureScenario {
  double value = 0;
  std::string taken_as;
};
[[nodiscard]] Skippable<FigureScenario> scenario_of(const FigureRow& row, const Parts& parts);

// A published plan as flags of `orrery estimate`. A run that changed its plan has one for each stage.
struct PublishedPlan {
  std::string_view model;  // beginning of the name, as `dashed` spells it
  std::string_view flags;
  std::string_view source;
  double tokens_b = 0.0;  // of this stage, in 1e9; 0: those of the run that no other stage has
};
[[nodiscard]] std::span<const PublishedPlan> published_plans();

// What is published of a run over a wide area beyond the columns of its table.
struct PublishedCompute {
  std::string_view id;  // beginning of the row's id
  double hours = 0;     // of all steps, on links of any speed
  double step_s = 0;
  std::int64_t fragments = 1;  // of an exchange, where it is streamed, each hidden by one step
  std::string_view source;
};
[[nodiscard]] std::span<const PublishedCompute> published_compute();

}  // namespace orrery::validate
