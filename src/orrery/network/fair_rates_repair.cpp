// Local repair of fair rates: the flows without a valid bottleneck are solved again.
#include <algorithm>

#include "orrery/core/error.hpp"
#include "orrery/network/fair_rates.hpp"

namespace orrery::network {

namespace {

// A link is full, and a rate is the largest, to this relative tolerance: sums of thousands of rates are rounded.
constexpr double kFullLink = 1e-11;

}  // namespace

void FairRates::list(std::uint32_t number) {
  if (links_[number].is_listed) { return; }
  links_[number].is_listed = true;
  listed_.push_back(number);
}

void FairRates::join(std::uint32_t number) {
  Flow& flow = flows_[number];
  if (flow.is_member) { return; }
  flow.is_member = true;
  flow.next = 0;
  members_.push_back(number);
  for (std::uint32_t i = flow.first; i < flow.first + flow.length; ++i) {
    list(entries_[i].link);
    links_[entries_[i].link].members.push_back(number);
  }
  counts_.work += flow.length;
}

// All members are solved again, with what the others leave of each link.
void FairRates::open_members() {
  for (const std::uint32_t number : members_) { flows_[number].is_open = true; }
  for (const std::uint32_t number : listed_) {
    Link& link = links_[number];
    if (link.members.empty()) { continue; }
    link.open = static_cast<std::uint32_t>(link.members.size());
    double used = 0;
    for (const Use& use : link.uses) { used += flows_[use.flow].is_member ? 0 : flows_[use.flow].rate; }
    link.rest = std::max(link.bandwidth - used, 0.0);
    sum_weights(link, true);
    counts_.work += link.uses.size() + link.members.size();
  }
}

FairRates::Load FairRates::load_of(const Link& link) const {
  Load load;
  double sum = 0;
  for (const Use& use : link.uses) {
    const Flow& flow = flows_[use.flow];
    const double rate = rate_in_repair(flow);
    sum += rate;
    load.top = std::max(load.top, rate / flow.weight);
  }
  load.is_full = sum >= link.bandwidth * (1 - kFullLink);
  return load;
}

bool FairRates::is_bottleneck(const Flow& flow, std::uint32_t link) const {
  return loads_[link].is_full && rate_in_repair(flow) / flow.weight >= loads_[link].top * (1 - kFullLink);
}

// Among the listed links, whose loads are known.
bool FairRates::find_bottleneck(Flow& flow) const {
  for (std::uint32_t i = flow.first; i < flow.first + flow.length; ++i) {
    const std::uint32_t link = entries_[i].link;
    if (links_[link].is_listed && is_bottleneck(flow, link)) {
      flow.bottleneck = link;
      return true;
    }
  }
  return false;
}

// Flows outside the set that have lost their bottleneck, or that take more of a member's bottleneck than the member.
void FairRates::collect_violations() {
  violated_.clear();
  for (const std::uint32_t number : listed_) {
    loads_[number] = load_of(links_[number]);
    counts_.work += links_[number].uses.size();
  }
  for (const std::uint32_t number : listed_) {
    for (const Use& use : links_[number].uses) {
      Flow& flow = flows_[use.flow];
      if (flow.is_member || flow.bottleneck != number || is_bottleneck(flow, number)) { continue; }
      if (!find_bottleneck(flow)) { violated_.push_back(use.flow); }
    }
  }
  for (const std::uint32_t number : members_) {
    Flow& flow = flows_[number];
    if (is_bottleneck(flow, flow.bottleneck) || find_bottleneck(flow)) { continue; }
    const double own = flow.next / flow.weight;
    for (const Use& use : links_[flow.bottleneck].uses) {
      const Flow& other = flows_[use.flow];
      if (!other.is_member && other.rate / other.weight > own * (1 + kFullLink)) { violated_.push_back(use.flow); }
    }
    counts_.work += links_[flow.bottleneck].uses.size();
  }
}

void FairRates::end_repair() {
  for (const std::uint32_t number : listed_) {
    links_[number].is_listed = false;
    links_[number].members.clear();
  }
  for (const std::uint32_t number : members_) { flows_[number].is_member = false; }
  listed_.clear();
}

bool FairRates::repair(std::uint64_t budget) {
  const std::uint64_t limit = budget > ~counts_.work ? ~std::uint64_t{0} : counts_.work + budget;
  members_.clear();
  listed_.clear();
  for (const std::uint32_t link : dirty_) { list(link); }
  for (const std::uint32_t flow : started_) {
    if (flows_[flow].is_live) { join(flow); }
  }
  bool done = false;
  while (!done && counts_.work < limit) {
    open_members();
    fill(true);
    collect_violations();
    done = violated_.empty();
    for (const std::uint32_t flow : violated_) { join(flow); }
  }
  if (done) { solved_ = members_; }
  end_repair();
  return done;
}

}  // namespace orrery::network
