// Interruptions by cause, in the proportions of one published run.
#pragma once

#include <array>
#include <string_view>

namespace orrery::campaign {

struct CauseCount {
  std::string_view name;
  int count;
};

// Unexpected interruptions of Llama 3 405B in 54 days on 16,384 H100 (arXiv:2407.21783, table 5), counted; "silent
// corruption" is left out, as campaigns have a rate of their own for it. 413 of 419.
inline constexpr std::array<CauseCount, 9> kLlama3Causes = {{
    {"GPU and NVLink", 148},
    {"HBM", 72},
    {"software", 56},  // 54, and 2 of dependencies
    {"switches and cables", 35},
    {"host maintenance", 32},
    {"GPU SRAM and processor", 36},  // 19 and 17
    {"NIC", 7},
    {"unknown", 7},                   // timeouts of the watchdog
    {"host, power and cooling", 20},  // thermal 6, SSD 3, power supply 3, chassis 2, IO board 2, CPU 2, memory 2
}};

}  // namespace orrery::campaign
