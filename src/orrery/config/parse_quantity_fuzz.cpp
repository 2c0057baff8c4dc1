// Any text: a finite, non-negative value that prints and reads back, or a message.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "orrery/config/units_text.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery::config;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const Dimension dimension : {Dimension::bytes, Dimension::seconds, Dimension::flops, Dimension::bytes_per_second,
                                    Dimension::flops_per_second, Dimension::hertz}) {
    const auto value = parse_quantity(text, dimension);
    if (!value) { continue; }
    const auto back = parse_quantity(print_quantity(*value, dimension), dimension);
    if (!std::isfinite(*value) || *value < 0.0 || !back || *back != *value) { __builtin_trap(); }
  }
  return 0;
}
