#include "orrery/simulate/flow_energy.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "orrery/hardware/expenses.hpp"
#include "orrery/simulate/flow_time.hpp"

namespace orrery::simulate {

namespace {

constexpr double kBitsPerByte = 8, kPicojoule = 1e-12, kNanosecond = 1e-9;

// Devices with one accelerator, and the time of their kernels.
struct Devices {
  const hardware::Accelerator* accelerator = nullptr;
  double count = 0;
  double kernels = 0;  // seconds, sum over the devices
};

std::vector<Devices> devices_of(const FlowJob& job, const results::Simulation& simulation) {
  std::vector<Devices> devices{{&job.cluster.accelerator}};
  if (!job.nodes_entries.empty()) {
    devices.clear();
    for (const hardware::Nodes& nodes : job.cluster.nodes) { devices.push_back({&nodes.accelerator}); }
  }
  for (const auto& run : simulation.ranks.runs()) {
    const double kernels = kNanosecond * static_cast<double>(run.value.compute_ns);
    if (job.nodes_entries.empty()) {
      devices.front().count += static_cast<double>(run.end - run.first);
      devices.front().kernels += kernels * static_cast<double>(run.end - run.first);
      continue;
    }
    for (auto rank = run.first; rank < run.end; ++rank) {
      Devices& some = devices[job.nodes_entries[rank]];
      some.count += 1;
      some.kernels += kernels;
    }
  }
  return devices;
}

// Accelerators idle all the time, and take the rest of their TDP while kernels run.
void add_devices(const Devices& some, const std::string& name, double run, results::SimulatedEnergy& energy) {
  const hardware::Accelerator& accelerator = *some.accelerator;
  if (!(accelerator.tdp_watts > 0)) {
    energy.missing.push_back(name + ": tdp_watts");
    return;
  }
  const double tdp = accelerator.tdp_watts;
  const double idle = std::min(accelerator.idle_watts.value_or(hardware::kIdlePart * tdp), tdp);
  energy.parts.push_back({name + ", idle power", idle * run * some.count,
                          fmt::format("{:.3g} W of each{}", idle, accelerator.idle_watts ? "" : " (prior)")});
  energy.parts.push_back({name + ", kernels", (tdp - idle) * some.kernels,
                          fmt::format("{:.3g} W more while kernels run: their TDP, an upper bound", tdp - idle)});
}

void add_links(const FlowJob& job, const FlowMachine& machine, results::SimulatedEnergy& energy) {
  const bool has_nodes = !job.cluster.topology || job.cluster.topology->scale_up;
  for (std::uint32_t d = 0; d < job.cluster.dimensions.size(); ++d) {
    const hardware::NetworkDimension& dimension = job.cluster.dimensions[d];
    const double bits = machine.bits_on(d);
    if (dimension.size <= 1 && !(bits > 0)) { continue; }
    const auto& known = dimension.link.picojoules_per_bit;
    const double prior = d == 0 && has_nodes ? hardware::kScaleUpPicojoules : hardware::kNetworkPicojoules;
    energy.parts.push_back(
        {"cables of " + dimension.name, bits * known.value_or(prior) * kPicojoule,
         fmt::format("{:.3g} pJ a bit and cable{}", known.value_or(prior), known ? "" : " (prior)")});
  }
}

// Of nodes of several kinds, node_power_watts is that of each of them.
void add_nodes(const hardware::Cluster& cluster, const std::vector<Devices>& devices, double run,
               results::SimulatedEnergy& energy) {
  const double in_node = cluster.node_power_watts / static_cast<double>(cluster.node_size());
  double watts = 0;
  for (const Devices& some : devices) {
    const double tdp = some.accelerator->tdp_watts;
    if (!(tdp > 0 && in_node > tdp)) {
      energy.missing.push_back("rest of the nodes: node_power_watts");
      return;
    }
    watts += (in_node - tdp) * some.count;
  }
  const bool alike = devices.size() == 1;
  energy.parts.push_back({"rest of the nodes", watts * run,
                          alike ? fmt::format("{:.3g} W for each accelerator: nameplate of the node less their TDP",
                                              in_node - devices.front().accelerator->tdp_watts)
                                : fmt::format("{:.4g} W: nameplate of all nodes less the TDP of accelerators", watts)});
}

void add_switches(const hardware::Cluster& cluster, double run, results::SimulatedEnergy& energy) {
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
  const double run = kNanosecond * static_cast<double>(simulation.makespan_ns());
  const std::vector<Devices> devices = devices_of(job, simulation);
  for (const Devices& some : devices) {
    add_devices(some, devices.size() == 1 ? "accelerators" : some.accelerator->name, run, energy);
  }
  add_links(job, machine, energy);
  add_nodes(job.cluster, devices, run, energy);
  add_switches(job.cluster, run, energy);
  return energy;
}

}  // namespace orrery::simulate
