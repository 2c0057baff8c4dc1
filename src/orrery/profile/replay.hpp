// Runs imported graphs: what would have happened with other durations. A node starts when everything that it depends on
// has ended (and its lag has passed); a collective is on the wire from the start of the last member it waits for.
//
//   start(n) = max over parents p of end(p) + lag(n, p)          end(n) = start(n) + duration(n)
//   a collective:  end(member) = max over members that it waits for start + wire(member)
//
// Members of all-reduces, gathers and all-to-alls wait for all members; of a broadcast, the others wait for the root;
// of a reduction to one rank, the root waits for the others; a message waits for its sender and its receiver.
//
// No resource is contended here: streams and threads are chains of the graph. Linear in nodes and dependencies.
//
// Not modelled: work that a changed machine would order differently; kernels that slow each other; the host's time on
// another processor.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "orrery/core/error.hpp"
#include "orrery/graph/graph.hpp"
#include "orrery/profile/kernel_class.hpp"
#include "orrery/profile/kernel_shape.hpp"

namespace orrery::profile {

struct Lateness {
  std::uint64_t rank = 0;
  std::int64_t ns = 0;
  std::optional<std::uint64_t> step;  // at its start; else at the start of the rank
};

// Device operations of a class, or whose name has a text; of several that apply, the factors are multiplied.
struct KernelFactor {
  std::optional<KernelClass> kind;  // else by name
  std::string text;                 // part of the name of the kernel
  double factor = 1;
};

struct ReplayChange {
  double compute = 1;                 // factor of the durations of kernels, copies and memsets on the device
  std::vector<KernelFactor> kernels;  // in addition to `compute`
  double comm = 1;                    // factor of the time of collectives on the wire
  std::vector<Lateness> late;
  bool common_start = false;  // all ranks start at the same time
};

struct ReplayStep {
  std::uint64_t rank = 0, step = 0;
  std::int64_t duration_ns = 0;  // of the host's ProfilerStep
  std::int64_t recorded_ns = 0;
};

struct ReplayCollective {
  std::string group, kind;
  std::string called;  // kind of the call, where the kernel does not say it
  std::uint64_t number = 0;
  std::vector<std::uint64_t> members;
  std::uint64_t group_size = 0;
  std::uint64_t bytes = 0;      // comm_size of the graph
  std::int64_t wire_ns = 0;     // of the member that is on the wire longest
  std::int64_t waiting_ns = 0;  // of all members together
  bool alone = false;           // only one member has a file: its time contains waiting
};

// A kind of device operation of the recorded job (not collectives): all with one name under one operator with one
// shape.
struct ReplayKernel {
  std::string name, operation;
  KernelClass kind = KernelClass::other;
  std::optional<WorkShape> shape;  // of the operator's inputs, where recorded
  std::uint64_t count = 0;
  std::int64_t time_ns = 0;  // of all together
};

struct ReplayRank {
  std::uint64_t rank = 0;
  std::int64_t host_ns = 0, recorded_host_ns = 0;              // from the first to the last event of the host
  std::int64_t device_end_ns = 0, recorded_device_end_ns = 0;  // from the first event of the host
  std::int64_t start_off_median_ns = 0, start_off_p95_ns = 0;  // of device operations, against the record
  std::int64_t unexplained_ns = 0;  // idle time that is kept as recorded because nothing explains it
};

// The chain of nodes and lags that ends last: all of its time, by what it is.
struct ReplayPath {
  std::int64_t host_ns = 0;           // segments and calls, and threads that wake each other
  std::int64_t compute_ns = 0;        // kernels, copies and memsets
  std::int64_t communication_ns = 0;  // collectives on the wire
  std::int64_t latency_ns = 0;        // launches, gaps between operations, returns of blocking calls
  std::int64_t unexplained_ns = 0;    // idle time that is kept as recorded
  std::uint64_t nodes = 0;
  std::uint64_t changes_of_rank = 0;  // collectives at which the path goes on with a rank that arrived later

  [[nodiscard]] std::int64_t time_ns() const {
    return host_ns + compute_ns + communication_ns + latency_ns + unexplained_ns;
  }
};

struct Replay {
  std::vector<ReplayRank> ranks;
  std::vector<ReplayStep> steps;
  std::vector<ReplayCollective> collectives;
  ReplayPath path;
  std::int64_t makespan_ns = 0;
  std::uint64_t nodes = 0;
};

// Graphs that were imported from profiles, ready to run with changes.
class ReplayJob {
 public:
  // Reads graphs node by node (replay_read.hpp).
  class Reader;

  // Fails for graphs that are not imported profiles, or not of one job.
  [[nodiscard]] static Result<ReplayJob> of(const std::vector<graph::Graph>& graphs);

  // Fails if a change names a rank or step that is not there, and if nodes wait for each other in a cycle.
  [[nodiscard]] Result<Replay> run(const ReplayChange& change) const;

  // Time that calls of the host were blocked for no known reason, of all ranks: it is kept as recorded.
  [[nodiscard]] std::int64_t blocked_without_cause_ns() const { return blocked_without_cause_ns_; }

  // Names of the devices that the job was recorded on, each once.
  [[nodiscard]] const std::vector<std::string>& devices() const { return devices_; }

  // Kinds of device operations, in the order of their first appearance.
  [[nodiscard]] const std::vector<ReplayKernel>& kernels() const { return kernels_; }

  // Multiplies the durations of each kind (by position in kernels()), for another machine.
  void scale_kernels(const std::vector<double>& factors);

  // Sets the time on the wire of each collective (by position in Replay::collectives), for another machine.
  void set_wire_times(const std::vector<std::optional<std::int64_t>>& wire_ns);

 private:
  struct Node {
    std::int64_t duration = 0, recorded_start = 0;
    std::int64_t unexplained = 0;  // part of a lag
    std::uint32_t deps_begin = 0;
    std::uint32_t collective = kNo;
    std::uint32_t step = kNo;    // position in steps_ of one that begins here
    std::uint32_t kernel = kNo;  // position in kernels_ of device operations that do not communicate
    bool on_device = false;
    bool communicates = false;
  };
  struct Dep {
    std::uint32_t node = 0;
    std::int64_t lag = 0;
  };
  struct Step {
    std::size_t rank = 0;
    std::uint64_t number = 0;
    std::uint32_t begin = kNo, end = kNo;
  };
  struct Member {
    std::uint32_t node = 0;
    std::int64_t wire = 0;
    std::vector<std::uint32_t> waits_for;  // positions of members, its own included; only if one_sided
  };
  struct Collective {
    ReplayCollective about;
    std::vector<Member> members;
    bool one_sided = false;  // not every member waits for every other
  };
  struct Rank {
    std::uint64_t number = 0;
    std::uint32_t first = 0, last = 0;                          // nodes
    std::int64_t host_start = 0, host_end = 0, device_end = 0;  // recorded
    std::int64_t unexplained = 0;
  };
  class Run;

  static constexpr std::uint32_t kNo = static_cast<std::uint32_t>(-1);

  std::vector<Node> nodes_;
  std::vector<Dep> deps_;
  std::vector<Step> steps_;
  std::vector<Collective> collectives_;
  std::vector<Rank> ranks_;
  std::vector<ReplayKernel> kernels_;
  std::vector<std::string> devices_;
  std::int64_t blocked_without_cause_ns_ = 0;
};

// Whether a graph was imported from a profile.
[[nodiscard]] bool is_imported_profile(const graph::Metadata& metadata);

}  // namespace orrery::profile
