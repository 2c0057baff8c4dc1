// Prices of compute, cached by slice: thousands of plans of a search share one slice.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "orrery/estimate/priced.hpp"
#include "orrery/parallel/lower_parts.hpp"
#include "orrery/parallel/mesh.hpp"

namespace orrery::estimate {

// Time of one micro-batch in a part of the model, without data-parallel communication.
struct PartTime {
  Seconds forward, backward, weight;
  Seconds kernels;  // included above
  Seconds calls;    // of collectives, exposed or not

  PartTime& operator+=(const PartTime& other) {
    forward += other.forward;
    backward += other.backward;
    weight += other.weight;
    kernels += other.kernels;
    calls += other.calls;
    return *this;
  }
  PartTime& operator-=(const PartTime& other) {
    forward -= other.forward;
    backward -= other.backward;
    weight -= other.weight;
    kernels -= other.kernels;
    calls -= other.calls;
    return *this;
  }
  friend PartTime operator*(double count, const PartTime& part) {
    return {count * part.forward, count * part.backward, count * part.weight, count * part.kernels, count * part.calls};
  }
};

struct WorkPrice {
  std::vector<Cost> blocks;  // [block of the slice]
  // [block of the slice] as far as plans have needed them: filled by StepSolver. Empty before.
  std::vector<std::optional<PortUses>> port_uses;
  PartTime embedding, head;  // with the vision tower, and with the MTP modules
  // [layer]: sum over the layers before it; one entry more than layers. A lower bound: if a chunk recomputes only some
  // layers, all count as not recomputed.
  std::vector<PartTime> layers_before;
};

class WorkPrices {
 public:
  WorkPrices(const workload::Model& model, network::PriceCache& collectives)
      : model_(model), collectives_(collectives) {}

  // Price of a plan's slice on its groups. Valid until forget(); call forget() before the slice is freed.
  [[nodiscard]] WorkPrice& of(const parallel::LoweredSlice& slice, const parallel::Plan& plan);

  [[nodiscard]] std::size_t kept() const { return prices_.size(); }
  void forget() { prices_.clear(); }

 private:
  struct Key {
    const parallel::LoweredSlice* slice;
    parallel::SliceGroups groups;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  [[nodiscard]] WorkPrice priced(const parallel::LoweredSlice& slice, const parallel::SliceGroups& groups);

  const workload::Model& model_;
  network::PriceCache& collectives_;
  std::unordered_map<Key, WorkPrice, Hash> prices_;
};

}  // namespace orrery::estimate
