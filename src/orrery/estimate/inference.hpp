// A batch of requests of a priced program: the prompts together, then a token of every sequence at a time.
//
// Static batching: all sequences start together, have prompts of one length, and make as many tokens. The batch of a
// replica is cut into micro-batches, which follow each other through the pipeline; a micro-batch's next token starts
// when its last one has left the last stage.
#pragma once

#include <span>
#include <vector>

#include "orrery/estimate/explain.hpp"
#include "orrery/estimate/priced.hpp"
#include "orrery/parallel/program.hpp"

namespace orrery::estimate {

struct Generation {
  Seconds prefill;                  // from the start until every sequence has its first token
  Seconds decode;                   // from there to the last token of the last sequence
  Seconds last_token;               // of that, the last round
  std::int64_t critical_stage = 0;  // the one that works longest
  Cost busy;                        // its work, all micro-batches and tokens
  std::vector<Cost> blocks;         // price of every block of the program, with the cache as the first token finds it

  [[nodiscard]] Seconds total() const { return prefill + decode; }
};

// Solves the batch, for stage durations f(i) of a prompt and d(i, k) of token k:
//
//   prefill: micro-batch j leaves stage i at e(j, i) = max( e(j, i - 1) + transfer, e(j - 1, i) ) + f(i)
//   decode:  token k of micro-batch j the same, entering stage 0 no earlier than its token k - 1 left the last stage
//            (and came back from there)
//
// Every token is priced with the cache as long as it is then. Decode starts when the whole prefill has ended.
// `known`: prices of the program's first blocks, as price_block gives them.
[[nodiscard]] Generation solve_inference(const parallel::Program& program, const network::Fabric& fabric,
                                         std::span<const Cost> known = {});

// Everything but memory and terms.
[[nodiscard]] results::Estimate describe(const Context& context, const parallel::Program& program,
                                         const Generation& generation);

// Every item of the critical stage: segment "prefill", and "decode" as the first generated token finds it.
[[nodiscard]] std::vector<results::Term> terms(const Context& context, const parallel::Program& program,
                                               const Generation& generation);

}  // namespace orrery::estimate
