#include "orrery/api/profile_machine.hpp"

#include <cmath>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "orrery/api/inputs.hpp"
#include "orrery/cost/kernel_cost.hpp"
#include "orrery/hardware/catalogue.hpp"
#include "orrery/network/fabric.hpp"
#include "orrery/validate/facts.hpp"
#include "orrery/workload/operators_kernels.hpp"

namespace orrery::api {

namespace {

std::optional<Collective> collective_of(const std::string& kind) {
  static const std::map<std::string, Collective> kKinds = {{"all_reduce", Collective::all_reduce},
                                                           {"all_gather", Collective::all_gather},
                                                           {"reduce_scatter", Collective::reduce_scatter},
                                                           {"all_to_all", Collective::all_to_all},
                                                           {"broadcast", Collective::broadcast},
                                                           {"reduce", Collective::reduce},
                                                           {"gather", Collective::gather},
                                                           {"scatter", Collective::scatter}};
  const auto found = kKinds.find(kind);
  return found == kKinds.end() ? std::nullopt : std::optional(found->second);
}

// Members that form a box of positions: the group on the dimensions of the cluster. Nothing for other sets.
std::optional<network::Group> group_of(const hardware::Cluster& cluster, const std::vector<std::uint64_t>& members) {
  network::Group group;
  std::uint64_t stride = 1;
  std::uint64_t product = 1;
  for (std::size_t d = 0; d < cluster.dimensions.size(); ++d) {
    const auto size = static_cast<std::uint64_t>(cluster.dimensions[d].size);
    std::set<std::uint64_t> coordinates;
    for (const std::uint64_t member : members) { coordinates.insert(member / stride % size); }
    if (coordinates.size() > 1) {
      group.extents.push_back({static_cast<int>(d), static_cast<std::int64_t>(coordinates.size())});
    }
    product *= coordinates.size();
    stride *= size;
  }
  return product == members.size() ? std::optional(group) : std::nullopt;
}

// Times on the wire for collectives whose size and members are known; how many these are.
std::uint64_t set_network(const hardware::Cluster& cluster, const profile::Replay& recorded, profile::ReplayJob& job) {
  const network::Fabric fabric(cluster);
  std::vector<std::optional<std::int64_t>> wires;
  std::uint64_t priced = 0;
  for (const profile::ReplayCollective& one : recorded.collectives) {
    const auto collective = collective_of(one.called.empty() ? one.kind : one.called);
    const auto group = group_of(cluster, one.members);
    std::optional<std::int64_t> wire;
    if (collective && group && one.bytes > 0 && one.members.size() > 1 && one.members.size() == one.group_size) {
      const bool shard = *collective == Collective::all_gather;
      const double bytes = static_cast<double>(one.bytes) * static_cast<double>(shard ? one.group_size : 1);
      const network::Price price = fabric.price(*collective, Bytes(bytes), *group);
      if (std::isfinite(price.time.value())) { wire = std::llround(price.time.value() * 1e9); }
    }
    priced += wire ? 1 : 0;
    wires.push_back(wire);
  }
  job.set_wire_times(wires);
  return priced;
}

std::optional<hardware::Precision> precision_of(const profile::WorkShape& work, const std::string& kernel,
                                                const hardware::Accelerator& accelerator) {
  using hardware::Precision;
  static const std::map<std::string, Precision> kFormats = {
      {"fp32", Precision::fp32}, {"fp16", Precision::fp16}, {"bf16", Precision::bf16}, {"fp8", Precision::fp8}};
  const auto found = kFormats.find(work.format);
  if (found == kFormats.end()) { return std::nullopt; }
  // fp32 operands are multiplied in TF32 where the kernel's name says so and the accelerator can.
  const bool tf32 = found->second == Precision::fp32 && kernel.find("tf32") != std::string::npos;
  return tf32 && accelerator.matrix_peak.contains("tf32") ? Precision::tf32 : found->second;
}

// Nothing for formats that the accelerator does not multiply.
std::optional<hardware::Kernel> kernel_of(const profile::WorkShape& work, const std::string& name,
                                          const hardware::Accelerator& accelerator) {
  using Kind = profile::WorkShape::Kind;
  const double element = work.element_bytes;
  if (work.kind == Kind::pass) { return workload::stream(work.elements * element); }
  const auto precision = precision_of(work, name, accelerator);
  if (!precision || accelerator.peak(*precision).value() <= 0) { return std::nullopt; }
  const profile::MatrixProduct& product = work.product;
  hardware::Kernel kernel = workload::gemm({.batch = product.groups,
                                            .m = product.m,
                                            .n = product.n,
                                            .k = product.k,
                                            .input = element,
                                            .output = std::max(element, 2.0)},
                                           *precision);
  if (work.kind != Kind::attention) { return kernel; }
  kernel.kind = hardware::KernelKind::attention;
  kernel.flops = 2.0 * kernel.flops;  // scores and values
  const double rows = static_cast<double>(product.groups) * static_cast<double>(product.k);
  kernel.bytes = Bytes(2.0 * element * rows * static_cast<double>(product.m + product.n));
  return kernel;
}

std::optional<double> factor_of(const profile::ReplayKernel& kernel, const hardware::Accelerator& from,
                                const hardware::Accelerator& to) {
  if (!kernel.shape || kernel.kind == profile::KernelClass::copy) { return std::nullopt; }
  const auto before = kernel_of(*kernel.shape, kernel.name, from);
  const auto after = kernel_of(*kernel.shape, kernel.name, to);
  if (!before || !after) { return std::nullopt; }
  const double factor = cost::kernel_cost(*after, to).time.value() / cost::kernel_cost(*before, from).time.value();
  return std::isfinite(factor) && factor > 0 ? std::optional(factor) : std::nullopt;
}

// The accelerator that a job was recorded on, or why it is not known.
Result<hardware::Accelerator> recorded_accelerator(const hardware::Catalogue& catalogue,
                                                   const profile::ReplayJob& job) {
  if (job.devices().empty()) { return fail("the profiles do not name their device"); }
  if (job.devices().size() > 1) {
    return fail(
        fmt::format("the ranks were recorded on different devices ({}, {})", job.devices()[0], job.devices()[1]));
  }
  const validate::MachineFacts* const machine = validate::machine_of(job.devices().front());
  if (machine == nullptr) { return fail(fmt::format("the catalogue has no {}", job.devices().front())); }
  ORRERY_TRY(cluster, catalogue.cluster(std::string(machine->cluster), 0));
  return cluster.accelerator;
}

std::string set_kernels(const hardware::Accelerator& from, const hardware::Accelerator& to, profile::ReplayJob& job) {
  std::vector<double> factors;
  std::int64_t kept_ns = 0;
  std::int64_t all_ns = 0;
  std::uint64_t kept = 0;
  std::uint64_t all = 0;
  for (const profile::ReplayKernel& kernel : job.kernels()) {
    const auto factor = factor_of(kernel, from, to);
    factors.push_back(factor.value_or(1));
    all += kernel.count;
    all_ns += kernel.time_ns;
    kept += factor ? 0 : kernel.count;
    kept_ns += factor ? 0 : kernel.time_ns;
  }
  job.scale_kernels(factors);
  const double share = all_ns > 0 ? 100 * static_cast<double>(kept_ns) / static_cast<double>(all_ns) : 0;
  return fmt::format(
      "time of {} of {} kernels and copies on the device ({:.1f} % of their time), whose operator has no "
      "recorded shapes or is not modelled; the others are scaled from {} to {}",
      kept, all, share, from.name, to.name);
}

}  // namespace

Result<std::vector<std::string>> set_machine(const std::string& data_directory, const std::string& name,
                                             profile::ReplayJob& job) {
  ORRERY_TRY(recorded, job.run({}));
  const hardware::Catalogue catalogue(data_directory);
  ORRERY_TRY(cluster, catalogue.cluster(name, static_cast<std::int64_t>(recorded.ranks.size()),
                                        hardware::UnlikeNodes{"a profile on another machine"}));
  const std::uint64_t priced = set_network(cluster, recorded, job);
  std::vector<std::string> kept = {
      fmt::format("time on the wire of {} of {} collectives, whose size or members are not "
                  "known",
                  recorded.collectives.size() - priced, recorded.collectives.size())};
  const auto from = recorded_accelerator(catalogue, job);
  kept.push_back(from ? set_kernels(*from, cluster.accelerator, job)
                      : fmt::format("time of kernels and copies on the device: {}", from.error().text()));
  return kept;
}

}  // namespace orrery::api
