#include "orrery/generate/kernel_works.hpp"

#include "orrery/cost/kernel_cost.hpp"
#include "orrery/parallel/calls.hpp"

namespace orrery::generate {

namespace {

Work work_of(const hardware::Kernel& kernel, const hardware::Accelerator& accelerator) {
  return {kernel.flops, kernel.bytes + kernel.casts, cost::kernel_cost(kernel, accelerator).time};
}

}  // namespace

KernelWorks::KernelWorks(const parallel::Program& program, const hardware::Accelerator& accelerator)
    : accelerator_(accelerator) {
  for (std::size_t b = 0; b < program.blocks.size(); ++b) {
    std::vector<Work>& works = works_.emplace_back();
    for (const auto& item : program.block(parallel::BlockId(b)).items) {
      const auto* launch = item.kernel();
      works.push_back(launch != nullptr ? work_of(launch->kernel, accelerator) : Work{});
    }
  }
}

Work KernelWorks::grown(const parallel::KernelLaunch& launch, std::int64_t tokens) const {
  return work_of(parallel::grown_kernel(launch, tokens), accelerator_);
}

}  // namespace orrery::generate
