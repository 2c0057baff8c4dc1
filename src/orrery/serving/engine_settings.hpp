// What an inference engine's scheduler does, as a few settings; profiles of real engines are files of data/engines.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "orrery/config/record.hpp"
#include "orrery/core/units.hpp"
#include "orrery/hardware/accelerator.hpp"
#include "orrery/hardware/entry.hpp"

namespace orrery::serving {

enum class Scheduler : std::uint8_t {
  mixed,          // every iteration: one token of each running sequence, then parts of prompts up to the token budget
  prefill_first,  // iterations of prompts alone while any can be admitted, else one token of each running sequence
  static_batch,   // a batch starts when the one before has ended, whole prompts first
};

// What must fit in the cache before a request is admitted.
enum class Reserve : std::uint8_t {
  chunk,     // the part of the prompt that runs next
  prompt,    // the whole prompt
  estimate,  // the prompt and a part of what all running requests may still generate
  whole,     // prompt and output: nothing is ever preempted
};

enum class Preemption : std::uint8_t { recompute, swap };
enum class Policy : std::uint8_t { fcfs, priority };

// Of speculative_tokens.
inline constexpr std::int64_t kMostDrafts = 64;

struct EngineSettings {
  std::string name, description;
  std::string stack;  // of its kernels
  Scheduler scheduler = Scheduler::mixed;
  Policy policy = Policy::fcfs;
  Reserve reserve = Reserve::chunk;
  double reserve_ratio = 0.0;  // Reserve::estimate: expected part of the tokens that requests may still generate
  Preemption preemption = Preemption::recompute;
  std::int64_t max_batched_tokens = 8192;   // of an iteration
  std::int64_t max_sequences = 256;         // that run at a time
  bool chunked_prefill = true;              // prompts may be cut to fill an iteration
  std::int64_t long_prefill_threshold = 0;  // most tokens of one prompt in an iteration; 0: no limit
  std::int64_t block_tokens = 16;           // of a block of the cache
  std::int64_t blocks = 0;                  // of the cache; 0: what memory leaves
  double memory_use = 0.9;                  // part of device memory that the engine takes; 0: static_part()
  bool memory_of_free = false;              // memory_use counts what weights and activations leave
  bool memory_is_static = false;            // memory_use has no activations; they take of the rest
  bool prefix_cache = true;
  bool frees_windows = false;           // see its help
  std::int64_t speculative_tokens = 0;  // drafts that each decode iteration verifies; 0: no speculation
  double acceptance = 0.7;              // of a draft, if all before it are accepted
  double draft_layers = 1.0;            // layers of the draft model, each like one of the model's
  std::int64_t largest_graph = 512;     // sequences of the largest captured decode graph; 0: nothing is captured
  bool routes_padding = false;          // rows that pad a graph are sent to experts
  std::int64_t poll_interval = 1;       // decode iterations between looks at new requests
  std::int64_t balance_wait = 0;        // decode iterations that prompts wait until every rank of attention dp has one
  std::int64_t batch_wait = 0;          // decode iterations that prompts wait until they fill batch_wait_part
  double batch_wait_part = 1.0;         // of max_batched_tokens
  std::int64_t redundant_experts = 0;   // copies of experts of a layer, besides one each; see its help
  double expert_imbalance = 1.0;        // see its help
  std::int64_t two_batch_decodes = 0;   // see its help
  std::int64_t two_batch_prompts = 0;   // see its help
  Seconds step_host;                    // of an iteration, not hidden by the device
  Seconds layer_host;                   // to launch a layer, kernel by kernel; 0: only the stack's launches
  Seconds expert_layer_host;            // to launch a layer with experts of an iteration with prompts
  Seconds expert_parallel_layer_host;   // the same where ep is above 1; the longer of the two counts
  double expert_rate = 1.0;             // see its help
  double expert_math_rate = 1.0;        // see its help
  std::map<std::string, double> expert_math_rate_of;   // see its help
  std::optional<double> expert_weight_only_math_rate;  // see its help; none: expert_math_rate
  Seconds expert_latency;                              // of a grouped GEMM, besides the latency of a kernel
  std::int64_t expert_block_rows = 64;                 // see its help
  std::int64_t expert_parallel_block_rows = 0;         // with ep above 1, if more
  bool overlap_branches = false;                       // see its help
  bool wide_absorption = false;                        // see its help
  double software_age = 0.0;                           // months; see its help
  double age_slowdown = 0.0;                           // of a month; see its help
  Seconds prompt_host;                                 // to tokenise a token of a prompt, before the queue
  std::int64_t tokenizer_batch = 1;                    // prompts that are tokenised at the same time
  Seconds token_host;                // to detokenise and send tokens of a sequence, while the engine runs on
  std::int64_t stream_interval = 1;  // tokens of a sequence that are sent together
  Seconds sequence_host;             // of each sequence of an iteration that gets a token
  Seconds draft_host;                // of each sequence of an iteration with drafts
  Seconds transfer_setup{2e-3};      // of a request between a prefill and a decode engine, besides its bytes
  bool transfer_by_layer = false;    // keys and values are sent while a prompt is computed; see its help
  Seconds transfer_layer_host;       // of a prefill engine for each layer of a prompt that it sends, see its help
  Seconds request_overhead;          // of a request, before it is in the queue and after its first token
  hardware::Sources sources;
};

// Mean number of tokens of a decode iteration: accepted drafts and one more.
[[nodiscard]] double tokens_per_step(const EngineSettings& settings);

// Device time of an iteration of a model with experts relative to that with software of age 0.
[[nodiscard]] double slowdown_of_age(const EngineSettings& settings);

// The settings with all host times multiplied by `slowdown`.
[[nodiscard]] EngineSettings with_slower_host(EngineSettings settings, double slowdown);

// Time of the server for a token: it sends those of an iteration together, and at least `stream_interval`.
[[nodiscard]] Seconds stream_time(const EngineSettings& settings);

// Steps of a token each between looks at new requests: an iteration with drafts has several.
[[nodiscard]] std::int64_t poll_steps(const EngineSettings& settings);

// The same for a number of decode iterations.
[[nodiscard]] std::int64_t token_steps(const EngineSettings& settings, std::int64_t iterations);

// Sequences that a captured graph of at least `sequences` runs: 1, 2, 4, then multiples of 8.
[[nodiscard]] std::int64_t captured_size(std::int64_t sequences, std::int64_t largest);
// The largest captured size that is not above `sequences`.
[[nodiscard]] std::int64_t captured_below(std::int64_t sequences);

// SGLang's default for its static memory (weights and cache): all but a reserve for activations of prompts, captured
// graphs, large groups, attention dp and drafts. `memory`: of one accelerator;
// `ranks`: of tensor parallelism and attention dp together.
[[nodiscard]] double static_part(const EngineSettings& settings, Bytes memory, std::int64_t ranks, std::int64_t pp,
                                 std::int64_t attention_dp);

// A profile of data/engines, or a file.
[[nodiscard]] Result<EngineSettings> load_engine(const std::string& data_directory, const std::string& name);
[[nodiscard]] std::vector<std::string> engine_names(const std::string& data_directory);

// Entries for `orrery list engines`.
[[nodiscard]] Result<std::vector<hardware::EntrySummary>> list_engines(const std::string& data_directory);

// A file of settings, with their sources.
[[nodiscard]] std::string yaml_of(const EngineSettings& settings);

}  // namespace orrery::serving

namespace orrery::config {

template <>
struct EnumNames<serving::Scheduler> {
  using S = serving::Scheduler;
  static constexpr std::array<std::pair<S, std::string_view>, 3> value{
      {{S::mixed, "mixed"}, {S::prefill_first, "prefill-first"}, {S::static_batch, "static"}}};
};
template <>
struct EnumNames<serving::Policy> {
  using P = serving::Policy;
  static constexpr std::array<std::pair<P, std::string_view>, 2> value{{{P::fcfs, "fcfs"}, {P::priority, "priority"}}};
};
template <>
struct EnumNames<serving::Reserve> {
  using R = serving::Reserve;
  static constexpr std::array<std::pair<R, std::string_view>, 4> value{
      {{R::chunk, "chunk"}, {R::prompt, "prompt"}, {R::estimate, "estimate"}, {R::whole, "whole"}}};
};
template <>
struct EnumNames<serving::Preemption> {
  using P = serving::Preemption;
  static constexpr std::array<std::pair<P, std::string_view>, 2> value{
      {{P::recompute, "recompute"}, {P::swap, "swap"}}};
};
template <>
struct Described<serving::EngineSettings> {
  static const Record<serving::EngineSettings>& record();
};

}  // namespace orrery::config
