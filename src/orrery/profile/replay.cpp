#include "orrery/profile/replay.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace orrery::profile {

namespace {

constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::min();

std::int64_t scaled(std::int64_t duration, double factor) {
  constexpr double kMost = 1e17;  // ns: three years
  return factor == 1 ? duration : std::llround(std::min(static_cast<double>(duration) * factor, kMost));
}

}  // namespace

class ReplayJob::Run {
 public:
  Run(const ReplayJob& job, const ReplayChange& change) : job_(job), change_(change) {}

  Result<Replay> run() {
    if (auto ok = prepare(); !ok) { return tl::make_unexpected(ok.error()); }
    for (std::uint32_t node = 0; node < job_.nodes_.size(); ++node) {
      if (open_[node] == 0) { ready_.push_back(node); }
    }
    while (!ready_.empty()) {
      const std::uint32_t node = ready_.back();
      ready_.pop_back();
      start(node);
    }
    if (done_ < job_.nodes_.size()) { return stuck(); }
    return result();
  }

 private:
  [[nodiscard]] std::uint32_t deps_end(std::uint32_t node) const {
    return node + 1 < job_.nodes_.size() ? job_.nodes_[node + 1].deps_begin
                                         : static_cast<std::uint32_t>(job_.deps_.size());
  }

  Result<void> prepare() {
    const std::size_t count = job_.nodes_.size();
    start_.assign(count, kUnknown);
    end_.assign(count, kUnknown);
    extra_.assign(count, 0);
    open_.assign(count, 0);
    binding_.assign(count, kNo);
    child_begin_.assign(count + 1, 0);
    for (const Dep& dep : job_.deps_) { ++child_begin_[dep.node + 1]; }
    for (std::size_t i = 1; i <= count; ++i) { child_begin_[i] += child_begin_[i - 1]; }
    children_.resize(job_.deps_.size());
    std::vector<std::uint32_t> at(child_begin_.begin(), child_begin_.end() - 1);
    for (std::uint32_t node = 0; node < count; ++node) {
      open_[node] = deps_end(node) - job_.nodes_[node].deps_begin;
      for (std::uint32_t i = job_.nodes_[node].deps_begin; i < deps_end(node); ++i) {
        children_[at[job_.deps_[i].node]++] = node;
      }
    }
    missing_.clear();
    for (const Collective& collective : job_.collectives_) {
      missing_.push_back(static_cast<std::uint32_t>(collective.members.size()));
    }
    set_shifts();
    if (auto ok = set_factors(); !ok) { return ok; }
    for (const Lateness& late : change_.late) {
      if (auto ok = add_late(late); !ok) { return ok; }
    }
    return {};
  }

  void set_shifts() {
    shift_.assign(job_.ranks_.size(), 0);
    rank_of_.assign(job_.nodes_.size(), 0);
    for (std::size_t rank = 0; rank < job_.ranks_.size(); ++rank) {
      std::fill(rank_of_.begin() + job_.ranks_[rank].first, rank_of_.begin() + job_.ranks_[rank].last,
                static_cast<std::uint32_t>(rank));
      if (change_.common_start) { shift_[rank] = -common_origin(rank); }
    }
  }

  Result<void> set_factors() {
    factors_.assign(job_.kernels_.size(), change_.compute);
    for (const KernelFactor& one : change_.kernels) {
      bool any = false;
      for (std::size_t i = 0; i < factors_.size(); ++i) {
        const ReplayKernel& kernel = job_.kernels_[i];
        const bool applies = one.kind ? kernel.kind == *one.kind : kernel.name.find(one.text) != std::string::npos;
        if (applies) { factors_[i] *= one.factor; }
        any = any || applies;
      }
      if (!any) { return fail(no_kernel(one)); }
    }
    return {};
  }

  [[nodiscard]] std::string no_kernel(const KernelFactor& factor) const {
    if (!factor.kind) { return fmt::format("no kernel of the profile has {:?} in its name", factor.text); }
    std::set<std::string_view> classes;
    for (const ReplayKernel& kernel : job_.kernels_) {
      classes.insert(kKernelClasses[static_cast<std::size_t>(kernel.kind)]);
    }
    return fmt::format("the profile has no kernel of the class {}; it has {}",
                       kKernelClasses[static_cast<std::size_t>(*factor.kind)], fmt::join(classes, ", "));
  }

  // Where a rank starts: its first step, else its first event of the host.
  [[nodiscard]] std::int64_t common_origin(std::size_t rank) const {
    for (const Step& step : job_.steps_) {
      if (step.rank == rank && step.begin != kNo) { return job_.nodes_[step.begin].recorded_start; }
    }
    return job_.ranks_[rank].host_start;
  }

  Result<void> add_late(const Lateness& late) {
    const auto found = std::find_if(job_.ranks_.begin(), job_.ranks_.end(),
                                    [&](const Rank& rank) { return rank.number == late.rank; });
    if (found == job_.ranks_.end()) { return fail(fmt::format("rank {} has no file", late.rank)); }
    const auto rank = static_cast<std::size_t>(found - job_.ranks_.begin());
    const Step* at = nullptr;
    for (const Step& step : job_.steps_) {
      if (step.rank != rank || step.begin == kNo || (late.step && step.number != *late.step)) { continue; }
      if (at == nullptr) { at = &step; }
    }
    if (at == nullptr && late.step) { return fail(fmt::format("rank {} has no step {}", late.rank, *late.step)); }
    if (at != nullptr) {
      extra_[at->begin] += late.ns;
    } else {
      shift_[rank] += late.ns;
    }
    return {};
  }

  void start(std::uint32_t node) {
    const Node& about = job_.nodes_[node];
    std::int64_t start = kUnknown;
    for (std::uint32_t i = about.deps_begin; i < deps_end(node); ++i) {
      const std::int64_t ready = end_[job_.deps_[i].node] + job_.deps_[i].lag;
      if (ready <= start) { continue; }
      start = ready;
      binding_[node] = job_.deps_[i].node;
    }
    if (start == kUnknown) { start = about.recorded_start + shift_[rank_of_[node]]; }
    start_[node] = start;
    if (about.collective == kNo) {
      const double factor = about.kernel != kNo ? factors_[about.kernel] : about.on_device ? change_.compute : 1.0;
      finish(node, start + scaled(about.duration, factor) + extra_[node]);
      return;
    }
    --missing_[about.collective];
    const Collective& collective = job_.collectives_[about.collective];
    if (collective.one_sided) { return arrive(collective); }
    if (missing_[about.collective] > 0) { return; }
    const std::int64_t latest = arrival(collective, collective.members.front());
    for (const Member& member : collective.members) { finish(member.node, latest + scaled(member.wire, change_.comm)); }
  }

  // The last start of those that a member waits for; kUnknown if one of them has not started.
  [[nodiscard]] std::int64_t arrival(const Collective& collective, const Member& member) const {
    std::int64_t latest = kUnknown;
    if (!collective.one_sided) {
      for (const Member& other : collective.members) { latest = std::max(latest, start_[other.node]); }
      return latest;
    }
    for (const std::uint32_t other : member.waits_for) {
      const std::int64_t start = start_[collective.members[other].node];
      if (start == kUnknown) { return kUnknown; }
      latest = std::max(latest, start);
    }
    return latest;
  }

  // After a member of a broadcast, a reduction or a message has started: those that wait for no other member end.
  void arrive(const Collective& collective) {
    for (const Member& member : collective.members) {
      if (end_[member.node] != kUnknown) { continue; }
      const std::int64_t latest = arrival(collective, member);
      if (latest != kUnknown) { finish(member.node, latest + scaled(member.wire, change_.comm)); }
    }
  }

  void finish(std::uint32_t node, std::int64_t end) {
    end_[node] = end;
    ++done_;
    for (std::uint32_t i = child_begin_[node]; i < child_begin_[node + 1]; ++i) {
      if (--open_[children_[i]] == 0) { ready_.push_back(children_[i]); }
    }
  }

  tl::unexpected<Failure> stuck() const {
    for (std::size_t i = 0; i < job_.collectives_.size(); ++i) {
      if (missing_[i] == 0 || missing_[i] == job_.collectives_[i].members.size()) { continue; }
      const ReplayCollective& about = job_.collectives_[i].about;
      return fail(
          fmt::format("the ranks wait for each other: {} number {} of group {} is never reached by {} of its {} "
                      "members",
                      about.kind, about.number, about.group, missing_[i], about.members.size()));
    }
    return fail(
        fmt::format("{} of {} nodes wait for each other in a cycle", job_.nodes_.size() - done_, job_.nodes_.size()));
  }

  Replay result() const {
    Replay replay;
    replay.nodes = job_.nodes_.size();
    for (const Rank& rank : job_.ranks_) { replay.ranks.push_back(rank_result(rank)); }
    for (const Step& step : job_.steps_) {
      if (step.begin == kNo || step.end == kNo) { continue; }
      replay.steps.push_back({job_.ranks_[step.rank].number, step.number, end_[step.end] - start_[step.begin],
                              job_.nodes_[step.end].recorded_start - job_.nodes_[step.begin].recorded_start});
    }
    for (const Collective& collective : job_.collectives_) {
      ReplayCollective about = collective.about;
      std::int64_t latest = arrival(collective, collective.members.front());
      for (const Member& member : collective.members) {
        if (collective.one_sided) { latest = arrival(collective, member); }
        about.wire_ns = std::max(about.wire_ns, end_[member.node] - latest);
        about.waiting_ns += latest - start_[member.node];
      }
      replay.collectives.push_back(std::move(about));
    }
    std::int64_t first = std::numeric_limits<std::int64_t>::max();
    std::int64_t last = kUnknown;
    for (std::size_t node = 0; node < job_.nodes_.size(); ++node) {
      first = std::min(first, start_[node]);
      last = std::max(last, end_[node]);
    }
    replay.makespan_ns = job_.nodes_.empty() ? 0 : last - first;
    replay.path = critical_path();
    return replay;
  }

  // The member of a collective that starts last; the node itself for others.
  [[nodiscard]] std::uint32_t decisive(std::uint32_t node) const {
    const Node& about = job_.nodes_[node];
    if (about.collective == kNo) { return node; }
    std::uint32_t latest = node;
    const Collective& collective = job_.collectives_[about.collective];
    const auto later = [&](std::uint32_t other) {
      if (start_[other] > start_[latest]) { latest = other; }
    };
    for (const Member& member : collective.members) {
      if (!collective.one_sided) {
        later(member.node);
      } else if (member.node == node) {
        for (const std::uint32_t other : member.waits_for) { later(collective.members[other].node); }
      }
    }
    return latest;
  }

  [[nodiscard]] ReplayPath critical_path() const {
    ReplayPath path;
    if (end_.empty()) { return path; }
    auto node = static_cast<std::uint32_t>(std::max_element(end_.begin(), end_.end()) - end_.begin());
    while (node != kNo) {
      ++path.nodes;
      const std::uint32_t from = decisive(node);
      path.changes_of_rank += rank_of_[from] != rank_of_[node] ? 1 : 0;
      const Node& about = job_.nodes_[from];
      (about.communicates ? path.communication_ns
       : about.on_device  ? path.compute_ns
                          : path.host_ns) += end_[node] - start_[from];
      const std::uint32_t before = binding_[from];
      if (before != kNo) { add_lag(path, from, before); }
      node = before;
    }
    return path;
  }

  void add_lag(ReplayPath& path, std::uint32_t node, std::uint32_t before) const {
    const std::int64_t lag = start_[node] - end_[before];
    const Node& about = job_.nodes_[node];
    const bool wakes = !about.on_device && !job_.nodes_[before].on_device;
    const std::int64_t unexplained = std::min(about.unexplained, std::max<std::int64_t>(lag, 0));
    path.unexplained_ns += unexplained;
    (wakes ? path.host_ns : path.latency_ns) += lag - unexplained;
  }

  ReplayRank rank_result(const Rank& rank) const {
    ReplayRank made;
    made.rank = rank.number;
    made.unexplained_ns = rank.unexplained;
    std::int64_t first = std::numeric_limits<std::int64_t>::max();
    std::int64_t host_end = kUnknown;
    std::int64_t device_end = kUnknown;
    std::vector<std::int64_t> off;
    for (std::uint32_t node = rank.first; node < rank.last; ++node) {
      const Node& about = job_.nodes_[node];
      if (about.on_device) {
        device_end = std::max(device_end, end_[node]);
        off.push_back(std::abs(start_[node] - about.recorded_start));
        continue;
      }
      first = std::min(first, start_[node]);
      host_end = std::max(host_end, end_[node]);
    }
    if (host_end == kUnknown) { return made; }
    made.host_ns = host_end - first;
    made.recorded_host_ns = rank.host_end - rank.host_start;
    made.device_end_ns = device_end == kUnknown ? 0 : device_end - first;
    made.recorded_device_end_ns = device_end == kUnknown ? 0 : rank.device_end - rank.host_start;
    if (!off.empty()) {
      std::sort(off.begin(), off.end());
      made.start_off_median_ns = off[off.size() / 2];
      made.start_off_p95_ns = off[off.size() * 95 / 100];
    }
    return made;
  }

  const ReplayJob& job_;
  const ReplayChange& change_;
  std::vector<std::int64_t> start_, end_, extra_, shift_;
  std::vector<double> factors_;         // of ReplayJob::kernels_
  std::vector<std::uint32_t> binding_;  // the dependency that decided the start
  std::vector<std::uint32_t> open_, child_begin_, children_, missing_, rank_of_, ready_;
  std::size_t done_ = 0;
};

Result<Replay> ReplayJob::run(const ReplayChange& change) const { return Run(*this, change).run(); }

}  // namespace orrery::profile
