#include "orrery/serving/load.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "orrery/core/integers.hpp"

namespace orrery::serving {

double Draws::uniform() {
  constexpr double kScale = 1.0 / 9007199254740992.0;  // 2^-53
  return (static_cast<double>(stream_.bits() >> 11U) + 0.5) * kScale;
}

double Draws::exponential() { return -std::log(uniform()); }

// Box and Muller.
double Draws::normal() {
  const double radius = std::sqrt(2.0 * exponential());
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

// Marsaglia and Tsang, A simple method for generating gamma variables, 2000.
double Draws::gamma(double shape) {
  const double boosted = shape < 1.0 ? shape + 1.0 : shape;
  const double d = boosted - 1.0 / 3.0, c = 1.0 / std::sqrt(9.0 * d);
  for (;;) {
    const double x = normal(), root = 1.0 + c * x;
    if (root <= 0.0) { continue; }
    const double v = root * root * root;
    if (std::log(uniform()) >= 0.5 * x * x + d - d * v + d * std::log(v)) { continue; }
    const double drawn = shape < 1.0 ? d * v * std::pow(uniform(), 1.0 / shape) : d * v;
    return drawn / shape;
  }
}

double Draws::gap(double cv) {
  if (cv == 0.0) { return 1.0; }
  return cv == 1.0 ? exponential() : gamma(1.0 / (cv * cv));
}

namespace {

// Purposes of streams of random numbers: a load that differs in its rate alone has the same lengths.
constexpr std::uint64_t kArrivals = 1, kInputs = 2, kOutputs = 3, kPrefixes = 4, kTurnInputs = 5, kTurnOutputs = 6,
                        kBranchOutputs = 7;

std::int64_t length_of(Draws& draws, std::int64_t nominal, const LoadOptions& options) {
  if (options.length_cv > 0.0) {
    const double variance = std::log(1.0 + options.length_cv * options.length_cv);
    const double drawn = std::exp(std::sqrt(variance) * draws.normal() - 0.5 * variance);
    return std::max<std::int64_t>(1, std::llround(static_cast<double>(nominal) * drawn));
  }
  if (options.range >= 1.0) { return nominal; }
  const auto least = static_cast<std::int64_t>(std::ceil(options.range * static_cast<double>(nominal)));
  return draws.between(std::max<std::int64_t>(1, least), nominal);
}

std::int64_t input_of(Draws& draws, std::int64_t nominal, const LoadOptions& options) {
  return options.fixed_input ? nominal : length_of(draws, nominal, options);
}

std::int64_t output_of(Draws& draws, const LoadOptions& options) {
  return options.fixed_output ? options.output : length_of(draws, options.output, options);
}

void add_prefixes(Workload& load, const LoadOptions& options) {
  const std::int64_t blocks = options.prefix_tokens / options.block;
  if (options.prefix_groups == 0 || blocks == 0) { return; }
  load.block_tokens = options.block;
  for (std::int64_t i = 0; i < options.prefix_groups * blocks; ++i) {
    load.block_ids.push_back(static_cast<std::uint32_t>(i));
  }
  Draws draws(options.seed, kPrefixes);
  std::int64_t turn = 0;
  for (Request& request : load.requests) {
    const std::int64_t group =
        options.prefixes_in_turn ? turn++ % options.prefix_groups : draws.between(0, options.prefix_groups - 1);
    request.first_block = static_cast<std::uint32_t>(group * blocks);
    request.blocks = static_cast<std::uint32_t>(std::min(blocks, request.input / options.block));
  }
}

// Every request becomes the first turn of a session.
void add_turns(Workload& load, const LoadOptions& options) {
  if (options.turns <= 1) { return; }
  const std::vector<Request> heads = std::move(load.requests);
  const auto turns = static_cast<std::size_t>(options.turns);
  Draws inputs(options.seed, kTurnInputs), outputs(options.seed, kTurnOutputs);
  load.requests.clear();
  load.requests.reserve(heads.size() * turns);
  load.first_follower.push_back(0);
  for (std::size_t i = 0; i < heads.size(); ++i) {
    Request request = heads[i];
    request.session = static_cast<std::int32_t>(i);
    for (std::size_t turn = 0; turn < turns; ++turn) {
      if (turn > 0) {
        const std::int64_t added = options.added + options.turn_added;
        request.input += request.output + input_of(inputs, options.turn_input, options) + added;
        request.output = output_of(outputs, options);
      }
      load.requests.push_back(request);
      load.following.push_back({turn > 0 ? 1 : 0, turn > 0 ? load.think : 0});
      if (turn + 1 < turns) { load.followers.push_back(static_cast<std::uint32_t>(load.requests.size())); }
      load.first_follower.push_back(static_cast<std::uint32_t>(load.followers.size()));
    }
  }
}

// The blocks of a session's last prompt: those of its shared prefix, then its own. Earlier prompts are their beginning.
// Branches share the blocks of their prompt.
void add_session_blocks(Workload& load, const LoadOptions& options) {
  if (options.turns <= 1 && options.branches <= 1) { return; }
  load.block_tokens = options.block;
  auto id = static_cast<std::uint32_t>(load.block_ids.size());  // prefixes have the ids below
  const auto turns = static_cast<std::size_t>(options.turns);
  for (std::size_t head = 0; head < load.requests.size(); head += turns) {
    const Request first = load.requests[head];
    const auto at = static_cast<std::uint32_t>(load.block_ids.size());
    const auto blocks = load.requests[head + turns - 1].input / options.block;
    for (std::int64_t block = 0; block < blocks; ++block) {
      const auto shared = static_cast<std::uint32_t>(block);
      const std::uint32_t prefix = shared < first.blocks ? load.block_ids[first.first_block + shared] : id++;
      load.block_ids.push_back(prefix);
    }
    for (std::size_t i = head; i < head + turns; ++i) {
      load.requests[i].first_block = at;
      load.requests[i].blocks = static_cast<std::uint32_t>(load.requests[i].input / options.block);
    }
  }
}

// Further branches: copies of their requests with outputs of their own.
void add_branches(Workload& load, const LoadOptions& options) {
  if (options.branches <= 1) { return; }
  Draws outputs(options.seed, kBranchOutputs);
  load.branches = options.branches;
  load.join = options.join;
  const std::size_t own = load.requests.size();
  load.requests.reserve(own * static_cast<std::size_t>(options.branches));
  for (std::size_t i = 0; i < own; ++i) {
    for (std::int64_t branch = 1; branch < options.branches; ++branch) {
      Request request = load.requests[i];
      request.output = output_of(outputs, options);
      load.requests.push_back(request);
    }
  }
}

}  // namespace

Workload generated(const LoadOptions& options) {
  Workload load;
  load.clients = options.clients;
  load.think = ticks_of(options.think);
  const std::int64_t heads = (options.requests + options.turns - 1) / options.turns;
  load.requests.reserve(static_cast<std::size_t>(heads));
  Draws arrivals(options.seed, kArrivals), inputs(options.seed, kInputs), outputs(options.seed, kOutputs);
  double at = 0.0;          // in mean gaps, so that rates share their draws
  std::vector<double> due;  // where arrivals have a rate
  for (std::int64_t i = 0; i < heads; ++i) {
    Request request;
    if (options.rate > 0.0) {
      at += arrivals.gap(options.cv);
      due.push_back(at);
    }
    request.input = input_of(inputs, options.input, options) + options.added;
    request.output = output_of(outputs, options);
    load.requests.push_back(request);
  }
  // n of them in n mean gaps, so that the rate is the one that was asked for: given their number in that time, the
  // arrivals of a Poisson process are uniform in it.
  const double scale = at > 0.0 ? real(heads) / at : 1.0;
  for (std::size_t i = 0; i < due.size(); ++i) {
    load.requests[i].arrival = ticks_of(Seconds(due[i] * scale / options.rate));
  }
  add_prefixes(load, options);
  add_turns(load, options);
  add_session_blocks(load, options);
  add_branches(load, options);
  return load;
}

}  // namespace orrery::serving
