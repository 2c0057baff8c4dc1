#include "orrery/trace/timeline.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "orrery/graph/check.hpp"
#include "orrery/graph/statistics.hpp"
#include "orrery/graph/topology.hpp"
#include "orrery/trace/json_text.hpp"
#include "orrery/trace/output.hpp"

namespace orrery::trace {

using graph::Graph;
using graph::NodeIndex;
using graph::NodeType;

namespace {

constexpr std::uint64_t kLatest = std::numeric_limits<std::uint64_t>::max();

std::uint64_t sum(std::uint64_t a, std::uint64_t b) { return a > kLatest - b ? kLatest : a + b; }

struct Event {
  NodeIndex node = 0;
  std::uint64_t start_ns = 0;
  std::uint64_t end_ns = 0;
  bool placed = false;
};

// Start and end of every node, by position.
Result<std::vector<Event>> events_of(const Graph& graph) {
  const std::vector<NodeIndex> order = run_order(graph);
  std::vector<Event> events(graph.node_count());
  std::uint64_t first = kLatest;
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    const std::uint64_t start = graph.start_ns(node);
    events[node] = {node, start, sum(start, graph.duration_ns(node)), start == 0};
    if (start > 0) { first = std::min(first, start); }
  }
  if (first == kLatest) { first = 0; }
  for (const NodeIndex node : order) {
    Event& event = events[node];
    if (!event.placed) { continue; }
    event.start_ns = first;
    graph::for_each_parent(graph, node, [&](NodeIndex parent) {
      if (parent != node) { event.start_ns = std::max(event.start_ns, events[parent].end_ns); }
    });
    event.end_ns = sum(event.start_ns, graph.duration_ns(node));
  }
  if (order.size() == graph.node_count()) { return events; }
  std::vector<bool> runs(graph.node_count(), false);
  for (const NodeIndex node : order) { runs[node] = true; }
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    if (runs[node] || !events[node].placed) { continue; }
    return fail(fmt::format(
        "byte {}, node {}: has no start time, and cannot be placed because it is on a dependency cycle or depends "
        "on one; \"orrery trace check\" prints the cycle",
        graph.offset(node), graph.id(node)));
  }
  return events;
}

// Rows of a process: nested or disjoint events share one.
class Rows {
 public:
  // `events`: by start, longer ones first. Returns the row of each.
  static std::vector<std::size_t> rows(const std::vector<Event>& events) {
    std::vector<std::vector<std::uint64_t>> open;  // of each row: ends of the enclosing events, outermost first
    std::vector<std::size_t> rows;
    for (const Event& event : events) {
      std::size_t row = 0;
      while (row < open.size() && !fits(open[row], event)) { ++row; }
      if (row == open.size()) { open.emplace_back(); }
      open[row].push_back(event.end_ns);
      rows.push_back(row);
    }
    return rows;
  }

 private:
  static bool fits(std::vector<std::uint64_t>& ends, const Event& event) {
    while (!ends.empty() && ends.back() <= event.start_ns) { ends.pop_back(); }
    return ends.empty() || event.end_ns <= ends.back();
  }
};

// Names of lanes, in the order in which they are shown.
class Lanes {
 public:
  explicit Lanes(const Graph& graph)
      : graph_(graph),
        is_cpu_op_(graph.find_key(graph::keys::is_cpu_op)),
        stream_(graph.find_key(graph::keys::stream)),
        tid_(graph.find_key("tid")) {}

  [[nodiscard]] std::pair<int, std::string> lane(NodeIndex node) const {
    const NodeType type = graph_.type(node);
    if (type == NodeType::mem_load || type == NodeType::mem_store) { return {3, "memory"}; }
    if (type == NodeType::comm_send || type == NodeType::comm_recv) { return {5, "messages"}; }
    const auto cpu = graph_.value(node, is_cpu_op_);
    const bool on_host = cpu && cpu->as_bool().value_or(false);
    if (on_host) { return {0, numbered("host", graph_.value(node, tid_))}; }
    if (type == NodeType::comm_coll) { return {4, "collectives"}; }
    if (type == NodeType::metadata) { return {6, "metadata"}; }
    return {1, numbered("device", graph_.value(node, stream_))};
  }

 private:
  static std::string numbered(const char* what, const std::optional<graph::Value>& number) {
    const auto value = number ? number->as_int() : std::nullopt;
    return value ? fmt::format("{} {}", what, *value) : std::string(what);
  }

  const Graph& graph_;
  std::optional<graph::KeyIndex> is_cpu_op_, stream_, tid_;
};

// Where an event with a recorded start is shown; lane 0 = it has none.
struct Shown {
  std::size_t lane = 0, row = 0;
  std::uint64_t start_ns = 0, end_ns = 0;
};

// Microseconds with their nanoseconds.
void append_us(std::string& out, std::uint64_t nanoseconds) {
  fmt::format_to(std::back_inserter(out), "{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
}

}  // namespace

struct TimelineWriter::State {
  explicit State(Output file) : output(std::move(file)) {}

  Output output;
  std::string text;
  bool is_first = true;
  std::uint64_t flows = 0;
  TimelineWriter::Added all;

  Result<void> put() {
    auto done = output.put(text);
    text.clear();
    return done;
  }

  void separate() {
    text += is_first ? "\n" : ",\n";
    is_first = false;
  }

  void append_name(const char* what, std::uint64_t rank, std::size_t row, const std::string& name) {
    separate();
    fmt::format_to(std::back_inserter(text), R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{"name":)", what, rank,
                   row);
    append_quoted(text, name);
    text += "}}";
    if (std::string_view(what) != "thread_name") { return; }
    separate();
    fmt::format_to(std::back_inserter(text),
                   R"({{"ph":"M","name":"thread_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}}}})", rank, row,
                   row);
  }

  void append_event(std::uint64_t rank, std::size_t row, const Graph& graph, const Event& event) {
    separate();
    text += R"({"ph":"X","name":)";
    std::string_view name = graph.name(event.node);
    append_readable(name.empty() ? std::string_view("(no name)") : name);
    fmt::format_to(std::back_inserter(text), R"(,"cat":"{}","pid":{},"tid":{},"ts":)",
                   graph::type_text(graph.type(event.node)), rank, row);
    append_us(text, event.start_ns);
    text += R"(,"dur":)";
    append_us(text, event.end_ns - event.start_ns);
    fmt::format_to(std::back_inserter(text), R"(,"args":{{"id":{}{})", graph.id(event.node),
                   event.placed ? R"(,"placed":"by dependencies")" : "");
    append_details(graph, event.node);
    text += "}}";
  }

  // An arrow from the end of an event to the start of another one, in another row.
  void append_flow(std::uint64_t rank, std::size_t from_row, std::uint64_t from_ns, std::size_t to_row,
                   std::uint64_t to_ns) {
    ++flows;
    for (const bool starts : {true, false}) {
      separate();
      fmt::format_to(std::back_inserter(text),
                     R"({{"ph":"{}","name":"dependency","cat":"dependency","id":{},"pid":{},"tid":{},"ts":)",
                     starts ? "s" : "f", flows, rank, starts ? from_row : to_row);
      append_us(text, starts ? from_ns : to_ns);
      text += starts ? "}" : R"(,"bp":"e"})";
    }
  }

  void append_details(const Graph& graph, NodeIndex node) {
    if (graph.type(node) == NodeType::comm_coll) {
      fmt::format_to(std::back_inserter(text), R"(,"comm_type":"{}")",
                     graph::collective_text(graph.value(node, graph::keys::comm_type)));
      if (const auto group = graph::group_name(graph.value(node, graph::keys::pg_name))) {
        text += R"(,"pg_name":)";
        append_readable(*group);
      }
    }
    if (const auto size = graph.value(node, graph::keys::comm_size); size && size->as_uint()) {
      fmt::format_to(std::back_inserter(text), R"(,"comm_size":{})", *size->as_uint());
    }
  }

  // Texts that are not UTF-8 would make the whole file unreadable.
  void append_readable(std::string_view name) {
    const std::size_t start = text.size();
    append_text_or_bytes(text, name);
    if (text[start] != '"') {
      text.resize(start);
      text += "\"(not UTF-8)\"";
    }
  }
};

TimelineWriter::TimelineWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
TimelineWriter::TimelineWriter(TimelineWriter&&) noexcept = default;
TimelineWriter& TimelineWriter::operator=(TimelineWriter&&) noexcept = default;
TimelineWriter::~TimelineWriter() = default;

Result<TimelineWriter> TimelineWriter::open(const std::string& path) {
  ORRERY_TRY(output, Output::open(path));
  auto state = std::make_unique<State>(std::move(output));
  state->text = R"({"displayTimeUnit":"ns","traceEvents":[)";
  return TimelineWriter(std::move(state));
}

Result<TimelineWriter::Added> TimelineWriter::add(std::uint64_t rank, const std::string& name, const Graph& graph) {
  ORRERY_TRY(events, events_of(graph));
  State& state = *state_;
  Added added;
  const Lanes lanes(graph);
  std::map<std::pair<int, std::string>, std::vector<Event>> by_lane;
  for (const Event& event : events) {
    ++(event.placed ? added.placed : added.recorded);
    by_lane[lanes.lane(event.node)].push_back(event);
  }
  state.append_name("process_name", rank, 0, name);
  std::size_t first_row = 1;
  std::vector<Shown> shown(graph.node_count());
  std::size_t lane_number = 0;
  for (auto& [lane, own] : by_lane) {
    ++lane_number;
    std::stable_sort(own.begin(), own.end(), [](const Event& a, const Event& b) {
      return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
    });
    const std::vector<std::size_t> rows = Rows::rows(own);
    const std::size_t count = 1 + *std::max_element(rows.begin(), rows.end());
    for (std::size_t row = 0; row < count; ++row) {
      state.append_name("thread_name", rank, first_row + row, lane.second);
    }
    for (std::size_t i = 0; i < own.size(); ++i) {
      state.append_event(rank, first_row + rows[i], graph, own[i]);
      if (!own[i].placed) { shown[own[i].node] = {lane_number, first_row + rows[i], own[i].start_ns, own[i].end_ns}; }
      if (auto put = state.put(); !put) { return tl::make_unexpected(std::move(put).error()); }
    }
    first_row += count;
  }
  // Recorded dependencies between lanes: launches, waits between streams, calls that wait for the device.
  for (NodeIndex node = 0; node < graph.node_count(); ++node) {
    const Shown& to = shown[node];
    for (const NodeIndex parent : graph.data_deps(node)) {
      if (to.lane == 0 || !graph.present(parent)) { continue; }
      const Shown& from = shown[parent];
      if (from.lane == 0 || from.lane == to.lane || from.end_ns > to.start_ns) { continue; }
      state.append_flow(rank, from.row, from.end_ns, to.row, to.start_ns);
    }
    if (auto put = state.put(); !put) { return tl::make_unexpected(std::move(put).error()); }
  }
  state.all.recorded += added.recorded;
  state.all.placed += added.placed;
  return added;
}

Result<std::uint64_t> TimelineWriter::close() {
  State& state = *state_;
  fmt::format_to(std::back_inserter(state.text),
                 "\n],\"otherData\":{{\"recorded_start\":{},\"placed_by_dependencies\":{}}}}}\n", state.all.recorded,
                 state.all.placed);
  if (auto put = state.put(); !put) { return tl::make_unexpected(std::move(put).error()); }
  return state.output.close();
}

}  // namespace orrery::trace
