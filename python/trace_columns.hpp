// The nodes of an execution graph as NumPy arrays, one for each property.
#pragma once

#include <string>

#include <pybind11/pybind11.h>

namespace orrery::python {

// id, name, type (text), start_ns, duration_ns, and the dependencies as CSR: data_deps of node i are the ids
// data_deps[data_begin[i]:data_begin[i + 1]]; ctrl_deps likewise. Attributes that simulators read have columns of their
// own: comm_size_B, comm_type, num_ops, tensor_size_B; -1 where a node does not have it. Throws Failed.
[[nodiscard]] pybind11::dict trace_columns(const std::string& file);

}  // namespace orrery::python
