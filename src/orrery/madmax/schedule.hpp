// MAD-Max's schedule of one iteration (arXiv 2310.02784): every device has two streams, compute and communication, each
// strictly in order. An event starts when its stream is free and its dependency in the other stream has ended. Backward
// starts when both streams of forward have ended; the iteration ends when both streams end.
//
// Properties of MAD-Max's schedule that are reproduced:
//   - weights of a bottom MLP are gathered in backward without waiting for the top MLP;
//   - gradients of tables (mp,ddp) are never reduced, those of (ddp) or (ddp,mp) are;
//   - vision models gather the last layer's weights at the start of backward with any strategy, even without fsdp;
//   - in backward, attention in a recommender waits for the reduce of the fc of the layer above, not of its own layer;
//   - exposed communication is all time in which compute is idle, waiting included.
//
// Computes the starts of O(layers) events in one pass in the order of issue. Allocates nothing.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "orrery/core/collective.hpp"
#include "orrery/core/units.hpp"
#include "orrery/madmax/work.hpp"

namespace orrery::madmax {

enum class Pass : std::uint8_t { forward, backward };

// MAD-Max has the first values of the enum: all_reduce, all_gather, reduce_scatter, all_to_all.
inline constexpr std::size_t kCollectives = 4;

// What an event does in the schedule. Events of tables have no layer.
enum class Role : std::uint8_t {
  compute,            // the layer's GEMMs, or the lookup
  gather,             // weights before use
  scatter,            // gradients of gathered weights
  reduce,             // gradients of copies
  reduce_activation,  // of layers with tp
  to_experts,
  from_experts,
  all_to_all,  // of looked-up rows, or of their gradients
};

struct Event {
  const Layer* layer = nullptr;
  Pass pass = Pass::forward;
  Role role = Role::compute;
  Collective collective = Collective::all_reduce;  // of all roles except compute
  Seconds start, duration;

  [[nodiscard]] bool computes() const { return role == Role::compute; }
};

// Times of one dense layer. Zero and false if its strategy has no such event.
struct LayerTimes {
  Seconds forward;  // backward takes twice as long
  Seconds gather, scatter;
  Seconds inner_reduce;  // of shards, with ddp inside and tp between nodes; before that of activations
  Seconds reduce;        // of whole layers, if ddp is the outer level
  Seconds activation;
  Seconds experts;  // one of the two all-to-alls per direction
  bool gathers = false, reduces_inside = false, reduces = false, has_tp = false, has_all_to_all = false;
};

struct TableTimes {
  Seconds lookup, all_to_all, reduce;
  bool has_all_to_all = false, reduces = false, trains = true;
};

struct Timings {
  const SampleWork* work = nullptr;
  std::span<const LayerTimes> layers;  // by shape
  TableTimes tables;
  bool runs_backward = true;
  std::array<bool, 4> trains{true, true, true, true};  // by Part
  // Reductions of activations, backward / forward time, by Part (Evaluator::reduces_back).
  std::array<double, 4> reduces_back{1.0, 1.0, 1.0, 1.0};
};

struct Outcome {
  Seconds end;
  Seconds gemm, lookup;                      // busy times
  std::array<Seconds, kCollectives> busy{};  // by Collective

  [[nodiscard]] Seconds of(Collective collective) const { return busy[static_cast<std::size_t>(collective)]; }
  [[nodiscard]] Seconds compute() const { return gemm + lookup; }
  [[nodiscard]] Seconds communication() const {
    return of(Collective::all_to_all) + of(Collective::all_reduce) + of(Collective::all_gather) +
           of(Collective::reduce_scatter);
  }
  [[nodiscard]] Seconds exposed() const { return end - compute(); }
};

// Discards events: for searches.
struct NoRecord {
  void operator()(const Event& /*event*/) const {}
};

template <class Record>
class Iteration {
 public:
  Iteration(const Timings& timings, Record& record)
      : timings_(timings),
        work_(*timings.work),
        record_(record),
        scatters_first_(work_.gathers_early || work_.is_recommender_with_transformer()) {}

  Outcome run() {
    forward();
    if (timings_.runs_backward) {
      compute_ = communication_ = max(compute_, communication_);
      backward();
    }
    outcome_.end = max(compute_, communication_);
    return outcome_;
  }

 private:
  // These functions return the end of the event.
  Seconds compute(const Layer& layer, Pass pass, Seconds duration, Seconds ready) {
    outcome_.gemm += duration;
    return issue(compute_, {&layer, pass, Role::compute, {}, max(compute_, ready), duration});
  }
  Seconds look_up(Pass pass, Seconds ready) {
    const Seconds duration = timings_.tables.lookup;
    outcome_.lookup += duration;
    return issue(compute_, {nullptr, pass, Role::compute, {}, max(compute_, ready), duration});
  }
  Seconds communicate(const Layer* layer, Pass pass, Role role, Collective collective, Seconds duration,
                      Seconds ready) {
    outcome_.busy[static_cast<std::size_t>(collective)] += duration;
    return issue(communication_, {layer, pass, role, collective, max(communication_, ready), duration});
  }
  Seconds issue(Seconds& stream, const Event& event) {
    record_(event);
    stream = event.start + event.duration;
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
  void forward_layer(std::size_t index, Seconds rows_arrived);
  void backward();
  void backward_layer(std::size_t index);
  void backward_tables();
  void reduce_gradients(const Layer& layer, const LayerTimes& times);
  void scatter_gradients(const Layer& layer, const LayerTimes& times);
  Seconds gather(const Layer& layer, Pass pass, Seconds ready) {
    return communicate(&layer, pass, Role::gather, Collective::all_gather, times(layer).gather, ready);
  }

  const Timings& timings_;
  const SampleWork& work_;
  Record& record_;
  bool scatters_first_;              // gradients of gathered weights, before activations are reduced
  Seconds compute_, communication_;  // ends of the streams
  Outcome outcome_;
  Seconds last_, before_last_;  // ends of the two previous layers, in the order of the pass
  Seconds activation_;          // end of the previous layer's collective on activations
  Seconds gathered_;            // end of a gather that was issued one layer ahead
  Seconds rows_;                // end of the collective on gradients of rows
};

template <class Record>
void Iteration<Record>::forward() {
  const TableTimes& tables = timings_.tables;
  const Seconds looked_up = look_up(Pass::forward, Seconds());
  Seconds rows_arrived;
  if (tables.has_all_to_all) {
    rows_arrived =
        communicate(nullptr, Pass::forward, Role::all_to_all, Collective::all_to_all, tables.all_to_all, looked_up);
  }
  for (std::size_t i = 0; i < work_.layers.size(); ++i) {
    forward_layer(i, i == work_.reads_embedding ? rows_arrived : Seconds());
  }
}

// Weights are gathered one layer ahead: the gather depends on the layer before the previous one, if there is one.
template <class Record>
void Iteration<Record>::forward_layer(std::size_t index, Seconds rows_arrived) {
  const Layer& layer = work_.layers[index];
  const LayerTimes& t = times(layer);
  Seconds ready = max(activation_, rows_arrived);
  if (t.gathers) { ready = max(ready, gather(layer, Pass::forward, before_last_)); }
  if (t.has_all_to_all) {
    ready = max(ready, communicate(&layer, Pass::forward, Role::to_experts, Collective::all_to_all, t.experts, last_));
  }
  before_last_ = last_;
  last_ = compute(layer, Pass::forward, t.forward, ready);
  activation_ = Seconds();
  if (t.has_all_to_all) {
    activation_ = communicate(&layer, Pass::forward, Role::from_experts, Collective::all_to_all, t.experts, last_);
  }
  if (t.has_tp && reduces_activation(layer, Pass::forward)) {
    activation_ =
        communicate(&layer, Pass::forward, Role::reduce_activation, Collective::all_reduce, t.activation, last_);
  }
}

// Ends at the lowest layer that is trained or has a trained layer below it.
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
  if (timings_.tables.trains) { look_up(Pass::backward, rows_); }
}

// A gather depends on the layer two above, if that is in the same part. In a recommender's transformer, attention does
// not wait for the activations of the fc before it: MAD-Max's program names the fc of the layer above instead.
template <class Record>
void Iteration<Record>::backward_layer(std::size_t index) {
  const Layer& layer = work_.layers[index];
  const LayerTimes& t = times(layer);
  const bool ignores_reduce = work_.is_recommender && layer.part == Part::attention;
  Seconds ready = ignores_reduce ? gathered_ : max(activation_, gathered_);
  if (t.gathers && !work_.gathers_early) {
    const bool waits = index + 2 < work_.layers.size() && work_.layers[index + 2].part == layer.part;
    ready = max(ready, gather(layer, Pass::backward, waits ? before_last_ : Seconds()));
  }
  if (t.has_all_to_all) {
    ready = max(ready, communicate(&layer, Pass::backward, Role::to_experts, Collective::all_to_all, t.experts, last_));
  }
  before_last_ = last_;
  last_ = compute(layer, Pass::backward, 2.0 * t.forward, ready);
  activation_ = gathered_ = Seconds();
  if (work_.gathers_early && index > 0 && times(work_.layers[index - 1]).gathers) {
    gathered_ = gather(work_.layers[index - 1], Pass::backward, Seconds());
  }
  const bool trains = timings_.trains[static_cast<std::size_t>(layer.part)];
  if (trains && t.reduces_inside) {
    communicate(&layer, Pass::backward, Role::reduce, Collective::all_reduce, t.inner_reduce, last_);
  }
  if (t.has_all_to_all) {
    activation_ = communicate(&layer, Pass::backward, Role::from_experts, Collective::all_to_all, t.experts, last_);
  }
  if (trains && t.gathers && scatters_first_) { scatter_gradients(layer, t); }
  if (t.has_tp && reduces_activation(layer, Pass::backward)) {
    activation_ = communicate(&layer, Pass::backward, Role::reduce_activation, Collective::all_reduce,
                              t.activation * timings_.reduces_back[static_cast<std::size_t>(layer.part)], last_);
  }
  if (trains) { reduce_gradients(layer, t); }
}

template <class Record>
void Iteration<Record>::scatter_gradients(const Layer& layer, const LayerTimes& t) {
  communicate(&layer, Pass::backward, Role::scatter, Collective::reduce_scatter, t.scatter, last_);
}

template <class Record>
void Iteration<Record>::reduce_gradients(const Layer& layer, const LayerTimes& t) {
  if (t.gathers && !scatters_first_) { scatter_gradients(layer, t); }
  if (t.reduces) { communicate(&layer, Pass::backward, Role::reduce, Collective::all_reduce, t.reduce, last_); }
}

// Gradients of looked-up rows are sent after the backward pass of the layer that reads the rows; the rows are updated
// last.
template <class Record>
void Iteration<Record>::backward_tables() {
  const TableTimes& tables = timings_.tables;
  const Seconds ready = max(last_, activation_);
  if (tables.has_all_to_all) {
    rows_ = communicate(nullptr, Pass::backward, Role::all_to_all, Collective::all_to_all, tables.all_to_all, ready);
  }
  if (tables.reduces) {
    rows_ = communicate(nullptr, Pass::backward, Role::reduce, Collective::all_reduce, tables.reduce, ready);
  }
}

}  // namespace orrery::madmax
