// The nested objects of an estimate's document, written to a tree or, for the rows of a study, as text at once.
//
// A sink has open(key), close(), and field(key, value) of numbers, whole numbers, booleans and texts.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "orrery/config/json.hpp"
#include "orrery/hardware/records.hpp"
#include "orrery/results/estimate.hpp"

namespace orrery::report {

// Builds an object.
class TreeSink {
 public:
  void open(std::string_view key) { levels_.emplace_back(std::string(key), config::json_object({})); }
  void close() {
    auto [key, node] = std::move(levels_.back());
    levels_.pop_back();
    config::add_fields(top(), {{key, std::move(node)}});
  }
  template <class T>
  void field(std::string_view key, const T& value) {
    config::add_fields(top(), {{key, value}});
  }
  [[nodiscard]] config::Node take() { return std::move(root_); }

 private:
  config::Node& top() { return levels_.empty() ? root_ : levels_.back().second; }

  config::Node root_ = config::json_object({});
  std::vector<std::pair<std::string, config::Node>> levels_;
};

// Writes an object on one line.
class LineSink {
 public:
  LineSink() { writer_.open_object(); }
  void open(std::string_view key) {
    writer_.key(key);
    writer_.open_object();
  }
  void close() { writer_.close(); }
  void field(std::string_view key, Seconds value) { field(key, value.value()); }
  void field(std::string_view key, Bytes value) { field(key, value.value()); }
  void field(std::string_view key, double value) {
    writer_.key(key);
    writer_.value(value);
  }
  void field(std::string_view key, std::int64_t value) {
    writer_.key(key);
    value < 0 ? writer_.value(config::integer_node(value)) : writer_.value(static_cast<std::uint64_t>(value));
  }
  void field(std::string_view key, bool value) {
    writer_.key(key);
    writer_.value(config::boolean_node(value));
  }
  void field(std::string_view key, const std::string& value) {
    writer_.key(key);
    writer_.value(std::string_view(value));
  }
  [[nodiscard]] std::string take() {
    writer_.close();
    std::erase(text_, '\n');
    return std::move(text_);
  }

 private:
  std::string text_;
  config::JsonWriter writer_{text_, 0};
};

template <class Sink>
void write_breakdown(Sink& sink, const results::Breakdown& breakdown) {
  sink.field("compute", breakdown.compute);
  sink.field("recompute", breakdown.recompute);
  sink.field("exposed_comm", breakdown.exposed_comm);
  sink.field("bubble", breakdown.bubble);
  sink.field("optimizer", breakdown.optimizer);
  sink.field("offload", breakdown.offload);
  sink.field("host", breakdown.host);
}

// All groups of the contract are present; those that the plan does not use are zero. Other groups follow.
template <class Sink>
void write_communication(Sink& sink, const results::Estimate& estimate) {
  constexpr std::array<std::string_view, 5> kAlways{"tp", "pp", "dp", "ep", "cp"};
  const auto write = [&](std::string_view name, Seconds total, Seconds exposed) {
    sink.open(name);
    sink.field("total", total);
    sink.field("exposed", exposed);
    sink.close();
  };
  const auto& groups = estimate.comm_by_group;
  sink.field("total", estimate.comm_total);
  sink.field("exposed", estimate.comm_exposed);
  sink.open("by_group");
  for (const auto name : kAlways) {
    const auto found =
        std::find_if(groups.begin(), groups.end(), [&](const auto& group) { return group.group == name; });
    const bool used = found != groups.end();
    write(name, used ? found->total : Seconds(), used ? found->exposed : Seconds());
  }
  for (const auto& group : groups) {
    if (std::find(kAlways.begin(), kAlways.end(), group.group) != kAlways.end()) { continue; }
    write(group.group, group.total, group.exposed);
  }
  sink.close();
}

// Kernels of each pass, and its exposed communication by group.
template <class Sink>
void write_passes(Sink& sink, const results::Estimate& estimate) {
  for (const auto& pass : estimate.passes) {
    sink.open(pass.name);
    sink.field("compute", pass.compute);
    sink.field("exposed_comm", pass.exposed_comm());
    sink.open("exposed_by_group");
    for (std::size_t i = 0; i < pass.exposed.size(); ++i) {
      sink.field(estimate.comm_by_group[i].group, pass.exposed[i]);
    }
    sink.close();
    sink.close();
  }
}

template <class Sink>
void write_memory(Sink& sink, const results::Memory& memory) {
  sink.field("weights", memory.weights);
  sink.field("gradients", memory.gradients);
  sink.field("optimizer", memory.optimizer);
  sink.field("activations", memory.activations);
  sink.field("buffers", memory.buffers);
  sink.field("kv_cache", memory.kv_cache);
  sink.field("total", memory.total());
  sink.field("capacity", memory.capacity);
  sink.field("stage", memory.stage);
  sink.field("offloaded", memory.offloaded);
  sink.field("second_tier", memory.second_tier);
  if (memory.offloaded_by != hardware::ByClass<Bytes>{}) {
    sink.open("offloaded_by_class");
    for (const auto& [tensors, name] : config::EnumNames<hardware::TensorClass>::value) {
      sink.field(name, memory.offloaded_by[tensors]);
    }
    sink.close();
  }
  if (memory.tables > Bytes(0)) { sink.field("tables", memory.tables); }
}

template <class Sink>
void write_plan(Sink& sink, const results::PlanSummary& plan) {
  for (const auto& one : plan.values) {
    std::visit([&](const auto& value) { sink.field(one.name, value); }, one.value);
  }
}

}  // namespace orrery::report
