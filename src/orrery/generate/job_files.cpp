#include "orrery/generate/job_files.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "orrery/config/json.hpp"
#include "orrery/generate/graph_file.hpp"
#include "orrery/graph/record.hpp"
#include "orrery/trace/output.hpp"

namespace orrery::generate {

namespace fs = std::filesystem;

namespace {

constexpr std::array<std::string_view, 6> kSuffixes = {".et", ".et.gz", ".et.zst", ".jsonl", ".jsonl.gz", ".jsonl.zst"};

Place out_place(const std::string& name) { return {name, 0, 0, "--out"}; }

fs::path folder_of(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  return folder.empty() ? fs::path(".") : folder;
}

// "12" of "run.12.et", "class3" of "run.class3.et", "groups" of "run.groups.json": whether a job writes such a file.
bool is_of_a_job(std::string_view rest) {
  if (rest == "groups.json" || rest == "classes.json") { return true; }
  if (rest.starts_with("class")) { rest.remove_prefix(5); }
  const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
  if (digits == 0) { return false; }
  rest.remove_prefix(digits);
  return std::find(kSuffixes.begin(), kSuffixes.end(), rest) != kSuffixes.end();
}

// Files of an earlier job with this prefix.
std::vector<fs::path> earlier_files(const OutputNames& names) {
  const std::string stem = fs::path(names.prefix).filename().string() + ".";
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_of(names.prefix), error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(stem) && is_of_a_job(std::string_view(name).substr(stem.size()))) {
      found.push_back(fs::path(names.prefix).parent_path() / name);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

// Renames that are undone, the last first, unless all of them succeed.
class Renames {
 public:
  Renames() = default;
  Renames(const Renames&) = delete;
  Renames& operator=(const Renames&) = delete;
  ~Renames() {
    std::error_code error;
    for (auto done = done_.rbegin(); done != done_.rend(); ++done) { fs::rename(done->second, done->first, error); }
  }

  [[nodiscard]] std::error_code add(const fs::path& from, const fs::path& to) {
    std::error_code error;
    fs::rename(from, to, error);
    if (!error) { done_.emplace_back(from, to); }
    return error;
  }
  void keep() { done_.clear(); }

 private:
  std::vector<std::pair<fs::path, fs::path>> done_;
};

// The folder of incomplete files: removed with all its files unless they are moved out of it.
class PartialFolder {
 public:
  static Result<std::unique_ptr<PartialFolder>> make(const OutputNames& names, bool replace) {
    std::error_code error;
    const std::string path = names.partial();
    const auto status = fs::symlink_status(path, error);
    if (fs::exists(status) && !fs::is_directory(status)) {
      return fail(out_place(path), "is a file, and the folder of incomplete files has its name; choose another prefix");
    }
    if (replace) { fs::remove_all(path, error); }
    if (!fs::create_directory(path, error)) {
      if (!error) {
        return fail(out_place(path), "is the folder of an interrupted run; remove it, or give --force to replace it");
      }
      return fail(out_place(path), fmt::format("cannot be created: {}", error.message()));
    }
    return std::make_unique<PartialFolder>(path);
  }

  explicit PartialFolder(fs::path path) : path_(std::move(path)) {}
  PartialFolder(const PartialFolder&) = delete;
  PartialFolder& operator=(const PartialFolder&) = delete;
  ~PartialFolder() {
    std::error_code error;
    fs::remove_all(path_, error);
  }

  // Where a file is while it is not complete.
  [[nodiscard]] std::string place_of(const std::string& file) const {
    return (path_ / fs::path(file).filename()).string();
  }

  // Puts the complete files in the place of the earlier ones: all of them, or none.
  [[nodiscard]] Result<void> replace(const std::vector<fs::path>& earlier,
                                     const std::vector<std::string>& files) const {
    std::error_code error;
    const fs::path aside = path_ / "earlier";
    fs::create_directory(aside, error);
    Renames renames;
    for (const fs::path& file : earlier) {
      error = renames.add(file, aside / file.filename());
      if (error) { return fail(out_place(file.string()), fmt::format("cannot be replaced: {}", error.message())); }
    }
    for (const std::string& file : files) {
      error = renames.add(place_of(file), file);
      if (error) { return fail(out_place(file), fmt::format("cannot be written: {}", error.message())); }
    }
    renames.keep();
    return {};
  }

 private:
  fs::path path_;
};

// The rank's groups, as texts and payloads that the metadata views.
class GroupLists {
 public:
  GroupLists(const ProcessGroups& groups, std::int64_t rank) {
    const std::size_t count = groups.families().size();
    names_.reserve(count);
    lists_.reserve(count);
    for (const GroupFamily& family : groups.families()) {
      const RankSet members = groups.members(family, rank);
      if (members.degree <= 1) { continue; }
      names_.push_back(fmt::format("{}{}", graph::keys::process_group_prefix,
                                   family.first_name + groups.position(family.kind, rank)));
      lists_.push_back(graph::packed_integers(graph::ValueType::uint64_list, groups.devices(members)));
      metadata_.attributes.push_back(
          {names_.back(), graph::Value::view(graph::ValueType::uint64_list, lists_.back()), {}, {}});
    }
    metadata_.version = "0.0.4";
  }
  GroupLists() { metadata_.version = "0.0.4"; }

  [[nodiscard]] const graph::Metadata& metadata() const { return metadata_; }

 private:
  std::vector<std::string> names_, lists_;
  graph::Metadata metadata_;
};

// Asks now and then whether to go on.
class Interruptible : public NodeSink {
 public:
  Interruptible(NodeSink& sink, const std::function<bool()>& interrupted) : sink_(sink), interrupted_(interrupted) {}
  Result<void> write(const graph::NodeRecord& node) override {
    constexpr std::uint64_t kNodes = 1024;
    if (++count_ % kNodes == 0 && interrupted_ && interrupted_()) { return fail("interrupted"); }
    return sink_.write(node);
  }

 private:
  NodeSink& sink_;
  const std::function<bool()>& interrupted_;
  std::uint64_t count_ = 0;
};

class JobWriter {
 public:
  JobWriter(const JobGraphs& graphs, const OutputNames& names, const JobFileOptions& options,
            const PartialFolder& folder)
      : graphs_(graphs), names_(names), options_(options), folder_(folder) {}

  Result<results::Generation> run() {
    generation_.ranks = graphs_.ranks();
    generation_.classes = options_.classes ? graphs_.stages() : 0;
    const std::int64_t count = options_.classes ? graphs_.stages() : graphs_.ranks();
    for (std::int64_t i = 0; i < count; ++i) {
      if (auto written = write_graph(i); !written) { return tl::make_unexpected(placed(written.error())); }
    }
    auto written = options_.classes ? write_classes() : write_groups();
    if (!written) { return tl::make_unexpected(placed(written.error())); }
    generation_.first_file = name(0);
    generation_.last_file = name(count - 1);
    return std::move(generation_);
  }

  // All files, the index last.
  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> files;
    const std::int64_t count = options_.classes ? graphs_.stages() : graphs_.ranks();
    for (std::int64_t i = 0; i < count; ++i) { files.push_back(name(i)); }
    files.push_back(options_.classes ? names_.classes() : names_.groups());
    return files;
  }

 private:
  [[nodiscard]] std::string name(std::int64_t i) const {
    return options_.classes ? names_.of_class(i) : names_.of_rank(i);
  }

  // Errors name the file that was to be written, not where it is meanwhile.
  [[nodiscard]] Failure placed(Failure failure) const {
    for (Diagnostic& diagnostic : failure.diagnostics) {
      if (!diagnostic.place.file.empty()) {
        diagnostic.place.file =
            (fs::path(names_.prefix).parent_path() / fs::path(diagnostic.place.file).filename()).string();
      }
    }
    return failure;
  }

  Result<void> write_graph(std::int64_t i) {
    const std::int64_t rank = options_.classes ? graphs_.first_rank(i) : graphs_.groups().rank_on(i);
    const GroupLists lists = options_.classes ? GroupLists() : GroupLists(graphs_.groups(), rank);
    ORRERY_TRY(file, open_graph_file(folder_.place_of(name(i)), lists.metadata()));
    Interruptible sink(*file, options_.interrupted);
    ORRERY_TRY(nodes, graphs_.write(rank, options_.classes ? Naming::classes : Naming::ranks, sink));
    ORRERY_TRY(bytes, file->close());
    if (options_.interrupted && options_.interrupted()) { return fail("interrupted"); }
    generation_.nodes += nodes;
    generation_.bytes += bytes;
    return {};
  }

  Result<void> write_groups() {
    generation_.index_file = names_.groups();
    ORRERY_TRY(out, trace::Output::open(folder_.place_of(names_.groups())));
    const ProcessGroups& groups = graphs_.groups();
    std::string text = "{";
    const char* separator = "\n";
    for (const GroupFamily& family : groups.families()) {
      for (std::int64_t i = 0; i < family.count; ++i) {
        fmt::format_to(std::back_inserter(text), "{}\"{}\": [{}]", separator, family.first_name + i,
                       fmt::join(groups.devices(groups.group(family, i)), ", "));
        if (auto put = out.put(text); !put) { return put; }
        text.clear();
        separator = ",\n";
      }
    }
    if (auto put = out.put(text + "\n}\n"); !put) { return put; }
    return out.close().map([](std::uint64_t) {});
  }

  Result<void> write_classes() {
    generation_.index_file = names_.classes();
    ORRERY_TRY(out, trace::Output::open(folder_.place_of(names_.classes())));
    const ProcessGroups& groups = graphs_.groups();
    config::Node document = config::json_object(
        {{"schema", "orrery.classes/1"},
         {"ranks", graphs_.ranks()},
         {"node_ports", graphs_.egress() == network::NodeEgress::one_port ? "one" : "all"},
         {"groups",
          config::json_list(groups.families(), [&](const GroupFamily& family) { return family_node(groups, family); })},
         {"classes", class_list()}});
    if (groups.plan().placement.any()) {
      config::set_field(document, "layout", config::json_list(groups.layout(), [](const network::Extent& digit) {
                          return config::json_object({{"dimension", digit.dimension}, {"ranks", digit.members}});
                        }));
    }
    if (auto put = out.put(config::json_document(document)); !put) { return put; }
    return out.close().map([](std::uint64_t) {});
  }

  [[nodiscard]] static config::Node family_node(const ProcessGroups& groups, const GroupFamily& family) {
    const RankSet first = groups.group(family, 0);
    config::Node node =
        config::json_object({{"name", name_of(family)},
                             {"first_name", family.first_name},
                             {"count", family.count},
                             {"kind", family.kind == parallel::GroupKind::mirror ? "mirrored" : "strided"},
                             {"stride", first.stride},
                             {"degree", first.inner}});
    if (first.inner < first.degree) {
      config::add_fields(node, {{"outer_stride", first.outer_stride}, {"outer_degree", first.degree / first.inner}});
    }
    return node;
  }

  [[nodiscard]] config::Node class_list() const {
    config::Node list = config::sequence_node();
    for (std::int64_t stage = 0; stage < graphs_.stages(); ++stage) {
      config::add_item(list, config::json_object({{"file", fs::path(names_.of_class(stage)).filename().string()},
                                                  {"first_rank", graphs_.first_rank(stage)},
                                                  {"ranks", graphs_.stage_ranks()}}));
    }
    return list;
  }

  const JobGraphs& graphs_;
  const OutputNames& names_;
  const JobFileOptions& options_;
  const PartialFolder& folder_;
  results::Generation generation_;
};

}  // namespace

std::string OutputNames::of_rank(std::int64_t rank) const { return fmt::format("{}.{}{}", prefix, rank, suffix); }
std::string OutputNames::of_class(std::int64_t stage) const {
  return fmt::format("{}.class{}{}", prefix, stage, suffix);
}

Result<OutputNames> output_names(const std::string& out) {
  OutputNames names{out, ".et"};
  for (const std::string_view suffix : kSuffixes) {
    if (!out.ends_with(suffix)) { continue; }
    names = {out.substr(0, out.size() - suffix.size()), std::string(suffix)};
    break;
  }
  if (fs::path(names.prefix).filename().empty()) {
    return fail(out_place(out), "has no file name; give a prefix such as folder/run");
  }
  std::error_code error;
  if (fs::is_other(fs::status(names.prefix, error))) {  // such as /dev/null
    return fail(out_place(out), "is a device or a pipe; give a prefix such as folder/run");
  }
  const fs::path folder = folder_of(names.prefix);
  if (!fs::is_directory(folder, error)) {
    return fail(out_place(out), fs::exists(folder, error)
                                    ? fmt::format("{} is not a folder", folder.string())
                                    : fmt::format("the folder {} does not exist", folder.string()));
  }
  return names;
}

Result<results::Generation> write_job(const JobGraphs& graphs, const OutputNames& names,
                                      const JobFileOptions& options) {
  const std::vector<fs::path> earlier = earlier_files(names);
  for (const fs::path& file : earlier) {
    std::error_code error;
    if (!fs::is_directory(fs::symlink_status(file, error))) { continue; }
    return fail(out_place(file.string()), "is a folder with the name of a file of the job; choose another prefix");
  }
  if (!earlier.empty() && !options.replace) {
    return fail(
        out_place(earlier.front().string()),
        fmt::format(
            "exists{}; choose another prefix, or give --force to replace the job",
            earlier.size() > 1 ? fmt::format(" (and {} more files of {})", earlier.size() - 1, names.prefix) : ""));
  }
  ORRERY_TRY(folder, PartialFolder::make(names, options.replace));
  JobWriter writer(graphs, names, options, *folder);
  ORRERY_TRY(generation, writer.run());
  if (auto replaced = folder->replace(earlier, writer.files()); !replaced) {
    return tl::make_unexpected(std::move(replaced).error());
  }
  return generation;
}

}  // namespace orrery::generate
