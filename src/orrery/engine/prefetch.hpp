// Prefetching of memory that is accessed soon.
#pragma once

namespace orrery::engine {

// g++ removes calls of functions that only prefetch, because it takes them for functions without effects. The empty
// assembler statement is an effect.
inline void prefetch(const void* address) {
  __builtin_prefetch(address);
  asm volatile("");
}

}  // namespace orrery::engine
