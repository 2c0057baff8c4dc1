#include "orrery/workload/recommender.hpp"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/workload/catalogue.hpp"
#include "orrery/workload/records.hpp"

namespace orrery::workload {
namespace {

Result<Recommender> read(const std::string& yaml) {
  return config::Described<Recommender>::record().read(config::parse_yaml(yaml, "r.yaml").value());
}

// Tables 3 x 100 x 8 and 1 x 10 x 4; bottom 13 -> 16 -> 8, top 20 -> 10 -> 1.
TEST(Recommender, sizes_follow_from_tables_and_widths) {
  const auto r = read(R"(
tables: [{count: 3, rows: 100, width: 8, pooling: 2}, {rows: 10, width: 4}]
bottom: {input: 13, widths: [16, 8]}
top: {input: 20, widths: [10, 1]}
)")
                     .value();
  const auto size = size_of(r);
  EXPECT_EQ(size.table_parameters, 2400 + 40);
  EXPECT_EQ(size.looked_up_elements, 48 + 4);
  EXPECT_EQ(size.dense_parameters, 13 * 16 + 16 * 8 + 20 * 10 + 10);
  EXPECT_EQ(size.flops, 2 * size.dense_parameters);
}

// Four experts, two active: weights four times, products twice.
TEST(Recommender, experts_multiply_weights_and_active_ones_products) {
  const auto r = read(R"(
tables: [{rows: 10, width: 4}]
bottom: {layers: 2, width: 8}
top: {layers: 3, width: 8, experts: 4, active_experts: 2}
interaction: {layers: 2, heads: 2, hidden: 6, ffn: 24, seq: 5}
)")
                     .value();
  const auto size = size_of(r);
  const double interaction = 2 * (4 * 36 + 2 * 6 * 24);
  EXPECT_EQ(size.dense_parameters, 2 * 64 + 4 * 3 * 64 + interaction);
  EXPECT_EQ(size.flops, 2 * (2 * 64 + 2 * 3 * 64 + 5 * interaction));
}

TEST(Recommender, unclear_towers_are_refused) {
  const std::string tables = "tables: [{rows: 10, width: 4}]\n";
  const std::string top = "top: {layers: 2, width: 8}\n";
  EXPECT_FALSE(read(tables + top + "bottom: {width: 8}\n"));
  EXPECT_FALSE(read(tables + top + "bottom: {layers: 2, width: 8, widths: [8]}\n"));
  EXPECT_FALSE(read(tables + top + "bottom: {layers: 2, width: 8, experts: 2, active_experts: 1}\n"));
  EXPECT_FALSE(
      read(tables + "bottom: {layers: 2, width: 8}\ntop: {layers: 2, width: 8, experts: 2, active_experts: 3}\n"));
  EXPECT_FALSE(read("bottom: {layers: 2, width: 8}\n" + top));
}

TEST(Recommender, entries_print_and_read_back_and_are_no_transformers) {
  const auto listed = list_mad_max_models(ORRERY_DATA_DIR).value();
  EXPECT_EQ(listed.size(), 33U);
  int recommenders = 0;
  for (const auto& entry : listed) {
    EXPECT_EQ(entry.unverified, 0) << entry.name;
    const auto any = load_any_model(ORRERY_DATA_DIR, entry.name).value();
    const auto* recommender = std::get_if<Recommender>(&any);
    EXPECT_EQ(load_model(ORRERY_DATA_DIR, entry.name).has_value(), recommender == nullptr) << entry.name;
    if (recommender == nullptr) { continue; }
    ++recommenders;
    EXPECT_EQ(read(describe(*recommender)).value(), *recommender) << entry.name;
  }
  EXPECT_EQ(recommenders, 13);
}

}  // namespace
}  // namespace orrery::workload
