// MAD-Max's schedule of one iteration (arXiv 2310.02784): every device has two streams, compute and communication, each
// strictly in order. What is issued starts when its stream is free and what it waits for in the other stream has ended.
// Backward starts when both streams of forward are done; the iteration ends when both streams do.
//
// Known properties of the schedule, which are MAD-Max's and kept:
//   - weights of a bottom MLP are gathered in backward without waiting for the top MLP;
//   - tables split (mp,ddp) are never reduced, those split (ddp) or (ddp,mp) are;
//   - vision models gather the last layer's weights at the start of backward whatever its strategy: without fsdp, too;
//   - exposed communication is all time that compute does not fill, waiting included.
//
// Solved: starts of O(layers) events by one pass in the order of issue. Nothing is allocated.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "orrery/core/units.hpp"
#include "orrery/madmax/work.hpp"

namespace orrery::madmax {

enum class Pass : std::uint8_t { forward, backward };

enum class Operation : std::uint8_t { products, lookup, all_to_all, all_reduce, all_gather, reduce_scatter };
inline constexpr int kOperations = 6;

// What an event is, for its name: of tables when `layer` is null.
enum class Role : std::uint8_t {
  work,               // the layer's own products, or the lookup
  gather,             // weights before use
  scatter,            // gradients of gathered weights
  reduce,             // gradients of copies
  reduce_activation,  // of layers that are cut
  to_experts,
  from_experts,
  exchange,  // looked-up rows, or their gradients
};

struct Event {
  const Layer* layer = nullptr;
  Pass pass = Pass::forward;
  Role role = Role::work;
  Operation operation = Operation::products;
  Seconds start, duration;

  [[nodiscard]] bool computes() const { return operation == Operation::products || operation == Operation::lookup; }
};

// Times of one dense layer. Zero and false where its strategy has no such thing.
struct LayerTimes {
  Seconds forward;  // backward takes twice as long
  Seconds gather, scatter;
  Seconds inner_reduce;  // of shards, where copies are inside the node and cuts between: before the activations'
  Seconds reduce;        // of whole layers, where copies are the last element
  Seconds activation;
  Seconds experts;  // one exchange of two a direction
  bool gathers = false, reduces_inside = false, reduces = false, cuts = false, exchanges = false;
};

struct TableTimes {
  Seconds lookup, exchange, reduce;
  bool exchanges = false, reduces = false, trains = true;
};

struct Timings {
  const Work* work = nullptr;
  std::span<const LayerTimes> layers;  // by shape
  TableTimes tables;
  bool runs_backward = true;
  std::array<bool, 4> trains{true, true, true, true};  // by Part
};

struct Outcome {
  Seconds end;
  std::array<Seconds, kOperations> busy{};

  [[nodiscard]] Seconds of(Operation operation) const { return busy[static_cast<std::size_t>(operation)]; }
  [[nodiscard]] Seconds compute() const { return of(Operation::products) + of(Operation::lookup); }
  [[nodiscard]] Seconds communication() const {
    return of(Operation::all_to_all) + of(Operation::all_reduce) + of(Operation::all_gather) +
           of(Operation::reduce_scatter);
  }
  [[nodiscard]] Seconds exposed() const { return end - compute(); }
};

// Takes no notice of events: for searches.
struct NoRecord {
  void operator()(const Event& /*event*/) const {}
};

template <class Record>
class Iteration {
 public:
  Iteration(const Timings& timings, Record& record) : timings_(timings), work_(*timings.work), record_(record) {}

  Outcome run() {
    forward();
    if (timings_.runs_backward) {
      compute_ = communication_ = max(compute_, communication_);
      backward();
    }
    return {max(compute_, communication_), busy_};
  }

 private:
  // Both return the end of what they issue.
  Seconds compute(const Layer* layer, Pass pass, Operation operation, Seconds duration, Seconds ready) {
    return issue(compute_, {layer, pass, Role::work, operation, max(compute_, ready), duration});
  }
  Seconds communicate(const Layer* layer, Pass pass, Role role, Operation operation, Seconds duration, Seconds ready) {
    return issue(communication_, {layer, pass, role, operation, max(communication_, ready), duration});
  }
  Seconds issue(Seconds& stream, const Event& event) {
    record_(event);
    stream = event.start + event.duration;
    busy_[static_cast<std::size_t>(event.operation)] += event.duration;
    return stream;
  }

  [[nodiscard]] const LayerTimes& times(const Layer& layer) const {
    return timings_.layers[static_cast<std::size_t>(layer.shape)];
  }
  static bool is_transformer(const Layer& layer) { return layer.part == Part::attention || layer.part == Part::fc; }

  // Layers whose activations are reduced: both of a transformer, every second of an MLP.
  static bool reduces_activation(const Layer& layer, Pass pass) {
    return is_transformer(layer) || (layer.number % 2 == 1) == (pass == Pass::forward);
  }

  void forward();
  void forward_layer(std::size_t index, Seconds exchanged);
  void backward();
  void backward_layer(std::size_t index);
  void backward_tables();
  void reduce_gradients(const Layer& layer, const LayerTimes& times);
  Seconds gather(const Layer& layer, Pass pass, Seconds ready) {
    return communicate(&layer, pass, Role::gather, Operation::all_gather, times(layer).gather, ready);
  }

  const Timings& timings_;
  const Work& work_;
  Record& record_;
  Seconds compute_, communication_;  // ends of the streams
  std::array<Seconds, kOperations> busy_{};
  Seconds last_, before_last_;  // ends of the two layers before, in the order of the pass
  Seconds activation_;          // end of what the layer before sent on
  Seconds gathered_;            // end of a gather that was issued ahead
  Seconds rows_;                // gradients of rows are there
};

template <class Record>
void Iteration<Record>::forward() {
  const TableTimes& tables = timings_.tables;
  const Seconds looked_up = compute(nullptr, Pass::forward, Operation::lookup, tables.lookup, Seconds());
  Seconds exchanged;
  if (tables.exchanges) {
    exchanged = communicate(nullptr, Pass::forward, Role::exchange, Operation::all_to_all, tables.exchange, looked_up);
  }
  for (std::size_t i = 0; i < work_.layers.size(); ++i) {
    forward_layer(i, i == work_.reads_embedding ? exchanged : Seconds());
  }
}

// Weights are gathered one layer ahead: when the layer two before has been computed. The first attention and the first
// fc of a transformer wait for nothing.
template <class Record>
void Iteration<Record>::forward_layer(std::size_t index, Seconds exchanged) {
  const Layer& layer = work_.layers[index];
  const LayerTimes& t = times(layer);
  const bool waits = !is_transformer(layer) || layer.number > 0;
  Seconds ready = max(activation_, exchanged);
  if (t.gathers) { ready = max(ready, gather(layer, Pass::forward, waits ? before_last_ : Seconds())); }
  if (t.exchanges) {
    ready = max(ready, communicate(&layer, Pass::forward, Role::to_experts, Operation::all_to_all, t.experts, last_));
  }
  before_last_ = last_;
  last_ = compute(&layer, Pass::forward, Operation::products, t.forward, ready);
  activation_ = Seconds();
  if (t.exchanges) {
    activation_ = communicate(&layer, Pass::forward, Role::from_experts, Operation::all_to_all, t.experts, last_);
  }
  if (t.cuts && reduces_activation(layer, Pass::forward)) {
    activation_ =
        communicate(&layer, Pass::forward, Role::reduce_activation, Operation::all_reduce, t.activation, last_);
  }
}

// Down to the lowest layer that has something to train below or in it.
template <class Record>
void Iteration<Record>::backward() {
  std::size_t lowest = work_.layers.size();
  for (std::size_t i = work_.layers.size(); i-- > 0;) {
    if (timings_.trains[static_cast<std::size_t>(work_.layers[i].part)]) { lowest = i; }
  }
  if (timings_.tables.trains) { lowest = std::min(lowest, work_.reads_embedding); }
  last_ = before_last_ = activation_ = gathered_ = Seconds();
  if (work_.gathers_early && lowest < work_.layers.size()) {
    gathered_ = gather(work_.layers.back(), Pass::backward, Seconds());
  }
  for (std::size_t i = work_.layers.size(); i-- > lowest;) {
    backward_layer(i);
    if (i == work_.reads_embedding && timings_.tables.trains) { backward_tables(); }
  }
  if (timings_.tables.trains) { compute(nullptr, Pass::backward, Operation::lookup, timings_.tables.lookup, rows_); }
}

// A gather waits for the layer two above, where that is of the same part.
template <class Record>
void Iteration<Record>::backward_layer(std::size_t index) {
  const Layer& layer = work_.layers[index];
  const LayerTimes& t = times(layer);
  Seconds ready = max(activation_, gathered_);
  if (t.gathers && !work_.gathers_early) {
    const bool waits = index + 2 < work_.layers.size() && work_.layers[index + 2].part == layer.part;
    ready = max(ready, gather(layer, Pass::backward, waits ? before_last_ : Seconds()));
  }
  if (t.exchanges) {
    ready = max(ready, communicate(&layer, Pass::backward, Role::to_experts, Operation::all_to_all, t.experts, last_));
  }
  before_last_ = last_;
  last_ = compute(&layer, Pass::backward, Operation::products, 2.0 * t.forward, ready);
  activation_ = gathered_ = Seconds();
  if (work_.gathers_early && index > 0 && times(work_.layers[index - 1]).gathers) {
    gathered_ = gather(work_.layers[index - 1], Pass::backward, Seconds());
  }
  const bool trains = timings_.trains[static_cast<std::size_t>(layer.part)];
  if (trains && t.reduces_inside) {
    communicate(&layer, Pass::backward, Role::reduce, Operation::all_reduce, t.inner_reduce, last_);
  }
  if (t.exchanges) {
    activation_ = communicate(&layer, Pass::backward, Role::from_experts, Operation::all_to_all, t.experts, last_);
  }
  if (t.cuts && reduces_activation(layer, Pass::backward)) {
    activation_ =
        communicate(&layer, Pass::backward, Role::reduce_activation, Operation::all_reduce, t.activation, last_);
  }
  if (trains) { reduce_gradients(layer, t); }
}

template <class Record>
void Iteration<Record>::reduce_gradients(const Layer& layer, const LayerTimes& t) {
  if (t.gathers) { communicate(&layer, Pass::backward, Role::scatter, Operation::reduce_scatter, t.scatter, last_); }
  if (t.reduces) { communicate(&layer, Pass::backward, Role::reduce, Operation::all_reduce, t.reduce, last_); }
}

// Gradients of looked-up rows leave when the layer that read them is done; the rows are updated at the very end.
template <class Record>
void Iteration<Record>::backward_tables() {
  const TableTimes& tables = timings_.tables;
  const Seconds ready = max(last_, activation_);
  if (tables.exchanges) {
    rows_ = communicate(nullptr, Pass::backward, Role::exchange, Operation::all_to_all, tables.exchange, ready);
  }
  if (tables.reduces) {
    rows_ = communicate(nullptr, Pass::backward, Role::reduce, Operation::all_reduce, tables.reduce, ready);
  }
}

}  // namespace orrery::madmax
