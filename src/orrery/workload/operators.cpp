// The operators of an embedding, a layer and a head, in forward order. docs/models/operators.md has the tables.
#include "orrery/workload/operators.hpp"

#include "orrery/workload/operators_kernels.hpp"

namespace orrery::workload {

namespace {

constexpr double kTokenId = 8.0;  // bytes of a token id (int64)
constexpr double kFloat = 4.0;    // bytes of an fp32 value

double real(std::int64_t n) { return static_cast<double>(n); }

Bytes whole_tensor(const Sizes& z) { return Bytes(z.tokens * real(z.hidden) * z.element); }

// What happens to the output of attention or of the MLP before it joins the residual stream.
struct Join {
  std::string_view name;
  bool bias = false;      // of h elements, held whole by every tp rank
  double dropout = 0;     // probability
  bool adds = true;       // a second tensor is added
  int gradient_sums = 0;  // sums of gradients where the input of the half layer forked
  double tokens = 0;      // of this rank
};

// out = (other +) dropout(x + bias), one kernel when fused, up to three apart.
// Backward of the dropout: dout and mask in, dx out; of the sum: nothing; of the bias: one more pass over dx when
// apart. A tensor that fed two places gets its two gradients summed: two in, one out.
Operator join(const Join& j, const Sizes& z, bool fused) {
  const double elements = j.tokens * real(z.hidden);
  const double pass = elements * z.element;
  const bool dropout = j.dropout > 0.0;
  const double mask = dropout ? elements : 0.0;
  Traffic forward, backward;
  if (fused && (j.bias || dropout || j.adds)) {
    forward += {(j.adds ? 3.0 : 2.0) * pass + mask, 1};
  } else if (!fused) {
    if (j.bias) { forward += {2.0 * pass, 1}; }
    if (dropout) { forward += {2.0 * pass + mask, 1}; }
    if (j.adds) { forward += {3.0 * pass, 1}; }
  }
  if (dropout) { backward += {2.0 * pass + mask, 1}; }
  if (j.bias && !(fused && dropout)) { backward += {pass, 1}; }
  backward += {3.0 * pass * j.gradient_sums, j.gradient_sums};
  Operator op = streamed(j.name, forward.kernel(), backward.kernel());
  op.parameters = j.bias ? real(z.hidden) : 0.0;
  op.saved = Bytes(mask);
  return op;
}

// x -> x + attention(norm(x)) -> . + mlp(norm(.)): two halves, each with its own enter and leave.
std::vector<Operator> sequential_layer(const Model& model, const hardware::Stack& stack, const Sizes& z) {
  std::vector<Operator> list;
  const bool fused = stack.fused_elementwise;
  list.push_back(norm("attention.norm", model, z));
  list.push_back(boundary("attention.enter", Boundary::enter, whole_tensor(z)));
  append_attention(list, model, stack, z);
  list.push_back(boundary("attention.leave", Boundary::leave, whole_tensor(z)));
  list.push_back(
      join({"attention.residual", model.attention_output_bias, model.dropout, true, 1, z.split_tokens}, z, fused));
  list.push_back(norm("mlp.norm", model, z));
  list.push_back(boundary("mlp.enter", Boundary::enter, whole_tensor(z)));
  append_mlp(list, model, stack, z);
  list.push_back(boundary("mlp.leave", Boundary::leave, whole_tensor(z)));
  list.push_back(join({"mlp.residual", model.mlp_bias, model.dropout, true, 1, z.split_tokens}, z, fused));
  return list;
}

// x + attention(norm1(x)) + mlp(norm2(x)) as GPT-NeoX computes it: each half drops out and the two partial sums are
// added on the rank, so that one leave serves both; the two norms differ, so that each half has its own enter. What
// stands before the leave works on whole rows of partial sums, sequence parallelism or not.
std::vector<Operator> parallel_layer(const Model& model, const hardware::Stack& stack, const Sizes& z) {
  std::vector<Operator> list;
  const bool fused = stack.fused_elementwise;
  list.push_back(norm("attention.norm", model, z));
  list.push_back(boundary("attention.enter", Boundary::enter, whole_tensor(z)));
  append_attention(list, model, stack, z);
  if (model.attention_output_bias || model.dropout > 0.0) {
    list.push_back(join({"attention.join", model.attention_output_bias, model.dropout, false, 0, z.tokens}, z, fused));
  }
  list.push_back(norm("mlp.norm", model, z));
  list.push_back(boundary("mlp.enter", Boundary::enter, whole_tensor(z)));
  append_mlp(list, model, stack, z);
  list.push_back(join({"mlp.join", model.mlp_bias, model.dropout, true, 0, z.tokens}, z, fused));
  list.push_back(boundary("layer.leave", Boundary::leave, whole_tensor(z)));
  list.push_back(join({"layer.residual", false, 0.0, true, 2, z.split_tokens}, z, fused));
  return list;
}

// Rows of the table in, rows out. Backward: the gradient in, rows of the table's gradient read and written.
Operator lookup(const Sizes& z) {
  const double rows = z.tokens * real(z.hidden) * z.element;
  const double ids = z.tokens * kTokenId;
  Operator op = streamed("embedding.lookup", stream(2.0 * rows + ids), stream(3.0 * rows + ids));
  op.parameters = real(z.vocab) * real(z.hidden);
  op.saved = Bytes(ids);
  return op;
}

// Learned positions: activations and the table's s rows in, activations out. Backward: the gradients of b sequences are
// summed into the rows.
Operator position(const Model& model, const Sizes& z) {
  const double pass = z.split_tokens * real(z.hidden) * z.element;
  const double rows = pass / real(z.sequences);
  Operator op = streamed("embedding.position", stream(2.0 * pass + rows), stream(pass + rows));
  op.parameters = real(model.position_rows > 0 ? model.position_rows : model.max_seq) * real(z.hidden);
  return op;
}

Operator logits(const Model& model, const Sizes& z) {
  Operator op = wide_linear("head.logits", z, z.vocab, z.hidden);
  if (model.tied_embeddings) { op.parameters = 0.0; }
  op.saved = Bytes(z.split_tokens * real(z.hidden) * z.element);
  return op;
}

// Cross entropy over the vocabulary slice; L = tokens V / t logits.
// Fused: logits in, probabilities out, in the element of the logits; backward: probabilities in, gradient out.
// Apart (Megatron-LM's vocab_parallel_cross_entropy): an fp32 copy (in, out), maximum (in), subtraction (in, out),
// exponential (in, out), sum (in), division (in, out); backward: product (in, out), target (a gather, not counted),
// copy to the element of the logits (in, out). Keeps the fp32 probabilities.
Operator loss(const Sizes& z, bool fused) {
  const double count = z.tokens * real(z.vocab);
  const double fp32 = count * kFloat, narrow = count * z.element;
  Operator op = fused ? streamed("loss", stream(2.0 * narrow), stream(2.0 * narrow))
                      : streamed("loss", stream(narrow + 9.0 * fp32, 6), stream(3.0 * fp32 + narrow, 3));
  op.saved = Bytes(fused ? narrow : fp32);
  return op;
}

}  // namespace

std::vector<Operator> embedding_operators(const Model& model, const hardware::Stack& stack, const Slice& slice) {
  const Sizes z = sizes_of(model, stack, slice);
  std::vector<Operator> list{lookup(z), boundary("embedding.leave", Boundary::leave, whole_tensor(z))};
  if (model.position == Position::learned) { list.push_back(position(model, z)); }
  if (model.embedding_norm) { list.push_back(norm("embedding.norm", model, z)); }
  if (model.dropout > 0.0) {
    list.push_back(
        join({"embedding.dropout", false, model.dropout, false, 0, z.split_tokens}, z, stack.fused_elementwise));
  }
  return list;
}

std::vector<Operator> layer_operators(const Model& model, const hardware::Stack& stack, const Slice& slice,
                                      const LayerKind& /*kind*/) {
  const Sizes z = sizes_of(model, stack, slice);
  return model.parallel_residual ? parallel_layer(model, stack, z) : sequential_layer(model, stack, z);
}

std::vector<Operator> head_operators(const Model& model, const hardware::Stack& stack, const Slice& slice) {
  const Sizes z = sizes_of(model, stack, slice);
  std::vector<Operator> list;
  if (model.final_norm) { list.push_back(norm("head.norm", model, z)); }
  list.push_back(boundary("head.enter", Boundary::enter, whole_tensor(z)));
  list.push_back(logits(model, z));
  list.push_back(loss(z, stack.fused_loss));
  constexpr double kValues = 3.0;  // maximum, target logit, sum of exponentials
  list.push_back(boundary("loss.reduce", Boundary::reduce, Bytes(kValues * kFloat * z.tokens)));
  return list;
}

double table_parameters(const Model& model, std::int64_t tp) {
  return real(vocabulary_rows(model, tp)) * real(model.hidden);
}

// Per token: 2 FLOPs per weight of a layer's products and of the (unpadded) vocabulary, 4 s a d for scores and context.
// The backward pass does each product twice: once per operand.
Flops model_flops(const Model& model, const hardware::Stack& stack, std::int64_t sequences, std::int64_t seq,
                  const Adapter& /*adapter*/) {
  const double h = real(model.hidden), query = real(model.query_width()), kv = real(model.kv_width());
  const bool half = stack.attention == hardware::AttentionKernel::flash && stack.causal_skip;
  const double attention_weights = h * (query + 2.0 * kv) + query * h;
  const double mlp_weights = (model.gated_mlp ? 3.0 : 2.0) * h * real(model.ffn);
  const double core = (half ? 2.0 : 4.0) * real(seq) * query;
  const double per_token =
      real(model.layers) * (2.0 * (attention_weights + mlp_weights) + core) + 2.0 * h * real(model.vocab);
  return Flops(3.0 * real(sequences) * real(seq) * per_token);
}

}  // namespace orrery::workload
