// Where tests put the nodes of generated graphs.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/generate/node_writer.hpp"

namespace orrery::generate::test {

// Sums over the nodes of one rank or of several.
class Totals : public NodeSink {
 public:
  struct MessageKey {
    std::int64_t from = 0, to = 0, tag = 0;
    friend auto operator<=>(const MessageKey&, const MessageKey&) = default;
  };

  std::uint64_t nodes = 0, computes = 0;
  double flops = 0, memory_bytes = 0;
  std::uint64_t duration_ns = 0, host_ns = 0;
  std::map<std::pair<std::string, std::int64_t>, double>
      collective_bytes;  // by pg_name and comm_type: sum of comm_size
  std::map<std::pair<std::string, std::int64_t>, std::uint64_t> collectives;
  double loaded = 0, stored = 0;
  std::uint64_t stage_sends = 0, ring_sends = 0;
  double ring_bytes = 0;
  std::map<MessageKey, std::vector<std::int64_t>> sent, received;  // sizes
  std::int64_t rank = 0;                                           // of the nodes to come

  Result<void> write(const graph::NodeRecord& node) override {
    ++nodes;
    for (const auto parent : node.data_deps) { ORRERY_ASSERT(parent >= 1 && parent < node.id); }
    switch (node.type) {
      case graph::NodeType::comp: compute(node); break;
      case graph::NodeType::comm_coll: collective(node); break;
      case graph::NodeType::comm_send:
      case graph::NodeType::comm_recv: message(node); break;
      case graph::NodeType::mem_load: loaded += real(node, graph::keys::tensor_size); break;
      case graph::NodeType::mem_store: stored += real(node, graph::keys::tensor_size); break;
      case graph::NodeType::invalid:
      case graph::NodeType::metadata: throw InternalError("no such node is generated");
    }
    return {};
  }

 private:
  static std::int64_t number(const graph::NodeRecord& node, std::string_view key) {
    const auto* attribute = node.find(key);
    ORRERY_ASSERT(attribute != nullptr);
    return attribute->value.as_int().value();
  }
  static double real(const graph::NodeRecord& node, std::string_view key) {
    return static_cast<double>(number(node, key));
  }

  void compute(const graph::NodeRecord& node) {
    const auto time = static_cast<std::uint64_t>(number(node, graph::keys::duration_ns));
    if (node.find(graph::keys::is_cpu_op)->value.as_bool().value()) {
      host_ns += time;
      return;
    }
    ++computes;
    duration_ns += time;
    const std::int64_t operations = number(node, graph::keys::num_ops);
    flops += operations == 1 ? 0.0 : static_cast<double>(operations);  // 1: of kernels without matrix operations
    memory_bytes += real(node, graph::keys::tensor_size);
  }

  void collective(const graph::NodeRecord& node) {
    const std::string name(node.find(graph::keys::pg_name)->value.as_text().value());
    const auto key = std::pair(name, number(node, graph::keys::comm_type));
    collective_bytes[key] += real(node, graph::keys::comm_size);
    ++collectives[key];
  }

  void message(const graph::NodeRecord& node) {
    const bool sends = node.type == graph::NodeType::comm_send;
    const std::int64_t size = number(node, graph::keys::comm_size), tag = number(node, graph::keys::comm_tag);
    const std::int64_t peer = number(node, sends ? graph::keys::comm_dst : graph::keys::comm_src);
    const bool is_of_stages = node.name == "activations.send" || node.name == "gradients.send";
    if (sends) {
      sent[{rank, peer, tag}].push_back(size);
      ++(is_of_stages ? stage_sends : ring_sends);
      if (!is_of_stages) { ring_bytes += static_cast<double>(size); }
    } else {
      received[{peer, rank, tag}].push_back(size);
    }
  }
};

}  // namespace orrery::generate::test
