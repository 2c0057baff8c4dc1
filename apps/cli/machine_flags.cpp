#include "apps/cli/machine_flags.hpp"

#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "apps/cli/trace.hpp"
#include "orrery/core/text.hpp"

namespace orrery::cli {

namespace {

const std::vector<std::string>& backends() {
  static const std::vector<std::string> names = {"congestion-unaware", "congestion-aware", "flow"};
  return names;
}

const std::vector<std::string>& all_semantics() {
  static const std::vector<std::string> names = {"astra-sim", "physical"};
  return names;
}

}  // namespace

Result<void> MachineFlags::take_semantics() {
  if (semantics.empty() || semantics == "astra-sim") { return {}; }
  if (semantics == "physical") {
    files.semantics = simulate::Semantics::physical;
    return {};
  }
  const auto near = nearest(semantics, all_semantics());
  return fail(flag_place("--semantics"),
              fmt::format("{} is not valid; {}", quote(semantics),
                          near ? "did you mean " + *near + "?" : "valid: " + join(all_semantics(), ", ")));
}

Result<void> MachineFlags::take_backend() {
  const bool physical = files.semantics == simulate::Semantics::physical;
  if (physical && backend == "congestion-unaware") {
    return fail(flag_place("--backend"), "--semantics physical needs congestion-aware, or flow on a cluster");
  }
  if (backend == "flow" || (on_cluster && backend.empty())) {
    if (!on_cluster) {
      return fail(flag_place("--backend"), "\"flow\" needs --cluster; with ASTRA-sim's files it is not built yet");
    }
    files.backend = simulate::Backend::flow;
    return {};
  }
  if (backend == "congestion-aware" || (physical && backend.empty())) {
    files.backend = simulate::Backend::congestion_aware;
  } else if (!backend.empty() && backend != "congestion-unaware") {
    const auto near = nearest(backend, backends());
    return fail(flag_place("--backend"),
                fmt::format("{} is not valid; {}", quote(backend),
                            near ? "did you mean " + *near + "?" : "valid: " + join(backends(), ", ")));
  }
  return {};
}

Result<void> MachineFlags::take_flags() {
  constexpr std::uint64_t kMostQueues = 1024;
  constexpr double kMostScale = 1e9;
  ORRERY_TRY(count, whole_number("--num-queues-per-dim", queues, 1));
  if (count > kMostQueues) {
    return fail(flag_place("--num-queues-per-dim"), quote(queues) + " is not valid; valid: 1 to 1024");
  }
  files.flags.queues_per_dimension = static_cast<std::uint32_t>(count);
  double value = 0;  // not std::stod: its decimal point depends on the locale
  const auto [end, error] = std::from_chars(scale.data(), scale.data() + scale.size(), value);
  if (error != std::errc() || end != scale.data() + scale.size() || !(value >= 0) || value > kMostScale) {
    return fail(flag_place("--injection-scale"), quote(scale) + " is not valid; valid: a number from 0 to 1000000000");
  }
  files.flags.injection_scale = value;
  files.flags.rendezvous = rendezvous == "true" || rendezvous == "1";
  if (!files.flags.rendezvous && rendezvous != "false" && rendezvous != "0") {
    return fail(flag_place("--rendezvous-protocol"), quote(rendezvous) + " is not valid; valid: true, false");
  }
  // As in ASTRA-sim, where a name that contains this word means no file.
  if (files.groups.find("empty") != std::string::npos) { files.groups.clear(); }
  return {};
}

Result<void> MachineFlags::take(const std::vector<Needed>& needed) {
  if (auto taken = take_semantics(); !taken) { return taken; }
  if (auto taken = take_backend(); !taken) { return taken; }
  Failure missing;
  for (const Needed& need : needed) {
    if ((files.*need.field).empty()) { missing.diagnostics.push_back({flag_place(need.flag), "is missing"}); }
  }
  if (!missing.diagnostics.empty()) { return tl::make_unexpected(std::move(missing)); }
  return take_flags();
}

std::vector<std::string> MachineFlags::warnings() const {
  std::vector<std::string> lines;
  for (const std::string& flag : without_effect) { lines.push_back(flag + " has no effect (in ASTRA-sim, too)"); }
  return lines;
}

Result<void> refuse(const GivenFlags& flags, const std::string& why) {
  for (const auto& [is_given, flag] : flags) {
    if (is_given) { return fail(flag_place(flag), "is not valid with " + why); }
  }
  return {};
}

void declare_machine_file(Command& command, const SharedMachineFlags& flags, Flag flag,
                          std::string simulate::SimulationFiles::* field) {
  command.option(std::move(flag), [flags, field](const std::string& text) { flags->files.*field = text; });
}

void declare_machine(Command& command, const SharedMachineFlags& flags, const std::string& heading) {
  declare_machine_file(command, flags, {"--system-configuration", "FILE", "system file (JSON)", heading},
                       &simulate::SimulationFiles::system);
  declare_machine_file(command, flags, {"--network-configuration", "FILE", "network file (YAML)", heading},
                       &simulate::SimulationFiles::network);
  command.option({"--num-queues-per-dim", "N", "chunk queues per dimension; default: 1", heading},
                 [flags](const std::string& text) { flags->queues = text; });
  command.option({"--injection-scale", "X", "factor on endpoint-delay; default: 1", heading},
                 [flags](const std::string& text) { flags->scale = text; });
  command.option({"--rendezvous-protocol",
                  "true|false",
                  "senders wait until receivers are ready; default: false",
                  heading,
                  {"true", "false"}},
                 [flags](const std::string& text) { flags->rendezvous = text; });
}

void declare_without_effect(Command& command, const SharedMachineFlags& flags, const std::string& heading) {
  for (const char* name : {"--compute-scale", "--comm-scale", "--logging-configuration", "--logging-folder"}) {
    command.option({name, "X", "accepted, has no effect", heading},
                   [flags, name](const std::string&) { flags->without_effect.emplace_back(name); });
  }
}

void declare_how(Command& command, const SharedMachineFlags& flags, const std::string& heading) {
  command.option(
      {"--backend", "NAME",
       "network model: congestion-unaware, congestion-aware (messages wait for links), flow (collectives share the "
       "ports of devices, at the times of estimate; on a cluster only); default: congestion-unaware in astra-sim "
       "semantics, congestion-aware in physical semantics, flow with --cluster",
       heading, backends()},
      [flags](const std::string& text) { flags->backend = text; });
  command.option(
      {"--semantics", "NAME",
       "rules of the simulation: astra-sim (its cycles), physical (links conserve bandwidth); default: astra-sim, "
       "physical with --cluster",
       heading, all_semantics()},
      [flags](const std::string& text) { flags->semantics = text; });
}

}  // namespace orrery::cli
