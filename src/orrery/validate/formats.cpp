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
using hardware::StorageFormat;

// The first that a word contains, or is, decides.
struct Format {
  std::string_view part;
  Precision precision;
  std::optional<StorageFormat> weights = {};  // where they are not stored as they are multiplied
  bool whole = false;
};
constexpr std::array kFormats = {
    Format{"w4a4", Precision::fp4},
    Format{"w4afp8", Precision::fp8, StorageFormat::int4},
    Format{"w4a8", Precision::fp8, StorageFormat::int4},
    Format{"w4a16", Precision::bf16, StorageFormat::int4},
    Format{"w8a16", Precision::bf16, StorageFormat::int8},
    Format{"int4", Precision::bf16, StorageFormat::int4},
    Format{"int8wo", Precision::bf16, StorageFormat::int8},
    Format{"nf4", Precision::bf16, StorageFormat::nf4},
    Format{"awq", Precision::bf16, StorageFormat::int4},
    Format{"gptq", Precision::bf16, StorageFormat::int4},
    Format{"fp4", Precision::fp4},
    Format{"fp8", Precision::fp8},
    Format{"float8", Precision::fp8},
    Format{"e4m3", Precision::fp8},
    Format{"e5m2", Precision::fp8},
    Format{"w8a8", Precision::int8},
    Format{"int8", Precision::int8},
    Format{"smoothquant", Precision::int8},
    Format{"bf16", Precision::bf16},
    Format{"bfloat16", Precision::bf16},
    Format{"fp16", Precision::fp16},
    Format{"float16", Precision::fp16},
    Format{"half", Precision::fp16},
    Format{"16mixed", Precision::fp16},
    Format{"amp", Precision::fp16, {}, true},  // TensorFlow's automatic mixed precision, and Apex's levels
    Format{"o1", Precision::fp16, {}, true},
    Format{"o2", Precision::fp16, {}, true},
    Format{"mixed", Precision::fp16, {}, true},
    Format{"tf32", Precision::tf32},
    Format{"fp32", Precision::fp32},
    Format{"float32", Precision::fp32},
    Format{"float", Precision::fp32, {}, true},
    Format{"single", Precision::fp32, {}, true},
};

const Format* format_of(std::string_view word) {
  const std::string text = letters_and_digits(word);
  const auto found = std::find_if(kFormats.begin(), kFormats.end(), [&](const Format& format) {
    return format.whole ? text == format.part : text.find(format.part) != std::string::npos;
  });
  return found == kFormats.end() ? nullptr : &*found;
}

std::vector<const Format*> among(std::string_view text) {
  constexpr std::string_view kGaps = " /+,&|;()";
  std::vector<const Format*> found;
  while (!text.empty()) {
    const auto gap = text.find_first_of(kGaps);
    if (const Format* format = format_of(text.substr(0, gap))) { found.push_back(format); }
    text.remove_prefix(gap == std::string_view::npos ? text.size() : gap + 1);
  }
  return found;
}

std::vector<const Format*> named(std::string_view text) {
  auto found = among(text.substr(0, text.find('(')));
  return found.empty() ? among(text) : found;
}

// Formats of GEMM inputs of less than 16 bits, as formats of weights.
std::optional<StorageFormat> as_stored(Precision precision) {
  switch (precision) {
    case Precision::fp8: return StorageFormat::fp8;
    case Precision::fp4: return StorageFormat::fp4;
    case Precision::int8: return StorageFormat::int8;
    case Precision::fp32:
    case Precision::tf32:
    case Precision::bf16:
    case Precision::fp16: return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::vector<Precision> formats_named(std::string_view text) {
  std::vector<Precision> precisions;
  for (const Format* format : named(text)) { precisions.push_back(format->precision); }
  return precisions;
}

std::optional<StorageFormat> stored_format(std::string_view text, Precision multiplied) {
  std::optional<StorageFormat> narrowest;
  for (const Format* format : named(text)) {
    const auto stored = format->weights ? format->weights : as_stored(format->precision);
    if (stored && (!narrowest || hardware::element_size(*stored) < hardware::element_size(*narrowest))) {
      narrowest = stored;
    }
  }
  if (!narrowest || as_stored(multiplied) == narrowest) { return std::nullopt; }
  return narrowest;
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
    if (!hardware::is_integer(wider) && bytes(wider) >= bytes(*stated)) { offer(wider); }
  }
  return best.value_or(Precision::fp32);
}

}  // namespace orrery::validate
