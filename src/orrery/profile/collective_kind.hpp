// Which kernels communicate, and what they carry out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "orrery/profile/profile.hpp"

namespace orrery::profile {

// Whether a kernel of that name communicates: those of NCCL, RCCL, oneCCL, DeepEP, and the custom all-reduces of
// inference engines.
[[nodiscard]] bool is_communication(std::string_view kernel_name);

// "all_reduce", "all_gather", …: of the record where there is one, else of the name of the kernel. All-to-alls and
// messages have kernels of one name: "send_recv". "other" where neither says it.
[[nodiscard]] std::string collective_kind(std::string_view kernel_name, const CommRecord* record);

// The same of a record's or annotation's name: "_allgather_base", "nccl:all_to_all". Empty if it is none.
[[nodiscard]] std::string collective_kind_of_name(std::string_view name);

// Bytes of an element of a type of PyTorch ("BFloat16"); 0 if the type is not known.
[[nodiscard]] std::uint64_t element_bytes(std::string_view dtype);

}  // namespace orrery::profile
