// The nodes of a trace in Chakra or JSON lines, one after another, in memory that does not grow with the file; and
// whole graphs. The format of a file is recognized from its first bytes; that of a pipe, which can be read only once,
// from its name.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "orrery/core/error.hpp"
#include "orrery/trace/chakra.hpp"

namespace orrery::trace {

enum class Format : std::uint8_t { chakra, json_lines };

[[nodiscard]] std::string_view name_of(Format format);  // "chakra", "json-lines"

class NodeStream {
 public:
  [[nodiscard]] static Result<NodeStream> open(const std::string& path, const ReadOptions& options = {});

  NodeStream(NodeStream&&) noexcept;
  NodeStream& operator=(NodeStream&&) noexcept;
  ~NodeStream();

  [[nodiscard]] Format format() const;
  [[nodiscard]] const graph::Metadata& metadata() const;

  // As of ChakraStream. Errors of JSON lines name line and column. Tolerant: malformed lines are skipped.
  [[nodiscard]] Result<const graph::NodeRecord*> next();
  [[nodiscard]] std::uint64_t offset() const;
  [[nodiscard]] const ReadReport& report() const;

 private:
  struct State;
  explicit NodeStream(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

struct Loaded {
  graph::Graph graph;
  ReadReport report;
  Format format = Format::chakra;
};

// A whole file in either format.
[[nodiscard]] Result<Loaded> load(const std::string& path, const ReadOptions& options = {});

}  // namespace orrery::trace
