#include "orrery/serving/token_time.hpp"

#include <algorithm>
#include <cmath>

#include "orrery/core/integers.hpp"

namespace orrery::serving {

namespace {

// Token-seconds, by what they are spent on.
struct TokenSeconds {
  DecodeParts decode;
  double prompts = 0;

  [[nodiscard]] double sum() const { return decode.sum().value() + prompts; }
};

void add(TokenSeconds& spent, BuiltPool& pool, const EngineTotals& totals) {
  spent.prompts += totals.paused_token_seconds;
  for (std::size_t i = 0; i < totals.decodes.size(); ++i) {
    const DecodeUse& use = totals.decodes[i];
    const double steps = use.steps + use.mixed_steps;
    if (steps == 0) { continue; }
    const auto sequences = static_cast<std::int64_t>(i);
    DecodeParts parts = pool.price().decode_parts(sequences, std::llround(use.contexts / steps));
    parts.host += Seconds(seconds_of(pool.shape().decode_host));
    const double time = parts.sum().value();
    const double mixed = std::min(use.mixed_token_seconds, real(sequences) * use.mixed_steps * time);
    spent.decode += parts * ((use.token_seconds + mixed) / time);
    spent.prompts += use.mixed_token_seconds - mixed;
  }
}

}  // namespace

std::optional<results::TokenTime> token_time_of(const Deployment& deployment, const Workload& load,
                                                const FleetRun& run) {
  double tokens = 0, time = 0;
  for (std::size_t i = 0; i < run.outcomes.size(); ++i) {
    const Outcome& outcome = run.outcomes[i];
    const std::int64_t generated = outcome.cut ? outcome.cut_tokens : load.requests[i].output;
    if (outcome.refused || outcome.first < 0 || !outcome.done() || generated < 1) { continue; }
    tokens += real(generated - 1);  // a branch that is cut may wait after its only token
    time += seconds_of(outcome.last - outcome.first);
  }
  if (tokens == 0) { return std::nullopt; }
  TokenSeconds spent;
  auto engine = run.engines.begin();
  for (const auto& pool : deployment.pools) {
    for (std::int64_t i = 0; i < pool->inputs().degrees.replicas; ++i) { add(spent, *pool, *engine++); }
  }
  const auto mean = [&](Seconds part) { return part.value() / tokens; };
  const DecodeParts& decode = spent.decode;
  return results::TokenTime{time / tokens,       mean(decode.gemms),       mean(decode.attention),
                            mean(decode.others), mean(decode.collectives), mean(decode.drafts),
                            mean(decode.host),   spent.prompts / tokens,   (time - spent.sum()) / tokens};
}

}  // namespace orrery::serving
