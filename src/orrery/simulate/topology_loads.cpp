#include "orrery/simulate/topology_loads.hpp"

#include <algorithm>
#include <map>

#include "orrery/core/error.hpp"

namespace orrery::simulate {

using network::Pattern;
using network::SchedulePhase;

namespace {

std::vector<std::int64_t> strides_of(const hardware::Topology& topology) {
  std::vector<std::int64_t> strides;
  std::int64_t stride = 1;
  for (const hardware::TopologyLevel& level : topology.levels) {
    strides.push_back(stride);
    stride *= level.size;
  }
  return strides;
}

bool is_ring(Pattern pattern) {
  switch (pattern) {
    case Pattern::ring:
    case Pattern::flat_ring:
    case Pattern::switch_up:
    case Pattern::switch_down:
    case Pattern::multicast: return true;
    case Pattern::chain:
    case Pattern::scatter:
    case Pattern::tree_up:
    case Pattern::tree_down:
    case Pattern::all_pairs:
    case Pattern::exchange: return false;
  }
  throw_internal_error("known pattern", __FILE__, __LINE__);
}

// What the busiest member sends. A chunk goes down a chain or a tree in several steps, but leaves a member once.
double bytes_of(const SchedulePhase& phase) {
  const bool once =
      phase.pattern == Pattern::chain || phase.pattern == Pattern::tree_up || phase.pattern == Pattern::tree_down;
  return phase.sent_per_step.value() * (once ? 1.0 : static_cast<double>(phase.steps));
}

}  // namespace

TopologyLoads::TopologyLoads(const hardware::Cluster& cluster, const std::vector<std::uint32_t>& devices)
    : topology_(hardware::build(*cluster.topology)),
      routes_(topology_),
      devices_(devices),
      strides_(strides_of(topology_)),
      bytes_(topology_.links.size(), 0.0) {}

std::vector<std::uint32_t> devices_of(const hardware::Cluster& cluster, const parallel::Layout& layout,
                                      std::uint32_t ranks) {
  const std::vector<std::int64_t> strides = strides_of(hardware::build(*cluster.topology));
  std::vector<std::uint32_t> devices;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    std::int64_t device = 0;
    for (std::size_t d = 0; d < strides.size(); ++d) {
      device += parallel::position_on(layout, static_cast<int>(d), rank) * strides[d];
    }
    devices.push_back(static_cast<std::uint32_t>(device));
  }
  return devices;
}

// Devices that differ in the coordinate of one dimension only; of an irregular group all of them.
std::vector<TopologyLoads::Line> TopologyLoads::lines_along(int dimension, bool is_regular,
                                                            const std::vector<std::uint32_t>& ranks) const {
  Line all;
  for (const std::uint32_t rank : ranks) { all.push_back(devices_[rank]); }
  std::sort(all.begin(), all.end());
  if (!is_regular) { return {all}; }
  const auto d = static_cast<std::size_t>(dimension);
  std::map<std::int64_t, Line> lines;
  for (const std::uint32_t device : all) {
    const std::int64_t position = device / strides_[d] % topology_.levels[d].size;
    lines[device - position * strides_[d]].push_back(device);
  }
  std::vector<Line> found;
  for (auto& [first, line] : lines) { found.push_back(std::move(line)); }
  return found;
}

void TopologyLoads::send(std::uint32_t from, std::uint32_t to, double bytes) {
  if (from == to || !(bytes > 0)) { return; }
  routes(from, to).charge(from, to, bytes, bytes_);
}

void TopologyLoads::close(std::uint32_t link) {
  if (!detours_) { detours_.emplace(topology_); }
  detours_->close(link);
  ++failures_;
}

void TopologyLoads::add_ring(const Line& line, double bytes, bool both_ways) {
  const std::size_t n = line.size();
  for (std::size_t i = 0; i < n; ++i) {
    send(line[i], line[(i + 1) % n], both_ways ? bytes / 2 : bytes);
    if (both_ways) { send(line[i], line[(i + n - 1) % n], bytes / 2); }
  }
}

void TopologyLoads::add_phase(const network::Schedule& schedule, const SchedulePhase& phase, const Line& line) {
  const auto n = static_cast<double>(line.size());
  if (schedule.collective == Collective::all_to_all) {  // every pair, whatever the order
    for (const std::uint32_t from : line) {
      for (const std::uint32_t to : line) { send(from, to, schedule.bytes.value() / n); }
    }
    return;
  }
  const double sent = bytes_of(phase);
  const auto d = static_cast<std::size_t>(phase.dimension);
  const bool both_ways = hardware::has_neighbours_only(topology_.levels[d].wiring) && line.size() > 2;
  if (is_ring(phase.pattern)) { return add_ring(line, sent, both_ways); }
  const network::MemberSchedule members = network::line_schedule(schedule.collective, phase);
  const network::LineSteps steps = network::line_steps(schedule.collective, phase);
  std::vector<double> shares(line.size(), 0.0);
  struct LineMessage {
    std::uint32_t from, to;  // members of the line
    double blocks;
  };
  std::vector<LineMessage> messages;
  for (std::uint32_t member = 0; member < line.size(); ++member) {
    for (std::uint32_t step = steps.first; step < steps.first + steps.count; ++step) {
      for (std::uint32_t i = 0; i < network::send_count(members, member, step); ++i) {
        const network::StepMessage message = network::send(members, member, step, i);
        messages.push_back({member, message.peer, static_cast<double>(message.count)});
        shares[member] += messages.back().blocks;
      }
    }
  }
  const double most = *std::max_element(shares.begin(), shares.end());
  const auto n_members = static_cast<std::uint32_t>(line.size());
  const auto mirrored = [&](std::uint32_t member) { return line[(n_members - member) % n_members]; };
  for (const LineMessage& message : messages) {
    const double bytes = sent * message.blocks / most * (both_ways ? 0.5 : 1.0);
    send(line[message.from], line[message.to], bytes);
    if (both_ways) { send(mirrored(message.from), mirrored(message.to), bytes); }
  }
}

std::vector<TopologyLoads::Load> TopologyLoads::taken() {
  std::vector<Load> loads;
  for (std::uint32_t link = 0; link < bytes_.size(); ++link) {
    if (bytes_[link] <= 0) { continue; }
    loads.push_back({link, bytes_[link]});
    bytes_[link] = 0;
  }
  return loads;
}

std::vector<TopologyLoads::Load> TopologyLoads::collective(const network::Schedule& schedule,
                                                           const network::Group& shape,
                                                           const std::vector<std::uint32_t>& ranks) {
  for (const SchedulePhase& phase : schedule.phases) {
    const bool is_regular = shape.regular && phase.members < static_cast<std::int64_t>(ranks.size());
    for (const Line& line : lines_along(phase.dimension, is_regular, ranks)) {
      if (line.size() > 1) { add_phase(schedule, phase, line); }
    }
  }
  return taken();
}

Seconds TopologyLoads::added_latency(std::uint32_t from, std::uint32_t to) {
  const std::uint32_t sender = devices_[from], receiver = devices_[to];
  if (sender == receiver || !(topology_.switch_latency > Seconds(0))) { return {}; }
  return hardware::added_latency(topology_, routes(sender, receiver).route(sender, receiver));
}

std::vector<TopologyLoads::Load> TopologyLoads::message(std::uint32_t from, std::uint32_t to, double bytes) {
  send(devices_[from], devices_[to], bytes);
  return taken();
}

}  // namespace orrery::simulate
