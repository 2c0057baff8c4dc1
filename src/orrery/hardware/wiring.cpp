#include "orrery/hardware/wiring.hpp"

#include <algorithm>

#include "orrery/core/error.hpp"

namespace orrery::hardware {

namespace {

// Part of a ring is a line: traffic has one direction instead of two.
constexpr double kLineOfRing = 0.5;

}  // namespace

std::int64_t links_of_device(Wiring wiring, std::int64_t size) {
  switch (wiring) {
    case Wiring::switched:
    case Wiring::rails: return 1;
    case Wiring::ring: return size > 2 ? 2 : 1;
    case Wiring::mesh: return std::max<std::int64_t>(size - 1, 1);
  }
  throw_internal_error("known wiring", __FILE__, __LINE__);
}

double bandwidth_part(Wiring wiring, std::int64_t size, std::int64_t members) {
  if (members >= size) { return 1.0; }
  switch (wiring) {
    case Wiring::switched:
    case Wiring::rails: return 1.0;
    case Wiring::ring: return kLineOfRing;
    case Wiring::mesh:
      return static_cast<double>(std::max<std::int64_t>(members - 1, 1)) / static_cast<double>(size - 1);
  }
  throw_internal_error("known wiring", __FILE__, __LINE__);
}

}  // namespace orrery::hardware
