// Other processes of the same run, started by mpirun.
//
// MPI is found at run time: the program looks for the library of build/…/liborrery_mpi.so beside itself only where
// mpirun has started it. Without mpirun the program does not load MPI.
#pragma once

#include <memory>

#include "orrery/core/error.hpp"
#include "orrery/study/run.hpp"

namespace orrery::cli {

class Processes {
 public:
  // Fails where mpirun has started several processes and the program has no MPI.
  [[nodiscard]] static Result<std::unique_ptr<Processes>> start();
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;
  ~Processes();

  // nullptr: this is the only process.
  [[nodiscard]] study::Ranks* ranks() const { return ranks_.get(); }
  // All processes reach this.
  void finish();
  // Only rank 0 reports; the job ends.
  [[nodiscard]] Result<int> failed(const Failure& failure);

 private:
  Processes() = default;
  struct Library;
  std::unique_ptr<Library> library_;
  std::unique_ptr<study::Ranks> ranks_;
};

}  // namespace orrery::cli
