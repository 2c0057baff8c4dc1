// "quantization_config" of a Hugging Face configuration: the number formats of a quantised checkpoint. Each method has
// its own keys; those of these methods are read: the quantisation configurations of transformers,
// compressed-tensors (config_groups), NVIDIA ModelOpt (quant_algo), AMD Quark (global_quant_config).
#include <optional>
#include <string>
#include <utility>

#include "orrery/workload/huggingface_families.hpp"
#include "orrery/workload/huggingface_keys.hpp"

namespace orrery::workload::huggingface {
namespace {

using config::Kind;
using config::Node;
using hardware::Precision;
using hardware::StorageFormat;

// A format of weights, or of inputs, by its bits and whether it is one of integers.
std::optional<StorageFormat> stored(std::int64_t bits, bool is_integer) {
  if (bits == 8) { return is_integer ? StorageFormat::int8 : StorageFormat::fp8; }
  if (bits == 4) { return is_integer ? StorageFormat::int4 : StorageFormat::fp4; }
  return std::nullopt;
}
std::optional<Precision> of_inputs(std::int64_t bits, bool is_integer) {
  if (bits == 8) { return is_integer ? Precision::int8 : Precision::fp8; }
  if (bits == 4 && !is_integer) { return Precision::fp4; }
  return std::nullopt;
}

const Node* mapping(const Node* node, std::string_view key) {
  const Node* found = node == nullptr ? nullptr : node->find(key);
  return found != nullptr && found->kind == Kind::mapping ? found : nullptr;
}

// The first of the groups of layers.
void read_groups(const Node& quantization, Checkpoint& checkpoint) {
  const Node* groups = mapping(&quantization, "config_groups");
  if (groups == nullptr || groups->members.empty()) { return; }
  const Node& group = groups->members.front().value;
  if (const Node* weights = mapping(&group, "weights")) {
    checkpoint.weights = stored(count(*weights, {"num_bits"}, 0), text(*weights, {"type"}) != "float");
  }
  if (const Node* inputs = mapping(&group, "input_activations")) {
    checkpoint.inputs = of_inputs(count(*inputs, {"num_bits"}, 0), text(*inputs, {"type"}) != "float");
  }
}

// "fp8_e4m3", "int4", "uint8", "fp4", "mxfp4"; 0 for others ("fp6_e3m2", "bfloat16").
std::int64_t bits_of(const std::string& type) {
  for (const auto& [part, bits] :
       {std::pair("fp8", 8), std::pair("int8", 8), std::pair("fp4", 4), std::pair("int4", 4)}) {
    if (type.find(part) != std::string::npos) { return bits; }
  }
  return 0;
}

void read_quark(const Node& quantization, Checkpoint& checkpoint) {
  const Node* global = mapping(&quantization, "global_quant_config");
  const auto type = [&](std::string_view part) {
    const Node* tensor = mapping(global, part);
    return tensor == nullptr ? std::string() : text(*tensor, {"dtype"});
  };
  const std::string weight = type("weight"), input = type("input_tensors");
  checkpoint.weights = stored(bits_of(weight), weight.starts_with("int") || weight.starts_with("uint"));
  checkpoint.inputs = of_inputs(bits_of(input), input.starts_with("int") || input.starts_with("uint"));
}

void read_modelopt(const Node& quantization, Checkpoint& checkpoint) {
  const std::string algorithm = text(quantization, {"quant_algo"});
  const bool is_fp4 = algorithm.find("FP4") != std::string::npos;
  if (algorithm.starts_with("FP8")) {
    checkpoint.weights = StorageFormat::fp8;
    checkpoint.inputs = Precision::fp8;
  } else if (is_fp4 && !algorithm.starts_with("W4A")) {
    checkpoint.weights = StorageFormat::fp4;
    checkpoint.inputs = Precision::fp4;
  } else if (algorithm.starts_with("W4A")) {
    checkpoint.weights = is_fp4 ? StorageFormat::fp4 : StorageFormat::int4;
    if (algorithm.starts_with("W4A8")) { checkpoint.inputs = Precision::fp8; }
  } else {
    read_groups(quantization, checkpoint);
  }
}

void read_bitsandbytes(const Node& quantization, Checkpoint& checkpoint) {
  if (flag(quantization, "load_in_8bit", false)) {
    checkpoint.weights = StorageFormat::int8;
    checkpoint.inputs = Precision::int8;
  } else if (flag(quantization, "load_in_4bit", false)) {
    checkpoint.weights = text(quantization, {"bnb_4bit_quant_type"}) == "nf4" ? StorageFormat::nf4 : StorageFormat::fp4;
  }
}

}  // namespace

Checkpoint checkpoint_of(const Node& config) {
  Checkpoint checkpoint;
  const Node* quantization = mapping(&config, "quantization_config");
  if (quantization == nullptr) { return checkpoint; }
  const std::string method = text(*quantization, {"quant_method"});
  checkpoint.method = method.empty() ? "no quant_method" : method;
  if (method == "fp8" || method == "fbgemm_fp8") {
    checkpoint.weights = StorageFormat::fp8;
    checkpoint.inputs = Precision::fp8;
  } else if (method == "mxfp4") {
    checkpoint.weights = StorageFormat::fp4;
  } else if (method == "awq" || method == "gptq" || method == "auto-round") {
    const bool is_integer = text(*quantization, {"data_type"}).find("fp") == std::string::npos;
    checkpoint.weights = stored(count(*quantization, {"bits", "w_bit"}, 0), is_integer);
  } else if (method == "bitsandbytes") {
    read_bitsandbytes(*quantization, checkpoint);
  } else if (method == "compressed-tensors") {
    read_groups(*quantization, checkpoint);
  } else if (method.starts_with("modelopt")) {
    read_modelopt(*quantization, checkpoint);
  } else if (method == "quark") {
    read_quark(*quantization, checkpoint);
  }
  return checkpoint;
}

}  // namespace orrery::workload::huggingface
