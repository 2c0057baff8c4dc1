// A loop over independent indices on several threads. Bodies write results by index, so the result does not depend on
// the number of threads or on their order.
#pragma once

#include <cstddef>
#include <functional>

namespace orrery {

// Calls body(i) once for every i in [0, count). `threads` = 0 means one per hardware thread; 1 runs inline.
// An exception thrown by a body is rethrown here after the loop has stopped.
void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& body);

// The number of threads that `threads` = 0 means.
[[nodiscard]] int hardware_threads();

}  // namespace orrery
