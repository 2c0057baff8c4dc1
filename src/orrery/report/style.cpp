#include "orrery/report/style.hpp"

#include <fmt/format.h>

#include "orrery/report/table.hpp"

namespace orrery::report {

namespace {

std::string painted(std::string_view text, std::string_view code, TextStyle style) {
  return style.colour ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

}  // namespace

std::string bold(std::string_view text, TextStyle style) { return painted(text, "1", style); }
std::string red(std::string_view text, TextStyle style) { return painted(text, "1;31", style); }
std::string dim(std::string_view text, TextStyle style) { return painted(text, "2", style); }

std::string formats_text(const std::string& weights, const std::string& cache, const std::string& attention,
                         const std::string& quantized) {
  std::string text;
  if (!weights.empty()) { text += fmt::format(", {} weights", weights); }
  if (!cache.empty()) { text += fmt::format(", {} KV cache", cache); }
  if (!attention.empty()) { text += fmt::format(", {} attention", attention); }
  if (!quantized.empty()) { text += fmt::format(", quantized: {}", quantized); }
  return text;
}

std::string job_header(const results::Estimate& estimate, TextStyle style) {
  const std::string title = fmt::format("{} on {} {} of {}", estimate.model, grouped(estimate.devices),
                                        estimate.devices == 1 ? "device" : "devices", estimate.cluster);
  std::string work =
      estimate.inference
          ? fmt::format("batch of {} sequences, {} input and {} output tokens each", grouped(estimate.global_batch),
                        grouped(estimate.inference->prompt), grouped(estimate.inference->generate))
          : fmt::format("global batch {} x {} tokens", grouped(estimate.global_batch), grouped(estimate.seq));
  if (estimate.samples_only) {
    work =
        fmt::format("{} of {} samples", estimate.inference ? "batch" : "global batch", grouped(estimate.global_batch));
  }
  if (estimate.images > 0) {
    work += fmt::format(", {} images of {}x{} pixels in each", grouped(estimate.images), estimate.image_size,
                        estimate.image_size);
  }
  work += fmt::format(", {}", estimate.precision);
  if (!estimate.fp8_recipe.empty() && estimate.fp8_recipe != "delayed") {
    work += fmt::format(" with {} scaling", estimate.fp8_recipe);
  }
  work += formats_text(estimate.weight_format, estimate.kv_format, estimate.attention_precision, estimate.quantized);
  if (!estimate.optimizer.empty()) { work += fmt::format(", {}", estimate.optimizer); }
  work += fmt::format(", stack {}", estimate.stack);
  if (estimate.lora > 0) { work += fmt::format(", LoRA rank {}", estimate.lora); }
  return bold(printable(title), style) + "\n" + printable(work) + "\n";
}

}  // namespace orrery::report
