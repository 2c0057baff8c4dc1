#include "orrery/api/profile_import.hpp"

#include <deque>

#include <fmt/format.h>

#include "orrery/api/profile_read.hpp"
#include "orrery/api/trace_read.hpp"
#include "orrery/profile/plan_graph.hpp"
#include "orrery/trace/chakra.hpp"
#include "orrery/trace/foreign.hpp"
#include "orrery/trace/output.hpp"

namespace orrery::api {

namespace {

Result<void> need_kineto(const std::vector<std::string>& files) {
  Failure failed;
  for (const std::string& file : files) {
    auto format = trace::profile_format_of_file(file);
    if (!format) {
      collect(failed, std::move(format).error());
    } else if (*format == trace::ProfileFormat::execution_trace) {
      collect(failed, Failure{{{Place{file, 0, 0, {}},
                                "is a PyTorch execution trace, which has no times; give the Kineto profile of the same "
                                "run (\"orrery trace link\" joins the two)"}}});
    } else if (*format == trace::ProfileFormat::none) {
      collect(failed, Failure{{{Place{file, 0, 0, {}},
                                "is not a Kineto profile (Chrome trace JSON of torch.profiler); \"orrery trace info\" "
                                "says what a trace is"}}});
    }
  }
  if (!failed.diagnostics.empty()) { return tl::make_unexpected(std::move(failed)); }
  return {};
}

std::string file_of(const std::string& prefix, std::uint64_t rank) { return fmt::format("{}.{}.et", prefix, rank); }

report::ImportedRank imported_rank(const profile::JobPlan& job, std::size_t rank) {
  report::ImportedRank made;
  made.from = job.profiles[rank]->file;
  made.rank = job.ranks[rank].rank;
  made.nodes = job.ranks[rank].nodes.size();
  made.counts = job.ranks[rank].counts;
  made.latencies = job.ranks[rank].latencies;
  made.guessed_steps = job.ranks[rank].guessed_steps;
  made.whole_microseconds = job.profiles[rank]->whole_microseconds;
  made.clock_offset_ns = job.clock_offsets[rank];
  for (const profile::CollectiveInstance& one : job.collectives) {
    for (const profile::CollectiveMember& member : one.members) {
      if (member.rank != rank) { continue; }
      ++made.collectives;
      made.collectives_alone += one.alone ? 1 : 0;
      made.collectives_guessed += one.guessed && !one.alone ? 1 : 0;
    }
  }
  return made;
}

}  // namespace

Result<report::ProfileImport> profile_import(const std::vector<std::string>& files, const std::string& prefix,
                                             const TraceOptions& options) {
  if (auto ok = need_kineto(files); !ok) { return tl::make_unexpected(ok.error()); }
  std::deque<profile::Profile> profiles;
  auto read = read_profiles(files, options, [&](profile::Profile one) { profiles.push_back(std::move(one)); });
  if (!read) { return tl::make_unexpected(std::move(read).error()); }
  std::vector<const profile::Profile*> all;
  for (const profile::Profile& one : profiles) { all.push_back(&one); }
  ORRERY_TRY(job, profile::job_plan(all));
  report::ProfileImport made;
  made.notes = job.notes;
  for (const profile::Profile& one : profiles) {
    for (const std::string& note : read_notes(one)) { made.notes.push_back(fmt::format("{}: {}", one.file, note)); }
  }
  made.rows = profile::rows_of(job);
  std::vector<graph::Graph> graphs;
  for (std::size_t rank = 0; rank < job.ranks.size(); ++rank) {
    report::ImportedRank one = imported_rank(job, rank);
    if (one.counts.device_operations == 0) {
      return fail(Place{one.from, 0, 0, {}}, "has no device operations: there is nothing to replay");
    }
    one.to = file_of(prefix, one.rank);
    ORRERY_TRY(graph, profile::graph_of(job, rank));
    graphs.push_back(std::move(graph));
    made.ranks.push_back(std::move(one));
  }
  // Replayed before anything is written: graphs that cannot run are an error.
  ORRERY_TRY(replayed, profile::ReplayJob::of(graphs));
  ORRERY_TRY(replay, replayed.run({}));
  made.replay = std::move(replay);
  for (std::size_t rank = 0; rank < graphs.size(); ++rank) {
    ORRERY_TRY(bytes, trace::write_chakra(graphs[rank], made.ranks[rank].to));
    (void)bytes;
  }
  return made;
}

std::vector<std::string> partial_imports(const std::vector<std::string>& files, const std::string& prefix) {
  std::vector<std::string> names;
  constexpr std::uint64_t kMost = 4096;
  for (std::uint64_t rank = 0; rank < std::max<std::uint64_t>(files.size(), 1) && rank < kMost; ++rank) {
    if (std::string name = trace::partial_path(file_of(prefix, rank)); !name.empty()) {
      names.push_back(std::move(name));
    }
  }
  return names;
}

}  // namespace orrery::api
