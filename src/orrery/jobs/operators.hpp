// A training step as operators that are divided into pieces, placed on servers and run: the time of a job and the
// servers that it takes (PAC-ML, arXiv:2301.13799; the rules are those of cwfparsonson/ddls@9e0b5ba).
//
// The forward pass is the graph, the backward pass its mirror image. An operator gets min(degree, even ceiling of its
// forward time / quantum) pieces of equal time; its backward operator gets as many, on the same servers. Data between
// pieces is divided evenly; the pieces of a backward operator exchange their weights pairwise.
//
// Left out: memory of servers (published jobs fit), time to launch a piece, overlap of steps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "orrery/config/record.hpp"
#include "orrery/core/error.hpp"
#include "orrery/core/units.hpp"

namespace orrery::jobs {

struct Operator {
  std::string name;
  Seconds forward, backward;
  Bytes bytes;                       // activations and parameters: what consumers read, and what is synchronised
  std::vector<std::int64_t> inputs;  // positions of its producers in the list, from 1, before its own
};

struct Operators {
  std::vector<Operator> operators;
};

// YAML or JSON: `operators`, a list in an order in which inputs come first.
[[nodiscard]] Result<Operators> read_operators(const std::string& path);

// Of all operators, forward and backward.
[[nodiscard]] Seconds sequential_time(const Operators& step);

// Pieces of each operator. `degree`: 1 or even.
[[nodiscard]] std::vector<std::int64_t> pieces_of(const Operators& step, std::int64_t degree, Seconds quantum);

// Servers of the pieces of each operator, in their order.
using PiecePlaces = std::vector<std::vector<std::int32_t>>;

class Servers;

// Operators in their order: on the servers of the first producer with as many pieces, else on the first block of
// servers that are free or belong to this job. Absent: no block.
[[nodiscard]] std::optional<PiecePlaces> place_pieces(const Operators& step, const std::vector<std::int64_t>& pieces,
                                                      const Servers& servers);

// What messages between servers cost.
struct ServerNetwork {
  bool ramp = true;                      // else a switch: ring all-reduce
  std::int64_t groups = 4;               // ramp: of the whole network
  std::int64_t racks = 4, per_rack = 2;  // ramp: in a group, in a rack
  BytesPerSecond bandwidth{1.6e12};      // of a server
  Seconds latency{50e-9}, io_latency{1e-7};
};

// Time of one step. A server runs one piece at a time, a pair of servers one message at a time in each direction, each
// by shortest remaining time. All messages of an operator to its consumers are one collective if both sides are on the
// same servers. Complexity: messages x log(messages), messages = sum over edges of the product of pieces.
[[nodiscard]] Seconds step_time(const Operators& step, const PiecePlaces& places, const ServerNetwork& network);

}  // namespace orrery::jobs

namespace orrery::config {

template <>
struct Described<jobs::Operator> {
  static const Record<jobs::Operator>& record();
};

}  // namespace orrery::config
