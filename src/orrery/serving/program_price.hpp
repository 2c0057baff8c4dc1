// The time of an iteration from the lowered program of the model on one engine's ranks.
//
// A program of m sequences with one-token prompts has all that an iteration needs: its prefill segment is the work of m
// tokens, its decode segment that of m sequences, each without attention over the cache, which depends on lengths and
// is priced by itself. What was priced once is kept: a step then costs a few look-ups.
//
// Left out: sequences of unequal length in one attention kernel (all have the mean length); latents that a chunk
// projects up again; differences between the ranks of data-parallel attention, but for the tokens of prompts.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "orrery/cost/kernel_cost.hpp"
#include "orrery/hardware/cluster.hpp"
#include "orrery/hardware/stack.hpp"
#include "orrery/network/fabric.hpp"
#include "orrery/network/price_cache.hpp"
#include "orrery/parallel/lowerer.hpp"
#include "orrery/parallel/plan.hpp"
#include "orrery/serving/step_price.hpp"
#include "orrery/serving/two_batches.hpp"
#include "orrery/workload/model.hpp"

namespace orrery::serving {

enum class Exact : std::uint8_t {
  no,   // numbers of tokens are interpolated between 16 points an octave, contexts between points of an octave
  yes,  // each is priced: as slow as an estimate, for static batches
};

struct PriceOptions {
  std::int64_t largest_graph = 0;  // decode steps of up to so many sequences run the next larger captured graph
  Exact exact = Exact::no;
  // Speculation: a decode iteration verifies so many drafts of every sequence, and generates a mean number of tokens.
  // Times are those of one token.
  std::int64_t drafts = 0;
  double tokens_per_step = 1.0;
  double draft_layers = 1.0;
  // Of the host, for each layer that is not captured; for one with experts, in an iteration with prompts.
  Seconds layer_host, expert_host;
  // Of grouped GEMMs by kernels of generations before 4-bit matrix units, and of narrow weights: parts of the rates of
  // memory and arithmetic.
  double expert_rate = 1.0, expert_math_rate = 1.0;
  std::map<std::string, double> expert_math_rate_of;   // of other grouped GEMMs, by precision: parts of grouped_rate
  std::optional<double> expert_weight_only_math_rate;  // of narrow weights, instead of expert_math_rate
  Seconds expert_latency;                              // of a grouped GEMM, besides the latency of a kernel
  std::int64_t expert_block_rows = 0;                  // of a grouped GEMM's smallest block; 0: its default
  bool overlap_branches = false;  // kernels of a second stream hide their latency under those of the first
  Seconds draft_host;             // of the host, for each sequence of an iteration with drafts
  Seconds sequence_host;          // of the host, for each sequence that gets a token
  std::int64_t most_tokens = std::numeric_limits<std::int64_t>::max();  // of a rank in an iteration with prompts
  bool routes_padding = false;  // rows that pad a decode step to a captured size use experts as tokens do
  double slowdown = 1.0;        // of the device, for models with experts: older software
  // Sequences of a decode iteration, and tokens of one with prompts, of a rank, from which it is two batches whose
  // computation and transfers overlap; 0: never.
  std::int64_t two_batch_decodes = 0, two_batch_prompts = 0;
};

// Where the time of a decode iteration goes. Of one token, where drafts make an iteration generate several.
struct DecodeParts {
  Seconds gemms;        // of experts, too: mostly the time to read weights
  Seconds attention;    // mostly the time to read the cache
  Seconds others;       // norms, activations, sampling
  Seconds collectives;  // and transfers between pipeline stages
  Seconds drafts;       // the draft model
  Seconds host;         // that the device waits for

  [[nodiscard]] Seconds sum() const { return gemms + attention + others + collectives + drafts + host; }
  DecodeParts& operator+=(const DecodeParts& other);
  [[nodiscard]] DecodeParts operator*(double factor) const;
};

// What one engine runs on.
struct EngineMemory {
  Bytes weights, activations;  // of the fullest rank; activations of an iteration with the most tokens
  Bytes kv_per_token;          // of the rank that keeps most
  Bytes kv_of_stages;          // of a rank of each pipeline stage, together
  // Of kv_per_token: layers without a sliding window, and those with one, each of the stage that keeps most of them.
  Bytes kv_without_windows, kv_in_windows;
  std::int64_t window = 0;  // positions that the latter attend to; 0: none
  Bytes state;              // of a sequence, whatever its length: recurrent layers
};

class ProgramPrice final : public StepPrice {
 public:
  // `plan` has the degrees of one engine; dp > 1 is data-parallel attention. Model, cluster and stack must outlive it.
  // Requires a plan that is valid for batches of one sequence per rank.
  ProgramPrice(const workload::Model& model, const hardware::Cluster& cluster, const hardware::Stack& stack,
               const parallel::Job& job, const parallel::Plan& plan, const PriceOptions& options);

  [[nodiscard]] DecodeLine decode(std::int64_t sequences, std::int64_t contexts) override;
  [[nodiscard]] Ticks mixed(const MixedStep& step) override;

  // Of decode(sequences, contexts).at: their sum. Of two batches that overlap, collectives are what is not hidden.
  [[nodiscard]] DecodeParts decode_parts(std::int64_t sequences, std::int64_t contexts);

  // Whether tokens travel to experts on other ranks.
  [[nodiscard]] bool dispatches() const { return dispatches_; }

  [[nodiscard]] EngineMemory memory(std::int64_t most_tokens, std::int64_t most_sequences);
  [[nodiscard]] const network::Fabric& fabric() const { return fabric_; }

 private:
  // Attention of a decode step that becomes longer with the context.
  struct Core {
    parallel::KernelLaunch launch;
    double repeat = 0;
  };
  // Attention of a decode step over the cache, by the sum of contexts.
  struct CoreLine {
    Ticks low = 0, per_token = 0;      // low: at `begin`
    std::int64_t begin = 0, last = 0;  // affine between them
    [[nodiscard]] Ticks at(std::int64_t contexts) const { return low + per_token * (contexts - begin); }
  };
  // Of `m` sequences or tokens on each rank.
  struct Table {
    Seconds linear, decode, head;   // without attention over the cache; linear and decode without the head
    Seconds decode_experts;         // the same of decode
    DecodeParts parts, head_parts;  // of decode and head; no part of a host is known yet
    Seconds launches;               // by the host, of a decode step that is not captured
    Seconds experts;          // of linear: grouped GEMMs and what is next to them, whose tokens come from all ranks
    Seconds prompt_launches;  // by the host, of linear
    Phases phases, decode_phases;  // of linear and decode, without the host
    std::vector<Core> cores;
    double cores_apart = 0, cores_all = 0;  // layers with cores: those whose tokens stay on their rank, and all
    Bytes kept, most_kept;                  // by a token: on all stages together, and on the one that keeps most
    Bytes most_whole, most_windowed;        // of most_kept: layers without a sliding window, and with one
    std::vector<Ticks> at;                  // [octave of the context]: attention, all cores
  };
  // Fused attention over a prompt, of one kind of layer.
  struct PromptCore {
    hardware::Kernel kernel;  // of one token
    double repeat = 0;
    double flops_per_pair = 0, window = 0;  // window 0: none
    Bytes kept;                             // bytes of a position in the cache
    cost::MatrixPeaks peaks;
    // The last one that was priced: prompts of one length are cut in the same way again and again.
    std::int64_t prompts = 0;
    double pairs = 0, tokens = 0, seen = 0;
    Seconds time;
    bool is_like_before = false;  // but for `repeat`, that of the core before it: another stage, or kind of layer
    bool scans = false;           // a recurrent mixer, in chunks of `kernel.n`: its work grows with tokens, not pairs
  };

  [[nodiscard]] parallel::Job job_of(std::int64_t per_rank, std::int64_t prompt) const;
  [[nodiscard]] parallel::Plan plan_of(std::int64_t per_rank) const;
  [[nodiscard]] const parallel::Program& lower(std::int64_t per_rank, std::int64_t prompt);
  [[nodiscard]] std::int64_t per_rank(std::int64_t all) const;
  [[nodiscard]] Table& table(std::int64_t per_rank);
  [[nodiscard]] double grouped_part(const hardware::Kernel& kernel, bool is_new) const;
  [[nodiscard]] Seconds kernel_time(std::string_view name, parallel::KernelLaunch launch) const;
  struct BlockTime {
    Seconds device;
    Phases phases;
    DecodeParts parts;
  };
  [[nodiscard]] BlockTime block_time(Table& table, const parallel::Program& program, const parallel::Block& block,
                                     bool decodes, double repeat);
  void add_stage(Table& table, const parallel::Program& program, const parallel::ChunkProgram& chunk);
  [[nodiscard]] static bool is_attention(const parallel::Item& item);
  void find_prompt_cores();
  void find_windows();
  void find_scans();
  [[nodiscard]] Bytes state_of_a_sequence();
  void each_prompt_core(const parallel::Program& program,
                        const std::function<void(const parallel::Item&, double repeat)>& visit) const;
  [[nodiscard]] Seconds core_time(const Table& table, std::int64_t context) const;
  [[nodiscard]] Ticks core_at(Table& table, std::size_t octave);
  [[nodiscard]] bool is_captured(std::int64_t per_rank) const;
  [[nodiscard]] Seconds launches(const Table& table) const;
  [[nodiscard]] Seconds padding_of(std::int64_t rows, std::int64_t size, std::int64_t width, std::int64_t batches = 1);
  [[nodiscard]] Ticks slowed(Ticks device) const;
  [[nodiscard]] Seconds draft_time(std::int64_t rows, std::int64_t size);
  [[nodiscard]] Bytes absorbed_copies() const;
  [[nodiscard]] CoreLine core_line(std::int64_t rows, std::int64_t sequences, std::int64_t contexts);
  [[nodiscard]] bool is_two_batches(std::int64_t rows, std::int64_t least) const;
  [[nodiscard]] double interference(bool decodes) const;
  [[nodiscard]] Ticks of_token(Ticks step) const;
  [[nodiscard]] double part_apart();
  [[nodiscard]] DecodeLine decode_line(std::int64_t sequences, std::int64_t contexts, bool is_two);
  [[nodiscard]] DecodeLine device_line(std::int64_t sequences, std::int64_t contexts);
  [[nodiscard]] DecodeLine device_line_of_two(std::int64_t sequences, std::int64_t contexts);
  [[nodiscard]] Seconds linear_time(std::int64_t tokens);
  template <class Part>
  [[nodiscard]] Part interpolated(std::int64_t tokens, Part Table::* part);
  [[nodiscard]] Seconds linear_of_ranks(std::int64_t mean, std::int64_t of_rank);
  [[nodiscard]] Seconds two_batches_of_prompts(std::int64_t mean, std::int64_t of_rank, Seconds attention);
  // Tokens of an iteration with prompts; of the largest micro-batch: the mean of all ranks, and the fullest rank.
  struct StepTokens {
    std::int64_t prompts = 0, longest = 0;  // of all parts of prompts, and of the longest
    std::int64_t mean = 0, of_rank = 0;
  };
  [[nodiscard]] StepTokens tokens_of(const MixedStep& step);
  [[nodiscard]] Ticks iteration(const MixedStep& step, const StepTokens& tokens, bool is_two);
  [[nodiscard]] std::int64_t fullest_rank(const MixedStep& step);
  [[nodiscard]] Seconds core_of_prompts(PromptCore& core, std::span<const Chunk> chunks) const;
  [[nodiscard]] Seconds prompt_time(std::span<const Chunk> chunks);

  const workload::Model& model_;
  const hardware::Stack& stack_;
  parallel::Job job_;
  parallel::Plan plan_;
  PriceOptions options_;
  double slowdown_ = 1.0;  // of the device
  bool dispatches_ = false;
  network::Fabric fabric_;
  network::PriceCache collectives_;
  parallel::Lowerer lowerer_;
  std::map<std::int64_t, Table> few_;      // [sequences or tokens of a rank]
  std::vector<std::int64_t> rank_tokens_;  // [rank of attention dp x micro-batch], of one iteration
  std::vector<Table*> found_;              // the same by number, as far as it is small
  std::vector<double> linear_;             // [tokens of a rank]: seconds; negative: not known
  std::vector<PromptCore> prompt_cores_;
  Seconds prompt_host_, decode_host_;  // of the host, for all layers of an iteration that is not captured
};

}  // namespace orrery::serving
