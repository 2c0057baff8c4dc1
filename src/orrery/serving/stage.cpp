#include "orrery/serving/stage.hpp"

#include <fmt/format.h>

#include "orrery/config/node.hpp"

namespace orrery::config {

using serving::Stage;

const Record<Stage>& Described<Stage>::record() {
  using S = Stage;
  constexpr std::int64_t kMost = 1'000'000'000;
  static const auto record =
      Record<S>("stage", "A stage of a request before its engine.")
          .optional("name", &S::name, "name in the answer; default: its kind")
          .required("kind", &S::kind, "what it does: embed, retrieve, rerank, tool")
          .optional("accelerator", &S::accelerator, "machine of a server, by catalogue name; default: the cluster's")
          .optional("bandwidth", &S::bandwidth, "of the memory of a server; default: the accelerator's")
          .optional("flops", &S::flops, "peak of a server; default: the accelerator's in bf16")
          .optional("efficiency", &S::efficiency, "part of the peak that its GEMMs reach",
                    {.max = 1.0, .positive = true})
          .optional("servers", &S::servers, "servers of its pool", {.min = 1, .max = kMost})
          .optional("shards", &S::shards, "machines of a server that hold parts of the vectors or weights",
                    {.min = 1, .max = kMost})
          .optional("batch", &S::batch, "requests that a server takes at a time at most", {.min = 1, .max = kMost})
          .optional("latency", &S::latency, "of each batch, besides reads and computation", {.max = Seconds(1e5)})
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
          .optional("adds_tokens", &S::adds_tokens, "tokens that it adds to the prompt", {.min = 0, .max = kMost});
  return record;
}

}  // namespace orrery::config

namespace orrery::serving {

namespace {

std::string problem_of(const Stage& stage) {
  switch (stage.kind) {
    case StageKind::embed: return stage.parameters > 0 ? "" : "embed needs parameters, for example 335000000";
    case StageKind::rerank:
      return stage.parameters > 0 && stage.passages > 0 ? "" : "rerank needs parameters and passages";
    case StageKind::retrieve:
      if (stage.vectors <= 0) { return "retrieve needs vectors, for example 100000000"; }
      if (stage.lists > 0 && (stage.probed < 1 || stage.probed > stage.lists)) {
        return fmt::format("probed is {}; valid: 1 to the {} lists", stage.probed, stage.lists);
      }
      return stage.lists == 0 && stage.probed > 0 ? "probed needs lists, for example 65536" : "";
    case StageKind::tool: return stage.latency > Seconds(0) ? "" : "tool needs a latency, for example 2 s";
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

StationOptions station_of(const Stage& stage) {
  StationOptions station;
  station.servers = stage.kind == StageKind::tool ? 0 : stage.servers;
  station.batch = stage.batch;
  station.fixed = ticks_of(stage.latency);
  if (stage.kind == StageKind::tool) { return station; }
  const auto shards = static_cast<double>(stage.shards);
  const auto reads = [&](double bytes) { return ticks_of(Bytes(bytes / shards) / stage.bandwidth); };
  const auto computes = [&](double flops) {
    return ticks_of(Flops(flops / shards) / (stage.efficiency * stage.flops));
  };
  if (stage.kind == StageKind::retrieve) {
    const auto dimensions = static_cast<double>(stage.dimensions);
    const double bytes = stage.vector_bytes > 0 ? static_cast<double>(stage.vector_bytes) : 2.0 * dimensions;
    if (stage.lists == 0) {
      station.shared = reads(stage.vectors * bytes);
      station.compute = computes(2.0 * stage.vectors * dimensions);
      return station;
    }
    const auto lists = static_cast<double>(stage.lists);
    const double searched = stage.vectors * static_cast<double>(stage.probed) / lists;
    constexpr double kCentroidBytes = 4.0;
    station.shared = reads(lists * dimensions * kCentroidBytes);
    station.read = reads(searched * bytes);
    station.compute = computes(2.0 * dimensions * (lists + searched));
    return station;
  }
  const std::int64_t tokens =
      stage.kind == StageKind::embed ? stage.tokens : stage.passages * (stage.tokens + stage.passage_tokens);
  constexpr double kWeightBytes = 2.0;
  station.shared = reads(kWeightBytes * stage.parameters);
  station.compute = computes(2.0 * stage.parameters * static_cast<double>(tokens));
  return station;
}

}  // namespace orrery::serving
