#include "orrery/profile/host_trace.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "orrery/profile/decimal.hpp"
#include "orrery/profile/host_comm.hpp"
#include "orrery/profile/windows.hpp"
#include "orrery/trace/source.hpp"

namespace orrery::profile {

namespace {

// A value of a node, or of an entry of its "attrs".
void set_value(HostNode& node, std::string_view key, std::string_view value) {
  if (key == "rf_id") { node.record_function = integer_of<std::uint64_t>(value).value_or(0); }
  if (key == "seq_id") { node.sequence = integer_of<std::int64_t>(value).value_or(-1); }
  if (key == "tid") { node.thread = integer_of<std::int32_t>(value).value_or(0); }
}

// Attributes of record_param_comms.
void set_attribute(RawHostNode& raw, std::string_view name, std::string_view value) {
  if (name == "collective_name") { raw.collective = value; }
  if (name == "dtype") { raw.dtype = value; }
  if (name == "in_msg_nelems") { raw.in_elements = value; }
  if (name == "out_msg_nelems") { raw.out_elements = value; }
  if (name == "pg_name") { raw.group = value; }
  if (name == "pg_desc") { raw.group_description = value; }
  if (name == "pg_size") { raw.group_size = value; }
}

// "inputs" and "outputs" of 1.0.2 on are objects; before, lists with others for shapes and types.
void read_tensors(std::string_view key, std::string_view value, RawHostNode& raw) {
  if (key == "input_shapes") { raw.input_shapes = value; }
  if (key == "input_types") { raw.input_types = value; }
  if (key != "inputs" && key != "outputs") { return; }
  if (!value.starts_with('{')) {
    (key == "inputs" ? raw.inputs : raw.outputs) = value;
    return;
  }
  JsonPull json(value, true);
  json.object([&](std::string_view part) {
    const std::string_view read = json.value();
    if (part == "values") { (key == "inputs" ? raw.inputs : raw.outputs) = read; }
    if (key == "inputs" && part == "shapes") { raw.input_shapes = read; }
    if (key == "inputs" && part == "types") { raw.input_types = read; }
  });
}

void read_attributes(JsonPull& json, HostNode& node, RawHostNode& raw) {
  if (json.peek() != '[') {
    json.value();
    return;
  }
  json.list([&] {
    std::string_view name;
    std::string_view value;
    json.object([&](std::string_view key) {
      const std::string_view read = json.scalar();
      if (key == "name") { name = read; }
      if (key == "value") { value = read; }
    });
    set_value(node, name, value);
    set_attribute(raw, name, value);
  });
}

class HostReader {
 public:
  HostReader(trace::Source& source, std::string name, const HostTraceOptions& options)
      : source_(source), options_(options), windows_(source) {
    trace_.file = std::move(name);
  }

  Result<HostTrace> read() {
    try {
      document();
    } catch (const PullError& error) {
      if (auto failed = damage(error)) { return tl::make_unexpected(std::move(*failed)); }
    }
    trace_.bytes = windows_.offset();
    if (!has_nodes_) {
      return fail(Place{trace_.file, 0, 0, {}}, "is JSON without \"nodes\": not a PyTorch execution trace");
    }
    return finish();
  }

 private:
  void document() {
    bool more = true;
    windows_.unit([&](JsonPull& json) {
      json.expect('{');
      more = !json.accept('}');
    });
    while (more) {
      bool is_nodes = false;
      windows_.unit([&](JsonPull& json) {
        if (json.peek() != '"') { json.fail("a field name in quotes"); }
        const std::string_view key = json.text(true);
        json.expect(':');
        is_nodes = key == "nodes";
        if (!is_nodes) { field(key, json.scalar()); }
      });
      if (is_nodes) { nodes(); }
      windows_.unit([&](JsonPull& json) {
        more = json.accept(',');
        if (!more) { json.expect('}'); }
      });
    }
  }

  void field(std::string_view key, std::string_view value) {
    if (key == "schema") { trace_.schema = decoded_text(value); }
    if (key == "pid") { trace_.pid = integer_of<std::uint64_t>(value); }
  }

  void nodes() {
    has_nodes_ = true;
    bool more = true;
    windows_.unit([&](JsonPull& json) {
      json.expect('[');
      more = !json.accept(']');
    });
    while (more) {
      std::uint32_t quotes = 0;
      windows_.unit([&](JsonPull& json) {
        quotes = json.repaired_quotes();
        node(json);
        quotes = json.repaired_quotes() - quotes;
      });
      if (quotes > 0) { repaired("a quote inside a text is not escaped"); }
      std::uint32_t commas = 0;
      windows_.unit([&](JsonPull& json) {
        commas = json.repaired_commas();
        more = json.more_elements();
        commas = json.repaired_commas() - commas;
      });
      if (commas > 0) { repaired("a comma between two nodes is missing"); }
      if ((trace_.nodes.size() & 0xFFFU) == 0 && options_.progress) { options_.progress(source_.file_bytes()); }
    }
  }

  void node(JsonPull& json) {
    if (json.peek() != '{') { json.fail("a node, which is an object"); }
    HostNode node;
    RawHostNode raw;
    std::string_view& name = raw.name;
    bool has_id = false;
    json.object([&](std::string_view key) {
      if (key == "attrs") {
        read_attributes(json, node, raw);
        return;
      }
      if (options_.details && (key.starts_with("input") || key == "outputs")) {
        read_tensors(key, json.value(), raw);
        return;
      }
      const std::string_view value = json.scalar();
      if (key == "id") {
        const auto id = integer_of<std::uint64_t>(value);
        has_id = id.has_value();
        node.id = id.value_or(0);
      } else if (key == "name") {
        name = value;
      } else if (key == "parent" || key == "ctrl_deps") {
        node.parent = integer_of<std::uint64_t>(value).value_or(0);
      } else {
        set_value(node, key, value);
      }
    });
    if (!has_id) { json.fail("a node with an \"id\""); }
    node.is_frame = name.starts_with("[pytorch|profiler|");
    node.name = trace_.names.add(name);
    if (options_.details && !node.is_frame) { details(raw, node); }
    trace_.nodes.push_back(node);
  }

  void details(const RawHostNode& raw, HostNode& node) {
    if (raw.name == "## process_group:init ##") {
      for (HostGroup& group : host_groups_of(raw)) {
        if (group.address) { addresses_.emplace(*group.address, trace_.groups.size()); }
        trace_.groups.push_back(std::move(group.group));
      }
    } else if (raw.name == "record_param_comms") {
      HostComm comm = host_comm_of(raw);
      if (comm.record.name.empty()) { return; }
      trace_.comms.push_back(std::move(comm.record));
      comm_addresses_.push_back(comm.group_address.value_or(0));
      node.detail = static_cast<std::uint32_t>(trace_.comms.size());
    } else if (raw.input_shapes.size() > 2) {
      trace_.shapes.emplace_back(trace_.names.add(raw.input_shapes), trace_.names.add(plain_types(raw.input_types)));
      node.detail = static_cast<std::uint32_t>(trace_.shapes.size());
    }
    if (!options_.tensors) { return; }
    TensorUse use{node.id, static_cast<std::uint32_t>(trace_.tensors.size()), 0, 0};
    for_each_tensor(raw.inputs, [&](const HostTensor& tensor) { trace_.tensors.push_back(tensor.id), ++use.inputs; });
    for_each_tensor(raw.outputs, [&](const HostTensor& tensor) { trace_.tensors.push_back(tensor.id), ++use.outputs; });
    if (use.inputs + use.outputs > 0) { trace_.uses.push_back(use); }
  }

  // Addresses of groups to their names, where process_group:init has both.
  void name_groups() {
    for (std::size_t i = 0; i < trace_.comms.size(); ++i) {
      const auto found = addresses_.find(comm_addresses_[i]);
      if (found == addresses_.end() || !trace_.comms[i].group.empty()) { continue; }
      trace_.comms[i].group = trace_.groups[found->second].name;
      trace_.comms[i].group_description = trace_.groups[found->second].description;
    }
  }

  void repaired(const char* what) {
    constexpr std::size_t kShown = 5;
    if (++repairs_ > kShown) { return; }
    trace_.notes.push_back({windows_.offset(), fmt::format("byte {}: {}; repaired", windows_.offset(), what)});
  }

  std::optional<Failure> damage(const PullError& error) {
    std::string what = fmt::format("byte {}: {}", windows_.offset_of(error.position), error.what());
    if (source_.damage() && !source_.damage()->diagnostics.empty()) {
      what = source_.damage()->diagnostics.front().message;
    }
    const std::size_t whole = trace_.nodes.size();
    if (options_.tolerant && whole > 0) {
      trace_.notes.push_back(
          {windows_.offset(), fmt::format("{}; the file is read up to its last whole node ({})", what, whole)});
      return std::nullopt;
    }
    if (whole > 0) { what += fmt::format(" after {} whole nodes; --tolerant reads the file up to there", whole); }
    return Failure{{{Place{trace_.file, 0, 0, {}}, what}}};
  }

  Result<HostTrace> finish() {
    name_groups();
    std::sort(trace_.uses.begin(), trace_.uses.end(),
              [](const TensorUse& a, const TensorUse& b) { return a.node < b.node; });
    std::sort(trace_.nodes.begin(), trace_.nodes.end(),
              [](const HostNode& a, const HostNode& b) { return a.id < b.id; });
    for (std::size_t i = 1; i < trace_.nodes.size(); ++i) {
      if (trace_.nodes[i].id == trace_.nodes[i - 1].id) {
        return fail(Place{trace_.file, 0, 0, {}}, fmt::format("two nodes have the id {}", trace_.nodes[i].id));
      }
    }
    return std::move(trace_);
  }

  trace::Source& source_;
  const HostTraceOptions& options_;
  HostTrace trace_;
  Windows windows_;
  bool has_nodes_ = false;
  std::map<std::uint64_t, std::size_t> addresses_;  // of groups
  std::vector<std::uint64_t> comm_addresses_;       // of the groups of comms; 0 = none
  std::size_t repairs_ = 0;
};

Result<HostTrace> read_from(Result<std::unique_ptr<trace::Source>> source, const std::string& name,
                            const HostTraceOptions& options) {
  if (!source) { return tl::make_unexpected(std::move(source).error()); }
  return HostReader(**source, name, options).read();
}

}  // namespace

std::uint64_t HostTrace::operators() const {
  return static_cast<std::uint64_t>(
      std::count_if(nodes.begin(), nodes.end(), [](const HostNode& node) { return !node.is_frame; }));
}

Result<HostTrace> read_host_trace(const std::string& path, const HostTraceOptions& options) {
  return read_from(trace::open_source(path, trace::Access::buffered), path, options);
}

Result<HostTrace> read_host_trace_bytes(std::string_view bytes, const std::string& name,
                                        const HostTraceOptions& options) {
  return read_from(trace::source_of_bytes(bytes, name), name, options);
}

}  // namespace orrery::profile
