#include "apps/cli/command.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "apps/cli/arguments.hpp"
#include "apps/cli/terminal.hpp"
#include "orrery/core/text.hpp"
#include "orrery/report/table.hpp"

namespace orrery::cli {

namespace {

constexpr std::size_t kDocColumn = 30;

}  // namespace

std::string help_line(const std::string& left, const std::string& doc) {
  const std::string start = "  " + left;
  if (start.size() + 2 > kDocColumn) { return start + "\n" + report::wrapped(std::string(kDocColumn, ' '), doc); }
  return report::wrapped(fmt::format("{:<{}}", start, kDocColumn), doc);
}

Place flag_place(std::string flag) { return Place{"", 0, 0, std::move(flag)}; }

Command::Command(std::string name, std::string summary)
    : name_(std::move(name)), summary_(std::move(summary)), app_(std::make_unique<CLI::App>()) {
  app_->set_help_flag();
}

Command::~Command() = default;
Command::Command(Command&&) noexcept = default;
Command& Command::operator=(Command&&) noexcept = default;

void Command::option(Flag flag, const std::function<void(const std::string&)>& take) {
  app_->add_option_function<std::string>(flag.name, take)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  flags_.push_back(std::move(flag));
}

void Command::toggle(Flag flag, const std::function<void(bool)>& take) {
  const std::string names = flag.negation.empty() ? flag.name : fmt::format("{},!{}", flag.name, flag.negation);
  app_->add_flag_function(names, [take](std::int64_t on) { take(on > 0); })
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  flags_.push_back(std::move(flag));
}

void Command::repeated(Flag flag, const std::function<void(const std::string&)>& take) {
  app_->add_option_function<std::vector<std::string>>(
      flag.name, [take](const std::vector<std::string>& values) { std::for_each(values.begin(), values.end(), take); });
  flag.many = true;
  flags_.push_back(std::move(flag));
}

void Command::positional(Flag flag, const std::function<void(const std::string&)>& take) {
  app_->add_option_function<std::string>(flag.name, take);
  positionals_.push_back(std::move(flag));
}

void Command::positionals(Flag flag, const std::function<void(const std::string&)>& take) {
  app_->add_option_function<std::vector<std::string>>(
      flag.name, [take](const std::vector<std::string>& values) { std::for_each(values.begin(), values.end(), take); });
  flag.many = true;
  positionals_.push_back(std::move(flag));
}

void Command::subcommands(std::vector<Command> commands) {
  Flag which{"command", "COMMAND", "what to do", ""};
  for (const Command& command : commands) {
    which.choices.push_back(command.name().substr(name_.size() + 1));
    for (const Flag& flag : command.flags()) {
      const bool known =
          std::any_of(flags_.begin(), flags_.end(), [&](const Flag& other) { return other.name == flag.name; });
      if (!known) { flags_.push_back(flag); }
    }
  }
  positionals_ = {std::move(which)};
  subcommands_ = std::move(commands);
}

std::string Command::subcommand_help() const {
  std::string text = report::wrapped("", summary_) + "\nusage: orrery " + name_ + " COMMAND ...\n\n";
  for (const Command& command : subcommands_) {
    text += report::wrapped(fmt::format("  {:<12}", command.name().substr(name_.size() + 1)), command.summary());
  }
  return text + fmt::format("\n\"orrery {} COMMAND --help\" describes a command.\n", name_) +
         (footer_.empty() ? "" : "\n" + footer_);
}

Result<int> Command::run_subcommand(const std::vector<std::string>& arguments) {
  const std::string first = arguments.empty() ? "--help" : arguments.front();
  if (first == "--help" || first == "-h") {
    print(subcommand_help());
    return 0;
  }
  for (Command& command : subcommands_) {
    if (command.name() == name_ + " " + first) { return command.run({arguments.begin() + 1, arguments.end()}); }
  }
  const auto& choices = positionals_.front().choices;
  const auto near = nearest(first, choices);
  return fail(
      near ? fmt::format("\"orrery {}\" has no command {}; did you mean {}?", name_, quote(first), *near)
           : fmt::format("\"orrery {}\" has no command {}; there are {}", name_, quote(first), join(choices, ", ")));
}

std::string Command::usage() const {
  std::string text = "orrery " + name_;
  for (const auto& flag : positionals_) { text += " " + flag.value; }
  return text + (flags_.empty() ? "" : " [flags]");
}

std::string Command::help() const {
  std::string text = report::wrapped("", summary_) + "\nusage: " + usage() + "\n";
  if (!positionals_.empty()) { text += "\n"; }
  for (const auto& flag : positionals_) { text += help_line(flag.value, flag.doc); }
  std::vector<std::pair<std::string_view, std::string>> groups;  // in the order of their first flags
  for (const auto& flag : flags_) {
    auto group = std::find_if(groups.begin(), groups.end(), [&](const auto& g) { return g.first == flag.group; });
    if (group == groups.end()) { group = groups.insert(groups.end(), {flag.group, ""}); }
    group->second += help_line(shown(flag), flag.doc);
  }
  for (const auto& [name, lines] : groups) { text += name.empty() ? lines : fmt::format("\n{}\n{}", name, lines); }
  return text + (footer_.empty() ? "" : "\n" + footer_);
}

Result<int> Command::run(const std::vector<std::string>& arguments) {
  if (!subcommands_.empty()) { return run_subcommand(arguments); }
  const auto is_help = [](const std::string& a) { return a == "--help" || a == "-h"; };
  if (std::any_of(arguments.begin(), arguments.end(), is_help)) {
    print(help());
    return 0;
  }
  if (accepts_anything_) { return action_(); }
  if (auto found = argument_mistakes(*this, arguments); !found.empty()) {
    return tl::make_unexpected(Failure{std::move(found)});
  }
  try {
    app_->parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) { return fail(error.what()); }
  return action_();
}

}  // namespace orrery::cli
