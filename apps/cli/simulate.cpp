// `orrery simulate`: execution graphs on a simulated machine.
#include <chrono>
#include <memory>

#include <sys/resource.h>

#include "apps/cli/commands.hpp"
#include "apps/cli/machine_flags.hpp"
#include "apps/cli/terminal.hpp"
#include "orrery/api/simulate.hpp"
#include "orrery/core/text.hpp"
#include "orrery/report/simulation.hpp"

namespace orrery::cli {

namespace {

constexpr const char* kFooter = R"(Examples
  orrery simulate --workload-configuration=traces/llama --system-configuration=system.json \
      --network-configuration=network.yml --remote-memory-configuration=memory.json
  orrery simulate --workload-configuration=traces/llama --comm-group-configuration=groups.json \
      --system-configuration=system.json --network-configuration=network.yml \
      --remote-memory-configuration=memory.json --backend congestion-aware --json

ASTRA-sim's inputs give ASTRA-sim's cycles, to the nanosecond; docs/models/astra-sim.md has the rules, and what of them
is a defect that is reproduced.
Exit codes: 0 done, 2 bad input (a graph that cannot finish, too), 3 internal error.
)";

struct Options {
  SharedMachineFlags machine = std::make_shared<MachineFlags>();
  std::string workload, cluster, timeline, fold;
  bool json = false;
};

using Shared = std::shared_ptr<Options>;

Result<void> not_built(const std::string& flag, const std::string& what) {
  return fail(flag_place(flag), what + " is not built yet");
}

Result<void> refuse_what_is_planned(const Options& options) {
  if (!options.workload.empty()) { return not_built("--workload", "simulating on a cluster (physical semantics)"); }
  if (!options.cluster.empty()) { return not_built("--cluster", "simulating on a cluster (physical semantics)"); }
  if (!options.fold.empty() && options.fold != "auto" && options.fold != "off") {
    return fail(flag_place("--fold"), orrery::quoted(options.fold) + " is neither auto nor off");
  }
  return {};
}

Result<void> take(const Options& options) {
  if (auto ok = refuse_what_is_planned(options); !ok) { return ok; }
  using simulate::JobFiles;
  return options.machine->take({{"--workload-configuration", &JobFiles::workload},
                                {"--system-configuration", &JobFiles::system},
                                {"--network-configuration", &JobFiles::network},
                                {"--remote-memory-configuration", &JobFiles::memory}});
}

Result<int> run(const Options& options) {
  if (auto ok = take(options); !ok) { return tl::make_unexpected(ok.error()); }
  simulate::JobFiles& files = options.machine->files;
  files.spans = !options.timeline.empty();
  const auto start = std::chrono::steady_clock::now();
  ORRERY_TRY(simulation, api::simulate(files));
  simulation.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  rusage usage{};
  constexpr std::uint64_t kKibibyte = 1024;
  if (getrusage(RUSAGE_SELF, &usage) == 0) {
    simulation.peak_rss_B = static_cast<std::uint64_t>(usage.ru_maxrss) * kKibibyte;
  }
  if (!options.timeline.empty()) {
    const auto written =
        write_file(options.timeline, report::simulation_timeline(simulation), flag_place("--timeline"));
    if (!written) { return tl::make_unexpected(written.error()); }
  }
  for (std::string& warning : options.machine->warnings()) { simulation.warnings.push_back(std::move(warning)); }
  print(options.json ? report::simulation_json(simulation) : report::simulation_text(simulation, terminal_style()));
  return 0;
}

void declare_inputs(Command& command, const Shared& options) {
  const std::string inputs = "ASTRA-sim's inputs";
  const SharedMachineFlags& machine = options->machine;
  using simulate::JobFiles;
  declare_machine_file(command, machine,
                       {"--workload-configuration", "PREFIX", "Chakra graphs PREFIX.<rank>.et", inputs},
                       &JobFiles::workload);
  declare_machine_file(command, machine, {"--remote-memory-configuration", "FILE", "memory JSON", inputs},
                       &JobFiles::memory);
  declare_machine_file(command, machine,
                       {"--comm-group-configuration", "FILE", "JSON with the ranks of groups, {\"1\": [0, 1]}", inputs},
                       &JobFiles::groups);
  declare_machine(command, machine, inputs);
  declare_without_effect(command, machine, inputs);
}

void declare_rest(Command& command, const Shared& options) {
  const auto text = [&](Flag flag, std::string Options::* field) {
    command.option(std::move(flag), [options, field](const std::string& value) { (*options).*field = value; });
  };
  const std::string how = "Simulation";
  declare_how(command, options->machine, how);
  text({"--fold", "auto|off", "whether alike ranks may be simulated once; all are, for now", how, {"auto", "off"}},
       &Options::fold);
  text({"--workload", "PREFIX", "graphs for physical semantics; not built yet", how}, &Options::workload);
  text({"--cluster", "NAME", "cluster for physical semantics; not built yet", how}, &Options::cluster);
  text({"--timeline", "FILE", "write the run as a Chrome trace, for Perfetto", std::string(kOutputGroup)},
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
