// A batch of requests of a priced program: prefill of all prompts, then decode, one token of every sequence at a time.
//
// Static batching: all sequences start together, have the same prompt length and generate the same number of tokens. A
// replica's batch is split into micro-batches, which pass the pipeline one after another. The next token of a
// micro-batch starts when the previous one has left the last stage.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "orrery/estimate/explain.hpp"
#include "orrery/estimate/priced.hpp"
#include "orrery/parallel/program.hpp"

namespace orrery::estimate {

struct Generation {
  Seconds prefill;                  // from the start until every sequence has its first token
  Seconds decode;                   // from there to the last token of the last sequence
  Seconds last_token;               // of this, the last token of all sequences
  std::int64_t critical_stage = 0;  // the stage with the most work
  Cost busy;                        // work of the critical stage, all micro-batches and tokens
  std::vector<Cost> blocks;         // price of every block of the program; decode blocks at the first generated token

  [[nodiscard]] Seconds total() const { return prefill + decode; }
};

// Fabrics with the accelerators that run a block.
using MachinesOf = std::function<std::span<const network::Fabric* const>(parallel::BlockId block)>;

// Solves the batch. Stage durations: f(i) for prefill, d(i, k) for token k:
//
//   prefill: micro-batch j leaves stage i at e(j, i) = max( e(j, i - 1) + transfer, e(j - 1, i) ) + f(i)
//   decode:  the same for token k of micro-batch j; it enters stage 0 after token k - 1 left the last stage
//           and its id was sent to stage 0
//
// Every token is priced with the length of the KV cache at that token. Decode starts when all prefill has ended.
// `known`: prices of the program's first blocks, computed by price_block.
// `machines`: of a program on nodes of several kinds; a kernel that takes longer with every token does so as on the
// slowest of them.
[[nodiscard]] Generation solve_inference(const parallel::Program& program, const network::Fabric& fabric,
                                         std::span<const Cost> known = {}, const MachinesOf& machines = {});

// Everything except memory and terms.
[[nodiscard]] results::Estimate describe(const Context& context, const parallel::Program& program,
                                         const Generation& generation);

// Every item of the critical stage: segment "prefill", and "decode" at the first generated token.
[[nodiscard]] std::vector<results::Term> terms(const Context& context, const parallel::Program& program,
                                               const Generation& generation);

}  // namespace orrery::estimate
