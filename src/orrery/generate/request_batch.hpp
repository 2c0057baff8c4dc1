// Batches of requests on one rank: the prefill of every micro-batch, then a token of every micro-batch at a time, or
// of all sequences together where there are no stages.
#pragma once

#include <cstdint>
#include <vector>

#include "orrery/generate/stage_messages.hpp"
#include "orrery/generate/streams.hpp"

namespace orrery::generate {

// A stage works on its micro-batches in order. The last stage sends the id of a token to the first one, which starts
// the next token of that micro-batch with it. Receives of activations are posted one task ahead, those of tokens when
// the micro-batch starts its token before: a last stage whose send waits for the receive (rendezvous) would not receive
// what the first stage sends it until then.
class RequestBatches {
 public:
  RequestBatches(const parallel::Program& program, Streams& streams);

  void write(std::int64_t batches);

 private:
  // Token 0: prefill.
  void run(std::int64_t token, std::int64_t micro_batch);

  const parallel::Program& program_;
  Streams& streams_;
  StageMessages messages_;
  std::int64_t stage_;
  const parallel::ChunkProgram& chunk_;
  std::int64_t batch_ = 0;
  Execution work_;
  NodeIds previous_start_;       // what the task before waited for
  std::vector<NodeIds> starts_;  // ... the last task of each micro-batch
};

}  // namespace orrery::generate
