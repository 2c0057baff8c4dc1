#include "orrery/simulate/physical_schedule.hpp"

#include <algorithm>
#include <numeric>

namespace orrery::simulate {

using network::MemberSchedule;

namespace {

std::uint64_t ceil_share(std::uint64_t bytes, std::uint64_t parts) {
  return bytes / parts + (bytes % parts != 0 ? 1 : 0);
}

bool is_uniform(const MemberSchedule& schedule) {
  if (is_rooted(schedule.collective) || schedule.collective == Collective::barrier) { return false; }
  return schedule.algorithm == CollectiveAlgorithm::direct ||
         (schedule.algorithm == CollectiveAlgorithm::ring && schedule.collective != Collective::all_to_all);
}

// What member 0 sends tells what all send.
PhysicalStep step_of(const PhysicalPhase& phase, std::uint32_t step) {
  PhysicalStep made;
  made.is_uniform = is_uniform(phase.schedule);
  if (!made.is_uniform) { return made; }
  const network::StepMessage message = network::send(phase.schedule, 0, step, 0);
  made.messages = network::send_count(phase.schedule, 0, step);
  made.distance = message.peer;
  made.bytes = phase.block * message.count;
  made.reduces = message.reduces;
  return made;
}

class PhysicalPlanner {
 public:
  explicit PhysicalPlanner(const PhysicalRequest& request) : request_(request), size_(request.bytes) {
    plan_.participant_count = request.ranks;
  }

  Result<PhysicalSchedule> run() {
    const auto& extents = request_.extents;
    const std::size_t count = extents.size();
    switch (request_.collective) {
      case Collective::all_reduce: all_reduce(0); break;
      case Collective::all_gather:
      case Collective::broadcast:
      case Collective::scatter:
        for (std::size_t i = count; i-- > 0;) { add(extents[i], request_.collective); }
        break;
      case Collective::reduce_scatter:
      case Collective::all_to_all:
      case Collective::reduce:
      case Collective::gather:
      case Collective::barrier:
        for (const Extent& extent : extents) { add(extent, request_.collective); }
        break;
    }
    if (!refused_.empty()) { return fail(refused_); }
    for (const Extent& extent : extents) {
      plan_.algorithm += (plan_.algorithm.empty() ? "" : ",") + name_of(extent.algorithm);
    }
    return std::move(plan_);
  }

 private:
  // Reduce-scatter over the inner dimensions, all-reduce in the outermost one, then all-gather in reverse order. A
  // dimension whose algorithm has no reduce-scatter runs an all-reduce of the current part.
  void all_reduce(std::size_t i) {
    if (i >= request_.extents.size()) { return; }
    const Extent& extent = request_.extents[i];
    const bool scatters = network::refusal(member_schedule(extent, Collective::reduce_scatter)).empty();
    if (i + 1 == request_.extents.size() || !scatters) {
      add(extent, Collective::all_reduce);
      return all_reduce(i + 1);
    }
    const std::uint64_t whole = size_;
    add(extent, Collective::reduce_scatter);
    const std::uint64_t part = size_;
    all_reduce(i + 1);
    size_ = part;
    add(extent, Collective::all_gather);
    size_ = whole;
  }

  [[nodiscard]] MemberSchedule member_schedule(const Extent& extent, Collective collective) const {
    MemberSchedule schedule;
    schedule.collective = collective;
    schedule.algorithm = extent.algorithm.method;
    schedule.members = extent.members;
    schedule.window = extent.algorithm.window.value_or(0);
    schedule.root = request_.root / extent.stride % extent.members;
    return schedule;
  }

  void add(const Extent& extent, Collective collective) {
    PhysicalPhase phase;
    phase.schedule = member_schedule(extent, collective);
    if (std::string why = network::refusal(phase.schedule); !why.empty()) {
      if (refused_.empty()) { refused_ = std::move(why); }
      return;
    }
    phase.dimension = extent.dimension;
    phase.stride = extent.stride;
    phase.by_members = engine::Divisor(extent.members);
    phase.by_stride = engine::Divisor(extent.stride);
    phase.rooted = is_rooted(collective);
    phase.root_rest = request_.root % extent.stride;
    phase.first_step = plan_.step_count;
    phase.step_count = network::step_count(phase.schedule);
    const bool has_all = collective != Collective::all_gather && collective != Collective::gather;
    const std::uint32_t blocks = has_all ? network::block_count(phase.schedule) : 1;
    phase.block = collective == Collective::barrier ? 0 : ceil_share(size_, blocks);
    if (network::participant_count(phase.schedule) > extent.members) {
      phase.first_switch = plan_.participant_count;
      plan_.participant_count += request_.ranks / extent.members;
    }
    plan_.step_count += phase.step_count;
    for (std::uint32_t step = 0; step < phase.step_count; ++step) {
      plan_.steps.push_back(step_of(phase, step));
      plan_.steps.back().phase = static_cast<std::uint16_t>(plan_.phases.size());
    }
    plan_.phases.push_back(phase);
    if (collective == Collective::reduce_scatter || collective == Collective::scatter) { size_ = phase.block; }
    if (collective == Collective::all_gather || collective == Collective::gather) { size_ *= extent.members; }
  }

  const PhysicalRequest& request_;
  std::uint64_t size_;
  PhysicalSchedule plan_;
  std::string refused_;
};

}  // namespace

std::vector<Extent> extents_of(const Network& network, const std::vector<std::uint32_t>* ranks) {
  std::vector<Extent> extents;
  const std::uint32_t size = ranks == nullptr ? network.ranks() : static_cast<std::uint32_t>(ranks->size());
  std::vector<std::vector<std::uint32_t>> coordinates_of;  // by dimension: coordinates, in the order of the list
  std::uint32_t stride = 1, list_stride = 1;
  for (std::uint32_t i = 0; i < network.dimensions.size(); ++i) {
    const std::uint32_t n = network.dimensions[i].ranks;
    std::vector<std::uint32_t>& coordinates = coordinates_of.emplace_back();
    if (ranks == nullptr) {
      coordinates.resize(n);
      std::iota(coordinates.begin(), coordinates.end(), 0U);
    } else {
      std::vector<bool> is_in(n, false);
      for (const std::uint32_t rank : *ranks) { is_in[rank / stride % n] = true; }
      for (std::uint32_t c = 0; c < n; ++c) {
        if (is_in[c]) { coordinates.push_back(c); }
      }
    }
    const auto members = static_cast<std::uint32_t>(coordinates.size());
    if (members > 1) { extents.push_back({i, members, list_stride, {}}); }
    list_stride *= members;
    stride *= n;
  }
  if (ranks == nullptr) { return extents; }
  bool is_grid = list_stride == size;
  for (std::uint32_t position = 0; is_grid && position < size; ++position) {
    std::uint32_t left = position, rank = 0, scale = 1;
    for (std::size_t i = 0; i < coordinates_of.size(); ++i) {
      rank += coordinates_of[i][left % coordinates_of[i].size()] * scale;
      left /= static_cast<std::uint32_t>(coordinates_of[i].size());
      scale *= network.dimensions[i].ranks;
    }
    is_grid = (*ranks)[position] == rank;
  }
  if (is_grid) { return extents; }
  if (extents.empty()) { return {}; }
  return {{extents.front().dimension, size, 1, {}}};
}

std::uint32_t differing_dimensions(const Network& network, const std::vector<std::uint32_t>& ranks) {
  std::uint32_t count = 0, stride = 1;
  for (const NetworkDimension& dimension : network.dimensions) {
    const auto coordinate = [&](std::uint32_t rank) { return rank / stride % dimension.ranks; };
    const bool differ = std::any_of(ranks.begin(), ranks.end(),
                                    [&](std::uint32_t rank) { return coordinate(rank) != coordinate(ranks.front()); });
    count += differ ? 1 : 0;
    stride *= dimension.ranks;
  }
  return count;
}

Result<PhysicalSchedule> physical_schedule(const PhysicalRequest& request) { return PhysicalPlanner(request).run(); }

}  // namespace orrery::simulate
