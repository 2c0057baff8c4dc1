#include "orrery/serving/fleet.hpp"

#include <algorithm>
#include <optional>
#include <queue>
#include <utility>

#include <fmt/format.h>

#include "orrery/core/integers.hpp"
#include "orrery/serving/front.hpp"
#include "orrery/serving/transfers.hpp"

namespace orrery::serving {

namespace {

struct Due {
  Ticks at;
  std::int64_t what;
  friend bool operator>(const Due& a, const Due& b) { return a.at != b.at ? a.at > b.at : a.what > b.what; }
};
using Dues = std::priority_queue<Due, std::vector<Due>, std::greater<>>;

class FleetSimulation {
 public:
  FleetSimulation(Workload& load, const std::vector<Pool>& pools, const FleetOptions& options)
      : load_(load),
        options_(options),
        admission_(options.admission),
        stations_(options.stations, load, options.seed),
        transfers_(options.transfer, static_cast<std::size_t>(pools.front().replicas),
                   static_cast<std::size_t>(pools.back().replicas)) {
    arriving_ = load.arriving();
    run_.outcomes.resize(load.requests.size());
    std::int32_t first = 0;
    const std::int64_t store_blocks = load.block_tokens > 0 ? options.store_tokens / load.block_tokens : 0;
    if (store_blocks > 0) {
      store_.emplace(load.number_of_ids(), store_blocks, load.block_tokens * options.store_token);
    }
    for (const Pool& pool : pools) {
      fronts_.emplace_back(pool, options, load, run_.outcomes, first, store_ ? &*store_ : nullptr);
      first += static_cast<std::int32_t>(pool.replicas);
    }
    scheduled_.assign(static_cast<std::size_t>(first), kNever);
    for (const Following& following : load.following) { waits_for_.push_back(following.waits_for); }
    if (pools.size() > 1) { decode_of_.resize(load.requests.size()); }
  }

  Result<FleetRun> run() {
    std::vector<std::int64_t> largest(fronts_.size(), 0);  // blocks of a request
    for (std::size_t i = 0; i < load_.requests.size(); ++i) {
      for (std::size_t f = 0; f < fronts_.size(); ++f) {
        Front& front = fronts_[f];
        if (fronts_.size() > 1 && &front == &fronts_.back() && load_.requests[i].output == 1) { continue; }
        largest[f] = std::max(largest[f], front.engine(0).needed_blocks(load_.requests[i]));
        if (largest[f] > front.engine(0).rank_blocks()) {
          const Request& r = load_.requests[i];
          const std::int64_t number = load_.request_of(static_cast<std::int64_t>(i)) + 1;
          return fail(load_.place,
                      fmt::format("request {} has {} + {} tokens: the cache of {} holds {}", number, r.input, r.output,
                                  front.engine(0).ranks() > 1 ? "a rank" : "an engine", front.engine(0).rank_tokens()));
        }
      }
    }
    start_clients();
    for (Front& front : fronts_) { front.scaler().begin(next_arrival()); }
    for (;;) {
      const Ticks arrival = next_arrival();
      const Ticks transfer = transfers_.next();
      const Ticks engine = engines_.empty() ? kNever : engines_.top().at;
      const Ticks station = stations_.next();
      const Ticks prompt = prompts_.empty() ? kNever : prompts_.top().at;
      const Ticks answer = answers_.empty() ? kNever : answers_.top().at;
      // Not a list, which goes through memory: this line runs for every event.
      const Ticks now =  // NOLINTNEXTLINE(modernize-min-max-use-initializer-list)
          std::min(std::min(std::min(arrival, station), std::min(prompt, transfer)), std::min(engine, answer));
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
        take_answers(now);
      } else if (!advance_engine()) {
        return fail("interrupted");
      }
    }
    for (std::size_t f = 0; f < fronts_.size(); ++f) {
      Front& front = fronts_[f];
      for (std::size_t i = 0; i < front.size(); ++i) {
        const Engine& engine = front.engine(i);
        ORRERY_ASSERT(run_.stopped || (engine.outstanding() == 0 && engine.used_blocks() == 0));
        run_.engines.push_back(front.engine(i).totals());
        run_.engines.back().headroom.largest_request = largest[f];
      }
      run_.autoscaled.push_back(front.scaler().totals(run_.end));
      run_.tokenised_s.push_back(seconds_of(front.tokenised()));
    }
    run_.transferred_s = seconds_of(transfers_.busy());
    run_.stations = stations_.totals();
    if (store_) {
      run_.store_peak = real(store_->peak()) / real(store_->capacity());
      run_.store_busy_s = seconds_of(store_->busy());
    }
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

  [[nodiscard]] bool has_next() const { return next_ < arriving_; }

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
      if (!admission_.takes(now, in_system_, [&] { return predicted_wait(now); })) {
        refuse(request, now);
        continue;
      }
      count(1, now);
      if (stations_.has(StagePlace::before_prefill)) {
        stations_.arrive(StagePlace::before_prefill, request, now);
      } else {
        send_new(request, now);
      }
    }
    stations_.start(now);
    wake(now);
  }

  // With two pools also for a place, which a request asks for before its prompt or after it.
  [[nodiscard]] Ticks predicted_wait(Ticks now) const {
    const Ticks prompts = fronts_.front().predicted_wait(now);
    return fronts_.size() > 1 ? saturated_sum(prompts, fronts_.back().predicted_wait_for_place(now)) : prompts;
  }

  // A refused turn ends its session: the turns that follow it are refused as well.
  void refuse(std::int64_t request, Ticks now) {
    run_.end = std::max(run_.end, now);
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
    for (const auto& [request, place] : stations_.advance(now)) {
      switch (place) {
        case StagePlace::before_prefill: send_new(request, now); break;
        case StagePlace::after_answer: end(request, now); break;
        case StagePlace::between_turns: release_followers(request, now); break;
      }
    }
    stations_.start(now);
    wake(now);
  }

  // Stages that follow answers, after all answers of an event: those that take no time end here.
  void settle(Ticks now) {
    if (stations_.empty()) { return; }
    stations_.start(now);
    while (stations_.next() == now) { take_stations(now); }
  }

  // The client has the last token; stages may follow.
  void answer(std::int64_t request, Ticks now) {
    if (stations_.has(StagePlace::after_answer)) {
      stations_.arrive(StagePlace::after_answer, request, now);
    } else {
      end(request, now);
    }
  }

  void take_answers(Ticks now) {
    while (!answers_.empty() && answers_.top().at == now) {
      const std::int64_t request = answers_.top().what;
      answers_.pop();
      answer(request, now);
    }
    settle(now);
  }

  void send_new(std::int64_t request, Ticks now) {
    Outcome& outcome = run_.outcomes[static_cast<std::size_t>(request)];
    Front& front = fronts_.front();
    const Request& r = load_.requests[static_cast<std::size_t>(request)];
    const std::size_t i = front.choose(r, stations_.retrieved(request), now);
    outcome.engine = front.first() + static_cast<std::int32_t>(i);
    outcome.ready = front.tokenise(i, r, now);
    front.expect(i, r);
    if (outcome.ready > now) {
      prompts_.push({outcome.ready, request});
    } else {
      enter(request, now);
    }
  }

  // Prompts whose tokens are ready.
  void take_prompts(Ticks now) {
    while (!prompts_.empty() && prompts_.top().at == now) {
      const std::int64_t request = prompts_.top().what;
      prompts_.pop();
      enter(request, now);
    }
    wake(now);
  }

  // Whether a request gets a place on a decode engine before its prompt begins.
  [[nodiscard]] bool pushes() const { return fronts_.size() > 1 && options_.transfer.layers > 0; }

  void enter(std::int64_t request, Ticks now) {
    if (pushes() && load_.requests[static_cast<std::size_t>(request)].output > 1) {
      fronts_.front().wait_for_place(static_cast<std::size_t>(run_.outcomes[static_cast<std::size_t>(request)].engine));
      ask_for_place(request, now);
    } else {
      begin_prompt(request, now);
    }
  }

  void begin_prompt(std::int64_t request, Ticks now) {
    const auto i = static_cast<std::size_t>(run_.outcomes[static_cast<std::size_t>(request)].engine);
    fronts_.front().arrive(i, request, now, stations_.retrieved(request));
    woken_.push_back(i);
  }

  void ask_for_place(std::int64_t request, Ticks now) {
    const Request& r = load_.requests[static_cast<std::size_t>(request)];
    Front& decode = fronts_.back();
    const std::size_t i = decode.choose(r, 0, now);
    decode_of_[static_cast<std::size_t>(request)] = {static_cast<std::int32_t>(i), 0};
    run_.outcomes[static_cast<std::size_t>(request)].asked = now;
    decode.begin_asking(i, r);
    decode.engine(i).arrive_for_place(request, now);
    woken_decode_.push_back(i);
  }

  // Requests that have a place on a decode engine now: the prompt begins, or keys and values are sent.
  void take_placed(std::size_t engine, Ticks now) {
    for (const auto& [request, cached] : fronts_.back().engine(engine).take_placed()) {
      decode_of_[static_cast<std::size_t>(request)].cached = cached;
      run_.outcomes[static_cast<std::size_t>(request)].placed = now;
      fronts_.back().end_asking(engine, load_.requests[static_cast<std::size_t>(request)]);
      if (pushes()) {
        fronts_.front().end_wait_for_place(
            static_cast<std::size_t>(run_.outcomes[static_cast<std::size_t>(request)].engine));
        begin_prompt(request, now);
      } else {
        send(request, now);
      }
    }
  }

  // Engines to which something has come. Places on decode engines come before prompts, which may need them.
  void wake(Ticks now) {
    if (!woken_decode_.empty()) { wake(fronts_.back(), woken_decode_, now); }
    wake(fronts_.front(), woken_, now);
  }

  void wake(Front& front, std::vector<std::size_t>& woken, Ticks now) {
    if (woken.size() > 1) {
      std::sort(woken.begin(), woken.end());
      woken.erase(std::unique(woken.begin(), woken.end()), woken.end());
    }
    for (const std::size_t i : woken) {
      front.engine(i).wake(now);
      if (&woken == &woken_decode_) { take_placed(i, now); }
      schedule(front, i);
    }
    woken.clear();
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
      const Ticks last = end_of(run_.outcomes, request).last;
      if (is_last && last > due.at) {
        answers_.push({last, request});
      } else if (is_last) {
        answer(request, due.at);
      } else {
        hand_over(request, due.at);
      }
    }
    settle(due.at);
    if (fronts_.size() > 1) {
      if (is_last) { take_placed(i, due.at); }
      wake(due.at);
    }
    front.switch_off_if_idle(i, due.at);
    schedule(front, i);
    constexpr std::int64_t kOften = 1 << 16;
    return ++events_ % kOften != 0 || !options_.keep_going || options_.keep_going(ended_);
  }

  // The client has its answer.
  void end(std::int64_t request, Ticks now) {
    Outcome& outcome = run_.outcomes[static_cast<std::size_t>(request)];
    outcome.answered = std::max(end_of(run_.outcomes, request).last, now);
    run_.end = now;
    ++ended_;
    count(-1, now);
    if (options_.stops_after && options_.stops_after(request, run_.outcomes[static_cast<std::size_t>(request)])) {
      run_.stopped = true;
    }
    const auto followers = load_.followers_of(request);
    if (!followers.empty() && stations_.has(StagePlace::between_turns)) {
      stations_.arrive(StagePlace::between_turns, request, now);
    } else {
      release_followers(request, now);
    }
    if (load_.clients > 0 && followers.empty() && has_next()) {
      timed_.push({saturated_sum(now, load_.think + options_.reply + 1), take_next()});
    }
  }

  // Requests that follow arrive a tick later than they could: iterations that start now, on any engine, do not see
  // them.
  void release_followers(std::int64_t request, Ticks now) {
    for (const std::uint32_t follower : load_.followers_of(request)) {
      if (--waits_for_[follower] == 0 && !run_.outcomes[follower].refused) {
        timed_.push({saturated_sum(now, load_.following[follower].gap + options_.reply + 1), follower});
      }
    }
  }

  // The prompt is computed, and its first token generated.
  void hand_over(std::int64_t request, Ticks now) {
    const Request& r = load_.requests[static_cast<std::size_t>(request)];
    Outcome& outcome = run_.outcomes[static_cast<std::size_t>(request)];
    if (r.output == 1) {
      answer(request, now);
      return;
    }
    outcome.prefilled_by = outcome.engine;
    outcome.prefilled = now;
    if (pushes()) {
      send(request, now);
    } else {
      ask_for_place(request, now);
    }
  }

  void send(std::int64_t request, Ticks now) {
    const auto i = static_cast<std::size_t>(request);
    const Outcome& outcome = run_.outcomes[i];
    const auto from = static_cast<std::size_t>(outcome.prefilled_by),
               to = static_cast<std::size_t>(decode_of_[i].engine);
    const std::int64_t positions = load_.requests[i].input - decode_of_[i].cached;
    transfers_.begin(request, positions, from, to, outcome.scheduled, now);
  }

  void take_transfers(Ticks now) {
    Front &prefill = fronts_.front(), &decode = fronts_.back();
    taken_.clear();
    while (transfers_.next() == now) { taken_.push_back(transfers_.take()); }
    for (const Transfer& transfer : taken_) {
      prefill.engine(transfer.from).sent(transfer.request, now);
      woken_.push_back(transfer.from);
    }
    wake(prefill, woken_, now);
    for (const Transfer& transfer : taken_) {
      const auto i = static_cast<std::size_t>(transfer.request);
      prefill.switch_off_if_idle(transfer.from, now);
      run_.outcomes[i].engine = decode.first() + static_cast<std::int32_t>(transfer.to);
      decode.engine(transfer.to).receive(transfer.request);
      woken_decode_.push_back(transfer.to);
    }
    wake(now);
  }

  Workload& load_;
  const FleetOptions& options_;
  FleetRun run_;
  Admission admission_;
  std::optional<RemoteStore> store_;  // before the engines that refer to it
  std::vector<Front> fronts_;
  Stations stations_;
  Transfers transfers_;
  Dues timed_, prompts_, engines_;
  Dues answers_;  // requests whose last token is on its way
  std::vector<Ticks> scheduled_;
  std::vector<Transfer> taken_;                    // that end now
  std::vector<std::size_t> woken_, woken_decode_;  // woken_: of the first pool
  struct DecodePlace {
    std::int32_t engine = 0;
    std::int64_t cached = 0;  // positions that it has already
  };
  std::vector<DecodePlace> decode_of_;   // [request], of two pools
  std::vector<std::int32_t> waits_for_;  // [request], if some follow others
  std::int64_t arriving_ = 0;            // requests, without further branches
  std::int64_t next_ = 0, in_system_ = 0, ended_ = 0, events_ = 0;
  Ticks counted_ = 0;
};

}  // namespace

Result<FleetRun> run_fleet(Workload& load, const std::vector<Pool>& pools, const FleetOptions& options) {
  ORRERY_ASSERT(pools.size() == 1 || pools.size() == 2);
  ORRERY_ASSERT(!options.admission.refuses() || load.clients == 0);  // a client would send at once again
  return FleetSimulation(load, pools, options).run();
}

}  // namespace orrery::serving
