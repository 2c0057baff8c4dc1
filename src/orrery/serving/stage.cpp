#include "orrery/serving/stage.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "orrery/config/node.hpp"
#include "orrery/core/text.hpp"

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
              "outermost links",
              {.positive = true})
          .optional("flops", &S::flops, "peak of a server; default: the accelerator's in bf16", {.positive = true})
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

constexpr unsigned bit(StageKind kind) { return 1U << static_cast<unsigned>(kind); }

// Fields that some kinds do not use.
struct KindField {
  const char* name;
  unsigned kinds;
};

constexpr unsigned kEncoders = bit(StageKind::embed) | bit(StageKind::rerank);
constexpr unsigned kSearch = bit(StageKind::retrieve);
constexpr unsigned kStore = bit(StageKind::kv_retrieval);
constexpr unsigned kTool = bit(StageKind::tool);
constexpr KindField kKindFields[] = {
    {"accelerator", kEncoders | kSearch | kTool},
    {"bandwidth", kEncoders | kSearch | kStore},
    {"flops", kEncoders | kSearch},
    {"efficiency", kEncoders | kSearch},
    {"shards", kEncoders | kSearch | kTool},
    {"batch", kEncoders | kSearch | kTool},
    {"parameters", kEncoders},
    {"tokens", kEncoders},
    {"passages", bit(StageKind::rerank)},
    {"passage_tokens", bit(StageKind::rerank)},
    {"vectors", kSearch},
    {"dimensions", kSearch},
    {"vector_bytes", kSearch},
    {"lists", kSearch},
    {"probed", kSearch},
    {"ef", kSearch},
    {"read_latency", kSearch},
    {"hit_rate", kStore},
    {"prefix_tokens", kStore},
};

// Errors between the fields of a stage, each at the field that is wrong.
class StageErrors {
 public:
  StageErrors(const Stage& stage, const config::Node& item) : stage_(stage), item_(item) {}

  std::vector<Diagnostic> list() {
    check_kind_fields();
    switch (stage_.kind) {
      case StageKind::embed:
        if (!(stage_.parameters > 0)) { missing("embed needs parameters, for example 335000000"); }
        break;
      case StageKind::rerank:
        if (!(stage_.parameters > 0)) { missing("rerank needs parameters, for example 568000000"); }
        if (stage_.passages < 1) { missing("rerank needs passages, for example 50"); }
        break;
      case StageKind::retrieve: check_search(); break;
      case StageKind::tool: check_tool(); break;
      case StageKind::kv_retrieval: check_store(); break;
    }
    check_latency_and_tokens();
    return std::move(found_);
  }

 private:
  [[nodiscard]] bool has(const char* field) const { return item_.find(field) != nullptr; }
  void wrong(const char* field, std::string message) {
    const config::Node* value = item_.find(field);
    found_.push_back({value != nullptr ? value->place : item_.place, std::move(message)});
  }
  void missing(std::string message) { found_.push_back({item_.place, std::move(message)}); }

  void check_kind_fields() {
    for (const auto& [field, kinds] : kKindFields) {
      if (!has(field) || (kinds & bit(stage_.kind)) != 0) { continue; }
      std::vector<std::string> valid;
      for (const auto& [kind, name] : config::EnumNames<StageKind>::value) {
        if ((kinds & bit(kind)) != 0) { valid.emplace_back(name); }
      }
      wrong(field,
            fmt::format("is not valid for {}; valid for: {}", config::enum_name(stage_.kind), join(valid, ", ")));
    }
  }

  void check_search() {
    if (!(stage_.vectors > 0)) {
      missing("retrieve needs vectors, for example 100000000");
      return;
    }
    const bool is_graph = stage_.ef > 0;
    if (is_graph && stage_.lists > 0) { wrong("ef", "ef (HNSW) and lists (IVF) are two kinds of index; give one"); }
    if (stage_.lists > 0 && (stage_.probed < 1 || stage_.probed > stage_.lists)) {
      wrong("probed", fmt::format("probed is {}; valid: 1 to the {} lists", stage_.probed, stage_.lists));
    }
    if (stage_.lists == 0 && stage_.probed > 0) { wrong("probed", "needs lists, for example 65536"); }
    const double held = stage_.vectors / static_cast<double>(stage_.shards);
    if (held < 1) {
      wrong("shards", fmt::format("{} is more than the {} vectors", stage_.shards, stage_.vectors));
    } else if (static_cast<double>(stage_.ef) > held) {
      wrong("ef", fmt::format("{} is more than the {:.10g} vectors of a shard", stage_.ef, std::floor(held)));
    }
    if (!is_graph && has("read_latency")) { wrong("read_latency", "has an effect only with ef (HNSW)"); }
    for (const char* field : {"flops", "efficiency"}) {
      if (is_graph && has(field)) {
        wrong(field, "has no effect with ef (HNSW): a search in a graph is priced by reads");
      }
    }
  }

  void check_tool() {
    if (!(stage_.latency > Seconds(0))) { missing("tool needs a latency, for example 2 s"); }
    for (const char* field : {"accelerator", "batch"}) {
      if (!stage_.servers && has(field)) {
        wrong(field, "needs servers: a tool without servers has no queue and no price");
      }
    }
    if (stage_.accelerator.empty() && has("shards")) {
      wrong("shards", "has an effect on a tool with an accelerator only, on its price");
    }
  }

  void check_store() {
    if (!stage_.hit_rate) { missing("kv-retrieval needs a hit_rate from 0 to 1, for example 0.8"); }
    if (stage_.place != StagePlace::before_prefill) {
      wrong("place",
            fmt::format("{} is not valid for kv-retrieval; valid: before-prefill", config::enum_name(stage_.place)));
    }
  }

  void check_latency_and_tokens() {
    if (stage_.latency_cv > 0 && !(stage_.latency > Seconds(0))) {
      wrong("latency_cv", "needs a latency, the mean, for example 2 s");
    }
    if (stage_.adds_tokens > 0 && stage_.place == StagePlace::after_answer) {
      wrong("adds_tokens", "is not valid after-answer: no prompt follows; valid places: before-prefill, between-turns");
    }
  }

  const Stage& stage_;
  const config::Node& item_;
  std::vector<Diagnostic> found_;
};

}  // namespace

Place place_of(const Stage& stage, std::size_t number, const std::string& field) {
  if (const config::Node* node = stage.written.find(field)) { return node->place; }
  Place place = stage.written.place;
  if (place.path.empty()) { place.path = fmt::format("/stages/{}", number); }
  if (!field.empty()) { place.path += "/" + field; }
  return place;
}

Result<std::vector<Stage>> read_stages(const config::Node& node) {
  if (node.kind != config::Kind::sequence) { return fail(node.place, "stages is a list of mappings with a kind"); }
  std::vector<Stage> stages;
  std::vector<Diagnostic> found;
  for (const config::Node& item : node.items) {
    auto stage = config::Described<Stage>::record().read(item);
    auto wrong = stage ? StageErrors(*stage, item).list() : std::move(stage.error().diagnostics);
    std::move(wrong.begin(), wrong.end(), std::back_inserter(found));
    if (!stage) { continue; }
    if (stage->name.empty()) { stage->name = config::enum_name(stage->kind); }
    stage->written = item;
    stages.push_back(std::move(*stage));
  }
  if (!found.empty()) { return tl::make_unexpected(config::failure_of(std::move(found))); }
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

// Times of a stage, in seconds: see StationOptions.
struct StageCost {
  Seconds shared, read, compute;
};

// Times of a machine of which each shard has a part of the work.
struct Shard {
  const Stage& stage;

  [[nodiscard]] Seconds reads(double bytes) const {
    return Bytes(bytes / static_cast<double>(stage.shards)) / stage.bandwidth;
  }
  [[nodiscard]] Seconds computes(double flops) const {
    return Flops(flops / static_cast<double>(stage.shards)) / (stage.efficiency * stage.flops);
  }
};

StageCost search_cost(const Stage& stage) {
  const Shard shard{stage};
  const auto dimensions = static_cast<double>(stage.dimensions);
  const double bytes = stage.vector_bytes > 0 ? static_cast<double>(stage.vector_bytes) : 2.0 * dimensions;
  if (stage.ef > 0) {  // shards search their graphs at the same time
    const double held = std::max(2.0, stage.vectors / static_cast<double>(stage.shards));
    const double reads = static_cast<double>(stage.ef) * std::log2(held);
    const Seconds fetch = stage.bandwidth > BytesPerSecond(0) ? Bytes(bytes) / stage.bandwidth : Seconds(0);
    return {Seconds(0), reads * (stage.read_latency + fetch), Seconds(0)};
  }
  if (stage.lists == 0) {
    return {shard.reads(stage.vectors * bytes), Seconds(0), shard.computes(2.0 * stage.vectors * dimensions)};
  }
  const auto lists = static_cast<double>(stage.lists);
  const double searched = stage.vectors * static_cast<double>(stage.probed) / lists;
  constexpr double kCentroidBytes = 4.0;
  return {shard.reads(lists * dimensions * kCentroidBytes), shard.reads(searched * bytes),
          shard.computes(2.0 * dimensions * (lists + searched))};
}

StageCost encoder_cost(const Stage& stage) {
  const double tokens = stage.kind == StageKind::embed ? static_cast<double>(stage.tokens)
                                                       : static_cast<double>(stage.passages) *
                                                             static_cast<double>(stage.tokens + stage.passage_tokens);
  constexpr double kWeightBytes = 2.0;
  const Shard shard{stage};
  return {shard.reads(kWeightBytes * stage.parameters), Seconds(0), shard.computes(2.0 * stage.parameters * tokens)};
}

StageCost cost_of(const Stage& stage) {
  switch (stage.kind) {
    case StageKind::embed:
    case StageKind::rerank: return encoder_cost(stage);
    case StageKind::retrieve: return search_cost(stage);
    case StageKind::kv_retrieval:
    case StageKind::tool: break;
  }
  return {};
}

}  // namespace

StationOptions station_of(const Stage& stage, Bytes token_bytes) {
  StationOptions station;
  station.servers = stage.queue_servers();
  station.batch = station.servers > 0 ? stage.batch : 1;
  station.fixed = ticks_of(stage.latency);
  station.fixed_cv = stage.latency_cv;
  station.place = stage.place;
  const StageCost cost = cost_of(stage);
  station.shared = ticks_of(cost.shared);
  station.read = ticks_of(cost.read);
  station.compute = ticks_of(cost.compute);
  if (stage.kind == StageKind::kv_retrieval) {
    station.store = {stage.hit_rate.value_or(0.0), stage.prefix_tokens, token_bytes / stage.bandwidth};
  }
  return station;
}

Result<void> check_time(const Stage& stage, std::size_t number, Bytes token_bytes, std::int64_t prompt) {
  const StageCost cost = cost_of(stage);
  if (!std::isfinite(cost.compute.value())) {
    return fail(place_of(stage, number, "flops"), "is missing: the accelerator has no bf16 matrix units");
  }
  Seconds time = stage.latency + std::max(cost.shared + cost.read, cost.compute);
  if (stage.kind == StageKind::kv_retrieval) {
    const auto found = static_cast<double>(std::min(stage.prefix_tokens.value_or(prompt), prompt - 1));
    time += found * (token_bytes / stage.bandwidth);
  }
  if (time.value() <= kLongestStageSeconds) { return {}; }
  return fail(place_of(stage, number, ""), fmt::format("{} takes {:.3g} s for a request; valid: at most {:.0f} s",
                                                       stage.name, time.value(), kLongestStageSeconds));
}

}  // namespace orrery::serving
