// liborrery_mpi.so: messages between the processes of a study through MPI. Built where MPI is installed.
#include <mpi.h>

#include <climits>
#include <cstdlib>

#include "apps/mpi/mpi_library.hpp"

namespace {

constexpr int kTag = 19;

// The receiver always comes to receive: rank 0 looks for messages until every other rank has ended, and another rank
// waits for the answer to what it has sent.
void send(int to, const char* bytes, std::size_t count) {
  if (count > static_cast<std::size_t>(INT_MAX)) { MPI_Abort(MPI_COMM_WORLD, 3); }
  MPI_Send(bytes, static_cast<int>(count), MPI_BYTE, to, kTag, MPI_COMM_WORLD);
}

long long arrived(int* from) {
  int there = 0;
  MPI_Status status;
  MPI_Iprobe(MPI_ANY_SOURCE, kTag, MPI_COMM_WORLD, &there, &status);
  if (there == 0) { return -1; }
  int count = 0;
  MPI_Get_count(&status, MPI_BYTE, &count);
  *from = status.MPI_SOURCE;
  return count;
}

void take(int from, char* bytes, std::size_t count) {
  MPI_Recv(bytes, static_cast<int>(count), MPI_BYTE, from, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void start() {
  int level = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level);  // only the main thread calls MPI
}

int rank() {
  int value = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &value);
  return value;
}

int size() {
  int value = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &value);
  return value;
}

void finish() { MPI_Finalize(); }
void end_all(int code) { MPI_Abort(MPI_COMM_WORLD, code); }

constexpr OrreryMpi kFunctions{start, rank, size, send, arrived, take, finish, end_all};

}  // namespace

extern "C" __attribute__((visibility("default"))) const OrreryMpi* orrery_mpi() { return &kFunctions; }
