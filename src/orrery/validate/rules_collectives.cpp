// Rules for rows of collectives.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "orrery/core/text.hpp"
#include "orrery/validate/rules.hpp"
#include "orrery/validate/skip.hpp"
#include "orrery/validate/spelling.hpp"

namespace orrery::validate {

namespace {

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// Names of operations, as `letters` spells them; the longest one that a name contains is taken ("all_reduce_perf",
// "all_gather_into_tensor"). Operations with a root are limited by its port: a reduction takes the time of a broadcast;
// the root of a gather receives (of a scatter sends) the bytes that every member of an all-gather receives.
constexpr std::array<std::pair<std::string_view, Collective>, 10> kCollectives = {{
    {"allreduce", Collective::all_reduce},
    {"allgather", Collective::all_gather},
    {"reducescatter", Collective::reduce_scatter},
    {"alltoall", Collective::all_to_all},
    {"a2a", Collective::all_to_all},
    {"broadcast", Collective::broadcast},
    {"bcast", Collective::broadcast},
    {"reduce", Collective::broadcast},
    {"gather", Collective::all_gather},
    {"scatter", Collective::all_gather},
}};
constexpr std::array kMessages = {std::string_view{"sendrecv"}, std::string_view{"p2p"}, std::string_view{"pingpong"}};

struct MeasuredTransfer {
  std::optional<Collective> collective;  // nullopt: a message
};

std::optional<MeasuredTransfer> call_of(std::string_view text) {
  const std::string name = letters_and_digits(text);
  std::size_t longest = 0;
  std::optional<MeasuredTransfer> call;
  for (const auto& [part, collective] : kCollectives) {
    if (part.size() <= longest || !has(name, part)) { continue; }
    longest = part.size();
    call = MeasuredTransfer{collective};
  }
  const auto is_in_name = [&](std::string_view message) { return has(name, message); };
  if (!call && std::any_of(kMessages.begin(), kMessages.end(), is_in_name)) { return MeasuredTransfer{}; }
  return call;
}

// Link classes by the text in `network`; the first match is taken: the text has both words, and a port has at least the
// bandwidth.
struct NetworkFacts {
  std::string_view word, other, link;
  double least_GBps = 0.0;
};
constexpr std::array kNetworks = {
    NetworkFacts{"tcpxo", "", "gcp-tcpxo"},
    NetworkFacts{"tcpx", "", "gcp-tcpx"},
    NetworkFacts{"tcp", "", "ethernet"},  // whatever the ports could do
    NetworkFacts{"socket", "", "ethernet"},
    NetworkFacts{"efa", "v4", "aws-efa-v4"},
    NetworkFacts{"efa", "v3", "aws-efa-v3"},
    NetworkFacts{"efa", "p5en", "aws-efa-v3"},
    NetworkFacts{"efa", "p4d", "aws-efa-v1"},
    NetworkFacts{"efa", "", "aws-efa-v4", 60.0},
    NetworkFacts{"efa", "", "aws-efa-v2", 25.0},
    NetworkFacts{"efa", "", "aws-efa-v1"},
    NetworkFacts{"roce", "", "roce-800", 80.0},
    NetworkFacts{"roce", "", "roce-400", 40.0},
    NetworkFacts{"roce", "", "roce-200", 20.0},
    NetworkFacts{"roce", "", "roce-100", 10.0},
    NetworkFacts{"roce", "", "roce"},
    NetworkFacts{"ib", "xdr", "infiniband-xdr"},
    NetworkFacts{"ib", "ndr", "infiniband-ndr"},
    NetworkFacts{"ib", "hdr", "infiniband-hdr"},
    NetworkFacts{"ib", "edr", "infiniband-edr"},
    NetworkFacts{"ib", "", "infiniband-xdr", 80.0},
    NetworkFacts{"ib", "", "infiniband-ndr", 40.0},
    NetworkFacts{"ib", "", "infiniband-hdr", 20.0},
    NetworkFacts{"ib", "", "infiniband-edr"},
    NetworkFacts{"slingshot", "", "slingshot-11"},
};

// Several hosts without a stated network: one port of 100 Gb/s a host, which is usual in clouds.
constexpr std::string_view kUnstatedLink = "ethernet";
constexpr double kUnstatedHostGBps = 12.5;

std::string_view cluster_name(const CollectiveRow& row) {
  const MachineFacts* machine = machine_of(row.gpu_type);
  return machine == nullptr ? std::string_view{} : machine->cluster;
}

std::int64_t hosts(const CollectiveRow& row) {
  if (row.nodes) { return *row.nodes; }
  return row.gpus && row.gpus_per_node ? std::max<std::int64_t>(1, *row.gpus / *row.gpus_per_node) : 1;
}

// Empty: the link of the catalogue's cluster.
std::string_view link_name(const CollectiveRow& row) {
  const std::string text = dashed(row.network);
  const double rate = number(row.nic_bw_GBps_per_gpu).value_or(0.0);
  for (const auto& network : kNetworks) {
    if (has(text, network.word) && has(text, network.other) && rate >= network.least_GBps) { return network.link; }
  }
  return rate > 0.0 || hosts(row) == 1 || has(text, "nvl") ? std::string_view{} : kUnstatedLink;
}

// Distributes the devices of a host over its inner dimensions. A scale-up domain of several hosts keeps its size where
// it was in use: its bandwidth is stated or there is one host.
void fill_host(hardware::Cluster& cluster, const CollectiveRow& row, bool shared) {
  if (shared && (row.intra_bw_GBps || hosts(row) == 1)) {
    auto& domain = cluster.dimensions.front();
    while (*row.gpus > domain.size && *row.gpus % domain.size != 0) { --domain.size; }
    return;
  }
  std::int64_t rest = row.gpus_per_node.value_or(std::max<std::int64_t>(1, *row.gpus / hosts(row)));
  for (std::size_t d = 0; d + 1 < cluster.dimensions.size(); ++d) {
    auto& dimension = cluster.dimensions[d];
    const bool last = d + 2 == cluster.dimensions.size();
    if (hardware::has_pair_links(dimension.wiring) && rest <= dimension.size) { return; }
    dimension.size = last ? rest : std::min(rest, dimension.size);
    rest = std::max<std::int64_t>(1, rest / dimension.size);
  }
}

void connect_hosts(hardware::Cluster& cluster, const CollectiveRow& row, const Parts& parts) {
  auto& outer = cluster.dimensions.back();
  const std::string_view link = link_name(row);
  if (const auto known = parts.links.find(link); known != parts.links.end()) { outer.link = known->second; }
  if (const auto rate = number(row.nic_bw_GBps_per_gpu)) {
    outer.bandwidth = BytesPerSecond(*rate * 1e9);
  } else if (link == kUnstatedLink) {
    const auto devices = static_cast<double>(std::max<std::int64_t>(1, *row.gpus / hosts(row)));
    outer.bandwidth = BytesPerSecond(kUnstatedHostGBps * 1e9 / devices);
  }
}

// NVLS is in NCCL from 2.17 on.
constexpr std::pair kFirstInSwitch{2.0, 17.0};

void remove_newer_features(hardware::Cluster& cluster, std::string_view version) {
  const std::size_t dot = version.find('.');
  if (dot == std::string_view::npos) { return; }
  const std::string_view behind = version.substr(dot + 1);
  const auto major = number(version.substr(0, dot)), minor = number(behind.substr(0, behind.find('.')));
  if (!major || !minor || std::pair{*major, *minor} >= kFirstInSwitch) { return; }
  for (auto& dimension : cluster.dimensions) { dimension.link.in_switch_efficiency = 0.0; }
}

// "Ring", "Ring (NVLS off)", "Tree", "NVLS", "NVLSTree forced"; a text that guesses or names several is automatic.
CollectiveAlgorithm algorithm_of(const CollectiveRow& row, const hardware::Cluster& cluster) {
  const std::string text = dashed(row.algo);
  if (has(text, "likely") || text.find_first_of("<>") != std::string::npos) { return CollectiveAlgorithm::automatic; }
  if (text.starts_with("nvls")) { return CollectiveAlgorithm::in_switch; }
  if (text.starts_with("tree")) { return CollectiveAlgorithm::tree; }
  if (!text.starts_with("ring")) { return CollectiveAlgorithm::automatic; }
  const auto several = std::count_if(cluster.dimensions.begin(), cluster.dimensions.end(),
                                     [](const auto& dimension) { return dimension.size > 1; });
  return several > 1 ? CollectiveAlgorithm::flat_ring : CollectiveAlgorithm::ring;
}

std::optional<std::string> missing_or_invalid(const CollectiveRow& row) {
  auto missing = not_stated({{row.size_bytes.has_value(), "size_bytes"}, {row.gpus.has_value(), "gpus"}});
  if (missing) { return missing; }
  return too_few_devices(*row.gpus);
}

}  // namespace

Result<std::monostate> add_parts(Parts& parts, const hardware::Catalogue& catalogue, const CollectiveRow& row) {
  if (const auto name = cluster_name(row); !name.empty() && !parts.clusters.contains(name)) {
    ORRERY_TRY(entry, catalogue.cluster(std::string(name), 0));
    parts.clusters.emplace(name, std::move(entry));
  }
  if (const auto name = link_name(row); !name.empty() && !parts.links.contains(name)) {
    ORRERY_TRY(entry, catalogue.link(std::string(name)));
    parts.links.emplace(name, std::move(entry));
  }
  return std::monostate{};
}

Skippable<CollectiveScenario> scenario_of(const CollectiveRow& row, const Parts& parts) {
  if (!row.unreadable.empty()) { return skip(row.unreadable); }
  if (auto reason = missing_or_invalid(row)) { return skip(std::move(*reason)); }
  const auto call = call_of(row.collective);
  if (!call) { return skip(fmt::format("collective: unknown operation {}", quote(row.collective))); }
  const std::string_view name = cluster_name(row);
  if (name.empty()) { return skip(unknown_accelerator(row.gpu_type)); }

  hardware::Cluster cluster = parts.clusters.find(name)->second;
  const MachineFacts& machine = *machine_of(row.gpu_type);
  if (row.intra_bw_GBps) { cluster.dimensions.front().bandwidth = BytesPerSecond(*row.intra_bw_GBps * 1e9); }
  fill_host(cluster, row, machine.hosts_share_domain);
  connect_hosts(cluster, row, parts);
  fill_nodes(cluster.dimensions, *row.gpus);
  remove_newer_features(cluster, row.nccl_version);
  auto scaled = hardware::scaled(std::move(cluster), *row.gpus);
  if (!scaled) { return skip(scaled.error().diagnostics.front().message); }

  CollectiveScenario scenario{std::move(*scaled), call->collective, CollectiveAlgorithm::automatic,
                              Bytes(*row.size_bytes)};
  scenario.algorithm = algorithm_of(row, scenario.cluster);
  return scenario;
}

}  // namespace orrery::validate
