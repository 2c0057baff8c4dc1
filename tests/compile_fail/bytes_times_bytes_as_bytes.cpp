// A product has its own dimension.
#include "orrery/core/units.hpp"

using namespace orrery;  // NOLINT(google-build-using-namespace)

int main() {
#ifdef SHOULD_FAIL
  Bytes size = 1_GiB * 1_GiB;
#else
  Bytes size = 2.0 * 1_GiB;
#endif
  static_cast<void>(size);
}
