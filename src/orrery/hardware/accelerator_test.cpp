#include "orrery/hardware/accelerator.hpp"

#include <set>
#include <string>

#include <gtest/gtest.h>

namespace orrery::hardware::accelerator_test {
namespace {

TEST(Accelerator, an_element_is_as_many_bytes_as_its_bits) {
  // tf32 is fp32 in memory: only the multiplier drops bits.
  EXPECT_EQ(element_size(Precision::fp32), Bytes(4.0));
  EXPECT_EQ(element_size(Precision::tf32), Bytes(4.0));
  EXPECT_EQ(element_size(Precision::bf16), Bytes(2.0));
  EXPECT_EQ(element_size(Precision::fp16), Bytes(2.0));
  EXPECT_EQ(element_size(Precision::fp8), Bytes(1.0));
  EXPECT_EQ(element_size(Precision::fp4), Bytes(0.5));
}

TEST(Accelerator, every_precision_has_a_name_of_its_own) {
  std::set<std::string_view> names;
  for (const auto precision : kAllPrecisions) { names.insert(name_of(precision)); }
  EXPECT_EQ(names.size(), kAllPrecisions.size());
}

TEST(Accelerator, the_peak_of_a_precision_it_lacks_is_zero) {
  Accelerator accelerator;
  accelerator.matrix_peak = {{"bf16", FlopsPerSecond(312e12)}};
  EXPECT_EQ(accelerator.peak(Precision::bf16), FlopsPerSecond(312e12));
  EXPECT_EQ(accelerator.peak(Precision::fp8), FlopsPerSecond(0.0));
}

TEST(Accelerator, int8_without_a_measured_efficiency_has_that_of_fp8) {
  Accelerator accelerator;
  accelerator.matrix_efficiency = 0.9;
  EXPECT_EQ(accelerator.efficiency(Precision::int8), 0.9);
  accelerator.matrix_efficiency_of = {{"fp8", 0.7}};
  EXPECT_EQ(accelerator.efficiency(Precision::int8), 0.7);
  accelerator.matrix_efficiency_of["int8"] = 0.6;
  EXPECT_EQ(accelerator.efficiency(Precision::int8), 0.6);
}

TEST(Accelerator, products_of_fp32_run_on_the_ordinary_alus_where_matrix_units_lack_them) {
  Accelerator accelerator;
  accelerator.matrix_peak = {{"tf32", FlopsPerSecond(156e12)}};
  accelerator.vector_peak = FlopsPerSecond(19.5e12);
  EXPECT_EQ(accelerator.peak(Precision::fp32), FlopsPerSecond(19.5e12));
  accelerator.matrix_peak["fp32"] = FlopsPerSecond(95e12);
  EXPECT_EQ(accelerator.peak(Precision::fp32), FlopsPerSecond(95e12));
}

}  // namespace
}  // namespace orrery::hardware::accelerator_test
