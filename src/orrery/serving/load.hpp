// Requests: arrivals and lengths by distribution, or from a trace.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "orrery/core/error.hpp"
#include "orrery/core/random.hpp"
#include "orrery/serving/request.hpp"

namespace orrery::serving {

// Draws of distributions, the same on every machine with the same elementary functions.
class Draws {
 public:
  Draws(std::uint64_t seed, std::uint64_t purpose) : stream_(stream_of(seed, purpose)) {}

  [[nodiscard]] double uniform();      // in (0, 1)
  [[nodiscard]] double exponential();  // of mean 1
  [[nodiscard]] double normal();
  [[nodiscard]] double gamma(double shape);  // of mean 1
  [[nodiscard]] double gap(double cv);       // between arrivals, of mean 1: constant, exponential or gamma
  [[nodiscard]] std::int64_t between(std::int64_t least, std::int64_t most) {
    return least + stream_.below(most - least + 1);
  }

 private:
  RandomStream stream_;
};

inline constexpr std::int64_t kMostTokens = 10'000'000;  // of a prompt, of an answer
inline constexpr std::int64_t kPrefixBlock = 16;         // tokens of a block that requests share, at least

struct LoadOptions {
  std::int64_t requests = 0;
  double rate = 0.0;         // requests per second, open loop; 0: all arrive at the start
  double cv = 1.0;           // coefficient of variation of the times between arrivals; 1: Poisson, 0: constant
  std::int64_t clients = 0;  // closed loop
  Seconds think;
  std::int64_t input = 0, output = 0;
  double range = 1.0;                                 // lengths are uniform from this part of them to the whole
  double length_cv = 0.0;                             // lengths are log-normal with these means; 0: by range
  bool fixed_input = false, fixed_output = false;     // of every request; else inputs or outputs vary
  std::int64_t prefix_groups = 0, prefix_tokens = 0;  // the first tokens of an input are those of a group
  bool prefixes_in_turn = false;                      // the groups of requests come in turn, not at random
  // Sessions: the prompt of a later turn is all that was said before, and new tokens. Arrivals and clients are of
  // sessions; `requests` is rounded up to whole ones.
  std::int64_t turns = 1;
  std::int64_t added = 0;             // tokens that stages before the engine add to every prompt
  std::int64_t turn_added = 0;        // tokens that stages between turns add to the prompt of a later turn
  std::int64_t turn_input = 0;        // new tokens of a later turn, distributed as inputs are
  std::int64_t branches = 1;          // sequences of a request; the outputs of all are distributed as outputs are
  std::int64_t join = 1;              // branches that an answer waits for
  std::int64_t block = kPrefixBlock;  // tokens of the blocks of shared prefixes, sessions and branches
  std::uint64_t seed = 1;
};

[[nodiscard]] Workload generated(const LoadOptions& options);

struct TraceOptions {
  std::optional<std::int64_t> requests;  // repeated if the trace has fewer; not given: all of them
  double speed = 1.0;                    // arrivals come so many times as fast
  std::int64_t block_tokens = 512;       // tokens of a block of `block_ids`
  std::int64_t clients = 0;              // closed loop: arrivals of the trace have no meaning
  Seconds think;
  std::optional<double> rate;  // arrivals of this rate instead of those of the trace
  double cv = 1.0;             // coefficient of variation of the times between them
  std::uint64_t seed = 1;
};

// A CSV file with the columns arrival_s, input_tokens, output_tokens and perhaps block_ids (hashes, runs as a-b),
// priority, session. Errors name the line: cells without a number, arrivals out of order, empty requests.
[[nodiscard]] Result<Workload> trace_of(const std::string& file, const TraceOptions& options);

}  // namespace orrery::serving
