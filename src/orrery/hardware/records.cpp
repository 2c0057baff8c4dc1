#include "orrery/hardware/records.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "orrery/core/text.hpp"
#include "orrery/hardware/topology_records.hpp"

namespace orrery::config {
namespace {

using hardware::Accelerator;
using hardware::Cluster;
using hardware::LinkClass;
using hardware::NetworkDimension;
using hardware::PoolLevel;
using hardware::Protocol;
using hardware::SecondTier;
using hardware::Stack;
using hardware::Wiring;

// Bounds far outside real hardware, so that no time overflows or underflows.
constexpr double kLeastFraction = 1e-6;
constexpr BytesPerSecond kLeastBandwidth{1.0};
constexpr BytesPerSecond kMostBandwidth{1e18};
constexpr FlopsPerSecond kLeastPeak{1.0};
constexpr FlopsPerSecond kMostPeak{1e21};
constexpr Bytes kLeastMemory{1.0};
constexpr Bytes kMostMemory{1e18};

// A part of a nominal rate.
constexpr Bounds<double> kFraction{.min = kLeastFraction, .max = 1.0};
constexpr Bounds<double> kFractionOrZero{.min = 0.0, .max = 1.0};

constexpr std::string_view kSourcesDoc = "figure -> source; \"unverified: why\" where no source was read";

constexpr std::string_view kBasisDoc =
    "basis of its efficiencies: measured (on this product), generation (on another product of it), or prior (other "
    "generations)";

// Reports the first unknown name only.
template <class Values>
Objection unknown_key(std::string_view field, const Values& values, const std::vector<std::string>& known) {
  for (const auto& [name, value] : values) {
    if (std::find(known.begin(), known.end(), name) != known.end()) { continue; }
    const auto near = nearest(name, known);
    return {fmt::format("/{}/{}", field, name),
            fmt::format("{}: unknown precision {}; {}", field, quote(name),
                        near ? fmt::format("did you mean {}?", quote(*near)) : "valid: " + join(known, ", "))};
  }
  return {};
}

std::vector<std::string> precision_names() {
  std::vector<std::string> names;
  for (const auto precision : hardware::kAllPrecisions) { names.emplace_back(hardware::name_of(precision)); }
  return names;
}

Objection unknown_precision_of(const Accelerator& accelerator) {
  Objection wrong = unknown_key("matrix_peak", accelerator.matrix_peak, precision_names());
  if (!wrong.message.empty()) { return wrong; }
  return hardware::unknown_precision("matrix_efficiency_of", accelerator.matrix_efficiency_of);
}

template <class Items>
Objection names_are_distinct(std::string_view list, const Items& items) {
  std::set<std::string> seen;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string& name = items[i].name;
    if (seen.insert(name).second) { continue; }
    return {fmt::format("/{}/{}/name", list, i),
            fmt::format("the name {} occurs twice in {}; names must differ", quote(name), list)};
  }
  return {};
}

Objection protocols_are_distinct(const LinkClass& link) { return names_are_distinct("protocols", link.protocols); }

Objection in_switch_rate_is_sane(const LinkClass& link) {
  if (link.in_switch_efficiency == 0.0 || link.in_switch_efficiency >= kLeastFraction) { return {}; }
  return {"/in_switch_efficiency",
          fmt::format("{} is too small; must be 0 or at least {}", link.in_switch_efficiency, kLeastFraction)};
}

Objection dimensions_are_few_and_distinct(const Cluster& cluster) {
  if (cluster.dimensions.size() > hardware::kMaxDimensions) {
    return {fmt::format("/dimensions/{}", hardware::kMaxDimensions),
            fmt::format("{} dimensions; at most {} are allowed", cluster.dimensions.size(), hardware::kMaxDimensions)};
  }
  return names_are_distinct("dimensions", cluster.dimensions);
}

Objection nodes_are_few(const Cluster& cluster) {
  if (cluster.nodes.size() <= hardware::kMostNodeKinds) { return {}; }
  return {"/nodes", fmt::format("{} entries; at most {} are allowed", cluster.nodes.size(), hardware::kMostNodeKinds)};
}

Objection second_tier_is_reachable(const Cluster& cluster) {
  const SecondTier& tier = cluster.second_tier;
  if (!(tier.memory > Bytes()) || tier.bandwidth >= kLeastBandwidth) { return {}; }
  return {"/second_tier/bandwidth", "missing or 0; a second_tier with memory needs a bandwidth"};
}

// Levels from the devices outwards: each is shared by as many devices as the one before, or several times as many.
Objection pool_is_reachable(const Cluster& cluster) {
  const SecondTier& tier = cluster.second_tier;
  if (tier.levels.empty()) { return {}; }
  if (!(tier.memory > Bytes())) { return {"/second_tier/levels", "lead to no memory; second_tier needs memory"}; }
  std::int64_t before = 1;
  for (std::size_t i = 0; i < tier.levels.size(); ++i) {
    const hardware::PoolLevel& level = tier.levels[i];
    if (level.devices % before != 0) {
      return {fmt::format("/second_tier/levels/{}/devices", i),
              fmt::format("{} devices cannot reach the pool over {}: must be a multiple of the {} that share the level "
                          "before",
                          level.devices, quote(level.name), before)};
    }
    before = level.devices;
  }
  return names_are_distinct("second_tier/levels", tier.levels);
}

Objection meshes_are_sized(const Cluster& cluster) {
  for (std::size_t i = 0; i < cluster.dimensions.size(); ++i) {
    const auto& dimension = cluster.dimensions[i];
    if (!hardware::has_pair_links(dimension.wiring) || dimension.size != 0) { continue; }
    return {fmt::format("/dimensions/{}/size", i),
            fmt::format("dimension {} needs a size: a mesh has a link for every pair of its devices",
                        quote(dimension.name))};
  }
  return {};
}

Objection dimensions_are_sized(const Cluster& cluster) {
  for (std::size_t i = 0; i + 1 < cluster.dimensions.size(); ++i) {
    if (cluster.dimensions[i].size == 0) {
      return {fmt::format("/dimensions/{}/size", i),
              fmt::format("dimension {} needs a size: only the last one may follow from the number of devices",
                          quote(cluster.dimensions[i].name))};
    }
  }
  return {};
}

}  // namespace

const Record<Accelerator>& Described<Accelerator>::record() {
  static const auto record =
      Record<Accelerator>("accelerator", "One accelerator. Rates are dense; figures are per device.")
          .optional("name", &Accelerator::name, "name; default: the file's name")
          .optional("description", &Accelerator::description, "product name as the vendor writes it")
          .optional("maker", &Accelerator::maker,
                    "NVIDIA, AMD, Google, Intel or AWS: which software stacks run on it; not given: all")
          .required("matrix_peak", &Accelerator::matrix_peak, "dense matrix-unit peak by precision",
                    {.min = kLeastPeak, .max = kMostPeak, .nonempty = true})
          .required("vector_peak", &Accelerator::vector_peak, "fp32 rate of the ordinary ALUs",
                    {.min = kLeastPeak, .max = kMostPeak})
          .required("memory", &Accelerator::memory, "capacity of device memory",
                    {.min = kLeastMemory, .max = kMostMemory})
          .required("memory_bandwidth", &Accelerator::memory_bandwidth, "peak rate of device memory",
                    {.min = kLeastBandwidth, .max = kMostBandwidth, .unit = "TB/s"})
          .required("cache", &Accelerator::cache, "last-level on-chip cache", {.max = kMostMemory, .unit = "MiB"})
          .optional("gemm_traffic", &Accelerator::gemm_traffic,
                    "compulsory: GEMMs read each operand once; blocked: one of them in blocks that fill the cache, the "
                    "other one once for every block")
          .required("cores", &Accelerator::cores, "independent cores that a kernel's tiles spread over",
                    {.min = 1, .max = 10'000'000})
          .required("matrix_efficiency", &Accelerator::matrix_efficiency, "best measured GEMM rate / matrix_peak",
                    kFraction)
          .optional("matrix_efficiency_of", &Accelerator::matrix_efficiency_of,
                    "the same per precision, where it differs", {.min = kLeastFraction, .max = 1.0})
          .optional(
              "split_accumulation", &Accelerator::split_accumulation,
              "rate of fp8 GEMMs that add partial sums in fp32 (backward, block scales) / rate of other fp8 GEMMs",
              kFraction)
          .required("attention_efficiency", &Accelerator::attention_efficiency,
                    "best fused-attention rate / matrix_peak", kFraction)
          .optional("grouped_rate", &Accelerator::grouped_rate, "rate of GEMMs grouped by expert / rate of plain GEMMs",
                    kFraction)
          .optional("portable_attention", &Accelerator::portable_attention,
                    "rate of attention kernels without native instructions / rate of native ones", kFraction)
          .optional("portable_gemm", &Accelerator::portable_gemm, "the same of GEMMs", kFraction)
          .optional("exponential_rate", &Accelerator::exponential_rate,
                    "exponentials per second (as TFLOP/s), which limit attention with small heads; 0: unknown",
                    {.max = kMostPeak})
          .required("memory_efficiency", &Accelerator::memory_efficiency,
                    "best measured streaming rate / memory_bandwidth", kFraction)
          .required("kernel_latency", &Accelerator::kernel_latency,
                    "time of a kernel without work: launch on the device, first loads, last stores",
                    {.max = Seconds(1.0)})
          .optional("stream_latency", &Accelerator::stream_latency,
                    "the same of kernels that are not GEMMs; not given: kernel_latency", {.max = Seconds(1.0)})
          .optional("power_slowdown", &Accelerator::power_slowdown,
                    "relative slowdown of long GEMMs when power limits the clock", {.min = 0.0, .max = 10.0})
          .optional("block_scaled_loads", &Accelerator::block_scaled_loads,
                    "rate at which block-scaled GEMMs load operands / streaming rate", kFraction)
          .optional("block_scaled_latency", &Accelerator::block_scaled_latency,
                    "latency of a block-scaled GEMM in addition to kernel_latency", {.max = Seconds(1.0)})
          .optional("basis", &Accelerator::basis, std::string(kBasisDoc))
          .optional("tdp_watts", &Accelerator::tdp_watts, "thermal design power, W; 0 = unknown",
                    {.min = 0.0, .max = 1e6})
          .optional("idle_watts", &Accelerator::idle_watts, "while no kernel runs, W", {.min = 0.0, .max = 1e6})
          .optional("price_usd", &Accelerator::price_usd, "of one device, USD; 0 = unknown", {.min = 0.0, .max = 1e9})
          .optional("sources", &Accelerator::sources, std::string(kSourcesDoc))
          .check(unknown_precision_of);
  return record;
}

const Record<Protocol>& Described<Protocol>::record() {
  static const auto record =
      Record<Protocol>("protocol", "One wire protocol of a collective library on a link class.")
          .required("name", &Protocol::name, "name, as the library writes it", {.nonempty = true})
          .required("ring_base", &Protocol::ring_base, "once per ring collective", {.max = Seconds(1.0)})
          .required("ring_step", &Protocol::ring_step, "per ring step on this link", {.max = Seconds(1.0)})
          .required("tree_base", &Protocol::tree_base, "once per tree collective", {.max = Seconds(1.0)})
          .required("tree_step", &Protocol::tree_step, "per tree hop on this link", {.max = Seconds(1.0)})
          .optional("bandwidth_fraction", &Protocol::bandwidth_fraction,
                    "payload bandwidth / bandwidth that a large message reaches on the link", kFraction)
          .optional("own_share", &Protocol::own_share,
                    "part of a member's own shard that takes as long as a shard on the link", {.min = 0.0, .max = 1.0})
          .optional("until", &Protocol::until,
                    "nominal time of a step's bytes above which the library changes to a protocol with more payload; 0 "
                    "= never")
          .optional("exchange_base", &Protocol::exchange_base, "in addition to ring_base in all-to-all",
                    {.max = Seconds(1.0)})
          .optional("exchanges", &Protocol::exchanges, "all-to-all uses this protocol");
  return record;
}

const Record<LinkClass>& Described<LinkClass>::record() {
  static const auto record =
      Record<LinkClass>("link", "A class of links: what does not depend on their number.")
          .optional("name", &LinkClass::name, "name; default: the file's name")
          .optional("description", &LinkClass::description, "product name")
          .optional("port", &LinkClass::port, "bandwidth of one port and direction; 0 = every device has its own port",
                    {.max = kMostBandwidth, .unit = "Gb/s"})
          .required("efficiency", &LinkClass::efficiency, "best measured payload rate / nominal bandwidth", kFraction)
          .required("latency", &LinkClass::latency, "of one message, software included", {.max = Seconds(1.0)})
          .required("protocols", &LinkClass::protocols, "wire protocols of the collective library", {.nonempty = true})
          .optional("exchange_peer", &LinkClass::exchange_peer,
                    "of every peer of a device in an all-to-all after the first: a message that the library starts",
                    {.max = Seconds(1.0)})
          .optional("in_switch_base", &LinkClass::in_switch_base, "once per in-switch collective",
                    {.max = Seconds(1.0)})
          .optional("in_switch_step", &LinkClass::in_switch_step, "per traversal of the reducing switch",
                    {.max = Seconds(1.0)})
          .optional("in_switch_efficiency", &LinkClass::in_switch_efficiency,
                    "part of the bandwidth that in-switch traffic reaches; 0 = the switch cannot reduce",
                    kFractionOrZero)
          .optional("picojoules_per_bit", &LinkClass::picojoules_per_bit, "energy of one cable, both ends, pJ",
                    {.min = 0.0, .max = 1e6})
          .optional("basis", &LinkClass::basis, std::string(kBasisDoc))
          .optional("sources", &LinkClass::sources, std::string(kSourcesDoc))
          .check(protocols_are_distinct)
          .check(in_switch_rate_is_sane);
  return record;
}

const Record<NetworkDimension>& Described<NetworkDimension>::record() {
  static const auto record =
      Record<NetworkDimension>("dimension", "How devices that differ in one coordinate are connected.")
          .required("name", &NetworkDimension::name, "name, e.g. nvlink", {.nonempty = true})
          .optional("wiring", &NetworkDimension::wiring, "how the devices of the dimension are connected")
          .optional("size", &NetworkDimension::size,
                    "devices along it; 0 (last dimension only) = as many as the cluster needs",
                    {.min = 0, .max = hardware::kMaxDevices})
          .optional("host", &NetworkDimension::host,
                    "devices of one host, where the innermost dimension has several: jobs take whole hosts",
                    {.min = 0, .max = hardware::kMaxDevices})
          .optional("most", &NetworkDimension::most,
                    "of a dimension without a size: devices along it at most; 0 = no limit",
                    {.min = 0, .max = hardware::kMaxDevices})
          .required("bandwidth", &NetworkDimension::bandwidth, "per device and direction",
                    {.min = kLeastBandwidth, .max = kMostBandwidth, .unit = "Gb/s"})
          .optional("oversubscription", &NetworkDimension::oversubscription,
                    "of its switches: bandwidth of all devices / bandwidth through the switches; 1 = non-blocking. If "
                    "given, the dimension is a tier of switches above the next inner one and uses its ports",
                    {.min = 1.0, .max = 1e4})
          .required("link", &NetworkDimension::link, "a link class, or the name of one");
  return record;
}

const Record<SecondTier>& Described<SecondTier>::record() {
  static const auto record =
      Record<SecondTier>("second tier", "Second memory tier (host memory or a pool); figures are a device's share.")
          .optional("memory", &SecondTier::memory, "a device's share; 0 = no second tier", {.max = kMostMemory})
          .optional("bandwidth", &SecondTier::bandwidth, "of a device to it, per direction",
                    {.max = kMostBandwidth, .unit = "GB/s"})
          .optional("latency", &SecondTier::latency, "of one transfer", {.max = Seconds(1.0)})
          .optional("memory_bandwidth", &SecondTier::memory_bandwidth,
                    "of the host's own memory, nominal, reads and writes together; 0 = unknown: no --optimizer-device "
                    "host",
                    {.max = kMostBandwidth, .unit = "GB/s"})
          .optional("update_efficiency", &SecondTier::update_efficiency,
                    "part of memory_bandwidth that an optimizer update by the host reaches", {.min = 0.01, .max = 1.0})
          .optional("levels", &SecondTier::levels, "of a pool, from the devices outwards: what devices share");
  return record;
}

const Record<PoolLevel>& Described<PoolLevel>::record() {
  static const auto record =
      Record<PoolLevel>("level of a pool", "Links, switches or memories on the way to a pool, shared by neighbours.")
          .required("name", &PoolLevel::name, "name")
          .required("devices", &PoolLevel::devices, "neighbours that share it",
                    {.min = 1, .max = hardware::kMaxDevices})
          .optional("units", &PoolLevel::units, "how many of them these devices have; accesses are striped over all",
                    {.min = 1, .max = hardware::kMaxDevices})
          .required("bandwidth", &PoolLevel::bandwidth, "of a unit, per direction",
                    {.min = kLeastBandwidth, .max = kMostBandwidth, .unit = "GB/s"})
          .optional("combines", &PoolLevel::combines,
                    "its switch multicasts loads of a process group, and reduces its stores");
  return record;
}

const Record<hardware::Nodes>& Described<hardware::Nodes>::record() {
  using hardware::Nodes;
  static const auto record =
      Record<Nodes>("nodes", "Nodes with the same accelerators.")
          .required("count", &Nodes::count, "number of nodes (groups of the innermost dimension)",
                    {.min = 1, .max = hardware::kMaxDevices})
          .required("accelerator", &Nodes::accelerator, "an accelerator, or the name of one; default: the cluster's");
  return record;
}

const Record<Cluster>& Described<Cluster>::record() {
  static const auto record =
      Record<Cluster>("cluster", "Accelerators connected by network dimensions, innermost first.")
          .optional("name", &Cluster::name, "name; default: the file's name")
          .optional("description", &Cluster::description, "product name")
          .required("accelerator", &Cluster::accelerator,
                    "an accelerator, or the name of one; default: that of the first nodes")
          .optional("nodes", &Cluster::nodes, "nodes of several kinds of accelerators, in the order of devices")
          .required("dimensions", &Cluster::dimensions, "network dimensions, innermost first", {.nonempty = true})
          .optional("topology", &Cluster::topology, "the network as switches and links, instead of dimensions")
          .optional("second_tier", &Cluster::second_tier, "second memory tier: host memory, or a pool")
          .optional("devices", &Cluster::devices, "number of accelerators; 0 = product of the sizes",
                    {.min = 0, .max = hardware::kMaxDevices})
          .optional("node_power_watts", &Cluster::node_power_watts,
                    "of one innermost-dimension group, everything included, W; 0 = unknown", {.min = 0.0, .max = 1e9})
          .optional("node_price_usd", &Cluster::node_price_usd, "of one innermost-dimension group, USD; 0 = unknown",
                    {.min = 0.0, .max = 1e12})
          .optional("usd_per_device_hour", &Cluster::usd_per_device_hour, "rented, USD; 0 = unknown",
                    {.min = 0.0, .max = 1e6})
          .optional("host_slowdown", &Cluster::host_slowdown,
                    "host times of inference engines over those of their profiles", {.min = 0.1, .max = 10.0})
          .optional("speed_spread", &Cluster::speed_spread,
                    "relative standard deviation of nodes' times for the same work (stragglers)",
                    {.min = 0.0, .max = 1.0})
          .optional("sources", &Cluster::sources, std::string(kSourcesDoc))
          .check(nodes_are_few)
          .check(dimensions_are_few_and_distinct)
          .check(dimensions_are_sized)
          .check(meshes_are_sized)
          .check(second_tier_is_reachable)
          .check(pool_is_reachable);
  return record;
}

namespace {

using hardware::AttentionPolicy;
using hardware::DispatchPolicy;
using hardware::FusionPolicy;
using hardware::GradientPolicy;
using hardware::HostPolicy;
using hardware::OptimizerPolicy;
using hardware::OverlapPolicy;
using hardware::StoragePolicy;
using hardware::TablePolicy;
using hardware::TransferPolicy;

// A policy has no name in a file: its keys are the stack's own.
template <class Policy>
Record<Policy> policy() {
  return Record<Policy>("", "");
}

Record<AttentionPolicy> attention_policy() {
  return policy<AttentionPolicy>()
      .optional("attention", &AttentionPolicy::kernel, "attention kernel")
      .optional("causal_skip", &AttentionPolicy::causal_skip, "the attention kernel skips masked blocks")
      .optional("attention_rate", &AttentionPolicy::rate,
                "rate of this stack's attention kernel / best rate of fused attention on the accelerator", kFraction)
      .optional("native_attention", &AttentionPolicy::native,
                "the attention kernel uses the matrix instructions that are new in the accelerator's generation");
}

Record<StoragePolicy> storage_policy() {
  return policy<StoragePolicy>()
      .optional("prefill_tokens", &StoragePolicy::prefill_tokens,
                "tokens of prompts that one pass reads at most: activations of no more are kept; 0 = all",
                {.min = 0, .max = 1e9})
      .optional("narrow_cache", &StoragePolicy::narrow_cache,
                "keys and values are stored in the format of GEMM inputs where that is narrower")
      .optional("narrow_activations", &StoragePolicy::narrow_activations,
                "the input of a gated activation is stored for backward in the format of GEMM inputs")
      .optional(
          "attention_output_element", &StoragePolicy::attention_output_element,
          "an element of attention's output, stored once for the backward of attention and of the projection after "
          "it, where GEMM inputs are narrower than activations; 0 = twice, in both formats",
          {.max = Bytes(4.0)});
}

Record<FusionPolicy> fusion_policy() {
  return policy<FusionPolicy>()
      .optional("fused_elementwise", &FusionPolicy::elementwise,
                "bias + activation, and bias + dropout + residual, are one kernel each")
      .optional("fused_loss", &FusionPolicy::loss, "vocabulary loss without fp32 copies of logits in memory")
      .optional("fused_gradient_accumulation", &FusionPolicy::gradient_accumulation,
                "weight-gradient GEMMs accumulate into the gradient buffer")
      .optional("fused_decode_rotary", &FusionPolicy::decode_rotary,
                "inference: rotary positions are part of attention's kernels")
      .optional("fused_heads", &FusionPolicy::heads,
                "inference: a prompt's heads need no kernels that split and join them and write keys and values to the "
                "cache")
      .optional("fused_experts", &FusionPolicy::experts, "activation and casts of experts are part of their GEMMs")
      .optional("grouped_experts", &FusionPolicy::grouped_experts,
                "the GEMMs of a rank's experts are one grouped GEMM; else experts run one after another");
}

Record<OverlapPolicy> overlap_policy() {
  return policy<OverlapPolicy>()
      .optional("overlap_tp_backward", &OverlapPolicy::tp_backward,
                "the reduction of a layer's input gradient overlaps the weight-gradient GEMM")
      .optional("overlap_gradient_reduce", &OverlapPolicy::gradient_reduce,
                "the data-parallel reduction of gradients overlaps the backward pass")
      .optional("overlap_parameter_gather", &OverlapPolicy::parameter_gather,
                "the all-gather of sharded weights overlaps the next forward pass")
      .optional("overlap_dispatch", &OverlapPolicy::dispatch,
                "dispatch and combine of one micro-batch overlap the kernels of another")
      .optional("aligned_gradient_reduce", &OverlapPolicy::aligned_reduce,
                "pipeline stages launch their gradient reductions at the same time")
      .optional("interference", &OverlapPolicy::interference,
                "part of a kernel's rate that is lost while a gather or reduction runs", {.min = 0.0, .max = 0.9});
}

Record<GradientPolicy> gradient_policy() {
  return policy<GradientPolicy>()
      .optional("gradient_element", &GradientPolicy::element, "gradient accumulation buffer, per weight",
                {.max = Bytes(64.0), .unit = "B"})
      .optional("bucket_parameters", &GradientPolicy::bucket_parameters,
                "weights in a gradient bucket; 0 = one bucket a layer", {.min = 0.0, .max = 1e15})
      .optional("bucket_parameters_per_replica", &GradientPolicy::bucket_parameters_per_replica,
                "a gradient bucket has at least this number of weights for each rank of dp x cp",
                {.min = 0.0, .max = 1e15})
      .optional(
          "reduce_every", &GradientPolicy::reduce_every,
          "when sharded gradients (ZeRO-2, ZeRO-3) are reduced: in every micro-batch, once a step, or once a step "
          "with pipeline stages and in every micro-batch without")
      .optional("gradient_reduce_element", &GradientPolicy::reduce_element,
                "element on the wire of the data-parallel reduction",
                {.max = Bytes(64.0), .positive = true, .unit = "B"})
      .optional("gradient_norm", &GradientPolicy::norm,
                "the norm of all gradients is computed before the optimizer (clipping)");
}

Record<DispatchPolicy> dispatch_policy() {
  return policy<DispatchPolicy>()
      .optional(
          "dispatch_per_node", &DispatchPolicy::copies,
          "one copy of a token to every node that has experts for it, distributed there; else one to every expert")
      .optional("dispatch_low_latency", &DispatchPolicy::low_latency,
                "generated tokens: one copy to every expert, straight to its rank, inside a node and between nodes at "
                "the same time, by kernels that also sort and add (low-latency kernels)")
      .optional(
          "replicated_tokens", &DispatchPolicy::replicated_tokens,
          "inference: the ranks of a tensor-parallel group compute their experts' part of the same tokens, and one "
          "all-reduce adds the parts; else tokens are dispatched")
      .optional("dispatch_element", &DispatchPolicy::element, "element of tokens sent to experts; 0 = as activations",
                {.max = Bytes(64.0), .unit = "B"})
      .optional("dispatch_fp4_element", &DispatchPolicy::fp4_element,
                "element of tokens sent to experts whose GEMMs are in fp4; 0 = dispatch_element",
                {.max = Bytes(64.0), .unit = "B"});
}

Record<OptimizerPolicy> optimizer_policy() {
  return policy<OptimizerPolicy>()
      .optional("master_element", &OptimizerPolicy::master_element,
                "master copy of a weight; 0 when weights are their own master", {.max = Bytes(64.0), .unit = "B"})
      .optional(
          "shards_are_master", &OptimizerPolicy::shards_are_master,
          "ZeRO-3: the sharded weights are the master copy; the copy that is computed with exists only while it is "
          "gathered")
      .optional("owns_whole_tensors", &OptimizerPolicy::owns_whole_tensors,
                "ZeRO-1: a rank owns whole tensors; gradients are all-reduced, and each owner broadcasts its weights "
                "after the update; else every rank owns an equal part of all weights")
      .optional("moment_element", &OptimizerPolicy::state_element,
                "optimizer state per weight with Adam, all moments together", {.max = Bytes(64.0), .unit = "B"});
}

Record<TablePolicy> table_policy() {
  return policy<TablePolicy>()
      .optional("table_moment_element", &TablePolicy::state_element, "optimizer state per weight of an embedding table",
                {.max = Bytes(64.0), .unit = "B"})
      .optional("table_moment_row", &TablePolicy::row_state_element,
                "additional optimizer state per row of an embedding table", {.max = Bytes(64.0), .unit = "B"})
      .optional("table_exchange_element", &TablePolicy::exchange_element,
                "element of looked-up vectors and their gradients in the all-to-all; 0 = as activations",
                {.max = Bytes(64.0), .unit = "B"});
}

Record<TransferPolicy> transfer_policy() {
  return policy<TransferPolicy>()
      .optional("scatter_transfers", &TransferPolicy::stages,
                "between stages every rank sends 1 / tp of an activation and the receivers gather")
      .optional("single_port", &TransferPolicy::ports,
                "a collective of several devices a node, over more than two nodes, uses one port of each node")
      .optional("one_shot", &TransferPolicy::one_shot,
                "time of an all-reduce without bytes by the engine's own kernels, in which every device reads the "
                "others' buffers; 0 = by the collective library",
                {.max = Seconds(1.0), .unit = "us"});
}

Record<HostPolicy> host_policy() {
  return policy<HostPolicy>()
      .optional("launch_time", &HostPolicy::launch_time,
                "host time to issue one kernel or collective of a forward or backward pass",
                {.max = Seconds(1.0), .unit = "us"})
      .optional("kernel_gap", &HostPolicy::kernel_gap,
                "device time before each kernel that is launched one by one, not in a captured graph",
                {.max = Seconds(1.0)})
      .optional("latency_hidden", &HostPolicy::latency_hidden,
                "part of the latency of a kernel that passes under the kernel before (dependent launch in graphs)",
                {.min = 0.0, .max = 1.0})
      .optional("captures_requests", &HostPolicy::captures_requests,
                "batches of requests run as captured graphs, which the host issues as one; else as in training, kernel "
                "by kernel")
      .optional("kernel_launch_time", &HostPolicy::kernel_launch_time,
                "host time of each kernel of an operator after its first one; 0 = as launch_time, and one kernel for "
                "all experts",
                {.max = Seconds(1.0), .unit = "us"})
      .optional("host_overhead", &HostPolicy::step_overhead, "host time per step that is not hidden",
                {.max = Seconds(3600.0), .unit = "ms"});
}

Record<hardware::StackLimits> stack_limits() {
  using hardware::StackLimits;
  return policy<StackLimits>()
      .optional("tasks", &StackLimits::tasks, "what it runs: pretrain, finetune, inference; empty = everything")
      .optional("models", &StackLimits::models,
                "classes of models that it has: transformer, encoder-decoder, vision, recommender; empty = all")
      .optional("makers", &StackLimits::makers,
                "makers of the accelerators that it runs on: NVIDIA, AMD, Google, Intel, AWS; empty = all")
      .optional("schedules", &StackLimits::schedules, "pipeline schedules that it has, as in --schedule; empty = all")
      .optional("shardings", &StackLimits::shardings,
                "shardings over data parallelism that it has: stages as in --zero, and hybrid (--shard); empty = all")
      .optional("optimizers", &StackLimits::optimizers, "optimizers that it has, as in --optimizer; empty = all")
      .optional("overlaps", &StackLimits::overlaps,
                "overlaps of tensor-parallel communication that it has, as in --tp-overlap; empty = all");
}

}  // namespace

const Record<Stack>& Described<Stack>::record() {
  static const auto record =
      Record<Stack>("stack", "What a training framework does that a model and a plan do not specify.")
          .optional("name", &Stack::name, "name; default: the file's name")
          .optional("description", &Stack::description, "framework and settings that it describes")
          .optional("instead_on", &Stack::instead_on,
                    "maker of accelerators -> profile that describes this software there, where it differs")
          .part(&Stack::attention, attention_policy())
          .part(&Stack::storage, storage_policy())
          .part(&Stack::fusion, fusion_policy())
          .optional("fp8_recipe", &Stack::fp8_recipe, "default of --fp8-recipe")
          .optional("sampling", &Stack::sampling,
                    "inference: how a token is picked: the largest logit, or top-p over sorted probabilities")
          .optional("stream_traffic", &Stack::stream_traffic,
                    "memory traffic of element-wise kernels / least possible (copies, casts, separate accumulations)",
                    {.min = 1.0, .max = 100.0})
          .part(&Stack::overlap, overlap_policy())
          .part(&Stack::gradients, gradient_policy())
          .part(&Stack::dispatch, dispatch_policy())
          .part(&Stack::optimizer, optimizer_policy())
          .part(&Stack::tables, table_policy())
          .part(&Stack::transfers, transfer_policy())
          .part(&Stack::host, host_policy())
          .part(&Stack::limits, stack_limits())
          .optional("pads_heads", &Stack::pads_heads,
                    "attention heads are padded to a multiple of tp, and key-value heads replicated to tp; false: tp "
                    "must divide the heads")
          .optional("memory_reserve", &Stack::memory_reserve, "part of device memory that tensors cannot use",
                    {.min = 0.0, .max = 0.9})
          .optional("sources", &Stack::sources, std::string(kSourcesDoc));
  return record;
}

}  // namespace orrery::config

namespace orrery::hardware {

config::Objection unknown_precision(std::string_view field, const std::map<std::string, double>& values) {
  return config::unknown_key(field, values, config::precision_names());
}

}  // namespace orrery::hardware
