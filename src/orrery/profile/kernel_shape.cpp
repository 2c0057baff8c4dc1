#include "orrery/profile/kernel_shape.hpp"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>
#include <vector>

namespace orrery::profile {

namespace {

using Shape = std::vector<std::int64_t>;

// "[[64, 512], [512, 128], []]" as lists of numbers; lists of tensors are opened.
std::vector<std::vector<std::int64_t>> shapes_of(std::string_view text) {
  std::vector<std::vector<std::int64_t>> shapes;
  int depth = 0;
  std::int64_t number = -1;
  const auto end_number = [&] {
    if (number >= 0 && depth >= 2 && !shapes.empty()) { shapes.back().push_back(number); }
    number = -1;
  };
  for (const char c : text) {
    if (c >= '0' && c <= '9') {
      constexpr std::int64_t kMost = 1'000'000'000'000;
      number = std::min((number < 0 ? 0 : number) * 10 + (c - '0'), kMost);
      continue;
    }
    end_number();
    if (c == '[' && ++depth >= 2) { shapes.emplace_back(); }
    if (c == ']') { --depth; }
  }
  return shapes;
}

double elements_of(const Shape& shape) {
  double elements = shape.empty() ? 0 : 1;
  for (const std::int64_t size : shape) { elements *= static_cast<double>(size); }
  return elements;
}

// Saturates: damaged files have any numbers.
std::int64_t whole(double value) { return static_cast<std::int64_t>(std::min(value, 1e15)); }

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// Attention of [sequences, heads, positions, head dimension]; kernels of FlashAttention itself have heads after
// positions.
std::optional<MatrixProduct> attention_of(std::string_view name, const std::vector<Shape>& tensors) {
  if (!has(name, "scaled_dot_product") && !has(name, "flash_attention") && !has(name, "efficient_attention")) {
    return std::nullopt;
  }
  std::vector<const Shape*> four;
  for (const Shape& shape : tensors) {
    if (shape.size() == 4 && elements_of(shape) > 0) { four.push_back(&shape); }
  }
  if (four.size() < 2) { return std::nullopt; }
  const Shape& query = *four[0];
  const Shape& key = *four[1];
  const std::size_t positions = has(name, "scaled_dot_product") ? 2 : 1;
  return MatrixProduct{query[positions], key[positions], query[3],
                       whole(static_cast<double>(query[0]) * static_cast<double>(query[3 - positions]))};
}

// Filters [out, in, height, width] at every position of an input [batch, channels, height, width].
std::optional<MatrixProduct> convolution_of(std::string_view name, const std::vector<Shape>& tensors) {
  if (!has(name, "conv")) { return std::nullopt; }
  std::vector<const Shape*> images;
  for (const Shape& shape : tensors) {
    if (shape.size() >= 3 && elements_of(shape) > 0) { images.push_back(&shape); }
  }
  if (images.size() < 2) { return std::nullopt; }
  const Shape& input = *images[images.size() - 2];
  const Shape& filters = *images.back();
  const double positions = elements_of(input) / static_cast<double>(input[1]);
  const double taps = elements_of(filters) / static_cast<double>(filters[0]);
  return MatrixProduct{whole(positions), filters[0], whole(taps), 1};
}

// Bytes of the first type that is a tensor's.
std::pair<std::string, double> element_of(std::string_view types) {
  constexpr std::array<std::pair<std::string_view, std::pair<std::string_view, double>>, 9> kTypes = {
      {{"c10::BFloat16", {"bf16", 2}},
       {"c10::Half", {"fp16", 2}},
       {"float", {"fp32", 4}},
       {"double", {"fp64", 8}},
       {"long int", {"int64", 8}},
       {"int", {"int32", 4}},
       {"c10::Float8_e4m3fn", {"fp8", 1}},
       {"bool", {"bool", 1}},
       {"unsigned char", {"uint8", 1}}}};
  std::pair<std::string, double> first;
  std::size_t at = std::string_view::npos;
  for (const auto& [name, format] : kTypes) {
    const std::size_t found = types.find(name);
    if (found >= at) { continue; }
    at = found;
    first = {std::string(format.first), format.second};
  }
  return first;
}

}  // namespace

std::optional<MatrixProduct> matrix_product_of(std::string_view name, std::string_view dims) {
  std::vector<std::vector<std::int64_t>> matrices;
  const std::size_t rank = name == "aten::bmm" || name == "aten::baddbmm" ? 3 : 2;
  if (rank == 2 && name != "aten::mm" && name != "aten::addmm") { return std::nullopt; }
  for (auto& shape : shapes_of(dims)) {
    if (shape.size() == rank) { matrices.push_back(std::move(shape)); }
  }
  if (matrices.size() < 2) { return std::nullopt; }
  const auto& a = matrices[matrices.size() - 2];
  const auto& b = matrices.back();
  const std::size_t at = rank - 2;
  if (a[at + 1] != b[at] || a[at] == 0 || b[at] == 0 || b[at + 1] == 0) { return std::nullopt; }
  return MatrixProduct{a[at], b[at + 1], a[at + 1], rank == 3 ? a[0] : 1};
}

std::string number_format_of(std::string_view types) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kTypes = {
      {{"c10::BFloat16", "bf16"}, {"c10::Half", "fp16"}, {"float", "fp32"}, {"double", "fp64"}}};
  for (const auto& [name, dtype] : kTypes) {
    if (types.find(name) != std::string_view::npos) { return std::string(dtype); }
  }
  return {};
}

std::optional<WorkShape> work_shape_of(std::string_view operation, std::string_view dims, std::string_view types) {
  const std::vector<Shape> tensors = shapes_of(dims);
  WorkShape work;
  std::tie(work.format, work.element_bytes) = element_of(types);
  if (work.element_bytes == 0) { return std::nullopt; }
  using Kind = WorkShape::Kind;
  const std::pair<Kind, std::optional<MatrixProduct>> kinds[] = {
      {Kind::matrix_product, matrix_product_of(operation, dims)},
      {Kind::attention, attention_of(operation, tensors)},
      {Kind::convolution, convolution_of(operation, tensors)}};
  for (const auto& [kind, product] : kinds) {
    if (!product) { continue; }
    work.kind = kind;
    work.product = *product;
    return work;
  }
  double largest = 0;
  for (const Shape& shape : tensors) {
    work.elements += elements_of(shape);
    largest = std::max(largest, elements_of(shape));
  }
  work.elements += largest;
  return largest > 0 ? std::optional(work) : std::nullopt;
}

std::uint64_t tensor_bytes(std::string_view dims, std::string_view types) {
  double bytes = 0;
  for (const Shape& shape : shapes_of(dims)) { bytes += elements_of(shape) * element_of(types).second; }
  return static_cast<std::uint64_t>(whole(bytes));
}

}  // namespace orrery::profile
