// How much a test does in this build.
#pragma once

namespace orrery::test {

// Whether this build has the address sanitizer, which makes tests 5 to 10 times slower. Tests that enumerate fixed
// cases leave out there the larger ones, which run the same code as the smaller ones; the release build runs all.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitizers = true;
#else
inline constexpr bool kSanitizers = false;
#endif

// How many of `count` random cases a test runs: a fifth with the sanitizer. The cases are the first ones of the release
// build.
template <class Count>
constexpr Count cases(Count count) {
  return kSanitizers ? (count + 4) / 5 : count;
}

}  // namespace orrery::test
