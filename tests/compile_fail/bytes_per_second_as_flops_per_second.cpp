// A bandwidth is not a compute rate.
#include "orrery/core/units.hpp"

using namespace orrery;  // NOLINT(google-build-using-namespace)

int main() {
#ifdef SHOULD_FAIL
  FlopsPerSecond rate = 1_GiB / 1_s;
#else
  BytesPerSecond rate = 1_GiB / 1_s;
#endif
  static_cast<void>(rate);
}
