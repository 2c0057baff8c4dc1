// Operators of both ends of a model, in forward order: embedding and head, for text and images, and MTP modules.
// docs/models/operators.md has the tables.
#include <cmath>

#include "orrery/core/integers.hpp"
#include "orrery/workload/operators_halves.hpp"
#include "orrery/workload/operators_join.hpp"

namespace orrery::workload {

namespace {

constexpr double kTokenId = 8.0;  // bytes of a token id (int64)

// Rows of the table in, rows out. Backward: the gradient in, rows of the table's gradient read and written.
Operator lookup(std::string_view name, const Sizes& z) {
  const double rows = whole_tensor(z);
  const double ids = z.tokens * kTokenId;
  Operator op = streamed(OperatorTag::embedding, name, stream(2.0 * rows + ids), stream(3.0 * rows + ids));
  op.forward.held.weights = Bytes(rows);
  op.backward_input.held.gradients = Bytes(2.0 * rows);
  op.saved = Bytes(ids);
  return op;
}

// Learned positions: activations and the table's s rows in, activations out. Backward: the gradients of b sequences are
// summed into the rows.
Operator position(const Model& model, const Sizes& z) {
  const double pass = z.split(z.hidden) * z.element;
  const double rows = pass / real(z.sequences);
  Operator op = streamed(OperatorTag::embedding, "embedding.position", stream(2.0 * pass + rows), stream(pass + rows));
  op.forward.held.weights = op.backward_input.held.gradients = Bytes(rows);
  hold(op, z, real(model.position_rows > 0 ? model.position_rows : model.max_seq) * real(z.hidden));
  return op;
}

// T5: the bias of each head, query and key, made from a table of buckets once per stack and read by every layer.
// Backward: its gradient is summed into the table.
Operator relative_bias(const Model& model, const Sizes& z) {
  const std::int64_t stacks = model.encoder_layers > 0 ? 2 : 1;
  const double bias = real(stacks * z.heads * z.own_seq * (z.decoding ? z.context : z.seq)) * z.element;
  Operator op = streamed(OperatorTag::embedding, "embedding.relative", stream(bias), stream(bias));
  hold(op, z, real(stacks * kRelativeBuckets * z.heads));
  return op;
}

// Patches of an image in one GEMM (a convolution whose stride equals its kernel size), with a bias; a class token is
// added. Every rank holds all weights and works on its split tokens. Images have no gradient.
void append_patches(std::vector<Operator>& list, const Model& model, const Sizes& z) {
  Linear l;
  l.names.base = "embedding.patches";
  l.tag = l.input_from = OperatorTag::embedding;
  l.rows = z.split_tokens * real(z.seq - 1) / real(z.seq);
  l.n = z.hidden;
  l.k = model.vision.patch * model.vision.patch * model.vision.channels;
  l.input = l.rows * real(l.k);
  l.bias = 2.0 * real(z.hidden);  // including the class token
  l.wide = true;
  append_linear(list, z, l);
  list.back().backward_input = {};
}

// No operator before the embedding is trained, so no input gradient is needed up to the first trained weights.
void keep_forward_only_if_idle(std::vector<Operator>& list, const Sizes& z) {
  if (z.frozen() || !z.training) { keep_forward_only(list); }
}

// Sizes of the last position of each sequence only: the head of a prefill computes nothing else.
Sizes last_positions(Sizes z) {
  const double split = z.split_tokens / z.tokens;
  z.tokens = real(z.sequences);
  z.split_tokens = split * z.tokens;
  return z;
}

void append_logits(std::vector<Operator>& list, const Sizes& z, bool holds_table, bool as_fp32) {
  Linear l;
  l.names.base = "head.logits";
  l.tag = OperatorTag::head;
  l.rows = z.tokens;
  l.n = z.vocab;
  l.k = z.hidden;
  l.input = z.split(z.hidden);
  l.wide = true;
  if (as_fp32) { l.output = kFloat; }
  append_linear(list, z, l);
  if (!holds_table) { list.back().parameters = list.back().frozen = 0.0; }
}

// Cross entropy over the vocabulary slice; L = tokens V / t logits.
// Fused: logits in, probabilities out, in the element of the logits; backward: probabilities in, gradient out.
// Not fused (Megatron-LM's vocab_parallel_cross_entropy): an fp32 copy (in, out), maximum (in), subtraction (in, out),
// exponential (in, out), sum (in), division (in, out); backward: product (in, out), target (a gather, not counted),
// copy to the element of the logits (in, out). Keeps the fp32 probabilities.
Operator loss(const Sizes& z, double count, bool fused) {
  const double fp32 = count * kFloat, narrow = count * z.element;
  Operator op =
      fused ? streamed(OperatorTag::head, "loss", stream(2.0 * narrow), stream(2.0 * narrow))
            : streamed(OperatorTag::head, "loss", stream(narrow + 9.0 * fp32, 6), stream(3.0 * fp32 + narrow, 3));
  op.saved = Bytes(fused ? narrow : fp32);
  return op;
}

// Probabilities of fp32 logits are sorted with their ids (NVIDIA/FasterTransformer kernels/sampling_topp_kernels.cu and
// layers/sampling_layers/TopPSamplingLayer.cu@6ea1c77c7f): ids are written (4 B); three passes of a softmax in place (8
// B each); the largest is read (4 B); a radix sort has 6 passes over 32 bits, each of which reads keys twice and ids
// once and writes both (20 B). Kernels: these 3, 6 of the sort, the choice, its update. Every rank has all logits: an
// all-gather, which moves half of what an all-reduce moves.
void append_top_p(std::vector<Operator>& list, const Sizes& z) {
  constexpr double kSort = 6.0 * 20.0, kPerLogit = 4.0 + 3.0 * 8.0 + 4.0 + kSort;
  const double logits = z.whole(z.vocab) * real(z.tp);
  list.push_back(streamed(OperatorTag::head, "sample", stream(kPerLogit * logits, 11), {}));
  list.push_back(boundary(OperatorTag::head, "sample.gather", Boundary::reduce, 0.5 * kFloat * logits));
}

// Training computes the loss against the next tokens. Greedy inference takes the largest logit: each rank that of its
// slice with its index, then the largest of these.
void append_outcome(std::vector<Operator>& list, const hardware::Stack& stack, const Sizes& z) {
  const double count = z.whole(z.vocab);
  if (z.training) {
    constexpr double kValues = 3.0;  // maximum, target logit, sum of exponentials
    list.push_back(loss(z, count, stack.fusion.loss));
    list.push_back(boundary(OperatorTag::head, "loss.reduce", Boundary::reduce, kValues * kFloat * z.tokens));
  } else if (stack.sampling == hardware::Sampling::top_p) {
    append_top_p(list, z);
  } else {
    constexpr double kValues = 2.0;  // largest logit, its index
    list.push_back(streamed(OperatorTag::head, "sample", stream(count * z.element), {}));
    list.push_back(boundary(OperatorTag::head, "sample.reduce", Boundary::reduce, kValues * kFloat * z.tokens));
  }
}

void append_text_head(std::vector<Operator>& list, const hardware::Stack& stack, const Sizes& z, bool holds_table) {
  list.push_back(boundary(OperatorTag::head, "head.enter", Boundary::enter, whole_tensor(z)));
  append_logits(list, z, holds_table, !z.training && stack.sampling == hardware::Sampling::top_p);
  append_outcome(list, stack, z);
}

// The classifier reads the class token of each image; every rank holds all its weights.
void append_classifier(std::vector<Operator>& list, const Model& model, const hardware::Stack& stack, const Sizes& z) {
  Linear l;
  l.names.base = "head.classifier";
  l.tag = OperatorTag::head;
  l.rows = real(z.sequences);
  l.n = model.vision.classes;
  l.k = z.hidden;
  l.input = l.rows * real(z.hidden);
  l.bias = real(l.n);
  l.wide = true;
  append_linear(list, z, l);
  if (z.training) { list.push_back(loss(z, l.rows * real(l.n), stack.fusion.loss)); }
}

// Two hidden vectors of a token are projected to one: [n, 2h] x [2h, h / t]; every rank then needs the whole vector.
void append_mtp_projection(std::vector<Operator>& list, const Sizes& z) {
  list.push_back(boundary(OperatorTag::head, "mtp.enter", Boundary::enter, 2.0 * whole_tensor(z)));
  Linear l;
  l.names.base = "mtp.projection";
  l.tag = OperatorTag::head;
  l.rows = z.tokens;
  l.n = ceil_div(z.hidden, z.tp);
  l.k = 2 * z.hidden;
  l.input = z.split(2 * z.hidden);
  append_linear(list, z, l);
  list.push_back(boundary(OperatorTag::head, "mtp.leave", Boundary::leave, whole_tensor(z)));
}

}  // namespace

std::vector<Operator> embedding_operators(const Model& model, const hardware::Stack& stack, const Slice& slice) {
  if (model.is_recommender()) { return table_operators(model, stack, slice); }
  const Sizes z = sizes_of(model, stack, slice);
  std::vector<Operator> list;
  list.reserve(6);
  if (model.is_vision()) { append_patches(list, model, z); }
  if (model.vocab > 0) {
    list.push_back(lookup("embedding.lookup", z));
    hold(list.back(), z, real(z.vocab) * real(z.hidden));
    list.push_back(boundary(OperatorTag::embedding, "embedding.leave", Boundary::leave, whole_tensor(z)));
  }
  if (model.position == Position::learned) { list.push_back(position(model, z)); }
  if (model.position == Position::relative) { list.push_back(relative_bias(model, z)); }
  if (model.embedding_norm) {
    list.push_back(norm("embedding.norm", model, z));
    list.back().input_from = OperatorTag::embedding;
  }
  if (z.dropout > 0.0) {
    list.push_back(join({"embedding.dropout", false, true, false, 0, z.split_tokens}, z, stack.fusion.elementwise));
  }
  keep_forward_only_if_idle(list, z);
  return list;
}

std::vector<Operator> head_operators(const Model& model, const hardware::Stack& stack, const Slice& slice) {
  if (model.is_recommender()) { return answer_operators(model, stack, slice); }
  const Sizes whole = sizes_of(model, stack, slice);
  const Sizes z = whole.training || model.is_vision() ? whole : last_positions(whole);
  std::vector<Operator> list;
  list.reserve(6);
  if (model.final_norm && model.encoder_layers > 0 && !whole.decoding) {
    list.push_back(norm("head.encoder_norm", model, whole));
  }
  if (model.final_norm) { list.push_back(norm("head.norm", model, z)); }
  if (model.is_vision()) {
    if (model.vision.classes > 0) { append_classifier(list, model, stack, z); }
  } else {
    append_text_head(list, stack, z, !model.tied_embeddings);
  }
  if (!z.training) { keep_forward_only(list); }
  return list;
}

// DeepSeek-V3 (arXiv:2412.19437, section 2.2, equations 21 to 23): the next token's embedding and the hidden vector are
// normalised, concatenated and projected; a layer, a norm of the module and the model's own head follow.
std::vector<Operator> mtp_operators(const Model& model, const hardware::Stack& stack, const Slice& slice) {
  const Sizes z = sizes_of(model, stack, slice);
  std::vector<Operator> list;
  list.push_back(lookup("mtp.lookup", z));  // the model's own table
  list.push_back(boundary(OperatorTag::embedding, "mtp.lookup_leave", Boundary::leave, whole_tensor(z)));
  list.push_back(norm("mtp.token_norm", model, z));
  list.push_back(norm("mtp.hidden_norm", model, z));
  append_mtp_projection(list, z);
  const std::vector<Operator> layer = layer_operators(model, stack, slice, mtp_kind(model));
  list.insert(list.end(), layer.begin(), layer.end());
  list.push_back(norm("head.norm", model, z));
  append_text_head(list, stack, z, false);
  if (!z.training) { keep_forward_only(list); }
  return list;
}

double table_parameters(const Model& model, std::int64_t tp) {
  return real(vocabulary_rows(model, tp)) * real(model.hidden);
}

}  // namespace orrery::workload
