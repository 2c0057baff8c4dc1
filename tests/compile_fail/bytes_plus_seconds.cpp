// Bytes and seconds do not add.
#include "orrery/core/units.hpp"

using namespace orrery;  // NOLINT(google-build-using-namespace)

int main() {
#ifdef SHOULD_FAIL
  auto total = 1_GiB + 1_s;
#else
  auto total = 1_GiB + 1_GiB;
#endif
  static_cast<void>(total);
}
