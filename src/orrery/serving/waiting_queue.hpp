// A queue by classes of priority: the smallest class is first, and within a class the order of insertion, or another
// one. Insertion near either end of a class takes constant time, however many wait in others. Private to the room.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <map>

namespace orrery::serving {

template <class T>
class WaitingQueue {
 public:
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }
  // These two require that it is not empty.
  [[nodiscard]] const T& front() const { return classes_.begin()->second.front(); }
  void pop_front() {
    classes_.begin()->second.pop_front();
    --size_;
    drop_if_empty(classes_.begin());
  }

  void push_front(std::int32_t priority, const T& value) {
    of_class(priority).push_front(value);
    ++size_;
  }
  void push_back(std::int32_t priority, const T& value) {
    of_class(priority).push_back(value);
    ++size_;
  }
  // Behind those of its class that are not behind it.
  template <class Before>
  void insert(std::int32_t priority, const T& value, Before before) {
    std::deque<T>& same = of_class(priority);
    same.insert(std::upper_bound(same.begin(), same.end(), value, before), value);
    ++size_;
  }

  template <class Predicate>
  void erase_if(Predicate predicate) {
    for (auto at = classes_.begin(); at != classes_.end();) {
      size_ -= std::erase_if(at->second, predicate);
      at = drop_if_empty(at);
    }
  }

  // The last one behind the first `kept` for which the predicate holds; none: nullptr.
  template <class Predicate>
  T* find_last(std::size_t kept, Predicate predicate) {
    std::size_t behind = size_ > kept ? size_ - kept : 0;
    for (auto same = classes_.rbegin(); same != classes_.rend(); ++same) {
      for (auto value = same->second.rbegin(); value != same->second.rend() && behind > 0; ++value, --behind) {
        if (predicate(*value)) { return &*value; }
      }
    }
    return nullptr;
  }

 private:
  using Classes = std::map<std::int32_t, std::deque<T>>;

  std::deque<T>& of_class(std::int32_t priority) {
    if (size_ == 0 && classes_.begin() != classes_.end() && classes_.begin()->first != priority) { classes_.clear(); }
    return classes_[priority];
  }

  // The last class stays, so that a queue of one class allocates nothing as it fills and empties.
  typename Classes::iterator drop_if_empty(typename Classes::iterator at) {
    return at->second.empty() && classes_.size() > 1 ? classes_.erase(at) : std::next(at);
  }

  Classes classes_;
  std::size_t size_ = 0;
};

}  // namespace orrery::serving
