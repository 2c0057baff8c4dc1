// `orrery simulate`: execution graphs on a simulated machine.
#include <chrono>
#include <memory>
#include <optional>

#include <sys/resource.h>

#include "apps/cli/commands.hpp"
#include "apps/cli/terminal.hpp"
#include "apps/cli/trace.hpp"
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
  simulate::JobFiles files;
  std::string backend = "congestion-unaware", semantics, workload, cluster, timeline, fold;
  std::string queues = "1", scale = "1", rendezvous = "false";
  std::vector<std::string> without_effect;
  bool json = false;
};

using Shared = std::shared_ptr<Options>;

Result<void> not_built(const std::string& flag, const std::string& what) {
  return fail(flag_place(flag), what + " is not built yet");
}

Result<void> refuse_what_is_planned(const Options& options) {
  if (!options.workload.empty()) { return not_built("--workload", "simulating on a cluster (physical semantics)"); }
  if (!options.cluster.empty()) { return not_built("--cluster", "simulating on a cluster (physical semantics)"); }
  if (options.semantics == "physical") { return not_built("--semantics", "\"physical\""); }
  if (!options.semantics.empty() && options.semantics != "astra-sim") {
    return fail(flag_place("--semantics"),
                orrery::quoted(options.semantics) + " is no semantics of simulate; astra-sim and physical are");
  }
  if (options.backend == "flow") { return not_built("--backend", "\"flow\""); }
  if (!options.fold.empty() && options.fold != "auto" && options.fold != "off") {
    return fail(flag_place("--fold"), orrery::quoted(options.fold) + " is neither auto nor off");
  }
  return {};
}

Result<void> require(const std::string& value, const std::string& flag) {
  if (value.empty()) { return fail(flag_place(flag), "is missing"); }
  return {};
}

Result<void> take_backend(Options& options) {
  if (options.backend == "congestion-aware") {
    options.files.backend = simulate::Backend::congestion_aware;
  } else if (options.backend != "congestion-unaware") {
    const std::vector<std::string> names = {"congestion-unaware", "congestion-aware", "flow"};
    const auto near = nearest(options.backend, names);
    return fail(flag_place("--backend"), orrery::quoted(options.backend) + " is no backend; " +
                                             (near ? "did you mean " + *near + "?" : join(names, ", ") + " are"));
  }
  return {};
}

Result<void> take_flags(Options& options) {
  constexpr std::uint64_t kMostQueues = 1024;
  simulate::SystemFlags& flags = options.files.flags;
  ORRERY_TRY(queues, whole_number("--num-queues-per-dim", options.queues, 1));
  if (queues > kMostQueues) { return fail(flag_place("--num-queues-per-dim"), "at most 1024 are simulated"); }
  flags.queues_per_dimension = static_cast<std::uint32_t>(queues);
  try {
    std::size_t read = 0;
    flags.injection_scale = std::stod(options.scale, &read);
    if (read != options.scale.size() || !(flags.injection_scale >= 0) || flags.injection_scale > 1e9) {
      throw std::invalid_argument(options.scale);
    }
  } catch (const std::exception&) {
    return fail(flag_place("--injection-scale"), orrery::quoted(options.scale) + " is no number of at least 0");
  }
  flags.rendezvous = options.rendezvous == "true" || options.rendezvous == "1";
  if (!flags.rendezvous && options.rendezvous != "false" && options.rendezvous != "0") {
    return fail(flag_place("--rendezvous-protocol"), orrery::quoted(options.rendezvous) + " is neither true nor false");
  }
  // As in the original, where a name that holds this word stands for no file.
  if (options.files.groups.find("empty") != std::string::npos) { options.files.groups.clear(); }
  return take_backend(options);
}

Result<void> take(Options& options) {
  if (auto ok = refuse_what_is_planned(options); !ok) { return ok; }
  for (const auto& [value, flag] : {std::pair{&options.files.workload, "--workload-configuration"},
                                    {&options.files.system, "--system-configuration"},
                                    {&options.files.network, "--network-configuration"},
                                    {&options.files.memory, "--remote-memory-configuration"}}) {
    if (auto ok = require(*value, flag); !ok) { return ok; }
  }
  return take_flags(options);
}

Result<int> run(Options options) {
  if (auto ok = take(options); !ok) { return tl::make_unexpected(ok.error()); }
  options.files.spans = !options.timeline.empty();
  const auto start = std::chrono::steady_clock::now();
  ORRERY_TRY(simulation, api::simulate(options.files));
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
  for (const std::string& flag : options.without_effect) {
    simulation.warnings.push_back(flag + " has no effect, in ASTRA-sim either");
  }
  print(options.json ? report::simulation_json(simulation) : report::simulation_text(simulation, terminal_style()));
  return 0;
}

void declare_inputs(Command& command, const Shared& options) {
  const std::string inputs = "ASTRA-sim's inputs";
  const auto file = [&](const char* name, const char* value, const char* doc, std::string simulate::JobFiles::* field) {
    command.option({name, value, doc, inputs},
                   [options, field](const std::string& text) { options->files.*field = text; });
  };
  file("--workload-configuration", "PREFIX", "Chakra graphs PREFIX.<rank>.et", &simulate::JobFiles::workload);
  file("--system-configuration", "FILE", "system JSON", &simulate::JobFiles::system);
  file("--network-configuration", "FILE", "network YAML", &simulate::JobFiles::network);
  file("--remote-memory-configuration", "FILE", "memory JSON", &simulate::JobFiles::memory);
  file("--comm-group-configuration", "FILE", "JSON with the ranks of groups, {\"1\": [0, 1]}",
       &simulate::JobFiles::groups);
  const auto text = [&](Flag flag, std::string Options::* field) {
    command.option(std::move(flag), [options, field](const std::string& value) { (*options).*field = value; });
  };
  text({"--num-queues-per-dim", "N", "queues of chunks per dimension; 1 when absent", inputs}, &Options::queues);
  text({"--injection-scale", "X", "scales endpoint-delay; 1 when absent", inputs}, &Options::scale);
  text({"--rendezvous-protocol", "true|false", "senders wait for receivers", inputs, {"true", "false"}},
       &Options::rendezvous);
  for (const char* name : {"--compute-scale", "--comm-scale", "--logging-configuration", "--logging-folder"}) {
    command.option({name, "X", "taken, and without effect", inputs},
                   [options, name](const std::string&) { options->without_effect.emplace_back(name); });
  }
}

void declare_rest(Command& command, const Shared& options) {
  const auto text = [&](Flag flag, std::string Options::* field) {
    command.option(std::move(flag), [options, field](const std::string& value) { (*options).*field = value; });
  };
  const std::string how = "Simulation";
  text({"--backend",
        "NAME",
        "congestion-unaware (when absent), congestion-aware; flow is not built yet",
        how,
        {"congestion-unaware", "congestion-aware", "flow"}},
       &Options::backend);
  text({"--semantics", "NAME", "astra-sim (when absent); physical is not built yet", how, {"astra-sim", "physical"}},
       &Options::semantics);
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
