// Stages of a request before its engine: query embedding, vector search, reranking, tools. Docs:
// docs/models/serving.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "orrery/config/record.hpp"
#include "orrery/hardware/accelerator.hpp"
#include "orrery/serving/station.hpp"

namespace orrery::serving {

enum class StageKind : std::uint8_t {
  embed,     // an encoder over the tokens of the query
  retrieve,  // vector search, flat or IVF
  rerank,    // a cross-encoder over the query with each passage
  tool,      // a delay, without a queue
};

// One entry of `stages` of a scenario. A server is one machine, or `shards` of them.
struct Stage {
  std::string name;  // default: its kind
  StageKind kind = StageKind::tool;
  std::string accelerator;   // empty: that of the cluster
  BytesPerSecond bandwidth;  // of memory; 0: the accelerator's
  FlopsPerSecond flops;      // 0: the accelerator's dense peak in bf16
  double efficiency = 0.6;   // part of `flops` that its GEMMs reach
  std::int64_t servers = 1, shards = 1, batch = 1;
  Seconds latency;
  double parameters = 0;
  std::int64_t tokens = 64, passages = 0, passage_tokens = 0;
  double vectors = 0;
  std::int64_t dimensions = 1024, vector_bytes = 0, lists = 0, probed = 0;
  std::int64_t adds_tokens = 0;
};

// The entries of `stages`: a sequence of mappings.
[[nodiscard]] Result<std::vector<Stage>> read_stages(const config::Node& node);

// Rates of the machine where the stage does not state them.
[[nodiscard]] Stage on_machine(Stage stage, const hardware::Accelerator& accelerator);

// The queue of a stage whose rates are known. Times: bytes / bandwidth and FLOPs / (flops x efficiency), per shard.
//   embed     reads 2 B x parameters, shared; computes 2 x parameters x tokens
//   rerank    the same with passages x (tokens + passage_tokens) tokens
//   retrieve  flat: reads vectors x vector_bytes, shared, computes 2 x vectors x dimensions;
//             IVF: reads lists x dimensions x 4 B, shared, and vectors x probed / lists x vector_bytes for each
//             request, computes 2 x dimensions x (lists + vectors x probed / lists)
[[nodiscard]] StationOptions station_of(const Stage& stage);

}  // namespace orrery::serving

namespace orrery::config {

template <>
struct EnumNames<serving::StageKind> {
  using K = serving::StageKind;
  static constexpr std::array<std::pair<K, std::string_view>, 4> value{
      {{K::embed, "embed"}, {K::retrieve, "retrieve"}, {K::rerank, "rerank"}, {K::tool, "tool"}}};
};
template <>
struct Described<serving::Stage> {
  static const Record<serving::Stage>& record();
};

}  // namespace orrery::config
