// Law: where every link has one flow at a time, fair sharing and links that are granted one message at a time agree.
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "orrery/network/flow_file.hpp"
#include "orrery/network/flow_run.hpp"
#include "orrery/simulate/test_jobs.hpp"

namespace orrery::simulate::test::link_agreement_test {
namespace {

constexpr double kBandwidth = 50e9;  // bytes/s, as test_jobs.hpp
constexpr double kLatency = 500e-9;  // of a link

struct Pipeline {
  Wiring wiring = Wiring::ring;
  std::uint32_t ranks = 0, steps = 0;
  std::vector<std::uint64_t> delays_us;          // by rank
  std::vector<std::vector<std::int64_t>> bytes;  // by rank and step

  // Link 2 r goes out of rank r, through the switch if there is one; link 2 r + 1 goes from the switch to rank r.
  [[nodiscard]] std::string route(std::uint32_t rank) const {
    const std::uint32_t next = (rank + 1) % ranks;
    return wiring == Wiring::switched ? fmt::format("{},{}", 2 * rank, 2 * next + 1) : std::to_string(2 * rank);
  }
};

// A rank sends a step to the next rank when it has received the step before, and its own step before has arrived.
std::vector<double> flow_ends(const Pipeline& p) {
  std::string text;
  for (std::uint32_t link = 0; link < 2 * p.ranks; ++link) {
    text += fmt::format("link {} l{} {} {}\n", link, link, kBandwidth, kLatency);
  }
  for (std::uint32_t step = 0; step < p.steps; ++step) {
    for (std::uint32_t rank = 0; rank < p.ranks; ++rank) {
      const std::uint32_t before = (step - 1) * p.ranks;
      const std::string needs =
          step == 0 ? "-" : fmt::format("{},{}", before + rank, before + (rank + p.ranks - 1) % p.ranks);
      text += fmt::format("flow {} {} {} {} {}\n", step * p.ranks + rank, 1e-6 * static_cast<double>(p.delays_us[rank]),
                          p.bytes[rank][step], needs, p.route(rank));
    }
  }
  const auto flows = network::read_flows(text, "pipeline.txt");
  if (!flows) { throw std::runtime_error(flows.error().text()); }
  return network::run_flows(*flows).finish;
}

results::Simulation on_links(const Pipeline& p) {
  const auto job = job_of(Rig({{p.wiring, p.ranks}}, {"ring"}).physical(), [&](std::uint32_t rank) {
    const std::uint32_t next = (rank + 1) % p.ranks, last = (rank + p.ranks - 1) % p.ranks;
    std::vector<NodeRecord> nodes = {compute(1, p.delays_us[rank])};
    for (std::uint32_t step = 0; step < p.steps; ++step) {
      const std::uint64_t id = 2 * step + 2;
      std::vector<std::uint64_t> needs = {1};
      if (step > 0) { needs = {id - 2, id - 1}; }
      nodes.push_back(send(id, next, p.bytes[rank][step], needs));
      nodes.push_back(receive(id + 1, last, p.bytes[last][step]));
    }
    return nodes;
  });
  if (!job) { throw std::runtime_error(job.error().text()); }
  SimulationJob with_spans = *job;
  with_spans.spans = true;
  auto result = simulate(with_spans);
  if (!result) { throw std::runtime_error(result.error().text()); }
  return std::move(*result);
}

RC_GTEST_PROP(LinkAgreementLaw, flows_that_are_alone_on_their_links_end_as_messages_on_links, ()) {
  const auto below = [](std::uint32_t end) { return *rc::gen::inRange<std::uint32_t>(0, end); };
  Pipeline p;
  p.wiring = static_cast<Wiring>(below(3));
  p.ranks = 3 + below(6);
  p.steps = 1 + below(5);
  for (std::uint32_t rank = 0; rank < p.ranks; ++rank) {
    p.delays_us.push_back(1 + below(100));
    p.bytes.emplace_back();
    // Sizes of a rank differ, so that messages are matched with their receives.
    for (std::uint32_t step = 0; step < p.steps; ++step) { p.bytes.back().push_back(10 * below(500'000) + step + 1); }
  }
  const std::vector<double> flows = flow_ends(p);
  const results::Simulation links = on_links(p);
  std::size_t compared = 0;
  for (const results::SimulatedSpan& span : links.spans) {
    if (span.node == 1 || span.node % 2 != 0) { continue; }
    const double end = flows[(span.node / 2 - 1) * p.ranks + span.rank];
    RC_ASSERT(std::abs(1e-9 * static_cast<double>(span.end_ns) - end) < 2e-9);
    ++compared;
  }
  RC_ASSERT(compared == flows.size());
}

}  // namespace
}  // namespace orrery::simulate::test::link_agreement_test
