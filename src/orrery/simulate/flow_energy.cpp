#include "orrery/simulate/flow_energy.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "orrery/hardware/expenses.hpp"
#include "orrery/simulate/flow_time.hpp"

namespace orrery::simulate {

namespace {

constexpr double kBitsPerByte = 8, kPicojoule = 1e-12, kNanosecond = 1e-9;

// Accelerators idle all the time, and take the rest of their TDP while kernels run.
void add_devices(const FlowJob& job, const results::Simulation& simulation, results::SimulatedEnergy& energy) {
  const hardware::Accelerator& accelerator = job.cluster.accelerator;
  if (!(accelerator.tdp_watts > 0)) {
    energy.missing.push_back("accelerators: tdp_watts");
    return;
  }
  const double tdp = accelerator.tdp_watts;
  const double idle = std::min(accelerator.idle_watts.value_or(hardware::kIdlePart * tdp), tdp);
  const double run = kNanosecond * static_cast<double>(simulation.makespan_ns());
  double kernels = 0;  // seconds, of all devices
  for (const auto& ranks : simulation.ranks.runs()) {
    kernels += kNanosecond * static_cast<double>(ranks.value.compute_ns) * static_cast<double>(ranks.end - ranks.first);
  }
  const auto devices = static_cast<double>(simulation.ranks.size());
  energy.parts.push_back({"accelerators, idle power", idle * run * devices,
                          fmt::format("{:.3g} W of each{}", idle, accelerator.idle_watts ? "" : " (prior)")});
  energy.parts.push_back({"accelerators, kernels", (tdp - idle) * kernels,
                          fmt::format("{:.3g} W more while kernels run: their TDP, an upper bound", tdp - idle)});
}

void add_links(const FlowJob& job, const FlowMachine& machine, results::SimulatedEnergy& energy) {
  const bool has_nodes = !job.cluster.topology || job.cluster.topology->scale_up;
  for (std::uint32_t d = 0; d < job.cluster.dimensions.size(); ++d) {
    const hardware::NetworkDimension& dimension = job.cluster.dimensions[d];
    if (dimension.size <= 1) { continue; }
    const auto& known = dimension.link.picojoules_per_bit;
    const double prior = d == 0 && has_nodes ? hardware::kScaleUpPicojoules : hardware::kNetworkPicojoules;
    energy.parts.push_back(
        {"cables of " + dimension.name, machine.bits_on(d) * known.value_or(prior) * kPicojoule,
         fmt::format("{:.3g} pJ a bit and cable{}", known.value_or(prior), known ? "" : " (prior)")});
  }
}

void add_rest(const FlowJob& job, const results::Simulation& simulation, results::SimulatedEnergy& energy) {
  const hardware::Cluster& cluster = job.cluster;
  const double run = kNanosecond * static_cast<double>(simulation.makespan_ns());
  const auto devices = static_cast<double>(simulation.ranks.size());
  const double in_node = cluster.node_power_watts / static_cast<double>(cluster.node_size());
  if (in_node > cluster.accelerator.tdp_watts && cluster.accelerator.tdp_watts > 0) {
    const double rest = in_node - cluster.accelerator.tdp_watts;
    energy.parts.push_back({"rest of the nodes", rest * run * devices,
                            fmt::format("{:.3g} W for each accelerator: nameplate of the node less their TDP", rest)});
  } else {
    energy.missing.push_back("rest of the nodes: node_power_watts");
  }
  if (cluster.topology && cluster.topology->switch_watts > 0) {
    const auto switches = static_cast<double>(hardware::build(*cluster.topology).switches());
    energy.parts.push_back({"switches", switches * cluster.topology->switch_watts * run,
                            fmt::format("{} of {:.3g} W", switches, cluster.topology->switch_watts)});
  } else {
    energy.missing.push_back("switches: switch_watts of a topology");
  }
}

}  // namespace

double FlowMachine::bits_on(std::uint32_t dimension) const {
  const auto ranks = static_cast<std::uint32_t>(job_.rank_graphs.size());
  double bits = 0;
  const auto bits_of = [&](std::uint32_t number, BytesPerSecond rate) {
    return seconds(flows_.busy(number)).value() * rate.value() * kBitsPerByte;
  };
  if (topology_) {
    const auto& links = topology_->topology().links;
    for (std::uint32_t i = 0; i < links.size(); ++i) {
      if (links[i].level != dimension) { continue; }
      bits += bits_of((2 * ranks + i) * (dimensions_ + 1) + dimension, BytesPerSecond(links[i].bandwidth));
    }
    return bits;
  }
  const hardware::NetworkDimension& on = flow_job_.cluster.dimensions[dimension];
  const bool through_switch = hardware::has_switch(on.wiring);  // one cable up, one down
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    const auto devices = static_cast<double>(flow_job_.ranks_for(rank));
    bits += devices * bits_of(port(rank, dimension, false), on.rate());
    if (through_switch) { bits += devices * bits_of(port(rank, dimension, true), on.rate()); }
  }
  return bits;
}

results::SimulatedEnergy energy_of(const FlowJob& job, const FlowMachine& machine,
                                   const results::Simulation& simulation) {
  results::SimulatedEnergy energy;
  add_devices(job, simulation, energy);
  add_links(job, machine, energy);
  add_rest(job, simulation, energy);
  return energy;
}

}  // namespace orrery::simulate
