#include "orrery/profile/link.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

#include <fmt/format.h>

#include "orrery/profile/decimal.hpp"
#include "orrery/profile/facts.hpp"
#include "orrery/profile/operators.hpp"

namespace orrery::profile {

namespace {

constexpr std::size_t kGram = 6;            // names in a row that identify a place
constexpr std::size_t kLookAhead = 64;      // operators that one file may have more at a place
constexpr std::size_t kUnlinkedShown = 10;  // unlinked operators to name

// Names of both files with common numbers.
class CommonNames {
 public:
  std::uint32_t of(std::string_view name) {
    return index_.try_emplace(std::string(name), static_cast<std::uint32_t>(index_.size())).first->second;
  }

 private:
  std::unordered_map<std::string, std::uint32_t> index_;
};

struct Sequence {
  std::vector<std::uint32_t> names;
  std::vector<std::size_t> positions;  // in the file's list
};

std::uint64_t gram_hash(const std::vector<std::uint32_t>& names, std::size_t at) {
  std::uint64_t hash = 1469598103934665603ULL;
  for (std::size_t i = 0; i < kGram; ++i) { hash = (hash ^ names[at + i]) * 1099511628211ULL; }
  return hash;
}

// Pairs of positions in two sequences that have the same names in the same order.
class Alignment {
 public:
  Alignment(const Sequence& host, const Sequence& device) : host_(host), device_(device) {}

  std::vector<std::pair<std::size_t, std::size_t>> pairs() const {
    if (host_.names.empty() || device_.names.empty()) { return {}; }
    const auto [i, j] = anchor();
    auto found = from(i, j);
    // What lies before the anchor, from there to the start: the same from behind.
    Sequence host = reversed(host_, i);
    Sequence device = reversed(device_, j);
    for (const auto& [back_i, back_j] : Alignment(host, device).from(0, 0)) {
      found.emplace_back(i - 1 - back_i, j - 1 - back_j);
    }
    return found;
  }

 private:
  static Sequence reversed(const Sequence& sequence, std::size_t size) {
    Sequence made;
    made.names.assign(sequence.names.rend() - static_cast<std::ptrdiff_t>(size), sequence.names.rend());
    return made;
  }

  // Pairs from two places on.
  [[nodiscard]] std::vector<std::pair<std::size_t, std::size_t>> from(std::size_t i, std::size_t j) const {
    std::vector<std::pair<std::size_t, std::size_t>> found;
    while (i < host_.names.size() && j < device_.names.size()) {
      if (host_.names[i] == device_.names[j]) {
        found.emplace_back(i++, j++);
        continue;
      }
      const auto [skip_host, skip_device] = resume(i, j);
      i += skip_host;
      j += skip_device;
    }
    return found;
  }

  // The first place at which the sequences agree when they are shifted so that they agree most.
  [[nodiscard]] std::pair<std::size_t, std::size_t> anchor() const {
    const std::ptrdiff_t offset = start();
    std::size_t i = offset < 0 ? static_cast<std::size_t>(-offset) : 0;
    std::size_t j = offset < 0 ? 0 : static_cast<std::size_t>(offset);
    const std::pair<std::size_t, std::size_t> first(i, j);
    for (; i < host_.names.size() && j < device_.names.size(); ++i, ++j) {
      if (agrees(i, j)) { return {i, j}; }
    }
    return first;
  }

  // How far the sequences are shifted: the shift on which most places with the same names agree; the first of equals.
  [[nodiscard]] std::ptrdiff_t start() const {
    const std::size_t longer = std::max(host_.names.size(), device_.names.size());
    const std::size_t shorter = std::min(host_.names.size(), device_.names.size());
    // Of about equal length, they cover the same steps: layers that repeat must not shift them.
    if (shorter < kGram || longer - shorter <= longer / 10) { return 0; }
    std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> places;
    for (std::size_t i = 0; i + kGram <= host_.names.size(); ++i) {
      auto& at = places[gram_hash(host_.names, i)];
      if (at.size() < 4) { at.push_back(static_cast<std::uint32_t>(i)); }  // places with many equals say little
    }
    std::unordered_map<std::ptrdiff_t, std::size_t> votes;
    for (std::size_t j = 0; j + kGram <= device_.names.size(); ++j) {
      const auto found = places.find(gram_hash(device_.names, j));
      if (found == places.end()) { continue; }
      for (const std::uint32_t i : found->second) { ++votes[static_cast<std::ptrdiff_t>(j) - i]; }
    }
    std::ptrdiff_t best = 0;
    std::size_t most = 0;
    for (const auto& [offset, count] : votes) {
      if (count > most || (count == most && offset < best)) {
        best = offset;
        most = count;
      }
    }
    return best;
  }

  // The fewest operators to skip until names agree again for three in a row; one in each if they never do.
  [[nodiscard]] std::pair<std::size_t, std::size_t> resume(std::size_t i, std::size_t j) const {
    for (std::size_t skip = 1; skip <= 2 * kLookAhead; ++skip) {
      for (std::size_t in_host = skip > kLookAhead ? skip - kLookAhead : 0; in_host <= std::min(skip, kLookAhead);
           ++in_host) {
        if (agrees(i + in_host, j + skip - in_host)) { return {in_host, skip - in_host}; }
      }
    }
    return {1, 1};
  }

  [[nodiscard]] bool agrees(std::size_t i, std::size_t j) const {
    constexpr std::size_t kRow = 3;
    if (i >= host_.names.size() || j >= device_.names.size()) { return false; }
    for (std::size_t k = 0; k < kRow && i + k < host_.names.size() && j + k < device_.names.size(); ++k) {
      if (host_.names[i + k] != device_.names[j + k]) { return false; }
    }
    return true;
  }

  const Sequence& host_;
  const Sequence& device_;
};

class Linker {
 public:
  Linker(const HostTrace& host, const Profile& device) : host_(host), device_(device) {
    link_.event_of.resize(host.nodes.size());
    link_.operators = host.operators();
    for (const Event& event : device.events) {
      const bool is_operator = event.category == Category::operation || event.category == Category::annotation;
      if (is_operator && !step_number(device.name(event))) { operators_.push_back(&event); }
    }
    std::stable_sort(operators_.begin(), operators_.end(), [](const Event* a, const Event* b) {
      if (a->start != b->start) { return a->start < b->start; }
      // In whole microseconds many operators start at once: their numbers are in the order of their starts.
      if (a->external != b->external && a->external != 0 && b->external != 0) { return a->external < b->external; }
      return a->duration > b->duration;
    });
  }

  Result<Link> run() {
    if (auto ok = check_process(); !ok) { return tl::make_unexpected(ok.error()); }
    link_.by_id = by_id();
    if (!link_.by_id) { by_structure(); }
    count();
    return std::move(link_);
  }

 private:
  // The process of the profile is that of most of its operators.
  Result<void> check_process() const {
    std::map<std::string, std::uint64_t> processes;
    for (const Event* event : operators_) { ++processes[device_.threads[event->track].process]; }
    if (processes.empty()) { return fail(Place{device_.file, 0, 0, {}}, "has no operators of the host to link to"); }
    const auto most = std::max_element(processes.begin(), processes.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    if (host_.pid && integer_of<std::uint64_t>(most->first) && most->first != std::to_string(*host_.pid)) {
      return fail(Place{device_.file, 0, 0, {}},
                  fmt::format("is of process {}, but {} is of process {}: the files are not of the same run",
                              most->first, host_.file, *host_.pid));
    }
    return {};
  }

  bool by_id() {
    std::unordered_map<std::uint64_t, const Event*> events;
    for (const Event* event : operators_) {
      if (event->record_function != 0) { events.try_emplace(event->record_function, event); }
    }
    std::uint64_t linked = 0;
    for (std::size_t i = 0; i < host_.nodes.size(); ++i) {
      const HostNode& node = host_.nodes[i];
      if (node.is_frame || node.record_function == 0) { continue; }
      const auto found = events.find(node.record_function);
      // An id that stands for another name is of another recording.
      if (found == events.end() || device_.name(*found->second) != host_.names[node.name]) { continue; }
      link_.event_of[i] = found->second;
      ++linked;
    }
    if (2 * linked >= link_.operators && linked > 0) { return true; }
    std::fill(link_.event_of.begin(), link_.event_of.end(), nullptr);
    return false;
  }

  void by_structure() {
    CommonNames names;
    std::map<std::int64_t, Sequence> hosts;
    for (std::size_t i = 0; i < host_.nodes.size(); ++i) {
      if (host_.nodes[i].is_frame) { continue; }
      Sequence& sequence = hosts[host_.nodes[i].thread];
      sequence.names.push_back(names.of(host_.names[host_.nodes[i].name]));
      sequence.positions.push_back(i);
    }
    std::map<TrackIndex, Sequence> devices;
    for (std::size_t i = 0; i < operators_.size(); ++i) {
      Sequence& sequence = devices[operators_[i]->track];
      sequence.names.push_back(names.of(device_.name(*operators_[i])));
      sequence.positions.push_back(i);
    }
    match_threads(hosts, devices);
  }

  // Threads have different numbers in the two files: the pair with most operators in common first.
  void match_threads(std::map<std::int64_t, Sequence>& hosts, std::map<TrackIndex, Sequence>& devices) {
    struct ThreadPair {
      std::int64_t host = 0;
      TrackIndex device = 0;
      std::vector<std::pair<std::size_t, std::size_t>> pairs;
    };
    std::vector<ThreadPair> all;
    for (const auto& [host, host_sequence] : hosts) {
      for (const auto& [device, device_sequence] : devices) {
        all.push_back({host, device, Alignment(host_sequence, device_sequence).pairs()});
      }
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const ThreadPair& a, const ThreadPair& b) { return a.pairs.size() > b.pairs.size(); });
    for (const ThreadPair& pair : all) {
      if (!hosts.contains(pair.host) || !devices.contains(pair.device)) { continue; }
      const Sequence& host = hosts[pair.host];
      const Sequence& device = devices[pair.device];
      for (const auto& [i, j] : pair.pairs) { link_.event_of[host.positions[i]] = operators_[device.positions[j]]; }
      hosts.erase(pair.host);
      devices.erase(pair.device);
    }
  }

  void count() {
    std::unordered_map<const Event*, bool> linked;
    for (std::size_t i = 0; i < host_.nodes.size(); ++i) {
      if (host_.nodes[i].is_frame) { continue; }
      if (link_.event_of[i] != nullptr) {
        ++link_.linked;
        linked[link_.event_of[i]] = true;
      } else if (link_.unlinked.size() < kUnlinkedShown) {
        link_.unlinked.push_back(host_.nodes[i].id);
      }
    }
    const OperatorIndex operators(device_);
    std::unordered_map<std::uint64_t, const Event*> calls;
    for (const Event& event : device_.events) {
      if (event.category == Category::call && event.correlation != 0) { calls.try_emplace(event.correlation, &event); }
    }
    for (const Event& event : device_.events) {
      if (!is_device_work(event.category)) { continue; }
      ++link_.device_operations;
      const auto call = calls.find(event.correlation);
      const Event* const around = call == calls.end() ? nullptr : operators.around(*call->second);
      link_.linked_device_operations += around != nullptr && linked.contains(around) ? 1 : 0;
    }
  }

  const HostTrace& host_;
  const Profile& device_;
  std::vector<const Event*> operators_;
  Link link_;
};

}  // namespace

Result<Link> link(const HostTrace& host, const Profile& device) { return Linker(host, device).run(); }

}  // namespace orrery::profile
