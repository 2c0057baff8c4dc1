// Names of number formats in tables, and the format in which an accelerator runs the GEMMs.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/hardware/accelerator.hpp"
#include "orrery/hardware/storage_format.hpp"

namespace orrery::validate {

// All formats in `text`, in order: "fp16/tf32 (a note)" is fp16 and tf32, "amp_bf16" bf16, "mxfp8" fp8. Text in
// parentheses counts only where nothing outside is known. w8a8 alone is int8; weight-only formats (w4a16, awq, int4)
// are converted before the GEMM: bf16.
[[nodiscard]] std::vector<hardware::Precision> formats_named(std::string_view text);

// The narrowest format of weights in `text`, where it is not `multiplied`, the format of the GEMMs: weight-only
// formats, and formats that the accelerator has no units for ("fp8" on A100).
[[nodiscard]] std::optional<hardware::StorageFormat> stored_format(std::string_view text,
                                                                   hardware::Precision multiplied);

// The narrowest of `formats` that `accelerator` supports (of equally narrow ones the fastest). Where it supports none,
// the narrowest wider format that it supports: libraries convert the operands. `formats` is not empty.
[[nodiscard]] hardware::Precision gemm_format(const std::vector<hardware::Precision>& formats,
                                              const hardware::Accelerator& accelerator);

}  // namespace orrery::validate
