// Names of number formats in tables, and the format in which an accelerator runs the GEMMs.
#pragma once

#include <string_view>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/hardware/accelerator.hpp"

namespace orrery::validate {

// All formats in `text`, in order: "fp16/tf32 (a note)" is fp16 and tf32, "amp_bf16" bf16, "mxfp8" fp8. Text in
// parentheses counts only where nothing outside is known. int8 and w8a8 are fp8, which has the same rate on
// accelerators with both; weight-only formats (w4a16, awq, int4) are converted before the GEMM: bf16.
[[nodiscard]] std::vector<hardware::Precision> formats_named(std::string_view text);

// The narrowest of `formats` that `accelerator` supports (of equally narrow ones the fastest). Where it supports none,
// the narrowest wider format that it supports: libraries convert the operands. `formats` is not empty.
[[nodiscard]] hardware::Precision gemm_format(const std::vector<hardware::Precision>& formats,
                                              const hardware::Accelerator& accelerator);

}  // namespace orrery::validate
