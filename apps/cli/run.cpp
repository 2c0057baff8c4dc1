// Finds the subcommand, runs it, and turns errors into lines on standard error and an exit code.
#include "apps/cli/run.hpp"

#include <algorithm>
#include <exception>
#include <new>

#include <fmt/format.h>

#include "apps/cli/commands.hpp"
#include "apps/cli/help.hpp"
#include "apps/cli/plan_serve.hpp"
#include "apps/cli/terminal.hpp"
#include "orrery/core/text.hpp"
#include "orrery/report/json.hpp"

namespace orrery::cli {

namespace {

enum ExitCode { kDone = 0, kAnswerIsNo = 1, kBadInput = 2, kInternalError = 3 };

std::string overview() {
  std::string text =
      "orrery: predicts time, memory, traffic and cost of distributed AI jobs, and finds the best parallel plan\n\n"
      "usage: orrery COMMAND [flags]\n\n";
  for (const auto& command : all_commands()) { text += fmt::format("  {:<12}{}\n", command.name(), command.summary()); }
  return text +
         "\nTry\n"
         "  orrery plan --model llama-3.1-8b --cluster dgx-h100 --devices 64 --global-batch 512 --seq 8192\n"
         "  orrery COMMAND --help\n" +
         help_topics();
}

Failure unknown_command(const std::string& name) {
  const std::string kind = name.starts_with('-') ? "flag" : "command";
  const auto near = nearest(name, command_names());
  return Failure{{{{},
                   near ? fmt::format("unknown {} {}; did you mean {}?", kind, quote(name), *near)
                        : fmt::format("unknown {} {}; \"orrery --help\" lists the commands", kind, quote(name))}}};
}

Result<int> run(std::vector<std::string> arguments);

// `orrery help ABOUT`: a command, a topic or a term.
Result<int> help(std::vector<std::string> about) {
  const auto names = command_names();
  const bool is_command = about.empty() || about.front().starts_with('-') ||
                          std::find(names.begin(), names.end(), about.front()) != names.end();
  if (is_command) {
    about.emplace_back("--help");
    return run(std::move(about));
  }
  const std::string words = join(about, " ");
  if (const auto text = help_on(words)) {
    print(*text);
    return kDone;
  }
  auto known = help_names();
  known.insert(known.end(), names.begin(), names.end());
  const auto near = nearest(words, known);
  return fail(
      fmt::format("no help on {}; {}", quote(words),
                  near ? fmt::format("did you mean {}?", *near) : "\"orrery --help\" lists commands and topics"));
}

Result<int> run(std::vector<std::string> arguments) {
  if (!arguments.empty() && arguments.front() == "help") {
    arguments.erase(arguments.begin());
    return help(std::move(arguments));
  }
  const std::string first = arguments.empty() ? "--help" : arguments.front();
  if (first == "--help" || first == "-h") {
    print(overview());
    return kDone;
  }
  if (first == "--version" || first == "version") {
    print("orrery " ORRERY_VERSION "\n");
    return kDone;
  }
  if (first == "plan" && is_serving_task(arguments)) {
    return plan_serve_command().run({arguments.begin() + 1, arguments.end()});
  }
  if (auto command = command_named(first)) { return command->run({arguments.begin() + 1, arguments.end()}); }
  return tl::make_unexpected(unknown_command(first));
}

int internal_error(const char* what) {
  const std::string line = fmt::format(
      "error: {}\nerror: this is a bug in orrery {}: please report the line above with the command that was typed\n",
      what, ORRERY_VERSION);
  print_aside(line);
  return kInternalError;
}

}  // namespace

int exit_code_of(const std::vector<std::string>& arguments) {
  try {
    const auto code = run(arguments);
    if (code) { return *code; }
    const bool wants_json = std::find(arguments.begin(), arguments.end(), "--json") != arguments.end();
    wants_json ? print_aside(report::errors_json(code.error())) : print_errors(code.error());
    return code.error().answer_is_no ? kAnswerIsNo : kBadInput;
  } catch (const OutputError& error) {
    if (error.closed) { return kDone; }
    print_errors(Failure{{{{}, error.what()}}});
    return kInternalError;
  } catch (const std::bad_alloc&) {
    print_errors(Failure{{{{}, "out of memory"}}});
    return kInternalError;
  } catch (const Stopped&) { throw; } catch (const std::exception& error) {
    return internal_error(error.what());
  }
}

}  // namespace orrery::cli
