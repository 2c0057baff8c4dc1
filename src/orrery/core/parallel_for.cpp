#include "orrery/core/parallel_for.hpp"

#include <algorithm>

#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

namespace orrery {

void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& body) {
  if (threads == 1 || count <= 1) {
    for (std::size_t i = 0; i < count; ++i) { body(i); }
    return;
  }
  // More threads than the machine has do not help, and TBB would complain about them on standard error.
  const int most = hardware_threads();
  oneapi::tbb::task_arena arena(threads > 0 ? std::min(threads, most) : most);
  arena.execute([&] {
    oneapi::tbb::parallel_for(oneapi::tbb::blocked_range<std::size_t>(0, count), [&](const auto& range) {
      for (std::size_t i = range.begin(); i != range.end(); ++i) { body(i); }
    });
  });
}

int hardware_threads() { return oneapi::tbb::info::default_concurrency(); }

}  // namespace orrery
