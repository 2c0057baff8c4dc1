// The model's shape as arguments of Megatron-LM.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "orrery/launch/layout.hpp"
#include "orrery/launch/tools.hpp"

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
    if (model_.has_experts()) { experts(); }
    note_missing();
  }

 private:
  void sizes() {
    sheet_.value("--num-layers", model_.layers);
    sheet_.value("--hidden-size", model_.hidden);
    sheet_.value("--ffn-hidden-size", model_.ffn);
    sheet_.value("--num-attention-heads", model_.heads);
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
    switch (model_.position) {
      case Position::learned: sheet_.value("--position-embedding-type", "learned_absolute"); break;
      case Position::rotary: sheet_.value("--position-embedding-type", "rope"); break;
      case Position::relative: sheet_.value("--position-embedding-type", "relative"); break;
      case Position::alibi:
        sheet_.value("--position-embedding-type", "none");
        model_note("no option for ALiBi; launched without position embeddings, at nearly the same cost");
        break;
    }
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
  }

  void kinds() {
    using workload::Activation;
    const bool rms = model_.norm == workload::Normalisation::rmsnorm;
    sheet_.value("--normalization", rms ? "RMSNorm" : "LayerNorm");
    const bool geglu = model_.gated_mlp && model_.activation == Activation::gelu;
    if (geglu) {
      sheet_.toggle("--quick-geglu");
    } else {
      sheet_.toggle("--swiglu", model_.gated_mlp);
    }
    if (geglu && !bridge_) { model_note("gated GELU is launched as quick GEGLU, at the same cost"); }
    if (model_.gated_mlp && model_.activation == Activation::relu) {
      model_note("no option for gated ReLU; SwiGLU is launched, at the same cost");
    }
    if (!model_.gated_mlp && model_.activation != Activation::gelu) {
      model_note("no option for its activation function; GELU is launched, at the same cost");
    }
    sheet_.toggle("--qk-layernorm", model_.qk_norm);
    sheet_.value("--attention-dropout", fmt::format("{}", model_.dropout));
    sheet_.value("--hidden-dropout", fmt::format("{}", model_.dropout));
  }

  void biases() {
    const bool any = model_.mlp_bias || model_.attention_output_bias;
    sheet_.toggle("--disable-bias-linear", !any);
    sheet_.toggle("--add-qkv-bias", !any && model_.qkv_bias);
    const bool all = model_.mlp_bias && model_.attention_output_bias && model_.qkv_bias;
    if (any && !all) { model_note("only some of its linear layers have a bias; all are launched with a bias"); }
  }

  void windows() {
    if (model_.sliding_window == 0) { return; }
    const std::int64_t back = model_.sliding_window - 1;  // a position attends to itself, too
    sheet_.value("--window-size", bridge_ ? fmt::format("[{},0]", back) : fmt::format("{},0", back));
    if (model_.global_every > 0) { sheet_.value("--window-attn-skip-freq", model_.global_every); }
  }

  void latent() {
    sheet_.toggle("--multi-latent-attention");
    if (model_.latent.query_rank > 0) { sheet_.value("--q-lora-rank", model_.latent.query_rank); }
    sheet_.value("--kv-lora-rank", model_.latent.kv_rank);
    sheet_.value("--qk-head-dim", model_.latent.nope_dim);
    sheet_.value("--qk-pos-emb-head-dim", model_.latent.rope_dim);
    sheet_.value("--v-head-dim", model_.latent.value_dim);
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
    if (experts.shared_gate) { model_note("no option for the gate of its shared experts; it is left out"); }
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
      model_note("no option for parallel attention and MLP; they run one after the other");
    }
    if (model_.post_norms) { model_note("no option for norms after attention and MLP; they are left out"); }
    if (model_.embedding_norm) { model_note("no option for a norm after the embedding; it is left out"); }
    if (!model_.final_norm) { model_note("no option to omit the final norm; it is launched with one"); }
  }

  void model_note(std::string_view text) { sheet_.note("--model " + model_.name, text); }

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
