#include "orrery/api/simulate.hpp"

#include "orrery/simulate/simulate.hpp"

namespace orrery::api {

Result<results::Simulation> simulate(const simulate::JobFiles& files) {
  ORRERY_TRY(job, simulate::read_job(files));
  return simulate::simulate(job);
}

}  // namespace orrery::api
