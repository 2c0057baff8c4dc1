#include "orrery/api/trace.hpp"

#include <map>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "orrery/api/trace_names.hpp"
#include "orrery/api/trace_read.hpp"
#include "orrery/config/node.hpp"
#include "orrery/graph/check.hpp"
#include "orrery/graph/job_check.hpp"
#include "orrery/trace/json_lines.hpp"

namespace orrery::api {

namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;

// ---- info ----

class InfoCounter {
 public:
  void count(const graph::NodeRecord& node) {
    ++nodes_;
    ++by_type_[node.type];
    data_deps_ += node.data_deps.size();
    ctrl_deps_ += node.ctrl_deps.size();
    if (node.type != graph::NodeType::comm_coll) { return; }
    const graph::Attribute* type = node.find(graph::keys::comm_type);
    ++collectives_[graph::collective_text(type == nullptr ? std::nullopt : std::optional(type->value))];
  }

  [[nodiscard]] std::uint64_t nodes() const { return nodes_; }

  [[nodiscard]] results::TraceInfo::File info(results::TraceFile file, const graph::Metadata& metadata) const {
    results::TraceInfo::File made{std::move(file), {}, data_deps_, ctrl_deps_, {}, {}};
    for (const auto& [type, count] : by_type_) { made.by_type.emplace_back(graph::type_text(type), count); }
    made.collectives.assign(collectives_.begin(), collectives_.end());
    for (const graph::ProcessGroup& group : process_groups(metadata)) {
      made.groups.push_back(fmt::format("{}: {}", group.name, fmt::join(group.ranks, " ")));
    }
    return made;
  }

 private:
  std::uint64_t nodes_ = 0, data_deps_ = 0, ctrl_deps_ = 0;
  std::map<graph::NodeType, std::uint64_t> by_type_;
  std::map<std::string, std::uint64_t> collectives_;
};

Result<results::TraceInfo::File> info_of(const std::string& path, const TraceOptions& options,
                                         const ReadProgress& progress) {
  ORRERY_TRY(stream, trace::NodeStream::open(path, read_options(options)));
  InfoCounter counter;
  for (;;) {
    ORRERY_TRY(node, stream.next());
    if (node == nullptr) { break; }
    counter.count(*node);
    if (counter.nodes() % 8192 == 0) { progress.within(stream.offset()); }
  }
  return counter.info(trace_file(path, stream.format(), stream.report(), counter.nodes()), stream.metadata());
}

// ---- check ----

// A JSON file {"name": [ranks], …}.
Result<std::vector<graph::ProcessGroup>> read_groups(const std::string& path) {
  if (path.empty()) { return std::vector<graph::ProcessGroup>(); }
  ORRERY_TRY(root, config::read_file(path));
  if (root.kind != config::Kind::mapping) {
    return fail(root.place, "must map process groups to their ranks: {\"name\": [0, 1], …}");
  }
  std::vector<graph::ProcessGroup> groups;
  for (const config::Member& member : root.members) {
    graph::ProcessGroup group{member.key, {}};
    for (const config::Node& item : member.value.items) {
      const bool natural = item.kind == config::Kind::integer &&
                           item.scalar.find_first_not_of("0123456789") == std::string::npos && item.scalar.size() < 19;
      if (!natural) {
        return fail(item.place, fmt::format("\"{}\" is not a rank, a whole number of at least 0", item.scalar));
      }
      group.ranks.push_back(std::stoull(item.scalar));
    }
    if (member.value.kind != config::Kind::sequence) {
      return fail(member.value.place, "must be a list of ranks, such as [0, 1]");
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

class Checks {
 public:
  Checks(const std::vector<TraceJob>& jobs, std::size_t files, const graph::JobCheckOptions& options)
      : job_of_(files, kNone), options_(options) {
    for (const TraceJob& job : jobs) {
      for (const std::size_t file : job.files) { job_of_[file] = jobs_.size(); }
      jobs_.emplace_back(options);
    }
    made_.files.resize(files);
  }

  void add(std::size_t position, const std::string& path, const graph::Graph& graph, results::TraceFile facts) {
    const auto rank = trace_name(path).rank;
    const bool in_job = job_of_[position] != kNone;
    const bool alone = !in_job && !options_.partial;
    made_.files[position] = {std::move(facts), rank, graph::check(graph, {options_.examples, rank, alone})};
    if (in_job) { jobs_[job_of_[position]].add(*rank, graph); }
  }

  results::TraceCheck finish(const std::vector<TraceJob>& jobs) {
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      made_.jobs.push_back({jobs[i].name, jobs[i].files.size(), jobs_[i].findings()});
    }
    return std::move(made_);
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::vector<std::size_t> job_of_;
  graph::JobCheckOptions options_;
  std::vector<graph::JobCheck> jobs_;
  results::TraceCheck made_;
};

}  // namespace

Result<results::TraceInfo> trace_info(const std::vector<std::string>& files, const TraceOptions& options) {
  results::TraceInfo info;
  Failure failed;
  ReadProgress progress(files, options);
  for (const std::string& file : files) {
    auto one = info_of(file, options, progress);
    progress.next_file();
    if (one) {
      info.files.push_back(std::move(*one));
    } else {
      collect(failed, std::move(one).error());
    }
  }
  if (!failed.diagnostics.empty()) { return tl::make_unexpected(std::move(failed)); }
  return info;
}

Result<results::TraceCheck> trace_check(const std::vector<std::string>& files, const TraceCheckOptions& check,
                                        const TraceOptions& options) {
  ORRERY_TRY(jobs, jobs_of(files));
  ORRERY_TRY(groups, read_groups(check.groups));
  Checks checks(jobs, files.size(), {check.examples, check.partial, std::move(groups)});
  auto read = for_each_graph(files, options, [&](std::size_t i, const graph::Graph& graph, results::TraceFile facts) {
    checks.add(i, files[i], graph, std::move(facts));
    return Result<void>();
  });
  if (!read) { return tl::make_unexpected(std::move(read).error()); }
  return checks.finish(jobs);
}

Result<std::vector<std::string>> trace_print(const std::string& file,
                                             const std::function<void(std::string_view)>& print,
                                             const TraceOptions& options) {
  ORRERY_TRY(stream, trace::NodeStream::open(file, read_options(options)));
  const std::vector<std::string> files = {file};
  const ReadProgress progress(files, options);
  std::string text;
  text.reserve(2 * kPiece);
  std::uint64_t nodes = 0;
  for (;; ++nodes) {
    auto node = stream.next();
    if (!node || *node == nullptr || text.size() >= kPiece) {
      print(text);
      text.clear();
      progress.within(stream.offset());
    }
    if (!node) { return tl::make_unexpected(std::move(node).error()); }
    if (*node == nullptr) { break; }
    trace::append_json_line(text, **node);
  }
  return placed_notes(trace_file(file, stream.format(), stream.report(), nodes));
}

Result<results::TraceStats> trace_stats(const std::vector<std::string>& files, std::size_t most,
                                        const TraceOptions& options) {
  results::TraceStats stats;
  auto read = for_each_graph(files, options, [&](std::size_t, const graph::Graph& graph, results::TraceFile facts) {
    stats.files.push_back({std::move(facts), graph::statistics(graph, most)});
    return Result<void>();
  });
  if (!read) { return tl::make_unexpected(std::move(read).error()); }
  return stats;
}

Result<results::TraceDiff> trace_diff(const std::string& a, const std::string& b,
                                      const graph::DifferenceOptions& difference, const TraceOptions& options) {
  std::vector<graph::Graph> graphs;
  std::vector<results::TraceFile> files;
  auto read = for_each_graph({a, b}, options, [&](std::size_t, graph::Graph& graph, results::TraceFile facts) {
    graphs.push_back(std::move(graph));
    files.push_back(std::move(facts));
    return Result<void>();
  });
  if (!read) { return tl::make_unexpected(std::move(read).error()); }
  return results::TraceDiff{std::move(files[0]), std::move(files[1]),
                            graph::difference(graphs[0], graphs[1], difference)};
}

}  // namespace orrery::api
