#include "orrery/workload/records.hpp"

namespace orrery::config {

using workload::Interaction;
using workload::Recommender;
using workload::Table;
using workload::TopExperts;

namespace {

// Rules name fields as the model's ("recommender.top"); this record's own places are "/top".
Objection recommender_inconsistency(const Recommender& recommender) {
  const auto wrong = workload::inconsistency(recommender);
  if (!wrong) { return {}; }
  const std::string field(wrong->field);
  return {"/" + field.substr(field.find('.') + 1), wrong->message};
}

}  // namespace

const Record<Table>& Described<Table>::record() {
  static const auto record =
      Record<Table>("table", "Embedding tables of one shape.")
          .optional("count", &Table::count, "number of such tables", {.min = 1})
          .required("rows", &Table::rows, "rows per table", {.min = 1})
          .required("width", &Table::width, "elements per row", {.min = 1})
          .optional("lookups", &Table::lookups, "rows per sample and table, summed into one vector (pooling factor)",
                    {.min = 0.0});
  return record;
}

const Record<Interaction>& Described<Interaction>::record() {
  static const auto record =
      Record<Interaction>("interaction", "How the vectors of a sample become the input of the top MLP.")
          .required("kind", &Interaction::kind, "kind of interaction")
          .optional("layers", &Interaction::layers, "cross, transformer: layers", {.min = 0})
          .optional("rank", &Interaction::rank, "cross: rank of the low-rank matrix; 0 = one square matrix", {.min = 0})
          .optional("heads", &Interaction::heads, "transformer: attention heads", {.min = 0})
          .optional("ffn", &Interaction::ffn, "transformer: inner width of the MLP", {.min = 0})
          .optional("tokens", &Interaction::tokens, "transformer: tokens per sample; 0 = one per vector", {.min = 0})
          .optional("width", &Interaction::width,
                    "transformer: width of a token (0 = that of a vector); opaque: width of the output", {.min = 0})
          .optional("output", &Interaction::output, "transformer: outputs that the top MLP reads; 0 = all", {.min = 0});
  return record;
}

const Record<TopExperts>& Described<TopExperts>::record() {
  static const auto record =
      Record<TopExperts>("top_experts", "A mixture of experts as top MLP.")
          .optional("count", &TopExperts::count, "top MLPs; 0 = one top MLP for all samples", {.min = 0})
          .optional("active", &TopExperts::active, "top MLPs per sample (top-k)", {.min = 0});
  return record;
}

const Record<Recommender>& Described<Recommender>::record() {
  static const auto record =
      Record<Recommender>("recommender", "Embedding tables, a bottom MLP, an interaction, a top MLP.")
          .optional("dense_features", &Recommender::dense_features,
                    "dense features per sample, inputs of the bottom MLP", {.min = 0})
          .optional("bottom", &Recommender::bottom, "layer widths of the bottom MLP")
          .required("tables", &Recommender::tables, "embedding tables")
          .optional("table_precision", &Recommender::table_precision, "number format of the stored tables")
          .required("interaction", &Recommender::interaction, "interaction of embedding vectors and bottom MLP output")
          .required("top", &Recommender::top, "layer widths of the top MLP")
          .optional("top_experts", &Recommender::top_experts, "several top MLPs and a router")
          .optional("dense_precision", &Recommender::dense_precision,
                    "--semantics mad-max only: number format of dense layers; default: --precision")
          .check(recommender_inconsistency);
  return record;
}

}  // namespace orrery::config
