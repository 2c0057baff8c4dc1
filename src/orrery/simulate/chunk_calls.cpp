#include "orrery/simulate/chunk_calls.hpp"

#include <algorithm>

namespace orrery::simulate {

namespace {

const hardware::Protocol& widest_protocol(const hardware::LinkClass& link) {
  return *std::max_element(link.protocols.begin(), link.protocols.end(),
                           [](const auto& a, const auto& b) { return a.bandwidth_fraction < b.bandwidth_fraction; });
}

bool has_halves(Collective collective) {
  return collective == Collective::all_reduce || collective == Collective::reduce_scatter ||
         collective == Collective::all_gather;
}

}  // namespace

std::optional<ChunkedCall> chunked_call(const hardware::Cluster& cluster, network::ChunkOrder order,
                                        Collective collective, Bytes bytes, const network::Group& shape) {
  if (!has_halves(collective) || !shape.regular || cluster.topology) { return std::nullopt; }
  std::vector<network::ChunkDimension> dimensions;
  std::vector<int> numbers;
  ChunkedCall made;
  for (const network::Extent& extent : shape.extents) {
    if (extent.members < 2) { continue; }
    const hardware::NetworkDimension& on = cluster.dimensions[static_cast<std::size_t>(extent.dimension)];
    if (on.is_tier()) { return std::nullopt; }
    const hardware::Protocol& protocol = widest_protocol(on.link);
    const double payload = on.link.efficiency * protocol.bandwidth_fraction;
    const Seconds latency = static_cast<double>(extent.members - 1) * protocol.ring_step;
    dimensions.push_back({extent.members, on.bandwidth_among(extent.members).value() * payload, latency.value()});
    numbers.push_back(extent.dimension);
    made.time = std::max(made.time, protocol.ring_base);
    made.latency += latency * (collective == Collective::all_reduce ? 2.0 : 1.0);
  }
  if (dimensions.size() < 2) { return std::nullopt; }
  network::ChunkCall call;
  call.collective = collective;
  call.bytes = bytes.value();
  call.order = order;
  const network::ChunkTimes times = network::run_chunks(call, dimensions);
  made.latency += made.time;
  made.time += Seconds(times.finish);
  made.latency = std::min(made.latency, made.time);
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    made.loads.push_back({numbers[i], Seconds(times.busy[i]), Bytes(times.sent[i])});
  }
  return made;
}

}  // namespace orrery::simulate
