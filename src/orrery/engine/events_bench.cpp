// Events at random times (hold: handle one, register one), by distribution of the delays and number of pending events,
// with a 4-ary heap for comparison; and ranks in lockstep. Compare rates of one run only:
//   build/bench/benches/engine_bench --benchmark_enable_random_interleaving --benchmark_repetitions=9
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "orrery/engine/kernel.hpp"
#include "orrery/engine/rounds.hpp"

namespace orrery::engine {
namespace {

struct Event {  // of the size of the simulators' events
  std::uint32_t number = 0, ref = 0, extra = 0;
};

enum class Delays : std::uint8_t { exponential, uniform, bimodal, heavy_tailed };

// Delays with a mean of about 1e6, in a table so that they cost the same for everybody.
class DelayTable {
 public:
  explicit DelayTable(Delays delays) : table_(kSize) {
    for (Time& delay : table_) { delay = sample(delays); }
  }
  [[nodiscard]] Time next() { return table_[at_++ & (kSize - 1)]; }

 private:
  static constexpr std::size_t kSize = 1U << 16;

  [[nodiscard]] double uniform() {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return (static_cast<double>(state_ >> 11) + 0.5) * 0x1p-53;
  }
  [[nodiscard]] Time sample(Delays delays) {
    constexpr double kMean = 1e6;
    switch (delays) {
      case Delays::exponential: return static_cast<Time>(-kMean * std::log(uniform()));
      case Delays::uniform: return static_cast<Time>(2 * kMean * uniform());
      case Delays::bimodal: {  // nine of ten are short
        const bool is_short = uniform() < 0.9;
        return static_cast<Time>((is_short ? 2e3 : 2e7) * uniform());
      }
      case Delays::heavy_tailed: return static_cast<Time>(kMean / 3 * std::pow(uniform(), -1 / 1.5));
    }
    return 0;
  }

  std::uint64_t state_ = 12345;
  std::vector<Time> table_;
  std::size_t at_ = 0;
};

// The reference: (time, order of registration) in a 4-ary heap.
class Heap {
 public:
  [[nodiscard]] Time now() const { return now_; }
  void at(Time time, const Event& event) {
    std::size_t hole = items_.size();
    items_.push_back({time, made_++, event});
    const Item item = items_.back();
    while (hole > 0 && before(item, items_[(hole - 1) / 4])) {
      items_[hole] = items_[(hole - 1) / 4];
      hole = (hole - 1) / 4;
    }
    items_[hole] = item;
  }
  template <class Handler>
  void run(Handler&& handle) {
    while (!items_.empty()) {
      const Item first = items_.front();
      const Item last = items_.back();
      items_.pop_back();
      if (!items_.empty()) { sift_down(last); }
      now_ = first.time;
      handle(first.event);
    }
  }

 private:
  struct Item {
    Time time;
    std::uint32_t order;
    Event event;
  };
  [[nodiscard]] static bool before(const Item& a, const Item& b) {
    return a.time != b.time ? a.time < b.time : a.order < b.order;
  }
  void sift_down(const Item& item) {
    std::size_t hole = 0;
    while (true) {
      const std::size_t first = 4 * hole + 1, end = std::min(first + 4, items_.size());
      if (first >= end) { break; }
      std::size_t least = first;
      for (std::size_t i = first + 1; i < end; ++i) {
        if (before(items_[i], items_[least])) { least = i; }
      }
      if (!before(items_[least], item)) { break; }
      items_[hole] = items_[least];
      hole = least;
    }
    items_[hole] = item;
  }

  Time now_ = 0;
  std::uint32_t made_ = 0;
  std::vector<Item> items_;
};

template <class Queue, class Handler>
void run(Queue& queue, Handler&& handle) {
  if constexpr (requires { queue.run(handle, [] {}); }) {
    queue.run(handle, [] {});
  } else {
    queue.run(handle);
  }
}

// Until `events` have been handled, each of which registers one more; then until none are left.
template <class Queue>
std::uint64_t hold(Queue& queue, DelayTable& delays, std::uint32_t pending, std::uint64_t events) {
  std::uint64_t left = events, sum = 0;
  for (std::uint32_t i = 0; i < pending; ++i) { queue.at(queue.now() + delays.next(), {i, 0, 0}); }
  run(queue, [&](const Event& event) {
    sum += event.number;
    if (left == 0) { return; }
    --left;
    queue.at(queue.now() + delays.next(), event);
  });
  return sum;
}

template <class Queue>
void random_times(benchmark::State& state, Queue& queue) {
  DelayTable delays(static_cast<Delays>(state.range(0)));
  const auto pending = static_cast<std::uint32_t>(state.range(1));
  const std::uint64_t events = std::clamp<std::uint64_t>(20 * std::uint64_t{pending}, 100'000, 3'000'000);
  for (auto _ : state) { benchmark::DoNotOptimize(hold(queue, delays, pending, events)); }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(events + pending));
}

void kernel_at_random_times(benchmark::State& state) {
  Kernel<Event> kernel(0);
  random_times(state, kernel);
}
void rounds_at_random_times(benchmark::State& state) {
  Rounds<Event> rounds;
  random_times(state, rounds);
}
void heap_at_random_times(benchmark::State& state) {
  Heap heap;
  random_times(state, heap);
}

// `ranks` that all have one event at each multiple of 1,000; a lane each.
void kernel_in_lockstep(benchmark::State& state) {
  const auto ranks = static_cast<std::uint32_t>(state.range(0));
  constexpr std::uint32_t kSteps = 50;
  for (auto _ : state) {
    Kernel<Event> kernel(ranks);
    for (std::uint32_t i = 0; i < ranks; ++i) { kernel.after(i, 1000, {i, 0, 0}); }
    kernel.run([&](const Event& event) {
      if (event.ref < kSteps) { kernel.after(event.number, 1000, {event.number, event.ref + 1, 0}); }
    });
    benchmark::DoNotOptimize(kernel.events());
  }
  state.SetItemsProcessed(state.iterations() * ranks * (kSteps + 1));
}
void rounds_in_lockstep(benchmark::State& state) {
  const auto ranks = static_cast<std::uint32_t>(state.range(0));
  constexpr std::uint32_t kSteps = 50;
  for (auto _ : state) {
    Rounds<Event> rounds;
    for (std::uint32_t i = 0; i < ranks; ++i) { rounds.at(1'000'000, {i, 0, 0}); }
    rounds.run(
        [&](const Event& event) {
          if (event.ref < kSteps) { rounds.at(rounds.now() + 1'000'000, {event.number, event.ref + 1, 0}); }
        },
        [] {});
    benchmark::DoNotOptimize(rounds.events());
  }
  state.SetItemsProcessed(state.iterations() * ranks * (kSteps + 1));
}

void every_count(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"delays", "pending"})->UseRealTime()->Unit(benchmark::kMillisecond);
  for (int delays = 0; delays < 4; ++delays) {
    for (const int pending : {10, 100, 1'000, 10'000, 100'000, 1'000'000}) { benchmark->Args({delays, pending}); }
  }
}

BENCHMARK(kernel_at_random_times)->Apply(every_count);
BENCHMARK(rounds_at_random_times)->Apply(every_count);
BENCHMARK(heap_at_random_times)->Apply(every_count);
// Counted in instructions.
BENCHMARK(kernel_at_random_times)->Args({0, 1'000})->Args({0, 20'000});
BENCHMARK(rounds_at_random_times)->Args({0, 1'000})->Args({0, 20'000});
BENCHMARK(kernel_in_lockstep)->Arg(8)->Arg(64)->Arg(512)->Arg(16'384);
BENCHMARK(rounds_in_lockstep)->Arg(8)->Arg(64)->Arg(512)->Arg(16'384);

}  // namespace
}  // namespace orrery::engine
