#include "orrery/api/flows.hpp"

#include <cstddef>

#include <fmt/format.h>

#include "orrery/config/node.hpp"
#include "orrery/network/flow_file.hpp"
#include "orrery/network/flow_run.hpp"

namespace orrery::api {

Result<results::FlowTimes> simulate_flow_file(const std::string& file) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 32;
  ORRERY_TRY(text, config::read_text_file(file, kMostBytes));
  ORRERY_TRY(flows, network::read_flows(text, file));
  const network::FlowTimes times = network::run_flows(flows);
  if (times.stuck) {
    return fail(
        Place{file, 0, 0, {}},
        fmt::format("flow {} never ends: a link of its route fails and does not come back", flows.ids[*times.stuck]));
  }
  results::FlowTimes result;
  result.name = flows.name;
  result.updates = times.updates;
  result.full = times.full;
  result.repairs = times.repairs;
  result.flows.reserve(flows.size());
  for (std::size_t f = 0; f < flows.size(); ++f) {
    result.flows.push_back({flows.ids[f], flows.starts[f], flows.bytes[f], times.finish[f]});
  }
  for (std::size_t i = 0; i < flows.links.size(); ++i) {
    const network::FlowLink& link = flows.links[i];
    result.links.push_back({link.id, link.name, link.bandwidth, times.carried[i]});
  }
  return result;
}

}  // namespace orrery::api
