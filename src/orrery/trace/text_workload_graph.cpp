#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "orrery/graph/builder.hpp"
#include "orrery/trace/chakra.hpp"
#include "orrery/trace/network_dims.hpp"
#include "orrery/trace/text_workload.hpp"

namespace orrery::trace {

using graph::CollectiveType;
using graph::NodeRecord;
using graph::NodeType;
using graph::Value;
using graph::ValueType;

namespace {

enum class Stage : std::uint8_t { forward, input_gradient, weight_gradient, recompute };

std::string_view name_of(Stage stage) {
  switch (stage) {
    case Stage::forward: return "forward";
    case Stage::input_gradient: return "input_gradient";
    case Stage::weight_gradient: return "weight_gradient";
    case Stage::recompute: return "recompute";
  }
  return "";
}

std::string_view short_name_of(CollectiveType type) {
  if (type == CollectiveType::all_reduce) { return "all_reduce"; }
  if (type == CollectiveType::all_gather) { return "all_gather"; }
  return type == CollectiveType::reduce_scatter ? "reduce_scatter" : "all_to_all";
}

const TextLayer::Pass& pass_of(const TextLayer& layer, Stage stage) {
  if (stage == Stage::input_gradient) { return layer.input_gradient; }
  return stage == Stage::weight_gradient ? layer.weight_gradient : layer.forward;
}

// Records the loop that the format describes as it runs. The next node depends on what the loop has waited for.
class Loop {
 public:
  using Handle = std::optional<std::uint64_t>;  // of a collective to wait for, if any

  Loop(const TextWorkload& workload, const TextWorkloadOptions& options, const NetworkDims& dims, ProcessGroups& groups)
      : workload_(workload), options_(options), dims_(dims), groups_(groups), weight_(workload.layers.size()) {}

  void run() {
    for (std::uint64_t pass = 0; pass < options_.passes; ++pass) {
      switch (workload_.parallelism) {
        case Parallelism::data: forward(), backward_by_weight(); break;
        case Parallelism::hybrid_dlrm:
        case Parallelism::hybrid_dlrm_enhanced: forward_dlrm(), backward_dlrm(); break;
        case Parallelism::micro: micro(); break;
        case Parallelism::distributed_inference: forward(); break;
        case Parallelism::model:
        case Parallelism::hybrid_data_model:
        case Parallelism::hybrid_model_data:
        case Parallelism::hybrid_transformer:
        case Parallelism::hybrid_transformer_fwd_in_bckwd:
        case Parallelism::hybrid_customized: forward(), backward_by_input(); break;
      }
    }
  }

  [[nodiscard]] graph::GraphBuilder& builder() { return builder_; }

 private:
  [[nodiscard]] std::size_t layers() const { return workload_.layers.size(); }

  // Every layer waits for the weights of the previous pass, computes, and waits for its collective.
  void forward() {
    for (std::size_t i = 0; i < layers(); ++i) {
      wait(std::exchange(weight_[i], {}));
      compute(i, Stage::forward);
      wait_at_once(start(i, Stage::forward));
    }
  }

  // Weights first, so that their collective overlaps with the rest of the pass.
  void backward_by_weight() {
    for (std::size_t i = layers(); i-- > 0;) {
      compute(i, Stage::weight_gradient);
      weight_[i] = start(i, Stage::weight_gradient);
      if (i > 0) { compute(i, Stage::input_gradient); }
    }
  }

  // Inputs first: the layer below waits for their collective, which overlaps with the weight gradient, except in a
  // transformer, which waits at once and also communicates for the first layer.
  void backward_by_input() {
    const bool at_once = workload_.parallelism == Parallelism::hybrid_transformer ||
                         workload_.parallelism == Parallelism::hybrid_transformer_fwd_in_bckwd;
    for (std::size_t i = layers(); i-- > 0;) {
      recompute_before(i);
      compute(i, Stage::input_gradient);
      const Handle input = i > 0 || at_once ? start(i, Stage::input_gradient) : Handle();
      if (at_once) { wait_at_once(input); }
      compute(i, Stage::weight_gradient);
      weight_[i] = start(i, Stage::weight_gradient);
      if (!at_once) { wait(input); }
    }
  }

  void recompute_before(std::size_t layer) {
    const auto& initiators = workload_.initiators;
    if (std::find(initiators.begin(), initiators.end(), layer) == initiators.end()) { return; }
    std::size_t from = 0;
    for (const std::uint64_t checkpoint : workload_.checkpoints) {
      if (checkpoint < layer) { from = std::max(from, static_cast<std::size_t>(checkpoint)); }
    }
    for (std::size_t i = from; i < layer; ++i) {
      compute(i, Stage::recompute);
      wait_at_once(start(i, Stage::recompute));
    }
  }

  // The all-to-all of embeddings (layer 0) overlaps with the rest of the bottom layers; the top layers need both.
  void forward_dlrm() {
    Handle embeddings;
    for (std::size_t i = 0; i < layers(); ++i) {
      wait(std::exchange(weight_[i], {}));
      compute(i, Stage::forward);
      const bool exchanges = workload_.layers[i].forward.collective == CollectiveType::all_to_all;
      if (i == 0 && exchanges) { embeddings = start(i, Stage::forward, kFirst); }
      if (i == workload_.last_bottom_layer) { wait(embeddings); }
    }
  }

  void backward_dlrm() {
    Handle embeddings;
    for (std::size_t i = layers(); i-- > 0;) {
      compute(i, Stage::weight_gradient);
      weight_[i] = start(i, Stage::weight_gradient);
      if (i == 0) { break; }
      compute(i, Stage::input_gradient);
      if (i == *workload_.last_bottom_layer + 1) { embeddings = start(0, Stage::input_gradient, kFirst); }
    }
    if (workload_.parallelism == Parallelism::hybrid_dlrm) { wait(embeddings); }
  }

  // Collectives only, all at once.
  void micro() {
    for (std::size_t i = 0; i < layers(); ++i) { start(i, Stage::weight_gradient); }
  }

  void wait(const Handle& handle) {
    if (handle) { waited_for_.push_back(*handle); }
  }

  // For the collective started last: it depends on everything that was waited for before.
  void wait_at_once(const Handle& handle) {
    if (handle) { waited_for_ = {*handle}; }
  }

  void compute(std::size_t layer, Stage stage) {
    const TextLayer& of = workload_.layers[layer];
    work(fmt::format("{}.{}", of.name, name_of(stage)), pass_of(of, stage).cycles, false, waited_for_);
    waited_for_ = {node_.id};
  }

  // Starts the collective and its update. Nothing if it involves no other rank.
  Handle start(std::size_t layer, Stage stage, int priority = 0) {
    const TextLayer& of = workload_.layers[layer];
    const TextLayer::Pass& pass = pass_of(of, stage);
    const std::vector<bool> involved = involved_in(layer, stage);
    if (!pass.collective || !dims_.involves_other_ranks(involved)) { return {}; }
    begin(fmt::format("{}.{}.{}", of.name, name_of(stage), short_name_of(*pass.collective)), NodeType::comm_coll,
          waited_for_);
    node_.attributes.push_back({graph::keys::is_cpu_op, Value::boolean(false), {}, {}});
    node_.attributes.push_back({graph::keys::comm_type, Value::integer(static_cast<int>(*pass.collective)), {}, {}});
    node_.attributes.push_back({graph::keys::comm_size, Value::integer(static_cast<std::int64_t>(pass.bytes)), {}, {}});
    std::string flags;
    for (const bool flag : involved) { graph::append_number(flags, ValueType::bool_list, flag ? 1 : 0); }
    node_.attributes.push_back({graph::keys::involved_dim, Value::view(ValueType::bool_list, flags), {}, {}});
    if (priority != 0) {
      node_.attributes.push_back({graph::keys::comm_priority, Value::scalar(ValueType::int32_val, 1), {}, {}});
    }
    const std::string group = options_.process_groups ? groups_.name(involved) : "";
    if (!group.empty()) { node_.attributes.push_back({graph::keys::pg_name, Value::text(group), {}, {}}); }
    builder_.add(node_);
    if (of.update_cycles > 0) {
      work(fmt::format("{}.{}.update", of.name, name_of(stage)), of.update_cycles, true, {node_.id});
    }
    return node_.id;
  }

  [[nodiscard]] std::vector<bool> involved_in(std::size_t layer, Stage stage) const {
    const bool embeddings = layer == 0 && workload_.last_bottom_layer.has_value();
    if (embeddings) { return dims_.all(); }
    const Parallelism kind = workload_.layers[layer].parallelism.value_or(workload_.parallelism);
    return stage == Stage::weight_gradient ? dims_.of_weights(kind) : dims_.of_activations(kind);
  }

  // A compute node; `on_host`: a delay that does not occupy the device.
  void work(const std::string& name, std::uint64_t cycles, bool on_host, const std::vector<std::uint64_t>& after) {
    begin(name, NodeType::comp, after);
    const std::uint64_t ns = cycles * options_.cycle_ns;
    node_.duration_us = ns == 0 ? 0 : std::max<std::uint64_t>(1, ns / 1000 + (ns % 1000 >= 500 ? 1 : 0));
    node_.attributes.push_back({graph::keys::is_cpu_op, Value::boolean(on_host), {}, {}});
    if (ns % 1000 != 0) { node_.attributes.push_back({graph::keys::duration_ns, Value::natural(ns), {}, {}}); }
    builder_.add(node_);
  }

  void begin(std::string name, NodeType type, const std::vector<std::uint64_t>& after) {
    name_ = std::move(name);
    node_ = {};
    node_.id = next_id_++;
    node_.name = name_;
    node_.type = type;
    node_.data_deps = after;
  }

  static constexpr int kFirst = 1;  // before collectives without a priority

  const TextWorkload& workload_;
  const TextWorkloadOptions& options_;
  const NetworkDims& dims_;
  ProcessGroups& groups_;
  graph::GraphBuilder builder_;
  std::vector<Handle> weight_;             // per layer: the collective of its weights that is not waited for yet
  std::vector<std::uint64_t> waited_for_;  // the latest computation, and what was waited for since then
  std::uint64_t next_id_ = 0;
  NodeRecord node_;
  std::string name_;
};

// Collectives of the file that have no effect with this parallelism.
std::vector<std::string> dropped_collectives(const TextWorkload& workload, const NetworkDims& dims) {
  struct Finding {
    const TextLayer* first = nullptr;
    std::size_t count = 0;
  };
  std::map<std::pair<Parallelism, Stage>, Finding> findings;
  for (std::size_t i = 0; i < workload.layers.size(); ++i) {
    const TextLayer& layer = workload.layers[i];
    if (i == 0 && workload.last_bottom_layer) { continue; }
    const Parallelism kind = layer.parallelism.value_or(workload.parallelism);
    for (const Stage stage : {Stage::forward, Stage::input_gradient, Stage::weight_gradient}) {
      const auto involved = stage == Stage::weight_gradient ? dims.of_weights(kind) : dims.of_activations(kind);
      const bool never = workload.parallelism == Parallelism::distributed_inference && stage != Stage::forward;
      if (!pass_of(layer, stage).collective || (dims.involves_other_ranks(involved) && !never)) { continue; }
      Finding& finding = findings[{kind, stage}];
      if (finding.count++ == 0) { finding.first = &layer; }
    }
  }
  std::vector<std::string> notes;
  for (const auto& [what, finding] : findings) {
    const TextLayer& layer = *finding.first;
    const std::string more = finding.count > 1 ? fmt::format(" (and of {} more layers)", finding.count - 1) : "";
    notes.push_back(fmt::format("{}:{}: the collective of the {} of {} is dropped: with {} it involves no other rank{}",
                                workload.file, layer.line, name_of(what.second), layer.name, name_of(what.first),
                                more));
  }
  return notes;
}

Result<void> check_times(const TextWorkload& workload, const TextWorkloadOptions& options) {
  Failure failure;
  const std::uint64_t most = std::numeric_limits<std::int64_t>::max() / std::max<std::uint64_t>(1, options.cycle_ns);
  for (const TextLayer& layer : workload.layers) {
    if (std::max({layer.forward.cycles, layer.input_gradient.cycles, layer.weight_gradient.cycles,
                  layer.update_cycles}) > most) {
      failure.diagnostics.push_back(
          {Place{workload.file, layer.line, 0, {}}, fmt::format("a time exceeds the maximum of {} cycles", most)});
    }
  }
  if (!failure.diagnostics.empty()) { return tl::make_unexpected(std::move(failure)); }
  return {};
}

void set_metadata(graph::GraphBuilder& builder, const TextWorkload& workload, const NetworkDims& dims) {
  std::string sizes;
  for (const std::uint64_t size : dims.sizes()) { graph::append_number(sizes, ValueType::uint64_list, size); }
  graph::Metadata metadata;
  metadata.version = "1.0.0";
  metadata.attributes = {{"parallelism", Value::text(name_of(workload.parallelism)), {}, {}},
                         {"network_dimensions", Value::view(ValueType::uint64_list, sizes), {}, {}}};
  builder.set_metadata(metadata);
}

}  // namespace

Result<TextGraph> text_workload_graph(const TextWorkload& workload, const TextWorkloadOptions& options,
                                      std::uint64_t rank) {
  ORRERY_TRY(dims, NetworkDims::of(workload, options));
  if (auto checked = check_times(workload, options); !checked) {
    return tl::make_unexpected(std::move(checked).error());
  }
  ORRERY_ASSERT(rank < dims.ranks());
  ProcessGroups groups(dims, rank);
  Loop loop(workload, options, dims, groups);
  loop.run();
  set_metadata(loop.builder(), workload, dims);
  for (const graph::ProcessGroup& group : groups.all()) { loop.builder().add_group(group); }
  ORRERY_TRY(graph, loop.builder().finish());
  return TextGraph{std::move(graph), dims.sizes(), dropped_collectives(workload, dims)};
}

// Ranks differ in their groups only: without groups, all have the graph of the first.
Result<std::vector<std::string>> import_text_workload(const std::string& path, const std::vector<std::string>& files,
                                                      const TextWorkloadOptions& options) {
  ORRERY_TRY(workload, read_text_workload(path));
  ORRERY_TRY(ranks, ranks_of(options));
  ORRERY_ASSERT(files.size() == ranks);
  ORRERY_TRY(made, text_workload_graph(workload, options, 0));
  for (std::uint64_t rank = 0; rank < ranks; ++rank) {
    if (rank > 0 && options.process_groups) {
      ORRERY_TRY(next, text_workload_graph(workload, options, rank));
      made.graph = std::move(next.graph);
    }
    if (auto written = write_chakra(made.graph, files[static_cast<std::size_t>(rank)]); !written) {
      return tl::make_unexpected(std::move(written).error());
    }
  }
  return std::move(made.notes);
}

}  // namespace orrery::trace
