#include "orrery/api/profile_import.hpp"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "orrery/api/profile_read.hpp"
#include "orrery/api/trace_read.hpp"
#include "orrery/profile/host_details.hpp"
#include "orrery/profile/host_graph.hpp"
#include "orrery/profile/link.hpp"
#include "orrery/profile/plan_graph.hpp"
#include "orrery/trace/chakra.hpp"
#include "orrery/trace/foreign.hpp"
#include "orrery/trace/node_stream.hpp"
#include "orrery/trace/output.hpp"

namespace orrery::api {

namespace {

// Profiles and execution traces, in the order in which they are given.
struct ImportedFiles {
  std::vector<std::string> profiles, hosts;
};

Result<ImportedFiles> inputs_of(const std::vector<std::string>& files) {
  ImportedFiles inputs;
  Failure failed;
  for (const std::string& file : files) {
    auto format = trace::profile_format_of_file(file);
    if (!format) {
      collect(failed, std::move(format).error());
    } else if (*format == trace::ProfileFormat::kineto) {
      inputs.profiles.push_back(file);
    } else if (*format == trace::ProfileFormat::execution_trace) {
      inputs.hosts.push_back(file);
    } else {
      ORRERY_TRY(kind, trace::kind_of_file(file));
      collect(failed, Failure{{{Place{file, 0, 0, {}},
                                kind + "; \"orrery trace import\" takes Kineto profiles (Chrome trace JSON of "
                                       "torch.profiler) and PyTorch execution traces"}}});
    }
  }
  if (!failed.diagnostics.empty()) { return tl::make_unexpected(std::move(failed)); }
  return inputs;
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

// Adds what execution traces know to the profiles of the same processes.
Result<void> add_hosts(std::deque<profile::Profile>& profiles, const std::vector<std::string>& hosts,
                       const TraceOptions& options, report::ProfileImport& made) {
  std::vector<std::string> linked(profiles.size());  // the execution trace of each profile
  for (const std::string& file : hosts) {
    profile::HostTraceOptions reading;
    reading.tolerant = options.tolerant;
    reading.details = true;
    ORRERY_TRY(host, profile::read_host_trace(file, reading));
    std::optional<profile::Link> best;
    std::size_t of = 0;
    Failure refused;
    for (std::size_t i = 0; i < profiles.size(); ++i) {
      auto link = profile::link(host, profiles[i]);
      if (!link) {
        collect(refused, std::move(link).error());
      } else if (!best || std::pair(linked[i].empty(), link->linked) > std::pair(linked[of].empty(), best->linked)) {
        best = std::move(*link);
        of = i;
      }
    }
    if (!best) { return tl::make_unexpected(std::move(refused)); }
    if (!linked[of].empty()) {
      return fail(Place{file, 0, 0, {}}, fmt::format("is of the same process as {}: {} has two execution traces",
                                                     linked[of], profiles[of].file));
    }
    if (2 * best->linked < best->operators) {
      return fail(Place{file, 0, 0, {}},
                  fmt::format("has {} operators, of which {} are in {}: the files are not of the same run",
                              best->operators, best->linked, profiles[of].file));
    }
    linked[of] = file;
    const profile::HostDetails added = profile::add_host_details(profiles[of], host, *best);
    made.hosts.push_back({file, profiles[of].file, best->operators, best->linked, added});
    for (const profile::ReadNote& note : host.notes) { made.notes.push_back(fmt::format("{}: {}", file, note.text)); }
  }
  return {};
}

using Writers = std::vector<trace::ChakraWriter>;

// Plans the job and writes its graphs. The files get their names when their writers are closed.
Result<Writers> write_job(const ImportedFiles& inputs, const std::string& prefix, const TraceOptions& options,
                          report::ProfileImport& made) {
  std::deque<profile::Profile> profiles;
  profile::KinetoOptions reading;
  reading.other_devices = true;
  auto read = read_profiles(inputs.profiles, options, reading,
                            [&](profile::Profile one) { profiles.push_back(std::move(one)); });
  if (!read) { return tl::make_unexpected(std::move(read).error()); }
  if (auto ok = add_hosts(profiles, inputs.hosts, options, made); !ok) { return tl::make_unexpected(ok.error()); }
  std::vector<const profile::Profile*> all;
  for (const profile::Profile& one : profiles) { all.push_back(&one); }
  ORRERY_TRY(job, profile::job_plan(all));
  made.notes.insert(made.notes.end(), job.notes.begin(), job.notes.end());
  for (const profile::Profile& one : profiles) {
    for (const std::string& note : read_notes(one)) { made.notes.push_back(fmt::format("{}: {}", one.file, note)); }
  }
  made.rows = profile::rows_of(job);
  for (std::size_t rank = 0; rank < job.ranks.size(); ++rank) {
    report::ImportedRank one = imported_rank(job, rank);
    if (one.counts.device_operations == 0) {
      return fail(Place{one.from, 0, 0, {}}, "has no device operations: there is nothing to replay");
    }
    one.to = file_of(prefix, one.rank);
    made.ranks.push_back(std::move(one));
  }
  Writers writers;
  for (std::size_t rank = 0; rank < job.ranks.size(); ++rank) {
    const auto begin = [&](const graph::Metadata& metadata) -> Result<void> {
      ORRERY_TRY(writer, trace::ChakraWriter::open(made.ranks[rank].to, metadata));
      writers.push_back(std::move(writer));
      return {};
    };
    const auto node = [&](const graph::NodeRecord& record) { return writers.back().write(record); };
    if (auto ok = profile::write_graph(job, rank, {begin, node}); !ok) { return tl::make_unexpected(ok.error()); }
    if (auto ok = writers.back().flush(); !ok) { return tl::make_unexpected(ok.error()); }
  }
  return writers;
}

// The graphs of files that are not complete yet.
Result<profile::Replay> replay_of(const std::vector<report::ImportedRank>& ranks) {
  profile::ReplayJob::Reader reader;
  for (const report::ImportedRank& rank : ranks) {
    const std::string partial = trace::partial_path(rank.to);
    if (auto ok = read_graph(partial.empty() ? rank.to : partial, reader); !ok) {
      return tl::make_unexpected(ok.error());
    }
  }
  ORRERY_TRY(job, reader.finish());
  return job.run({});
}

// Execution traces without profiles: graphs without times.
Result<report::ProfileImport> import_hosts(const std::vector<std::string>& files, const std::string& prefix,
                                           const TraceOptions& options) {
  report::ProfileImport made;
  std::vector<graph::Graph> graphs;
  std::vector<std::optional<std::uint64_t>> ranks;
  for (std::size_t i = 0; i < files.size(); ++i) {
    profile::HostTraceOptions reading;
    reading.tolerant = options.tolerant;
    reading.details = reading.tensors = true;
    ORRERY_TRY(host, profile::read_host_trace(files[i], reading));
    ORRERY_TRY(graph, profile::host_graph(host));
    ranks.push_back(graph.rank);
    report::ImportedHostGraph one{files[i], {}, graph.counts};
    for (const profile::ReadNote& note : host.notes) {
      made.notes.push_back(fmt::format("{}: {}", files[i], note.text));
    }
    made.host_graphs.push_back(std::move(one));
    graphs.push_back(std::move(graph.graph));
  }
  std::vector<std::optional<std::uint64_t>> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  const bool distinct = sorted.front() && std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    made.host_graphs[i].to = file_of(prefix, distinct ? *ranks[i] : i);
    ORRERY_TRY(bytes, trace::write_chakra(graphs[i], made.host_graphs[i].to));
    (void)bytes;
  }
  return made;
}

}  // namespace

Result<void> read_graph(const std::string& file, profile::ReplayJob::Reader& reader) {
  ORRERY_TRY(stream, trace::NodeStream::open(file));
  if (auto ok = reader.begin(stream.metadata()); !ok) {
    return fail(Place{file, 0, 0, {}}, ok.error().diagnostics.front().message);
  }
  for (;;) {
    ORRERY_TRY(node, stream.next());
    if (node == nullptr) { break; }
    reader.add(*node);
  }
  return reader.end();
}

Result<report::ProfileImport> profile_import(const std::vector<std::string>& files, const std::string& prefix,
                                             const TraceOptions& options) {
  ORRERY_TRY(inputs, inputs_of(files));
  if (inputs.profiles.empty()) { return import_hosts(inputs.hosts, prefix, options); }
  report::ProfileImport made;
  ORRERY_TRY(writers, write_job(inputs, prefix, options, made));
  // Replayed before a file gets its name: graphs that cannot run are an error.
  ORRERY_TRY(replay, replay_of(made.ranks));
  made.replay = std::move(replay);
  for (trace::ChakraWriter& writer : writers) {
    ORRERY_TRY(bytes, writer.close());
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
