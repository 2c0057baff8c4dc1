// Converts a solved step to results: breakdown, communication by group, terms.
#pragma once

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "orrery/estimate/step.hpp"
#include "orrery/hardware/cluster.hpp"
#include "orrery/hardware/stack.hpp"
#include "orrery/parallel/program.hpp"
#include "orrery/results/estimate.hpp"
#include "orrery/workload/model.hpp"

namespace orrery::estimate {

// The groups that results list, in this order; "pp" is added separately.
inline constexpr std::array<std::pair<std::string_view, TrafficKind>, 4> kReportedGroups{
    {{"tp", TrafficKind::tp}, {"cp", TrafficKind::cp}, {"ep", TrafficKind::ep}, {"dp", TrafficKind::dp}}};

struct Context {
  const workload::Model& model;
  const hardware::Cluster& cluster;
  const hardware::Stack& stack;
  const network::Fabric& fabric;
};

// Sets what depends on the job only: names, plan, what is not modelled, basis of the figures.
void describe_job(results::Estimate& result, const Context& context, const parallel::Program& program);

// Everything except memory and terms. Requires a step that was solved with Explained::yes.
[[nodiscard]] results::Estimate describe(const Context& context, const parallel::Program& program, const Step& step);

// Every item of the critical stage's segments.
[[nodiscard]] std::vector<results::Term> terms(const Context& context, const parallel::Program& program,
                                               const Step& step);

[[nodiscard]] std::vector<results::RankClassTime> classes(const parallel::Program& program, const Step& step);

}  // namespace orrery::estimate
