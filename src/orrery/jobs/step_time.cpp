// The events of one step: pieces on servers, messages between pairs of servers.
#include <algorithm>
#include <cstddef>
#include <functional>
#include <queue>
#include <set>
#include <utility>

#include "orrery/jobs/operators.hpp"
#include "orrery/jobs/servers.hpp"

namespace orrery::jobs {

namespace {

constexpr std::int32_t kNone = -1;

// A piece or a message: work for one resource.
struct Task {
  double remaining = 0.0;
  std::int32_t resource = kNone;       // kNone: takes no time
  std::int32_t pending = 0;            // what it waits for
  std::int32_t to = kNone;             // message: the piece that needs it
  std::vector<std::int32_t> messages;  // piece: what it sends
};

// Groups, racks, servers in a rack that servers of RAMP are in, and their number.
struct Extent {
  std::int64_t groups = 0, racks = 0, per_rack = 0, servers = 0;
};

Extent extent_of(const ServerNetwork& network, const std::set<std::int32_t>& servers) {
  std::set<std::int64_t> groups, racks, slots;
  for (const std::int64_t server : servers) {
    groups.insert(server / (network.racks * network.per_rack));
    racks.insert(server / network.per_rack % network.racks);
    slots.insert(server % network.per_rack);
  }
  return {static_cast<std::int64_t>(groups.size()), static_cast<std::int64_t>(racks.size()),
          static_cast<std::int64_t>(slots.size()), static_cast<std::int64_t>(servers.size())};
}

double message_s(const ServerNetwork& network, double bytes) {
  const double links = network.ramp ? static_cast<double>(network.groups) : 1.0;
  return network.latency.value() + 2.0 * network.io_latency.value() + bytes * links / network.bandwidth.value();
}

double collective_s(const ServerNetwork& network, double bytes, const std::set<std::int32_t>& servers) {
  if (servers.size() < 2) { return 0.0; }
  if (network.ramp) {
    const Extent extent = extent_of(network, servers);
    return ramp_all_reduce_s(
        {network.groups, network.bandwidth.value(), network.latency.value(), network.io_latency.value()}, bytes,
        extent.groups, extent.racks, extent.per_rack);
  }
  const auto count = static_cast<double>(servers.size());
  return 2.0 * (count - 1.0) * message_s(network, bytes / count);
}

class Step {
 public:
  Step(const Operators& step, const PiecePlaces& places, const ServerNetwork& network)
      : step_(step), places_(places), network_(network), consumers_(places.size()) {
    for (const auto& on : places) {
      for (const auto server : on) { servers_ = std::max(servers_, server + 1); }
    }
    for (std::size_t i = 0; i < places.size(); ++i) {
      for (const auto input : step.operators[i].inputs) {
        consumers_[static_cast<std::size_t>(input - 1)].push_back(i);
      }
    }
    add_pieces();
    for (std::size_t i = 0; i < places.size(); ++i) {
      send_forward(i);
      send_backward(i);
      synchronise(i);
    }
    ready_.resize(static_cast<std::size_t>(servers_) * static_cast<std::size_t>(servers_ + 1));
    since_.resize(ready_.size(), 0.0);
    turn_.resize(ready_.size(), 0);
  }

  double run() {
    std::vector<std::int32_t> sources;
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      if (tasks_[i].pending == 0) { sources.push_back(static_cast<std::int32_t>(i)); }
    }
    for (const auto source : sources) { start(source); }
    while (!ends_.empty()) {
      const auto [at, resource, turn] = ends_.top();
      ends_.pop();
      if (turn != turn_[resource]) { continue; }  // another task has taken its place
      now_ = at;
      const std::int32_t task = ready_[resource].begin()->second;
      ready_[resource].erase(ready_[resource].begin());
      schedule(resource);
      finish(task);
    }
    return now_;
  }

 private:
  using Group = std::vector<std::pair<std::size_t, std::size_t>>;  // pairs of operators, as indices of first_

  // Forward operators first, then their backward operators.
  void add_pieces() {
    for (int pass = 0; pass < 2; ++pass) {
      for (std::size_t i = 0; i < places_.size(); ++i) {
        const Operator& one = step_.operators[i];
        const double time = (pass == 0 ? one.forward : one.backward).value();
        first_.push_back(static_cast<std::int32_t>(tasks_.size()));
        for (const auto server : places_[i]) {
          tasks_.push_back({time / static_cast<double>(places_[i].size()), server, 0, kNone, {}});
        }
      }
    }
  }

  [[nodiscard]] std::size_t backward(std::size_t i) const { return i + places_.size(); }
  [[nodiscard]] const std::vector<std::int32_t>& servers_of(std::size_t i) const { return places_[i % places_.size()]; }
  [[nodiscard]] double bytes_of(std::size_t i) const { return step_.operators[i % places_.size()].bytes.value(); }

  // The last operators of the forward pass feed their own backward operators.
  void send_forward(std::size_t i) {
    Group group;
    for (const auto consumer : consumers_[i]) { group.push_back({i, consumer}); }
    if (group.empty()) { group.push_back({i, backward(i)}); }
    send(group, i);
  }

  void send_backward(std::size_t i) {
    Group group;
    for (const auto consumer : consumers_[i]) { group.push_back({backward(consumer), backward(i)}); }
    send(group, i);
  }

  void send(const Group& group, std::size_t divided) {
    double bytes = 0.0;
    std::vector<std::int32_t> from, to;
    for (const auto& [source, target] : group) {
      bytes += bytes_of(source);
      for (const auto a : servers_of(source)) {
        for (const auto b : servers_of(target)) {
          from.push_back(a);
          to.push_back(b);
        }
      }
    }
    std::sort(from.begin(), from.end());
    std::sort(to.begin(), to.end());
    const bool collective = servers_of(divided).size() > 1 && from == to;
    const double together = collective ? collective_s(network_, bytes, {from.begin(), from.end()}) : 0.0;
    for (const auto& [source, target] : group) {
      const auto& a = servers_of(source);
      const auto& b = servers_of(target);
      const double each = bytes_of(source) / static_cast<double>(a.size() * b.size());
      const double time = collective ? together : message_s(network_, each);
      for (std::size_t p = 0; p < a.size(); ++p) {
        for (std::size_t q = 0; q < b.size(); ++q) {
          const auto needs = first_[target] + static_cast<std::int32_t>(q);
          add_message(first_[source] + static_cast<std::int32_t>(p), needs, each > 0.0 ? time : 0.0, {a[p], b[q]});
          ++tasks_[static_cast<std::size_t>(needs)].pending;
        }
      }
    }
  }

  void synchronise(std::size_t i) {
    const auto& on = places_[i];
    const double bytes = bytes_of(i) / static_cast<double>(on.size());
    for (std::size_t p = 0; p < on.size(); ++p) {
      for (std::size_t q = 0; q < on.size(); ++q) {
        if (p == q || bytes <= 0.0) { continue; }
        const double time = collective_s(network_, 2.0 * bytes, {on[p], on[q]});
        add_message(first_[backward(i)] + static_cast<std::int32_t>(p), kNone, time, {on[p], on[q]});
      }
    }
  }

  void add_message(std::int32_t sender, std::int32_t needs, double time, std::pair<std::int32_t, std::int32_t> way) {
    const bool travels = way.first != way.second && time > 0.0;
    const std::int32_t channel = servers_ + way.first * servers_ + way.second;
    tasks_[static_cast<std::size_t>(sender)].messages.push_back(static_cast<std::int32_t>(tasks_.size()));
    tasks_.push_back({travels ? time : 0.0, travels ? channel : kNone, 1, needs, {}});
  }

  void start(std::int32_t index) {
    const Task& task = tasks_[static_cast<std::size_t>(index)];
    if (task.resource == kNone || task.remaining <= 0.0) { return finish(index); }
    const auto resource = static_cast<std::size_t>(task.resource);
    settle(resource);
    ready_[resource].insert({task.remaining, index});
    schedule(resource);
  }

  // The running task is the first one: its remaining time until now.
  void settle(std::size_t resource) {
    if (!ready_[resource].empty()) {
      const auto [before, index] = *ready_[resource].begin();
      ready_[resource].erase(ready_[resource].begin());
      ready_[resource].insert({std::max(0.0, before - (now_ - since_[resource])), index});
    }
    since_[resource] = now_;
  }

  void schedule(std::size_t resource) {
    since_[resource] = now_;
    ++turn_[resource];
    if (ready_[resource].empty()) { return; }
    ends_.push({now_ + ready_[resource].begin()->first, resource, turn_[resource]});
  }

  void finish(std::int32_t index) {
    const Task& task = tasks_[static_cast<std::size_t>(index)];
    for (const auto message : task.messages) { start(message); }
    if (task.to == kNone) { return; }
    if (--tasks_[static_cast<std::size_t>(task.to)].pending == 0) { start(task.to); }
  }

  struct End {
    double at;
    std::size_t resource;
    std::int64_t turn;
    friend bool operator>(const End& a, const End& b) { return a.at != b.at ? a.at > b.at : a.resource > b.resource; }
  };

  const Operators& step_;
  const PiecePlaces& places_;
  const ServerNetwork& network_;
  std::vector<std::vector<std::size_t>> consumers_;
  std::int32_t servers_ = 0;
  std::vector<std::int32_t> first_;  // piece of each operator, forward and backward
  std::vector<Task> tasks_;
  std::vector<std::set<std::pair<double, std::int32_t>>> ready_;  // by resource: servers, then pairs of servers
  std::vector<double> since_;
  std::vector<std::int64_t> turn_;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  double now_ = 0.0;
};

}  // namespace

Seconds step_time(const Operators& step, const PiecePlaces& places, const ServerNetwork& network) {
  return Seconds(Step(step, places, network).run());
}

}  // namespace orrery::jobs
