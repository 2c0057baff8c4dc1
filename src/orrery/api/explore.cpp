#include "orrery/api/explore.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "orrery/api/expanded_search.hpp"
#include "orrery/api/study_evaluator.hpp"
#include "orrery/api/study_tree.hpp"
#include "orrery/config/json.hpp"
#include "orrery/config/record.hpp"
#include "orrery/core/text.hpp"
#include "orrery/parallel/plan_fields.hpp"
#include "orrery/report/page.hpp"
#include "orrery/study/store.hpp"

namespace orrery::api {

using config::Kind;
using config::Node;
using study::Points;
using study::Study;

namespace {

std::string line_of(const Node& node) {
  std::string text = config::json_document(node, 0);
  std::erase(text, '\n');
  return text;
}

// Descriptions that the study names -> hash.
std::string input_hashes(StudyInputs& inputs, const Study& study) {
  Node hashes = config::mapping_node();
  for (const auto& [name, text] : inputs.named_descriptions(study.axes)) {
    config::set_field(hashes, name, hash_of(text));
  }
  return line_of(hashes);
}

// Reads every description that a point needs, without pricing it.
std::optional<Failure> failure_of_point(StudyInputs& inputs, const Settings& settings) {
  const auto request = inputs.request(settings);
  if (!request) { return request.error(); }
  for (const char* part : {"cluster", "model"}) {
    const auto tree = inputs.part_tree(part, settings);
    if (!tree) { return tree.error(); }
  }
  if (request->semantics == estimate::Semantics::mad_max) {
    const auto read = inputs.mad_max_inputs(settings, *request);
    return read ? std::nullopt : std::optional(read.error());
  }
  if (auto wrong = estimate::problems(*request); !wrong.empty()) { return Failure{std::move(wrong)}; }
  const auto read = inputs.inputs(settings, without_expansion(*request), Length::longest);
  return read ? std::nullopt : std::optional(read.error());
}

// Whether an error is of what the study says, and not of how values of several axes fit together.
bool is_of_study(const Diagnostic& diagnostic, const Study& study) {
  return !study.file.empty() && diagnostic.place.file == study.file;
}

void check_setting(StudyInputs& inputs, const Study& study, const Settings& base, const Settings& changed,
                   std::vector<Diagnostic>& wrong) {
  Settings all = base;
  all.insert(all.end(), changed.begin(), changed.end());
  const auto failure = failure_of_point(inputs, all);
  if (!failure) { return; }
  for (const auto& diagnostic : failure->diagnostics) {
    const bool is_new = std::find(wrong.begin(), wrong.end(), diagnostic) == wrong.end();
    if (is_of_study(diagnostic, study) && is_new) { wrong.push_back(diagnostic); }
  }
}

// Every value of every axis, alone: the others have their first value. A point that fails for another reason than a
// mistake of the file is a row.
std::vector<Diagnostic> mistakes(StudyInputs& inputs, const Study& study) {
  constexpr std::size_t kMostChecked = 200;  // of an axis: those at its ends
  std::vector<Diagnostic> wrong;
  std::vector<study::AxisValue> firsts;
  for (const auto& axis : study.axes) { firsts.push_back(axis.values.empty() ? axis.at(0.0) : axis.values.front()); }
  const auto base_without = [&](std::size_t left_out) {
    Settings settings;
    for (std::size_t i = 0; i < firsts.size(); ++i) {
      if (i == left_out) { continue; }
      settings.insert(settings.end(), firsts[i].settings.begin(), firsts[i].settings.end());
    }
    return settings;
  };
  for (std::size_t i = 0; i < study.axes.size(); ++i) {
    const auto& values = study.axes[i].values;
    const Settings base = base_without(i);
    for (std::size_t v = 0; v < values.size(); ++v) {
      if (values.size() > kMostChecked && v >= kMostChecked / 2 && v + kMostChecked / 2 < values.size()) { continue; }
      check_setting(inputs, study, base, values[v].settings, wrong);
    }
    if (values.empty() && study.axes[i].range) {
      for (const double part : {0.0, 1.0}) {
        check_setting(inputs, study, base, study.axes[i].at(part).settings, wrong);
      }
    }
  }
  const Settings all = base_without(firsts.size());
  if (const auto failure =
          failure_of_point(inputs, all)) {  // a file of the catalogue, or of the user, that does not read
    for (const auto& diagnostic : failure->diagnostics) {
      const bool is_new = std::find(wrong.begin(), wrong.end(), diagnostic) == wrong.end();
      if (!diagnostic.place.file.empty() && is_new) { wrong.push_back(diagnostic); }
    }
  }
  if (study.axes.empty()) { check_setting(inputs, study, {}, {}, wrong); }
  if (study.threshold) {
    for (const auto* plan : {&study.threshold->first, &study.threshold->second}) {
      Settings changed{{study.threshold->path, study.threshold->range.node(study.threshold->range.high)}};
      changed.insert(changed.end(), plan->begin(), plan->end());
      check_setting(inputs, study, all, changed, wrong);
    }
  }
  if (study.sensitivities) {
    const Node& paths = *study.tree.find("sensitivity")->find("of");
    for (const Node& path : paths.items) {
      const auto value = inputs.value(all, path.scalar);
      if (!value) {
        wrong.push_back({path.place, value.error().diagnostics.front().message});
      } else if (const auto doubled = scaled_value(*value, 2.0); !doubled) {
        wrong.push_back({path.place, fmt::format("sensitivity of {}: {}", path.scalar,
                                                 doubled.error().diagnostics.front().message)});
      }
    }
  }
  return wrong;
}

// Paths whose values differ between two trees, the first few.
void differences(const Node& before, const Node& after, const std::string& path, std::vector<std::string>& found) {
  constexpr std::size_t kMost = 4;
  if (before == after || found.size() >= kMost) { return; }
  if (before.kind == Kind::mapping && after.kind == Kind::mapping) {
    for (const auto& member : before.members) {
      const Node* other = after.find(member.key);
      const std::string below = path.empty() ? member.key : path + "." + member.key;
      if (other != nullptr) {
        differences(member.value, *other, below, found);
      } else {
        found.push_back(below + " was removed");
      }
    }
    for (const auto& member : after.members) {
      if (before.find(member.key) == nullptr) {
        found.push_back((path.empty() ? "" : path + ".") + member.key + " is new");
      }
    }
    return;
  }
  if (before.kind == Kind::sequence && after.kind == Kind::sequence && before.items.size() == after.items.size()) {
    for (std::size_t i = 0; i < before.items.size(); ++i) {
      differences(before.items[i], after.items[i], fmt::format("{}.{}", path, i), found);
    }
    return;
  }
  found.push_back(fmt::format("{} was {}, is {}", path, config::inline_text(before), config::inline_text(after)));
}

Result<Node> canonical(const std::string& json) { return config::parse_json(json, {}); }

// Why a database cannot be continued with this study; empty: it can.
std::string change_since(const results::StudyInfo& before, const results::StudyInfo& now) {
  std::vector<std::string> found;
  const auto add = [&](const std::string& a, const std::string& b, const std::string& what) {
    const auto first = canonical(a), second = canonical(b);
    std::vector<std::string> changed;
    if (first && second) { differences(*first, *second, {}, changed); }
    for (auto& one : changed) { found.push_back(what + one); }
  };
  if (before.study != now.study) { add(before.study, now.study, ""); }
  if (before.inputs != now.inputs) { add(before.inputs, now.inputs, "description of "); }
  if (before.version != now.version) {
    found.push_back(fmt::format("orrery was {}, is {}", before.version, now.version));
  }
  return join(found, "; ");
}

// A study that is read and checked.
struct Ready {
  Study study;
  std::unique_ptr<StudyInputs> inputs;
  results::StudyInfo info;
};

// What the first point that has a price does not model, and what no study does.
std::vector<std::string> not_modelled(const std::string& data_directory, Ready& ready) {
  constexpr int kMostTried = 20;
  StudyEvaluator evaluator(data_directory, ready.study, {});
  auto points = Points::make(ready.study, ready.inputs->facts());
  for (int i = 0; i < kMostTried && evaluator.not_modelled().empty(); ++i) {
    const auto point = points->next();
    if (!point) { break; }
    results::StudyRow row;
    row.columns = point->columns;
    if (point->problem.empty()) { evaluator.evaluate(*point, row); }
  }
  auto list = evaluator.not_modelled();
  list.emplace_back("networks outside nodes, buildings, cooling and staff in prices and power");
  return list;
}

Result<std::unique_ptr<Ready>> read_ready(const std::string& data_directory, const std::string& file,
                                          const std::string& version) {
  auto ready = std::make_unique<Ready>();
  ORRERY_TRY(study, study::read_study(file));
  ready->study = std::move(study);
  ready->inputs = std::make_unique<StudyInputs>(data_directory, ready->study);
  auto points = Points::make(ready->study, ready->inputs->facts());
  if (!points) { return tl::make_unexpected(points.error()); }
  if (auto wrong = mistakes(*ready->inputs, ready->study); !wrong.empty()) {
    return tl::make_unexpected(config::failure_of(std::move(wrong)));
  }
  const Study& s = ready->study;
  const Node* semantics = s.base.find("semantics");
  auto& info = ready->info;
  info.name = s.name;
  info.description = s.description;
  info.version = version;
  info.semantics = semantics != nullptr ? semantics->scalar : "physical";
  info.study = line_of(s.tree);
  info.inputs = input_hashes(*ready->inputs, s);
  info.hash = hash_of(info.study + info.inputs);
  info.objective = s.objective;
  info.front = s.front;
  return ready;
}

Result<study::Store> opened_store(const StudyRequest& request, const Ready& ready) {
  if (!request.resume || study::Store::is_free(request.database)) {
    return study::Store::create(request.database, ready.info, ready.study.columns());
  }
  ORRERY_TRY(store, study::Store::open(request.database, true));
  const std::string change = change_since(store.info(), ready.info);
  if (!change.empty()) {
    return fail(Place{"", 0, 0, "--resume"},
                fmt::format("{} has results of another study: {}", quote(request.database), change));
  }
  return store;
}

std::int64_t counted(const Study& study, StudyInputs& inputs) {
  auto points = Points::make(study, inputs.facts());
  if (points->has_all_candidates()) { return points->candidates(); }
  std::int64_t count = 0;
  while (points->next()) { ++count; }
  return count;
}

Result<std::vector<results::Sensitivity>> sensitivities(const std::string& data_directory, Ready& ready,
                                                        const results::StudyRow& best, const std::string& hash) {
  std::vector<results::Sensitivity> list;
  const auto& base = best.of(results::Metric::step_time_s);
  if (!ready.study.sensitivities || !base) { return list; }
  ORRERY_TRY(points, Points::make(ready.study, ready.inputs->facts()));
  const auto point = points.skip_to(best.id);
  ORRERY_ASSERT(point.has_value());
  StudyEvaluator evaluator(data_directory, ready.study, hash);
  for (const std::string& path : ready.study.sensitivities->paths) {
    list.push_back(evaluator.sensitivity(*point, path, ready.study.sensitivities->factor, *base));
  }
  return list;
}

}  // namespace

Result<std::optional<StudyAnswer>> explore(const std::string& data_directory, const StudyRequest& request) {
  ORRERY_TRY(ready, read_ready(data_directory, request.file, request.version));
  const Study& study = ready->study;
  std::vector<std::unique_ptr<StudyInputs>> inputs_of_threads;
  const std::string hash = ready->info.hash;
  const study::Work work{study, [&] { return *Points::make(study, ready->inputs->facts()); },
                         [&] { return std::make_unique<StudyEvaluator>(data_directory, study, hash); },
                         [&]() -> study::Facts {
                           const auto own = std::make_shared<StudyInputs>(data_directory, study);
                           return [own](const std::string& path, const Settings& settings) {
                             return own->facts()(path, settings);
                           };
                         }};
  study::RunOptions options;
  options.threads = request.threads;
  options.is_stopped = request.is_stopped;
  options.ranks = request.ranks;
  if (request.ranks != nullptr && request.ranks->rank() > 0) {
    study::serve(work, options);
    return std::optional<StudyAnswer>();
  }
  const std::int64_t points = counted(study, *ready->inputs);
  if (points == 0) {
    const Node* where = study.tree.find("where");
    return fail(where != nullptr ? where->place : study.tree.place,
                "where: no combination of the axes' values is a point");
  }
  // A batch is a transaction: large ones are written in less time, small ones are spread better.
  const bool is_slow = study.inner == study::Inner::search || study.threshold.has_value();
  options.batch = is_slow ? 1 : std::clamp<std::int64_t>(points / 128, 1, 256);
  ready->info.points = points;
  ready->info.not_modelled = not_modelled(data_directory, *ready);
  ORRERY_TRY(store, opened_store(request, *ready));
  ORRERY_TRY(present, store.present(points));
  const auto before = std::count(present.begin(), present.end(), true);
  if (request.progress) {
    options.progress = [&](std::int64_t done) { request.progress(before + done, points); };
  }
  const auto sink = [&](std::span<const results::StudyRow> rows) { return store.append(rows); };
  ORRERY_TRY(complete, study::run(work, present, sink, options));
  StudyAnswer answer{ready->info, study.columns(), {}, {}, !complete};
  ORRERY_TRY(summary, store.summary(study.objective));
  answer.summary = std::move(summary);
  if (complete) {
    if (answer.summary.best) {
      ORRERY_TRY(list, sensitivities(data_directory, *ready, *answer.summary.best, hash));
      if (auto stored = store.set_sensitivities(list); !stored) { return tl::make_unexpected(stored.error()); }
      answer.sensitivities = std::move(list);
    }
    if (auto finished = store.finish(); !finished) { return tl::make_unexpected(finished.error()); }
  }
  return std::optional(std::move(answer));
}

Result<std::string> study_page(const std::string& database) {
  const auto store = study::Store::open(database, false);
  auto table = store ? store->table() : tl::make_unexpected(store.error());
  if (table) { return report::study_page(*table); }
  for (auto& diagnostic : table.error().diagnostics) { diagnostic.place = {}; }
  return tl::make_unexpected(table.error());
}

namespace {

// What the row of a point has figures of: settings with the plan that was found.
struct ShownPoint {
  Settings settings;
  std::vector<std::string> notes;
};

ShownPoint shown_point(const std::string& data_directory, const Study& study, const study::Point& point) {
  ShownPoint shown{point.settings, {}};
  const bool searches = study.inner == study::Inner::search;
  if ((!searches && !study.threshold) || !point.problem.empty()) { return shown; }
  StudyEvaluator evaluator(data_directory, study, {});
  results::StudyRow row;
  row.columns = point.columns;
  evaluator.evaluate(point, row);
  shown.settings = evaluator.settings_of_row();
  if (!searches) { return shown; }
  const auto plan = row.plan.empty() ? Result<Node>(config::mapping_node()) : canonical(row.plan);
  if (!plan || plan->members.empty()) { shown.notes.push_back("the search found no plan: " + row.reason); }
  for (const auto& member : plan ? plan->members : config::mapping_node().members) {
    const bool is_given = parallel::find_choice(member.key) != nullptr || member.key == "strategy";
    if (is_given && !member.value.scalar.empty()) { shown.settings.push_back({member.key, member.value}); }
  }
  return shown;
}

}  // namespace

Result<PointFiles> point_files(const std::string& data_directory, const std::string& file, std::int64_t id) {
  ORRERY_TRY(ready, read_ready(data_directory, file, {}));
  ORRERY_TRY(points, Points::make(ready->study, ready->inputs->facts()));
  const auto point = points.skip_to(id);
  if (!point) {
    return fail(Place{"", 0, 0, "--point"}, fmt::format("{} is not a point; the study has points 0 to {}", id,
                                                        counted(ready->study, *ready->inputs) - 1));
  }
  const ShownPoint shown = shown_point(data_directory, ready->study, *point);
  ORRERY_TRY(fields, ready->inputs->fields(shown.settings));
  ORRERY_TRY(request, ready->inputs->request(shown.settings));
  PointFiles result;
  result.notes = shown.notes;
  result.files.push_back({"scenario.yaml", {}});
  for (const std::string part : {"model", "cluster", "stack"}) {
    const Node* base = ready->study.base.find(part);
    const bool described = base != nullptr && base->kind == Kind::mapping;
    if (!described && !StudyInputs::changes(shown.settings, part)) { continue; }
    std::string stack_name;
    if (part == "stack" && request.semantics == estimate::Semantics::physical) {
      ORRERY_TRY(read, ready->inputs->inputs(shown.settings, without_expansion(request), Length::longest));
      stack_name = read.stack.name;
    }
    ORRERY_TRY(tree, ready->inputs->part_tree(part, shown.settings, stack_name));
    const std::string name = part + ".yaml";
    result.files.push_back({name, config::print_yaml(tree)});
    config::set_field(fields, part, name);
  }
  std::string& scenario = result.files.front().text;
  for (const auto& note : result.notes) { scenario += fmt::format("# {}\n", note); }
  scenario += config::print_yaml(fields);
  return result;
}

}  // namespace orrery::api
