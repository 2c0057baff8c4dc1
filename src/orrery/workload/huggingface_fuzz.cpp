// Random JSON with a model_type gives a consistent model or an error with a place.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "orrery/core/error.hpp"
#include "orrery/workload/huggingface.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto node = config::parse_json(text, "config.json");
  if (!node || node->find("model_type") == nullptr) { return 0; }
  const auto model = workload::model_from_huggingface(*node, "fuzzed");
  if (!model) {
    ORRERY_ASSERT(!model.error().diagnostics.empty());
    return 0;
  }
  ORRERY_ASSERT(!workload::inconsistency(*model));
  ORRERY_ASSERT(workload::parameter_count(*model).total > 0);
  return 0;
}
