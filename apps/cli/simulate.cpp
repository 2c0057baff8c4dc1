// `orrery simulate`: execution graphs on a simulated machine.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <sys/resource.h>

#include "apps/cli/commands.hpp"
#include "apps/cli/granularity.hpp"
#include "apps/cli/machine_flags.hpp"
#include "apps/cli/replay.hpp"
#include "apps/cli/request_flags.hpp"
#include "apps/cli/stragglers.hpp"
#include "apps/cli/terminal.hpp"
#include "orrery/api/concurrent_jobs.hpp"
#include "orrery/api/flows.hpp"
#include "orrery/api/plan_simulation.hpp"
#include "orrery/api/profile_import.hpp"
#include "orrery/api/simulate.hpp"
#include "orrery/config/node.hpp"
#include "orrery/core/text.hpp"
#include "orrery/report/flow_times.hpp"
#include "orrery/report/job_times.hpp"
#include "orrery/report/simulation.hpp"
#include "orrery/report/simulation_tables.hpp"
#include "orrery/report/table.hpp"

namespace orrery::cli {

namespace of_simulate {
namespace {

constexpr const char* kExample =
    "orrery simulate --model llama-3.1-8b --cluster dgx-h100 --devices 64 --tp 8 --global-batch 64 --seq 8192";

constexpr const char* kFooter = R"(Examples
  orrery simulate --model llama-3.1-8b --cluster dgx-h100 --devices 64 --tp 8 --global-batch 64 --seq 8192
  orrery simulate --workload-configuration=traces/llama --system-configuration=system.json \
      --network-configuration=network.yml --remote-memory-configuration=memory.json
  orrery simulate --workload-configuration=traces/llama --comm-group-configuration=groups.json \
      --system-configuration=system.json --network-configuration=network.yml \
      --remote-memory-configuration=memory.json --backend congestion-aware --json
  orrery simulate --workload traces/llama --cluster dgx-h100 --explain
  orrery simulate --workload job --scale-comm 0.5 --late 1:3ms
  orrery simulate --flows examples/networks/incast.txt
  orrery simulate --jobs examples/networks/jobs.yaml

With the flags of estimate, the graphs of the plan are made in memory. Its simulated step is compared with its estimate
(docs/guide/simulate.md).
ASTRA-sim's input files give the same cycles as in ASTRA-sim, to the nanosecond. ASTRA-sim's defects are reproduced; a
warning names those that affect the run (docs/models/astra-sim.md). With --semantics physical, and on a cluster, no link
carries more than its bandwidth (docs/models/physical.md).
Graphs that "orrery trace import" made of profiles are replayed: recorded durations, derived waiting
(docs/guide/profiles.md).
Exit codes: 0 done, 2 bad input (including a graph that deadlocks), 3 internal error.
)";

struct Options {
  SharedMachineFlags machine = std::make_shared<MachineFlags>();
  std::shared_ptr<ReplayFlags> replay = std::make_shared<ReplayFlags>();
  RequestFlags plan;
  std::string cluster, timeline, fold, folder, flows, jobs, link_changes, copies, chunk_order, granularity = "operator";
  std::vector<std::string> workload, tables, slow, grown;
  bool json = false, explain = false, roofline = false, energy = false, memory = false, by_message = false;
};

using Shared = std::shared_ptr<Options>;

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

bool is_plan(const Options& options) { return options.plan.any(); }
bool on_cluster(const Options& options) { return !options.workload.empty() || !options.cluster.empty(); }

// Graphs on a cluster (physical semantics) instead of ASTRA-sim's files.
Result<void> take_cluster(const Options& options) {
  MachineFlags& machine = *options.machine;
  if (options.workload.empty() && !is_plan(options)) {
    return fail(flag_place("--workload"), "is missing; or give a plan: --model, ...");
  }
  if (!options.workload.empty() && is_plan(options)) {
    return fail(flag_place("--workload"), "is not valid with a plan, whose graphs are made in memory");
  }
  if (is_plan(options) && !machine.files.groups.empty()) {
    return fail(flag_place("--comm-group-configuration"), "is not valid with a plan, which has its own process groups");
  }
  if (is_plan(options) && !machine.backend.empty() && machine.backend != "flow") {
    return fail(flag_place("--backend"), quote(machine.backend) + " is not valid with a plan; valid: flow");
  }
  if (!is_plan(options) && options.cluster.empty()) {
    if (auto graphs = api::check_workload(options.workload); !graphs) { return graphs; }
    return fail(flag_place("--cluster"), "is missing");
  }
  for (const auto& [file, flag] : {std::pair{&machine.files.workload, "--workload-configuration"},
                                   {&machine.files.system, "--system-configuration"},
                                   {&machine.files.network, "--network-configuration"},
                                   {&machine.files.memory, "--remote-memory-configuration"}}) {
    if (!file->empty()) { return fail(flag_place(flag), "is not valid with --cluster, which defines the machine"); }
  }
  if (machine.semantics == "astra-sim") {
    return fail(flag_place("--semantics"), "astra-sim is not valid with --cluster; valid: physical");
  }
  machine.semantics = "physical";
  machine.on_cluster = true;
  return machine.take({});
}

Result<simulate::Folding> folding_of(const Options& options) {
  if (options.fold == "off") { return simulate::Folding::off; }
  if (options.fold.empty() || options.fold == "auto") { return simulate::Folding::automatic; }
  return fail(flag_place("--fold"), quote(options.fold) + " is not valid; valid: auto, off");
}

Result<void> take(const Options& options) {
  if (auto folding = folding_of(options); !folding) { return tl::make_unexpected(folding.error()); }
  if (is_plan(options) || on_cluster(options)) { return take_cluster(options); }
  using simulate::SimulationFiles;
  return options.machine->take({{"--workload-configuration", &SimulationFiles::workload},
                                {"--system-configuration", &SimulationFiles::system},
                                {"--network-configuration", &SimulationFiles::network},
                                {"--remote-memory-configuration", &SimulationFiles::memory}});
}

Result<results::PlanSimulation> simulated_plan(const Options& options) {
  ORRERY_TRY(typed, options.plan.read(kExample));
  if (typed.request.semantics == estimate::Semantics::mad_max) {
    return fail(flag_place("--semantics"), "mad-max has no program of operators to simulate; valid: physical");
  }
  api::PlanSimulationOptions how;
  ORRERY_TRY(folding, folding_of(options));
  ORRERY_TRY(granularity, granularity_of(options.granularity));
  how.folding = folding;
  how.graphs.granularity = granularity;
  how.spans = options.machine->files.spans;
  how.tables = options.machine->files.tables;
  how.explain = options.machine->files.explain;
  how.roofline = options.machine->files.roofline;
  how.energy = options.machine->files.energy;
  how.memory = options.memory;
  how.chunk_order = options.machine->files.chunk_order;
  how.by_message = options.machine->files.by_message;
  how.stragglers = options.machine->files.stragglers;
  how.link_changes = options.machine->files.link_changes;
  ORRERY_TRY(data, data_directory());
  auto plan = api::simulate_plan(data, typed.request, how);
  if (!plan) { return tl::make_unexpected(typed.placed(plan.error())); }
  return plan;
}

// The plan's part is empty for graphs from files.
Result<results::PlanSimulation> simulated(const Options& options) {
  if (is_plan(options)) { return simulated_plan(options); }
  results::PlanSimulation result;
  if (on_cluster(options)) {
    ORRERY_TRY(data, data_directory());
    ORRERY_TRY(folding, folding_of(options));
    api::FoldingOptions how;
    if (!options.fold.empty()) { how.folding = folding; }
    how.clock = seconds;
    ORRERY_TRY(simulation,
               api::simulate_on_cluster(data, options.cluster, options.workload, options.machine->files, how));
    result.simulation = std::move(simulation);
    return result;
  }
  const bool folds = options.fold == "auto";
  ORRERY_TRY(simulation, api::simulate(options.machine->files,
                                       folds ? simulate::Folding::automatic : simulate::Folding::off, seconds));
  result.simulation = std::move(simulation);
  return result;
}

Result<std::vector<simulate::Straggler>> stragglers_of(const Options& options) {
  std::vector<simulate::Straggler> stragglers;
  if (!options.slow.empty() && options.machine->semantics != "physical") {
    return fail(flag_place("--slow"), "needs --semantics physical, or a cluster");
  }
  if (!options.slow.empty() && options.fold == "auto") {
    return fail(flag_place("--fold"), "auto is not valid with --slow: every rank is simulated");
  }
  for (const std::string& text : options.slow) {
    ORRERY_TRY(made, straggler_of(text));
    stragglers.push_back(made);
  }
  return stragglers;
}

Result<std::vector<simulate::LinkChange>> link_changes_of(const Options& options) {
  if (options.link_changes.empty()) { return std::vector<simulate::LinkChange>{}; }
  const auto place = flag_place("--link-changes");
  if (!is_plan(options) && !on_cluster(options)) { return fail(place, "needs --cluster"); }
  if (!options.machine->backend.empty() && options.machine->backend != "flow") {
    return fail(place, "needs --backend flow");
  }
  if (options.fold == "auto") {
    return fail(flag_place("--fold"), "auto is not valid with --link-changes: every rank is simulated");
  }
  ORRERY_TRY(text, config::read_text_file(options.link_changes));
  return simulate::read_link_changes(text, options.link_changes);
}

bool on_flows(const Options& options) {
  const std::string& backend = options.machine->backend;
  return options.machine->on_cluster && (backend.empty() || backend == "flow");
}

Result<void> take_chunk_order(const Options& options) {
  if (options.chunk_order.empty()) { return {}; }
  const auto place = flag_place("--chunk-order");
  if (!on_flows(options)) { return fail(place, "needs a cluster, and --backend flow"); }
  using network::ChunkOrder;
  for (const auto& [name, order] :
       {std::pair{"baseline", ChunkOrder::baseline}, {"greedy", ChunkOrder::greedy}, {"themis", ChunkOrder::themis}}) {
    if (options.chunk_order == name) { options.machine->files.chunk_order = order; }
  }
  if (options.machine->files.chunk_order) { return {}; }
  return fail(place, quote(options.chunk_order) + " is not valid; valid: baseline, greedy, themis");
}

Result<void> take_by_message(const Options& options) {
  if (!options.by_message) { return {}; }
  const auto place = flag_place("--by-message");
  if (!on_flows(options)) { return fail(place, "needs a cluster with a topology, and --backend flow"); }
  if (!options.chunk_order.empty()) { return fail(place, "is not valid with --chunk-order"); }
  options.machine->files.by_message = true;
  return {};
}

Result<void> take_copies(const Options& options) {
  if (options.copies.empty()) {
    return options.grown.empty() ? Result<void>{} : fail(flag_place("--grow"), "needs --copies");
  }
  const std::string& backend = options.machine->backend;
  if (options.workload.empty() || (!backend.empty() && backend != "flow")) {
    return fail(flag_place("--copies"), "needs --workload on a --cluster, and --backend flow");
  }
  constexpr std::uint64_t kMost = 65'536;
  const auto copies = whole_number(options.copies);
  if (!copies || *copies < 1 || *copies > kMost) {
    return fail(flag_place("--copies"),
                fmt::format("{} must be a whole number from 1 to {}", quote(options.copies), kMost));
  }
  options.machine->files.copies = static_cast<std::uint32_t>(*copies);
  for (std::string_view rest : options.grown) {  // "3,4,5"
    while (!rest.empty()) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      options.machine->files.grown.emplace_back(rest.substr(0, comma));
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
  }
  return {};
}

std::vector<std::string> all_tables() {
  return {std::begin(report::kSimulationTables), std::end(report::kSimulationTables)};
}

// The given names, with "all" expanded.
Result<std::vector<std::string>> tables_of(const Options& options) {
  std::vector<std::string> tables;
  const auto known = all_tables();
  for (const std::string& name : options.tables) {
    if (name == "all") {
      tables = known;
    } else if (std::find(known.begin(), known.end(), name) == known.end()) {
      const auto near = nearest(name, known);
      return fail(flag_place("--table"),
                  fmt::format("{} is not a table; {}", quote(name),
                              near ? fmt::format("did you mean {}?", *near) : "valid: " + join(known, ", ") + ", all"));
    } else if (name == "links" && options.machine->semantics != "physical" &&
               options.machine->backend != "congestion-aware") {
      return fail(flag_place("--table"),
                  "links needs --backend congestion-aware; the table dimensions has the bytes of each dimension");
    } else if (std::find(tables.begin(), tables.end(), name) == tables.end()) {
      tables.push_back(name);
    }
  }
  if (tables.size() > 1 && !options.json) {
    return fail(flag_place("--table"),
                "is given several times; several tables need --json, or --tables FOLDER for files");
  }
  return tables;
}

Result<void> write_tables(const std::string& folder, const results::Simulation& simulation) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) { return fail(flag_place("--tables"), fmt::format("{}: {}", folder, error.message())); }
  for (const std::string& name : all_tables()) {
    const auto file = (std::filesystem::path(folder) / (name + ".csv")).string();
    const auto written = write_file(file, report::csv(report::sheet_of(simulation, name)), flag_place("--tables"));
    if (!written) { return tl::make_unexpected(written.error()); }
  }
  return {};
}

Result<void> write_files(const Options& options, const results::Simulation& simulation) {
  if (!options.timeline.empty()) {
    const auto written =
        write_file(options.timeline, report::simulation_timeline(simulation), flag_place("--timeline"));
    if (!written) { return tl::make_unexpected(written.error()); }
  }
  return options.folder.empty() ? Result<void>{} : write_tables(options.folder, simulation);
}

void print_result(const Options& options, const results::PlanSimulation& result,
                  const std::vector<std::string>& tables) {
  const results::Simulation& simulation = result.simulation;
  if (options.json) {
    return print(is_plan(options) ? report::plan_simulation_json(result, tables)
                                  : report::simulation_json(simulation, tables));
  }
  if (tables.empty()) {
    return print(is_plan(options) ? report::plan_simulation_text(result, terminal_style())
                                  : report::simulation_text(simulation, terminal_style()));
  }
  print(report::csv(report::sheet_of(simulation, tables.front())));
  for (const std::string& warning : simulation.warnings) {
    print_aside("warning: " + report::printable(warning) + "\n");
  }
}

std::uint64_t peak_memory() {
  rusage usage{};
  constexpr std::uint64_t kKibibyte = 1024;
  return getrusage(RUSAGE_SELF, &usage) == 0 ? static_cast<std::uint64_t>(usage.ru_maxrss) * kKibibyte : 0;
}

// Flags that have no effect on lists of flows, on several jobs and on replays.
GivenFlags flags_of_graphs(const Options& options) {
  const auto& files = options.machine->files;
  return {{!files.workload.empty(), "--workload-configuration"},
          {!files.system.empty(), "--system-configuration"},
          {!files.network.empty(), "--network-configuration"},
          {!files.memory.empty(), "--remote-memory-configuration"},
          {!files.groups.empty(), "--comm-group-configuration"},
          {!options.fold.empty(), "--fold"},
          {!options.link_changes.empty(), "--link-changes"},
          {!options.chunk_order.empty(), "--chunk-order"},
          {options.by_message, "--by-message"},
          {!options.copies.empty(), "--copies"},
          {!options.grown.empty(), "--grow"},
          {!options.timeline.empty(), "--timeline"},
          {!options.tables.empty(), "--table"},
          {options.explain, "--explain"},
          {options.roofline, "--roofline"},
          {options.energy, "--energy"},
          {options.memory, "--memory"},
          {!options.slow.empty(), "--slow"},
          {!options.folder.empty(), "--tables"}};
}

// `form`: --flows or --jobs, whose file replaces other inputs.
Result<void> refuse_others(const Options& options, const std::string& form) {
  GivenFlags flags = flags_of_graphs(options);
  flags.insert(flags.begin(), {{is_plan(options) && options.cluster.empty(), "--model"},
                               {!options.workload.empty(), "--workload"},
                               {!options.cluster.empty(), "--cluster"}});
  if (auto ok = refuse(flags, form + ", whose file has the network and the traffic"); !ok) { return ok; }
  if (const std::string& backend = options.machine->backend; !backend.empty() && backend != "flow") {
    return fail(flag_place("--backend"), fmt::format("{} is not valid with {}; valid: flow", quote(backend), form));
  }
  if (const std::string& semantics = options.machine->semantics; !semantics.empty() && semantics != "physical") {
    return fail(flag_place("--semantics"),
                fmt::format("{} is not valid with {}; valid: physical", quote(semantics), form));
  }
  return {};
}

// Graphs that were imported from profiles.
Result<int> replayed(const Options& options) {
  GivenFlags flags = flags_of_graphs(options);
  flags.insert(flags.end(), {{!options.flows.empty(), "--flows"},
                             {!options.jobs.empty(), "--jobs"},
                             {!options.machine->backend.empty(), "--backend"},
                             {!options.machine->semantics.empty(), "--semantics"}});
  if (auto ok = refuse(flags, "the replay of an imported profile"); !ok) { return tl::make_unexpected(ok.error()); }
  return run_replay(*options.replay, options.workload, options.cluster, options.json);
}

// A list of flows instead of graphs.
Result<int> run_flows(const Options& options) {
  if (auto valid = refuse_others(options, "--flows"); !valid) { return tl::make_unexpected(valid.error()); }
  const double start = seconds();
  ORRERY_TRY(times, api::simulate_flow_file(options.flows));
  times.wall_s = seconds() - start;
  times.peak_rss_B = peak_memory();
  print(options.json ? report::flow_times_json(times) : report::flow_times_text(times, terminal_style()));
  return 0;
}

// Several jobs at once.
Result<int> run_jobs(const Options& options) {
  if (!options.flows.empty()) { return fail(flag_place("--flows"), "is not valid with --jobs"); }
  if (auto valid = refuse_others(options, "--jobs"); !valid) { return tl::make_unexpected(valid.error()); }
  const double start = seconds();
  ORRERY_TRY(data, data_directory());
  ORRERY_TRY(times, api::simulate_jobs(data, options.jobs));
  times.wall_s = seconds() - start;
  times.peak_rss_B = peak_memory();
  print(options.json ? report::job_times_json(times) : report::job_times_text(times, terminal_style()));
  return 0;
}

// What is reported besides times.
Result<void> take_reports(const Options& options) {
  simulate::SimulationFiles& files = options.machine->files;
  files.explain = options.explain;
  files.roofline = options.roofline;
  files.energy = options.energy;
  if (options.roofline && options.machine->semantics != "physical") {
    return fail(flag_place("--roofline"), "needs --semantics physical, or a cluster");
  }
  files.memory_over_time = options.memory;
  if (options.energy && !on_flows(options)) {
    return fail(flag_place("--energy"), "needs a cluster, and --backend flow");
  }
  return {};
}

Result<int> run(Options& options) {
  ORRERY_TRY(replay, is_replay(*options.replay, is_plan(options) ? std::vector<std::string>() : options.workload));
  if (replay) { return replayed(options); }
  if (!options.jobs.empty()) { return run_jobs(options); }
  if (!options.flows.empty()) { return run_flows(options); }
  if (is_plan(options) && !options.cluster.empty()) { options.plan.give("cluster", options.cluster); }
  if (auto ok = take(options); !ok) { return tl::make_unexpected(ok.error()); }
  ORRERY_TRY(tables, tables_of(options));
  simulate::SimulationFiles& files = options.machine->files;
  files.tables = !tables.empty() || !options.folder.empty();
  files.spans = !options.timeline.empty();
  if (auto valid = take_reports(options); !valid) { return tl::make_unexpected(valid.error()); }
  ORRERY_TRY(stragglers, stragglers_of(options));
  files.stragglers = std::move(stragglers);
  if (auto valid = take_chunk_order(options); !valid) { return tl::make_unexpected(valid.error()); }
  if (auto valid = take_by_message(options); !valid) { return tl::make_unexpected(valid.error()); }
  if (auto valid = take_copies(options); !valid) { return tl::make_unexpected(valid.error()); }
  ORRERY_TRY(link_changes, link_changes_of(options));
  files.link_changes = std::move(link_changes);
  const double start = seconds();
  ORRERY_TRY(result, simulated(options));
  results::Simulation& simulation = result.simulation;
  simulation.wall_s = seconds() - start;
  simulation.peak_rss_B = peak_memory();
  if (auto written = write_files(options, simulation); !written) { return tl::make_unexpected(written.error()); }
  for (std::string& warning : options.machine->warnings()) { simulation.warnings.push_back(std::move(warning)); }
  print_result(options, result, tables);
  return 0;
}

void declare_inputs(Command& command, const Shared& options) {
  const std::string inputs = "ASTRA-sim's inputs";
  const SharedMachineFlags& machine = options->machine;
  using simulate::SimulationFiles;
  declare_machine_file(command, machine,
                       {"--workload-configuration", "PREFIX", "Chakra graphs: PREFIX.<rank>.et", inputs},
                       &SimulationFiles::workload);
  declare_machine_file(command, machine, {"--remote-memory-configuration", "FILE", "memory file (JSON)", inputs},
                       &SimulationFiles::memory);
  declare_machine_file(command, machine,
                       {"--comm-group-configuration", "FILE",
                        "process groups (JSON): {\"tp\": [0, 1]}; replaces those that the graphs list", inputs},
                       &SimulationFiles::groups);
  declare_machine(command, machine, inputs);
  declare_without_effect(command, machine, inputs);
}

void declare_rest(Command& command, const Shared& options) {
  const auto text = [&](Flag flag, std::string Options::* field) {
    command.option(std::move(flag), [options, field](const std::string& value) { (*options).*field = value; });
  };
  const std::string how = "Simulation";
  declare_how(command, options->machine, how);
  text({"--fold",
        "auto|off",
        "auto: simulate one rank of each class of identical ranks (default of a plan and of graphs of classes); off: "
        "simulate every rank (default of graphs of single ranks, and of ASTRA-sim's files, which auto compares; "
        "under ASTRA-sim's rules it folds them into one rank if all are equal)",
        how,
        {"auto", "off"}},
       &Options::fold);
  command.repeated(
      {"--slow", "RANKS:FACTOR",
       "stragglers: kernels of a rank or a range (3, 8-15) take FACTOR times as long; not with --semantics "
       "astra-sim",
       how},
      [options](const std::string& ranks) { options->slow.push_back(ranks); });
  text({"--link-changes", "FILE",
        "links of the cluster that slow down, fail or come back at a time: lines \"cable A B TIME BANDWIDTH\" "
        "(docs/format/link-changes.md)",
        how},
       &Options::link_changes);
  command.repeated(
      {"--workload", "PREFIX|FOLDER|FILE",
       "Chakra graphs for a run on --cluster: one per rank, from rank 0, or those of PREFIX.classes.json", how},
      [options](const std::string& name) { options->workload.push_back(name); });
  text(
      {"--chunk-order",
       "NAME",
       "collectives over several dimensions in 64 chunks whose dimensions are visited in this order: baseline, greedy, "
       "themis (docs/models/chunk-order.md); not on a topology",
       how,
       {"baseline", "greedy", "themis"}},
      &Options::chunk_order);
  command.toggle({"--by-message", "",
                  "collectives on a topology step by step, every message a flow on its route, instead of whole calls "
                  "(docs/models/topologies.md)",
                  how},
                 [options](bool on) { options->by_message = on; });
  text({"--copies", "N",
        "so many replicas of the R ranks of --workload: rank r + R c is copy c of rank r; all copies join the process "
        "groups of --grow and the collectives of all ranks",
        how},
       &Options::copies);
  command.repeated(
      {"--grow", "GROUP", "with --copies: process groups that grow, as the graphs name them: 3, or 3,4,5", how},
      [options](const std::string& names) { options->grown.push_back(names); });
  command.option({"--cluster",
                  "NAME|FILE",
                  "cluster from the catalogue or a YAML file; replaces ASTRA-sim's files",
                  how,
                  {},
                  "clusters"},
                 [options](const std::string& name) { options->cluster = name; });
  text({"--flows", "FILE",
        "links and flows instead of graphs: finish times at max-min fair rates (docs/format/flows.md)", how},
       &Options::flows);
  declare_replay(command, options->replay);
  text(
      {"--jobs", "FILE",
       "several jobs, graphs or plans, at once on one cluster: slowdown of each (docs/format/concurrent-jobs.md)", how},
      &Options::jobs);
}

void declare_output(Command& command, const Shared& options) {
  const auto text = [&](Flag flag, std::string Options::* field) {
    command.option(std::move(flag), [options, field](const std::string& value) { (*options).*field = value; });
  };
  std::vector<std::string> names = all_tables();
  names.emplace_back("all");
  command.repeated(
      {"--table", "NAME",
       "print a table as CSV: " + join(names, ", ") + "; with --json any number of tables, under \"tables\"",
       std::string(kOutputGroup), names},
      [options](const std::string& name) { options->tables.push_back(name); });
  text({"--tables", "FOLDER", "write all tables as CSV files into FOLDER (ranks.csv, …)", std::string(kOutputGroup)},
       &Options::folder);
  text({"--timeline", "FILE", "write a timeline of the run for Perfetto (Chrome trace)", std::string(kOutputGroup)},
       &Options::timeline);
  command.toggle({"--explain", "",
                  "the critical path, slack, and what each resource would save if it were 10 % faster (each simulated "
                  "again)",
                  std::string(kOutputGroup)},
                 [options](bool on) { options->explain = on; });
  command.toggle({"--roofline", "",
                  "operations and bytes of the kernels of each rank against the peaks of its accelerator: utilisation, "
                  "intensity, time bound by memory; not with --semantics astra-sim",
                  std::string(kOutputGroup)},
                 [options](bool on) { options->roofline = on; });
  command.toggle({"--energy", "", "energy of accelerators, links, switches and the rest of the nodes; needs a cluster",
                  std::string(kOutputGroup)},
                 [options](bool on) { options->energy = on; });
  command.toggle({"--memory", "",
                  "device memory of each rank over time: peak, when, mean; of graphs, from the tensors that nodes list",
                  std::string(kOutputGroup)},
                 [options](bool on) { options->memory = on; });
  command.toggle({"--json", "", "one JSON document (orrery.simulate/1), nothing else, on standard output",
                  std::string(kOutputGroup)},
                 [options](bool on) { options->json = on; });
}

}  // namespace
}  // namespace of_simulate

Command simulate_command() {
  using namespace of_simulate;
  Command command("simulate", "Run a plan or execution graphs on a simulated machine.");
  const auto options = std::make_shared<Options>();
  // --cluster and --semantics are flags of all forms of the command; the rest is of mad-max.
  const std::string plan = "Plan (values that are not given are chosen, and printed)";
  options->plan.declare(command, plan, "The job of a plan, with --cluster",
                        {"cluster", "semantics", "strategy", "local_batch", "freeze", "memory_rule"});
  command.option(granularity_flag(plan), [options](const std::string& text) { options->granularity = text; });
  declare_inputs(command, options);
  declare_rest(command, options);
  declare_output(command, options);
  command.footer(kFooter);
  command.action([options] { return run(*options); });
  return command;
}

}  // namespace orrery::cli
