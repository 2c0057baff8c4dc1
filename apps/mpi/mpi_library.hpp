// The functions of liborrery_mpi.so, which alone is linked to MPI. Plain C, so that the program does not depend on it.
#pragma once

#include <cstddef>

extern "C" {

struct OrreryMpi {
  void (*start)();
  int (*rank)();
  int (*size)();
  void (*send)(int to, const char* bytes, std::size_t count);
  // The number of bytes of a message that has arrived; negative: none. `from` is its sender.
  long long (*arrived)(int* from);
  // Takes the message that `arrived` has found.
  void (*take)(int from, char* bytes, std::size_t count);
  void (*finish)();
  void (*abort)(int code);
};

// The name of the one exported function: const OrreryMpi* orrery_mpi().
constexpr const char* kOrreryMpiSymbol = "orrery_mpi";
}
