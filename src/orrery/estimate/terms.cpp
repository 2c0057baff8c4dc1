#include "orrery/estimate/terms.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "orrery/cost/kernel_cost.hpp"
#include "orrery/cost/names.hpp"
#include "orrery/network/names.hpp"

namespace orrery::estimate {

void TermWriter::add(const parallel::Segment& segment, std::string_view name, double executions) {
  for (const auto& use : segment) {
    const double count = executions * static_cast<double>(use.repeat);
    if (use.gather) { add_block(*use.gather, name, count); }
    add_block(use.work, name, count);
    if (use.reduce) { add_block(*use.reduce, name, count); }
  }
}

void TermWriter::add_block(parallel::BlockId id, std::string_view segment, double count) {
  for (const auto& item : program_.block(id).items) { add(item, segment, count); }
}

void TermWriter::add(const parallel::Item& item, std::string_view segment, double count) {
  const bool is_wait = std::holds_alternative<parallel::CollectiveWait>(item.action);
  if (count == 0 || is_wait) { return; }
  const bool again = item.purpose == parallel::Purpose::recompute;
  terms_.push_back(term(item, again ? "recompute" : segment, count));
}

// The algorithm and protocol that determine the time: "all_gather ring/Simple".
std::string TermWriter::bound_of(const parallel::CollectiveCall& call) const {
  const std::string_view name = config::enum_name(call.collective);
  switch (route_of(call, program_.mesh)) {
    case Route::collective: break;
    case Route::ring_steps: return fmt::format("{} ring/rounds", name);
    case Route::node_dispatch: {
      if (call.node_dispatch.low_latency) { return fmt::format("{} low-latency/rank", name); }
      const bool one_node = program_.mesh.group(parallel::GroupKind::ep_across).size() == 1;
      return fmt::format("{} once/{}", name, one_node ? "rank" : "node");
    }
    case Route::host: return "second tier";
  }
  const auto price = context_.fabric.price(call.collective, call.bytes, program_.mesh.group(call.group));
  return fmt::format("{} {}/{}", name, config::enum_name(price.algorithm), price.protocol);
}

results::Term TermWriter::term(const parallel::Item& item, std::string_view segment, double count) const {
  results::Term term;
  term.name = item.name;
  term.segment = segment;
  term.count = count;
  if (const auto* collective = item.collective()) {
    term.bytes = collective->call.bytes;
    term.time = price_call(collective->call, context_.fabric, program_.mesh);
    term.bound = bound_of(collective->call);
  } else if (const auto* launch = item.kernel()) {
    const cost::KernelCost cost = cost::kernel_cost(launch->kernel, context_.cluster.accelerator);
    term.flops = launch->kernel.flops;
    term.bytes = launch->kernel.bytes;
    term.time = cost.time;
    term.bound = config::enum_name(cost.bound);
  }
  return term;
}

std::vector<results::Term> TermWriter::take() {
  std::vector<results::Term> lines;
  for (const auto& term : terms_) {
    const auto same = std::find_if(lines.begin(), lines.end(), [&](const results::Term& line) {
      return line.name == term.name && line.segment == term.segment && line.bound == term.bound &&
             line.time == term.time && line.flops == term.flops;
    });
    if (same == lines.end()) {
      lines.push_back(term);
    } else {
      same->count += term.count;
    }
  }
  return lines;
}

}  // namespace orrery::estimate
