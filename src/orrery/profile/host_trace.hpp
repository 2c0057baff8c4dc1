// A PyTorch execution trace: the operators of a process with their ids, without times. Every schema from 1.0.1 to
// 1.1.1 is read by what a node has, not by the version that the file states.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/profile/profile.hpp"

namespace orrery::profile {

struct HostNode {
  std::uint64_t id = 0;
  std::uint64_t parent = 0;           // the calling node; itself for the root
  std::uint64_t record_function = 0;  // 0 = none
  std::int64_t sequence = -1;
  std::int64_t thread = 0;  // PyTorch's own number
  NameIndex name = 0;
  bool is_frame = false;  // a process or a thread, not an operator
};

struct HostTrace {
  std::string file, schema;
  std::optional<std::uint64_t> pid;
  NameTable names;
  std::vector<HostNode> nodes;  // by id
  std::uint64_t bytes = 0;
  std::vector<ReadNote> notes;

  [[nodiscard]] std::uint64_t operators() const;
};

struct HostTraceOptions {
  bool tolerant = false;  // a truncated file is read up to its last whole node
  std::function<void(std::uint64_t)> progress;
};

[[nodiscard]] Result<HostTrace> read_host_trace(const std::string& path, const HostTraceOptions& options = {});
[[nodiscard]] Result<HostTrace> read_host_trace_bytes(std::string_view bytes, const std::string& name,
                                                      const HostTraceOptions& options = {});

}  // namespace orrery::profile
