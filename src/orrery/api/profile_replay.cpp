#include <fmt/format.h>

#include "orrery/api/profile_import.hpp"
#include "orrery/api/profile_machine.hpp"
#include "orrery/api/trace_read.hpp"
#include "orrery/profile/plan_graph.hpp"
#include "orrery/simulate/on_cluster.hpp"
#include "orrery/trace/node_stream.hpp"

namespace orrery::api {

namespace {

std::string factor_text(double factor) { return factor == 1 ? std::string() : fmt::format(", times {:g}", factor); }

}  // namespace

bool is_imported_workload(const std::vector<std::string>& workload) {
  const auto files = simulate::graphs_of(workload, simulate::Gaps::allowed);
  if (!files || files->empty()) { return false; }
  auto stream = trace::NodeStream::open(files->front());
  return stream && profile::is_imported_profile(stream->metadata());
}

Result<void> check_workload(const std::vector<std::string>& workload) {
  ORRERY_TRY(files, simulate::graphs_of(workload));
  for (const std::string& file : files) {
    if (auto stream = trace::NodeStream::open(file); !stream) { return tl::make_unexpected(stream.error()); }
  }
  return {};
}

Result<report::ProfileReplay> profile_replay(const std::string& data_directory,
                                             const std::vector<std::string>& workload, const ReplayOptions& options) {
  ORRERY_TRY(files, simulate::graphs_of(workload, simulate::Gaps::allowed));
  profile::ReplayJob::Reader reader;
  for (const std::string& file : files) {
    if (auto ok = read_graph(file, reader); !ok) { return tl::make_unexpected(ok.error()); }
  }
  ORRERY_TRY(job, reader.finish());
  report::ProfileReplay made;
  if (!options.cluster.empty()) {
    ORRERY_TRY(kept, set_machine(data_directory, options.cluster, job));
    made.kept = std::move(kept);
  } else {
    made.kept = {"time of collectives on the wire", "time of kernels and copies on the device"};
  }
  made.kept[0] += factor_text(options.change.comm);
  made.kept[1] += factor_text(options.change.compute);
  for (const profile::KernelFactor& one : options.change.kernels) {
    const std::string which =
        one.kind ? fmt::format("class {}", profile::kKernelClasses[static_cast<std::size_t>(*one.kind)])
                 : fmt::format("name with \"{}\"", one.text);
    made.kept[1] += fmt::format("; {} times {:g}", which, one.factor);
  }
  ORRERY_TRY(replay, job.run(options.change));
  made.kept.emplace_back("host time between calls, with the profiler's own overhead; launch latencies and gaps");
  std::int64_t unexplained = 0;
  for (const profile::ReplayRank& rank : replay.ranks) { unexplained += rank.unexplained_ns; }
  if (unexplained > 0) {
    made.kept.push_back(
        fmt::format("{:.3f} ms of idle device time without a known cause", static_cast<double>(unexplained) * 1e-6));
  }
  if (job.blocked_without_cause_ns() > 0) {
    made.kept.push_back(fmt::format("{:.3f} ms of blocking calls without a known cause, as launches and gaps",
                                    static_cast<double>(job.blocked_without_cause_ns()) * 1e-6));
  }
  made.replay = std::move(replay);
  return made;
}

}  // namespace orrery::api
