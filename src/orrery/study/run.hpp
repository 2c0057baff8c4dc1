// Runs the points of a study on threads and, through Ranks, on other processes.
//
// Points are handed out in order, in small batches, to whoever is free. One thread stores rows. A row depends on its
// point only, so the stored rows are the same for any number of threads and ranks, and after any interruption.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/results/study.hpp"
#include "orrery/study/points.hpp"
#include "orrery/study/study.hpp"

namespace orrery::study {

// Used by one thread at a time.
class Evaluator {
 public:
  virtual ~Evaluator() = default;
  // Sets status, reason, metrics and texts of a row whose id and columns are set.
  virtual void evaluate(const Point& point, results::StudyRow& row) = 0;
};

// Evaluates the point, then figures and constraints.
[[nodiscard]] results::StudyRow evaluated(const Study& study, const Point& point, Evaluator& evaluator,
                                          const Facts& facts);

// Other processes of the same run. Messages arrive whole, in order for each pair of ranks.
class Ranks {
 public:
  virtual ~Ranks() = default;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  virtual void send(int to, const std::string& bytes) = 0;
  struct Message {
    int from = 0;
    std::string bytes;
  };
  [[nodiscard]] virtual std::optional<Message> receive() = 0;  // nothing: none has arrived
  virtual void pause() = 0;                                    // between two looks for messages
};

struct RunOptions {
  int threads = 0;                                          // of this process; 0: one per hardware thread
  std::int64_t batch = 1;                                   // points handed out at once
  std::function<bool()> is_stopped = [] { return false; };  // checked between batches
  std::function<void(std::int64_t done)> progress = {};     // number of stored points; from one thread
  Ranks* ranks = nullptr;
};

// Stores the rows of a batch; called from one thread.
using Sink = std::function<tl::expected<void, Failure>(std::span<const results::StudyRow>)>;

// What is evaluated. `facts` are those of one thread.
struct Work {
  const Study& study;
  std::function<Points()> points;
  std::function<std::unique_ptr<Evaluator>()> evaluators;
  std::function<Facts()> facts;
};

// Of rank 0, or of the only process: evaluates and stores every point for which `skips` is false. False: stopped.
[[nodiscard]] Result<bool> run(const Work& work, const std::vector<bool>& skips, const Sink& sink,
                               const RunOptions& options);

// Of the other ranks: evaluates what rank 0 hands out until it says that this is all.
void serve(const Work& work, const RunOptions& options);

}  // namespace orrery::study
