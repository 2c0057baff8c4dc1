// Keys of Hugging Face configurations without effect on cost that a launch states: rotary positions, epsilon of norms,
// soft caps, sinks, the router's score. Families share them under a few names. A key that a file leaves out stays "not
// described": the library's default may have changed between the file's release and today's.
#include <string>

#include "orrery/workload/huggingface_families.hpp"
#include "orrery/workload/huggingface_keys.hpp"

namespace orrery::workload::huggingface {
namespace {

using config::Kind;
using config::Node;

RopeScaling scaling_of(const std::string& name) {
  if (name == "linear") { return RopeScaling::linear; }
  if (name == "llama3") { return RopeScaling::llama3; }
  if (name == "yarn") { return RopeScaling::yarn; }
  if (name == "longrope" || name == "su") { return RopeScaling::longrope; }
  if (name == "dynamic") { return RopeScaling::dynamic; }
  return RopeScaling::none;  // "default", "mrope"
}

void read_scaling(const Node& scaling, Rope& rope) {
  rope.scaling = scaling_of(text(scaling, {"rope_type", "type"}));
  if (rope.scaling == RopeScaling::none) { return; }
  rope.factor = number(scaling, {"factor"}, 1.0);
  rope.original_seq = count(scaling, {"original_max_position_embeddings"}, 0);
  rope.low_freq = number(scaling, {"low_freq_factor"}, 0.0);
  rope.high_freq = number(scaling, {"high_freq_factor"}, 0.0);
  rope.beta_fast = number(scaling, {"beta_fast"}, 0.0);
  rope.beta_slow = number(scaling, {"beta_slow"}, 0.0);
  rope.mscale = number(scaling, {"mscale"}, 0.0);
  rope.mscale_all_dim = number(scaling, {"mscale_all_dim"}, 0.0);
}

Rope rope_of(const Node& node, const Model& model) {
  Rope rope;
  const Node* parameters = first_of(node, {"rope_parameters"});
  const Node& from = parameters == nullptr ? node : *parameters;
  rope.base = number(from, {"rope_theta", "rotary_emb_base"}, 0.0);
  rope.local_base = number(node, {"rope_local_base_freq"}, 0.0);
  rope.fraction = number(from, {"partial_rotary_factor", "rotary_pct"}, number(node, {"partial_rotary_factor"}, 1.0));
  const double rotated = number(node, {"rotary_dim"}, 0.0);
  if (rotated > 0.0 && model.head_dim > 0) { rope.fraction = rotated / static_cast<double>(model.head_dim); }
  rope.none_every = count(node, {"no_rope_layer_interval"}, model.rope.none_every);
  const Node* scaling = parameters == nullptr ? first_of(node, {"rope_scaling"}) : parameters;
  if (scaling != nullptr && scaling->kind == Kind::mapping) { read_scaling(*scaling, rope); }
  if (rope.original_seq == 0 && rope.scaling == RopeScaling::longrope) {
    rope.original_seq = count(node, {"original_max_position_embeddings"}, 0);
  }
  return rope;
}

void read_router(const Node& node, Experts& experts) {
  experts.score = text(node, {"scoring_func"}) == "sigmoid" ? RouterScore::sigmoid : experts.score;
  experts.score_scale = number(node, {"routed_scaling_factor"}, experts.score_scale);
  experts.score_norm = flag(node, "norm_topk_prob", experts.score_norm);
  if (text(node, {"topk_method"}) == "noaux_tc") { experts.balance_bias = true; }
}

}  // namespace

void read_details(const Node& node, Model& model) {
  model.norm_eps = number(
      node, {"rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "layernorm_epsilon", "norm_epsilon", "norm_eps"},
      model.norm_eps);
  if (model.norm_eps > 1.0) { model.norm_eps = 0.0; }
  model.attention_soft_cap = number(node, {"attn_logit_softcapping"}, 0.0);
  model.logit_soft_cap = number(node, {"final_logit_softcapping"}, 0.0);
  if (model.position == Position::rotary) { model.rope = rope_of(node, model); }
  if (model.rope.fraction > 1.0) { model.rope.fraction = 1.0; }
  if (model.has_experts()) { read_router(node, model.experts); }
}

}  // namespace orrery::workload::huggingface
