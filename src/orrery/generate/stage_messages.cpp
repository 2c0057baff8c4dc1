#include "orrery/generate/stage_messages.hpp"

namespace orrery::generate {

using parallel::Program;

std::optional<ChunkPlace> neighbour(const Program& program, ChunkPlace place, int step) {
  const std::int64_t stages = program.plan.pp;
  if (program.pipeline.schedule == parallel::ScheduleKind::dualpipe) {
    const std::int64_t to = place.stage + (place.chunk == 0 ? step : -step);
    if (to < 0 || to >= stages) { return std::nullopt; }
    return ChunkPlace{to, place.chunk};
  }
  const std::int64_t position = place.chunk * stages + place.stage + step;
  if (position < 0 || position >= stages * program.pipeline.chunks) { return std::nullopt; }
  return ChunkPlace{position % stages, position / stages};
}

std::int64_t StageMessages::rank_on(std::int64_t stage) const {
  const std::int64_t stage_ranks = program_.plan.stage_ranks();
  return stage * stage_ranks + writer_.rank() % stage_ranks;
}

std::uint64_t StageMessages::tag(const Parcel& parcel) const {
  const auto& pipeline = program_.pipeline;
  const std::int64_t direction = parcel.round * 2 + (parcel.forward ? 0 : 1);
  const std::int64_t chunk = direction * pipeline.chunks + parcel.to.chunk;
  return static_cast<std::uint64_t>(chunk * pipeline.micro_batches + parcel.micro_batch);
}

void StageMessages::send(const Parcel& parcel, Bytes bytes, const NodeIds& parents) {
  const std::int64_t peer = rank_on(parcel.to.stage);
  if (peer == writer_.rank()) { return; }
  (void)writer_.send(parcel.forward ? "activations.send" : "gradients.send", {peer, tag(parcel), bytes}, parents);
}

NodeIds StageMessages::receive(const Parcel& parcel, std::int64_t from_stage, Bytes bytes, const NodeIds& parents) {
  const std::int64_t peer = rank_on(from_stage);
  if (peer == writer_.rank()) { return {}; }
  return {writer_.receive(parcel.forward ? "activations.receive" : "gradients.receive", {peer, tag(parcel), bytes},
                          parents)};
}

NodeIds StageMessages::gather(const parallel::CollectiveCall& call, const NodeIds& parents) {
  return {writer_.collective(parallel::kInputGather, call.collective, writer_.family(call.group, Lane::transfer),
                             call.bytes, parents)};
}

double tags_needed(const Program& program, std::int64_t steps) {
  const double rounds =
      static_cast<double>(steps) * (program.job.is_inference() ? static_cast<double>(program.job.generate) * 2.0 : 1.0);
  return rounds * 2.0 * static_cast<double>(program.pipeline.chunks) *
         static_cast<double>(program.pipeline.micro_batches);
}

}  // namespace orrery::generate
