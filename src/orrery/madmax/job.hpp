// What is asked of MAD-Max's equations, and what they say: one model on one system, a task, a batch, strategies.
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

// What fine-tuning leaves as it is. A layer below which nothing trains is not run backward; a frozen one above has no
// gradients to reduce, and passes its activations' gradients on as always.
struct Frozen {
  bool tables = false;
  std::array<bool, 4> parts{};  // by Part

  [[nodiscard]] bool any() const { return tables || parts[0] || parts[1] || parts[2] || parts[3]; }
};

struct Job {
  Task task = Task::pretrain;
  Frozen frozen;
  std::int64_t global_batch = 0;
  bool memory_rule = true;  // weights times `held_copies` must fit
};

// Weights that a device must hold room for: in training themselves, gradients and optimizer, 3; in inference 1.
[[nodiscard]] constexpr double held_copies(Task task) { return task == Task::inference ? 1.0 : 3.0; }

// "emb", "bottom", "top", "mlp" (both), "attention", "fc", "transformer" (both), with commas between. Fails for what
// the model does not have, and where nothing is left to train.
[[nodiscard]] Result<Frozen> frozen_from(std::string_view text, const Work& work);
[[nodiscard]] std::string text_of(const Frozen& frozen, const Work& work);

// "mlp=512; emb=65536": samples that one copy of a class works on.
using LocalBatches = std::map<LayerClass, std::int64_t>;
[[nodiscard]] Result<LocalBatches> local_batches_from(std::string_view text, const Work& work);

// The batch of the job: as typed, or a local one times the copies of its class. Fails where they disagree, or where the
// batch is not whole samples for every copy of a class, naming what would be.
[[nodiscard]] Result<std::int64_t> global_batch_of(std::optional<std::int64_t> typed, const LocalBatches& local,
                                                   const Strategies& strategies, const Work& work,
                                                   const System& system);

// Whether every copy of every class has whole samples.
[[nodiscard]] bool divides(std::int64_t global_batch, const Strategies& strategies, const Work& work,
                           const System& system);

struct Answer {
  Outcome outcome;
  Bytes weights;  // of one device
};

// Prices strategies of one model on one system for one task. Times of the collectives have no latency and no size of
// group: bytes over a rate of the level (docs/models/mad-max.md has every formula).
class Evaluator {
 public:
  Evaluator(const Work& work, const System& system, const Job& job);
  Evaluator(const Work& work, System&& system, const Job& job) = delete;  // both are kept as references
  Evaluator(Work&& work, const System& system, const Job& job) = delete;

  [[nodiscard]] Answer answer(const Strategies& strategies);
  // The same, and every event in the order of issue.
  [[nodiscard]] Answer answer(const Strategies& strategies, std::vector<Event>& events);

  [[nodiscard]] const Work& work() const { return *work_; }
  [[nodiscard]] const System& system() const { return *system_; }
  [[nodiscard]] const Job& job() const { return job_; }

  // What weights may take of a device.
  [[nodiscard]] Bytes needed(Bytes weights) const { return weights * held_copies(job_.task); }

 private:
  // Rates at the levels of a strategy: inside a node, between nodes; of a machine of one node, inside twice.
  struct Rates {
    std::array<BytesPerSecond, 2> all_to_all, all_reduce, all_gather;
  };
  [[nodiscard]] static std::size_t level_of(const Strategy& strategy, Split split);
  [[nodiscard]] LayerTimes layer_times(const Shape& shape, const Strategy& strategy) const;
  [[nodiscard]] TableTimes table_times(const Strategy& strategy) const;
  [[nodiscard]] Timings timings(const Strategies& strategies);
  [[nodiscard]] Bytes weights(const Strategies& strategies) const;

  const Work* work_;
  const System* system_;
  Job job_;
  Rates rates_;
  FlopsPerSecond peak_;
  std::vector<LayerTimes> layer_times_;  // by shape, of the strategies at hand
  std::vector<double> shape_counts_;     // layers of each shape
};

}  // namespace orrery::madmax
