// Flags that name a simulated machine by ASTRA-sim's files, shared by the commands that simulate.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/cli/command.hpp"
#include "orrery/core/error.hpp"
#include "orrery/simulate/job.hpp"

namespace orrery::cli {

struct MachineFlags {
  simulate::SimulationFiles files;
  std::string semantics, backend;
  bool on_cluster = false;                  // instead of the files
  std::vector<std::string> without_effect;  // given flags without effect

  // As given.
  std::string queues = "1", scale = "1", rendezvous = "false";

  // Whether any flag of the machine is given.
  [[nodiscard]] bool any() const { return !files.system.empty() || !files.network.empty(); }

  // Copies the given values to `files`; those in `needed` are required.
  struct Needed {
    const char* flag;
    std::string simulate::SimulationFiles::* field;
  };
  [[nodiscard]] Result<void> take(const std::vector<Needed>& needed);
  [[nodiscard]] std::vector<std::string> warnings() const;

 private:
  [[nodiscard]] Result<void> take_semantics();
  [[nodiscard]] Result<void> take_backend();
  [[nodiscard]] Result<void> take_flags();
};

using SharedMachineFlags = std::shared_ptr<MachineFlags>;

// Flags, and whether they are given.
using GivenFlags = std::vector<std::pair<bool, const char*>>;
// Fails at the first that is given: "is not valid with WHY".
[[nodiscard]] Result<void> refuse(const GivenFlags& flags, const std::string& why);

// "--system-configuration FILE" and similar flags, under a heading of the help.
void declare_machine_file(Command& command, const SharedMachineFlags& flags, Flag flag,
                          std::string simulate::SimulationFiles::* field);
// System and network, queues, injection scale, rendezvous.
void declare_machine(Command& command, const SharedMachineFlags& flags, const std::string& heading);
// Flags that are accepted but have no effect.
void declare_without_effect(Command& command, const SharedMachineFlags& flags, const std::string& heading);
// --backend and --semantics.
void declare_how(Command& command, const SharedMachineFlags& flags, const std::string& heading);

}  // namespace orrery::cli
