#include "orrery/api/chunked_collective.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "orrery/core/text.hpp"
#include "orrery/hardware/catalogue.hpp"
#include "orrery/network/names.hpp"
#include "orrery/network/nccl_tests.hpp"

namespace orrery::api {

namespace {

std::string_view name_of(network::ChunkOrder order) {
  switch (order) {
    case network::ChunkOrder::baseline: return "baseline";
    case network::ChunkOrder::greedy: return "greedy";
    case network::ChunkOrder::themis: return "themis";
  }
  throw_internal_error("known order", __FILE__, __LINE__);
}

const hardware::Protocol& widest_protocol(const hardware::LinkClass& link) {
  return *std::max_element(link.protocols.begin(), link.protocols.end(),
                           [](const auto& a, const auto& b) { return a.bandwidth_fraction < b.bandwidth_fraction; });
}

// A phase is a ring along the dimension: members - 1 steps.
network::ChunkDimension chunk_dimension(const hardware::NetworkDimension& dimension) {
  const hardware::Protocol& protocol = widest_protocol(dimension.link);
  const double payload = dimension.link.efficiency * protocol.bandwidth_fraction;
  return {dimension.size, dimension.rate().value() * payload,
          static_cast<double>(dimension.size - 1) * (protocol.ring_step + dimension.route_latency).value()};
}

}  // namespace

Result<results::CollectiveTable> simulate_chunks(const std::string& data_directory, const std::string& cluster_name,
                                                 std::int64_t devices, const CollectiveRequest& request,
                                                 const ChunkChoice& choice) {
  ORRERY_TRY(cluster, hardware::Catalogue(data_directory).network(cluster_name, devices));
  const bool has_halves = request.op == Collective::all_reduce || request.op == Collective::reduce_scatter ||
                          request.op == Collective::all_gather;
  if (!has_halves) {
    return fail(Place{"", 0, 0, "--op"},
                "chunks of it have no order to choose; valid with --chunk-order: all_reduce, "
                "reduce_scatter, all_gather");
  }
  std::vector<network::ChunkDimension> dimensions;
  std::vector<std::string> names, sizes;
  Seconds base;
  for (const hardware::NetworkDimension& dimension : cluster.dimensions) {
    if (dimension.size < 2) { continue; }
    if (dimension.is_tier()) {
      return fail(Place{"", 0, 0, "--chunk-order"},
                  fmt::format("needs dimensions with ports of their own; {} of {} is a tier of switches above another",
                              dimension.name, cluster.name));
    }
    dimensions.push_back(chunk_dimension(dimension));
    names.push_back(dimension.name);
    sizes.push_back(fmt::format("{} {}", dimension.size, dimension.name));
    base = std::max(base, widest_protocol(dimension.link).ring_base);
  }
  if (dimensions.empty()) {
    return fail(Place{"", 0, 0, "--devices"},
                fmt::format("{} has one device here; a collective needs at least 2", cluster.name));
  }
  results::CollectiveTable table;
  table.op = std::string(config::enum_name(request.op));
  table.semantics = "physical";
  table.method = "simulated";
  table.where = cluster.name;
  table.network = join(sizes, " x ");
  table.reduction = request.op == Collective::all_gather ? "none" : "sum";
  table.ranks = static_cast<std::uint64_t>(cluster.devices);
  table.warnings = cluster.warnings;
  for (const std::uint64_t size : request.sizes) {
    network::ChunkCall call;
    call.collective = request.op;
    call.bytes = static_cast<double>(size);
    call.chunks = choice.chunks;
    call.order = choice.order;
    call.queue = choice.queue;
    const network::ChunkTimes times = network::run_chunks(call, dimensions);
    results::CollectiveRow row;
    row.size_B = size;
    row.count = network::element_count(request.op, size, cluster.devices);
    row.time = base + Seconds(times.finish);
    row.algbw = Bytes(call.bytes) / row.time;
    row.busbw = row.algbw * network::bus_bandwidth_factor(request.op, cluster.devices);
    row.algorithm = std::string(name_of(choice.order));
    results::CollectiveChunks chunks{choice.chunks, times.bandwidth_use(dimensions), {}};
    for (std::size_t d = 0; d < dimensions.size(); ++d) {
      chunks.dimension_use.emplace_back(names[d], times.busy[d] / times.finish);
    }
    row.chunks = std::move(chunks);
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace orrery::api
