// The model's shape as arguments of Megatron-LM.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "orrery/launch/facts.hpp"
#include "orrery/launch/layout.hpp"
#include "orrery/launch/tools.hpp"
#include "orrery/workload/records.hpp"

namespace orrery::launch {

using workload::Model;

namespace {

class ModelSettings {
 public:
  ModelSettings(const TrainingRun& run, Dialect dialect, Sheet& sheet)
      : run_(run), model_(run.model), bridge_(dialect == Dialect::bridge), sheet_(sheet) {}

  void add() {
    sheet_.open("MODEL");
    sizes();
    positions();
    vocabulary();
    kinds();
    biases();
    windows();
    if (model_.is_latent()) { latent(); }
    if (model_.mtp_layers > 0) { sheet_.value("--mtp-num-layers", model_.mtp_layers); }
    sheet_.states({"mtp_layers"});
    if (model_.has_experts()) { experts(); }
    if (model_.attention_gate && !bridge_) {
      sheet_.toggle("--attention-output-gate");
      sheet_.states({"attention_gate"});
    }
    if (model_.has_mixers()) { mixers(); }
    note_missing();
    const std::string_view tool = bridge_ ? "Megatron-Bridge" : "Megatron-LM";
    note_unsaid(run_, fmt::format("{} has no option for", tool), sheet_);
    note_defaults(run_, {tool, "10000", "1e-05"}, sheet_);
  }

 private:
  void sizes() {
    sheet_.value("--num-layers", model_.layers);
    sheet_.value("--hidden-size", model_.hidden);
    sheet_.value("--ffn-hidden-size", model_.ffn);
    sheet_.value("--num-attention-heads", model_.heads);
    sheet_.states({"layers", "hidden", "ffn", "heads", "kv_heads", "head_dim"});
    if (!model_.is_latent()) {
      const bool grouped = model_.kv_heads != model_.heads;
      if (grouped && !bridge_) { sheet_.toggle("--group-query-attention"); }
      if (grouped || bridge_) { sheet_.value("--num-query-groups", model_.kv_heads); }
      if (model_.head_dim * model_.heads != model_.hidden || bridge_) {
        sheet_.value("--kv-channels", model_.head_dim);
      }
    }
  }

  void positions() {
    using workload::Position;
    const bool learned = model_.position == Position::learned;
    const std::int64_t rows = learned && model_.position_rows > 0 ? model_.position_rows : model_.max_seq;
    sheet_.value("--seq-length", run_.job.seq);
    sheet_.value("--max-position-embeddings", std::max(rows, run_.job.seq));
    const bool rows_differ = learned && model_.position_rows != model_.max_seq;
    if (rows < run_.job.seq) {
      model_note(fmt::format("its {} positions are launched as {}", rows, run_.job.seq),
                 rows_differ ? "position_rows" : "max_seq");
    }
    sheet_.states({rows_differ ? "position_rows" : "max_seq"});
    if (model_.position != Position::alibi) { sheet_.states({"position"}); }
    switch (model_.position) {
      case Position::learned: sheet_.value("--position-embedding-type", "learned_absolute"); break;
      case Position::rotary: rotary(); break;
      case Position::none: sheet_.value("--position-embedding-type", "none"); break;
      case Position::relative: sheet_.value("--position-embedding-type", "relative"); break;
      case Position::alibi:
        sheet_.value("--position-embedding-type", "none");
        model_note("no option for ALiBi; launched without position embeddings, at nearly the same cost", "position");
        break;
    }
  }

  void rotary() {
    using workload::RopeScaling;
    const auto& rope = model_.rope;
    const bool yarn = rope.scaling == RopeScaling::yarn;
    sheet_.value("--position-embedding-type", yarn && !model_.is_latent() ? "yarn" : "rope");
    if (rope.base > 0.0) { sheet_.value("--rotary-base", fmt::format("{:.0f}", rope.base)); }
    if (rope.fraction < 1.0) { sheet_.value("--rotary-percent", fmt::format("{}", rope.fraction)); }
    if (rope.none_every > 0) { sheet_.value("--no-rope-freq", rope.none_every); }
    sheet_.states({"rope.base", "rope.fraction", "rope.none_every"});
    // Its configuration of latent attention scales by YaRN unless told otherwise.
    if (model_.is_latent()) { sheet_.value("--rope-type", yarn ? "yarn" : "rope"); }
    switch (rope.scaling) {
      case RopeScaling::none: break;
      case RopeScaling::linear:
        if (model_.is_latent() || (!bridge_ && rope.factor != std::floor(rope.factor))) {
          break;
        }  // it takes an integer
        sheet_.value("--rotary-seq-len-interpolation-factor", fmt::format("{}", rope.factor));
        sheet_.states({"rope.scaling", "rope.factor"});
        break;
      case RopeScaling::llama3: return llama3_scaling();
      case RopeScaling::yarn: return yarn_scaling();
      case RopeScaling::longrope:
      case RopeScaling::dynamic: break;
    }
  }

  // Its other figures of Llama 3.1 are fixed: megatron/core/models/common/embeddings/rotary_pos_embedding.py.
  void llama3_scaling() {
    const auto& rope = model_.rope;
    if (model_.is_latent() || rope.low_freq != 1.0 || rope.high_freq != 4.0 || rope.original_seq != 8192) { return; }
    sheet_.toggle("--use-rope-scaling");
    sheet_.value("--rope-scaling-factor", fmt::format("{}", rope.factor));
    sheet_.states({"rope.scaling", "rope.factor", "rope.low_freq", "rope.high_freq", "rope.original_seq"});
  }

  // With latent attention, Megatron-LM has no arguments for the ramp and the length: MLATransformerConfig fixes them.
  // Megatron-Bridge has two sets of fields.
  void yarn_scaling() {
    const auto& rope = model_.rope;
    const bool latent = model_.is_latent();
    const auto number = [&](std::string_view argument, std::string_view field, double value) {
      if (value == 0.0) { return; }
      const std::string name =
          bridge_ ? fmt::format("model.{}{}", latent ? "" : "yarn_", field) : std::string(argument);
      sheet_.value(name, fmt::format("{}", value));
    };
    sheet_.states({"rope.scaling", "rope.factor", "rope.mscale", "rope.mscale_all_dim"});
    number("--rotary-scaling-factor", "rotary_scaling_factor", rope.factor);
    number("--mscale", "mscale", rope.mscale);
    number("--mscale-all-dim", "mscale_all_dim", rope.mscale_all_dim);
    if (latent && !bridge_) {
      if (rope.original_seq == 4096) { sheet_.states({"rope.original_seq"}); }
      if (rope.beta_fast == 32.0) { sheet_.states({"rope.beta_fast"}); }
      if (rope.beta_slow == 1.0) { sheet_.states({"rope.beta_slow"}); }
      return;
    }
    number("--yarn-original-max-position-embeddings", "original_max_position_embeddings",
           static_cast<double>(rope.original_seq));
    number("--yarn-beta-fast", "beta_fast", rope.beta_fast);
    number("--yarn-beta-slow", "beta_slow", rope.beta_slow);
    sheet_.states({"rope.original_seq", "rope.beta_fast", "rope.beta_slow"});
  }

  // The vocabulary is padded to a multiple of the option times tp; the value avoids padding where possible.
  void vocabulary() {
    const bool divides = model_.vocab % run_.plan.tp == 0;
    constexpr std::int64_t kUsual = 128;
    const std::int64_t factor = divides ? std::gcd(model_.vocab / run_.plan.tp, kUsual) : 1;
    if (bridge_) { sheet_.value("--padded-vocab-size", model_.vocab); }
    sheet_.value("--make-vocab-size-divisible-by", factor);
    if (!divides) {
      model_note(fmt::format("the vocabulary of {} is padded to a multiple of tp {}", model_.vocab, run_.plan.tp));
    }
    sheet_.toggle("--untie-embeddings-and-output-weights", !model_.tied_embeddings);
    sheet_.states({"vocab", "tied_embeddings"});
  }

  void kinds() {
    const bool rms = model_.norm == workload::Normalisation::rmsnorm;
    sheet_.value("--normalization", rms ? "RMSNorm" : "LayerNorm");
    if (model_.norm_eps > 0.0) { sheet_.value("--norm-epsilon", fmt::format("{}", model_.norm_eps)); }
    activation();
    // Of latent attention: the norms of its latents.
    sheet_.toggle("--qk-layernorm", model_.qk_norm || model_.is_latent());
    if (model_.attention_sinks) { sheet_.value("--softmax-type", "learnable"); }
    sheet_.value("--attention-dropout", fmt::format("{}", model_.dropout));
    sheet_.value("--hidden-dropout", fmt::format("{}", model_.dropout));
    sheet_.states({"norm", "norm_eps", "gated_mlp", "activation", "qk_norm", "attention_sinks", "dropout"});
  }

  void activation() {
    using workload::Activation;
    const bool geglu = model_.gated_mlp && model_.activation == Activation::gelu;
    const bool squared = !model_.gated_mlp && model_.activation == Activation::squared_relu;
    if (geglu) {
      sheet_.toggle("--quick-geglu");
    } else if (squared) {
      sheet_.toggle("--squared-relu");
    } else {
      sheet_.toggle("--swiglu", model_.gated_mlp);
    }
    if (geglu && !bridge_) { model_note("gated GELU is launched as quick GEGLU, at the same cost", "activation"); }
    if (model_.gated_mlp && !geglu && model_.activation != Activation::silu) {
      model_note(fmt::format("no option for gated {}; SwiGLU is launched, at the same cost",
                             config::enum_name(model_.activation)),
                 "activation");
    }
    if (!model_.gated_mlp && !squared && model_.activation != Activation::gelu) {
      model_note(fmt::format("no option for its activation function {}; GELU is launched, at the same cost",
                             config::enum_name(model_.activation)),
                 "activation");
    }
  }

  void biases() {
    const bool any = model_.mlp_bias || model_.attention_output_bias;
    sheet_.toggle("--disable-bias-linear", !any);
    sheet_.toggle("--add-qkv-bias", !any && model_.qkv_bias);
    const bool all = model_.mlp_bias && model_.attention_output_bias && model_.qkv_bias;
    if (any && !all) {
      const std::array<std::pair<const char*, bool>, 3> biases{{{"qkv_bias", model_.qkv_bias},
                                                                {"attention_output_bias", model_.attention_output_bias},
                                                                {"mlp_bias", model_.mlp_bias}}};
      std::string with, without;
      for (const auto& [name, on] : biases) {
        std::string& list = on ? with : without;
        list += fmt::format("{}{}", list.empty() ? "" : ", ", name);
        sheet_.notes_field(name);
      }
      model_note(fmt::format("only some of its linear layers have a bias ({}); all are launched with one, also {}",
                             with, without));
    }
    sheet_.states({"qkv_bias", "attention_output_bias", "mlp_bias"});
  }

  void windows() {
    if (model_.sliding_window == 0) { return; }
    const std::int64_t back = model_.sliding_window - 1;  // a position attends to itself, too
    sheet_.value("--window-size", bridge_ ? fmt::format("[{},0]", back) : fmt::format("{},0", back));
    if (model_.global_every > 0) { sheet_.value("--window-attn-skip-freq", model_.global_every); }
    sheet_.states({"sliding_window", "global_every"});
  }

  void latent() {
    sheet_.toggle("--multi-latent-attention");
    if (model_.latent.query_rank > 0) { sheet_.value("--q-lora-rank", model_.latent.query_rank); }
    sheet_.value("--kv-lora-rank", model_.latent.kv_rank);
    sheet_.value("--qk-head-dim", model_.latent.nope_dim);
    sheet_.value("--qk-pos-emb-head-dim", model_.latent.rope_dim);
    sheet_.value("--v-head-dim", model_.latent.value_dim);
    sheet_.states({"latent.query_rank", "latent.kv_rank", "latent.nope_dim", "latent.rope_dim", "latent.value_dim"});
  }

  [[nodiscard]] std::string missing_mixers() const {
    using workload::MixerKind;
    const auto kind = model_.mixer.kind;
    if (kind == MixerKind::mamba) { return "no option for its Mamba layers"; }
    const char* name = kind == MixerKind::mamba2 ? "Mamba-2" : "linear-attention";
    return bridge_
               ? fmt::format("its {} layers need a recipe that has them; no override is emitted for them", name)
               : fmt::format("its {} layers need pretrain_hybrid.py with --hybrid-layer-pattern, which is not emitted",
                             name);
  }

  // Its gated delta net, in every layer but each n-th; other mixers need pretrain_hybrid.py.
  void mixers() {
    using workload::MixerKind;
    const auto& mixer = model_.mixer;
    const bool last = mixer.attention_every > 0 && mixer.attention_offset == mixer.attention_every - 1;
    if (mixer.kind != MixerKind::gated_delta || !model_.pattern.empty() || !last || bridge_) {
      model_note(fmt::format("{}; this launches attention in every layer: another model", missing_mixers()));
      return;
    }
    sheet_.value("--experimental-attention-variant", "gdn");
    sheet_.value("--linear-attention-freq", mixer.attention_every);
    sheet_.value("--linear-conv-kernel-dim", mixer.conv);
    sheet_.value("--linear-num-key-heads", mixer.key_heads);
    sheet_.value("--linear-key-head-dim", mixer.key_dim);
    sheet_.value("--linear-num-value-heads", mixer.heads);
    sheet_.value("--linear-value-head-dim", mixer.head_dim);
    sheet_.states({"mixer.kind", "mixer.heads", "mixer.head_dim", "mixer.key_heads", "mixer.key_dim", "mixer.conv",
                   "mixer.attention_every", "mixer.attention_offset"});
    sheet_.states({"mixer.conv_bias"});
    if (mixer.conv_bias) { model_note("its convolution has a bias; it is launched without"); }
    if (mixer.chunk == 64) { sheet_.states({"mixer.chunk"}); }  // of its kernels
  }

  void router() {
    using workload::RouterScore;
    const auto& experts = model_.experts;
    const bool sigmoid = experts.score == RouterScore::sigmoid;
    sheet_.value("--moe-router-score-function", sigmoid ? "sigmoid" : "softmax");
    sheet_.states({"experts.score", "experts.score_scale", "experts.balance_bias"});
    if (experts.score_scale != 1.0) {
      sheet_.value("--moe-router-topk-scaling-factor", fmt::format("{}", experts.score_scale));
    }
    if (experts.balance_bias) { sheet_.toggle("--moe-router-enable-expert-bias"); }
    // Softmax over all experts, of which the chosen ones keep their part; Megatron always normalises sigmoids.
    if (!experts.score_norm && !sigmoid) {
      sheet_.toggle("--moe-router-pre-softmax");
      sheet_.states({"experts.score_norm"});
    }
  }

  void experts() {
    const auto& experts = model_.experts;
    sheet_.value("--num-experts", experts.count);
    sheet_.value("--moe-router-topk", experts.active);
    sheet_.value("--moe-ffn-hidden-size", experts.ffn);
    const auto layers = expert_layers(model_);
    if (std::find(layers.begin(), layers.end(), false) != layers.end()) {
      sheet_.value("--moe-layer-freq", bridge_ ? expert_list(layers) : expert_pattern(layers));
    }
    if (experts.shared_ffn > 0) { sheet_.value("--moe-shared-expert-intermediate-size", experts.shared_ffn); }
    if (experts.shared_gate) { sheet_.toggle("--moe-shared-expert-gate"); }
    router();
    sheet_.states({"experts.count", "experts.active", "experts.ffn", "experts.first_dense", "experts.every",
                   "experts.shared_ffn", "experts.shared_gate", "experts.groups", "experts.active_groups",
                   "experts.capacity_factor"});
    if (experts.groups > 0) {
      sheet_.value("--moe-router-num-groups", experts.groups);
      sheet_.value("--moe-router-group-topk", experts.active_groups);
    }
    if (experts.capacity_factor > 0) {
      sheet_.value("--moe-expert-capacity-factor", fmt::format("{}", experts.capacity_factor));
    }
    using hardware::Precision;
    const auto precision = run_.job.precision;
    const bool wide = precision == Precision::fp32 || precision == Precision::tf32;
    sheet_.toggle("--moe-grouped-gemm", !wide && precision != Precision::fp16);  // of bf16 and narrower only
    const bool per_node = run_.stack.dispatch.copies == hardware::TokenCopies::per_node && run_.plan.ep > 1;
    sheet_.value("--moe-token-dispatcher-type", per_node ? "flex" : "alltoall");
    if (per_node) { sheet_.toggle("--moe-enable-deepep"); }
    if (run_.stack.dispatch.element > Bytes(0.0)) {
      sheet_.note("--stack", "no option for the dispatch precision; tokens keep the activation format");
    }
  }

  void note_missing() {
    if (model_.parallel_residual) {
      model_note("no option for parallel attention and MLP; they run one after the other", "parallel_residual");
    }
    if (model_.post_norms) {
      model_note("no option for norms after attention and MLP; they are left out", "post_norms");
    }
    if (model_.embedding_norm) {
      model_note("no option for a norm after the embedding; it is left out", "embedding_norm");
    }
    if (!model_.final_norm) { model_note("no option to omit the final norm; it is launched with one", "final_norm"); }
  }

  // `field`: of the description, if the note is about one.
  void model_note(std::string_view text, std::string_view field = {}) {
    sheet_.note("--model " + model_.name, text);
    if (!field.empty()) { sheet_.notes_field(field); }
  }

  const TrainingRun& run_;
  const Model& model_;
  bool bridge_;
  Sheet& sheet_;
};

}  // namespace

void add_model_settings(const TrainingRun& run, Dialect dialect, Sheet& sheet) {
  ModelSettings(run, dialect, sheet).add();
}

}  // namespace orrery::launch
