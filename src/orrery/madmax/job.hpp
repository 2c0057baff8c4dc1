// One evaluation of MAD-Max's equations: a model on a system, a task, a batch, strategies; and its result.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/madmax/schedule.hpp"
#include "orrery/madmax/strategy.hpp"
#include "orrery/madmax/system.hpp"
#include "orrery/madmax/work.hpp"

namespace orrery::madmax {

enum class Task : std::uint8_t { pretrain, finetune, inference };

// Layers that fine-tuning freezes. Layers below the lowest trained one are not run backward; a frozen one above has no
// weight gradients to reduce, but computes the gradients of its activations.
struct Frozen {
  bool tables = false;
  std::array<bool, 4> parts{};  // by Part

  [[nodiscard]] bool any() const { return tables || parts[0] || parts[1] || parts[2] || parts[3]; }
};

struct RunSettings {
  Task task = Task::pretrain;
  Frozen frozen;
  std::int64_t global_batch = 0;
  bool memory_rule = true;  // weights times `memory_copies` must fit
};

// Memory of a device in multiples of its weights: 3 in training (weights, gradients, optimizer state), 1 in inference.
[[nodiscard]] constexpr double memory_copies(Task task) { return task == Task::inference ? 1.0 : 3.0; }

// "emb", "bottom", "top", "mlp" (both), "attention", "fc", "transformer" (both), separated by commas. Fails for layers
// that the model does not have, and if nothing is left to train.
[[nodiscard]] Result<Frozen> frozen_from(std::string_view text, const SampleWork& work);
[[nodiscard]] std::string text_of(const Frozen& frozen, const SampleWork& work);

// "mlp=512; emb=65536": samples per copy of a class.
using LocalBatches = std::map<LayerClass, std::int64_t>;
[[nodiscard]] Result<LocalBatches> local_batches_from(std::string_view text, const SampleWork& work);

// The global batch: `given`, or a local batch times the copies of its class. Fails if they contradict each other, or
// where the batch does not divide by the copies of every class, naming valid batches.
[[nodiscard]] Result<std::int64_t> global_batch_of(std::optional<std::int64_t> given, const LocalBatches& local,
                                                   const Strategies& strategies, const SampleWork& work,
                                                   const System& system);

// Whether the batch divides by the copies of every class.
[[nodiscard]] bool divides(std::int64_t global_batch, const Strategies& strategies, const SampleWork& work,
                           const System& system);

struct Answer {
  Outcome outcome;
  Bytes weights;  // of one device
};

// Prices strategies of one model on one system for one task. Times of collectives do not depend on latency or group
// size: bytes / rate of the level (docs/models/mad-max.md has every formula).
class Evaluator {
 public:
  Evaluator(const SampleWork& work, const System& system, const RunSettings& job);
  Evaluator(const SampleWork& work, System&& system, const RunSettings& job) = delete;  // both are kept as references
  Evaluator(SampleWork&& work, const System& system, const RunSettings& job) = delete;

  [[nodiscard]] Answer answer(const Strategies& strategies);
  // The same, and every event in the order of issue.
  [[nodiscard]] Answer answer(const Strategies& strategies, std::vector<Event>& events);

  [[nodiscard]] const SampleWork& work() const { return *work_; }
  [[nodiscard]] const System& system() const { return *system_; }
  [[nodiscard]] const RunSettings& job() const { return job_; }

  // Memory of a device that weights of this size need.
  [[nodiscard]] Bytes needed(Bytes weights) const { return weights * memory_copies(job_.task); }

 private:
  // Rates at the levels of a strategy: inside a node, between nodes; for a machine of one node, inside twice.
  struct Rates {
    std::array<BytesPerSecond, 2> all_to_all, all_reduce, all_gather;
  };
  [[nodiscard]] static std::size_t level_of(const Strategy& strategy, Parallelism parallelism);
  [[nodiscard]] LayerTimes layer_times(const LayerShape& shape, const Strategy& strategy) const;
  [[nodiscard]] TableTimes table_times(const Strategy& strategy) const;
  [[nodiscard]] std::array<double, 4> reduces_back(const Strategies& strategies) const;
  [[nodiscard]] Timings timings(const Strategies& strategies);
  [[nodiscard]] Bytes weights(const Strategies& strategies) const;

  const SampleWork* work_;
  const System* system_;
  RunSettings job_;
  Rates rates_;
  FlopsPerSecond peak_;
  std::vector<LayerTimes> layer_times_;  // by shape, of the strategies being evaluated
  std::vector<double> shape_counts_;     // layers of each shape
};

}  // namespace orrery::madmax
