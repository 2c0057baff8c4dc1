#include "orrery/serving/engine_settings.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "orrery/config/node.hpp"
#include "orrery/core/text.hpp"
#include "orrery/hardware/records.hpp"

namespace orrery::config {

using serving::EngineSettings;

namespace {

constexpr std::int64_t kMostOfAStep = 1'000'000'000, kMostBlocks = 1'000'000'000'000;
constexpr std::int64_t kMostBlockRows = 256;
constexpr double kMostAge = 24.0;    // months: no measurement is older
constexpr Seconds kMostHost(10.0);   // of the host, for one of what it does
constexpr Seconds kMostWait(100.0);  // of a request

// Of kernels and their launches, which the program's prices do not have.
void add_kernels(Record<EngineSettings>& record) {
  using E = EngineSettings;
  record.optional("step_host", &E::step_host, "host time of an iteration that the device waits for", {.max = kMostHost})
      .optional("layer_host", &E::layer_host,
                "host time to launch a layer; an iteration that is not captured as a graph (prompts, decodes of more "
                "than largest_graph sequences) takes at least the sum over layers",
                {.max = kMostHost})
      .optional("expert_layer_host", &E::expert_layer_host,
                "host time to launch a layer with experts in an iteration with prompts, if longer than layer_host",
                {.max = kMostHost})
      .optional("expert_parallel_layer_host", &E::expert_parallel_layer_host,
                "host time to launch a layer with experts in an iteration with prompts and ep above 1 (its kernels are "
                "not in the compiled graph), if longer than expert_layer_host",
                {.max = kMostHost})
      .optional("expert_rate", &E::expert_rate,
                "part of the rate of memory that grouped GEMMs reach where weights are stored narrower than they are "
                "multiplied or the accelerator has no 4-bit matrix units (kernels from before such units)",
                {.min = 0.05, .max = 1.0})
      .optional("expert_math_rate", &E::expert_math_rate,
                "part of grouped_rate that the grouped GEMMs of expert_rate reach", {.min = 0.05, .max = 1.0})
      .optional("expert_math_rate_of", &E::expert_math_rate_of,
                "part of grouped_rate that other grouped GEMMs reach, by number format of the inputs (bf16, fp8, fp4; "
                "default of each: 1)",
                {.min = 0.05, .max = 1.0})
      .optional(
          "expert_weight_only_math_rate", &E::expert_weight_only_math_rate,
          "part of grouped_rate and portable_gemm that grouped GEMMs reach whose weights are stored narrower than they "
          "are multiplied; default: expert_math_rate",
          {.min = 0.05, .max = 1.0})
      .optional("expert_latency", &E::expert_latency,
                "time of a grouped GEMM besides the latency of a kernel: tokens are sorted by expert and quantised",
                {.max = kMostHost})
      .optional("expert_block_rows", &E::expert_block_rows,
                "rows of the smallest block that grouped GEMMs pad an expert's tokens to, on NVIDIA GPUs without 4-bit "
                "matrix units: 8, 16, 32, 64, 128 or 256 (other numbers: the next of these). With 4-bit units, and for "
                "weights that are stored narrower than they are multiplied, it is 8, on AMD GPUs 32",
                {.min = 1, .max = kMostBlockRows})
      .optional("expert_parallel_block_rows", &E::expert_parallel_block_rows,
                "with ep above 1, the larger of this and expert_block_rows counts (kernels are tuned for slices of "
                "experts alone)",
                {.min = 0, .max = kMostBlockRows})
      .optional("overlap_branches", &E::overlap_branches,
                "on NVIDIA GPUs, shared experts run on a second stream with the routed ones, and latent attention's "
                "down-projection of keys and values with that of queries: their latency is hidden")
      .optional(
          "wide_absorption", &E::wide_absorption,
          "on NVIDIA GPUs, decode steps of latent attention multiply the weights that they absorb in 16 bits, from "
          "copies of their own")
      .optional("software_age", &E::software_age,
                "months that the engine's software is older than that of June 2026, which profiles describe",
                {.min = 0.0, .max = kMostAge})
      .optional(
          "age_slowdown", &E::age_slowdown,
          "of models with experts: part by which the device takes longer for each month of software_age, compounded",
          {.min = 0.0, .max = 0.2});
}

// Of hosts and transfers.
void add_hosts(Record<EngineSettings>& record) {
  using E = EngineSettings;
  record
      .optional("sequence_host", &E::sequence_host,
                "host time for each sequence of an iteration (sampler, scheduler) that the device waits for",
                {.max = kMostHost})
      .optional("draft_host", &E::draft_host,
                "host time for each sequence of an iteration with drafts that the device waits for", {.max = kMostHost})
      .optional("transfer_setup", &E::transfer_setup,
                "time of a request between a prefill and a decode engine (handshake, polling), besides its bytes",
                {.max = kMostWait})
      .optional("transfer_by_layer", &E::transfer_by_layer,
                "with prefill engines: a decode engine gives a request its place and memory before the prompt begins, "
                "and keys and values of a layer are sent while later layers compute; else both follow the prompt, and "
                "only what the decode engine's prefix cache does not have is sent")
      .optional("transfer_layer_host", &E::transfer_layer_host,
                "with prefill engines: host time for each layer of a prompt whose keys and values an engine sends, "
                "before its next iteration; ranks of attention dp spend it at the same time",
                {.max = kMostHost})
      .optional("prompt_host", &E::prompt_host, "host time to tokenise a token of a prompt, before the engine's queue",
                {.max = kMostHost})
      .optional("tokenizer_batch", &E::tokenizer_batch,
                "prompts that an engine's server tokenises at the same time, on a core each; 1: one after the other",
                {.min = 1, .max = 1'000'000})
      .optional("token_host", &E::token_host,
                "host time to detokenise and stream tokens of a sequence that are sent together (stream_interval); an "
                "engine's server sends one after the other, while the engine runs on",
                {.max = kMostHost})
      .optional("stream_interval", &E::stream_interval,
                "tokens of a sequence that the server sends together; the tokens of one iteration (several with "
                "drafts) are always "
                "sent together",
                {.min = 1, .max = 1'000'000})
      .optional("request_overhead", &E::request_overhead,
                "time of a request outside the engine before its first token, whatever its length (HTTP)",
                {.max = kMostWait});
}

// Of experts that ranks share out.
void add_shared_experts(Record<EngineSettings>& record) {
  using E = EngineSettings;
  record
      .optional("redundant_experts", &E::redundant_experts,
                "extra copies of experts in a layer (with ep above 1); at least so many that all ranks hold equally "
                "many",
                {.min = 0, .max = 65536})
      .optional("expert_imbalance", &E::expert_imbalance,
                "with ep above 1: tokens of the rank whose experts get most, relative to the mean of all ranks; the "
                "others wait for it. Engines report its inverse (balancedness)",
                {.min = 1.0, .max = 1000.0})
      .optional("two_batch_decodes", &E::two_batch_decodes,
                "sequences of a rank (with pp, of a micro-batch) from which a decode iteration is divided into two "
                "batches, one of which "
                "computes while tokens of the other travel to experts and back (SGLang: two-batch overlap, which "
                "divides from 2; vLLM: dual batch overlap); 0: never. Needs attention dp and ep above 1",
                {.min = 0, .max = kMostOfAStep})
      .optional("two_batch_prompts", &E::two_batch_prompts,
                "the same for tokens of a rank in an iteration with prompts", {.min = 0, .max = kMostOfAStep});
}

// How long requests wait for decode steps.
void add_waits(Record<EngineSettings>& record) {
  using E = EngineSettings;
  record
      .optional("poll_interval", &E::poll_interval,
                "decode iterations between looks at new requests; an idle engine and one that has just run prompts "
                "looks at once",
                {.min = 1, .max = 1000000})
      .optional("balance_wait", &E::balance_wait,
                "attention dp: decode iterations that prompts wait at most until every rank has one; 0: prompts do "
                "not wait",
                {.min = 0, .max = 1000000})
      .optional("batch_wait", &E::batch_wait,
                "decode iterations that prompts wait at most until they fill batch_wait_part of max_batched_tokens; "
                "0: prompts do not wait",
                {.min = 0, .max = 1000000})
      .optional("batch_wait_part", &E::batch_wait_part,
                "part of max_batched_tokens that prompts fill before they need not wait", {.min = 0.0, .max = 1.0});
}

}  // namespace

const Record<EngineSettings>& Described<EngineSettings>::record() {
  using E = EngineSettings;
  static const Record<E> record = [] {
    Record<E> fields("engine", "The scheduler of an inference engine.");
    fields.optional("name", &E::name, "name; default: the file's name")
        .optional("description", &E::description, "the engine and its version")
        .required("stack", &E::stack, "software-stack profile of its kernels", {.nonempty = true})
        .optional("scheduler", &E::scheduler,
                  "mixed: an iteration has a token of each running sequence and parts of prompts; prefill-first: "
                  "prompts run in iterations of their own, before others; static: one batch after the other")
        .optional("policy", &E::policy, "order of the queue: fcfs, or priority (the column of a trace; 0 is first)")
        .optional("reserve", &E::reserve,
                  "what must fit in the cache to admit a request: the next chunk, its prompt, an estimate of what "
                  "running requests will need, or its whole prompt and output")
        .optional("reserve_ratio", &E::reserve_ratio,
                  "reserve estimate: expected part of the tokens that requests may still generate",
                  {.min = 0.0, .max = 1.0})
        .optional("preemption", &E::preemption, "keys and values of a preempted request: recompute or swap")
        .optional("max_batched_tokens", &E::max_batched_tokens, "tokens of an iteration at most",
                  {.min = 1, .max = kMostOfAStep})
        .optional("max_sequences", &E::max_sequences, "sequences that run at a time at most",
                  {.min = 1, .max = kMostOfAStep})
        .optional("chunked_prefill", &E::chunked_prefill, "prompts may be cut to fill an iteration")
        .optional("long_prefill_threshold", &E::long_prefill_threshold,
                  "tokens of one prompt in an iteration at most; 0: no limit", {.min = 0})
        .optional("block_tokens", &E::block_tokens, "tokens of a block of the cache", {.min = 1, .max = 4096})
        .optional("blocks", &E::blocks, "blocks of the cache; 0: what memory leaves", {.min = 0, .max = kMostBlocks})
        .optional("memory_use", &E::memory_use,
                  "part of device memory that the engine takes; 0: SGLang's default, which follows from memory, "
                  "max_batched_tokens, degrees and drafts",
                  {.min = 0.0, .max = 1.0})
        .optional("memory_of_free", &E::memory_of_free,
                  "memory_use is the cache's part of the memory that weights and activations leave, instead of the "
                  "engine's part of all memory")
        .optional("memory_is_static", &E::memory_is_static,
                  "memory_use is the part of weights and cache alone; activations take of the rest")
        .optional("prefix_cache", &E::prefix_cache, "blocks of prompts are kept and found again by content")
        .optional(
            "frees_windows", &E::frees_windows,
            "the memory of keys and values behind sliding windows is freed, if some layers have windows and others "
            "do not; with --prefill-replicas or tiers of the cache all positions are kept")
        .optional("speculative_tokens", &E::speculative_tokens,
                  "drafts that a decode iteration verifies (MTP, EAGLE); 0: no speculation",
                  {.min = 0, .max = serving::kMostDrafts})
        .optional("acceptance", &E::acceptance, "probability that a draft is accepted if those before it are",
                  {.min = 0.0, .max = 1.0})
        .optional("draft_layers", &E::draft_layers, "layers of the draft model, each like one of the model's",
                  {.min = 0.0, .max = 1000.0})
        .optional("largest_graph", &E::largest_graph,
                  "sequences (of a rank of attention dp, of a micro-batch) in the largest captured decode graph; 0: "
                  "nothing is captured",
                  {.min = 0})
        .optional("routes_padding", &E::routes_padding,
                  "rows that pad a decode step to the size of a graph are sent to experts as tokens are; else they use "
                  "no experts");
    add_shared_experts(fields);
    add_waits(fields);
    add_kernels(fields);
    add_hosts(fields);
    fields.optional("sources", &E::sources, "figure: where it was read").check([](const E& settings) {
      return hardware::unknown_precision("expert_math_rate_of", settings.expert_math_rate_of);
    });
    return fields;
  }();
  return record;
}

}  // namespace orrery::config

namespace orrery::serving {

namespace {

bool is_file(const std::string& name) {
  return name.find('/') != std::string::npos || name.ends_with(".yaml") || name.ends_with(".yml");
}

}  // namespace

double tokens_per_step(const EngineSettings& settings) {
  double tokens = 1.0, reached = 1.0;
  for (std::int64_t i = 0; i < settings.speculative_tokens; ++i) {
    reached *= settings.acceptance;
    tokens += reached;
  }
  return tokens;
}

EngineSettings with_slower_host(EngineSettings settings, double slowdown) {
  using E = EngineSettings;
  for (Seconds E::* host :
       {&E::step_host, &E::layer_host, &E::expert_layer_host, &E::expert_parallel_layer_host, &E::sequence_host,
        &E::draft_host, &E::transfer_layer_host, &E::prompt_host, &E::token_host}) {
    settings.*host *= slowdown;
  }
  return settings;
}

double slowdown_of_age(const EngineSettings& settings) {
  return std::pow(1.0 + settings.age_slowdown, settings.software_age);
}

Seconds stream_time(const EngineSettings& settings) {
  const double together = std::max(static_cast<double>(settings.stream_interval), tokens_per_step(settings));
  return (1.0 / together) * settings.token_host;
}

std::int64_t token_steps(const EngineSettings& settings, std::int64_t iterations) {
  return std::llround(static_cast<double>(iterations) * tokens_per_step(settings));
}

std::int64_t poll_steps(const EngineSettings& settings) {
  return std::max<std::int64_t>(1, token_steps(settings, settings.poll_interval));
}

std::int64_t captured_size(std::int64_t sequences, std::int64_t largest) {
  if (sequences > largest || sequences <= 2) { return sequences; }
  return std::min(sequences <= 4 ? 4 : (sequences + 7) / 8 * 8, largest);
}

std::int64_t captured_below(std::int64_t sequences) {
  if (sequences <= 2) { return sequences; }
  return sequences < 4 ? 2 : sequences < 8 ? 4 : sequences / 8 * 8;
}

double static_part(const EngineSettings& settings, Bytes memory, std::int64_t ranks, std::int64_t pp,
                   std::int64_t attention_dp) {
  constexpr double kMiB = 1048576.0, kGiB = 1024.0;  // in MiB
  const double all = memory.value() / kMiB;
  // Sequences of the largest captured batch, by memory.
  const double graphs = all >= 160.0 * kGiB  ? 512.0
                        : all >= 60.0 * kGiB ? (ranks < 4 ? 256.0 : 512.0)
                        : all >= 35.0 * kGiB ? (ranks < 4 ? 32.0 : 160.0)
                        : all >= 20.0 * kGiB ? (ranks < 4 ? 24.0 : 80.0)
                                             : 8.0;
  double reserved = 512.0 + 1.5 * std::max(2048.0, static_cast<double>(settings.max_batched_tokens)) + 2.0 * graphs;
  reserved += static_cast<double>(ranks * pp) / 8.0 * kGiB;
  if (attention_dp > 1) { reserved += (graphs > 300.0 ? 4.5 : 3.0) * graphs * static_cast<double>(attention_dp); }
  if (all > 60.0 * kGiB) { reserved = std::max(reserved, 10.0 * kGiB); }
  if (settings.speculative_tokens > 0) { reserved += 2.0 * kGiB; }
  return std::clamp((all - reserved) / all, 0.05, 1.0);
}

std::vector<std::string> engine_names(const std::string& data_directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(data_directory + "/engines", error)) {
    if (entry.path().extension() == ".yaml") { names.push_back(entry.path().stem().string()); }
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<EngineSettings> load_engine(const std::string& data_directory, const std::string& name) {
  std::string file = name;
  if (!is_file(name)) {
    const auto known = engine_names(data_directory);
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      const auto near = nearest(name, known);
      return fail({{}, 0, 0, "--engine"},
                  fmt::format("unknown engine {}; {}", quote(name),
                              near ? fmt::format("did you mean {}?", quote(*near)) : "valid: " + join(known, ", ")));
    }
    file = fmt::format("{}/engines/{}.yaml", data_directory, name);
  }
  ORRERY_TRY(node, config::read_file(file));
  ORRERY_TRY(settings, config::Described<EngineSettings>::record().read(node));
  if (settings.name.empty()) { settings.name = std::filesystem::path(file).stem().string(); }
  return settings;
}

Result<std::vector<hardware::EntrySummary>> list_engines(const std::string& data_directory) {
  std::vector<hardware::EntrySummary> entries;
  for (const auto& name : engine_names(data_directory)) {
    ORRERY_TRY(engine, load_engine(data_directory, name));
    entries.push_back({engine.name, engine.description, 0, 0});
    hardware::count_sources(engine.sources, entries.back());
  }
  return entries;
}

std::string yaml_of(const EngineSettings& settings) {
  return config::Described<EngineSettings>::record().print_yaml(settings);
}

}  // namespace orrery::serving
