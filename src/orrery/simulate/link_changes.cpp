#include "orrery/simulate/link_changes.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "orrery/config/units_text.hpp"
#include "orrery/core/text.hpp"
#include "orrery/hardware/topology.hpp"
#include "orrery/simulate/flow_job.hpp"

namespace orrery::simulate {

namespace {

constexpr std::size_t kMostChangeErrors = 20;

// The changes of a line, or why it is wrong.
tl::expected<std::vector<LinkChange>, std::string> changes_in(const std::vector<std::string_view>& words,
                                                              const Place& place) {
  const bool both_ways = words.front() == "cable";
  if (!both_ways && words.front() != "change") {
    return tl::make_unexpected(fmt::format("{} is not a kind of line; valid: change, cable", quote(words.front())));
  }
  constexpr std::size_t kWords = 5;
  if (words.size() != kWords) {
    return tl::make_unexpected(
        fmt::format("has {} words; valid: {} TIME BANDWIDTH, such as \"{} leaf0 spine1 2ms 25GB/s\"", words.size(),
                    both_ways ? "cable A B" : "change FROM TO", words.front()));
  }
  const auto time = config::parse_quantity(words[3], config::Dimension::seconds, "ms");
  if (!time) { return tl::make_unexpected("time " + time.error()); }
  const auto bandwidth = config::parse_quantity(words[4], config::Dimension::bytes_per_second);
  if (!bandwidth) { return tl::make_unexpected("bandwidth " + bandwidth.error()); }
  LinkChange made{std::string(words[1]), std::string(words[2]), Seconds(*time), BytesPerSecond(*bandwidth), place};
  std::vector<LinkChange> changes = {made};
  if (both_ways) {
    std::swap(made.from, made.to);
    changes.push_back(std::move(made));
  }
  return changes;
}

}  // namespace

Result<std::vector<LinkChange>> read_link_changes(std::string_view text, const std::string& file) {
  std::vector<LinkChange> changes;
  Failure errors;
  for (int number = 1; !text.empty() && errors.diagnostics.size() < kMostChangeErrors; ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const auto words = words_of(line.substr(0, line.find('#')));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (words.empty()) { continue; }
    const Place place{file, number, 0, {}};
    auto made = changes_in(words, place);
    if (!made) {
      errors.diagnostics.push_back({place, std::move(made).error()});
      continue;
    }
    for (LinkChange& change : *made) { changes.push_back(std::move(change)); }
  }
  if (!errors.diagnostics.empty()) { return tl::make_unexpected(std::move(errors)); }
  return changes;
}

// ---- links of a job ------------------------------------------------------------------------------------------------

namespace {

// What a change is about: ports with their own bandwidth; or why it is about none.
struct ChangedPort {
  FlowJob::PortChange port;
  BytesPerSecond bandwidth;
};
using ChangedPorts = tl::expected<std::vector<ChangedPort>, std::string>;

std::string unknown(std::string_view what, const std::string& name, const std::vector<std::string>& known) {
  const auto near = nearest(name, known);
  constexpr std::size_t kMost = 12;
  std::vector<std::string> first(known.begin(),
                                 known.begin() + static_cast<std::ptrdiff_t>(std::min(known.size(), kMost)));
  if (known.size() > kMost) { first.emplace_back("…"); }
  return fmt::format("{} is not {}; {}", quote(name), what,
                     near ? fmt::format("did you mean {}?", *near) : "valid: " + join(first, ", "));
}

ChangedPorts links_between(const hardware::Topology& topology, const LinkChange& change) {
  std::vector<std::string> names;
  for (const hardware::TopologyNode& node : topology.nodes) { names.push_back(node.name); }
  for (const std::string* name : {&change.from, &change.to}) {
    if (std::find(names.begin(), names.end(), *name) == names.end()) {
      return tl::make_unexpected(unknown("a node of the topology", *name, names));
    }
  }
  std::vector<ChangedPort> ports;
  for (std::uint32_t i = 0; i < topology.links.size(); ++i) {
    const hardware::TopologyLink& link = topology.links[i];
    if (names[link.from] != change.from || names[link.to] != change.to) { continue; }
    FlowJob::PortChange port;
    port.link = i;
    ports.push_back({port, BytesPerSecond(link.bandwidth)});
  }
  if (ports.empty()) { return tl::make_unexpected(fmt::format("no cable joins {} and {}", change.from, change.to)); }
  return ports;
}

std::optional<std::uint32_t> device_number(const std::string& name, std::size_t devices) {
  if (name.size() < 2 || name.front() != 'd') { return std::nullopt; }
  const auto number = whole_number(std::string_view(name).substr(1));
  if (!number || *number >= devices) { return std::nullopt; }
  return static_cast<std::uint32_t>(*number);
}

ChangedPorts port_of_device(const FlowJob& job, const LinkChange& change) {
  const std::size_t devices = job.job.rank_graphs.size();
  const auto sender = device_number(change.from, devices), receiver = device_number(change.to, devices);
  if (sender.has_value() == receiver.has_value()) {
    return tl::make_unexpected(
        fmt::format("{} to {}: on a cluster without a topology, one is a device (d0 to d{}), the "
                    "other a dimension",
                    change.from, change.to, devices - 1));
  }
  const std::string& name = sender ? change.to : change.from;
  std::vector<std::string> names;
  for (const hardware::NetworkDimension& dimension : job.cluster.dimensions) { names.push_back(dimension.name); }
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) { return tl::make_unexpected(unknown("a dimension of the cluster", name, names)); }
  FlowJob::PortChange port;
  port.rank = sender ? *sender : *receiver;
  port.dimension = static_cast<std::uint16_t>(found - names.begin());
  port.in = !sender;
  return std::vector<ChangedPort>{{port, job.cluster.dimensions[port.dimension].rate()}};
}

}  // namespace

Result<void> change_links(FlowJob& job, std::span<const LinkChange> changes) {
  if (changes.empty()) { return {}; }
  std::optional<hardware::Topology> topology;
  if (!job.devices.empty()) { topology = hardware::build(*job.cluster.topology); }
  Failure errors;
  for (const LinkChange& change : changes) {
    if (errors.diagnostics.size() == kMostChangeErrors) { break; }
    ChangedPorts found = topology ? links_between(*topology, change) : port_of_device(job, change);
    const bool is_known = !errors.diagnostics.empty() && errors.diagnostics.back().place.line == change.place.line;
    if (!found && is_known) { continue; }  // the other direction of a cable
    if (!found) {
      errors.diagnostics.push_back({change.place, std::move(found).error()});
      continue;
    }
    for (ChangedPort& port : *found) {
      const double part = change.bandwidth / port.bandwidth;
      constexpr double kRounding = 1e-9;
      if (part > 1 + kRounding) {
        errors.diagnostics.push_back(
            {change.place, fmt::format("{} to {}: {} is more than the {} of the cluster file", change.from, change.to,
                                       config::format_rate(change.bandwidth), config::format_rate(port.bandwidth))});
        break;
      }
      port.port.time = change.time;
      port.port.part = std::min(part, 1.0);
      job.changes.push_back(port.port);
    }
  }
  if (!errors.diagnostics.empty()) { return tl::make_unexpected(std::move(errors)); }
  return {};
}

}  // namespace orrery::simulate
