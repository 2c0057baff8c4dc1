#include "orrery/calibrate/nccl_output.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)orrery::calibrate::parse_nccl_output(text, "input");
  (void)orrery::calibrate::parse_nccl_output(text, "input", {orrery::Collective::all_reduce, 8});
  return 0;
}
