// Checks that a recommender's sizes describe a network.
#include <string>

#include <fmt/format.h>

#include "orrery/workload/model.hpp"
#include "orrery/workload/recommender.hpp"

namespace orrery::workload {
namespace {

using Found = std::optional<Inconsistency>;

constexpr std::int64_t kMostTableRows = 100'000'000'000;
constexpr std::int64_t kMostTableWidth = 1'000'000;
constexpr std::int64_t kMostTables = 1'000'000;
constexpr std::int64_t kMostDenseLayers = 10'000;
constexpr double kMostLookups = 1e6;
constexpr double kMostElements = 4e18;  // counts must stay far below 2^63

// Prefixes a field with its place, "recommender.top/2"; see records.cpp.
Inconsistency wrong(std::string_view field, std::string message) { return {field, std::move(message)}; }

Found table_sizes(const Recommender& r) {
  if (r.tables.empty()) {
    return wrong("recommender.tables", "tables is empty; a recommender needs a list of {rows, width, lookups}");
  }
  for (std::size_t i = 0; i < r.tables.size(); ++i) {
    const Table& table = r.tables[i];
    const auto in = [&](std::int64_t value, std::int64_t most) { return value >= 1 && value <= most; };
    if (!in(table.rows, kMostTableRows) || !in(table.width, kMostTableWidth) || !in(table.count, kMostTables)) {
      return wrong("recommender.tables",
                   fmt::format("table {} has count {}, {} rows and width {}; a count of 1 to {}, 1 to {} rows and a "
                               "width of 1 to {} are accepted",
                               i, table.count, table.rows, table.width, kMostTables, kMostTableRows, kMostTableWidth));
    }
    if (!(table.lookups > 0.0 && table.lookups <= kMostLookups)) {
      return wrong("recommender.tables", fmt::format("table {} has {} lookups per sample; more than 0 and at most {} "
                                                     "are accepted",
                                                     i, table.lookups, kMostLookups));
    }
  }
  if (r.table_count() > kMostTables || r.table_elements() > kMostElements) {
    return wrong("recommender.tables",
                 fmt::format("{} tables have {:.0e} elements; at most {} tables and {:.0e} elements are accepted",
                             r.table_count(), r.table_elements(), kMostTables, kMostElements));
  }
  return std::nullopt;
}

Found mlp_sizes(const Recommender& r) {
  const auto check = [](std::string_view field, const std::vector<std::int64_t>& widths) -> Found {
    for (const std::int64_t width : widths) {
      if (width >= 1 && width <= kMostTableWidth) { continue; }
      return wrong(field, fmt::format("a layer has width {}; 1 to {} is accepted", width, kMostTableWidth));
    }
    if (static_cast<std::int64_t>(widths.size()) <= kMostDenseLayers) { return std::nullopt; }
    return wrong(field,
                 fmt::format("{} layers are too many; at most {} are accepted", widths.size(), kMostDenseLayers));
  };
  if (auto found = check("recommender.bottom", r.bottom)) { return found; }
  if (auto found = check("recommender.top", r.top)) { return found; }
  if (r.top.empty()) {
    return wrong("recommender.top", "top is empty; a recommender needs the layer widths of its top MLP");
  }
  if (r.dense_features < 0 || r.dense_features > kMostTableWidth) {
    return wrong("recommender.dense_features",
                 fmt::format("dense_features is {}; 0 to {} is accepted", r.dense_features, kMostTableWidth));
  }
  if ((r.dense_features == 0) != r.bottom.empty()) {
    return wrong(r.bottom.empty() ? "recommender.bottom" : "recommender.dense_features",
                 "dense_features and bottom need each other: the bottom MLP reads the dense features");
  }
  return std::nullopt;
}

// Dot products between vectors, and tokens, require vectors of one width.
Found one_width(const Recommender& r, const char* why) {
  const std::int64_t width = r.bottom.empty() ? r.tables.front().width : r.bottom_width();
  const char* const whose = r.bottom.empty() ? "the first table's" : "the bottom MLP's";
  for (std::size_t i = 0; i < r.tables.size(); ++i) {
    if (r.tables[i].width == width) { continue; }
    return wrong("recommender.tables", fmt::format("table {} has width {}, {} output has width {}; {} needs vectors "
                                                   "of one width",
                                                   i, r.tables[i].width, whose, width, why));
  }
  return std::nullopt;
}

Found transformer(const Recommender& r) {
  const Interaction& how = r.interaction;
  if (how.layers < 1 || how.heads < 1 || how.ffn < 1 || how.ffn > kMostTableWidth || how.heads > 16'384) {
    return wrong("recommender.interaction", "a transformer interaction needs layers, heads and ffn of at least 1");
  }
  if (how.tokens == 0 && how.width == 0) {
    if (auto found = one_width(r, "one token per vector")) { return found; }
  }
  const std::int64_t width = how.width > 0 ? how.width : r.tables.front().width;
  if (width % how.heads == 0) { return std::nullopt; }
  return wrong("recommender.interaction",
               fmt::format("{1} heads do not divide the interaction's token width {0}", width, how.heads));
}

Found interaction(const Recommender& r) {
  const Interaction& how = r.interaction;
  for (const std::int64_t value : {how.layers, how.rank, how.heads, how.ffn, how.tokens, how.width, how.output}) {
    if (value >= 0 && value <= kMostTableWidth) { continue; }
    return wrong("recommender.interaction",
                 fmt::format("{} is not a size; 0 to {} is accepted", value, kMostTableWidth));
  }
  if (how.layers > kMostDenseLayers) {
    return wrong("recommender.interaction",
                 fmt::format("{} layers are too many; at most {} are accepted", how.layers, kMostDenseLayers));
  }
  switch (how.kind) {
    case InteractionKind::dot: return one_width(r, "a dot interaction");
    case InteractionKind::concat: return std::nullopt;
    case InteractionKind::cross:
      if (how.layers >= 1) { return std::nullopt; }
      return wrong("recommender.interaction", "a cross interaction needs layers of at least 1");
    case InteractionKind::transformer: return transformer(r);
    case InteractionKind::opaque:
      if (how.width >= 1) { return std::nullopt; }
      return wrong("recommender.interaction", "an opaque interaction needs width, the numbers it writes per sample");
  }
  return std::nullopt;
}

Found experts(const Recommender& r) {
  const TopExperts& experts = r.top_experts;
  if (experts == TopExperts{}) { return std::nullopt; }
  if (experts.count < 1 || experts.count > 65'536) {
    return wrong("recommender.top_experts",
                 fmt::format("top_experts.count is {}; 1 to 65536 is accepted", experts.count));
  }
  if (experts.active < 1 || experts.active > experts.count) {
    return wrong(
        "recommender.top_experts",
        fmt::format("top_experts.active is {}; 1 to top_experts.count {} is accepted", experts.active, experts.count));
  }
  return std::nullopt;
}

// Numbers per sample after the interaction, as floating point: the product may overflow integers.
Found too_wide(const Recommender& r) {
  constexpr double kMostNumbers = 1e9;
  const auto joined = static_cast<double>(r.joined_width()), vectors = static_cast<double>(r.vectors());
  const double made = r.interaction.kind == InteractionKind::dot ? vectors * vectors / 2.0 : joined;
  if (joined <= kMostNumbers && made <= kMostNumbers) { return std::nullopt; }
  return wrong("recommender.tables",
               fmt::format("an interaction of {} vectors makes {:.0e} numbers per sample; at most "
                           "{:.0e} are accepted",
                           r.vectors(), std::max(joined, made), kMostNumbers));
}

}  // namespace

std::optional<Inconsistency> inconsistency(const Recommender& recommender) {
  for (const auto rule : {table_sizes, mlp_sizes, interaction, experts, too_wide}) {
    if (auto found = rule(recommender)) { return found; }
  }
  return std::nullopt;
}

}  // namespace orrery::workload
