#include "orrery/serving/stage.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "orrery/config/node.hpp"

namespace orrery::config {

using serving::Stage;

const Record<Stage>& Described<Stage>::record() {
  using S = Stage;
  constexpr std::int64_t kMost = 1'000'000'000;
  static const auto record =
      Record<S>("stage", "A stage of a request outside its engine.")
          .optional("name", &S::name, "name in the answer; default: its kind")
          .required("kind", &S::kind, "what it does: embed, retrieve, rerank, kv-retrieval, tool")
          .optional("place", &S::place,
                    "when a request passes it: before-prefill, after-answer (E2E includes it), or between-turns (of a "
                    "session: before its next turn)")
          .optional("accelerator", &S::accelerator, "machine of a server, by catalogue name; default: the cluster's")
          .optional(
              "bandwidth", &S::bandwidth,
              "of the memory of a server; default: the accelerator's. kv-retrieval: of a link; default: the cluster's "
              "outermost links")
          .optional("flops", &S::flops, "peak of a server; default: the accelerator's in bf16")
          .optional("efficiency", &S::efficiency, "part of the peak that its GEMMs reach",
                    {.max = 1.0, .positive = true})
          .optional("servers", &S::servers, "servers of its pool, or links; default: 1, for tools unlimited",
                    {.min = 1, .max = kMost})
          .optional("shards", &S::shards, "machines of a server that hold parts of the vectors or weights",
                    {.min = 1, .max = kMost})
          .optional("batch", &S::batch, "requests that a server takes at a time at most", {.min = 1, .max = kMost})
          .optional("latency", &S::latency, "of each batch, besides reads and computation", {.max = Seconds(1e5)})
          .optional("latency_cv", &S::latency_cv,
                    "coefficient of variation of the latency, which is log-normal then; 0: constant",
                    {.min = 0.0, .max = 100.0})
          .optional("parameters", &S::parameters, "embed, rerank: parameters of the encoder", {.min = 0.0, .max = 1e13})
          .optional("tokens", &S::tokens, "embed, rerank: tokens of the query", {.min = 1, .max = kMost})
          .optional("passages", &S::passages, "rerank: passages that are compared with the query",
                    {.min = 0, .max = kMost})
          .optional("passage_tokens", &S::passage_tokens, "rerank: tokens of a passage", {.min = 0, .max = kMost})
          .optional("vectors", &S::vectors, "retrieve: vectors of the index", {.min = 0.0, .max = 1e15})
          .optional("dimensions", &S::dimensions, "retrieve: components of a vector", {.min = 1, .max = kMost})
          .optional("vector_bytes", &S::vector_bytes,
                    "retrieve: bytes of a stored vector or its code; 0: two for each component",
                    {.min = 0, .max = kMost})
          .optional("lists", &S::lists, "retrieve: inverted lists (IVF); 0: a flat index", {.min = 0, .max = kMost})
          .optional("probed", &S::probed, "retrieve: lists that a query searches", {.min = 0, .max = kMost})
          .optional("ef", &S::ef, "retrieve: candidates of a search in a graph (HNSW); 0: no graph",
                    {.min = 0, .max = kMost})
          .optional("read_latency", &S::read_latency,
                    "retrieve: of a random read of memory and the distance of its vector (HNSW)",
                    {.max = Seconds(1.0), .positive = true})
          .optional("hit_rate", &S::hit_rate, "kv-retrieval: part of the lookups that find the prefix",
                    {.min = 0.0, .max = 1.0})
          .optional("prefix_tokens", &S::prefix_tokens,
                    "kv-retrieval: tokens that a lookup finds; default: those of the session's earlier turns",
                    {.min = 1, .max = kMost})
          .optional("adds_tokens", &S::adds_tokens,
                    "tokens that it adds to the prompt; between-turns: to that of the next turn",
                    {.min = 0, .max = kMost});
  return record;
}

}  // namespace orrery::config

namespace orrery::serving {

namespace {

std::string problem_of_search(const Stage& stage) {
  if (stage.vectors <= 0) { return "retrieve needs vectors, for example 100000000"; }
  if (stage.ef > 0 && stage.lists > 0) { return "ef (HNSW) and lists (IVF) are two kinds of index; give one"; }
  if (stage.lists > 0 && (stage.probed < 1 || stage.probed > stage.lists)) {
    return fmt::format("probed is {}; valid: 1 to the {} lists", stage.probed, stage.lists);
  }
  return stage.lists == 0 && stage.probed > 0 ? "probed needs lists, for example 65536" : "";
}

std::string problem_of_kind(const Stage& stage) {
  switch (stage.kind) {
    case StageKind::embed: return stage.parameters > 0 ? "" : "embed needs parameters, for example 335000000";
    case StageKind::rerank:
      return stage.parameters > 0 && stage.passages > 0 ? "" : "rerank needs parameters and passages";
    case StageKind::retrieve: return problem_of_search(stage);
    case StageKind::tool: return stage.latency > Seconds(0) ? "" : "tool needs a latency, for example 2 s";
    case StageKind::kv_retrieval:
      if (!stage.hit_rate) { return "kv-retrieval needs a hit_rate from 0 to 1, for example 0.8"; }
      if (stage.place != StagePlace::before_prefill) { return "kv-retrieval has one place: before-prefill"; }
      return stage.batch == 1 ? "" : "batch is not valid for kv-retrieval: a link sends one prefix at a time";
  }
  return "";
}

// Fields that only one kind has.
std::string problem_of_fields(const Stage& stage) {
  if (stage.kind != StageKind::retrieve && stage.ef > 0) { return "ef is valid with kind retrieve only"; }
  if (stage.kind == StageKind::kv_retrieval) { return ""; }
  if (stage.hit_rate) { return "hit_rate is valid with kind kv-retrieval only"; }
  return stage.prefix_tokens ? "prefix_tokens is valid with kind kv-retrieval only" : "";
}

std::string problem_of(const Stage& stage) {
  if (auto wrong = problem_of_fields(stage); !wrong.empty()) { return wrong; }
  if (auto wrong = problem_of_kind(stage); !wrong.empty()) { return wrong; }
  if (stage.latency_cv > 0 && !(stage.latency > Seconds(0))) {
    return "latency_cv needs a latency, the mean, for example 2 s";
  }
  if (stage.adds_tokens > 0 && stage.place == StagePlace::after_answer) {
    return "adds_tokens is not valid after-answer: no prompt follows; valid places: before-prefill, between-turns";
  }
  return "";
}

}  // namespace

Result<std::vector<Stage>> read_stages(const config::Node& node) {
  if (node.kind != config::Kind::sequence) { return fail(node.place, "stages is a list of mappings with a kind"); }
  std::vector<Stage> stages;
  for (const config::Node& item : node.items) {
    ORRERY_TRY(stage, config::Described<Stage>::record().read(item));
    if (const auto wrong = problem_of(stage); !wrong.empty()) { return fail(item.place, wrong); }
    if (stage.name.empty()) {
      stage.name = config::EnumNames<StageKind>::value[static_cast<std::size_t>(stage.kind)].second;
    }
    stages.push_back(std::move(stage));
  }
  return stages;
}

Stage on_machine(Stage stage, const hardware::Accelerator& accelerator) {
  if (!(stage.bandwidth > BytesPerSecond(0))) {
    stage.bandwidth = accelerator.memory_efficiency * accelerator.memory_bandwidth;
  }
  if (!(stage.flops > FlopsPerSecond(0))) { stage.flops = accelerator.peak(hardware::Precision::bf16); }
  return stage;
}

namespace {

// Times of a machine of which each shard has a part of the work.
struct Shard {
  const Stage& stage;

  [[nodiscard]] Ticks reads(double bytes) const {
    return ticks_of(Bytes(bytes / static_cast<double>(stage.shards)) / stage.bandwidth);
  }
  [[nodiscard]] Ticks computes(double flops) const {
    return ticks_of(Flops(flops / static_cast<double>(stage.shards)) / (stage.efficiency * stage.flops));
  }
};

void add_search(StationOptions& station, const Stage& stage) {
  const Shard shard{stage};
  const auto dimensions = static_cast<double>(stage.dimensions);
  const double bytes = stage.vector_bytes > 0 ? static_cast<double>(stage.vector_bytes) : 2.0 * dimensions;
  if (stage.ef > 0) {  // shards search their graphs at the same time
    const double held = std::max(2.0, stage.vectors / static_cast<double>(stage.shards));
    const double reads = static_cast<double>(stage.ef) * std::log2(held);
    const Seconds fetch = stage.bandwidth > BytesPerSecond(0) ? Bytes(bytes) / stage.bandwidth : Seconds(0);
    station.read = ticks_of(reads * (stage.read_latency + fetch));
    return;
  }
  if (stage.lists == 0) {
    station.shared = shard.reads(stage.vectors * bytes);
    station.compute = shard.computes(2.0 * stage.vectors * dimensions);
    return;
  }
  const auto lists = static_cast<double>(stage.lists);
  const double searched = stage.vectors * static_cast<double>(stage.probed) / lists;
  constexpr double kCentroidBytes = 4.0;
  station.shared = shard.reads(lists * dimensions * kCentroidBytes);
  station.read = shard.reads(searched * bytes);
  station.compute = shard.computes(2.0 * dimensions * (lists + searched));
}

void add_encoder(StationOptions& station, const Stage& stage) {
  const std::int64_t tokens =
      stage.kind == StageKind::embed ? stage.tokens : stage.passages * (stage.tokens + stage.passage_tokens);
  constexpr double kWeightBytes = 2.0;
  const Shard shard{stage};
  station.shared = shard.reads(kWeightBytes * stage.parameters);
  station.compute = shard.computes(2.0 * stage.parameters * static_cast<double>(tokens));
}

}  // namespace

StationOptions station_of(const Stage& stage, Bytes token_bytes) {
  StationOptions station;
  station.servers = stage.queue_servers();
  station.batch = station.servers > 0 ? stage.batch : 1;
  station.fixed = ticks_of(stage.latency);
  station.fixed_cv = stage.latency_cv;
  station.place = stage.place;
  switch (stage.kind) {
    case StageKind::embed:
    case StageKind::rerank: add_encoder(station, stage); break;
    case StageKind::retrieve: add_search(station, stage); break;
    case StageKind::kv_retrieval:
      station.store = {stage.hit_rate.value_or(0.0), stage.prefix_tokens, token_bytes / stage.bandwidth};
      break;
    case StageKind::tool: break;
  }
  return station;
}

}  // namespace orrery::serving
