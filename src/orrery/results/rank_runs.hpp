// A value for every rank, from rank 0 on. Neighbouring ranks with equal values are stored as one run, so that the
// ranks of a folded job take no memory of their own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include "orrery/core/error.hpp"

namespace orrery::results {

template <class Value>
class RankRuns {
 public:
  struct Run {
    std::uint64_t first = 0, end = 0;  // ranks first to end - 1
    Value value{};
    friend bool operator==(const Run&, const Run&) = default;
  };

  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Value;
    using difference_type = std::ptrdiff_t;
    using pointer = const Value*;
    using reference = const Value&;

    Iterator() = default;
    Iterator(const Run* run, std::uint64_t rank) : run_(run), rank_(rank) {}
    [[nodiscard]] const Value& operator*() const { return run_->value; }
    [[nodiscard]] const Value* operator->() const { return &run_->value; }
    Iterator& operator++() {
      if (++rank_ == run_->end) { ++run_; }
      return *this;
    }
    Iterator operator++(int) {
      const Iterator before = *this;
      ++*this;
      return before;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.rank_ == b.rank_; }

   private:
    const Run* run_ = nullptr;
    std::uint64_t rank_ = 0;
  };

  // The next `count` ranks have this value.
  void add(std::uint64_t count, const Value& value) {
    if (count == 0) { return; }
    const std::uint64_t first = size();
    if (!runs_.empty() && runs_.back().value == value) {
      runs_.back().end += count;
    } else {
      runs_.push_back({first, first + count, value});
    }
  }
  void push_back(const Value& value) { add(1, value); }

  [[nodiscard]] std::uint64_t size() const { return runs_.empty() ? 0 : runs_.back().end; }
  [[nodiscard]] bool empty() const { return runs_.empty(); }
  [[nodiscard]] const Value& operator[](std::uint64_t rank) const {
    ORRERY_ASSERT(rank < size());
    return std::upper_bound(runs_.begin(), runs_.end(), rank,
                            [](std::uint64_t r, const Run& run) { return r < run.end; })
        ->value;
  }
  [[nodiscard]] const Value& front() const { return (*this)[0]; }
  [[nodiscard]] const Value& back() const { return (*this)[size() - 1]; }
  [[nodiscard]] Iterator begin() const { return {runs_.data(), 0}; }
  [[nodiscard]] Iterator end() const { return {runs_.data() + runs_.size(), size()}; }
  [[nodiscard]] const std::vector<Run>& runs() const { return runs_; }

  friend bool operator==(const RankRuns& a, const RankRuns& b) { return a.runs_ == b.runs_; }

 private:
  std::vector<Run> runs_;
};

}  // namespace orrery::results
