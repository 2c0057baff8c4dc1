// Options before they become text: sections of settings, and notes on what they cannot express.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/launch/launch.hpp"

namespace orrery::launch {

// One option. Programs with other defaults need the settings that are off, too.
struct Setting {
  std::string name;
  std::string value;   // empty: a switch
  bool is_set = true;  // false: the switch is off, or the program's default applies
};

struct Section {
  std::string title;
  std::vector<Setting> settings;
};

class Sheet {
 public:
  void open(std::string title) { sections_.push_back({std::move(title), {}}); }
  void toggle(std::string name, bool on = true) { add({std::move(name), "", on}); }
  void value(std::string name, std::string text, bool is_set = true) {
    add({std::move(name), std::move(text), is_set});
  }
  void value(std::string name, std::int64_t number, bool is_set = true) {
    value(std::move(name), std::to_string(number), is_set);
  }
  // `flag`: Orrery's flag and value, such as "--schedule zero-bubble".
  void note(std::string_view flag, std::string_view text);

  // Fields of the model's description that settings state exactly, and those that a note is about.
  void states(std::initializer_list<std::string_view> fields) {
    stated_.insert(stated_.end(), fields.begin(), fields.end());
  }
  void notes_field(std::string_view field) { noted_.emplace_back(field); }
  [[nodiscard]] bool says(std::string_view field) const { return contains(stated_, field); }
  [[nodiscard]] bool has_note_on(std::string_view field) const { return contains(noted_, field); }
  [[nodiscard]] const std::vector<std::string>& noted_fields() const { return noted_; }

  [[nodiscard]] const std::vector<Section>& sections() const { return sections_; }
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

 private:
  [[nodiscard]] static bool contains(const std::vector<std::string>& list, std::string_view field) {
    return std::find(list.begin(), list.end(), field) != list.end();
  }
  void add(Setting setting) { sections_.back().settings.push_back(std::move(setting)); }

  std::vector<Section> sections_;
  std::vector<std::string> notes_;
  std::vector<std::string> stated_, noted_;
};

// The plan in one line, in the words of `estimate`.
[[nodiscard]] std::string plan_line(const parallel::Plan& plan);

// "llama-3.1-405b on 16384 devices (2048 nodes of 8)".
[[nodiscard]] std::string run_line(const TrainingRun& run);
[[nodiscard]] std::int64_t nodes_of(const TrainingRun& run);
[[nodiscard]] std::int64_t processes_per_node(const TrainingRun& run);

// Lines that begin with `# `, wrapped; continued lines are indented by `indent` more.
[[nodiscard]] std::string comment(std::string_view text, int indent = 0);

// The beginning of every text: the run, the plan, the releases that were read, and the notes.
[[nodiscard]] std::string heading(const TrainingRun& run, std::string_view what, std::string_view source,
                                  const std::vector<std::string>& notes);

// A bash array of words, one setting a line: `NAME=(`, ..., `)`. `words` are quoted where the shell would expand them.
[[nodiscard]] std::string bash_array(std::string_view name, const std::vector<std::string>& lines);
[[nodiscard]] std::string bash_word(const std::string& word);

// Arguments of torchrun for the run's nodes, and the settings for a node as environment variables.
[[nodiscard]] std::vector<std::string> torchrun_arguments(const TrainingRun& run);

// A line for the shell, or nothing: the number of hardware queues that Megatron-Core requires.
[[nodiscard]] std::string max_connections_line(const parallel::Plan& plan);

// Note on sharded gradients where `tool` reduces them at another time than the plan's stack: in every micro-batch, or
// once a step.
void note_reductions(const TrainingRun& run, std::string_view tool, bool every_micro_batch, Sheet& sheet);

// Notes on placement that no program can express: groups pinned to network dimensions, and nodes that are not hosts.
void note_placement(const TrainingRun& run, Sheet& sheet);

}  // namespace orrery::launch
