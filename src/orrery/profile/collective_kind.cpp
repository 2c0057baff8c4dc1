#include "orrery/profile/collective_kind.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace orrery::profile {

namespace {

using Pair = std::pair<std::string_view, std::string_view>;

// Names of PyTorch's records; "nccl:" and "c10d::" in front of them do not matter.
constexpr std::array<Pair, 27> kRecordNames = {{
    {"allreduce", "all_reduce"},
    {"all_reduce", "all_reduce"},
    {"allreduce_", "all_reduce"},
    {"allreduce_coalesced", "all_reduce"},
    {"_allgather_base", "all_gather"},
    {"_all_gather_base", "all_gather"},
    {"allgather", "all_gather"},
    {"all_gather", "all_gather"},
    {"allgather_into_tensor_coalesced", "all_gather"},
    {"_reduce_scatter_base", "reduce_scatter"},
    {"reduce_scatter", "reduce_scatter"},
    {"reduce_scatter_tensor_coalesced", "reduce_scatter"},
    {"all_to_all", "all_to_all"},
    {"all_to_allv", "all_to_all"},
    {"alltoall", "all_to_all"},
    {"alltoall_base", "all_to_all"},
    {"alltoall_", "all_to_all"},
    {"alltoall_base_", "all_to_all"},
    {"broadcast", "broadcast"},
    {"_broadcast_oop", "broadcast"},
    {"reduce", "reduce"},
    {"_reduce_oop", "reduce"},
    {"gather", "gather"},
    {"scatter", "scatter"},
    {"barrier", "barrier"},
    {"send", "send"},
    {"recv", "recv"},
}};

// Parts of kernel names, longer ones first.
constexpr std::array<Pair, 10> kKernelNames = {{
    {"allreduce", "all_reduce"},
    {"all_reduce", "all_reduce"},
    {"cross_device_reduce", "all_reduce"},
    {"allgather", "all_gather"},
    {"reducescatter", "reduce_scatter"},
    {"reduce_scatter", "reduce_scatter"},
    {"broadcast", "broadcast"},
    {"sendrecv", "send_recv"},
    {"alltoall", "all_to_all"},
    {"_reduce_", "reduce"},
}};

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
  return out;
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace

bool is_communication(std::string_view kernel_name) {
  constexpr std::array<std::string_view, 10> kParts = {"nccl",
                                                       "rccl",
                                                       "oneccl",
                                                       "cross_device_reduce",
                                                       "deep_ep",
                                                       "internode::dispatch",
                                                       "internode::combine",
                                                       "intranode::dispatch",
                                                       "intranode::combine",
                                                       "internode_ll::"};
  const std::string name = lower(kernel_name.substr(0, 400));
  return std::any_of(kParts.begin(), kParts.end(), [&](std::string_view part) { return contains(name, part); });
}

std::string collective_kind_of_name(std::string_view name) {
  for (const std::string_view prefix : {"nccl:", "gloo:", "c10d::", "mpi:", "xccl:"}) {
    if (name.starts_with(prefix)) {
      name.remove_prefix(prefix.size());
      break;
    }
  }
  if (name.starts_with("send ")) { name = "send"; }  // "nccl:send 0->1"
  if (name.starts_with("recv ")) { name = "recv"; }
  for (const auto& [record, kind] : kRecordNames) {
    if (record == name) { return std::string(kind); }
  }
  return {};
}

std::string collective_kind(std::string_view kernel_name, const CommRecord* record) {
  if (record != nullptr) {
    if (std::string kind = collective_kind_of_name(record->name); !kind.empty()) { return kind; }
  }
  const std::string name = lower(kernel_name.substr(0, 400));
  for (const auto& [part, kind] : kKernelNames) {
    if (contains(name, part)) { return std::string(kind); }
  }
  return "other";
}

std::uint64_t element_bytes(std::string_view dtype) {
  struct Size {
    std::string_view name;
    std::uint64_t bytes;
  };
  constexpr std::array<Size, 16> kSizes = {{{"Float", 4},
                                            {"Double", 8},
                                            {"Half", 2},
                                            {"BFloat16", 2},
                                            {"Long", 8},
                                            {"Int", 4},
                                            {"Short", 2},
                                            {"Char", 1},
                                            {"Byte", 1},
                                            {"Bool", 1},
                                            {"Float8_e4m3fn", 1},
                                            {"Float8_e5m2", 1},
                                            {"Float8_e4m3fnuz", 1},
                                            {"Float8_e5m2fnuz", 1},
                                            {"ComplexFloat", 8},
                                            {"ComplexDouble", 16}}};
  for (const Size& size : kSizes) {
    if (size.name == dtype) { return size.bytes; }
  }
  return 0;
}

}  // namespace orrery::profile
