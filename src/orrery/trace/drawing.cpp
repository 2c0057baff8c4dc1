#include "orrery/trace/drawing.hpp"

#include <fmt/format.h>

#include "orrery/graph/statistics.hpp"
#include "orrery/trace/output.hpp"
#include "orrery/trace/utf8.hpp"

namespace orrery::trace {

using graph::Folded;
using graph::FoldedEdge;
using graph::FoldedNode;
using graph::NodeType;

namespace {

constexpr std::size_t kLongestLabel = 60;

const char* colour_of(NodeType type) {
  switch (type) {
    case NodeType::comp: return "#dbe9f6";
    case NodeType::comm_coll: return "#fde0c5";
    case NodeType::comm_send:
    case NodeType::comm_recv: return "#fbe6a2";
    case NodeType::mem_load:
    case NodeType::mem_store: return "#d8efd3";
    case NodeType::metadata: return "#eeeeee";
    case NodeType::invalid: break;
  }
  return "#f7c6c5";
}

// Appends a name to a text of the format: `escape` handles reserved characters. Bytes that are not UTF-8 and control
// characters become '?', since neither format can represent them.
template <class Escape>
void append_name(std::string& out, std::string_view name, const Escape& escape) {
  const bool utf8 = is_utf8(name);
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F || (byte >= 0x80 && !utf8)) {
      out += '?';
    } else if (const char* escaped = escape(c); escaped != nullptr) {
      out += escaped;
    } else {
      out += c;
    }
  }
}

// The first characters of a name; a multi-byte character is not split.
std::string_view shortened(std::string_view name) {
  if (name.size() <= kLongestLabel) { return name; }
  std::size_t end = kLongestLabel;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0U) == 0x80) { --end; }
  return name.substr(0, end);
}

void append_dot_node(std::string& out, std::size_t box, const FoldedNode& node) {
  fmt::format_to(std::back_inserter(out), "  n{} [label=\"", box);
  append_name(out, shortened(node.name), [](char c) { return c == '"' ? "\\\"" : c == '\\' ? "\\\\" : nullptr; });
  if (node.name.size() > kLongestLabel) { out += ".."; }
  fmt::format_to(std::back_inserter(out), "\\n{}", graph::type_text(node.type));
  if (node.count > 1) {
    fmt::format_to(std::back_inserter(out), " x {}", node.count);
  } else {
    fmt::format_to(std::back_inserter(out), " {}", node.id);
  }
  if (node.time_ns > 0) {
    fmt::format_to(std::back_inserter(out), "\\n{} us", static_cast<double>(node.time_ns) / 1000.0);
  }
  if (node.bytes > 0) { fmt::format_to(std::back_inserter(out), "\\n{} B", node.bytes); }
  fmt::format_to(std::back_inserter(out), "\", fillcolor=\"{}\"];\n", colour_of(node.type));
}

void append_dot_edge(std::string& out, const FoldedEdge& edge) {
  fmt::format_to(std::back_inserter(out), "  n{} -> n{}", edge.parent, edge.child);
  if (edge.count > 1) {
    fmt::format_to(std::back_inserter(out), " [label=\"{}\"{}]", edge.count, edge.data ? "" : ", style=dashed");
  } else if (!edge.data) {
    out += " [style=dashed]";
  }
  out += ";\n";
}

void append_graphml_node(std::string& out, std::size_t box, const FoldedNode& node) {
  fmt::format_to(std::back_inserter(out), "<node id=\"n{}\"><data key=\"id\">{}</data><data key=\"name\">", box,
                 node.id);
  append_name(out, node.name, [](char c) {
    return c == '<' ? "&lt;" : c == '>' ? "&gt;" : c == '&' ? "&amp;" : c == '"' ? "&quot;" : nullptr;
  });
  fmt::format_to(std::back_inserter(out),
                 "</data><data key=\"type\">{}</data><data key=\"count\">{}</data><data key=\"duration_ns\">{}</data>"
                 "<data key=\"bytes\">{}</data></node>\n",
                 graph::type_text(node.type), node.count, node.time_ns, node.bytes);
}

constexpr std::string_view kGraphmlHead = R"(<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="id" for="node" attr.name="id" attr.type="string"/>
<key id="name" for="node" attr.name="name" attr.type="string"/>
<key id="type" for="node" attr.name="type" attr.type="string"/>
<key id="count" for="node" attr.name="count" attr.type="long"/>
<key id="duration_ns" for="node" attr.name="duration_ns" attr.type="long"/>
<key id="bytes" for="node" attr.name="bytes" attr.type="long"/>
<key id="kind" for="edge" attr.name="kind" attr.type="string"/>
<key id="times" for="edge" attr.name="count" attr.type="long"/>
<graph id="trace" edgedefault="directed">
)";

// Head, nodes, edges, tail; each part is appended to an empty text.
template <class Node, class Edge>
Result<std::uint64_t> write(const Folded& graph, const std::string& path, std::string_view head, std::string_view tail,
                            const Node& append_node, const Edge& append_edge) {
  ORRERY_TRY(out, Output::open(path));
  std::string text(head);
  for (std::size_t box = 0; box < graph.nodes.size(); ++box) {
    append_node(text, box, graph.nodes[box]);
    if (auto put = out.put(text); !put) { return tl::make_unexpected(std::move(put).error()); }
    text.clear();
  }
  for (const FoldedEdge& edge : graph.edges) {
    append_edge(text, edge);
    if (auto put = out.put(text); !put) { return tl::make_unexpected(std::move(put).error()); }
    text.clear();
  }
  text += tail;
  if (auto put = out.put(text); !put) { return tl::make_unexpected(std::move(put).error()); }
  return out.close();
}

}  // namespace

Result<std::uint64_t> write_dot(const Folded& graph, const std::string& path) {
  constexpr std::string_view kHead =
      "digraph trace {\n  node [shape=box, style=filled, fontname=\"sans-serif\", fontsize=10];\n";
  return write(graph, path, kHead, "}\n", append_dot_node, append_dot_edge);
}

Result<std::uint64_t> write_graphml(const Folded& graph, const std::string& path) {
  const auto append_edge = [](std::string& out, const FoldedEdge& edge) {
    fmt::format_to(
        std::back_inserter(out),
        "<edge source=\"n{}\" target=\"n{}\"><data key=\"kind\">{}</data><data key=\"times\">{}</data></edge>\n",
        edge.parent, edge.child, edge.data ? "data" : "control", edge.count);
  };
  return write(graph, path, kGraphmlHead, "</graph>\n</graphml>\n", append_graphml_node, append_edge);
}

}  // namespace orrery::trace
