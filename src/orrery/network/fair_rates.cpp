#include "orrery/network/fair_rates.hpp"

#include <algorithm>

#include "orrery/core/error.hpp"

namespace orrery::network {

namespace {

// Quotients that differ by less than this are rounding errors of the same number.
constexpr double kSameRate = 1e-12;
// A link's sum of weights is summed up again when it has shrunk to this part: differences of sums lose digits.
constexpr double kShrunk = 1e-3;

struct LaterShare {
  template <class Bound>
  bool operator()(const Bound& a, const Bound& b) const {
    return a.share > b.share || (a.share == b.share && a.link > b.link);
  }
};

}  // namespace

FairRates::FairRates(std::vector<double> bandwidths, Method method) : loads_(bandwidths.size()), method_(method) {
  links_.resize(bandwidths.size());
  for (std::size_t i = 0; i < bandwidths.size(); ++i) {
    ORRERY_ASSERT(bandwidths[i] > 0);
    links_[i].bandwidth = bandwidths[i];
  }
}

void FairRates::mark(std::uint32_t link) {
  if (links_[link].is_dirty) { return; }
  links_[link].is_dirty = true;
  dirty_.push_back(link);
}

std::uint32_t FairRates::add(std::span<const std::uint32_t> route, double weight) {
  ORRERY_ASSERT(!route.empty() && weight > 0);
  if (free_.size() <= route.size()) { free_.resize(route.size() + 1); }
  auto& reusable = free_[route.size()];
  std::uint32_t number = 0;
  if (reusable.empty()) {
    number = static_cast<std::uint32_t>(flows_.size());
    flows_.push_back(
        {static_cast<std::uint32_t>(entries_.size()), static_cast<std::uint32_t>(route.size()), 1, 0, 0, 0});
    entries_.resize(entries_.size() + route.size());
  } else {
    number = reusable.back();
    reusable.pop_back();
  }
  Flow& flow = flows_[number];
  flow.weight = weight;
  flow.rate = 0;
  flow.is_live = flow.is_new = true;
  flow.bottleneck = route.front();
  for (std::uint32_t i = 0; i < flow.length; ++i) {
    auto& uses = links_[route[i]].uses;
    entries_[flow.first + i] = {route[i], static_cast<std::uint32_t>(uses.size())};
    uses.push_back({number, flow.first + i});
    mark(route[i]);
  }
  started_.push_back(number);
  ++live_;
  uses_ += flow.length;
  return number;
}

void FairRates::remove(std::uint32_t number) {
  Flow& flow = flows_[number];
  ORRERY_ASSERT(flow.is_live);
  for (std::uint32_t i = flow.first; i < flow.first + flow.length; ++i) {
    auto& uses = links_[entries_[i].link].uses;
    const std::uint32_t place = entries_[i].place;
    uses[place] = uses.back();
    entries_[uses[place].entry].place = place;
    uses.pop_back();
    mark(entries_[i].link);
  }
  flow.is_live = flow.is_new = false;
  free_[flow.length].push_back(number);
  --live_;
  uses_ -= flow.length;
}

void FairRates::set_bandwidth(std::uint32_t link, double bandwidth) {
  ORRERY_ASSERT(bandwidth > 0);
  links_[link].bandwidth = bandwidth;
  mark(link);
  // A repair keeps rates that it does not find wrong; those of a link that is slower now are all too high.
  for (const Use& use : links_[link].uses) { started_.push_back(use.flow); }
}

// ---- progressive filling -------------------------------------------------------------------------------------------

void FairRates::sum_weights(Link& link, bool members_only) const {
  link.weight = 0;
  if (members_only) {
    for (const std::uint32_t flow : link.members) { link.weight += flows_[flow].is_open ? flows_[flow].weight : 0; }
  } else {
    for (const Use& use : link.uses) { link.weight += flows_[use.flow].is_open ? flows_[use.flow].weight : 0; }
  }
  link.checked = link.weight;
}

void FairRates::fix(std::uint32_t number, std::uint32_t bottleneck, double level, bool members_only) {
  Flow& flow = flows_[number];
  flow.next = level * flow.weight;
  flow.bottleneck = bottleneck;
  flow.is_open = false;
  for (std::uint32_t i = flow.first; i < flow.first + flow.length; ++i) {
    Link& link = links_[entries_[i].link];
    link.rest -= flow.next;
    link.weight -= flow.weight;
    --link.open;
    if (link.weight < kShrunk * link.checked && link.open > 0) { sum_weights(link, members_only); }
  }
  counts_.work += flow.length;
}

bool FairRates::fix_all(std::uint32_t number, double level, bool members_only) {
  const Link& link = links_[number];
  if (members_only) {
    for (const std::uint32_t flow : link.members) {
      if (flows_[flow].is_open) { fix(flow, number, level, true); }
    }
    counts_.work += link.members.size();
  } else {
    for (const Use& use : link.uses) {
      if (flows_[use.flow].is_open) { fix(use.flow, number, level, false); }
    }
    counts_.work += link.uses.size();
  }
  return link.open == 0;
}

// Gives `next` to all open flows of the listed links, which have their rest and weight.
void FairRates::fill(bool members_only) {
  const auto share_of = [&](std::uint32_t link) { return std::max(links_[link].rest, 0.0) / links_[link].weight; };
  heap_.clear();
  for (const std::uint32_t link : listed_) {
    if (links_[link].open > 0) { heap_.push_back({share_of(link), link}); }
  }
  std::make_heap(heap_.begin(), heap_.end(), LaterShare{});
  double level = 0;
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), LaterShare{});
    Bound& least = heap_.back();
    if (links_[least.link].open == 0) {
      heap_.pop_back();
      continue;
    }
    const double share = share_of(least.link);
    if (share > least.share * (1 + kSameRate)) {  // flows of the link were fixed at lower levels meanwhile
      least.share = share;
      std::push_heap(heap_.begin(), heap_.end(), LaterShare{});
      continue;
    }
    // One level has one value: flows that are alike have rates that are equal bit by bit.
    if (share > level * (1 + kSameRate)) { level = share; }
    const std::uint32_t link = least.link;
    heap_.pop_back();
    ORRERY_ASSERT(fix_all(link, level, members_only));
  }
}

void FairRates::solve_fully() {
  ++counts_.full;
  counts_.work += uses_;
  solved_.clear();
  listed_.clear();
  for (std::uint32_t number = 0; number < flows_.size(); ++number) {
    if (!flows_[number].is_live) { continue; }
    flows_[number].is_open = true;
    solved_.push_back(number);
  }
  for (std::uint32_t number = 0; number < links_.size(); ++number) {
    Link& link = links_[number];
    if (link.uses.empty()) { continue; }
    link.rest = link.bandwidth;
    link.open = static_cast<std::uint32_t>(link.uses.size());
    sum_weights(link, false);
    listed_.push_back(number);
  }
  fill(false);
}

void FairRates::find_rates() {
  if (dirty_.empty()) { return; }
  constexpr std::uint64_t kWorkOfFull = 4;  // visits for each use: summed up, fixed, and its list read twice
  const std::uint64_t budget = kWorkOfFull * uses_ * 3 / 4;
  constexpr unsigned kMostFailures = 6;
  if (method_ == Method::full || skipped_ > 0) {
    skipped_ -= skipped_ > 0 ? 1 : 0;
    solve_fully();
  } else if (repair(method_ == Method::local ? ~std::uint64_t{0} : budget)) {
    ++counts_.repairs;
    failures_ = 0;
  } else {
    ++counts_.abandoned;
    failures_ = std::min(failures_ + 1, kMostFailures);
    skipped_ = (1U << failures_) - 1;
    solve_fully();
  }
  for (const std::uint32_t link : dirty_) { links_[link].is_dirty = false; }
  dirty_.clear();
  started_.clear();
}

std::optional<std::uint32_t> FairRates::uncertified(double tolerance) const {
  std::vector<Load> loads(links_.size());
  for (std::size_t i = 0; i < links_.size(); ++i) {
    double sum = 0;
    for (const Use& use : links_[i].uses) {
      const Flow& flow = flows_[use.flow];
      sum += flow.rate;
      loads[i].top = std::max(loads[i].top, flow.rate / flow.weight);
    }
    loads[i].is_full = sum >= links_[i].bandwidth * (1 - tolerance);
    if (sum > links_[i].bandwidth * (1 + tolerance)) { return links_[i].uses.front().flow; }
  }
  for (std::uint32_t number = 0; number < flows_.size(); ++number) {
    const Flow& flow = flows_[number];
    if (!flow.is_live) { continue; }
    const bool has_bottleneck =
        std::any_of(entries_.begin() + flow.first, entries_.begin() + flow.first + flow.length, [&](const Entry& use) {
          const Load& load = loads[use.link];
          return load.is_full && flow.rate / flow.weight >= load.top * (1 - tolerance);
        });
    if (!has_bottleneck) { return number; }
  }
  return std::nullopt;
}

}  // namespace orrery::network
