// Jobs that tests simulate exactly and write as a profiler would have seen them, so that an import can be compared with
// the truth, also after a change. The simulation is a plain loop over what the host does, independent of the room.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace orrery::profile {

struct MadeChange {
  double compute = 1, comm = 1;
  int late_rank = -1;
  std::int64_t late_ns = 0;
};

// Two or more ranks; per step some kernels, a collective of all ranks on its own stream, kernels that need it, and a
// synchronization at the end.
class MadeJob {
 public:
  MadeJob(int ranks, int steps, unsigned seed, std::int64_t clock = 0) : clock_(clock) {
    std::mt19937 random(seed);
    const auto draw = [&](std::int64_t least, std::int64_t most) {
      return least + static_cast<std::int64_t>(random() % static_cast<unsigned>(most - least + 1));
    };
    wires_.resize(static_cast<std::size_t>(steps));
    for (std::int64_t& wire : wires_) { wire = draw(20'000, 400'000); }
    for (int rank = 0; rank < ranks; ++rank) {
      Rank made;
      made.start = draw(0, 900'000);
      for (int step = 0; step < steps; ++step) {
        std::vector<std::int64_t> kernels;
        for (int i = 0; i < 6; ++i) { kernels.push_back(draw(3'000, 300'000)); }
        made.kernels.push_back(std::move(kernels));
        made.host.push_back(draw(5'000, 60'000));
      }
      ranks_.push_back(std::move(made));
    }
  }

  // The durations of the steps: [rank][step].
  [[nodiscard]] std::vector<std::vector<std::int64_t>> steps(const MadeChange& change = {}) const {
    return run(change, nullptr);
  }

  // The time of each step's collective on the wire.
  [[nodiscard]] const std::vector<std::int64_t>& wires() const { return wires_; }

  // The profiles, one text of Chrome trace JSON per rank.
  [[nodiscard]] std::vector<std::string> profiles() const {
    std::vector<std::string> texts(ranks_.size());
    run({}, &texts);
    for (std::size_t rank = 0; rank < texts.size(); ++rank) {
      texts[rank] =
          fmt::format(R"({{"schemaVersion":1,"distributedInfo":{{"backend":"nccl","rank":{},"world_size":{}}},)"
                      R"("traceEvents":[{}],"traceName":"made"}})",
                      rank, ranks_.size(), texts[rank]);
    }
    return texts;
  }

 private:
  static constexpr std::int64_t kCall = 5'000, kLaunch = 6'000, kGap = 1'000, kReturn = 4'000;

  struct Rank {
    std::int64_t start = 0;
    std::vector<std::vector<std::int64_t>> kernels;  // [step][kernel]
    std::vector<std::int64_t> host;                  // between calls, by step
  };
  struct State {
    std::int64_t now = 0, compute_end = -1'000'000, comm_end = -1'000'000, step_start = 0, arrived = 0;
    std::uint64_t correlation = 0;
    std::string text;
  };

  void event(State& state, std::size_t rank, const char* category, const std::string& name, bool device, int stream,
             std::int64_t start, std::int64_t duration, const std::string& args) const {
    const std::int64_t shown = start + 1'000'000'000 + (rank == 1 ? clock_ : 0);
    state.text += fmt::format(R"({}{{"ph":"X","cat":"{}","name":"{}","pid":{},"tid":{},"ts":{}.{:03},"dur":{}.{:03},)"
                              R"("args":{{{}}}}})",
                              state.text.empty() ? "" : ",\n", category, name, device ? 0 : 77, device ? stream : 100,
                              shown / 1000, shown % 1000, duration / 1000, duration % 1000, args);
  }

  std::uint64_t call(State& state, std::size_t rank, const char* name) const {
    ++state.correlation;
    event(state, rank, "cuda_runtime", name, false, 0, state.now, kCall,
          fmt::format(R"("correlation":{})", state.correlation));
    return state.correlation;
  }

  // A kernel of the compute stream, which may have to wait for the communication stream.
  void kernel(State& state, std::size_t rank, std::int64_t duration, bool waits) const {
    const std::uint64_t correlation = call(state, rank, "cudaLaunchKernel");
    event(state, rank, "cpu_op", "aten::mm", false, 0, state.now - 2'000, kCall + 3'000,
          fmt::format(R"("External id":{0},"Record function id":{0})", correlation));
    std::int64_t start = std::max(state.now + kLaunch, state.compute_end + kGap);
    if (waits) { start = std::max(start, state.comm_end + kGap); }
    event(state, rank, "kernel", "gemm", true, 7, start, duration,
          fmt::format(R"("device":0,"stream":7,"correlation":{})", correlation));
    state.compute_end = start + duration;
    state.now += kCall;
  }

  std::vector<std::vector<std::int64_t>> run(const MadeChange& change, std::vector<std::string>* texts) const {
    const auto scaled = [](std::int64_t time, double factor) {
      return static_cast<std::int64_t>(static_cast<double>(time) * factor + 0.5);
    };
    std::vector<std::vector<std::int64_t>> durations(ranks_.size());
    std::vector<State> states(ranks_.size());
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) { states[rank].now = ranks_[rank].start; }
    for (std::size_t step = 0; step < wires_.size(); ++step) {
      std::vector<std::uint64_t> correlations(ranks_.size());
      std::int64_t latest = 0;
      for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
        State& state = states[rank];
        const auto& kernels = ranks_[rank].kernels[step];
        state.step_start = state.now;
        if (step == 1 && static_cast<int>(rank) == change.late_rank) { state.now += change.late_ns; }
        for (int i = 0; i < 3; ++i) {
          state.now += ranks_[rank].host[step];
          kernel(state, rank, scaled(kernels[static_cast<std::size_t>(i)], change.compute), false);
        }
        state.now += ranks_[rank].host[step];
        call(state, rank, "cudaStreamWaitEvent");  // the communication stream waits for the compute stream
        state.now += kCall;
        correlations[rank] = call(state, rank, "cudaLaunchKernel");
        state.arrived = std::max({state.now + kLaunch, state.compute_end + kGap, state.comm_end + kGap});
        latest = std::max(latest, state.arrived);
        state.now += kCall;
      }
      for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
        State& state = states[rank];
        state.comm_end = latest + scaled(wires_[step], change.comm);
        event(
            state, rank, "kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", true, 20, state.arrived,
            state.comm_end - state.arrived,
            fmt::format(R"("device":0,"stream":20,"correlation":{},"Collective name":"allreduce","In msg nelems":1024,)"
                        R"("Out msg nelems":1024,"Group size":{},"dtype":"Float","Process Group Name":"0",)"
                        R"("Process Group Description":"default_pg","Process Group Ranks":"[]","Seq":{})",
                        correlations[rank], ranks_.size(), step));
        finish_step(state, rank, step, scaled, change);
        durations[rank].push_back(state.now - state.step_start);
        event(state, rank, "user_annotation", fmt::format("ProfilerStep#{}", step), false, 0, state.step_start,
              state.now - state.step_start, "");
      }
    }
    for (std::size_t rank = 0; texts != nullptr && rank < ranks_.size(); ++rank) {
      (*texts)[rank] = std::move(states[rank].text);
    }
    return durations;
  }

  template <class Scaled>
  void finish_step(State& state, std::size_t rank, std::size_t step, const Scaled& scaled,
                   const MadeChange& change) const {
    const auto& kernels = ranks_[rank].kernels[step];
    state.now += ranks_[rank].host[step];
    call(state, rank, "cudaStreamWaitEvent");  // the compute stream waits for the collective
    state.now += kCall;
    for (std::size_t i = 3; i < 6; ++i) {
      kernel(state, rank, scaled(kernels[i], change.compute), i == 3);
      state.now += ranks_[rank].host[step];
    }
    if (step % 2 == 0) { return; }  // every other step runs ahead of the device
    const std::int64_t returned = std::max(state.now + kReturn, state.compute_end + kReturn);
    ++state.correlation;
    event(state, rank, "cuda_runtime", "cudaStreamSynchronize", false, 0, state.now, returned - state.now,
          fmt::format(R"("correlation":{})", state.correlation));
    state.now = returned;
  }

  std::int64_t clock_;
  std::vector<std::int64_t> wires_;
  std::vector<Rank> ranks_;
};

}  // namespace orrery::profile
