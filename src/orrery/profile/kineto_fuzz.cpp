// Any bytes as a Kineto profile and as a host trace: no crash, and what is read can be summarized, linked, imported and
// replayed or is refused.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "orrery/profile/facts.hpp"
#include "orrery/profile/host_details.hpp"
#include "orrery/profile/host_graph.hpp"
#include "orrery/profile/job_plan.hpp"
#include "orrery/profile/kineto_read.hpp"
#include "orrery/profile/link.hpp"
#include "orrery/profile/plan_graph.hpp"
#include "orrery/profile/replay.hpp"

namespace {

void import_and_replay(const orrery::profile::Profile& profile) {
  using namespace orrery;
  const auto job = profile::job_plan({&profile});
  if (!job) { return; }
  const auto graph = profile::graph_of(*job, 0);
  if (!graph) { return; }
  std::vector<graph::Graph> graphs;
  graphs.push_back(*graph);
  const auto replay = profile::ReplayJob::of(graphs);
  if (replay) { (void)replay->run({}); }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  profile::HostTraceOptions reading_host;
  reading_host.tolerant = reading_host.details = reading_host.tensors = true;
  const auto host = profile::read_host_trace_bytes(bytes, "fuzz", reading_host);
  if (host) { (void)profile::host_graph(*host); }
  profile::KinetoOptions reading;
  reading.tolerant = reading.other_devices = true;
  auto profile = profile::read_kineto_bytes(bytes, "fuzz", reading);
  if (!profile) { return 0; }
  (void)profile::facts_of(*profile);
  import_and_replay(*profile);
  if (!host) { return 0; }
  const auto link = profile::link(*host, *profile);
  if (!link) { return 0; }
  (void)profile::add_host_details(*profile, *host, *link);
  import_and_replay(*profile);
  return 0;
}
