// `orrery simulate`: execution graphs on a simulated machine.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <system_error>

#include <fmt/format.h>
#include <sys/resource.h>

#include "apps/cli/commands.hpp"
#include "apps/cli/machine_flags.hpp"
#include "apps/cli/terminal.hpp"
#include "orrery/api/simulate.hpp"
#include "orrery/core/text.hpp"
#include "orrery/report/simulation.hpp"
#include "orrery/report/simulation_tables.hpp"
#include "orrery/report/table.hpp"

namespace orrery::cli {

namespace {

constexpr const char* kFooter = R"(Examples
  orrery simulate --workload-configuration=traces/llama --system-configuration=system.json \
      --network-configuration=network.yml --remote-memory-configuration=memory.json
  orrery simulate --workload-configuration=traces/llama --comm-group-configuration=groups.json \
      --system-configuration=system.json --network-configuration=network.yml \
      --remote-memory-configuration=memory.json --backend congestion-aware --json
  orrery simulate --workload traces/llama --cluster dgx-h100

ASTRA-sim's input files give the same cycles as in ASTRA-sim, to the nanosecond. ASTRA-sim's defects are reproduced; a
warning names those that affect the run (docs/models/astra-sim.md). With --semantics physical, and on a cluster, no link
carries more than its bandwidth (docs/models/physical.md).
Exit codes: 0 done, 2 bad input (including a graph that deadlocks), 3 internal error.
)";

struct Options {
  SharedMachineFlags machine = std::make_shared<MachineFlags>();
  std::string cluster, timeline, fold, folder;
  std::vector<std::string> workload, tables;
  bool json = false;
};

using Shared = std::shared_ptr<Options>;

bool on_cluster(const Options& options) { return !options.workload.empty() || !options.cluster.empty(); }

// Graphs on a cluster (physical semantics) instead of ASTRA-sim's files.
Result<void> take_cluster(const Options& options) {
  MachineFlags& machine = *options.machine;
  if (options.workload.empty()) { return fail(flag_place("--workload"), "is missing"); }
  if (options.cluster.empty()) { return fail(flag_place("--cluster"), "is missing"); }
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

Result<void> take(const Options& options) {
  if (!options.fold.empty() && options.fold != "auto" && options.fold != "off") {
    return fail(flag_place("--fold"), quote(options.fold) + " is not valid; valid: off (auto is not built yet)");
  }
  if (options.fold == "auto") {
    return fail(flag_place("--fold"), "\"auto\" is not built yet; \"off\", the default, simulates every rank");
  }
  if (on_cluster(options)) { return take_cluster(options); }
  using simulate::SimulationFiles;
  return options.machine->take({{"--workload-configuration", &SimulationFiles::workload},
                                {"--system-configuration", &SimulationFiles::system},
                                {"--network-configuration", &SimulationFiles::network},
                                {"--remote-memory-configuration", &SimulationFiles::memory}});
}

Result<results::Simulation> simulated(const Options& options) {
  if (!on_cluster(options)) { return api::simulate(options.machine->files); }
  ORRERY_TRY(data, data_directory());
  return api::simulate_on_cluster(data, options.cluster, options.workload, options.machine->files);
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

Result<int> run(const Options& options) {
  if (auto ok = take(options); !ok) { return tl::make_unexpected(ok.error()); }
  ORRERY_TRY(tables, tables_of(options));
  simulate::SimulationFiles& files = options.machine->files;
  files.tables = !tables.empty() || !options.folder.empty();
  files.spans = !options.timeline.empty();
  const auto start = std::chrono::steady_clock::now();
  ORRERY_TRY(simulation, simulated(options));
  simulation.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  rusage usage{};
  constexpr std::uint64_t kKibibyte = 1024;
  if (getrusage(RUSAGE_SELF, &usage) == 0) {
    simulation.peak_rss_B = static_cast<std::uint64_t>(usage.ru_maxrss) * kKibibyte;
  }
  if (auto written = write_files(options, simulation); !written) { return tl::make_unexpected(written.error()); }
  for (std::string& warning : options.machine->warnings()) { simulation.warnings.push_back(std::move(warning)); }
  if (options.json) {
    print(report::simulation_json(simulation, tables));
  } else if (!tables.empty()) {
    print(report::csv(report::sheet_of(simulation, tables.front())));
    for (const std::string& warning : simulation.warnings) {
      print_aside("warning: " + report::printable(warning) + "\n");
    }
  } else {
    print(report::simulation_text(simulation, terminal_style()));
  }
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
        "off: simulate every rank (default); auto: simulate identical ranks once (not built yet)",
        how,
        {"auto", "off"}},
       &Options::fold);
  command.repeated(
      {"--workload", "PREFIX|FOLDER|FILE", "Chakra graphs for a run on --cluster, one per rank, from rank 0", how},
      [options](const std::string& name) { options->workload.push_back(name); });
  text({"--cluster",
        "NAME",
        "cluster from the catalogue or a YAML file; replaces ASTRA-sim's files",
        how,
        {},
        "clusters"},
       &Options::cluster);
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
  command.toggle({"--json", "", "one JSON document (orrery.simulate/1), nothing else, on standard output",
                  std::string(kOutputGroup)},
                 [options](bool on) { options->json = on; });
}

}  // namespace

Command simulate_command() {
  Command command("simulate", "Run execution graphs on a simulated machine.");
  const auto options = std::make_shared<Options>();
  declare_inputs(command, options);
  declare_rest(command, options);
  command.footer(kFooter);
  command.action([options] { return run(*options); });
  return command;
}

}  // namespace orrery::cli
