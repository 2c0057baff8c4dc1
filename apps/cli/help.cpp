#include "apps/cli/help.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

#include "orrery/report/table.hpp"

namespace orrery::cli {

namespace of_help {
namespace {

struct Topic {
  std::string_view name, summary, text;
};

constexpr std::array<Topic, 5> kTopics = {{
    {"units", "how values with units are written",
     R"(A value has its unit: "80 GiB", "3.35 TB/s", "400 Gb/s", "2 us", "312 TFLOP/s", "1.41 GHz".

  prefixes      k M G T P E are powers of 1000; Ki Mi Gi Ti Pi Ei are powers of 1024
  bits, bytes   b is a bit, B is a byte; rates may be in bits (400 Gb/s), sizes are in bytes
  times         ps ns us ms s min h d
  operations    FLOP, FLOP/s

A number without a unit is refused, except 0. Output with --json is in SI base units, and the name of a
field ends with its unit: step_time_s, memory_B, energy_J_per_step.
)"},
    {"files", "files that commands read, and their order",
     R"(--model FILE      config.json of Hugging Face, or a model in YAML     orrery describe MODEL
--cluster FILE    a cluster in YAML                                 orrery describe CLUSTER
--stack FILE      a software-stack profile in YAML                  orrery describe STACK
--scenario FILE   flags in YAML, with _ for -: global_batch: 512
--space FILE      the axes of a search                              examples/spaces

A catalogue name is valid wherever NAME|FILE is. "orrery describe NAME" prints an entry in the format that
the flag reads: save it, change a figure, and give the file. Paths in a file are relative to its folder.
Priority: flags, then --set, then the scenario. Every mistake of a file is reported, each with its line.
)"},
    {"environment", "variables that have an effect",
     R"(ORRERY_DATA         folder of the catalogue; default: that of the installed program, else that of the source
ORRERY_PROGRESS_S   seconds between two lines of progress where standard error is no terminal (default 10)
NO_COLOR            set to anything: no colours
TMPDIR              where "orrery web" keeps the files of a request until it is answered
)"},
    {"exit-codes", "what the exit status of a command says", R"(0   done
1   the answer is "no": nothing fits, a checked trace is unsound, a difference was found
2   bad input; each line on standard error names the place, the value and what is valid
3   internal error: please report it
)"},
    {"terms", "the terms and abbreviations of flags and output", ""},
}};

struct Term {
  std::string name, meaning;
};

// The rows of the glossary's tables, "| tp | meaning |".
std::vector<Term> terms() {
  std::vector<Term> found;
  std::string_view rest = embedded_files().front().bytes;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::size_t middle = line.find(" | ");
    const bool is_row = line.starts_with("| ") && line.ends_with(" |") && middle != std::string_view::npos;
    if (!is_row || line.starts_with("| term |")) { continue; }
    found.push_back(
        {std::string(line.substr(2, middle - 2)), std::string(line.substr(middle + 3, line.size() - middle - 5))});
  }
  return found;
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

// A row may have several names: "dispatch, combine".
std::vector<std::string> names_of(const Term& term) {
  std::vector<std::string> names;
  std::string_view rest = term.name;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(", "), rest.size());
    std::string name(rest.substr(0, end));
    std::erase(name, '`');
    names.push_back(std::move(name));
    rest.remove_prefix(std::min(end + 2, rest.size()));
  }
  return names;
}

std::string shown(const Term& term) { return report::wrapped(term.name + ": ", term.meaning); }

}  // namespace
}  // namespace of_help

std::optional<std::string> help_on(const std::string& about) {
  using namespace of_help;
  const std::string wanted = lower(about);
  std::string text;
  for (const Topic& topic : kTopics) {
    if (wanted == topic.name && !topic.text.empty()) { return std::string(topic.text); }
  }
  for (const Term& term : terms()) {
    const auto names = names_of(term);
    const bool matches =
        wanted == "terms" || lower(term.name) == wanted ||
        std::any_of(names.begin(), names.end(), [&](const auto& name) { return lower(name) == wanted; });
    if (matches) { text += shown(term); }
  }
  return text.empty() ? std::nullopt : std::optional(std::move(text));
}

std::string help_topics() {
  std::string text;
  for (const auto& topic : of_help::kTopics) {
    text += fmt::format("  orrery help {:<13}{}\n", topic.name, topic.summary);
  }
  return text;
}

std::vector<std::string> help_names() {
  std::vector<std::string> names;
  for (const auto& topic : of_help::kTopics) { names.emplace_back(topic.name); }
  for (const auto& term : of_help::terms()) {
    for (auto& name : of_help::names_of(term)) { names.push_back(of_help::lower(name)); }
  }
  return names;
}

}  // namespace orrery::cli
