#include "orrery/serving/fleet.hpp"

#include <algorithm>
#include <queue>
#include <utility>

#include <fmt/format.h>

#include "orrery/core/random.hpp"

namespace orrery::serving {

namespace {

// The engines of one pool, and the router in front of them.
class Front {
 public:
  Front(const Pool& pool, const FleetOptions& options, const Workload& load, std::vector<Outcome>& outcomes,
        std::int32_t first)
      : options_(options),
        load_(load),
        block_tokens_(pool.settings->block_tokens),
        first_(first),
        random_(options.seed + 77),
        scaler_(pool.autoscale, static_cast<std::size_t>(pool.replicas)) {
    for (std::int64_t i = 0; i < pool.replicas; ++i) {
      engines_.push_back(std::make_unique<Engine>(*pool.settings, pool.shape, *pool.price, load, outcomes));
    }
    seen_.resize(engines_.size());
    tokenised_.resize(engines_.size(), 0);
    tokenising_.resize(engines_.size(), 0);
    prompt_host_ = pool.shape.prompt_host;
    sent_.resize(engines_.size());
  }

  [[nodiscard]] std::size_t size() const { return engines_.size(); }
  [[nodiscard]] Engine& engine(std::size_t i) { return *engines_[i]; }
  [[nodiscard]] std::int32_t first() const { return first_; }
  [[nodiscard]] std::int64_t block_tokens() const { return block_tokens_; }
  [[nodiscard]] Autoscaler& scaler() { return scaler_; }

  // When the tokens of a prompt that comes now are ready for the engine: prompts are tokenised one after the other.
  Ticks begin_tokenising(std::size_t i, const Request& request, Ticks now) {
    if (prompt_host_ == 0) { return now; }
    ++tokenising_[i];
    tokenised_[i] = std::max(now, tokenised_[i]) + request.input * prompt_host_;
    return tokenised_[i];
  }
  void end_tokenising(std::size_t i) { --tokenising_[i]; }
  [[nodiscard]] std::int64_t outstanding(std::size_t i) const { return engines_[i]->outstanding() + tokenising_[i]; }

  void scale(Ticks now) {
    scaler_.step(now, [this](std::size_t i) { return outstanding(i); });
  }

  std::size_t choose(const Request& request, Ticks now) {
    const std::vector<std::size_t>& active = scaler_.active();
    const std::size_t count = active.size();
    if (count == 1) { return active.front(); }
    if (options_.routing == Routing::round_robin) { return active[turn_++ % count]; }
    if (options_.routing == Routing::random) {
      return active[static_cast<std::size_t>(random_.below(static_cast<std::int64_t>(count)))];
    }
    if (options_.routing == Routing::session && request.session >= 0) {
      return active[static_cast<std::size_t>(request.session) % count];
    }
    look(now);
    const std::size_t start = turn_++ % count;  // ties take turns
    std::size_t best = active[start];
    double least = load_of(best, request);
    for (std::size_t k = 1; k < count; ++k) {
      const std::size_t i = active[(start + k) % count];
      const double load = load_of(i, request);
      if (load < least) {
        least = load;
        best = i;
      }
    }
    sent_[best] += cost_of(best, request);
    return best;
  }

 private:
  // The router's view, not older than signal_age.
  void look(Ticks now) {
    if (looked_ >= 0 && options_.signal_age > 0 && now - looked_ < options_.signal_age) { return; }
    looked_ = now;
    for (std::size_t i = 0; i < engines_.size(); ++i) {
      const Engine& engine = *engines_[i];
      const double held = static_cast<double>(engine.used_blocks() * block_tokens_);
      seen_[i] = by_requests() ? static_cast<double>(outstanding(i))
                               : static_cast<double>(engine.waiting_tokens()) + kHeldWeight * held;
      sent_[i] = 0.0;
    }
  }

  [[nodiscard]] bool by_requests() const {
    return options_.routing == Routing::least_outstanding || options_.routing == Routing::session;
  }

  // What a request adds to the load of an engine.
  [[nodiscard]] double cost_of(std::size_t i, const Request& request) const {
    if (by_requests()) { return 1.0; }
    return options_.routing == Routing::prefix_aware ? left_of(i, request) : static_cast<double>(request.input);
  }

  [[nodiscard]] double left_of(std::size_t i, const Request& request) const {
    const auto hits = request.blocks > 0 ? engines_[i]->prefixes().hits(load_.blocks_of(request)) : 0;
    return static_cast<double>(std::max<std::int64_t>(0, request.input - hits * load_.block_tokens));
  }

  [[nodiscard]] double load_of(std::size_t i, const Request& request) const {
    const double known = seen_[i] + sent_[i];
    return options_.routing == Routing::prefix_aware ? known + left_of(i, request) : known;
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
  Ticks prompt_host_ = 0;
  std::vector<Ticks> tokenised_;          // [engine]: when the last prompt is
  std::vector<std::int64_t> tokenising_;  // [engine]: prompts before its queue
  Ticks looked_ = -1;
  std::size_t turn_ = 0;
};

struct Due {
  Ticks at;
  std::int64_t what;
  friend bool operator>(const Due& a, const Due& b) { return a.at != b.at ? a.at > b.at : a.what > b.what; }
};
using Dues = std::priority_queue<Due, std::vector<Due>, std::greater<>>;

class FleetSimulation {
 public:
  FleetSimulation(Workload& load, const std::vector<Pool>& pools, const FleetOptions& options)
      : load_(load), options_(options), stations_(options.stations, load.requests.size()) {
    run_.outcomes.resize(load.requests.size());
    std::int32_t first = 0;
    for (const Pool& pool : pools) {
      fronts_.emplace_back(pool, options, load, run_.outcomes, first);
      first += static_cast<std::int32_t>(pool.replicas);
    }
    scheduled_.assign(static_cast<std::size_t>(first), kNever);
    sending_.assign(fronts_.front().size(), 0);
    for (const Following& following : load.following) { waits_for_.push_back(following.waits_for); }
  }

  Result<FleetRun> run() {
    for (std::size_t i = 0; i < load_.requests.size(); ++i) {
      for (Front& front : fronts_) {
        if (!front.engine(0).can_hold(load_.requests[i])) {
          const Request& r = load_.requests[i];
          return fail(fmt::format("request {} has {} + {} tokens: the cache of an engine holds {}", i + 1, r.input,
                                  r.output, front.engine(0).blocks() * front.block_tokens()));
        }
      }
    }
    start_clients();
    for (Front& front : fronts_) { front.scaler().begin(next_arrival()); }
    for (;;) {
      const Ticks arrival = next_arrival();
      const Ticks transfer = transfers_.empty() ? kNever : transfers_.top().at;
      const Ticks engine = engines_.empty() ? kNever : engines_.top().at;
      const Ticks station = stations_.next();
      const Ticks prompt = prompts_.empty() ? kNever : prompts_.top().at;
      const Ticks answer = answers_.empty() ? kNever : answers_.top().at;
      const Ticks now = std::min({arrival, station, prompt, transfer, engine, answer});
      if (now == kNever || run_.stopped) { break; }
      if (scale(now)) { continue; }
      if (now > static_cast<Ticks>(kLongestSeconds * kTicksPerSecond)) {
        return fail(
            fmt::format("the simulated time exceeds {:.0f} s; give fewer requests or a higher rate", kLongestSeconds));
      }
      if (arrival == now) {
        take_arrivals(now);
      } else if (station == now) {
        take_stations(now);
      } else if (prompt == now) {
        take_prompts(now);
      } else if (transfer == now) {
        take_transfers(now);
      } else if (answer == now) {
        end(answers_.top().what, now);
        answers_.pop();
      } else if (!advance_engine()) {
        return fail("interrupted");
      }
    }
    for (Front& front : fronts_) {
      for (std::size_t i = 0; i < front.size(); ++i) { run_.engines.push_back(front.engine(i).totals()); }
      run_.autoscaled.push_back(front.scaler().totals(run_.end));
    }
    run_.stations = stations_.totals();
    ORRERY_ASSERT(in_system_ == 0 || run_.stopped);
    return std::move(run_);
  }

 private:
  // Decisions of autoscalers up to `now`, before its events: true if there was one.
  bool scale(Ticks now) {
    bool any = false;
    for (Front& front : fronts_) {
      const Ticks at = front.scaler().next();
      if (at > now) { continue; }
      front.scale(at);
      any = true;
    }
    return any;
  }

  void start_clients() {
    for (std::int64_t client = 0; client < load_.clients && has_next(); ++client) { timed_.push({0, take_next()}); }
  }

  [[nodiscard]] bool has_next() const { return next_ < std::ssize(load_.requests); }

  // The next request that follows no other one.
  std::int64_t take_next() {
    const std::int64_t request = next_++;
    while (!waits_for_.empty() && has_next() && waits_for_[static_cast<std::size_t>(next_)] > 0) { ++next_; }
    return request;
  }

  // Of the requests whose arrival is given.
  [[nodiscard]] Ticks next_listed() const {
    return load_.clients == 0 && has_next() ? load_.requests[static_cast<std::size_t>(next_)].arrival : kNever;
  }
  [[nodiscard]] Ticks next_arrival() const {
    return timed_.empty() ? next_listed() : std::min(next_listed(), timed_.top().at);
  }

  void count(std::int64_t change, Ticks now) {
    run_.system_integral += static_cast<double>(in_system_) * seconds_of(now - counted_);
    counted_ = now;
    in_system_ += change;
    run_.most_in_system = std::max(run_.most_in_system, in_system_);
  }

  void take_arrivals(Ticks now) {
    woken_.clear();
    while (next_arrival() == now) {
      std::int64_t request = 0;
      if (next_listed() == now) {
        request = take_next();
      } else {
        request = timed_.top().what;
        timed_.pop();
        load_.requests[static_cast<std::size_t>(request)].arrival = now;
      }
      if (options_.admission_limit > 0 && in_system_ >= options_.admission_limit) {
        refuse(request, now);
        continue;
      }
      count(1, now);
      if (stations_.empty()) {
        send_new(request, now);
      } else {
        stations_.arrive(request, now);
      }
    }
    if (!stations_.empty()) { stations_.start(now); }
    wake(fronts_.front(), now);
  }

  // A refused turn ends its session: the turns that follow it are refused as well.
  void refuse(std::int64_t request, Ticks now) {
    std::vector<std::int64_t> refused = {request};
    while (!refused.empty()) {
      const std::int64_t r = refused.back();
      refused.pop_back();
      load_.requests[static_cast<std::size_t>(r)].arrival = now;
      run_.outcomes[static_cast<std::size_t>(r)].refused = true;
      ++run_.refused;
      for (const std::uint32_t follower : load_.followers_of(r)) {
        if (!run_.outcomes[follower].refused) { refused.push_back(follower); }
      }
    }
  }

  void take_stations(Ticks now) {
    for (const std::int64_t request : stations_.advance(now)) { send_new(request, now); }
    wake(fronts_.front(), now);
  }

  void send_new(std::int64_t request, Ticks now) {
    Outcome& outcome = run_.outcomes[static_cast<std::size_t>(request)];
    Front& front = fronts_.front();
    const Request& r = load_.requests[static_cast<std::size_t>(request)];
    const std::size_t i = front.choose(r, now);
    outcome.engine = front.first() + static_cast<std::int32_t>(i);
    outcome.ready = front.begin_tokenising(i, r, now);
    if (outcome.ready > now) {
      prompts_.push({outcome.ready, request});
    } else {
      front.engine(i).arrive(request, now);
      woken_.push_back(i);
    }
  }

  // Prompts whose tokens are ready.
  void take_prompts(Ticks now) {
    Front& front = fronts_.front();
    while (!prompts_.empty() && prompts_.top().at == now) {
      const std::int64_t request = prompts_.top().what;
      prompts_.pop();
      const std::int32_t number = run_.outcomes[static_cast<std::size_t>(request)].engine - front.first();
      const auto i = static_cast<std::size_t>(number);
      front.end_tokenising(i);
      front.engine(i).arrive(request, now);
      woken_.push_back(i);
    }
    wake(front, now);
  }

  void send_prefilled(std::int64_t request, Ticks now) {
    Front& front = fronts_.back();
    const std::size_t i = front.choose(load_.requests[static_cast<std::size_t>(request)], now);
    run_.outcomes[static_cast<std::size_t>(request)].engine = front.first() + static_cast<std::int32_t>(i);
    front.engine(i).arrive(request, now, true);
    woken_.push_back(i);
  }

  void wake(Front& front, Ticks now) {
    std::sort(woken_.begin(), woken_.end());
    woken_.erase(std::unique(woken_.begin(), woken_.end()), woken_.end());
    for (const std::size_t i : woken_) {
      front.engine(i).wake(now);
      schedule(front, i);
    }
    woken_.clear();
  }

  // Queues the engine's next event, unless it is queued already.
  void schedule(Front& front, std::size_t i) {
    const auto number = static_cast<std::size_t>(front.first()) + i;
    const Ticks at = front.engine(i).next();
    if (at == scheduled_[number]) { return; }
    scheduled_[number] = at;
    if (at < kNever) { engines_.push({at, static_cast<std::int64_t>(number)}); }
  }

  bool advance_engine() {
    const Due due = engines_.top();
    engines_.pop();
    const auto number = static_cast<std::size_t>(due.what);
    if (scheduled_[number] != due.at) { return true; }  // an arrival has shortened it
    scheduled_[number] = kNever;
    const bool is_last = number >= static_cast<std::size_t>(fronts_.back().first());
    Front& front = is_last ? fronts_.back() : fronts_.front();
    const std::size_t i = number - static_cast<std::size_t>(front.first());
    Engine& engine = front.engine(i);
    engine.advance();
    for (const std::int64_t request : engine.ended()) {
      const Ticks last = run_.outcomes[static_cast<std::size_t>(request)].last;
      if (is_last && last > due.at) {
        answers_.push({last, request});
      } else if (is_last) {
        end(request, due.at);
      } else {
        hand_over(i, request, due.at);
      }
    }
    if (front.outstanding(i) == 0) { front.scaler().emptied(i, due.at); }
    schedule(front, i);
    constexpr std::int64_t kOften = 1 << 16;
    return ++events_ % kOften != 0 || !options_.keep_going || options_.keep_going(ended_);
  }

  // Requests that follow arrive a tick later than they could: iterations that start now, on any engine, do not see
  // them.
  void end(std::int64_t request, Ticks now) {
    run_.end = now;
    ++ended_;
    count(-1, now);
    if (options_.stops_after && options_.stops_after(request, run_.outcomes[static_cast<std::size_t>(request)])) {
      run_.stopped = true;
    }
    const auto followers = load_.followers_of(request);
    for (const std::uint32_t follower : followers) {
      if (--waits_for_[follower] == 0 && !run_.outcomes[follower].refused) {
        timed_.push({now + load_.following[follower].gap + 1, follower});
      }
    }
    if (load_.clients > 0 && followers.empty() && has_next()) { timed_.push({now + load_.think + 1, take_next()}); }
  }

  // One transfer of an engine at a time, in the order of their prompts' ends.
  void hand_over(std::size_t engine, std::int64_t request, Ticks now) {
    const Request& r = load_.requests[static_cast<std::size_t>(request)];
    const Outcome& outcome = run_.outcomes[static_cast<std::size_t>(request)];
    if (r.output == 1) {
      end(request, now);
      return;
    }
    const TransferPolicy& transfer = options_.transfer;
    const Ticks whole = r.input * transfer.token;
    Ticks exposed = whole;
    if (transfer.layers > 0) {  // the layers before the last are sent under the prompt
      exposed = std::max(whole / transfer.layers, whole - (now - outcome.scheduled));
    }
    sending_[engine] = std::max(now, sending_[engine]) + exposed;
    const Ticks at = sending_[engine] + transfer.latency;  // handshakes of requests overlap
    run_.transfer_s += seconds_of(at - now);
    transfers_.push({at, request});
  }

  void take_transfers(Ticks now) {
    while (!transfers_.empty() && transfers_.top().at == now) {
      const std::int64_t request = transfers_.top().what;
      transfers_.pop();
      send_prefilled(request, now);
    }
    wake(fronts_.back(), now);
  }

  Workload& load_;
  const FleetOptions& options_;
  FleetRun run_;
  std::vector<Front> fronts_;
  Stations stations_;
  Dues timed_, prompts_, transfers_, engines_;
  Dues answers_;  // requests whose last token is on its way
  std::vector<Ticks> scheduled_, sending_;
  std::vector<std::size_t> woken_;
  std::vector<std::int32_t> waits_for_;  // [request], if some follow others
  std::int64_t next_ = 0, in_system_ = 0, ended_ = 0, events_ = 0;
  Ticks counted_ = 0;
};

}  // namespace

Result<FleetRun> run_fleet(Workload& load, const std::vector<Pool>& pools, const FleetOptions& options) {
  ORRERY_ASSERT(pools.size() == 1 || pools.size() == 2);
  ORRERY_ASSERT(options.admission_limit == 0 || load.clients == 0);  // a client would send at once again
  return FleetSimulation(load, pools, options).run();
}

}  // namespace orrery::serving
