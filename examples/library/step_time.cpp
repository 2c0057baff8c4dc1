// The step time of a job, by the library. Usage: step_time CATALOGUE_FOLDER
#include <cstdio>

#include "orrery/api/orrery.hpp"

int main(int count, char** values) {
  if (count != 2) { return 2; }
  const orrery::api::Orrery orrery(values[1]);
  orrery::estimate::Request job;
  job.model = "llama-3.1-8b";
  job.cluster = "dgx-h100";
  job.devices = 64;
  job.global_batch = 64;
  job.seq = 8192;
  const auto answer = orrery.estimate(job);
  if (!answer) {
    std::fprintf(stderr, "%s\n", answer.error().text().c_str());
    return 2;
  }
  std::printf("%.6f s per step\n", answer->estimate.step_time.value());
  return 0;
}
