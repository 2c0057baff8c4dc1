#include "orrery/results/serving.hpp"

namespace orrery::results {

std::vector<TimePart> TokenTime::parts() const {
  return {{"GEMMs (weights)", gemms_s},
          {"attention (KV cache)", attention_s},
          {"other kernels", others_s},
          {"collectives", collectives_s},
          {"draft model", drafts_s},
          {"host", host_s},
          {"prompts of other requests", prompts_s},
          {"waits", waits_s}};
}

std::vector<TimePart> Serving::ttft_parts() const {
  double before = 0;
  for (const ServingStage& stage : stages) { before += stage.place == "before-prefill" ? stage.time.mean : 0.0; }
  std::vector<TimePart> parts = {
      {"request overhead", request_overhead_s}, {"stages", before}, {"tokenisation", tokenisation_s}};
  const auto add = [&](const char* name, const Distribution& times) { parts.push_back({name, times.mean, &times}); };
  add("in the queue", queue);
  if (place) { add("for a place to decode", *place); }
  add("prefill", prefill);
  if (transfer) { add("transfer", *transfer); }
  if (sending) { add("for the server", *sending); }
  return parts;
}

}  // namespace orrery::results
