#include "orrery/simulate/event_path.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "orrery/simulate/critical_path.hpp"

namespace orrery::simulate {

namespace {

using Kind = EventWork::Kind;

constexpr std::uint64_t kPicoseconds = 1000;  // of a nanosecond

std::string device_name(std::uint32_t device) {
  return device == MessageNetwork::kHub ? std::string("the switch") : fmt::format("rank {}", device);
}

class EventPath {
 public:
  EventPath(const SimulationJob& job, const Machine& machine) : job_(job), machine_(machine) {}

  // The last piece first.
  [[nodiscard]] std::vector<PathPiece> pieces() const {
    const EventLog& log = *machine_.log();
    const auto& ends = log.ends();
    const auto time_of = [&](const EventLog::NodeEnd& end) {
      return end.record == kNone ? 0 : log.records()[end.record].time;
    };
    const auto last = std::max_element(ends.begin(), ends.end(),
                                       [&](const auto& a, const auto& b) { return time_of(a) < time_of(b); });
    std::vector<PathPiece> pieces;
    if (last == ends.end()) { return pieces; }
    for (std::uint32_t at = last->record; at != kNone;) {
      const EventLog::Record& record = log.records()[at];
      const std::uint64_t start = record.cause == kNone ? 0 : log.records()[record.cause].time;
      if (record.time > start) { pieces.push_back(piece_of(record.work, start, record.time)); }
      at = record.cause;
    }
    return pieces;
  }

 private:
  [[nodiscard]] std::string dimension_name(std::uint32_t dimension) const {
    return fmt::format("{} {}", name_of(job_.network.dimensions[dimension].wiring), dimension);
  }

  [[nodiscard]] PathPiece piece_of(const EventWork& work, std::uint64_t start_ns, std::uint64_t end_ns) const {
    PathPiece piece{work.rank, work.node, start_ns * kPicoseconds, end_ns * kPicoseconds, name_of_work(work), {},
                    {},        {}};
    const std::uint64_t time = piece.end - piece.start;
    switch (work.kind) {
      case Kind::flight:
      case Kind::link: add_transfer(work, time, piece); break;
      case Kind::node: piece.parts = {{node_part(work), time}}; break;
      case Kind::endpoint: piece.parts = {{"endpoint delay", time}}; break;
      case Kind::reduction: piece.parts = {{"reduction of arriving data", time}}; break;
      case Kind::reduction_in_switch: piece.parts = {{"reduction in the switch", time}}; break;
      case Kind::memory: piece.parts = {{"remote memory", time}}; break;
      case Kind::none: piece.parts = {{"other", time}}; break;
    }
    return piece;
  }

  [[nodiscard]] std::string node_part(const EventWork& work) const {
    return work.node == kNone ? "other" : activity_name(job_.rank_graphs.task(work.rank, work.node));
  }

  // A link that another message occupies has no latency.
  void add_transfer(const EventWork& work, std::uint64_t time, PathPiece& piece) const {
    piece.from = device_name(work.from);
    piece.to = device_name(work.to);
    const bool has_hub = work.from == MessageNetwork::kHub || work.to == MessageNetwork::kHub;
    const MessageNetwork::Flight flight = has_hub || work.kind == Kind::link
                                              ? MessageNetwork::Flight{0, job_.network.dimensions.front().latency_ns}
                                              : machine_.network().flight_of(work.from, work.to);
    const bool is_occupied = work.kind == Kind::link && work.bytes == 0;
    const std::uint64_t latency =
        is_occupied ? 0 : std::min(time, static_cast<std::uint64_t>(flight.latency_ns) * kPicoseconds);
    piece.parts = {{"bandwidth of " + dimension_name(flight.dimension), time - latency},
                   {"latency of " + dimension_name(flight.dimension), latency}};
  }

  [[nodiscard]] std::string name_of_work(const EventWork& work) const {
    std::string text;
    if (work.chunk != kNone) { text = fmt::format("chunk {}, phase {}", work.chunk, work.phase); }
    const bool moves = work.kind == Kind::flight || work.kind == Kind::link;
    const std::string ends =
        moves ? fmt::format("{} to {}", device_name(work.from), device_name(work.to)) : std::string();
    if (moves && work.bytes == 0) { return ends + ": occupied by another message"; }
    if (moves) { return text.empty() ? ends : text + ": " + ends; }
    if (!text.empty()) { return text; }
    if (work.node == kNone) { return {}; }
    const auto& names = job_.rank_graphs[work.rank].names;
    return names.empty() ? std::string() : names[work.node];
  }

  const SimulationJob& job_;
  const Machine& machine_;
};

}  // namespace

results::CriticalPath event_path(const SimulationJob& job, const Machine& machine) {
  std::vector<PhysicalSpan> spans;
  for (const NodeSpan& span : machine.nodes().spans()) {
    spans.push_back({span.rank, span.node, span.start_ns * kPicoseconds, span.end_ns * kPicoseconds});
  }
  const CollectiveMatch match(job);
  const auto activity = [&](const NodeTask& task) {
    const bool is_of_group = task.act == Act::collective && task.group != kWholeMachine;
    return is_of_group ? fmt::format("{} of group {}", activity_name(task), job.groups[task.group - 1].name)
                       : activity_name(task);
  };
  const auto parts = [&](std::uint32_t rank, std::uint32_t node) {
    return NodeParts{{}, activity_name(job.rank_graphs.task(rank, node))};
  };
  PathSource source{job, spans, match, activity, parts, [](std::uint32_t) { return std::uint64_t{1}; }};
  source.pieces = EventPath(job, machine).pieces();
  source.has_communication_slot = true;
  return critical_path(source);
}

}  // namespace orrery::simulate
