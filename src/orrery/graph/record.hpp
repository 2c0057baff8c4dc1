// One node of an execution graph as it is passed from readers to builders and writers. Dependencies are ids, which may
// be those of later or missing nodes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/graph/value.hpp"

namespace orrery::graph {

// Numbers of the current Chakra schema. Other numbers of a file are kept; their name is "UNKNOWN".
enum class NodeType : std::int32_t {
  invalid = 0,
  metadata = 1,
  mem_load = 2,
  mem_store = 3,
  comp = 4,
  comm_send = 5,
  comm_recv = 6,
  comm_coll = 7,
};

// "COMP_NODE", as in the schema.
[[nodiscard]] std::string_view name_of(NodeType type);
[[nodiscard]] std::optional<NodeType> node_type(std::string_view name);
[[nodiscard]] bool is_known(NodeType type);

// Values of the attribute comm_type of a COMM_COLL_NODE. Other readers take a node without it for an all_reduce.
enum class CollectiveType : std::int32_t {
  all_reduce = 0,
  reduce = 1,
  all_gather = 2,
  gather = 3,
  scatter = 4,
  broadcast = 5,
  all_to_all = 6,
  reduce_scatter = 7,
  reduce_scatter_block = 8,
  barrier = 9,
};

// "ALL_REDUCE", as in the schema; "UNKNOWN" for other numbers.
[[nodiscard]] std::string_view name_of(CollectiveType type);
[[nodiscard]] std::optional<CollectiveType> collective_type(std::string_view name);
[[nodiscard]] bool is_known(CollectiveType type);

// Names of attributes that simulators interpret, and of those that Orrery adds.
namespace keys {
inline constexpr std::string_view is_cpu_op = "is_cpu_op";          // bool: runs on the host; absent = no
inline constexpr std::string_view comm_type = "comm_type";          // CollectiveType
inline constexpr std::string_view comm_size = "comm_size";          // bytes
inline constexpr std::string_view comm_src = "comm_src";            // rank, on COMM_RECV_NODE
inline constexpr std::string_view comm_dst = "comm_dst";            // rank, on COMM_SEND_NODE
inline constexpr std::string_view comm_tag = "comm_tag";            // matches a send with its receive
inline constexpr std::string_view comm_priority = "comm_priority";  // larger first
inline constexpr std::string_view pg_name = "pg_name";              // process group of a collective
// Of a message in the graph of a class of ranks: the group in which the peer is a neighbour of the rank.
inline constexpr std::string_view peer_group = "peer_group";
inline constexpr std::string_view involved_dim = "involved_dim";  // bool per network dimension
inline constexpr std::string_view num_ops = "num_ops";            // floating-point operations
inline constexpr std::string_view tensor_size = "tensor_size";    // bytes
// Tensors that a node reads and writes: lists of names, each followed by its bytes.
inline constexpr std::string_view inputs = "inputs", outputs = "outputs";
inline constexpr std::string_view in_switch = "in_switch";  // bool: a switch carries out the collective
// Of a collective: the part of their rate, in millionths, that kernels of its ranks lose while it runs beside them.
inline constexpr std::string_view slows_kernels = "slows_kernels_ppm";
inline constexpr std::string_view stream = "stream";  // stream of the device
inline constexpr std::string_view start_time_ns =
    "start_time_ns";                                            // exact; the field of the node has whole microseconds
inline constexpr std::string_view duration_ns = "duration_ns";  // exact; the field of the node has whole microseconds
// Of a file: "process_group/<pg_name>" is a list of the group's ranks (uint64_list), in the group's order.
inline constexpr std::string_view process_group_prefix = "process_group/";
}  // namespace keys

// Tensors as the producer wrote them, usually printed Python lists. Views.
struct IoInfo {
  std::string_view values;
  std::string_view shapes;
  std::string_view types;

  friend bool operator==(const IoInfo&, const IoInfo&) = default;
};

// Views of storage that must outlive it.
struct Attribute {
  std::string_view name;
  Value value;
  std::string_view doc;      // doc_string
  std::string_view unknown;  // wire bytes of fields that are not in the schema, written back unchanged

  friend bool operator==(const Attribute&, const Attribute&) = default;
};

// Texts are views: of the graph or of the reader that made the record.
struct NodeRecord {
  std::uint64_t id = 0;
  std::string_view name;
  NodeType type = NodeType::invalid;
  std::uint64_t start_us = 0;     // microseconds; 0 = unknown
  std::uint64_t duration_us = 0;  // microseconds; 0 = unknown
  std::vector<std::uint64_t> ctrl_deps;
  std::vector<std::uint64_t> data_deps;
  std::optional<IoInfo> inputs;
  std::optional<IoInfo> outputs;
  std::vector<Attribute> attributes;
  std::string_view unknown;  // wire bytes of fields that are not in the schema

  // The first attribute of that name; nullptr if there is none.
  [[nodiscard]] const Attribute* find(std::string_view key) const;

  friend bool operator==(const NodeRecord&, const NodeRecord&) = default;
};

// Metadata of a file. Views.
struct Metadata {
  std::string_view version;  // as in the file; often empty or wrong
  std::vector<Attribute> attributes;
  std::string_view unknown;

  [[nodiscard]] const Attribute* find(std::string_view key) const;

  friend bool operator==(const Metadata&, const Metadata&) = default;
};

struct ProcessGroup {
  std::string name;
  std::vector<std::uint64_t> ranks;  // in the group's order

  friend bool operator==(const ProcessGroup&, const ProcessGroup&) = default;
};

// The groups whose rank lists are among the metadata (keys::process_group_prefix), in that order.
[[nodiscard]] std::vector<ProcessGroup> process_groups(const Metadata& metadata);

}  // namespace orrery::graph
