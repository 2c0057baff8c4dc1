#include "orrery/hardware/records.hpp"
#include "orrery/workload/records.hpp"

namespace orrery::config {

using workload::EmbeddingTables;
using workload::Recommender;
using workload::Tower;
using workload::TransformerInteraction;

namespace {

// Sizes beyond reason would only overflow in products.
constexpr std::int64_t kMost = 1'000'000'000'000;
constexpr std::int64_t kMostLayers = 10'000;

Objection objection(const Recommender& recommender) {
  auto fault = workload::fault_of(recommender);
  return {std::move(fault.pointer), std::move(fault.message)};
}

}  // namespace

const Record<EmbeddingTables>& Described<EmbeddingTables>::record() {
  static const auto record =
      Record<EmbeddingTables>("embedding tables", "Embedding tables that are alike.")
          .optional("count", &EmbeddingTables::count, "how many", {.min = 1, .max = kMost})
          .required("rows", &EmbeddingTables::rows, "of each", {.min = 1, .max = kMost})
          .required("width", &EmbeddingTables::width, "elements of a row", {.min = 1, .max = kMost})
          .optional("pooling", &EmbeddingTables::pooling, "rows of each table that a sample looks up, on average",
                    {.min = 0.0, .max = static_cast<double>(kMost)});
  return record;
}

const Record<Tower>& Described<Tower>::record() {
  static const auto record =
      Record<Tower>("tower", "A stack of fully connected layers.")
          .optional("input", &Tower::input, "width of what enters; 0 = the first layer's own", {.min = 0, .max = kMost})
          .optional("widths", &Tower::widths, "outputs of the layers, one after the other", {.min = 1, .max = kMost})
          .optional("layers", &Tower::layers, "instead of widths: how many of one width",
                    {.min = 0, .max = kMostLayers})
          .optional("width", &Tower::width, "of each of those", {.min = 0, .max = kMost})
          .optional("experts", &Tower::experts, "every layer is a mixture of so many; 0 = dense",
                    {.min = 0, .max = kMost})
          .optional("active_experts", &Tower::active_experts, "experts that a sample passes", {.min = 0, .max = kMost});
  return record;
}

const Record<TransformerInteraction>& Described<TransformerInteraction>::record() {
  using T = TransformerInteraction;
  static const auto record = Record<T>("interaction", "Transformer layers between embeddings and the top MLP.")
                                 .required("layers", &T::layers, "how many", {.min = 1, .max = kMostLayers})
                                 .required("heads", &T::heads, "of attention", {.min = 1, .max = kMost})
                                 .required("hidden", &T::hidden, "width of a feature", {.min = 1, .max = kMost})
                                 .required("ffn", &T::ffn, "inner width of a layer's MLP", {.min = 1, .max = kMost})
                                 .required("seq", &T::seq, "features, as a sequence", {.min = 1, .max = kMost});
  return record;
}

const Record<Recommender>& Described<Recommender>::record() {
  static const auto record =
      Record<Recommender>("recommender", "A recommender: tables, bottom MLP, interaction, top MLP.")
          .optional("name", &Recommender::name, "name, the file's when absent")
          .optional("description", &Recommender::description, "what it is")
          .required("tables", &Recommender::tables, "embedding tables, those that are alike together",
                    {.nonempty = true})
          .optional("table_precision", &Recommender::table_precision, "number format of tables")
          .optional("dense_precision", &Recommender::dense_precision, "number format of everything else")
          .required("bottom", &Recommender::bottom, "MLP of dense features")
          .required("top", &Recommender::top, "MLP over the interaction")
          .optional("interaction", &Recommender::interaction, "transformer layers between embeddings and top MLP")
          .optional("sources", &Recommender::sources, "figure -> where it was read")
          .check(objection);
  return record;
}

}  // namespace orrery::config
