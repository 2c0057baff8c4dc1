#include "python/trace_columns.hpp"

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include "orrery/graph/graph.hpp"
#include "orrery/trace/node_stream.hpp"
#include "python/failed.hpp"

namespace orrery::python {

namespace py = pybind11;

namespace {

template <class T>
py::array_t<T> array_of(std::vector<T> values) {
  auto* kept = new std::vector<T>(std::move(values));  // NOLINT(*-owning-memory): the capsule deletes it
  const py::capsule owner(kept, [](void* memory) { delete static_cast<std::vector<T>*>(memory); });  // NOLINT
  return py::array_t<T>(static_cast<py::ssize_t>(kept->size()), kept->data(), owner);
}

struct Dependencies {
  std::vector<std::int64_t> begin{0};
  std::vector<std::uint64_t> ids;

  void append(const graph::Graph& graph, std::span<const graph::NodeIndex> parents) {
    for (const graph::NodeIndex parent : parents) { ids.push_back(graph.id(parent)); }
    begin.push_back(static_cast<std::int64_t>(ids.size()));
  }
};

struct Columns {
  std::vector<std::uint64_t> id, start_ns, duration_ns;
  std::vector<std::int64_t> comm_size, comm_type, num_ops, tensor_size;
  std::vector<std::string> name, type;
  Dependencies data, ctrl;
};

Columns columns_of(const graph::Graph& graph) {
  Columns columns;
  const auto count = static_cast<graph::NodeIndex>(graph.node_count());
  for (graph::NodeIndex node = 0; node < count; ++node) {
    columns.id.push_back(graph.id(node));
    columns.name.emplace_back(graph.name(node));
    columns.type.emplace_back(name_of(graph.type(node)));
    columns.start_ns.push_back(graph.start_ns(node));
    columns.duration_ns.push_back(graph.duration_ns(node));
    columns.data.append(graph, graph.data_deps(node));
    columns.ctrl.append(graph, graph.ctrl_deps(node));
    const auto number = [&](std::string_view key) {
      const auto value = graph.value(node, key);
      return value ? value->as_int().value_or(-1) : -1;
    };
    columns.comm_size.push_back(number(graph::keys::comm_size));
    columns.comm_type.push_back(number(graph::keys::comm_type));
    columns.num_ops.push_back(number(graph::keys::num_ops));
    columns.tensor_size.push_back(number(graph::keys::tensor_size));
  }
  return columns;
}

}  // namespace

py::dict trace_columns(const std::string& file) {
  Columns columns;
  {
    const py::gil_scoped_release free;
    const auto loaded = trace::load(file);
    if (!loaded) { throw Failed(loaded.error()); }
    columns = columns_of(loaded->graph);
  }
  py::dict result;
  result["id"] = array_of(std::move(columns.id));
  result["name"] = py::array(py::cast(columns.name));
  result["type"] = py::array(py::cast(columns.type));
  result["start_ns"] = array_of(std::move(columns.start_ns));
  result["duration_ns"] = array_of(std::move(columns.duration_ns));
  result["data_begin"] = array_of(std::move(columns.data.begin));
  result["data_deps"] = array_of(std::move(columns.data.ids));
  result["ctrl_begin"] = array_of(std::move(columns.ctrl.begin));
  result["ctrl_deps"] = array_of(std::move(columns.ctrl.ids));
  result["comm_size_B"] = array_of(std::move(columns.comm_size));
  result["comm_type"] = array_of(std::move(columns.comm_type));
  result["num_ops"] = array_of(std::move(columns.num_ops));
  result["tensor_size_B"] = array_of(std::move(columns.tensor_size));
  return result;
}

}  // namespace orrery::python
