#include "orrery/generate/request_batch.hpp"

#include <utility>

namespace orrery::generate {

namespace {

constexpr double kTokenId = 8.0;  // bytes that the last stage sends to the first one, per sequence

}  // namespace

RequestBatches::RequestBatches(const parallel::Program& program, Streams& streams)
    : program_(program),
      streams_(streams),
      messages_(program, streams.writer()),
      stage_(streams.writer().rank() / program.plan.stage_ranks()),
      chunk_(program.program_of(program.class_of(stage_).chunks.front())) {}

void RequestBatches::write(std::int64_t batches) {
  starts_.resize(static_cast<std::size_t>(program_.pipeline.micro_batches));
  for (batch_ = 0; batch_ < batches; ++batch_) {
    for (std::int64_t token = 0; token < program_.job.generate; ++token) {
      const std::int64_t passes =
          token == 0 ? program_.pipeline.micro_batches : decode_passes(program_.job, program_.plan);
      for (std::int64_t k = 0; k < passes && !streams_.writer().failed(); ++k) {
        NodeIds start = work_.compute;
        run(token, k);
        starts_[static_cast<std::size_t>(k)] = start;
        previous_start_ = std::move(start);
      }
    }
  }
}

void RequestBatches::run(std::int64_t token, std::int64_t micro_batch) {
  const auto& job = program_.job;
  const std::int64_t last = program_.plan.pp - 1, round = batch_ * job.generate + token;
  const Bytes activations =
      token == 0 ? program_.transfer_bytes : program_.transfer_bytes / static_cast<double>(job.prompt);
  const Bytes ids(kTokenId * static_cast<double>(program_.plan.micro_batch));
  const auto arrive = [&](const Parcel& parcel, std::int64_t from, Bytes bytes, const NodeIds& posted) {
    join(work_.compute, messages_.receive(parcel, from, bytes, posted));
  };
  if (stage_ > 0) { arrive({round, true, {stage_, 0}, micro_batch}, stage_ - 1, activations, previous_start_); }
  if (stage_ == 0 && token > 0) {
    arrive({round, false, {0, 0}, micro_batch}, last, ids, starts_[static_cast<std::size_t>(micro_batch)]);
  }
  streams_.run(work_, {.segment = token == 0 ? &chunk_.forward : &chunk_.decode,
                       .grown = token > 0 ? token - 1 : 0,
                       .prefix = token == 0 ? "prefill." : "decode."});
  if (stage_ < last) {
    messages_.send({round, true, {stage_ + 1, 0}, micro_batch}, activations, work_.compute);
  } else if (token + 1 < job.generate) {
    messages_.send({round + 1, false, {0, 0}, micro_batch}, ids, work_.compute);
  }
}

}  // namespace orrery::generate
