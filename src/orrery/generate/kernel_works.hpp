// What the kernels of a program compute and move, and how long each takes, priced once.
#pragma once

#include <vector>

#include "orrery/generate/node_writer.hpp"
#include "orrery/hardware/accelerator.hpp"
#include "orrery/parallel/program.hpp"

namespace orrery::generate {

class KernelWorks {
 public:
  KernelWorks(const parallel::Program& program, const hardware::Accelerator& accelerator);

  // Of an item that is a kernel.
  [[nodiscard]] const Work& of(parallel::BlockId block, std::size_t item) const { return works_[block][item]; }
  // The same of decode, after the KV cache has grown by `tokens`.
  [[nodiscard]] Work grown(const parallel::KernelLaunch& launch, std::int64_t tokens) const;

 private:
  const hardware::Accelerator& accelerator_;
  IdVector<parallel::BlockId, std::vector<Work>> works_;
};

}  // namespace orrery::generate
