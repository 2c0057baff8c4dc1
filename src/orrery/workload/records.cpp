#include "orrery/workload/records.hpp"

namespace orrery::config {

using workload::Model;

namespace {

Objection inconsistency_of(const Model& model) {
  const auto wrong = workload::inconsistency(model);
  return wrong ? Objection{"/" + std::string(wrong->field), wrong->message} : Objection{};
}

}  // namespace

const Record<Model>& Described<Model>::record() {
  static const auto record =
      Record<Model>("model", "A decoder-only dense transformer language model.")
          .optional("name", &Model::name, "name, the file's when absent")
          .optional("description", &Model::description, "what it is")
          .required("layers", &Model::layers, "transformer layers", {.min = 1})
          .required("hidden", &Model::hidden, "width of the residual stream", {.min = 1})
          .required("heads", &Model::heads, "query heads", {.min = 1})
          .optional("kv_heads", &Model::kv_heads, "key and value heads; 0 = heads", {.min = 0})
          .optional("head_dim", &Model::head_dim, "width of a head; 0 = hidden / heads", {.min = 0})
          .required("ffn", &Model::ffn, "width of the MLP's inner layer", {.min = 1})
          .required("vocab", &Model::vocab, "rows of the embedding as stored", {.min = 1})
          .required("max_seq", &Model::max_seq, "longest sequence", {.min = 1})
          .optional("gated_mlp", &Model::gated_mlp, "two input projections, act(a) b")
          .optional("tied_embeddings", &Model::tied_embeddings, "the head shares the embedding's weights")
          .optional("qkv_bias", &Model::qkv_bias, "query, key and value projections have biases")
          .optional("attention_output_bias", &Model::attention_output_bias, "attention's output projection has a bias")
          .optional("mlp_bias", &Model::mlp_bias, "MLP projections have biases")
          .optional("parallel_residual", &Model::parallel_residual, "attention and MLP read the same residual stream")
          .optional("embedding_norm", &Model::embedding_norm, "a norm after the embedding")
          .optional("final_norm", &Model::final_norm, "a norm before the head")
          .optional("position_rows", &Model::position_rows, "rows of a learned position table; 0 = max_seq", {.min = 0})
          .optional("sliding_window", &Model::sliding_window, "positions that a query looks back; 0 = all", {.min = 0})
          .optional("dropout", &Model::dropout, "hidden and attention dropout probability in pre-training")
          .optional("norm", &Model::norm, "kind of norm")
          .optional("activation", &Model::activation, "of the MLP")
          .optional("position", &Model::position, "how positions enter")
          .optional("sources", &Model::sources,
                    "figure -> where it was read; \"unverified: why\" when nobody has seen a source")
          .check(inconsistency_of);
  return record;
}

}  // namespace orrery::config
