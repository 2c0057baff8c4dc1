// What tables call number formats, and what an accelerator makes of them.
#pragma once

#include <string_view>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/hardware/accelerator.hpp"

namespace orrery::validate {

// All that `text` names, in its order: "fp16/tf32 (a note)" is fp16 and tf32, "amp_bf16" bf16, "mxfp8" fp8. What is in
// parentheses counts only where nothing outside is known. 8-bit whole numbers (int8, w8a8) go as fp8, which the
// accelerators that have both multiply as fast; weights alone in fewer bits (w4a16, awq, int4) are made wide before
// they are multiplied: bf16.
[[nodiscard]] std::vector<hardware::Precision> formats_named(std::string_view text);

// The narrowest of `formats`, and of those as narrow the one that `accelerator` multiplies fastest, among those that it
// has. Where it has none of them, the narrowest of all is multiplied as the narrowest wider one that it has: libraries
// convert operands for which there are no units. `formats` may not be empty.
[[nodiscard]] hardware::Precision multiplied_as(const std::vector<hardware::Precision>& formats,
                                                const hardware::Accelerator& accelerator);

}  // namespace orrery::validate
