// The system file: how ranks issue work, split collectives and reach their memory.
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "orrery/config/foreign_file.hpp"
#include "orrery/core/text.hpp"
#include "orrery/simulate/read_inputs.hpp"

namespace orrery::simulate {

using config::ForeignFile;
using config::Kind;
using config::Node;

namespace {

constexpr std::array<std::string_view, 3> kPolicies = {"LIFO", "FIFO", "EXPLICIT"};
constexpr std::array<std::string_view, 2> kOptimizations = {"baseline", "localBWAware"};
// By Collective; broadcasts have no key.
constexpr std::array<std::string_view, 4> kImplementation = {"all-reduce-implementation", "all-gather-implementation",
                                                             "reduce-scatter-implementation",
                                                             "all-to-all-implementation"};

void unknown_algorithm(ForeignFile& file, const Node& item, std::string_view key) {
  std::vector<std::string> names;
  for (const Builtin& builtin : builtin_algorithms()) { names.emplace_back(builtin.name); }
  const auto near = item.is_scalar() ? nearest(item.scalar, names) : std::nullopt;
  file.add_error(item.place, near ? fmt::format("{} is {}; did you mean {}?", key, quote(item.scalar), *near)
                                  : fmt::format("{} is {}; valid: {}", key, quote(item.scalar), join(names, ", ")));
}

Choice read_choice(ForeignFile& file, std::string_view key) {
  const std::string custom_key = std::string(key) + "-custom";
  std::vector<DimensionAlgorithm> algorithms;
  for (const Node* item : file.list(key, false)) {
    const auto known = item->is_scalar() ? algorithm(item->scalar) : std::nullopt;
    if (known) {
      algorithms.push_back(*known);
    } else {
      unknown_algorithm(file, *item, key);
    }
  }
  const auto custom = file.list(custom_key, false);
  if (custom.empty()) { return algorithms; }
  if (custom.size() != 1 || !custom.front()->is_scalar()) {
    file.add_error(custom.front()->place, fmt::format("{} is not a list with one prefix of graphs", custom_key));
    return algorithms;
  }
  return custom.front()->scalar;
}

std::map<std::uint64_t, std::string> read_custom_of_node(ForeignFile& file) {
  std::map<std::uint64_t, std::string> custom;
  const Node* name = file.find("per-node-custom-implementation");
  if (name == nullptr) { return custom; }
  auto map = ForeignFile::open(name->scalar);
  if (!map) {
    for (const Diagnostic& diagnostic : map.error().diagnostics) {
      file.add_error(diagnostic.place, diagnostic.message);
    }
    return custom;
  }
  for (const config::Member& member : map->root().members) {
    std::uint64_t id = 0;
    const char* end = member.key.data() + member.key.size();
    const auto [stopped, error] = std::from_chars(member.key.data(), end, id);
    if (error != std::errc() || stopped != end || !member.value.is_scalar()) {
      file.add_error(member.place(), "is not a node id with a prefix of graphs");
      continue;
    }
    custom.emplace(id, member.value.scalar);
  }
  return custom;
}

void read_ignored(ForeignFile& file) {
  constexpr std::string_view kNever = "has no effect (in ASTRA-sim, too)";
  file.ignored("boost-mode", kNever);
  file.ignored("trace-enabled", "has no effect: Orrery does not write ASTRA-sim's log");
  file.ignored("track-local-mem", "has no effect: --memory reports the tensors of nodes over time");
  file.ignored("local-mem-trace-filename", "has no effect: --memory --json has the points of time");
}

// Settings of ASTRA-sim 1.0 that later releases ignore. The second one has an effect with the first one only.
void read_chunk_order(ForeignFile& file, Semantics semantics, System& system) {
  constexpr std::string_view kInter = "inter-dimension-scheduling", kIntra = "intra-dimension-scheduling";
  if (semantics == Semantics::physical) {
    for (const std::string_view key : {kInter, kIntra}) { file.ignored(key, "has no effect under physical semantics"); }
    return;
  }
  const auto is = [&](std::string_view key, std::string_view name, std::string_view other) {
    const Node* node = file.root().find(key);
    return node != nullptr && (node->scalar == name || node->scalar == other);
  };
  if (is(kInter, "themis", "offlineGreedy")) {
    system.inter_dimension = InterDimension::themis;
    file.ignored(kInter, "chunks choose the order of dimensions as in ASTRA-sim 1.0; ASTRA-sim 2 ignores this key");
  } else {
    file.ignored(kInter, "has no effect (in ASTRA-sim 2, too); themis is the value that has one");
  }
  const bool has_themis = system.inter_dimension == InterDimension::themis;
  if (has_themis && (is(kIntra, "SCF", "smallestFirst") || is(kIntra, "FIFO", "FIFO"))) {
    (void)file.find(kIntra);
    const bool is_fifo = is(kIntra, "FIFO", "FIFO");
    system.intra_dimension = is_fifo ? IntraDimension::fifo : IntraDimension::smallest_first;
  } else {
    file.ignored(kIntra, has_themis ? "has no effect; valid: FIFO, SCF" : "has no effect (in ASTRA-sim 2, too)");
  }
}

std::optional<SharedBus> read_bus(ForeignFile& file) {
  SharedBus bus;
  bus.latency_ns = file.whole("L").value_or(0);
  bus.overhead_ns = file.whole("o").value_or(0);
  bus.gap_ns = file.whole("g").value_or(0);
  bus.ns_per_byte = static_cast<float>(file.real("G").value_or(0));
  return file.flag("model-shared-bus") ? std::optional(bus) : std::nullopt;
}

void read_rates(ForeignFile& file, System& system) {
  const auto not_negative = [&](const char* key) {
    const double value = file.real(key).value_or(0);
    if (value < 0) { file.add_error(file.find(key)->place, fmt::format("{} is {}; valid: at least 0", key, value)); }
    return value;
  };
  system.local_memory_gb = not_negative("local-mem-bw");
  system.peak_tflops = not_negative("peak-perf");
  system.roofline = file.flag("roofline-enabled");
  system.replay_only = file.flag("replay-only");
  if (system.roofline && !system.replay_only) {
    if (!(system.peak_tflops > 0)) { file.add_error(file.root().place, "roofline-enabled requires peak-perf above 0"); }
    if (!(system.local_memory_gb > 0)) {
      file.add_error(file.root().place, "roofline-enabled requires local-mem-bw above 0");
    }
  }
}

}  // namespace

Result<System> read_system(const std::string& path, const SystemFlags& flags, Semantics semantics, Warnings& warnings) {
  constexpr std::uint64_t kMostChunks = 1'000'000;
  ORRERY_TRY(file, ForeignFile::open(path));
  System system;
  system.queues_per_dimension = flags.queues_per_dimension;
  system.rendezvous = flags.rendezvous;
  system.scheduling = static_cast<Scheduling>(file.choice("scheduling-policy", kPolicies).value_or(0));
  system.optimization = static_cast<Optimization>(file.choice("collective-optimization", kOptimizations).value_or(0));
  if (file.root().find("preferred-dataset-splits") == nullptr) { file.missing("preferred-dataset-splits"); }
  system.splits = static_cast<std::uint32_t>(file.whole("preferred-dataset-splits", 1, kMostChunks).value_or(1));
  system.active_chunks =
      static_cast<std::uint32_t>(file.whole("active-chunks-per-dimension", 1, kMostChunks).value_or(1));
  if (const auto delay = file.whole("endpoint-delay")) {
    system.endpoint_delay_ns = static_cast<std::uint64_t>(static_cast<double>(*delay) * flags.injection_scale);
  }
  system.reduction_delay_ns = file.whole("local-reduction-delay").value_or(1);
  read_rates(file, system);
  system.bus = read_bus(file);
  for (std::size_t i = 0; i < kImplementation.size(); ++i) {
    system.algorithms[i] = read_choice(file, kImplementation[i]);
  }
  system.custom_of_node = read_custom_of_node(file);
  read_ignored(file);
  read_chunk_order(file, semantics, system);
  if (auto whole = file.finish(warnings); !whole) { return tl::make_unexpected(whole.error()); }
  return system;
}

}  // namespace orrery::simulate
