// Any bytes: a tree or a message, never a crash. What was read prints and reads back as the same tree.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "orrery/config/node.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery::config;
  const auto node = parse_json({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!node) { return 0; }
  const auto back = parse_json(print_json(*node), "fuzz");
  if (!back || !(*back == *node)) { __builtin_trap(); }
  return 0;
}
