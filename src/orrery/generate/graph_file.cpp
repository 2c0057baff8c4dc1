#include "orrery/generate/graph_file.hpp"

#include <string>
#include <utility>

#include "orrery/trace/chakra.hpp"
#include "orrery/trace/json_lines.hpp"
#include "orrery/trace/output.hpp"

namespace orrery::generate {

namespace {

class ChakraFile : public GraphFile {
 public:
  explicit ChakraFile(trace::ChakraWriter writer) : writer_(std::move(writer)) {}
  Result<void> write(const graph::NodeRecord& node) override { return writer_.write(node); }
  Result<std::uint64_t> close() override { return writer_.close(); }

 private:
  trace::ChakraWriter writer_;
};

class JsonLinesFile : public GraphFile {
 public:
  explicit JsonLinesFile(trace::Output output) : output_(std::move(output)) {}
  Result<void> begin(const graph::Metadata& metadata) {
    trace::append_json_line(line_, metadata);
    return output_.put(line_);
  }
  Result<void> write(const graph::NodeRecord& node) override {
    line_.clear();
    trace::append_json_line(line_, node);
    return output_.put(line_);
  }
  Result<std::uint64_t> close() override { return output_.close(); }

 private:
  trace::Output output_;
  std::string line_;
};

}  // namespace

Result<std::unique_ptr<GraphFile>> open_graph_file(const std::string& path, const graph::Metadata& metadata) {
  if (path.ends_with(".et") || path.ends_with(".et.gz") || path.ends_with(".et.zst")) {
    ORRERY_TRY(writer, trace::ChakraWriter::open(path, metadata));
    return std::make_unique<ChakraFile>(std::move(writer));
  }
  ORRERY_TRY(output, trace::Output::open(path));
  auto file = std::make_unique<JsonLinesFile>(std::move(output));
  if (auto begun = file->begin(metadata); !begun) { return tl::make_unexpected(std::move(begun).error()); }
  return file;
}

}  // namespace orrery::generate
