// A bare count has no unit.
#include "orrery/core/units.hpp"

using namespace orrery;  // NOLINT(google-build-using-namespace)

int main() {
#ifdef SHOULD_FAIL
  Bytes size = 4096;
#else
  Bytes size = Bytes(4096);
#endif
  static_cast<void>(size);
}
