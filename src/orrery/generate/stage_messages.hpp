// Transfers between pipeline stages as pairs of messages.
#pragma once

#include <cstdint>
#include <optional>

#include "orrery/generate/node_writer.hpp"
#include "orrery/parallel/calls.hpp"
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

  // The node behind which the parcel, or its part, has arrived; none if it is made on this rank.
  [[nodiscard]] NodeIds receive(const Parcel& parcel, std::int64_t from_stage, Bytes bytes, const NodeIds& parents);

  // Gathers the parts of a parcel: parallel::input_gather(). `parents`: they have arrived, and the task before has
  // ended, as in Megatron-LM and DeepSpeed. If ranks gathered as soon as the parts arrive, which differs between ranks,
  // they could disagree on the order of that gather and the collectives of the task before, and wait for each other for
  // ever where a rank executes one collective at a time (ASTRA-sim).
  [[nodiscard]] NodeIds gather(const parallel::CollectiveCall& call, const NodeIds& parents);

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
