#include "orrery/study/study_conflicts.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "orrery/core/text.hpp"

namespace orrery::study {

namespace {

// A part of the study that sets paths.
struct Writer {
  std::string name;
  Place place;
  std::set<std::string> paths;
  std::set<std::string> columns;  // paths that are columns of their own: one of them twice is another error
};

class ConflictFinder {
 public:
  explicit ConflictFinder(const Study& study) : study_(study) {}

  std::vector<Diagnostic> run() {
    for (const Axis& axis : study_.axes) { add_axis(axis); }
    for (const Derived& one : study_.derived) {
      writers_.push_back({"derive", one.place, {one.column.path}, {one.column.path}});
    }
    if (study_.threshold) { add_threshold(*study_.threshold); }
    for (std::size_t later = 0; later < writers_.size(); ++later) {
      for (std::size_t earlier = 0; earlier < later; ++earlier) { compare(writers_[earlier], writers_[later]); }
    }
    for (const auto& member : study_.search.members) { check_searched(member.key, member.place()); }
    for (const auto& [name, value] : study_.constants) { check_constant(name); }
    return std::move(wrong_);
  }

 private:
  void add_settings(Writer& writer, const std::vector<Setting>& settings) {
    std::set<std::string> seen;
    for (const Setting& setting : settings) {
      if (!seen.insert(setting.path).second && !writer.paths.contains(setting.path)) {
        wrong_.push_back({writer.place, fmt::format("{} sets {} twice", writer.name, quote(setting.path))});
      }
    }
    writer.paths.merge(seen);
  }
  void add_axis(const Axis& axis) {
    if (axis.columns.empty()) { return; }
    Writer writer{"axis " + quote(axis.columns.front().path), axis.place, {}, {}};
    for (const AxisValue& value : axis.values) { add_settings(writer, value.settings); }
    for (const auto& column : axis.columns) {
      if (axis.range || writer.paths.contains(column.path)) {
        writer.paths.insert(column.path);
        writer.columns.insert(column.path);
      }
    }
    writers_.push_back(std::move(writer));
  }
  void add_threshold(const Threshold& threshold) {
    const Place& place = threshold.range.place;
    writers_.push_back({"threshold", place, {threshold.path}, {}});
    Writer plans{"a plan of threshold", place, {}, {}};
    for (const auto* plan : {&threshold.first, &threshold.second}) { add_settings(plans, *plan); }
    writers_.push_back(std::move(plans));
  }
  void compare(const Writer& earlier, const Writer& later) {
    for (const std::string& path : later.paths) {
      if (earlier.columns.contains(path) && later.columns.contains(path)) { continue; }
      if (earlier.paths.contains(path)) {
        wrong_.push_back({later.place, fmt::format("{} and {} both set {}: remove it from one of them", earlier.name,
                                                   later.name, quote(path))});
        continue;
      }
      // A part that is replaced as a whole, after a change of one of its fields. Models, clusters and stacks themselves
      // are replaced before any change.
      const std::string below = path + ".";
      const auto field = earlier.paths.lower_bound(below);
      if (path.find('.') != std::string::npos && field != earlier.paths.end() && field->starts_with(below)) {
        wrong_.push_back({later.place, fmt::format("{} replaces {}, and with it {} of {}: write {} later", later.name,
                                                   quote(path), quote(*field), earlier.name, earlier.name)});
      }
    }
  }
  void check_searched(const std::string& name, const Place& place) {
    std::string by = study_.base.find(name) != nullptr ? "base" : "";
    for (const Writer& writer : writers_) {
      if (by.empty() && writer.paths.contains(name)) { by = writer.name; }
    }
    if (by.empty()) { return; }
    wrong_.push_back(
        {place, fmt::format("search has values of {}, which {} sets: remove it from one of them", quote(name), by)});
  }
  void check_constant(const std::string& name) {
    const auto columns = study_.columns();
    const bool is_column = std::any_of(columns.begin(), columns.end(),
                                       [&](const auto& column) { return column.name == name || column.path == name; });
    const auto& results = results::kMetricNames;
    const char* other = is_column                                                          ? "a column of the study"
                        : std::find(results.begin(), results.end(), name) != results.end() ? "a result"
                        : study_.base.find(name) != nullptr                                ? "a field of base"
                                                                                           : nullptr;
    if (other == nullptr) { return; }
    const config::Node* value = study_.tree.find("let")->find(name);
    wrong_.push_back({value->place, fmt::format("let: {} is also {}; choose another name", quote(name), other)});
  }

  const Study& study_;
  std::vector<Writer> writers_;
  std::vector<Diagnostic> wrong_;
};

}  // namespace

std::vector<Diagnostic> conflicts(const Study& study) { return ConflictFinder(study).run(); }

}  // namespace orrery::study
