#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "orrery/config/json.hpp"
#include "orrery/report/simulation.hpp"

namespace orrery::report {

namespace {

using results::SimulatedSpan;

constexpr std::uint32_t kReceives = static_cast<std::uint32_t>(SimulatedSpan::Row::receive);

// Microseconds, which the format counts in.
std::string microseconds(std::uint64_t nanoseconds) {
  return fmt::format("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000);
}

std::string row_name(std::uint32_t row) {
  constexpr const char* kNames[] = {"host", "accelerator", "communication"};  // NOLINT(*-avoid-c-arrays)
  return row < kReceives    ? kNames[row]
         : row == kReceives ? "receives"
                            : fmt::format("receives {}", row - kReceives + 1);
}

// Rows of the spans in the order of their starts: receives take the first row that is free.
class Rows {
 public:
  std::uint32_t of(const SimulatedSpan& span) {
    if (span.row != SimulatedSpan::Row::receive) { return static_cast<std::uint32_t>(span.row); }
    auto& ends = ends_[span.rank];
    const auto free = std::find_if(ends.begin(), ends.end(), [&](std::uint64_t end) { return end <= span.start_ns; });
    const auto row = static_cast<std::uint32_t>(free - ends.begin());
    if (free == ends.end()) { ends.push_back(0); }
    ends[row] = span.end_ns;
    return kReceives + row;
  }

 private:
  std::map<std::uint32_t, std::vector<std::uint64_t>> ends_;
};

}  // namespace

std::string simulation_timeline(const results::Simulation& simulation) {
  std::vector<const SimulatedSpan*> spans;
  for (const SimulatedSpan& span : simulation.spans) { spans.push_back(&span); }
  std::stable_sort(spans.begin(), spans.end(), [](const SimulatedSpan* a, const SimulatedSpan* b) {
    return a->rank != b->rank ? a->rank < b->rank : a->start_ns < b->start_ns;
  });
  std::string text = R"({"displayTimeUnit":"ns","traceEvents":[)";
  const char* comma = "\n";
  const auto add = [&](const std::string& event) {
    text += comma + event;
    comma = ",\n";
  };
  Rows rows;
  std::map<std::pair<std::uint32_t, std::uint32_t>, bool> named;
  for (const SimulatedSpan* span : spans) {
    const std::uint32_t row = rows.of(*span);
    if (named.lower_bound({span->rank, 0}) == named.lower_bound({span->rank + 1, 0})) {
      add(fmt::format(R"({{"ph":"M","name":"process_name","pid":{0},"args":{{"name":"rank {0}"}}}})", span->rank));
    }
    if (named.try_emplace({span->rank, row}, true).second) {
      add(fmt::format(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"{}"}}}})", span->rank, row,
                      row_name(row)));
    }
    const std::string task =
        span->micro_batch ? fmt::format(R"(,"micro_batch":{},"chunk":{})", *span->micro_batch, span->chunk) : "";
    add(fmt::format(R"({{"ph":"X","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{{"node":{}{}}}}})",
                    config::json_text(span->name), span->rank, row, microseconds(span->start_ns),
                    microseconds(span->end_ns - span->start_ns), span->node, task));
  }
  return text + "\n]}\n";
}

}  // namespace orrery::report
