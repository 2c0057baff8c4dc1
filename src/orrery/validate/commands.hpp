// Rows that are commands: `args` is what follows `orrery` on a command line, such as
// "estimate --model llama-3.1-8b --cluster dgx-h100 --devices 8 --global-batch 64 --seq 8192", and the prediction is
// its step time (or time of a batch of requests). "plan ..." is that of the fastest plan. Kernels on one device:
// `gemm ACCELERATOR FORMAT M N K` is a product, `attn MODEL CLUSTER SEQ [BATCH [STACK]] [burst]` the attention core of
// one layer, forward, for BATCH sequences (one) with the kernel of STACK (as `estimate` chooses it). With `burst` it
// was timed for a few milliseconds, before the power limit lowers the clock: 1 + power_slowdown times the rate of long
// jobs.
//
// Paths are relative to the folder of the table; "@name" is the YAML file of that name in the folder that is named as
// the table.
#pragma once

#include <string>

#include "orrery/estimate/request.hpp"
#include "orrery/validate/rules.hpp"

namespace orrery::validate {

// The words of a command line; double or single quotes join words, and are removed.
[[nodiscard]] std::vector<std::string> words_of(std::string_view line);

// The request of a row; that of "attn" is of one sequence on one device. Errors: another command, unknown flags,
// missing or invalid values.
[[nodiscard]] Result<estimate::Request> request_of(const CommandRow& row);

// The row as one of a kernel, if it is "gemm ...".
[[nodiscard]] std::optional<KernelRow> kernel_of(const CommandRow& row);

}  // namespace orrery::validate
