// Blocks that come from tiers of the cache: a request waits for them, while others run.
#include <algorithm>

#include "orrery/core/error.hpp"
#include "orrery/serving/engine.hpp"

namespace orrery::serving {

// A request whose blocks must be loaded leaves the queue until they are on the device. It holds their memory and a
// place among the running requests. Each tier has a link (with attention dp, one for each rank), on which loads queue;
// their latencies overlap. A block that another request is loading is not loaded twice.
bool Engine::begin_load(const Waiting& head, const Offer& offer, Ticks now) {
  if (shape_.tiers.empty() || offer.hits == 0 || head.held > 0 || head.comes) { return false; }
  if (head.retrieved >= offer.hits * workload_.block_tokens) { return false; }
  const Request& request = workload_.requests[static_cast<std::size_t>(head.request)];
  const auto blocks = workload_.blocks_of(request).first(static_cast<std::size_t>(offer.hits));
  const Ticks ready = loaded_at(blocks, now);
  if (ready <= now) { return false; }
  ++totals_.loads;
  totals_.load_wait_s += seconds_of(ready - now);
  const std::int64_t before = prefixes_.held();
  prefixes_.acquire(blocks);
  prefixes_.set_computed(blocks);
  take_blocks((prefixes_.held() - before) * unit_blocks_);
  committed_ += whole_blocks(request);
  Waiting waiting = head;
  waiting.held = offer.hits;
  waits_since_ = -1;
  waiting_.pop_front();
  waiting_tokens_ -= tokens_of(waiting);
  loading_tokens_ += tokens_of(waiting);
  const auto later = [](Ticks at, const Loading& loading) { return at < loading.at; };
  loading_.insert(std::upper_bound(loading_.begin(), loading_.end(), ready, later), {waiting, ready});
  return true;
}

// Queues the copies of blocks that are below the device. When all blocks are there.
Ticks Engine::loaded_at(std::span<const std::uint32_t> blocks, Ticks now) {
  Ticks ready = now;
  for (const std::uint32_t id : blocks) { ready = std::max(ready, arrives_[id]); }
  for (std::size_t k = 0; k < shape_.tiers.size(); ++k) {
    const std::int64_t found = prefixes_.in_tier(blocks, k), tokens = found * workload_.block_tokens;
    if (found == 0) { continue; }
    const Ticks time = saturated_product(tokens, shape_.tiers[k].token);
    Ticks& link = *std::min_element(links_[k].begin(), links_[k].end());
    link = saturated_sum(std::max(now, link), time);
    const bool is_shared = store_ != nullptr && k + 1 == kTiers;
    const Ticks sent = is_shared ? std::max(link, store_->read(found, now)) : link;
    ready = std::max(ready, saturated_sum(sent, shape_.tiers[k].latency));
    totals_.tier_tokens[k] += tokens;
    totals_.tier_s[k] += seconds_of(time);
  }
  for (const std::uint32_t id : blocks) {
    if (!prefixes_.on_device(id)) { arrives_.at(id) = ready; }
  }
  return ready;
}

// Requests whose blocks have arrived are in front of those that wait.
void Engine::finish_loads(Ticks now) {
  std::size_t done = 0;
  while (done < loading_.size() && loading_[done].at <= now) { ++done; }
  for (std::size_t i = done; i-- > 0;) {
    loading_tokens_ -= tokens_of(loading_[i].waiting);
    ++holders_;
    queue(loading_[i].waiting, true);
  }
  loading_.erase(loading_.begin(), loading_.begin() + static_cast<std::ptrdiff_t>(done));
}

// Leading blocks of a request that has loaded some: those that it holds, and what follows on the device.
std::int64_t Engine::hits_of_holder(std::span<const std::uint32_t> blocks, std::int64_t held) const {
  auto hits = static_cast<std::size_t>(held);
  const auto is_here = [&](std::uint32_t id) {
    return prefixes_.is_ready(id) && (shape_.tiers.empty() || arrives_[id] <= start_);
  };
  while (hits < blocks.size() && is_here(blocks[hits])) { ++hits; }
  return static_cast<std::int64_t>(hits);
}

void Engine::release_hold(Waiting& waiting) {
  const Request& request = workload_.requests[static_cast<std::size_t>(waiting.request)];
  const std::int64_t before = prefixes_.held();
  prefixes_.release(workload_.blocks_of(request).first(static_cast<std::size_t>(waiting.held)));
  used_ -= (before - prefixes_.held()) * unit_blocks_;
  committed_ -= whole_blocks(request);
  waiting.held = 0;
  settled_ = false;
}

// The last request in the queue behind the first `kept` ones that holds loaded blocks gives them back, and looks for
// them again at its turn. False: there is none.
bool Engine::drop_holder(std::size_t kept) {
  if (holders_ == 0) { return false; }
  Waiting* last = waiting_.find_last(kept, [](const Waiting& waiting) { return waiting.held > 0; });
  if (last == nullptr) { return false; }
  release_hold(*last);
  --holders_;
  return true;
}

}  // namespace orrery::serving
