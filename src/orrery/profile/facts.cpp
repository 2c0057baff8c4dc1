#include "orrery/profile/facts.hpp"

#include <algorithm>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "orrery/profile/collective_kind.hpp"
#include "orrery/profile/decimal.hpp"
#include "orrery/profile/intervals.hpp"
#include "orrery/profile/operators.hpp"

namespace orrery::profile {

namespace {

constexpr std::string_view kStepName = "ProfilerStep#";

struct Work {
  std::vector<Interval> all, other, kernels, communication;

  [[nodiscard]] BusyFacts busy() && {
    BusyFacts facts;
    if (all.empty()) { return facts; }
    facts.span_ns = span(all);
    facts.busy_ns = union_length(all);
    facts.kernel_not_comm_ns = union_length(kernels);
    facts.comm_ns = union_length(communication);
    facts.exposed_comm_ns = facts.busy_ns - union_length(other);
    return facts;
  }
};

class FactsBuilder {
 public:
  explicit FactsBuilder(const Profile& profile) : profile_(profile) {
    comm_.resize(profile.names.size());
    for (NameIndex name = 0; name < profile.names.size(); ++name) {
      comm_[name] = is_communication(profile.names[name]);
    }
  }

  Facts build() {
    whole();
    calls();
    steps();
    device_work();
    facts_.whole = std::move(whole_work_).busy();
    for (std::size_t i = 0; i < steps_.size(); ++i) { facts_.steps[i].busy = std::move(step_work_[i]).busy(); }
    streams();
    tops();
    return std::move(facts_);
  }

 private:
  void whole() {
    facts_.events = profile_.all_events;
    facts_.categories = profile_.categories;
    facts_.rank = profile_.rank;
    facts_.world_size = profile_.world_size;
    facts_.groups_listed = profile_.groups_listed;
    facts_.whole_microseconds = profile_.whole_microseconds;
  }

  void calls() {
    std::set<TrackIndex> threads;
    for (const Event& event : profile_.events) {
      if (event.category == Category::operation || event.category == Category::call) { threads.insert(event.track); }
      if (event.category != Category::call) { continue; }
      if (event.correlation != 0) { calls_.try_emplace(event.correlation, &event); }
      if (is_synchronize(profile_.name(event))) {
        ++facts_.blocking_calls;
        facts_.blocking_ns += event.duration;
      }
    }
    facts_.host_threads = threads.size();
  }

  void steps() {
    for (const Event& event : profile_.events) {
      if (event.category != Category::operation && event.category != Category::annotation) { continue; }
      if (step_number(profile_.name(event))) { steps_.push_back(&event); }
    }
    std::sort(steps_.begin(), steps_.end(), [](const Event* a, const Event* b) { return a->start < b->start; });
    for (const Event* step : steps_) {
      facts_.steps.push_back({step_number(profile_.name(*step)).value_or(0), step->duration, 0, {}});
    }
    step_work_.resize(steps_.size());
  }

  void device_work() {
    std::unordered_map<std::uint64_t, std::uint64_t> launched;
    std::set<NameIndex> names;
    for (const Event& event : profile_.events) {
      if (!is_device_work(event.category)) { continue; }
      (event.category == Category::kernel   ? facts_.kernels
       : event.category == Category::memcpy ? facts_.memcpy
                                            : facts_.memset)++;
      if (event.category == Category::kernel) {
        names.insert(event.name);
        count_kernel(event);
      }
      add(whole_work_, event);
      streams_[event.track].push_back({event.start, event.end()});
      const auto call = calls_.find(event.correlation);
      if (event.correlation == 0 || call == calls_.end()) {
        ++facts_.not_linked;
        continue;
      }
      ++facts_.linked;
      if (++launched[event.correlation] == 2) { ++facts_.calls_that_launch_several; }
      if (event.start < call->second->start) { ++facts_.starts_before_its_call; }
      add_to_step(event, call->second->start);
    }
    facts_.kernel_names = names.size();
  }

  void add(Work& work, const Event& event) const {
    const Interval interval{event.start, event.end()};
    work.all.push_back(interval);
    if (event.category == Category::kernel && comm_[event.name]) {
      work.communication.push_back(interval);
      return;
    }
    work.other.push_back(interval);
    if (event.category == Category::kernel) { work.kernels.push_back(interval); }
  }

  void add_to_step(const Event& event, std::int64_t call_start) {
    const auto after = std::upper_bound(steps_.begin(), steps_.end(), call_start,
                                        [](std::int64_t time, const Event* step) { return time < step->start; });
    if (after == steps_.begin()) { return; }
    const auto step = static_cast<std::size_t>(after - steps_.begin()) - 1;
    if (call_start >= steps_[step]->end()) { return; }
    ++facts_.steps[step].operations;
    add(step_work_[step], event);
  }

  void count_kernel(const Event& event) {
    KernelFacts& kernel = kernels_[event.name];
    ++kernel.count;
    kernel.sum_ns += event.duration;
    if (!comm_[event.name]) { return; }
    const CommRecord* const record = profile_.comm(event);
    CollectiveFacts& collective = facts_.collectives[collective_kind(profile_.name(event), record)];
    ++collective.kernels;
    collective.sum_ns += event.duration;
    if (record == nullptr) { return; }
    ++collective.with_metadata;
    const std::uint64_t bytes = element_bytes(record->dtype);
    collective.in_bytes += static_cast<std::uint64_t>(std::max<std::int64_t>(record->in_elements, 0)) * bytes;
    collective.out_bytes += static_cast<std::uint64_t>(std::max<std::int64_t>(record->out_elements, 0)) * bytes;
    ++collective.groups[record->group];
  }

  void streams() {
    for (auto& [track, intervals] : streams_) {
      const Track& stream = profile_.streams[track];
      StreamFacts& facts = facts_.streams[fmt::format("{}:{}", stream.process, stream.thread)];
      facts.operations = intervals.size();
      for (const Interval& interval : intervals) { facts.sum_ns += interval.end - interval.start; }
      std::sort(intervals.begin(), intervals.end());
      for (std::size_t i = 1; i < intervals.size(); ++i) {
        facts_.overlaps_inside_a_stream += intervals[i].start < intervals[i - 1].end ? 1 : 0;
      }
      facts.busy_ns = union_length(intervals);
    }
  }

  void tops() {
    for (auto& [name, kernel] : kernels_) { kernel.name = profile_.names[name]; }
    facts_.top_kernels = sorted(kernels_);
    const OperatorIndex operators(profile_);
    std::unordered_map<NameIndex, KernelFacts> by_operator;
    for (const Event& event : profile_.events) {
      if (!is_device_work(event.category)) { continue; }
      const auto call = calls_.find(event.correlation);
      const Event* const around = call == calls_.end() ? nullptr : operators.around(*call->second);
      if (around == nullptr) { continue; }
      KernelFacts& facts = by_operator[around->name];
      ++facts.count;
      facts.sum_ns += event.duration;
    }
    for (auto& [name, facts] : by_operator) { facts.name = profile_.names[name]; }
    facts_.top_operators = sorted(by_operator);
  }

  static std::vector<KernelFacts> sorted(std::unordered_map<NameIndex, KernelFacts>& facts) {
    std::vector<KernelFacts> all;
    all.reserve(facts.size());
    for (auto& [name, one] : facts) { all.push_back(std::move(one)); }
    std::sort(all.begin(), all.end(), [](const KernelFacts& a, const KernelFacts& b) {
      return a.sum_ns != b.sum_ns ? a.sum_ns > b.sum_ns : a.name < b.name;
    });
    return all;
  }

  const Profile& profile_;
  Facts facts_;
  std::vector<bool> comm_;
  std::unordered_map<std::uint64_t, const Event*> calls_;
  std::vector<const Event*> steps_;
  Work whole_work_;
  std::vector<Work> step_work_;
  std::map<TrackIndex, std::vector<Interval>> streams_;
  std::unordered_map<NameIndex, KernelFacts> kernels_;
};

}  // namespace

bool is_synchronize(std::string_view call_name) { return call_name.ends_with("Synchronize"); }

std::optional<std::uint64_t> step_number(std::string_view name) {
  if (!name.starts_with(kStepName)) { return std::nullopt; }
  return integer_of<std::uint64_t>(name.substr(kStepName.size()));
}

Facts facts_of(const Profile& profile) { return FactsBuilder(profile).build(); }

}  // namespace orrery::profile
