// The order of nodes equals that of Chakra's own converter, for the kinds of parallelism that it has. Its rules are
// restated here. The transitive closures are compared, not the edges.
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/trace/test_records.hpp"
#include "orrery/trace/text_workload.hpp"

namespace orrery::trace::text_workload_order_test {
namespace {

using Names = std::set<std::string>;
using Order = std::map<std::string, Names>;  // node: its ancestors

enum Node : std::uint8_t { forward, forward_comm, input, input_comm, weight, weight_comm };

// The rules of Chakra's converter; nodes are added in its order.
class ConverterRules {
 public:
  ConverterRules(std::size_t layers, std::size_t passes) : layers_(layers), passes_(passes) {}

  static std::string name(Node node, std::size_t layer, std::size_t pass) {
    static constexpr const char* kNames[] = {
        "forward", "forward.comm", "input_gradient", "input_gradient.comm", "weight_gradient", "weight_gradient.comm"};
    return fmt::format("{}.{}#{}", layer, kNames[node], pass);
  }

  // Adds a node with its parents, without those that do not exist.
  void put(Node node, std::size_t layer, std::size_t pass, const std::vector<std::string>& parents) {
    Names& before = order_[name(node, layer, pass)];
    for (const std::string& parent : parents) {
      const auto found = order_.find(parent);
      if (found == order_.end()) { continue; }
      before.insert(parent);
      before.insert(found->second.begin(), found->second.end());
    }
  }

  Order data() {
    each_pass([&](std::size_t p) {
      for (std::size_t l = 0; l < layers_; ++l) {
        put(forward, l, p, {name(forward, l - 1, p), name(weight_comm, l, p - 1)});
      }
      for (std::size_t l = layers_; l-- > 0;) {
        put(weight, l, p, {l + 1 == layers_ ? name(forward, l, p) : name(input, l + 1, p)});
        put(weight_comm, l, p, {name(weight, l, p)});
        if (l > 0) { put(input, l, p, {name(weight, l, p)}); }
      }
    });
    return order_;
  }

  // MODEL, and the two hybrids of model and data, which also have a collective of weights.
  Order model(bool weights) {
    each_pass([&](std::size_t p) {
      for (std::size_t l = 0; l < layers_; ++l) {
        put(forward, l, p, {name(forward_comm, l - 1, p), name(weights ? weight_comm : weight, l, p - 1)});
        put(forward_comm, l, p, {name(forward, l, p)});
      }
      for (std::size_t l = layers_; l-- > 0;) {
        if (l + 1 == layers_) {
          put(input, l, p, {name(forward_comm, l, p)});
        } else {
          put(input, l, p, {name(weight, l + 1, p), name(input_comm, l + 1, p)});
        }
        if (l > 0) { put(input_comm, l, p, {name(input, l, p)}); }
        put(weight, l, p, {name(input, l, p)});
        if (weights) { put(weight_comm, l, p, {name(weight, l, p)}); }
      }
    });
    return order_;
  }

  Order dlrm(std::size_t bottom) {
    each_pass([&](std::size_t p) {
      for (std::size_t l = 0; l < layers_; ++l) {
        put(forward, l, p,
            {name(forward, l - 1, p), name(weight_comm, l, p - 1),
             l == bottom ? name(forward_comm, 0, p) : std::string()});
        if (l == 0) { put(forward_comm, l, p, {name(forward, l, p)}); }
      }
      for (std::size_t l = layers_; l-- > 0;) {
        put(weight, l, p, {l + 1 == layers_ ? name(forward, l, p) : name(input, l + 1, p), name(input_comm, l, p)});
        put(weight_comm, l, p, {name(weight, l, p)});
        if (l > 0) { put(input, l, p, {name(weight, l, p)}); }
        if (l == bottom + 1) { put(input_comm, 0, p, {name(input, l, p)}); }
      }
    });
    return order_;
  }

 private:
  template <class Do>
  void each_pass(const Do& run) {
    for (std::size_t p = 1; p <= passes_; ++p) { run(p); }
  }

  std::size_t layers_;
  std::size_t passes_;
  Order order_;
};

// Every pass has a collective, so that both have the same nodes.
TextWorkload workload(Parallelism kind, std::size_t layers) {
  TextWorkload made;
  made.parallelism = kind;
  for (std::size_t l = 0; l < layers; ++l) {
    const auto type = l == 0 && kind == Parallelism::hybrid_dlrm ? graph::CollectiveType::all_to_all
                                                                 : graph::CollectiveType::all_reduce;
    const TextLayer::Pass pass{1000, type, 64};
    made.layers.push_back({std::to_string(l), 0, pass, pass, pass, 0, {}});
  }
  return made;
}

Order order_of(const TextWorkload& workload, std::size_t passes) {
  TextWorkloadOptions options;
  options.dimensions = {2, 2};
  options.passes = passes;
  const graph::Graph graph = text_workload_graph(workload, options)->graph;
  Order order;
  std::map<std::string, std::size_t> seen;
  std::vector<std::string> names;
  for (graph::NodeIndex node = 0; node < graph.node_count(); ++node) {
    std::string name(graph.name(node));
    if (graph.type(node) == graph::NodeType::comm_coll) { name = name.substr(0, name.rfind('.')) + ".comm"; }
    name += fmt::format("#{}", ++seen[name]);
    names.push_back(name);
    Names& before = order[name];
    for (const graph::NodeIndex parent : graph.data_deps(node)) {
      before.insert(names[parent]);
      before.insert(order[names[parent]].begin(), order[names[parent]].end());
    }
  }
  return order;
}

RC_GTEST_PROP(TextWorkloadOrder, is_that_of_chakras_converter, (std::uint64_t seed)) {
  test::Random random(seed);
  const std::size_t layers = 1 + random.below(5);
  const std::size_t passes = 1 + random.below(3);
  RC_ASSERT(order_of(workload(Parallelism::data, layers), passes) == ConverterRules(layers, passes).data());
  RC_ASSERT(order_of(workload(Parallelism::model, layers), passes) == ConverterRules(layers, passes).model(false));
  for (const Parallelism kind : {Parallelism::hybrid_data_model, Parallelism::hybrid_model_data}) {
    RC_ASSERT(order_of(workload(kind, layers), passes) == ConverterRules(layers, passes).model(true));
  }
}

// The converter differs from the simulator of the format: it waits for the embeddings before the last bottom layer, the
// simulator after it; for their gradients before the gradient of their weights, the simulator after it.
RC_GTEST_PROP(TextWorkloadOrder, waits_later_for_embeddings_than_chakras_converter, (std::uint64_t seed)) {
  test::Random random(seed);
  const std::size_t layers = 2 + random.below(4);
  const std::size_t passes = 1 + random.below(3);
  TextWorkload made = workload(Parallelism::hybrid_dlrm, layers);
  made.last_bottom_layer = 1 + random.below(layers - 1);
  const std::size_t bottom = *made.last_bottom_layer;
  Order order = order_of(made, passes);
  for (std::size_t p = 1; p <= passes; ++p) {
    order[ConverterRules::name(forward, bottom, p)].insert(ConverterRules::name(forward_comm, 0, p));
    const std::string gradients = ConverterRules::name(input_comm, 0, p);
    if (!order.contains(gradients)) { continue; }  // there is no top
    for (const Node node : {weight, weight_comm}) { order[ConverterRules::name(node, 0, p)].insert(gradients); }
  }
  RC_ASSERT(order == ConverterRules(layers, passes).dlrm(bottom));
}

}  // namespace
}  // namespace orrery::trace::text_workload_order_test
