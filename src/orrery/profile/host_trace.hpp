// A PyTorch execution trace: the operators of a process with their ids, without times. Every schema from 1.0.1 to
// 1.1.1 is read by what a node has, not by the version that the file states.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/profile/profile.hpp"

namespace orrery::profile {

struct HostNode {
  std::uint64_t id = 0;
  std::uint64_t parent = 0;           // the calling node; itself for the root
  std::uint64_t record_function = 0;  // 0 = none
  std::int64_t sequence = -1;
  std::int32_t thread = 0;  // PyTorch's own number
  NameIndex name = 0;
  std::uint32_t detail = 0;  // position + 1 in HostTrace::comms of record_param_comms, in ::shapes of others; 0 = none
  bool is_frame = false;     // a process or a thread, not an operator
};

// Tensors of an operator, by their ids: a part of HostTrace::tensors, inputs first.
struct TensorUse {
  std::uint64_t node = 0;
  std::uint32_t begin = 0, inputs = 0, outputs = 0;
};

struct HostTrace {
  std::string file, schema;
  std::optional<std::uint64_t> pid;
  NameTable names;
  std::vector<HostNode> nodes;  // by id
  // With HostTraceOptions::details:
  std::vector<CommRecord> comms;                        // of record_param_comms
  std::vector<std::pair<NameIndex, NameIndex>> shapes;  // shapes and types of inputs, as a Kineto profile has them
  std::vector<ListedGroup> groups;                      // of process_group:init
  // With HostTraceOptions::tensors:
  std::vector<std::uint64_t> tensors;
  std::vector<TensorUse> uses;  // by node
  std::uint64_t bytes = 0;
  std::vector<ReadNote> notes;

  [[nodiscard]] std::uint64_t operators() const;
};

struct HostTraceOptions {
  bool tolerant = false;  // a truncated file is read up to its last whole node
  bool details = false;   // read shapes, communication and process groups, too
  bool tensors = false;   // with details: read ids of tensors, too
  std::function<void(std::uint64_t)> progress;
};

[[nodiscard]] Result<HostTrace> read_host_trace(const std::string& path, const HostTraceOptions& options = {});
[[nodiscard]] Result<HostTrace> read_host_trace_bytes(std::string_view bytes, const std::string& name,
                                                      const HostTraceOptions& options = {});

}  // namespace orrery::profile
