#include "orrery/calibrate/figures.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "orrery/core/error.hpp"
#include "orrery/core/text.hpp"
#include "orrery/hardware/citations.hpp"

namespace orrery::calibrate {
namespace {

using hardware::Accelerator;
using hardware::Basis;
using hardware::Cluster;
using hardware::LinkClass;
using hardware::Protocol;
using hardware::Stack;

// Standard deviations of ln(value / start): of an efficiency, which is a part of a known peak, and of a latency.
double efficiency_spread(Basis basis) { return basis == Basis::measured ? 0.08 : 0.15; }
double latency_spread(Basis basis) { return basis == Basis::measured ? 0.25 : 0.5; }
// Figures of software differ most: by release, host and settings.
constexpr double kStackSpread = 0.5;
constexpr double kTrafficSpread = 0.2;

constexpr double kLeastEfficiency = 0.05;
constexpr double kMostFactor = 10.0;  // of a latency, up or down

class List {
 public:
  // A part of a peak. Left out where its value is 0.
  void efficiency(Figure figure, double value, Basis basis) {
    if (value <= 0) { return; }
    figure.unknown = {value, std::min(kLeastEfficiency, value), std::max(1.0, value), efficiency_spread(basis)};
    figures_.push_back(std::move(figure));
  }

  void time(Figure figure, Seconds value, double spread) {
    if (value.value() <= 0) { return; }
    figure.is_time = true;
    figure.unknown = {value.value(), value.value() / kMostFactor, value.value() * kMostFactor, spread};
    figures_.push_back(std::move(figure));
  }

  void factor(Figure figure, double spread) {
    figure.is_factor = true;
    figure.unknown = {1.0, 1.0 / kMostFactor, kMostFactor, spread};
    figures_.push_back(std::move(figure));
  }

  void number(Figure figure, Unknown unknown) {
    if (unknown.start <= 0) { return; }
    figure.unknown = unknown;
    figures_.push_back(std::move(figure));
  }

  std::vector<Figure> take() { return std::move(figures_); }

 private:
  std::vector<Figure> figures_;
};

void add_accelerator(List& list, const Accelerator& accelerator, const std::vector<hardware::Precision>& formats) {
  const auto figure = [&](std::string name, std::string meaning, auto set) {
    return Figure{Owner::accelerator,
                  accelerator.name,
                  std::move(name),
                  std::move(meaning),
                  false,
                  false,
                  {},
                  [set](Target& target, double value) { set(target.cluster.accelerator, value); }};
  };
  for (const auto format : formats) {
    const std::string name(hardware::name_of(format));
    list.efficiency(figure("matrix_efficiency_of." + name, "best rate of " + name + " GEMMs / peak",
                           [name](Accelerator& changed, double value) { changed.matrix_efficiency_of[name] = value; }),
                    accelerator.peak(format).value() > 0 ? accelerator.efficiency(format) : 0.0, accelerator.basis);
  }
  list.efficiency(figure("attention_efficiency", "best rate of fused attention / peak",
                         [](Accelerator& changed, double value) { changed.attention_efficiency = value; }),
                  accelerator.attention_efficiency, accelerator.basis);
  list.efficiency(figure("memory_efficiency", "best rate of streams / memory bandwidth",
                         [](Accelerator& changed, double value) { changed.memory_efficiency = value; }),
                  accelerator.memory_efficiency, accelerator.basis);
  list.time(figure("kernel_latency", "of a GEMM without work",
                   [](Accelerator& changed, double value) { changed.kernel_latency = Seconds(value); }),
            accelerator.kernel_latency, latency_spread(accelerator.basis));
  if (accelerator.stream_latency) {
    list.time(figure("stream_latency", "of another kernel without work",
                     [](Accelerator& changed, double value) { changed.stream_latency = Seconds(value); }),
              *accelerator.stream_latency, latency_spread(accelerator.basis));
  }
}

// Changes every dimension's link class of this name.
template <class Set>
auto in_links(std::string name, Set set) {
  return [name = std::move(name), set](Target& target, double value) {
    for (auto& dimension : target.cluster.dimensions) {
      if (dimension.link.name == name) { set(dimension.link, value); }
    }
  };
}

void add_link(List& list, const LinkClass& link) {
  const auto figure = [&](std::string name, std::string meaning, auto set) {
    return Figure{Owner::link, link.name, std::move(name),         std::move(meaning), false,
                  false,       {},        in_links(link.name, set)};
  };
  list.efficiency(figure("efficiency", "rate of long messages / nominal bandwidth",
                         [](LinkClass& changed, double value) { changed.efficiency = value; }),
                  link.efficiency, link.basis);
  list.factor(figure("protocols.*_base", "start of a collective",
                     [](LinkClass& changed, double value) {
                       for (Protocol& protocol : changed.protocols) {
                         protocol.ring_base = protocol.ring_base * value;
                         protocol.tree_base = protocol.tree_base * value;
                       }
                     }),
              latency_spread(link.basis));
  list.factor(figure("protocols.*_step", "step of a ring or tree",
                     [](LinkClass& changed, double value) {
                       for (Protocol& protocol : changed.protocols) {
                         protocol.ring_step = protocol.ring_step * value;
                         protocol.tree_step = protocol.tree_step * value;
                       }
                     }),
              latency_spread(link.basis));
  list.time(
      figure("latency", "of one message", [](LinkClass& changed, double value) { changed.latency = Seconds(value); }),
      link.latency, latency_spread(link.basis));
  if (link.in_switch_efficiency <= 0) { return; }
  list.efficiency(figure("in_switch_efficiency", "rate of reductions in the switch / nominal bandwidth",
                         [](LinkClass& changed, double value) { changed.in_switch_efficiency = value; }),
                  link.in_switch_efficiency, link.basis);
  list.time(figure("in_switch_base", "start of a reduction in the switch",
                   [](LinkClass& changed, double value) { changed.in_switch_base = Seconds(value); }),
            link.in_switch_base, latency_spread(link.basis));
}

void add_stack(List& list, const Stack& stack) {
  if (stack.name.empty()) { return; }  // no run
  const auto figure = [&](std::string name, std::string meaning, auto set) {
    return Figure{Owner::stack,
                  stack.name,
                  std::move(name),
                  std::move(meaning),
                  false,
                  false,
                  {},
                  [set](Target& target, double value) { set(target.stack, value); }};
  };
  list.time(figure("launch_time", "of the host, per operator",
                   [](Stack& changed, double value) { changed.host.launch_time = Seconds(value); }),
            stack.host.launch_time, kStackSpread);
  list.time(figure("host_overhead", "of the host, per step",
                   [](Stack& changed, double value) { changed.host.step_overhead = Seconds(value); }),
            stack.host.step_overhead, kStackSpread);
  list.number(figure("interference", "rate that kernels lose while a reduction or gather runs",
                     [](Stack& changed, double value) { changed.overlap.interference = value; }),
              {stack.overlap.interference, 0.001, 0.9, kStackSpread});
  list.number(figure("stream_traffic", "traffic of element-wise kernels / least possible",
                     [](Stack& changed, double value) { changed.stream_traffic = value; }),
              {stack.stream_traffic, 1.0, std::max(10.0, stack.stream_traffic), kTrafficSpread});
  list.time(figure("kernel_gap", "on the device, before each kernel",
                   [](Stack& changed, double value) { changed.host.kernel_gap = Seconds(value); }),
            stack.host.kernel_gap, kStackSpread);
}

// The figure as sources name it: "protocols" for all of its parts.
std::string cited_name(const std::string& figure) {
  return figure.starts_with("protocols.") ? std::string("protocols") : figure;
}

void cite(hardware::Sources& sources, const std::string& figure, std::string_view citation) {
  hardware::Sources kept;
  for (const auto& [key, text] : sources) {
    auto figures = hardware::cited_figures(key);
    std::erase(figures, figure);
    if (!figures.empty()) { kept[join(figures, ", ")] = text; }
  }
  kept[figure] = citation;
  sources = std::move(kept);
}

}  // namespace

void cite(Target& target, const Figure& figure, std::string_view citation) {
  const std::string name = cited_name(figure.name);
  switch (figure.owner) {
    case Owner::accelerator: cite(target.cluster.accelerator.sources, name, citation); return;
    case Owner::stack: cite(target.stack.sources, name, citation); return;
    case Owner::link:
      for (auto& dimension : target.cluster.dimensions) {
        if (dimension.link.name == figure.of) { cite(dimension.link.sources, name, citation); }
      }
      return;
  }
  throw_internal_error("known owner", __FILE__, __LINE__);
}

std::string_view name_of(Owner owner) {
  switch (owner) {
    case Owner::accelerator: return "accelerator";
    case Owner::link: return "link";
    case Owner::stack: return "stack";
  }
  throw_internal_error("known owner", __FILE__, __LINE__);
}

std::vector<Figure> figures_of(const Target& target, const std::vector<hardware::Precision>& formats) {
  List list;
  add_accelerator(list, target.cluster.accelerator, formats);
  std::vector<std::string> seen;
  for (const auto& dimension : target.cluster.dimensions) {
    if (std::find(seen.begin(), seen.end(), dimension.link.name) != seen.end()) { continue; }
    seen.push_back(dimension.link.name);
    add_link(list, dimension.link);
  }
  add_stack(list, target.stack);
  return list.take();
}

}  // namespace orrery::calibrate
