// A bare number has no unit.
#include "orrery/core/units.hpp"

using namespace orrery;  // NOLINT(google-build-using-namespace)

int main() {
#ifdef SHOULD_FAIL
  Seconds time = 2.0;
#else
  Seconds time = Seconds(2.0);
#endif
  static_cast<void>(time);
}
