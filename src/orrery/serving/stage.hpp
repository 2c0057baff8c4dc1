// Stages of a request outside its engine: query embedding, vector search, reranking, stores of keys and values, tools.
// Docs: docs/models/serving.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "orrery/config/record.hpp"
#include "orrery/hardware/accelerator.hpp"
#include "orrery/serving/station.hpp"

namespace orrery::serving {

enum class StageKind : std::uint8_t {
  embed,         // an encoder over the tokens of the query
  retrieve,      // vector search: flat, IVF or HNSW
  rerank,        // a cross-encoder over the query with each passage
  tool,          // a delay
  kv_retrieval,  // a store of keys and values of the beginnings of prompts
};

// One entry of `stages` of a scenario. A server is one machine, or `shards` of them.
struct Stage {
  std::string name;  // default: its kind
  StageKind kind = StageKind::tool;
  StagePlace place = StagePlace::before_prefill;
  std::string accelerator;   // empty: that of the cluster
  BytesPerSecond bandwidth;  // of memory; 0: the accelerator's. Of the link of a store; 0: the cluster's outermost
  FlopsPerSecond flops;      // 0: the accelerator's dense peak in bf16
  double efficiency = 0.6;   // part of `flops` that its GEMMs reach
  std::optional<std::int64_t> servers;  // default: 1; of a tool, unlimited
  std::int64_t shards = 1, batch = 1;
  Seconds latency;
  double latency_cv = 0;  // coefficient of variation of the latency, which is log-normal; 0: constant
  double parameters = 0;
  std::int64_t tokens = 64, passages = 0, passage_tokens = 0;
  double vectors = 0;
  std::int64_t dimensions = 1024, vector_bytes = 0, lists = 0, probed = 0;
  std::int64_t ef = 0;                        // HNSW
  Seconds read_latency{400e-9};               // of a random read and the distance of its vector
  std::optional<double> hit_rate;             // of a store
  std::optional<std::int64_t> prefix_tokens;  // that a store finds; none: those of the session's earlier turns
  std::int64_t adds_tokens = 0;
  config::Node written;  // in the scenario's file, for the places of errors

  // Servers of the queue; 0: as many as there are requests.
  [[nodiscard]] std::int64_t queue_servers() const { return servers.value_or(kind == StageKind::tool ? 0 : 1); }
};

// Where the file has the field of the stage; without that field, or with none (""), where it has the stage.
[[nodiscard]] Place place_of(const Stage& stage, std::size_t number, const std::string& field);

// The entries of `stages`: a sequence of mappings. Errors of all of them: fields that the kind does not use included.
[[nodiscard]] Result<std::vector<Stage>> read_stages(const config::Node& node);

// Rates of the machine where the stage does not state them.
[[nodiscard]] Stage on_machine(Stage stage, const hardware::Accelerator& accelerator);

// The queue of a stage whose rates are known. `token_bytes`: keys and values of a token, of the whole model. Times:
// bytes / bandwidth and FLOPs / (flops x efficiency), per shard.
//   embed     reads 2 B x parameters, shared; computes 2 x parameters x tokens
//   rerank    the same with passages x (tokens + passage_tokens) tokens
//   retrieve  flat: reads vectors x vector_bytes, shared, computes 2 x vectors x dimensions;
//             IVF: reads lists x dimensions x 4 B, shared, and vectors x probed / lists x vector_bytes for each
//             request, computes 2 x dimensions x (lists + vectors x probed / lists);
//             HNSW: ef x log2(vectors / shards) random reads of vector_bytes for each request, each of read_latency
//             and, if a bandwidth is known, its bytes
//   kv_retrieval  prefix tokens x token_bytes / bandwidth on a hit
[[nodiscard]] StationOptions station_of(const Stage& stage, Bytes token_bytes = Bytes(0));

// A request alone in the stage; `prompt`: tokens of the longest prompt, of which a store may find all but one. An
// error, at the stage, if it takes longer than kLongestStageSeconds or if a rate is not known.
[[nodiscard]] Result<void> check_time(const Stage& stage, std::size_t number, Bytes token_bytes, std::int64_t prompt);

}  // namespace orrery::serving

namespace orrery::config {

template <>
struct EnumNames<serving::StageKind> {
  using K = serving::StageKind;
  static constexpr std::array<std::pair<K, std::string_view>, 5> value{{{K::embed, "embed"},
                                                                        {K::retrieve, "retrieve"},
                                                                        {K::rerank, "rerank"},
                                                                        {K::tool, "tool"},
                                                                        {K::kv_retrieval, "kv-retrieval"}}};
};
template <>
struct EnumNames<serving::StagePlace> {
  using P = serving::StagePlace;
  static constexpr std::array<std::pair<P, std::string_view>, serving::kStagePlaces> value{
      {{P::before_prefill, "before-prefill"}, {P::after_answer, "after-answer"}, {P::between_turns, "between-turns"}}};
};
template <>
struct Described<serving::Stage> {
  static const Record<serving::Stage>& record();
};

}  // namespace orrery::config
