// Messages, broadcasts and reductions between ranks: jobs that are simulated exactly here and written as a profiler
// would have seen them, so that a replay can be compared with the truth after a change.
#include "orrery/profile/one_sided.hpp"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orrery/profile/kineto_read.hpp"
#include "orrery/profile/plan_graph.hpp"
#include "orrery/profile/replay.hpp"

namespace orrery::profile::one_sided_test {

constexpr std::int64_t kCall = 4'000, kLaunch = 6'000, kGap = 1'000;

struct Change {
  double compute = 1, comm = 1;
};

// What the file says about messages and broadcasts.
enum class Metadata : std::uint8_t { kernels, names };

// Stages of a pipeline. In each step, a stage receives from the one before it, computes, and sends to the next; then a
// root, another one in each step, broadcasts to all, or they reduce to it. Everything runs on one stream, as in PyTorch
// since 2.8.
class Pipeline {
 public:
  Pipeline(int stages, int steps, unsigned seed, bool reduces = false) : reduces_(reduces) {
    std::mt19937 random(seed);
    const auto draw = [&](std::int64_t least, std::int64_t most) {
      return least + static_cast<std::int64_t>(random() % static_cast<unsigned>(most - least + 1));
    };
    for (int step = 0; step < steps; ++step) {
      shared_wire_.push_back(draw(30'000, 200'000));
      std::vector<std::int64_t> compute, wires, host;
      for (int stage = 0; stage < stages; ++stage) {
        compute.push_back(draw(20'000, 500'000));
        wires.push_back(draw(10'000, 300'000));
        host.push_back(draw(2'000, 90'000));
      }
      compute_.push_back(compute);
      wires_.push_back(wires);
      host_.push_back(host);
    }
  }

  [[nodiscard]] std::size_t stages() const { return compute_.front().size(); }

  // The end of the last operation of each stage.
  [[nodiscard]] std::vector<std::int64_t> ends(const Change& change) const {
    std::vector<std::int64_t> ends;
    for (const State& state : run(change, Metadata::kernels)) { ends.push_back(state.ready); }
    return ends;
  }

  [[nodiscard]] std::vector<std::string> profiles(Metadata metadata) const {
    std::vector<std::string> texts;
    for (const State& state : run({}, metadata)) {
      texts.push_back(fmt::format(
          R"({{"schemaVersion":1,"distributedInfo":{{"backend":"nccl","rank":{},"world_size":{},"pg_config":)"
          R"([{{"pg_name":"0","ranks":[{}]}}]}},"traceEvents":[{}]}})",
          texts.size(), stages(), stages() == 2 ? "0,1" : "0,1,2", state.text));
    }
    return texts;
  }

 private:
  struct State {
    std::int64_t host = 0, ready = -1'000'000;  // when the thread and the stream are free
    std::uint64_t correlation = 0;
    std::string text;
  };

  static std::int64_t scaled(std::int64_t time, double factor) {
    return static_cast<std::int64_t>(static_cast<double>(time) * factor + 0.5);
  }

  static void event(State& state, const char* category, const std::string& name, bool device, std::int64_t start,
                    std::int64_t duration, const std::string& args) {
    const std::int64_t shown = start + 1'000'000'000;
    state.text += fmt::format(R"({}{{"ph":"X","cat":"{}","name":"{}","pid":{},"tid":{},"ts":{}.{:03},"dur":{}.{:03},)"
                              R"("args":{{{}}}}})",
                              state.text.empty() ? "" : ",\n", category, name, device ? 0 : 77, device ? 7 : 100,
                              shown / 1000, shown % 1000, duration / 1000, duration % 1000, args);
  }

  // Launches an operation; returns when it starts.
  static std::int64_t launch(State& state, const std::string& annotation) {
    ++state.correlation;
    if (!annotation.empty()) { event(state, "user_annotation", annotation, false, state.host, kCall, ""); }
    event(state, "cuda_runtime", "cudaLaunchKernel", false, state.host, kCall,
          fmt::format(R"("correlation":{})", state.correlation));
    const std::int64_t start = std::max(state.host + kLaunch, state.ready + kGap);
    state.host += kCall;
    return start;
  }

  static void kernel(State& state, const std::string& name, std::uint64_t correlation, std::int64_t start,
                     std::int64_t end, const std::string& args) {
    event(state, "kernel", name, true, start, end - start,
          fmt::format(R"("device":0,"stream":7,"correlation":{}{})", correlation, args));
    state.ready = end;
  }

  static std::string record(Metadata metadata, const char* name, const std::string& more) {
    if (metadata == Metadata::names) { return {}; }
    return fmt::format(R"(,"Collective name":"{}","In msg nelems":1024,"Out msg nelems":1024,"Group size":2,"dtype":)"
                       R"("Float","Process Group Name":"0"{})",
                       name, more);
  }

  void step(std::size_t number, const Change& change, Metadata metadata, std::vector<State>& states) const {
    const std::size_t count = states.size();
    std::vector<std::int64_t> receives(count);
    std::vector<std::uint64_t> receive_calls(count);
    for (std::size_t stage = 1; stage < count; ++stage) {
      receives[stage] = launch(states[stage], fmt::format("nccl:recv {}<-{}", stage, stage - 1));
      receive_calls[stage] = states[stage].correlation;
    }
    for (std::size_t stage = 0; stage < count; ++stage) {
      State& state = states[stage];
      state.host += host_[number][stage];
      const std::int64_t start = launch(state, "");
      kernel(state, "gemm", state.correlation, start, start + scaled(compute_[number][stage], change.compute), "");
      if (stage + 1 == count) { break; }
      const std::int64_t sends = launch(state, fmt::format("nccl:send {}->{}", stage, stage + 1));
      const std::int64_t end = std::max(sends, receives[stage + 1]) + scaled(wires_[number][stage], change.comm);
      kernel(state, "ncclDevKernel_SendRecv", state.correlation, sends, end,
             record(metadata, "send", fmt::format(R"(,"Dst Rank":{},"Seq":{})", stage + 1, state.correlation)));
      kernel(states[stage + 1], "ncclDevKernel_SendRecv", receive_calls[stage + 1], receives[stage + 1], end,
             record(metadata, "recv", fmt::format(R"(,"Src Rank":{},"Seq":{})", stage, receive_calls[stage + 1])));
    }
    share(number, change, metadata, states);
  }

  void share(std::size_t number, const Change& change, Metadata metadata, std::vector<State>& states) const {
    const std::size_t root = number % states.size();
    std::vector<std::int64_t> starts;
    for (State& state : states) { starts.push_back(launch(state, reduces_ ? "nccl:reduce" : "nccl:broadcast")); }
    const std::int64_t latest = *std::max_element(starts.begin(), starts.end());
    const std::int64_t wire = scaled(shared_wire_[number], change.comm);
    for (std::size_t stage = 0; stage < states.size(); ++stage) {
      std::int64_t from = starts[stage];
      if (reduces_ && stage == root) { from = latest; }
      if (!reduces_) { from = std::max(from, starts[root]); }
      kernel(states[stage], reduces_ ? "ncclDevKernel_Reduce_Sum_f32" : "ncclDevKernel_Broadcast_RING_LL",
             states[stage].correlation, starts[stage], from + wire,
             record(metadata, reduces_ ? "reduce" : "broadcast",
                    fmt::format(R"(,"Rank":{},"Seq":{})", root, 1000 + number)));
    }
  }

  [[nodiscard]] std::vector<State> run(const Change& change, Metadata metadata) const {
    std::vector<State> states(stages());
    for (std::size_t number = 0; number < compute_.size(); ++number) {
      std::vector<std::int64_t> begins;
      for (const State& state : states) { begins.push_back(state.host); }
      step(number, change, metadata, states);
      for (std::size_t stage = 0; stage < states.size(); ++stage) {
        event(states[stage], "user_annotation", fmt::format("ProfilerStep#{}", number), false, begins[stage],
              states[stage].host - begins[stage], "");
      }
    }
    return states;
  }

  bool reduces_;
  std::vector<std::int64_t> shared_wire_;                          // [step]
  std::vector<std::vector<std::int64_t>> compute_, wires_, host_;  // [step][stage]
};

struct Imported {
  std::vector<Profile> profiles;
  JobPlan job;
  std::vector<graph::Graph> graphs;
};

Result<Imported> imported(const std::vector<std::string>& texts) {
  Imported made;
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    ORRERY_TRY(profile, read_kineto_bytes(texts[rank], fmt::format("rank{}.json", rank)));
    made.profiles.push_back(std::move(profile));
  }
  std::vector<const Profile*> all;
  for (const Profile& profile : made.profiles) { all.push_back(&profile); }
  ORRERY_TRY(job, job_plan(all));
  made.job = std::move(job);
  for (std::size_t rank = 0; rank < made.job.ranks.size(); ++rank) {
    ORRERY_TRY(graph, graph_of(made.job, rank));
    made.graphs.push_back(std::move(graph));
  }
  return made;
}

Result<Replay> replayed(const Imported& made, const ReplayChange& change) {
  ORRERY_TRY(job, ReplayJob::of(made.graphs));
  return job.run(change);
}

// Within 0.1 % of the truth: lags that nothing shows when recorded are medians.
void expect_ends(const Imported& made, const Pipeline& truth, const Change& change) {
  ReplayChange changes;
  changes.compute = change.compute;
  changes.comm = change.comm;
  const auto replay = replayed(made, changes);
  ASSERT_TRUE(replay) << replay.error().text();
  const auto ends = truth.ends(change);
  ASSERT_EQ(replay->ranks.size(), ends.size());
  for (std::size_t rank = 0; rank < ends.size(); ++rank) {
    const auto want = static_cast<double>(ends[rank]);
    EXPECT_NEAR(static_cast<double>(replay->ranks[rank].device_end_ns), want, 0.001 * want)
        << "rank " << rank << " compute x" << change.compute << " comm x" << change.comm;
  }
}

class Pipelines : public ::testing::TestWithParam<unsigned> {};
INSTANTIATE_TEST_SUITE_P(Seeds, Pipelines, ::testing::Range(0U, 8U));

TEST_P(Pipelines, messages_and_broadcasts_follow_every_change) {
  for (const bool reduces : {false, true}) {
    const Pipeline truth(2 + static_cast<int>(GetParam() % 2), 4, GetParam(), reduces);
    for (const Metadata metadata : {Metadata::kernels, Metadata::names}) {
      if (metadata == Metadata::names && reduces) { continue; }  // see a_root_that_no_file_names_is_guessed
      const auto made = imported(truth.profiles(metadata));
      ASSERT_TRUE(made) << made.error().text();
      expect_ends(*made, truth, {1, 1});
      if (metadata == Metadata::names) { continue; }
      for (const double factor : {0.5, 2.0, 4.0}) {
        expect_ends(*made, truth, {factor, 1});
        expect_ends(*made, truth, {1, factor});
      }
    }
  }
}

// A message waits for both of its ends, and the wire is what is left: the sums over members are the recorded durations.
TEST_P(Pipelines, waiting_and_wire_of_messages_are_told_apart) {
  const Pipeline truth(3, 4, GetParam());
  for (const Metadata metadata : {Metadata::kernels, Metadata::names}) {
    const auto made = imported(truth.profiles(metadata));
    ASSERT_TRUE(made) << made.error().text();
    std::size_t messages = 0;
    for (const CollectiveInstance& one : made->job.collectives) {
      if (one.kind != "send_recv") { continue; }
      ++messages;
      ASSERT_EQ(one.members.size(), 2U);
      EXPECT_EQ(one.members[0].wire_ns, one.members[1].wire_ns);
      EXPECT_EQ(std::min(one.members[0].waiting_ns, one.members[1].waiting_ns), 0);
      EXPECT_EQ(one.guessed, metadata == Metadata::names);
    }
    EXPECT_EQ(messages, 8U);  // 4 steps, two pairs of neighbours
  }
}

TEST_P(Pipelines, a_root_that_no_file_names_is_guessed) {
  const auto made = imported(Pipeline(3, 4, GetParam()).profiles(Metadata::names));
  ASSERT_TRUE(made) << made.error().text();
  for (const CollectiveInstance& one : made->job.collectives) {
    if (one.kind != "broadcast") { continue; }
    EXPECT_TRUE(one.guessed_root);
    ASSERT_TRUE(one.one_sided);
    EXPECT_EQ(one.members.size(), 3U);
  }
}

TEST(Messages, without_a_partner_keep_their_recorded_time) {
  auto texts = Pipeline(2, 2, 1).profiles(Metadata::kernels);
  // Rank 1 receives one message less in step 1.
  for (const std::string what : {"\"Collective name\":\"recv\"", "\"name\":\"nccl:recv 1<-0\""}) {
    const std::size_t at = texts[1].rfind(what);
    ASSERT_NE(at, std::string::npos);
    texts[1].replace(at, what.size(), what.substr(0, what.find(':')) + ":\"none\"");
  }
  const auto made = imported(texts);
  ASSERT_TRUE(made) << made.error().text();
  std::size_t alone = 0;
  for (const CollectiveInstance& one : made->job.collectives) { alone += one.alone ? 1 : 0; }
  EXPECT_EQ(alone, 2U);  // the message that was sent, and the kernel that is no receive any more
  EXPECT_THAT(made->job.notes,
              ::testing::Contains("rank 0: sends 1 messages to rank 1 in step 1, which receives 0: they keep their "
                                  "recorded time"));
}

TEST(Messages, that_are_received_before_they_are_sent_keep_their_recorded_time) {
  CollectiveEntry sender, receiver;
  sender.start = 500'000;
  sender.end = 600'000;
  receiver.start = 0;
  receiver.end = 400'000;
  EXPECT_FALSE(message_members(sender, receiver, 20'000));
  receiver.end = 490'000;  // within the tolerance of clocks
  const auto members = message_members(sender, receiver, 20'000);
  ASSERT_TRUE(members);
  EXPECT_EQ((*members)[1].wire_ns, 0);
}

TEST(Messages, a_sender_that_ends_before_its_receiver_starts_does_not_wait) {
  CollectiveEntry sender, receiver;
  sender.end = 100'000;
  receiver.start = 300'000;
  receiver.end = 450'000;
  const auto members = message_members(sender, receiver, 20'000);
  ASSERT_TRUE(members);
  EXPECT_EQ((*members)[0].waits_for, (std::vector<std::size_t>{0}));
  EXPECT_EQ((*members)[0].wire_ns, 100'000);
  EXPECT_EQ((*members)[1].wire_ns, 150'000);
}

TEST(Roots, are_possible_where_nobody_ends_before_what_it_waits_for) {
  std::vector<CollectiveEntry> entries(3);
  const std::pair<std::int64_t, std::int64_t> times[] = {{0, 100}, {200, 300}, {210, 310}};
  Entries all;
  for (std::size_t i = 0; i < 3; ++i) {
    std::tie(entries[i].start, entries[i].end) = times[i];
    all.push_back(&entries[i]);
  }
  EXPECT_EQ(possible_roots(all, Direction::from_root, 0), (std::vector<std::size_t>{0}));
  EXPECT_EQ(possible_roots(all, Direction::to_root, 0), (std::vector<std::size_t>{1, 2}));
  EXPECT_EQ(likely_root(all, Direction::to_root, {1, 2}), 2U);
}

TEST(Job, a_root_that_starts_after_another_rank_ended_is_refused_with_its_rank) {
  auto texts = Pipeline(2, 2, 1).profiles(Metadata::kernels);
  const auto replace = [](std::string& text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
  };
  // Rank 0 is the root of both broadcasts, and those of rank 1 change places.
  for (std::string& text : texts) { replace(text, ",\"Rank\":1,", ",\"Rank\":0,"); }
  replace(texts[1], "\"Seq\":1000}", "\"Seq\":9999}");
  replace(texts[1], "\"Seq\":1001}", "\"Seq\":1000}");
  replace(texts[1], "\"Seq\":9999}", "\"Seq\":1001}");
  const auto made = imported(texts);
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().text(), ::testing::HasSubstr("rank 0: it is the root of broadcast number"));
}

}  // namespace orrery::profile::one_sided_test
