#include "orrery/validate/formats.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::validate::formats_test {
namespace {

using hardware::Accelerator;
using hardware::Precision;
using testing::ElementsAre;

TEST(Formats, tables_have_many_names_for_them) {
  const std::pair<const char*, Precision> names[] = {
      {"BF16", Precision::bf16},     {"bfloat16", Precision::bf16},     {"bf16-mixed", Precision::bf16},
      {"amp_bf16", Precision::bf16}, {"half", Precision::fp16},         {"amp", Precision::fp16},
      {"16-mixed", Precision::fp16}, {"fp8_cs", Precision::fp8},        {"fp8-mx", Precision::fp8},
      {"FP8 (TE)", Precision::fp8},  {"float8_e4m3fn", Precision::fp8}, {"int8", Precision::int8},
      {"w8a8", Precision::int8},     {"mxfp4", Precision::fp4},         {"NVFP4", Precision::fp4},
      {"w4a16", Precision::bf16},    {"int8_wo", Precision::bf16},      {"w4afp8", Precision::fp8},
      {"fp8-w8a8", Precision::fp8},  {"nf4", Precision::bf16},          {"W4A4", Precision::fp4},
      {"float32", Precision::fp32},  {"float", Precision::fp32},        {"TF32", Precision::tf32}};
  for (const auto& [text, precision] : names) { EXPECT_THAT(formats_named(text), ElementsAre(precision)) << text; }
  for (const char* text : {"", "fp64", "float64", "quick"}) { EXPECT_TRUE(formats_named(text).empty()) << text; }
}

TEST(Formats, weights_are_stored_in_the_narrowest_where_it_is_not_multiplied) {
  using hardware::StorageFormat;
  EXPECT_EQ(stored_format("w4a16", Precision::bf16), StorageFormat::int4);
  EXPECT_EQ(stored_format("AWQ", Precision::fp16), StorageFormat::int4);
  EXPECT_EQ(stored_format("int8_wo", Precision::bf16), StorageFormat::int8);
  EXPECT_EQ(stored_format("w4a8", Precision::fp8), StorageFormat::int4);
  EXPECT_EQ(stored_format("nf4", Precision::bf16), StorageFormat::nf4);
  EXPECT_EQ(stored_format("bf16 + int4 weights", Precision::bf16), StorageFormat::int4);
  EXPECT_EQ(stored_format("fp8", Precision::bf16), StorageFormat::fp8);  // no units for it
  for (const Precision precision : {Precision::fp8, Precision::fp4, Precision::int8, Precision::bf16}) {
    EXPECT_EQ(stored_format(hardware::name_of(precision), precision), std::nullopt);
  }
  EXPECT_EQ(stored_format("", Precision::bf16), std::nullopt);
}

TEST(Formats, integers_are_multiplied_only_where_they_are_stated) {
  Accelerator ampere;
  ampere.matrix_peak = {{"bf16", FlopsPerSecond(300.0)}, {"int8", FlopsPerSecond(600.0)}};
  EXPECT_EQ(gemm_format({Precision::int8}, ampere), Precision::int8);
  EXPECT_EQ(gemm_format({Precision::fp8}, ampere), Precision::bf16);
  Accelerator without;
  without.matrix_peak = {{"bf16", FlopsPerSecond(300.0)}, {"fp8", FlopsPerSecond(600.0)}};
  EXPECT_EQ(gemm_format({Precision::int8}, without), Precision::fp8);
}

TEST(Formats, several_are_all_named_and_notes_are_not) {
  EXPECT_THAT(formats_named("fp16/tf32 (hugectr; fp8 not parsed)"), ElementsAre(Precision::fp16, Precision::tf32));
  EXPECT_THAT(formats_named("bf16+fp32opt"), ElementsAre(Precision::bf16, Precision::fp32));
  EXPECT_THAT(formats_named("mixed precision (bf16)"), ElementsAre(Precision::fp16));
  EXPECT_THAT(formats_named("precision (bf16)"), ElementsAre(Precision::bf16));
}

Accelerator with(std::initializer_list<std::pair<const char*, double>> peaks) {
  Accelerator made;
  for (const auto& [name, rate] : peaks) { made.matrix_peak[name] = FlopsPerSecond(rate); }
  made.vector_peak = FlopsPerSecond(10.0);
  return made;
}

TEST(Formats, the_narrowest_that_the_accelerator_has_is_multiplied) {
  const auto a100 = with({{"tf32", 150.0}, {"bf16", 300.0}, {"fp16", 300.0}});
  EXPECT_EQ(gemm_format({Precision::fp8, Precision::bf16}, a100), Precision::bf16);
  EXPECT_EQ(gemm_format({Precision::fp32, Precision::tf32}, a100), Precision::tf32);  // as wide, and faster
  EXPECT_EQ(gemm_format({Precision::bf16, Precision::fp32}, a100), Precision::bf16);
}

TEST(Formats, operands_without_units_are_made_as_wide_as_units_are) {
  const auto a100 = with({{"tf32", 150.0}, {"bf16", 300.0}, {"fp16", 301.0}});
  EXPECT_EQ(gemm_format({Precision::fp4}, a100), Precision::fp16);  // of bf16 and fp16 the faster
  const auto hopper = with({{"bf16", 1000.0}, {"fp8", 2000.0}});
  EXPECT_EQ(gemm_format({Precision::fp4}, hopper), Precision::fp8);
  const auto volta = with({{"fp16", 125.0}});
  EXPECT_EQ(gemm_format({Precision::bf16}, volta), Precision::fp16);
  EXPECT_EQ(gemm_format({Precision::tf32}, volta), Precision::fp32);  // on its ordinary ALUs
}

}  // namespace
}  // namespace orrery::validate::formats_test
