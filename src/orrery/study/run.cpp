#include "orrery/study/run.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "orrery/core/parallel_for.hpp"
#include "orrery/study/row_bytes.hpp"

namespace orrery::study {

using results::StudyRow;
using results::StudyStatus;

namespace {

void compute_figures(const Study& study, const Point& point, const Facts& facts, StudyRow& row) {
  for (const Derived& figure : study.figures) {
    const auto value = figure.formula.value(names_at(study, point, facts, &row));
    row.columns.push_back(value ? *value : StudyCell());
  }
}

void check_constraints(const Study& study, const Point& point, const Facts& facts, StudyRow& row) {
  for (const Formula& constraint : study.constraints) {
    if (row.status != StudyStatus::ok) { return; }
    const auto holds = constraint.holds(names_at(study, point, facts, &row));
    if (holds && *holds) { continue; }
    row.status = StudyStatus::infeasible;
    row.reason = fmt::format("constraint {}{}", constraint.text(), holds ? " does not hold" : ": " + holds.error());
  }
}

}  // namespace

StudyRow evaluated(const Study& study, const Point& point, Evaluator& evaluator, const Facts& facts) {
  StudyRow row;
  row.id = point.id;
  row.columns = point.columns;
  if (point.problem.empty()) {
    evaluator.evaluate(point, row);
  } else {
    row.status = StudyStatus::failed;
    row.reason = point.problem;
  }
  compute_figures(study, point, facts, row);
  check_constraints(study, point, facts, row);
  return row;
}

namespace {

// Points to evaluate and rows to store, shared by the threads of a process.
class Exchange {
 public:
  Exchange(Points points, const std::vector<bool>& skips, std::int64_t batch)
      : points_(std::move(points)), skips_(skips), batch_(batch) {}

  // Up to `count` batches of points; none: all are handed out.
  std::vector<Point> take(std::int64_t count = 1) {
    const std::lock_guard lock(mutex_);
    std::vector<Point> batch;
    while (!stopped_ && static_cast<std::int64_t>(batch.size()) < count * batch_) {
      auto point = points_.next();
      if (!point) { break; }
      const bool skipped =
          static_cast<std::size_t>(point->id) < skips_.size() && skips_[static_cast<std::size_t>(point->id)];
      if (!skipped) { batch.push_back(std::move(*point)); }
    }
    return batch;
  }
  void give(std::vector<StudyRow> rows) {
    {
      const std::lock_guard lock(mutex_);
      rows_.push_back(std::move(rows));
    }
    ready_.notify_one();
  }
  void end_worker(std::exception_ptr error) {
    {
      const std::lock_guard lock(mutex_);
      ++ended_;
      if (error && !error_) { error_ = error; }
      if (error) { stopped_ = true; }
    }
    ready_.notify_one();
  }
  void stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  // All rows that have arrived. `waits`: for some, unless `workers` have ended.
  std::vector<StudyRow> arrived(int workers, bool waits) {
    std::unique_lock lock(mutex_);
    if (waits) {
      ready_.wait(lock, [&] { return !rows_.empty() || ended_ == workers; });
    }
    std::vector<StudyRow> all;
    for (auto& rows : rows_) {
      all.insert(all.end(), std::make_move_iterator(rows.begin()), std::make_move_iterator(rows.end()));
    }
    rows_.clear();
    return all;
  }
  [[nodiscard]] bool has_ended(int workers) {
    const std::lock_guard lock(mutex_);
    return rows_.empty() && ended_ == workers;
  }
  void rethrow() {
    const std::lock_guard lock(mutex_);
    if (error_) { std::rethrow_exception(error_); }
  }

 private:
  std::mutex mutex_;
  std::condition_variable ready_;
  Points points_;
  const std::vector<bool>& skips_;
  std::int64_t batch_;
  std::deque<std::vector<StudyRow>> rows_;
  int ended_ = 0;
  bool stopped_ = false;
  std::exception_ptr error_;
};

void evaluate_batches(const Work& work, Exchange& exchange) {
  std::exception_ptr error;
  try {
    const auto evaluator = work.evaluators();
    const Facts facts = work.facts();
    for (auto batch = exchange.take(); !batch.empty(); batch = exchange.take()) {
      std::vector<StudyRow> rows;
      for (const Point& point : batch) { rows.push_back(evaluated(work.study, point, *evaluator, facts)); }
      exchange.give(std::move(rows));
    }
  } catch (...) { error = std::current_exception(); }
  exchange.end_worker(error);
}

// Rank 0's side of the other ranks: each message has the rows of a batch and asks for the next one.
class OtherRanks {
 public:
  explicit OtherRanks(Ranks* ranks) : ranks_(ranks), working_(ranks == nullptr ? 0 : ranks->size() - 1) {}

  [[nodiscard]] bool any() const { return working_ > 0; }
  // Answers at most one message; whether there was one.
  bool answer(Exchange& exchange) {
    if (!any()) { return false; }
    const auto message = ranks_->receive();
    if (!message) { return false; }
    if (!message->bytes.empty() && message->bytes.front() == 'r') {
      exchange.give(rows_of_bytes(std::string_view(message->bytes).substr(1)));
    }
    std::vector<std::int64_t> ids;
    for (const Point& point : exchange.take()) { ids.push_back(point.id); }
    if (ids.empty()) { --working_; }
    ranks_->send(message->from, bytes_of_ids(ids));
    return true;
  }
  void pause() const { ranks_->pause(); }

 private:
  Ranks* ranks_;
  int working_;
};

}  // namespace

Result<bool> run(const Work& work, const std::vector<bool>& skips, const Sink& sink, const RunOptions& options) {
  Exchange exchange(work.points(), skips, options.batch);
  const int workers = options.threads > 0 ? options.threads : hardware_threads();
  std::vector<std::jthread> threads;
  for (int i = 0; i < workers; ++i) {
    threads.emplace_back([&] { evaluate_batches(work, exchange); });
  }
  OtherRanks others(options.ranks);
  std::int64_t done = 0;
  bool stopped = false;
  std::optional<Failure> failure;
  while (others.any() || !exchange.has_ended(workers)) {
    const bool answered = others.answer(exchange);
    const auto rows = exchange.arrived(workers, !others.any());
    if (!rows.empty() && !failure) {
      if (auto stored = sink(rows); !stored) { failure = stored.error(); }
      done += static_cast<std::int64_t>(rows.size());
      if (options.progress) { options.progress(done); }
    }
    stopped = stopped || options.is_stopped();
    if (stopped || failure) { exchange.stop(); }
    if (others.any() && !answered && rows.empty()) { others.pause(); }
  }
  threads.clear();
  exchange.rethrow();
  if (failure) { return tl::make_unexpected(std::move(*failure)); }
  return !stopped;
}

void serve(const Work& work, const RunOptions& options) {
  Ranks& ranks = *options.ranks;
  const auto count = static_cast<std::size_t>(options.threads > 0 ? options.threads : 1);
  Points points = work.points();
  std::vector<std::unique_ptr<Evaluator>> evaluators;
  std::vector<Facts> facts;
  for (std::size_t i = 0; i < count; ++i) {
    evaluators.push_back(work.evaluators());
    facts.push_back(work.facts());
  }
  std::string message = "start";
  while (true) {
    ranks.send(0, message);
    auto answer = ranks.receive();
    for (; !answer; answer = ranks.receive()) { ranks.pause(); }
    const auto ids = ids_of_bytes(answer->bytes);
    if (ids.empty()) { return; }
    std::vector<Point> batch;
    for (const std::int64_t id : ids) {
      auto point = points.skip_to(id);
      ORRERY_ASSERT(point.has_value());
      batch.push_back(std::move(*point));
    }
    std::vector<StudyRow> rows(batch.size());
    std::atomic<std::size_t> next = 0;
    parallel_for(count, static_cast<int>(count), [&](std::size_t worker) {
      for (std::size_t i = next++; i < batch.size(); i = next++) {
        rows[i] = evaluated(work.study, batch[i], *evaluators[worker], facts[worker]);
      }
    });
    message = "r" + bytes_of_rows(rows);
  }
}

}  // namespace orrery::study
