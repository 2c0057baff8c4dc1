#include "orrery/validate/formats.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "orrery/validate/spelling.hpp"

namespace orrery::validate {

namespace {

using hardware::Accelerator;
using hardware::Precision;

// The first that a word contains, or is, decides.
struct Format {
  std::string_view part;
  Precision precision;
  bool whole = false;
};
constexpr std::array kFormats = {
    Format{"w4a4", Precision::fp4},
    Format{"w4afp8", Precision::fp8},
    Format{"w4a8", Precision::fp8},
    Format{"w4a16", Precision::bf16},
    Format{"w8a16", Precision::bf16},
    Format{"int4", Precision::bf16},
    Format{"int8wo", Precision::bf16},
    Format{"awq", Precision::bf16},
    Format{"gptq", Precision::bf16},
    Format{"fp4", Precision::fp4},
    Format{"fp8", Precision::fp8},
    Format{"float8", Precision::fp8},
    Format{"e4m3", Precision::fp8},
    Format{"e5m2", Precision::fp8},
    Format{"w8a8", Precision::fp8},
    Format{"int8", Precision::fp8},
    Format{"smoothquant", Precision::fp8},
    Format{"bf16", Precision::bf16},
    Format{"bfloat16", Precision::bf16},
    Format{"fp16", Precision::fp16},
    Format{"float16", Precision::fp16},
    Format{"half", Precision::fp16},
    Format{"16mixed", Precision::fp16},
    Format{"amp", Precision::fp16, true},  // TensorFlow's automatic mixed precision, and Apex's levels
    Format{"o1", Precision::fp16, true},
    Format{"o2", Precision::fp16, true},
    Format{"mixed", Precision::fp16, true},
    Format{"tf32", Precision::tf32},
    Format{"fp32", Precision::fp32},
    Format{"float32", Precision::fp32},
    Format{"float", Precision::fp32, true},
    Format{"single", Precision::fp32, true},
};

std::optional<Precision> format_of(std::string_view word) {
  const std::string text = letters_and_digits(word);
  for (const Format& format : kFormats) {
    if (format.whole ? text == format.part : text.find(format.part) != std::string::npos) { return format.precision; }
  }
  return std::nullopt;
}

std::vector<Precision> among(std::string_view text) {
  constexpr std::string_view kGaps = " /+,&|;()";
  std::vector<Precision> found;
  while (!text.empty()) {
    const auto gap = text.find_first_of(kGaps);
    if (const auto format = format_of(text.substr(0, gap))) { found.push_back(*format); }
    text.remove_prefix(gap == std::string_view::npos ? text.size() : gap + 1);
  }
  return found;
}

}  // namespace

std::vector<Precision> formats_named(std::string_view text) {
  auto found = among(text.substr(0, text.find('(')));
  return found.empty() ? among(text) : found;
}

Precision gemm_format(const std::vector<Precision>& formats, const Accelerator& accelerator) {
  const auto has = [&](Precision p) { return accelerator.peak(p) > FlopsPerSecond(0); };
  const auto bytes = [](Precision p) { return hardware::element_size(p); };
  std::optional<Precision> best;
  const auto offer = [&](Precision p) {
    if (!has(p)) { return; }
    const bool narrower = !best || bytes(p) < bytes(*best);
    if (narrower || (bytes(p) == bytes(*best) && accelerator.peak(p) > accelerator.peak(*best))) { best = p; }
  };
  std::for_each(formats.begin(), formats.end(), offer);
  if (best) { return *best; }
  const auto stated =
      std::min_element(formats.begin(), formats.end(), [&](Precision a, Precision b) { return bytes(a) < bytes(b); });
  for (const Precision wider : hardware::kAllPrecisions) {
    if (bytes(wider) >= bytes(*stated)) { offer(wider); }
  }
  return best.value_or(Precision::fp32);
}

}  // namespace orrery::validate
