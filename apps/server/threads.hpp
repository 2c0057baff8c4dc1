// One thread for each connection, made when it is needed: a client that is slow, or that keeps its connection open,
// does not hold up the others.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>

#include <httplib.h>

namespace orrery::server {

class ThreadPerConnection : public httplib::TaskQueue {
 public:
  void enqueue(std::function<void()> task) override {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return running_ < kMost; });
    ++running_;
    try {
      std::thread([this, task = std::move(task)] {
        task();
        // The last thread notifies under the lock: after it, the object may be gone.
        const std::lock_guard ending(mutex_);
        --running_;
        ended_.notify_all();
      }).detach();
    } catch (const std::system_error&) { --running_; }  // the system has no more threads: the connection is dropped
  }

  void shutdown() override {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [this] { return running_ == 0; });
  }

 private:
  static constexpr std::size_t kMost = 4096;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::size_t running_ = 0;
};

}  // namespace orrery::server
