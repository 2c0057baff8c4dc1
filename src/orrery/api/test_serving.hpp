// A small run of serving for the tests of this room.
#pragma once

#include "orrery/api/serve.hpp"

namespace orrery::api::serving_test {

inline ServeRequest small_run() {
  ServeRequest request;
  request.scenario.model = "llama-3.1-8b";
  request.scenario.cluster = "dgx-h100";
  request.scenario.rate = 20.0;
  request.scenario.requests = 200;
  request.scenario.isl = 512;
  request.scenario.osl = 32;
  return request;
}

}  // namespace orrery::api::serving_test
