// `orrery collective`: one collective operation over a range of sizes.
#include <array>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "apps/cli/commands.hpp"
#include "apps/cli/machine_flags.hpp"
#include "apps/cli/sizes.hpp"
#include "apps/cli/terminal.hpp"
#include "apps/cli/trace.hpp"
#include "orrery/api/chunked_collective.hpp"
#include "orrery/api/collective.hpp"
#include "orrery/core/text.hpp"
#include "orrery/hardware/cluster.hpp"
#include "orrery/hardware/topology.hpp"
#include "orrery/network/names.hpp"
#include "orrery/report/collective.hpp"

namespace orrery::cli {

namespace of_collective {
namespace {

constexpr const char* kExample = "orrery collective --op all_reduce --size 1MiB:1GiB:x2 --cluster dgx-h100";

constexpr const char* kFooter = R"(Examples
  orrery collective --op all_reduce --size 1MiB:1GiB:x2 --cluster dgx-h100
  orrery collective --op all_gather --size 8KiB,64KiB,1MiB --cluster dgx-h100 --devices 64 --explain
  orrery collective --op all_to_all --size 1MiB --cluster gb200-nvl72 --algorithm direct --json
  orrery collective --op all_reduce --size 1MiB --cluster dgx-h100 --simulate
  orrery collective --op gather --size 1MiB --cluster examples/networks/dragonfly.yaml --backend flow
  orrery collective --op all_reduce --size 1GiB --cluster examples/networks/unequal.yaml --chunk-order themis
  orrery collective --op all_reduce --size 1MiB:64MiB:x4 \
      --system-configuration system.json --network-configuration network.yml --backend congestion-aware

Sizes and bandwidths are defined as in nccl-tests. The size is that of the whole buffer: for all_gather, reduce_scatter
and all_to_all, the shards of all ranks together. algbw = size / time. busbw = algbw x 2 (n-1)/n for all_reduce, x
(n-1)/n for all_gather, reduce_scatter and all_to_all, x 1 for broadcast; compare it with the bandwidth of a link.
On a cluster the time is a closed form (docs/models/collectives.md), or simulated with it (docs/models/flow.md). With
--backend flow, on a cluster with a topology, every message is a flow on its route (docs/models/topologies.md). With
ASTRA-sim's files every message of every rank is simulated, with the algorithms of the system file.
Exit codes: 0 done, 2 bad input, 3 internal error.
)";

struct Options {
  SharedMachineFlags machine = std::make_shared<MachineFlags>();
  std::string op, size, cluster, devices, algorithm, pairs, groups, chunk_order, chunk_queue, chunks;
  bool simulate = false, explain = false, json = false;
};

using Shared = std::shared_ptr<Options>;

template <class Enum>
std::vector<std::string> names_of() {
  std::vector<std::string> names;
  for (const auto& [value, name] : config::EnumNames<Enum>::value) { names.emplace_back(name); }
  return names;
}

template <class Enum>
Result<Enum> named(const std::string& flag, const std::string& text, const std::string& kind) {
  for (const auto& [value, name] : config::EnumNames<Enum>::value) {
    if (text == name) { return value; }
  }
  const auto names = names_of<Enum>();
  const auto near = nearest(text, names);
  return fail(flag_place(flag),
              fmt::format("{} is not {}; {}", quote(text), kind,
                          near ? fmt::format("did you mean {}?", *near) : "valid: " + join(names, ", ")));
}

bool is_message_by_message(const Options& options) {
  return options.machine->backend == "flow" && !options.cluster.empty();
}

// Also recognizes operations of libraries that are not modelled yet.
Result<Collective> operation(const Options& options) {
  const std::string& text = options.op;
  if (text == "sendrecv") { return fail(flag_place("--op"), quote(text) + " is not built yet"); }
  for (const auto& [op, name] : {std::pair{Collective::reduce, "reduce"},
                                 {Collective::gather, "gather"},
                                 {Collective::scatter, "scatter"},
                                 {Collective::barrier, "barrier"}}) {
    if (text != name) { continue; }
    if (is_message_by_message(options)) { return op; }
    return fail(flag_place("--op"),
                fmt::format("{} has no closed form; --backend flow simulates it on a cluster with a topology "
                            "(docs/models/topologies.md)",
                            text));
  }
  return named<Collective>("--op", text, "a collective operation");
}

Result<api::CollectiveRequest> request_of(const Options& options) {
  std::vector<std::string> missing;
  if (options.op.empty()) { missing.emplace_back("--op"); }
  if (options.size.empty() && options.pairs.empty()) { missing.emplace_back("--size"); }
  if (options.cluster.empty() && !options.machine->any()) {
    missing.emplace_back("--cluster (or --system-configuration and --network-configuration)");
  }
  if (!missing.empty()) {
    return fail(fmt::format("{} {} missing; for example: {}", join(missing, ", "), missing.size() == 1 ? "is" : "are",
                            kExample));
  }
  api::CollectiveRequest request;
  ORRERY_TRY(op, operation(options));
  request.op = op;
  if (!options.pairs.empty()) {
    if (op != Collective::all_to_all) { return fail(flag_place("--pairs"), "is valid with --op all_to_all only"); }
    if (!is_message_by_message(options)) { return fail(flag_place("--pairs"), "needs --cluster and --backend flow"); }
    if (!options.size.empty()) { return fail(flag_place("--size"), "is not valid with --pairs, which has the bytes"); }
    return request;
  }
  ORRERY_TRY(bytes, sizes("--size", options.size));
  request.sizes = std::move(bytes);
  return request;
}

template <class Value, std::size_t N>
Result<Value> choice_of(const char* flag, const std::string& text,
                        const std::array<std::pair<const char*, Value>, N>& choices) {
  std::vector<std::string> names;
  for (const auto& [name, value] : choices) {
    if (text == name) { return value; }
    names.emplace_back(name);
  }
  return fail(flag_place(flag), fmt::format("{} is not valid; valid: {}", quote(text), join(names, ", ")));
}

// 0: not given.
Result<std::int64_t> chunk_count(const Options& options) {
  if (options.chunks.empty()) { return 0; }
  ORRERY_TRY(chunks, whole_number("--chunks", options.chunks, 1));
  constexpr std::uint64_t kMostChunks = 65'536;
  if (chunks > kMostChunks) { return fail(flag_place("--chunks"), fmt::format("must be at most {}", kMostChunks)); }
  return static_cast<std::int64_t>(chunks);
}

Result<results::CollectiveTable> in_chunks(const Options& options, std::uint64_t devices,
                                           const api::CollectiveRequest& request) {
  using network::ChunkOrder;
  using network::ChunkQueue;
  if (!options.algorithm.empty()) {
    return fail(flag_place("--algorithm"), "is not valid with --chunk-order: every phase is a ring");
  }
  if (options.simulate || options.explain || !options.machine->backend.empty()) {
    return fail(flag_place("--chunk-order"), "is not valid with --simulate, --backend or --explain");
  }
  constexpr std::array kOrders = {std::pair{"baseline", ChunkOrder::baseline}, std::pair{"greedy", ChunkOrder::greedy},
                                  std::pair{"themis", ChunkOrder::themis}};
  constexpr std::array kQueues = {std::pair{"fifo", ChunkQueue::fifo},
                                  std::pair{"smallest-first", ChunkQueue::smallest_first}};
  api::ChunkChoice choice;
  ORRERY_TRY(order, choice_of("--chunk-order", options.chunk_order, kOrders));
  choice.order = order;
  if (!options.chunk_queue.empty()) {
    ORRERY_TRY(queue, choice_of("--chunk-queue", options.chunk_queue, kQueues));
    choice.queue = queue;
  }
  if (!options.chunks.empty()) {
    ORRERY_TRY(chunks, chunk_count(options));
    choice.chunks = chunks;
  }
  ORRERY_TRY(data, data_directory());
  return api::simulate_chunks(data, options.cluster, static_cast<std::int64_t>(devices), request, choice);
}

Result<results::CollectiveTable> on_cluster(const Options& options, const api::CollectiveRequest& request) {
  if (options.machine->any()) { return fail(flag_place("--cluster"), "cannot be combined with ASTRA-sim's files"); }
  if (!options.machine->backend.empty() && !is_message_by_message(options)) {
    return fail(flag_place("--backend"), "is valid with ASTRA-sim's files only; with --cluster: flow, or --simulate");
  }
  if (options.machine->semantics == "astra-sim") {
    return fail(flag_place("--semantics"),
                "astra-sim requires ASTRA-sim's files; on a cluster the semantics are physical");
  }
  // 0: as many as the cluster description has.
  ORRERY_TRY(devices,
             options.devices.empty() ? Result<std::uint64_t>(0) : whole_number("--devices", options.devices, 1));
  if (devices > static_cast<std::uint64_t>(hardware::kMaxDevices)) {
    return fail(flag_place("--devices"), fmt::format("must be at most {}", hardware::kMaxDevices));
  }
  if (!options.groups.empty() && !is_message_by_message(options)) {
    return fail(flag_place("--groups"), "needs --backend flow");
  }
  if (!options.chunk_order.empty()) { return in_chunks(options, devices, request); }
  const bool by_dimension = is_message_by_message(options) && options.algorithm == "hierarchical";
  if (!options.chunk_queue.empty()) { return fail(flag_place("--chunk-queue"), "needs --chunk-order"); }
  if (!options.chunks.empty() && !by_dimension) {
    return fail(flag_place("--chunks"), "needs --chunk-order, or --backend flow with --algorithm hierarchical");
  }
  auto algorithm = CollectiveAlgorithm::automatic;
  if (!options.algorithm.empty()) {
    const bool has_steps_only = is_message_by_message(options) && options.algorithm == "halving_doubling";
    ORRERY_TRY(asked, has_steps_only ? CollectiveAlgorithm::halving_doubling
                                     : named<CollectiveAlgorithm>("--algorithm", options.algorithm, "an algorithm"));
    algorithm = asked;
  }
  if (!options.pairs.empty() && !options.algorithm.empty() && options.algorithm != "direct") {
    return fail(flag_place("--algorithm"), "with --pairs every rank sends to every other one: direct");
  }
  if (is_message_by_message(options)) {
    if (options.explain) { return fail(flag_place("--explain"), "is not valid with --backend flow"); }
    ORRERY_TRY(data, data_directory());
    ORRERY_TRY(groups, options.groups.empty() ? Result<std::uint64_t>(1) : whole_number("--groups", options.groups, 1));
    if (groups > 1 && !options.pairs.empty()) { return fail(flag_place("--groups"), "is not valid with --pairs"); }
    if (groups > static_cast<std::uint64_t>(hardware::kMostRoutedDevices)) {
      return fail(flag_place("--groups"), fmt::format("must be at most {}", hardware::kMostRoutedDevices));
    }
    ORRERY_TRY(chunks, chunk_count(options));
    return api::simulate_collective_messages(data, options.cluster, static_cast<std::int64_t>(devices), request,
                                             algorithm, options.pairs, static_cast<std::uint32_t>(groups), chunks);
  }
  if (options.simulate && options.explain) {
    return fail(flag_place("--explain"), "is not valid with --simulate: a simulated time has no terms");
  }
  ORRERY_TRY(data, data_directory());
  const auto time_of = options.simulate ? api::simulate_collective_on : api::price_collective;
  return time_of(data, options.cluster, static_cast<std::int64_t>(devices), request, algorithm);
}

Result<results::CollectiveTable> on_machine(const Options& options, const api::CollectiveRequest& request) {
  if (!options.algorithm.empty()) {
    return fail(flag_place("--algorithm"),
                "is valid with --cluster only; here the system file specifies the algorithms");
  }
  if (!options.chunk_order.empty()) { return fail(flag_place("--chunk-order"), "is valid with --cluster only"); }
  if (!options.devices.empty()) {
    return fail(flag_place("--devices"), "is valid with --cluster only; here the network file specifies the ranks");
  }
  if (options.explain) {
    return fail(flag_place("--explain"), "is valid with --cluster only; a simulated time has no terms");
  }
  if (options.simulate) {
    return fail(flag_place("--simulate"), "is valid with --cluster only; ASTRA-sim's files are always simulated");
  }
  MachineFlags& machine = *options.machine;
  if (auto taken = machine.take({{"--system-configuration", &simulate::SimulationFiles::system},
                                 {"--network-configuration", &simulate::SimulationFiles::network}});
      !taken) {
    return tl::make_unexpected(taken.error());
  }
  ORRERY_TRY(table, api::simulate_collective(machine.files, request));
  return table;
}

Result<int> run(const Options& options) {
  ORRERY_TRY(request, request_of(options));
  ORRERY_TRY(table, options.cluster.empty() ? on_machine(options, request) : on_cluster(options, request));
  print(options.json ? report::collective_json(table) : report::collective_text(table, options.explain));
  return 0;
}

void declare(Command& command, const Shared& options) {
  const auto text = [&](Flag flag, std::string Options::* field) {
    command.option(std::move(flag), [options, field](const std::string& value) { (*options).*field = value; });
  };
  const std::string what = "Operation", cluster = "On a cluster";
  const std::string files = "On the network of ASTRA-sim's files";
  text({"--op", "NAME",
        join(names_of<Collective>(), ", ") + "; with --backend flow also reduce, gather, scatter, barrier [required]",
        what, names_of<Collective>()},
       &Options::op);
  text({"--size", "SIZES",
        "bytes (4096, 8k, 1MiB; k, M and G as in nccl-tests: powers of 1,024) and ranges of them, separated by commas: "
        "8KiB,1MiB:1GiB:x2,1GiB:4GiB:+1GiB [required]",
        what},
       &Options::size);
  text({"--cluster", "NAME", "catalogue name, cluster YAML, or a network file of ASTRA-sim", cluster, {}, "clusters"},
       &Options::cluster);
  text({"--devices", "N", "accelerators in use [default: as many as the cluster description has]", cluster},
       &Options::devices);
  text({"--algorithm", "NAME",
        "auto, ring, tree, direct, in_switch, flat_ring, hierarchical [default auto: the fastest of those that "
        "collective libraries use on this group; another one can be faster]",
        cluster, names_of<CollectiveAlgorithm>()},
       &Options::algorithm);
  text({"--pairs", "FILE",
        "of an all_to_all with unequal parts, with --backend flow: bytes from each rank (line) to each rank (column)",
        cluster},
       &Options::pairs);
  text({"--groups", "N", "with --backend flow: N equal groups run the operation at once; rank r is in group r mod N",
        cluster},
       &Options::groups);
  text({"--chunk-order",
        "ORDER",
        "all_reduce, reduce_scatter or all_gather in chunks, each on one network dimension after another: baseline "
        "(innermost first), greedy (shortest queue), themis (balanced loads)",
        cluster,
        {"baseline", "greedy", "themis"}},
       &Options::chunk_order);
  text({"--chunks", "N",
        "chunks of --chunk-order [default 64]; with --backend flow, of --algorithm hierarchical [default: as in the "
        "closed form]",
        cluster},
       &Options::chunks);
  text({"--chunk-queue",
        "NAME",
        "of chunks at a dimension: fifo (default), smallest-first",
        cluster,
        {"fifo", "smallest-first"}},
       &Options::chunk_queue);
  command.toggle(
      {"--simulate", "",
       "simulate the devices and their ports instead of the closed form; nothing else uses them, so the times "
       "are the same",
       cluster},
      [options](bool on) { options->simulate = on; });
  declare_machine(command, options->machine, files);
  declare_how(command, options->machine, files);
  command.toggle(
      {"--explain", "", "break the time down into base, latency, bandwidth and reduction", std::string(kOutputGroup)},
      [options](bool on) { options->explain = on; });
  command.toggle(
      {"--json", "", "print one JSON document (orrery.collective/1) and nothing else", std::string(kOutputGroup)},
      [options](bool on) { options->json = on; });
}

}  // namespace
}  // namespace of_collective

Command collective_command() {
  using namespace of_collective;
  Command command("collective", "Predict the time of one collective operation over a range of sizes.");
  const auto options = std::make_shared<Options>();
  declare(command, options);
  command.footer(kFooter);
  command.action([options] { return run(*options); });
  return command;
}

}  // namespace orrery::cli
