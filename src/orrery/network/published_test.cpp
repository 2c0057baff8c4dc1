// Prices against published nccl-tests figures for one node. The constants of the catalogue are fitted to nccl-tests
// sweeps (tools/calibrate/collectives.py). Those include the rows of 4 A100, 4 H100 and 8 H100 below; the other rows
// are held out.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "orrery/hardware/catalogue.hpp"
#include "orrery/network/fabric.hpp"
#include "orrery/network/test_cluster.hpp"

namespace orrery::network::published_test {
namespace {

using namespace orrery::literals;  // NOLINT(google-build-using-namespace): literals need it
using test::group_of;

hardware::Cluster node(const char* name) {
  auto cluster = hardware::Catalogue(ORRERY_SOURCE_DATA_DIR).cluster(name, 8);
  if (!cluster) { throw std::runtime_error(cluster.error().diagnostics.front().message); }
  return std::move(*cluster);
}

double bus_factor(Collective collective, double n) {
  return collective == Collective::all_reduce ? 2 * (n - 1) / n : (n - 1) / n;
}

double bus_bandwidth(const Fabric& fabric, Collective collective, std::int64_t n, Bytes bytes) {
  const Seconds time = fabric.price(collective, bytes, group_of({n})).time;
  return (bytes / time).value() * bus_factor(collective, static_cast<double>(n)) / 1e9;
}

TEST(Published, bus_bandwidth_at_1_mib_is_several_times_below_that_of_large_messages) {
  // Measured on 8 A100: 47 GB/s at 1 MiB, 222 GB/s at 512 MiB: 4.7 times. The reason is latency: 14 steps of about a
  // microsecond each, against 1.75 MiB / 240 GB/s = 7.6 us for the bytes.
  for (const auto& cluster : {node("dgx-a100"), node("dgx-h100")}) {
    const Fabric fabric(cluster);
    const double small = bus_bandwidth(fabric, Collective::all_reduce, 8, 1_MiB);
    const double large = bus_bandwidth(fabric, Collective::all_reduce, 8, 512_MiB);
    EXPECT_GT(large / small, 3.0);
    EXPECT_LT(large / small, 9.0);
  }
}

struct Row {
  const char* system;
  Collective collective;
  std::int64_t members;
  double latency_us;           // at 8 KiB
  double at_1, at_64, at_512;  // GB/s bus bandwidth at 1, 64, 512 MiB
};

// AIConfigurator's nccl-tests tables (half precision, in-node).
const std::vector<Row> kPublished = {
    {"A100", Collective::all_reduce, 2, 11.0, 26, 171, 193},
    {"A100", Collective::all_reduce, 4, 14.7, 53, 185, 217},
    {"A100", Collective::all_reduce, 8, 21.3, 47, 197, 222},
    {"A100", Collective::all_gather, 8, 14.6, 34, 167, 205},
    {"A100", Collective::reduce_scatter, 8, 14.5, 39, 179, 213},
    {"A100", Collective::all_to_all, 8, 15.9, 36, 169, 203},
    {"H100", Collective::all_reduce, 2, 6.8, 71, 264, 318},
    {"H100", Collective::all_reduce, 4, 10.0, 87, 305, 350},
    {"H100", Collective::all_reduce, 8, 16.0, 72, 362, 445},
    {"H100", Collective::all_gather, 8, 10.6, 54, 282, 335},
    {"H100", Collective::reduce_scatter, 8, 10.5, 63, 293, 336},
    {"H100", Collective::all_to_all, 8, 7.5, 59, 265, 315},
};

const char* name_of(Collective collective) {
  switch (collective) {
    case Collective::all_reduce: return "all_reduce";
    case Collective::all_gather: return "all_gather";
    case Collective::reduce_scatter: return "reduce_scatter";
    case Collective::all_to_all: return "all_to_all";
    case Collective::broadcast: return "broadcast";
    case Collective::reduce:
    case Collective::gather:
    case Collective::scatter:
    case Collective::barrier: break;  // no published figures here
  }
  return "";
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Prints the table of docs/models/collectives.md.
TEST(Published, median_error_on_one_node_is_below_20_percent_at_1_MiB_and_smaller_elsewhere) {
  const hardware::Cluster a = node("dgx-a100");
  const hardware::Cluster h = node("dgx-h100");
  std::vector<double> errors[4];
  std::printf("system, op, n | 8 KiB: us predicted / published | busbw GB/s at 1 MiB | 64 MiB | 512 MiB\n");
  for (const Row& row : kPublished) {
    const Fabric fabric(std::string(row.system) == "A100" ? a : h);
    const double us = fabric.price(row.collective, 8_KiB, group_of({row.members})).time.value() * 1e6;
    const auto bus = [&](Bytes bytes) { return bus_bandwidth(fabric, row.collective, row.members, bytes); };
    const double predicted[4] = {us, bus(1_MiB), bus(64_MiB), bus(512_MiB)};
    const double published[4] = {row.latency_us, row.at_1, row.at_64, row.at_512};
    std::printf("| %s %s %d |", row.system, name_of(row.collective), static_cast<int>(row.members));
    for (std::size_t i = 0; i < 4; ++i) {
      std::printf(i == 0 ? " %.1f / %.1f |" : " %.0f / %.0f |", predicted[i], published[i]);
      errors[i].push_back(std::abs(predicted[i] / published[i] - 1));
    }
    std::printf("\n");
  }
  EXPECT_LT(median(errors[0]), 0.12);
  EXPECT_LT(median(errors[1]), 0.20);
  EXPECT_LT(median(errors[2]), 0.12);
  EXPECT_LT(median(errors[3]), 0.06);
  std::printf("median error %.0f %% | %.0f %% | %.0f %% | %.0f %%\n", 100 * median(errors[0]), 100 * median(errors[1]),
              100 * median(errors[2]), 100 * median(errors[3]));
}

}  // namespace
}  // namespace orrery::network::published_test
