#include "orrery/simulate/stalled.hpp"

namespace orrery::simulate {

Failure stalled(const Job&, const Machine&) { return Failure{{{{}, "a graph cannot finish"}}, false}; }

}  // namespace orrery::simulate
