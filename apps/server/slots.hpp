// A limited number of places that requests wait for.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace orrery::server {

class Slots {
 public:
  explicit Slots(int count) : free_(count) {}

  // Whether a place became free in time; the caller gives it back with `leave`.
  [[nodiscard]] bool enter(std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    if (!left_.wait_for(lock, patience, [this] { return free_ > 0; })) { return false; }
    --free_;
    return true;
  }
  void leave() {
    {
      const std::lock_guard lock(mutex_);
      ++free_;
    }
    left_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable left_;
  int free_;
};

// A place of `slots`, or none if none became free in time.
class Slot {
 public:
  Slot(Slots& slots, std::chrono::milliseconds patience) : slots_(slots), is_taken_(slots.enter(patience)) {}
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
  ~Slot() {
    if (is_taken_) { slots_.leave(); }
  }
  [[nodiscard]] bool is_taken() const { return is_taken_; }

 private:
  Slots& slots_;
  bool is_taken_;
};

}  // namespace orrery::server
