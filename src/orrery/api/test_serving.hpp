// A small run of serving for the tests of this room.
#pragma once

#include <utility>

#include <gtest/gtest.h>

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

inline results::Serving run_of(const ServeRequest& request) {
  auto run = serve(ORRERY_SOURCE_DATA_DIR, request);
  EXPECT_TRUE(run.has_value()) << run.error().text();
  return run ? std::move(*run) : results::Serving{};
}

// A setting as a profile has it: there it need not have an effect in every run.
inline config::Node of_a_file(config::Node node) {
  node.place.file = "profile.yaml";
  return node;
}

}  // namespace orrery::api::serving_test
