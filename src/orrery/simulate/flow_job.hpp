// A job on a cluster whose collectives and messages are flows on the ports of devices (docs/models/flow.md).
//
// A job can be folded: one rank stands for all ranks of a class, which do the same at the same time. Its group has the
// shape of the real one, and as members the simulated ranks of the classes that its members are of.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/hardware/cluster.hpp"
#include "orrery/network/fabric.hpp"
#include "orrery/network/group.hpp"
#include "orrery/parallel/layout.hpp"
#include "orrery/results/rank_runs.hpp"
#include "orrery/simulate/job.hpp"
#include "orrery/simulate/pool.hpp"

namespace orrery::simulate {

inline constexpr std::uint32_t kMessages = 0, kMemory = 1;  // kinds of traffic; others are of groups
[[nodiscard]] inline std::vector<std::string> first_kinds() { return {"messages", "second tier"}; }

// The number of the kind of this name, which is added if it is new.
[[nodiscard]] std::uint32_t number_of_kind(std::vector<std::string>& kinds, const std::string& kind);

struct FlowGroup {
  network::Group shape;  // on the dimensions of the cluster
  std::uint32_t kind = 0;
  std::uint64_t copies = 1;  // groups of the job that it stands for
  // Whose accelerators reduce: 0 those of the cluster, i those of FlowJob::parts[i - 1].
  std::uint32_t part = 0;
};

// Where ranks are on the levels of a pool of memory (hardware::PoolLevel).
struct PoolPlaces {
  std::vector<std::uint32_t> devices;  // by rank, if every rank is simulated; empty: FlowJob::devices, or the ranks
  // Of a folded job, by level and simulated rank. Blocks with the same ranks are one.
  struct Place {
    std::uint32_t block = 0;   // below the number of simulated ranks
    std::uint32_t copies = 1;  // ranks in it that the simulated rank stands for
  };
  std::vector<std::vector<Place>> folded;
  // Of a folded job, by group, simulated rank and level: members of the rank's group in its block.
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint32_t> members;
};

struct FlowJob {
  hardware::Cluster cluster;
  network::NodeEgress egress = network::NodeEgress::all_ports;
  // rank_graphs and files are by simulated rank. Ranks of groups, and peers of messages, are simulated ranks;
  // NodeTask::dimensions of a message is the outermost dimension that it crosses. `network` has all
  // dimensions of the cluster, for tables.
  SimulationJob job;
  std::vector<hardware::Cluster>
      parts;                       // the cluster with the nodes of one of several jobs only, for their collectives
  std::vector<FlowGroup> groups;   // [0]: all ranks; [i + 1]: of job.groups[i]
  std::vector<std::string> kinds;  // names of the kinds of traffic, for reports; the first two: first_kinds()
  results::RankRuns<std::uint32_t> simulated;  // by real rank: the simulated rank that stands for it
  std::vector<std::uint64_t> ranks_of;         // by simulated rank: how many it stands for; empty: one each
  // By rank, if every rank is simulated and the cluster has a topology: its device there. Calls then share the links of
  // the topology, and the tiers of `cluster` are not oversubscribed: those links are.
  std::vector<std::uint32_t> devices;
  std::vector<std::uint32_t> nodes_entries;  // by real rank: entry of Cluster::nodes; empty: all nodes are alike
  PoolPlaces pool;                           // of its cluster, if it has one
  std::vector<std::uint64_t> starts_ps;      // by rank; empty: all at 0
  std::vector<std::uint32_t> rank_kinds;     // of messages and memory accesses, by rank; empty: kMessages, kMemory
  // Links whose bandwidth changes; every rank is simulated then.
  struct PortChange {
    std::uint32_t link = kNone;  // of the topology; otherwise a port of a rank:
    std::uint32_t rank = 0;
    std::uint16_t dimension = 0;
    bool in = false;
    Seconds time;
    double part = 1;  // of its bandwidth
  };
  std::vector<PortChange> changes;
  bool by_link = false;  // Simulation::links is asked for; only on a topology
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::automatic;
  bool whole_buffers = false;  // all-gathers count the whole buffer, as nccl-tests do, instead of one rank's shard

  // The accelerator of a real rank.
  [[nodiscard]] const hardware::Accelerator& accelerator_of(std::uint32_t rank) const {
    return nodes_entries.empty() ? cluster.accelerator : cluster.nodes[nodes_entries[rank]].accelerator;
  }
  [[nodiscard]] std::uint64_t ranks_for(std::uint32_t simulated_rank) const {
    return ranks_of.empty() ? 1 : ranks_of[simulated_rank];
  }
};

// The job with every rank simulated. `job`: of read_job_on, with its graphs and groups.
[[nodiscard]] FlowJob unfolded(const hardware::Cluster& cluster, SimulationJob job);

// Of a job with every rank simulated: puts its ranks on devices of the cluster's topology, if it has one.
void use_topology(FlowJob& job, std::vector<std::uint32_t> devices);
void use_topology(FlowJob& job, const parallel::Layout& layout);

// All dimensions of the cluster, those of one device included; without bandwidths.
[[nodiscard]] Network network_of(const hardware::Cluster& cluster);

using parallel::shape_of;

}  // namespace orrery::simulate
