// The engines of one pool, and the router in front of them. Private to the room.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "orrery/core/random.hpp"
#include "orrery/serving/fleet.hpp"
#include "orrery/serving/tokenizer.hpp"

namespace orrery::serving {

class Front {
 public:
  Front(const Pool& pool, const FleetOptions& options, const Workload& load, std::vector<Outcome>& outcomes,
        std::int32_t first, RemoteStore* store)
      : options_(options),
        load_(load),
        block_tokens_(pool.settings->block_tokens),
        first_(first),
        random_(options.seed + 77),
        scaler_(pool.autoscale, static_cast<std::size_t>(pool.replicas)) {
    for (std::int64_t i = 0; i < pool.replicas; ++i) {
      engines_.push_back(std::make_unique<Engine>(*pool.settings, pool.shape, *pool.price, load, outcomes));
      const bool shares = store != nullptr && pool.shape.tiers.size() == kTiers && pool.settings->prefix_cache;
      if (shares) { engines_.back()->share(*store); }
    }
    seen_.resize(engines_.size());
    tokenizers_.resize(engines_.size(), Tokenizer(pool.shape.tokenizer_batch));
    expected_.resize(engines_.size(), 0);
    expected_tokens_.resize(engines_.size(), 0);
    without_place_.resize(engines_.size(), 0);
    prompt_host_ = pool.shape.prompt_host;
    sent_.resize(engines_.size());
    asked_tokens_.resize(engines_.size());
    signal_ = pool.autoscale.signal;
    caches_prefixes_ = pool.settings->prefix_cache;
  }

  [[nodiscard]] std::size_t size() const { return engines_.size(); }
  [[nodiscard]] Engine& engine(std::size_t i) { return *engines_[i]; }
  [[nodiscard]] std::int32_t first() const { return first_; }
  [[nodiscard]] std::int64_t block_tokens() const { return block_tokens_; }
  [[nodiscard]] Autoscaler& scaler() { return scaler_; }

  // When the tokens of a prompt that comes now are ready for the engine.
  Ticks tokenise(std::size_t i, const Request& request, Ticks now) {
    if (prompt_host_ == 0) { return now; }
    return tokenizers_[i].encode(now, saturated_product(request.input, prompt_host_));
  }
  // Of all engines.
  [[nodiscard]] Ticks tokenised() const {
    Ticks sum = 0;
    for (const Tokenizer& tokenizer : tokenizers_) { sum += tokenizer.busy(); }
    return sum;
  }
  [[nodiscard]] std::int64_t outstanding(std::size_t i) const { return engines_[i]->outstanding() + expected_[i]; }

  // Requests of an engine that are not in its queue yet: they are tokenised, or wait for a place on a decode engine.
  void expect(std::size_t i, const Request& request) {
    ++expected_[i];
    expected_tokens_[i] += request.input;
  }
  void wait_for_place(std::size_t i) { ++without_place_[i]; }
  void end_wait_for_place(std::size_t i) { --without_place_[i]; }
  void arrive(std::size_t i, std::int64_t request, Ticks now, std::int64_t retrieved) {
    --expected_[i];
    expected_tokens_[i] -= load_.requests[static_cast<std::size_t>(request)].input;
    engines_[i]->arrive(request, now, retrieved);
  }

  // Requests that wait for a place, of which an engine holds no positions yet.
  void begin_asking(std::size_t i, const Request& request) { asked_tokens_[i] += request.input; }
  void end_asking(std::size_t i, const Request& request) { asked_tokens_[i] -= request.input; }
  [[nodiscard]] bool idle(std::size_t i) const { return outstanding(i) == 0 && engines_[i]->sending() == 0; }
  void switch_off_if_idle(std::size_t i, Ticks now) {
    if (idle(i)) { scaler_.emptied(i, now); }
  }

  void scale(Ticks now) {
    for (std::size_t i = 0; i < engines_.size(); ++i) {
      if (scaler_.is_off(i)) { engines_[i]->forget(); }
    }
    scaler_.step(now, {[&](std::size_t i) { return signal_of(i, now); }, [&](std::size_t i) { return idle(i); }});
  }

  // Of a request that comes now, in the queue of the engine where it is shortest; for a place on a decode engine.
  [[nodiscard]] Ticks predicted_wait(Ticks now) const {
    return least_of([&](const Engine& engine) { return engine.predicted_wait(now); });
  }
  [[nodiscard]] Ticks predicted_wait_for_place(Ticks now) const {
    return least_of([&](const Engine& engine) { return engine.predicted_wait_for_place(now); });
  }

  // `retrieved`: leading tokens of the prompt that come with the request.
  std::size_t choose(const Request& request, std::int64_t retrieved, Ticks now) {
    const std::vector<std::size_t>& active = scaler_.active();
    const std::size_t count = active.size();
    const bool has_session = options_.routing == Routing::session && request.session >= 0;
    if (count == 1) {
      if (has_session) { homes_[request.session] = active.front(); }
      return active.front();
    }
    if (options_.routing == Routing::round_robin) { return active[turn_++ % count]; }
    if (options_.routing == Routing::random) {
      return active[static_cast<std::size_t>(random_.below(static_cast<std::int64_t>(count)))];
    }
    look(now);
    if (has_session) {
      const auto home = homes_.find(request.session);
      if (home != homes_.end() && std::find(active.begin(), active.end(), home->second) != active.end()) {
        sent_[home->second] += cost_of(home->second, request, retrieved);
        return home->second;
      }
    }
    const std::size_t start = turn_++ % count;  // ties take turns
    std::size_t best = active[start];
    double least = load_of(best, request, retrieved);
    for (std::size_t k = 1; k < count; ++k) {
      const std::size_t i = active[(start + k) % count];
      const double load = load_of(i, request, retrieved);
      if (load < least) {
        least = load;
        best = i;
      }
    }
    sent_[best] += cost_of(best, request, retrieved);
    if (has_session) { homes_[request.session] = best; }
    return best;
  }

 private:
  template <class Wait>
  [[nodiscard]] Ticks least_of(Wait wait) const {
    Ticks least = kNever;
    for (const std::size_t i : scaler_.active()) { least = std::min(least, wait(*engines_[i])); }
    return least;
  }

  [[nodiscard]] double signal_of(std::size_t i, Ticks now) const {
    const std::int64_t elsewhere = without_place_[i];  // decode engines limit these
    switch (signal_) {
      case ScaleSignal::requests: return static_cast<double>(outstanding(i) - elsewhere);
      case ScaleSignal::queue: return static_cast<double>(engines_[i]->waiting() + expected_[i] - elsewhere);
      case ScaleSignal::kv:
        return static_cast<double>(engines_[i]->used_blocks_at(now)) / static_cast<double>(engines_[i]->blocks());
    }
    return 0.0;
  }

  // The router's view, not older than signal_age.
  void look(Ticks now) {
    if (looked_ >= 0 && options_.signal_age > 0 && now - looked_ < options_.signal_age) { return; }
    looked_ = now;
    for (std::size_t i = 0; i < engines_.size(); ++i) {
      const Engine& engine = *engines_[i];
      const auto held = static_cast<double>(engine.used_blocks() * block_tokens_ + asked_tokens_[i]);
      seen_[i] = by_requests()
                     ? static_cast<double>(outstanding(i))
                     : static_cast<double>(engine.waiting_tokens() + expected_tokens_[i]) + kHeldWeight * held;
      sent_[i] = 0.0;
    }
  }

  [[nodiscard]] bool by_requests() const {
    return options_.routing == Routing::least_outstanding || options_.routing == Routing::session;
  }

  // What a request adds to the load of an engine.
  [[nodiscard]] double cost_of(std::size_t i, const Request& request, std::int64_t retrieved) const {
    if (by_requests()) { return 1.0; }
    return options_.routing == Routing::prefix_aware ? left_of(i, request, retrieved)
                                                     : static_cast<double>(request.input);
  }

  [[nodiscard]] double left_of(std::size_t i, const Request& request, std::int64_t retrieved) const {
    const bool looks = caches_prefixes_ && request.blocks > 0;
    const auto hits = looks ? engines_[i]->prefixes().local_hits(load_.blocks_of(request)) : 0;
    const std::int64_t known = std::max(hits * load_.block_tokens, retrieved);
    return static_cast<double>(std::max<std::int64_t>(0, request.input - known));
  }

  [[nodiscard]] double load_of(std::size_t i, const Request& request, std::int64_t retrieved) const {
    const double known = seen_[i] + sent_[i];
    return options_.routing == Routing::prefix_aware ? known + left_of(i, request, retrieved) : known;
  }

  // A held position of the cache delays later requests less than a prompt token that waits: every iteration reads it,
  // and it is computed once.
  static constexpr double kHeldWeight = 0.1;

  const FleetOptions& options_;
  const Workload& load_;
  std::int64_t block_tokens_;
  std::int32_t first_;
  RandomStream random_;
  Autoscaler scaler_;
  std::vector<std::unique_ptr<Engine>> engines_;
  std::vector<double> seen_, sent_;
  std::unordered_map<std::int32_t, std::size_t> homes_;  // [session]: the engine of its last request
  Ticks prompt_host_ = 0;
  std::vector<Tokenizer> tokenizers_;                                     // [engine]
  std::vector<std::int64_t> expected_, expected_tokens_, without_place_;  // [engine]; without_place_: of expected_
  std::vector<std::int64_t> asked_tokens_;                                // [engine]
  ScaleSignal signal_ = ScaleSignal::requests;
  bool caches_prefixes_ = true;
  Ticks looked_ = -1;
  std::size_t turn_ = 0;
};

}  // namespace orrery::serving
