#include "apps/cli/arguments.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "orrery/core/text.hpp"

namespace orrery::cli {

namespace {

bool is_flag(const std::string& argument) { return argument.size() > 1 && argument.front() == '-'; }

// "-1" is a value: a negative number is an invalid value of the flag before it, whose error then names it.
bool may_be_value(const std::string& argument) { return !argument.starts_with("--"); }

class Scan {
 public:
  Scan(const Command& command, const std::vector<std::string>& arguments) : command_(command), arguments_(arguments) {}

  std::vector<Diagnostic> run() {
    while (at_ < arguments_.size()) { next(); }
    return std::move(found_);
  }

 private:
  void next() {
    const std::string& argument = arguments_[at_++];
    if (!is_flag(argument)) { return positional(argument); }
    const std::size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const bool has_equals = equals != std::string::npos;
    const Flag* flag = flag_named(name);
    if (flag == nullptr) { return unknown(name); }
    note_given(*flag, name);
    if (flag->value.empty()) {
      if (has_equals) { complain(name, "is a switch and takes no value"); }
      return;
    }
    const bool has_value = has_equals ? equals + 1 < argument.size() : next_is_value();
    if (!has_value) { return complain(name, fmt::format("requires a value: {}", shown(*flag))); }
    if (!has_equals) { ++at_; }
    while (flag->many && next_is_value()) { ++at_; }
  }

  // Of two values one would be dropped without a word.
  void note_given(const Flag& flag, const std::string& name) {
    const auto [first, is_new] = given_.try_emplace(flag.name, name);
    if (is_new || flag.many) { return; }
    complain(name, first->second == name ? std::string("is given twice") : "contradicts " + first->second);
  }

  void positional(const std::string& argument) {
    const auto& known = command_.positionals();
    if (++positionals_ <= known.size() || (!known.empty() && known.back().many)) { return; }
    const bool is_file = argument.ends_with(".yaml") && flag_named("--scenario") != nullptr;
    complain({}, fmt::format("unexpected argument {}; {}usage: {}", quote(argument),
                             is_file ? "a file is given with --scenario; " : "", command_.usage()));
  }

  void unknown(const std::string& name) {
    const auto meant = likely(name);
    complain(name, meant.empty() ? fmt::format("unknown flag; \"orrery {} --help\" lists them", command_.name())
                                 : fmt::format("unknown flag; did you mean {}?", either(meant)));
    while (next_is_value()) { ++at_; }  // probably its value
  }

  // Flags that start with the given name ("--system" for --system-configuration), if there are few; else the nearest
  // one.
  [[nodiscard]] std::vector<std::string> likely(const std::string& name) const {
    std::vector<std::string> known = {"--help"};
    for (const auto& flag : command_.flags()) {
      known.push_back(flag.name);
      if (!flag.negation.empty()) { known.push_back(flag.negation); }
    }
    if (auto longer = completions(name, known); !longer.empty()) { return longer; }
    const auto near = nearest(name, known);
    return near ? std::vector{*near} : std::vector<std::string>{};
  }

  [[nodiscard]] const Flag* flag_named(const std::string& name) const {
    const auto& flags = command_.flags();
    const auto found = std::find_if(flags.begin(), flags.end(),
                                    [&](const Flag& flag) { return flag.name == name || flag.negation == name; });
    return found == flags.end() ? nullptr : &*found;
  }

  [[nodiscard]] bool next_is_value() const { return at_ < arguments_.size() && may_be_value(arguments_[at_]); }

  void complain(const std::string& flag, std::string message) {
    found_.push_back({flag.empty() ? Place{} : flag_place(flag), std::move(message)});
  }

  const Command& command_;
  const std::vector<std::string>& arguments_;
  std::size_t at_ = 0;
  std::size_t positionals_ = 0;
  std::map<std::string, std::string> given_;  // by the flag's name: how it was written first
  std::vector<Diagnostic> found_;
};

}  // namespace

std::string shown(const Flag& flag) {
  if (!flag.value.empty()) { return flag.name + " " + flag.value; }
  return flag.negation.empty() ? flag.name : "--[no-]" + flag.name.substr(2);
}

std::vector<Diagnostic> argument_mistakes(const Command& command, const std::vector<std::string>& arguments) {
  return Scan(command, arguments).run();
}

}  // namespace orrery::cli
