#include "orrery/workload/records.hpp"

namespace orrery::config {

using workload::Interaction;
using workload::Recommender;
using workload::Table;
using workload::TopExperts;

namespace {

// Rules name fields as the model's ("recommender.top"); this record's own places are "/top".
Objection inconsistency_of(const Recommender& recommender) {
  const auto wrong = workload::inconsistency(recommender);
  if (!wrong) { return {}; }
  const std::string field(wrong->field);
  return {"/" + field.substr(field.find('.') + 1), wrong->message};
}

}  // namespace

const Record<Table>& Described<Table>::record() {
  static const auto record =
      Record<Table>("table", "Embedding tables that are alike.")
          .optional("count", &Table::count, "how many", {.min = 1})
          .required("rows", &Table::rows, "rows of each", {.min = 1})
          .required("width", &Table::width, "numbers of a row", {.min = 1})
          .optional("lookups", &Table::lookups, "rows that a sample looks up in each, added up (pooling factor)",
                    {.min = 0.0});
  return record;
}

const Record<Interaction>& Described<Interaction>::record() {
  static const auto record =
      Record<Interaction>("interaction", "How a sample's vectors become the top MLP's input.")
          .required("kind", &Interaction::kind, "products of pairs, one behind the other, DCNv2, ...")
          .optional("layers", &Interaction::layers, "of cross and transformer", {.min = 0})
          .optional("rank", &Interaction::rank, "cross: inner width of its two factors; 0 = one square matrix",
                    {.min = 0})
          .optional("heads", &Interaction::heads, "transformer: attention heads", {.min = 0})
          .optional("ffn", &Interaction::ffn, "transformer: width of the MLP's inner layer", {.min = 0})
          .optional("tokens", &Interaction::tokens, "transformer: tokens of a sample; 0 = one for each vector",
                    {.min = 0})
          .optional("width", &Interaction::width, "transformer: of a token, 0 = of a vector; opaque: of the output",
                    {.min = 0})
          .optional("output", &Interaction::output, "transformer: numbers that the top MLP reads of it; 0 = all",
                    {.min = 0});
  return record;
}

const Record<TopExperts>& Described<TopExperts>::record() {
  static const auto record = Record<TopExperts>("top_experts", "Several top MLPs, each sample going to some.")
                                 .optional("count", &TopExperts::count, "top MLPs; 0 = one for all", {.min = 0})
                                 .optional("active", &TopExperts::active, "that a sample is sent to", {.min = 0});
  return record;
}

const Record<Recommender>& Described<Recommender>::record() {
  static const auto record =
      Record<Recommender>("recommender", "Embedding tables, a bottom MLP, what brings them together, a top MLP.")
          .optional("dense_features", &Recommender::dense_features, "numbers of a sample for the bottom MLP",
                    {.min = 0})
          .optional("bottom", &Recommender::bottom, "widths of the bottom MLP's layers")
          .required("tables", &Recommender::tables, "embedding tables")
          .optional("table_precision", &Recommender::table_precision, "number format that tables are stored in")
          .required("interaction", &Recommender::interaction, "how vectors are brought together")
          .required("top", &Recommender::top, "widths of the top MLP's layers")
          .optional("top_experts", &Recommender::top_experts, "several top MLPs, by a router")
          .optional("dense_precision", &Recommender::dense_precision,
                    "of mad-max: what dense layers are computed in; open: --precision, as always in physical")
          .check(inconsistency_of);
  return record;
}

}  // namespace orrery::config
