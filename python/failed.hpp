// A user's mistake on its way to a Python exception.
#pragma once

#include <stdexcept>
#include <utility>

#include "orrery/core/error.hpp"
#include "orrery/report/json.hpp"

namespace orrery::python {

// what(): the document of --json, from which orrery/__init__.py makes the exception.
class Failed : public std::runtime_error {
 public:
  explicit Failed(const Failure& failure) : std::runtime_error(report::errors_json(failure)) {}
};

}  // namespace orrery::python
