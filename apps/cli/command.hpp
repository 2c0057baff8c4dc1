// One subcommand: its flags with their help, and its action. Values of flags stay text until the record of the request
// reads them, so that flags and files follow the same rules.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "orrery/core/error.hpp"

namespace CLI {
class App;
}

namespace orrery::cli {

struct Flag {
  std::string name;   // "--global-batch"
  std::string value;  // its value in the help: "N", "FILE"; empty for a switch
  std::string doc;
  std::string group;                      // heading in the help
  std::vector<std::string> choices = {};  // values to offer for completion
  std::string entries = {};               // or: offer the catalogue names of this kind ("models")
  std::string negation = {};              // the opposite switch: "--no-dp-overlap"
  bool many = false;                      // takes more than one value
};

// "  --tp N                      doc", the doc wrapped below itself.
[[nodiscard]] std::string help_line(const std::string& left, const std::string& doc);

// Place of an error on the command line.
[[nodiscard]] Place flag_place(std::string flag);

class Command {
 public:
  Command(std::string name, std::string summary);
  ~Command();
  Command(Command&&) noexcept;
  Command& operator=(Command&&) noexcept;

  // If a flag is repeated, the last value has effect. `take` is called while the arguments are read.
  void option(Flag flag, const std::function<void(const std::string&)>& take);
  void toggle(Flag flag, const std::function<void(bool)>& take);
  void repeated(Flag flag,
                const std::function<void(const std::string&)>& take);  // each occurrence takes one value or more
  void positional(Flag flag, const std::function<void(const std::string&)>& take);
  // The same for any number of arguments; must be the last positional.
  void positionals(Flag flag, const std::function<void(const std::string&)>& take);

  // Makes it a group of commands: its first argument selects one. Their names are "trace info" and so on. The flags of
  // the group are the union of theirs and are used for completion only.
  void subcommands(std::vector<Command> commands);

  // Text at the end of the help: examples, exit codes.
  void footer(std::string text) { footer_ = std::move(text); }
  // Accepts unknown arguments.
  void accept_anything() { accepts_anything_ = true; }
  // The action that runs after the arguments are read; returns the exit code.
  void action(std::function<Result<int>()> action) { action_ = std::move(action); }

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& summary() const { return summary_; }
  [[nodiscard]] const std::vector<Flag>& flags() const { return flags_; }
  [[nodiscard]] const std::vector<Flag>& positionals() const { return positionals_; }
  [[nodiscard]] std::string usage() const;
  [[nodiscard]] std::string help() const;

  [[nodiscard]] Result<int> run(const std::vector<std::string>& arguments);

 private:
  [[nodiscard]] Result<int> run_subcommand(const std::vector<std::string>& arguments);
  [[nodiscard]] std::string subcommand_help() const;

  std::string name_, summary_, footer_;
  std::vector<Flag> flags_, positionals_;
  std::function<Result<int>()> action_;
  std::unique_ptr<CLI::App> app_;
  std::vector<Command> subcommands_;
  bool accepts_anything_ = false;
};

}  // namespace orrery::cli
