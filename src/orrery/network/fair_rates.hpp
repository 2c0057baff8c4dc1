// Weighted max-min fair rates of flows on shared links.
//
// Given: links l with bandwidth B_l (bytes/s), flows f with a route (links; one that is listed twice is used twice) and
// a weight w_f. Computed: the rates r_f with sum of r_f over the uses of l <= B_l such that every flow has a
// bottleneck: a link that is full, and on which no flow has a larger r / w. These rates exist and are unique (D.
// Bertsekas, R. Gallager, Data Networks, 2nd ed. 1992, section 6.5.2), so that condition is a certificate of a
// solution.
//
// Full solution: progressive filling. The link with the least rest / weight of its open flows fixes these flows; a heap
// has a lower bound of that quotient for each link, which only grows. O(E log L) for E uses of L links.
// Local repair: after flows have started or ended, only the flows without a valid bottleneck are solved again, with the
// rates of all others fixed, until every flow has one. The cost depends on how far a change spreads: with ring
// neighbours to a few flows, with random traffic to a third of all. So a repair stops once it has cost 3/4 of a full
// solution, and after k failures in a row the next 2^k - 1 updates (63 at most) are full at once. Costs are counted in
// uses of links, not in seconds: the same input gives the same rates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace orrery::network {

class FairRates {
 public:
  enum class Method : std::uint8_t { automatic, full, local };

  explicit FairRates(std::vector<double> bandwidths, Method method = Method::automatic);

  // The number of a new flow, that of an ended one if possible. The route is not empty, the weight is positive.
  [[nodiscard]] std::uint32_t add(std::span<const std::uint32_t> route, double weight = 1.0);
  void remove(std::uint32_t flow);
  void set_bandwidth(std::uint32_t link, double bandwidth);  // positive

  // Finds the rates after all changes of an instant. changed(flow, rate) is called once for every flow that is new or
  // whose rate differs from before.
  template <class Changed>
  void settle(Changed&& changed) {
    find_rates();
    for (const std::uint32_t flow : solved_) {
      Flow& one = flows_[flow];
      if (one.next == one.rate && !one.is_new) { continue; }
      one.rate = one.next;
      one.is_new = false;
      changed(flow, one.rate);
    }
    solved_.clear();
  }

  [[nodiscard]] double rate(std::uint32_t flow) const { return flows_[flow].rate; }
  [[nodiscard]] double bandwidth(std::uint32_t link) const { return links_[link].bandwidth; }
  [[nodiscard]] std::size_t flow_count() const { return live_; }
  // One more than the largest number of a flow so far.
  [[nodiscard]] std::size_t flow_limit() const { return flows_.size(); }

  // A flow without a bottleneck, to a relative tolerance. After settle() there is none. O(uses).
  [[nodiscard]] std::optional<std::uint32_t> uncertified(double tolerance = 1e-9) const;

  struct Counts {
    std::uint64_t full = 0, repairs = 0,
                  abandoned = 0;  // updates; repairs that were stopped and followed by a full one
    std::uint64_t work = 0;       // uses of links that were visited
  };
  [[nodiscard]] const Counts& counts() const { return counts_; }

 private:
  struct Flow {
    std::uint32_t first = 0, length = 0;  // of entries_
    double weight = 1.0;
    double rate = 0.0;
    double next = 0.0;             // during settle
    std::uint32_t bottleneck = 0;  // link
    bool is_live = false, is_new = false;
    bool is_open = false;    // in the set that is solved, rate not yet known
    bool is_member = false;  // of the set of a repair
  };
  struct Entry {                        // one use of a link by a flow
    std::uint32_t link = 0, place = 0;  // in Link::uses
  };
  struct Use {
    std::uint32_t flow = 0, entry = 0;  // in entries_
  };
  struct Link {
    double bandwidth = 0.0;
    double rest = 0.0;     // while filling: bandwidth that is left
    double weight = 0.0;   // while filling: sum over open uses
    double checked = 0.0;  // the weight when it was last summed up
    std::uint32_t open = 0;
    bool is_listed = false, is_dirty = false;
    std::vector<Use> uses;
    std::vector<std::uint32_t> members;  // of a repair: flows that are solved again
  };
  struct Bound {
    double share = 0.0;
    std::uint32_t link = 0;
  };
  struct Load {
    bool is_full = false;
    double top = 0.0;  // the largest rate / weight
  };

  void mark(std::uint32_t link);
  void find_rates();
  void solve_fully();
  [[nodiscard]] bool repair(std::uint64_t budget);
  void fill(bool members_only);
  void fix(std::uint32_t flow, std::uint32_t link, double level, bool members_only);
  [[nodiscard]] bool fix_all(std::uint32_t link, double level, bool members_only);
  void sum_weights(Link& link, bool members_only) const;
  void join(std::uint32_t flow);
  void list(std::uint32_t link);
  void open_members();
  [[nodiscard]] double rate_in_repair(const Flow& flow) const { return flow.is_member ? flow.next : flow.rate; }
  [[nodiscard]] Load load_of(const Link& link) const;
  [[nodiscard]] bool is_bottleneck(const Flow& flow, std::uint32_t link) const;
  [[nodiscard]] bool find_bottleneck(Flow& flow) const;
  void collect_violations();
  void end_repair();

  std::vector<Link> links_;
  std::vector<Flow> flows_;
  std::vector<Entry> entries_;
  std::vector<std::vector<std::uint32_t>> free_;  // ended flows by the length of their route
  std::vector<std::uint32_t> dirty_, started_;
  std::vector<std::uint32_t> solved_;  // flows whose `next` was found
  std::vector<std::uint32_t> listed_;  // links that take part in the filling
  std::vector<std::uint32_t> members_, violated_;
  std::vector<Load> loads_;  // by link; of listed ones in a repair
  std::vector<Bound> heap_;
  Method method_;
  std::size_t live_ = 0, uses_ = 0;
  unsigned failures_ = 0, skipped_ = 0;
  Counts counts_;
};

}  // namespace orrery::network
