// A size is not a time.
#include "orrery/core/units.hpp"

using namespace orrery;  // NOLINT(google-build-using-namespace)

void wait(Seconds) {}

int main() {
#ifdef SHOULD_FAIL
  wait(1_GiB);
#else
  wait(1_s);
#endif
}
