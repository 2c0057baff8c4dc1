#include "orrery/api/profile_import.hpp"

#include <cmath>
#include <deque>
#include <map>
#include <set>

#include <fmt/format.h>

#include "orrery/api/trace_read.hpp"
#include "orrery/hardware/catalogue.hpp"
#include "orrery/network/fabric.hpp"
#include "orrery/profile/kineto_read.hpp"
#include "orrery/profile/plan_graph.hpp"
#include "orrery/simulate/on_cluster.hpp"
#include "orrery/trace/chakra.hpp"
#include "orrery/trace/foreign.hpp"
#include "orrery/trace/node_stream.hpp"
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

Result<std::deque<profile::Profile>> read_profiles(const std::vector<std::string>& files, const TraceOptions& options) {
  std::deque<profile::Profile> profiles;
  Failure failed;
  ReadProgress progress(files, options);
  for (const std::string& file : files) {
    profile::KinetoOptions reading;
    reading.tolerant = options.tolerant;
    reading.progress = [&](std::uint64_t bytes) { progress.within(bytes); };
    auto profile = profile::read_kineto(file, reading);
    progress.next_file();
    if (profile) {
      profiles.push_back(std::move(*profile));
    } else {
      collect(failed, std::move(profile).error());
    }
  }
  if (!failed.diagnostics.empty()) { return tl::make_unexpected(std::move(failed)); }
  return profiles;
}

std::string file_of(const std::string& prefix, std::uint64_t rank) { return fmt::format("{}.{}.et", prefix, rank); }

report::ImportedRank imported_rank(const profile::JobPlan& job, std::size_t rank) {
  report::ImportedRank made;
  made.from = job.profiles[rank]->file;
  made.rank = job.ranks[rank].rank;
  made.nodes = job.ranks[rank].nodes.size();
  made.counts = job.ranks[rank].counts;
  made.latencies = job.ranks[rank].latencies;
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

std::optional<Collective> collective_of(const std::string& kind) {
  static const std::map<std::string, Collective> kKinds = {{"all_reduce", Collective::all_reduce},
                                                           {"all_gather", Collective::all_gather},
                                                           {"reduce_scatter", Collective::reduce_scatter},
                                                           {"all_to_all", Collective::all_to_all},
                                                           {"broadcast", Collective::broadcast},
                                                           {"reduce", Collective::reduce},
                                                           {"gather", Collective::gather},
                                                           {"scatter", Collective::scatter}};
  const auto found = kKinds.find(kind);
  return found == kKinds.end() ? std::nullopt : std::optional(found->second);
}

// Members that form a box of positions: the group on the dimensions of the cluster. Nothing for other sets.
std::optional<network::Group> group_of(const hardware::Cluster& cluster, const std::vector<std::uint64_t>& members) {
  network::Group group;
  std::uint64_t stride = 1;
  std::uint64_t product = 1;
  for (std::size_t d = 0; d < cluster.dimensions.size(); ++d) {
    const auto size = static_cast<std::uint64_t>(cluster.dimensions[d].size);
    std::set<std::uint64_t> coordinates;
    for (const std::uint64_t member : members) { coordinates.insert(member / stride % size); }
    if (coordinates.size() > 1) {
      group.extents.push_back({static_cast<int>(d), static_cast<std::int64_t>(coordinates.size())});
    }
    product *= coordinates.size();
    stride *= size;
  }
  return product == members.size() ? std::optional(group) : std::nullopt;
}

// Times on the wire on another machine, for collectives whose size and members are known.
Result<std::uint64_t> set_machine(const std::string& data_directory, const std::string& name, std::uint64_t devices,
                                  const profile::Replay& recorded, profile::ReplayJob& job) {
  const hardware::Catalogue catalogue(data_directory);
  ORRERY_TRY(cluster, catalogue.cluster(name, static_cast<std::int64_t>(devices)));
  const network::Fabric fabric(cluster);
  std::vector<std::optional<std::int64_t>> wires;
  std::uint64_t priced = 0;
  for (const profile::ReplayCollective& one : recorded.collectives) {
    const auto collective = collective_of(one.kind);
    const auto group = group_of(cluster, one.members);
    std::optional<std::int64_t> wire;
    if (collective && group && one.bytes > 0 && one.members.size() > 1 && one.members.size() == one.group_size) {
      const bool shard = *collective == Collective::all_gather;
      const double bytes = static_cast<double>(one.bytes) * static_cast<double>(shard ? one.group_size : 1);
      const network::Price price = fabric.price(*collective, Bytes(bytes), *group);
      if (std::isfinite(price.time.value())) { wire = std::llround(price.time.value() * 1e9); }
    }
    priced += wire ? 1 : 0;
    wires.push_back(wire);
  }
  job.set_wire_times(wires);
  return priced;
}

std::string number(double factor) { return fmt::format("{:g}", factor); }

}  // namespace

Result<report::ProfileImport> profile_import(const std::vector<std::string>& files, const std::string& prefix,
                                             const TraceOptions& options) {
  if (auto ok = need_kineto(files); !ok) { return tl::make_unexpected(ok.error()); }
  ORRERY_TRY(profiles, read_profiles(files, options));
  std::vector<const profile::Profile*> all;
  for (const profile::Profile& one : profiles) { all.push_back(&one); }
  ORRERY_TRY(job, profile::job_plan(all));
  report::ProfileImport made;
  made.notes = job.notes;
  for (const profile::Profile& one : profiles) {
    for (const profile::ReadNote& note : one.notes) {
      made.notes.push_back(fmt::format("{}: {}", one.file, note.text));
    }
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

bool is_imported_workload(const std::vector<std::string>& workload) {
  const auto files = simulate::graphs_of(workload);
  if (!files || files->empty()) { return false; }
  auto stream = trace::NodeStream::open(files->front());
  return stream && profile::is_imported_profile(stream->metadata());
}

Result<report::ProfileReplay> profile_replay(const std::string& data_directory,
                                             const std::vector<std::string>& workload, const ReplayOptions& options) {
  ORRERY_TRY(files, simulate::graphs_of(workload));
  std::vector<graph::Graph> graphs;
  for (const std::string& file : files) {
    ORRERY_TRY(loaded, trace::load(file));
    if (!profile::is_imported_profile(loaded.graph.metadata())) {
      return fail(Place{file, 0, 0, {}},
                  "is not a graph that \"orrery trace import\" wrote, and others of this job are");
    }
    graphs.push_back(std::move(loaded.graph));
  }
  ORRERY_TRY(job, profile::ReplayJob::of(graphs));
  report::ProfileReplay made;
  std::string collectives = "time of collectives on the wire";
  if (!options.cluster.empty()) {
    ORRERY_TRY(recorded, job.run({}));
    ORRERY_TRY(priced, set_machine(data_directory, options.cluster, graphs.size(), recorded, job));
    made.kept.push_back(fmt::format("time on the wire of {} of {} collectives, whose size or members are not known",
                                    recorded.collectives.size() - priced, recorded.collectives.size()));
    made.kept.emplace_back("time of kernels and copies on the device (the cluster's accelerator has no effect)");
  } else {
    made.kept.push_back(options.change.comm == 1 ? collectives
                                                 : collectives + ", times " + number(options.change.comm));
    made.kept.push_back(options.change.compute == 1
                            ? "time of kernels and copies on the device"
                            : "time of kernels and copies on the device, times " + number(options.change.compute));
  }
  ORRERY_TRY(replay, job.run(options.change));
  made.kept.emplace_back("host time between calls, with the profiler's own overhead; launch latencies and gaps");
  std::int64_t unexplained = 0;
  for (const profile::ReplayRank& rank : replay.ranks) { unexplained += rank.unexplained_ns; }
  if (unexplained > 0) {
    made.kept.push_back(
        fmt::format("{:.3f} ms of idle device time without a known cause", static_cast<double>(unexplained) * 1e-6));
  }
  made.replay = std::move(replay);
  return made;
}

}  // namespace orrery::api
