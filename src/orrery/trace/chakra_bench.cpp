// Reads a trace to a graph with its index (on one thread and on all) and record by record; for comparison, reads the
// same bytes with libprotobuf to a vector of messages and an index by id, which is less than a graph has. Also writes a
// trace.
//
// The file is a generated chain of compute nodes with three attributes. The argument is the number of nodes;
// instructions are counted with the small number, seconds and bytes per second are measured with the large one.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <benchmark/benchmark.h>
#include <oracle/chakra.pb.h>

#include "orrery/trace/chakra.hpp"
#include "orrery/trace/framing.hpp"

namespace orrery::trace {
namespace {

using graph::NodeRecord;
using graph::Value;

std::string chain(std::uint64_t nodes) {
  graph::GraphBuilder builder;
  builder.set_metadata({"0.0.4", {}, {}});
  NodeRecord node;
  node.type = graph::NodeType::comp;
  node.duration_us = 10;
  for (std::uint64_t id = 1; id <= nodes; ++id) {
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

// Generated before instructions are counted.
const std::string small_file = chain(10'000);

const std::string& file_of(const benchmark::State& state) {
  if (state.range(0) == 10'000) { return small_file; }
  static const std::string large_file = chain(1'000'000);
  return large_file;
}

void report(benchmark::State& state, const std::string& file) {
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * file.size()));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}

void read_whole(benchmark::State& state, int threads) {
  const std::string& file = file_of(state);
  ReadOptions options;
  options.threads = threads;
  std::size_t memory = 0;
  for (auto unused : state) { memory = read_chakra_bytes(file, "bench", options)->graph.memory(); }
  report(state, file);
  state.counters["memory/file"] = static_cast<double>(memory) / static_cast<double>(file.size());
}

void read_on_one_thread(benchmark::State& state) { read_whole(state, 1); }
void read_on_all_threads(benchmark::State& state) { read_whole(state, 0); }

// The same bytes on disk.
class FileOnDisk {
 public:
  explicit FileOnDisk(const std::string& bytes) : path_(std::filesystem::temp_directory_path() / "chakra_bench.et") {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  FileOnDisk(const FileOnDisk&) = delete;
  FileOnDisk& operator=(const FileOnDisk&) = delete;
  ~FileOnDisk() { std::filesystem::remove(path_); }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

// A lower bound: the bytes of the file are read, and not decoded.
void plain_file_read(benchmark::State& state) {
  const std::string& bytes = file_of(state);
  const FileOnDisk file(bytes);
  std::string buffer(bytes.size(), ' ');
  for (auto unused : state) {
    std::ifstream(file.path(), std::ios::binary).read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    benchmark::DoNotOptimize(buffer.back());
  }
  report(state, bytes);
}

void read_file_on_all_threads(benchmark::State& state) {
  const std::string& bytes = file_of(state);
  const FileOnDisk file(bytes);
  for (auto unused : state) { benchmark::DoNotOptimize(read_chakra(file.path())->graph.node_count()); }
  report(state, bytes);
}

void stream_records(benchmark::State& state) {
  const std::string& file = file_of(state);
  for (auto unused : state) {
    auto stream = ChakraStream::of_bytes(file, "bench");
    std::uint64_t sum = 0;
    for (auto node = stream->next(); *node != nullptr; node = stream->next()) { sum += (*node)->id; }
    benchmark::DoNotOptimize(sum);
  }
  report(state, file);
}

void write_graph(benchmark::State& state) {
  const std::string& file = file_of(state);
  const auto trace = read_chakra_bytes(file, "bench");
  for (auto unused : state) { benchmark::DoNotOptimize(chakra_bytes(trace->graph).size()); }
  report(state, file);
}

void libprotobuf_messages_and_index(benchmark::State& state) {
  const std::string& file = file_of(state);
  for (auto unused : state) {
    std::vector<chakra::Node> nodes;
    std::unordered_map<std::uint64_t, std::size_t> index;
    std::string_view rest = file;
    for (bool is_first = true; !rest.empty(); is_first = false) {
      const auto frame = frame_of(rest);
      const char* const bytes = rest.data() + frame->length_bytes;
      const auto size = static_cast<std::size_t>(frame->record_bytes);
      if (!is_first) {
        nodes.emplace_back().ParseFromArray(bytes, static_cast<int>(size));
        index.emplace(nodes.back().id(), nodes.size() - 1);
      }
      rest.remove_prefix(frame->length_bytes + size);
    }
    benchmark::DoNotOptimize(index.size());
  }
  report(state, file);
}

// Argument: nodes. The large numbers are measured in wall-clock time, without counting instructions.
void counted(benchmark::internal::Benchmark* bench) { bench->Arg(10'000)->Unit(benchmark::kMillisecond); }
void large(benchmark::internal::Benchmark* bench) {
  bench->Arg(1'000'000)->Unit(benchmark::kMillisecond)->UseRealTime()->MeasureProcessCPUTime();
}

BENCHMARK(read_on_one_thread)->Apply(counted);
BENCHMARK(stream_records)->Apply(counted);
BENCHMARK(write_graph)->Apply(counted);
BENCHMARK(libprotobuf_messages_and_index)->Apply(counted);
BENCHMARK(plain_file_read)->Apply(large);
BENCHMARK(read_file_on_all_threads)->Apply(large);
BENCHMARK(read_on_one_thread)->Apply(large);
BENCHMARK(read_on_all_threads)->Apply(large);
BENCHMARK(stream_records)->Apply(large);
BENCHMARK(write_graph)->Apply(large);
BENCHMARK(libprotobuf_messages_and_index)->Apply(large);

}  // namespace
}  // namespace orrery::trace
