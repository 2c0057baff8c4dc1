// Writing a trace as JSON lines, as `orrery trace print` and `convert` do, and reading it. Bytes per second refer to
// the Chakra file that is printed.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <benchmark/benchmark.h>

#include "orrery/trace/chakra.hpp"
#include "orrery/trace/json_lines.hpp"

namespace orrery::trace {
namespace {

using graph::NodeRecord;
using graph::Value;

constexpr std::uint64_t kNodes = 10'000;

std::string chain() {
  graph::GraphBuilder builder;
  NodeRecord node;
  node.type = graph::NodeType::comp;
  node.duration_us = 10;
  for (std::uint64_t id = 1; id <= kNodes; ++id) {
    const std::string name = "n" + std::to_string(id);
    node.id = id;
    node.name = name;
    node.data_deps.assign(id > 1 ? 1 : 0, id - 1);
    node.attributes = {{graph::keys::is_cpu_op, Value::boolean(false), {}, {}},
                       {graph::keys::num_ops, Value::integer(static_cast<std::int64_t>(1'000'000'000 + id)), {}, {}},
                       {graph::keys::tensor_size, Value::natural(4096 * id), {}, {}}};
    builder.add(node);
  }
  return chakra_bytes(builder.finish().value());
}

const std::string file = chain();

std::string lines_of(const std::string& bytes) {
  auto stream = ChakraStream::of_bytes(bytes, "bench");
  std::string lines;
  for (auto node = stream->next(); *node != nullptr; node = stream->next()) { append_json_line(lines, **node); }
  return lines;
}

const std::string lines = lines_of(file);

void report(benchmark::State& state) {
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * file.size()));
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * kNodes));
}

void print_json_lines(benchmark::State& state) {
  std::string text;  // a buffer that is written and reused, as in `trace print`
  for (auto unused : state) {
    auto stream = ChakraStream::of_bytes(file, "bench");
    for (auto node = stream->next(); *node != nullptr; node = stream->next()) {
      append_json_line(text, **node);
      if (text.size() > std::size_t{1} << 20) { text.clear(); }
    }
    benchmark::DoNotOptimize(text.data());
  }
  report(state);
}

void read_json_lines(benchmark::State& state) {
  NodeRecord node;
  Scratch store;
  for (auto unused : state) {
    std::uint64_t sum = 0;
    for (std::string_view rest = lines; !rest.empty();) {
      const std::size_t end = rest.find('\n');
      store.clear();
      (void)read_json_line(rest.substr(0, end), node, store);
      sum += node.id;
      rest.remove_prefix(end + 1);
    }
    benchmark::DoNotOptimize(sum);
  }
  report(state);
}

BENCHMARK(print_json_lines)->Unit(benchmark::kMillisecond);
BENCHMARK(read_json_lines)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orrery::trace
