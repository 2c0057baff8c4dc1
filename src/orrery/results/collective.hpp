// The times of one collective operation over a range of sizes: plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "orrery/core/units.hpp"

namespace orrery::results {

// The parts of a call's time in closed form.
struct CollectiveTerms {
  Seconds base;       // launch and synchronisation, once
  Seconds latency;    // per-step latencies
  Seconds bandwidth;  // bytes over links
  Seconds reduction;  // arithmetic not overlapped with the links
  std::string protocol;
  std::int64_t chunks = 1;
};

// Of a row that is simulated message by message.
struct CollectiveMessages {
  std::uint64_t messages = 0, updates = 0;  // of the rates
  std::string busiest_link;                 // "leaf0 to spine1"
  double busiest_use = 0;                   // part of the time that the link needs for its bytes
};

// Of a row whose chunks choose the order of the dimensions.
struct CollectiveChunks {
  std::int64_t chunks = 1;
  double bandwidth_use = 0;  // bytes sent / bytes that all dimensions could have sent until the end
  std::vector<std::pair<std::string, double>> dimension_use;  // part of the time in which the dimension sends
};

struct CollectiveRow {
  std::uint64_t size_B = 0;  // as in nccl-tests: of the whole buffer
  std::uint64_t count = 0;   // elements of four bytes, as nccl-tests prints them
  Seconds time;
  BytesPerSecond algbw;                  // size / time
  BytesPerSecond busbw;                  // algbw x the operation's factor
  std::string algorithm;                 // simulated: one per network dimension
  std::optional<CollectiveTerms> terms;  // closed form only
  std::optional<CollectiveMessages> messages;
  std::optional<CollectiveChunks> chunks;
};

// The 80 % interval of every time, as factors of it.
struct CollectiveRange {
  double p10 = 1.0, p90 = 1.0;
  std::string kind;   // "collectives-many-domains measured"
  std::string basis;  // the rows that it is from
};

struct CollectiveTable {
  std::string op;         // "all_reduce"
  std::string semantics;  // "physical", "astra-sim"
  std::string method;     // "closed-form", "simulated"
  std::string where;      // the cluster, or the network file
  std::string network;    // "8 nvlink x 2 infiniband", "Ring 8"
  std::string reduction;  // "sum" where the operation reduces, else "none"
  int root = -1;          // of a rooted operation
  std::uint64_t ranks = 0;
  std::vector<CollectiveRow> rows;
  std::optional<CollectiveRange> range;  // of priced times
  std::vector<std::string> warnings;
};

}  // namespace orrery::results
