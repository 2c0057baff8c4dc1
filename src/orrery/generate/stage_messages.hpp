// Transfers between pipeline stages as pairs of messages.
#pragma once

#include <cstdint>
#include <optional>

#include "orrery/generate/node_writer.hpp"
#include "orrery/parallel/program.hpp"

namespace orrery::generate {

// A chunk of layers on a stage.
struct ChunkPlace {
  std::int64_t stage = 0, chunk = 0;
};

// The chunk before (step -1) or behind (step 1) another in the order of the model, if there is one. Interleaved chunks
// go round the stages; DualPipe's chunk 1 walks them backwards.
[[nodiscard]] std::optional<ChunkPlace> neighbour(const parallel::Program& program, ChunkPlace place, int step);

// What a message carries: both ends must make the same tag of it.
struct Parcel {
  std::int64_t round = 0;  // step of training; token of inference
  bool forward = true;     // activations, or a token; otherwise gradients
  ChunkPlace to;
  std::int64_t micro_batch = 0;
};

class StageMessages {
 public:
  // Needs tags_fit().
  StageMessages(const parallel::Program& program, NodeWriter& writer) : program_(program), writer_(writer) {}

  // `bytes`: what a rank sends.
  void send(const Parcel& parcel, Bytes bytes, const NodeIds& parents);
  struct Parents {
    NodeIds posted;  // of the receive
    NodeIds task;    // the end of the task before: what it has received in parts a rank gathers behind it, as
                     // Megatron-LM and DeepSpeed do
  };
  // The node behind which the parcel is complete. If ranks gathered when a message arrives, which differs between
  // ranks, they could disagree on the order of that gather and the collectives of the task before.
  [[nodiscard]] NodeId receive(const Parcel& parcel, std::int64_t from_stage, Bytes bytes, const Parents& parents);

 private:
  [[nodiscard]] std::uint64_t tag(const Parcel& parcel) const;
  [[nodiscard]] std::int64_t rank_on(std::int64_t stage) const;

  const parallel::Program& program_;
  NodeWriter& writer_;
};

// Readers take tags modulo 500,000,000; a job has this many.
[[nodiscard]] double tags_needed(const parallel::Program& program, std::int64_t steps);
inline constexpr double kMostTags = 500'000'000.0;

}  // namespace orrery::generate
