// Quantities of different dimensions have no order.
#include "orrery/core/units.hpp"

using namespace orrery;  // NOLINT(google-build-using-namespace)

int main() {
#ifdef SHOULD_FAIL
  const bool less = 1_GiB < 2_flop;
#else
  const bool less = 1_GiB < 2_GiB;
#endif
  static_cast<void>(less);
}
