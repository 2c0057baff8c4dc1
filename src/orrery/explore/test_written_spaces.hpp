// Random space files, with models and clusters, for tests of walks and searches.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "orrery/config/node.hpp"
#include "orrery/explore/space_walk.hpp"
#include "orrery/explore/test_spaces.hpp"
#include "orrery/explore/test_written_axes.hpp"
#include "orrery/parallel/test_jobs.hpp"

namespace orrery::explore::test {

// The axes in a random order in which each comes after those it depends on; tiers are consecutive.
template <class Range>
std::vector<Written> any_order(Range&& range, std::vector<Written> axes) {
  std::vector<Written> ordered;
  std::set<std::string> waiting;
  for (const auto& axis : axes) { waiting.insert(axis.name); }
  while (!axes.empty()) {
    std::vector<std::size_t> ready;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const auto& after = axes[i].after;
      const bool waits =
          std::any_of(after.begin(), after.end(), [&](const auto& name) { return waiting.contains(name); });
      if (!waits) { ready.push_back(i); }
    }
    const auto next = ready[static_cast<std::size_t>(range(0, static_cast<std::int64_t>(ready.size())))];
    waiting.erase(axes[next].name);
    ordered.push_back(axes[next]);
    axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(next));
  }
  std::stable_partition(ordered.begin(), ordered.end(),
                        [](const auto& axis) { return !axis.name.starts_with("tier."); });
  return ordered;
}

template <class Range>
std::vector<Written> any_axes(Range&& range) {
  std::vector<Written> axes;
  const bool peers = any_flag(range);
  std::set<std::string> there;
  for (const auto& name : all_axes()) {
    const bool other_name = peers ? name == "sequence_parallel" || name == "zero"
                                  : name == "tp_comm" || name == "optimizer_sharding" || name == "ag_redo";
    const bool is_left_out = generated_from(name) != nullptr ? range(0, 4) > 0 : range(0, 5) < 2;
    if (other_name || is_left_out) { continue; }
    auto some = ways(name);
    std::erase_if(some, [&](const Written& way) {
      return std::any_of(way.after.begin(), way.after.end(), [&](const auto& before) {
        const bool is_degree = before == "tp" || before == "cp" || before == "pp";
        return !is_degree && !there.contains(before);
      });
    });
    if (name == "ag_redo" && !there.contains("tp_comm")) { continue; }
    axes.push_back(some[static_cast<std::size_t>(range(0, static_cast<std::int64_t>(some.size())))]);
    there.insert(name);
  }
  return any_order(range, axes);
}

template <class Range>
Setting any_setting(Range&& range) {
  Setting s;
  s.model = parallel::test::llama(any_of(range, {2, 4, 6, 12}), 512, 8, any_flag(range) ? 4 : 8, 768, 1024);
  if (range(0, 3) == 0) { s.model.experts = any_experts(range); }
  s.job = {any_of(range, {4, 8, 12, 24}), any_of(range, {24, 48, 64, 96}), hardware::Precision::bf16,
           parallel::Task::pretrain};
  s.cluster =
      parallel::test::cluster_of(any_flag(range) ? std::vector<std::int64_t>{4, 3} : std::vector<std::int64_t>{4, 2});
  if (range(0, 3) == 0) { s.cluster.second_tier = {}; }
  if (any_flag(range)) {
    s.max_batch = range(3, 26);
    s.job.global_batch = 0;
  }
  return s;
}

inline std::string text_of(const Setting& s, const std::vector<Written>& axes, bool count_invalid) {
  std::string text = fmt::format("count_invalid: {}\n", count_invalid);
  if (s.max_batch > 0) { text += fmt::format("max_batch: {}\n", s.max_batch); }
  text += "axes:\n";
  bool in_tiers = false;
  for (const auto& axis : axes) {
    const bool is_tier = axis.name.starts_with("tier.");
    if (is_tier && !in_tiers) { text += "  tier:\n"; }
    in_tiers = is_tier;
    text += fmt::format("{}{}: {}\n", is_tier ? "    " : "  ", is_tier ? axis.name.substr(5) : axis.name, axis.text);
  }
  return text;
}

inline Space made(const Setting& s, const std::string& text) {
  const auto file = space_of(config::parse_yaml(text, "space.yaml").value());
  EXPECT_TRUE(file) << file.error().text() << "\n" << text;
  const auto space = Space::make(*file, s.model, s.job, s.cluster, {}, true);
  EXPECT_TRUE(space) << space.error().text() << "\n" << text;
  return *space;
}

}  // namespace orrery::explore::test
