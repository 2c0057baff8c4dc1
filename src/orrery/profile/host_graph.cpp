#include "orrery/profile/host_graph.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "orrery/graph/builder.hpp"
#include "orrery/profile/collective_kind.hpp"
#include "orrery/profile/plan_graph.hpp"

namespace orrery::profile {

namespace {

using graph::Value;

class HostGraphWriter {
 public:
  explicit HostGraphWriter(const HostTrace& host) : host_(host) {
    for (const TensorUse& use : host.uses) { uses_.emplace(use.node, &use); }
    for (const HostNode& node : host.nodes) {
      if (node.is_frame || node.parent == node.id) { continue; }
      parents_.insert(node.parent);
      if (is_comm(node)) { comms_.insert(node.id); }
    }
  }

  Result<HostGraph> write() {
    metadata();
    std::unordered_set<std::uint64_t> inside;  // of communication: the launch, not a part of the graph
    for (const HostNode& node : host_.nodes) {
      if (comms_.contains(node.parent) || inside.contains(node.parent)) {
        inside.insert(node.id);
        continue;
      }
      if (node.is_frame || (parents_.contains(node.id) && !is_comm(node))) { continue; }
      add(node);
    }
    if (made_.counts.nodes == 0) { return fail(Place{host_.file, 0, 0, {}}, "has no operators: there is no graph"); }
    ORRERY_TRY(graph, builder_.finish());
    made_.graph = std::move(graph);
    return std::move(made_);
  }

 private:
  [[nodiscard]] bool is_comm(const HostNode& node) const {
    return node.detail > 0 && Profile::has_comm(Category::operation, host_.names[node.name]);
  }

  void metadata() {
    graph::Metadata metadata;
    metadata.version = "0.0.4";
    metadata.attributes.push_back({"schema", Value::text("orrery.host-graph/1"), {}, {}});
    metadata.attributes.push_back({"host_schema", Value::text(host_.schema), {}, {}});
    if (host_.pid) { metadata.attributes.push_back({"pid", Value::natural(*host_.pid), {}, {}}); }
    builder_.set_metadata(metadata);
    std::set<std::string> names;
    for (const ListedGroup& group : host_.groups) {
      if (!group.ranks.empty() && names.insert(group.name).second) { builder_.add_group({group.name, group.ranks}); }
    }
  }

  void depend(std::uint64_t id) {
    auto& deps = record_.data_deps;
    if (std::find(deps.begin(), deps.end(), id) == deps.end()) { deps.push_back(id); }
  }

  void attribute(std::string_view name, Value value) { record_.attributes.push_back({name, value, {}, {}}); }

  void add(const HostNode& node) {
    record_ = {};
    record_.id = node.id;
    record_.name = host_.names[node.name];
    record_.type = graph::NodeType::comp;
    if (const auto last = last_.find(node.thread); last != last_.end()) { depend(last->second); }
    read_tensors(node);
    attribute(graph::keys::is_cpu_op, Value::boolean(true));
    attribute("tid", Value::integer(node.thread));
    if (node.record_function != 0) { attribute("rf_id", Value::natural(node.record_function)); }
    const bool beside = is_comm(node) && communicate(node, host_.comms[node.detail - 1]);
    if (!is_comm(node) && node.detail > 0) {
      const auto& [shapes, types] = host_.shapes[node.detail - 1];
      record_.inputs = graph::IoInfo{{}, host_.names[shapes], host_.names[types]};
    }
    write_tensors(node, beside);
    if (!beside) { last_[node.thread] = node.id; }
    ++made_.counts.nodes;
    builder_.add(record_);
  }

  void read_tensors(const HostNode& node) {
    const auto use = uses_.find(node.id);
    if (use == uses_.end()) { return; }
    for (std::uint32_t i = 0; i < use->second->inputs; ++i) {
      const auto made = makers_.find(host_.tensors[use->second->begin + i]);
      if (made == makers_.end() || (made->second.thread == node.thread && !made->second.beside)) { continue; }
      const std::size_t before = record_.data_deps.size();
      depend(made->second.node);
      made_.counts.tensor_deps += record_.data_deps.size() - before;
    }
  }

  void write_tensors(const HostNode& node, bool beside) {
    const auto use = uses_.find(node.id);
    if (use == uses_.end()) { return; }
    const TensorUse& tensors = *use->second;
    for (std::uint32_t i = 0; i < tensors.outputs; ++i) {
      makers_[host_.tensors[tensors.begin + tensors.inputs + i]] = {node.id, node.thread, beside};
    }
  }

  // Whether it runs beside its thread.
  bool communicate(const HostNode& node, const CommRecord& record) {
    if (record.name == "wait") {
      wait(record);
      return false;
    }
    const std::string kind = collective_kind_of_name(record.name);
    if (record.sequence) { sequences_[*record.sequence] = node.id; }
    const auto bytes = [&](std::int64_t elements) {
      return Value::integer(std::max<std::int64_t>(elements, 0) *
                            static_cast<std::int64_t>(element_bytes(record.dtype)));
    };
    name_ = record.name;
    record_.name = name_;
    const bool is_message = kind == "send" || kind == "recv";
    if (is_message && record.peer_or_root) {
      record_.type = kind == "send" ? graph::NodeType::comm_send : graph::NodeType::comm_recv;
      attribute(kind == "send" ? graph::keys::comm_dst : graph::keys::comm_src,
                Value::integer(in_job(record, *record.peer_or_root)));
      attribute(graph::keys::comm_size, bytes(std::max(record.in_elements, record.out_elements)));
      ++made_.counts.messages;
    } else if (const auto type = collective_type_of(kind); type && !is_message) {
      record_.type = graph::NodeType::comm_coll;
      attribute(graph::keys::comm_type, Value::integer(static_cast<std::int64_t>(*type)));
      const bool shard = *type == graph::CollectiveType::all_gather;  // the schema has the size of a shard
      attribute(graph::keys::comm_size,
                bytes(shard ? record.in_elements : std::max(record.in_elements, record.out_elements)));
      ++made_.counts.collectives;
      const bool rooted = kind == "broadcast" || kind == "reduce" || kind == "gather" || kind == "scatter";
      if (!rooted && !made_.rank && record.peer_or_root) {
        made_.rank = static_cast<std::uint64_t>(std::max<std::int64_t>(in_job(record, *record.peer_or_root), 0));
      }
    } else {
      return false;
    }
    if (!record.group.empty()) { attribute(graph::keys::pg_name, Value::text(record.group)); }
    made_.counts.without_group += record.group.empty() ? 1 : 0;
    return true;
  }

  void wait(const CommRecord& record) {
    const auto found = record.sequence ? sequences_.find(*record.sequence) : sequences_.end();
    if (found == sequences_.end()) {
      ++made_.counts.unknown_waits;
      return;
    }
    depend(found->second);
    name_ = "wait";
    record_.name = name_;
    ++made_.counts.waits;
  }

  // A position in a group as a rank of the job.
  [[nodiscard]] std::int64_t in_job(const CommRecord& record, std::int64_t position) const {
    for (const ListedGroup& group : host_.groups) {
      if (group.name != record.group || position < 0 || static_cast<std::size_t>(position) >= group.ranks.size()) {
        continue;
      }
      return static_cast<std::int64_t>(group.ranks[static_cast<std::size_t>(position)]);
    }
    return position;
  }

  struct Maker {
    std::uint64_t node = 0;
    std::int32_t thread = 0;
    bool beside = false;
  };

  const HostTrace& host_;
  HostGraph made_;
  graph::GraphBuilder builder_;
  graph::NodeRecord record_;
  std::string name_;
  std::unordered_map<std::uint64_t, const TensorUse*> uses_;
  std::unordered_set<std::uint64_t> parents_, comms_;
  std::unordered_map<std::int32_t, std::uint64_t> last_;        // of threads
  std::unordered_map<std::uint64_t, Maker> makers_;             // of tensors
  std::unordered_map<std::uint64_t, std::uint64_t> sequences_;  // of collectives
};

}  // namespace

Result<HostGraph> host_graph(const HostTrace& host) { return HostGraphWriter(host).write(); }

}  // namespace orrery::profile
