// A unit is not dropped in silence.
#include "orrery/core/units.hpp"

using namespace orrery;  // NOLINT(google-build-using-namespace)

int main() {
#ifdef SHOULD_FAIL
  double time = 1_s;
#else
  double time = (1_s).value();
#endif
  static_cast<void>(time);
}
