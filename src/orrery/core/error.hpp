// Errors. Three kinds, three tools:
//   a user's mistake   -> Result<T> with one or more Diagnostic
//   a broken contract  -> ORRERY_ASSERT, which throws InternalError, so that a host process survives
//   a failed resource  -> an exception of the standard library, caught once in the application
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

namespace orrery {

// A position in a user's file or command line. Fields that are empty or zero are unknown and not printed.
struct Place {
  std::string file;  // path as the user gave it; empty for flags
  int line = 0;      // 1-based
  int column = 0;    // 1-based
  std::string path;  // JSON pointer ("/network/1/bandwidth") or flag ("--tp")

  friend bool operator==(const Place&, const Place&) = default;
};

// One error: `cluster.yaml:14:9 /network/1/bandwidth: "400" has no unit; did you mean "400 Gb/s"?`
struct Diagnostic {
  Place place;
  std::string message;  // names the value and, where there is one, the nearest right value

  [[nodiscard]] std::string text() const;
  friend bool operator==(const Diagnostic&, const Diagnostic&) = default;
};

// Why a request failed. `answer_is_no`: the input is valid and the answer is no (exit code 1: no plan fits); otherwise
// the input is invalid (exit code 2).
struct Failure {
  std::vector<Diagnostic> diagnostics;
  bool answer_is_no = false;

  [[nodiscard]] std::string text() const;  // one line per diagnostic
};

template <class T>
using Result = tl::expected<T, Failure>;

[[nodiscard]] tl::unexpected<Failure> fail(Place place, std::string message);
[[nodiscard]] tl::unexpected<Failure> fail(std::string message);

// A bug in Orrery: a contract inside the library does not hold.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void throw_internal_error(const char* expression, const char* file, int line);

// NOLINTBEGIN(cppcoreguidelines-macro-usage)
#define ORRERY_ASSERT(condition) \
  ((condition) ? void(0) : ::orrery::throw_internal_error(#condition, __FILE__, __LINE__))

#define ORRERY_CONCAT_IMPL(a, b) a##b
#define ORRERY_CONCAT(a, b) ORRERY_CONCAT_IMPL(a, b)

// ORRERY_TRY(name, expression): returns the failure of `expression`, or binds its value to `name`.
#define ORRERY_TRY(name, ...)                                                              \
  auto ORRERY_CONCAT(orrery_try_, __LINE__) = (__VA_ARGS__);                               \
  if (!ORRERY_CONCAT(orrery_try_, __LINE__)) {                                             \
    return ::tl::make_unexpected(std::move(ORRERY_CONCAT(orrery_try_, __LINE__)).error()); \
  }                                                                                        \
  auto name = std::move(*ORRERY_CONCAT(orrery_try_, __LINE__))
// NOLINTEND(cppcoreguidelines-macro-usage)

}  // namespace orrery
