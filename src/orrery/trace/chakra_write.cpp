#include <utility>

#include "orrery/trace/chakra.hpp"
#include "orrery/trace/encode.hpp"
#include "orrery/trace/output.hpp"

namespace orrery::trace {

using graph::Metadata;
using graph::NodeRecord;

namespace {

Metadata as_written(const Metadata& metadata, const WriteOptions& options) {
  Metadata written = metadata;
  if (options.version) { written.version = *options.version; }
  return written;
}

}  // namespace

struct ChakraWriter::State {
  explicit State(Output file) : output(std::move(file)) {}

  Output output;
  std::string record;
};

ChakraWriter::ChakraWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
ChakraWriter::ChakraWriter(ChakraWriter&&) noexcept = default;
ChakraWriter& ChakraWriter::operator=(ChakraWriter&&) noexcept = default;
ChakraWriter::~ChakraWriter() = default;

Result<ChakraWriter> ChakraWriter::open(const std::string& path, const Metadata& metadata,
                                        const WriteOptions& options) {
  ORRERY_TRY(output, Output::open(path, options.compression_level));
  auto state = std::make_unique<State>(std::move(output));
  append_record(state->record, as_written(metadata, options));
  if (auto put = state->output.put(state->record); !put) { return tl::make_unexpected(std::move(put).error()); }
  return ChakraWriter(std::move(state));
}

Result<void> ChakraWriter::write(const NodeRecord& node) {
  state_->record.clear();
  append_record(state_->record, node);
  return state_->output.put(state_->record);
}

Result<void> ChakraWriter::flush() { return state_->output.flush(); }

Result<std::uint64_t> ChakraWriter::close() { return state_->output.close(); }

Result<std::uint64_t> write_chakra(const graph::Graph& graph, const std::string& path, const WriteOptions& options) {
  ORRERY_TRY(writer, ChakraWriter::open(path, graph.metadata(), options));
  NodeRecord record;
  for (graph::NodeIndex node = 0; node < graph.node_count(); ++node) {
    graph.copy_record(node, record);
    if (auto written = writer.write(record); !written) { return tl::make_unexpected(std::move(written).error()); }
  }
  return writer.close();
}

std::string chakra_bytes(const graph::Graph& graph, const WriteOptions& options) {
  std::string bytes;
  append_record(bytes, as_written(graph.metadata(), options));
  NodeRecord record;
  for (graph::NodeIndex node = 0; node < graph.node_count(); ++node) {
    graph.copy_record(node, record);
    append_record(bytes, record);
  }
  return bytes;
}

}  // namespace orrery::trace
