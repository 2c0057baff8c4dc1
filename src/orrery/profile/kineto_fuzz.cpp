// Any bytes as a Kineto profile and as a host trace: no crash, and what is read can be summarized, imported and
// replayed or is refused.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "orrery/profile/facts.hpp"
#include "orrery/profile/host_trace.hpp"
#include "orrery/profile/job_plan.hpp"
#include "orrery/profile/kineto_read.hpp"
#include "orrery/profile/link.hpp"
#include "orrery/profile/plan_graph.hpp"
#include "orrery/profile/replay.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto host = profile::read_host_trace_bytes(bytes, "fuzz", {true, {}});
  const auto profile = profile::read_kineto_bytes(bytes, "fuzz", {true, {}});
  if (!profile) { return 0; }
  (void)profile::facts_of(*profile);
  if (host) { (void)profile::link(*host, *profile); }
  const auto job = profile::job_plan({&*profile});
  if (!job) { return 0; }
  const auto graph = profile::graph_of(*job, 0);
  if (!graph) { return 0; }
  std::vector<graph::Graph> graphs;
  graphs.push_back(*graph);
  const auto replay = profile::ReplayJob::of(graphs);
  if (replay) { (void)replay->run({}); }
  return 0;
}
