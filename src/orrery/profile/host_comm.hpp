// What a node of an execution trace says about communication: record_param_comms and process_group:init. Private to the
// room.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "orrery/profile/profile.hpp"

namespace orrery::profile {

// A node as it is in the file: JSON of any schema.
struct RawHostNode {
  std::string_view name;
  std::string_view inputs, input_shapes, input_types, outputs;  // lists
  // Attributes of record_param_comms from 1.1.0 on.
  std::string_view collective, dtype, in_elements, out_elements, group, group_description, group_size;
};

struct HostComm {
  CommRecord record;                           // without a group where only an address names it
  std::optional<std::uint64_t> group_address;  // before 1.0.3
};

// Inputs of record_param_comms are [tensors] seq group rank "name" [splits]…; attributes replace what they repeat.
[[nodiscard]] HostComm host_comm_of(const RawHostNode& node);

struct HostGroup {
  ListedGroup group;
  std::optional<std::uint64_t> address;
};

// The groups of process_group:init, whose input is a text with JSON. The group of all ranks lists none: it gets them.
[[nodiscard]] std::vector<HostGroup> host_groups_of(const RawHostNode& node);

struct HostTensor {
  std::uint64_t id = 0;
  std::uint64_t elements = 0, element_bytes = 0;
};

// Calls take(tensor) for each tensor of a list of values, also of nested lists.
void for_each_tensor(std::string_view values, const std::function<void(const HostTensor&)>& take);

// Types as a Kineto profile writes them: ["Tensor(float)","Int"] as ["float",""].
[[nodiscard]] std::string plain_types(std::string_view types);

}  // namespace orrery::profile
