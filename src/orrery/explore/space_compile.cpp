#include "orrery/explore/space_compile.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "orrery/core/text.hpp"
#include "orrery/parallel/names.hpp"

namespace orrery::explore {

using parallel::Plan;

namespace {

// The value that a flag sets for an axis, as a value of that axis.
std::optional<std::int64_t> flag_value(const parallel::PartialPlan& fixed, Axis axis) {
  const auto as = [](std::optional<std::int64_t> value, std::int64_t zero, std::int64_t positive) {
    return value ? std::optional(*value > 0 ? positive : zero) : std::nullopt;
  };
  if (axis == kOptimizerSharding) { return as(parallel::fixed_value(Axis::zero, fixed), 0, 1); }
  if (axis == kTpComm) {
    return as(parallel::fixed_value(Axis::sequence_parallel, fixed), kAllReduce, kReduceScatterAllGather);
  }
  return is_field(axis) ? parallel::fixed_value(axis, fixed) : std::nullopt;
}

class Compiler {
 public:
  explicit Compiler(const SpaceSource& source) : source_(source) {}

  Result<CompiledSpace> run() {
    space_.model = source_.model;
    space_.job = source_.job;
    space_.cluster = source_.cluster;
    space_.count_invalid = source_.file.count_invalid;
    if (space_.job.seq == 0) { space_.job.seq = space_.model.max_seq; }
    if (space_.job.global_batch == 0) { space_.max_batch = source_.file.max_batch; }
    if (space_.job.global_batch < 1 && !space_.max_batch) {
      return fail("no batch is given: the global batch, or max_batch in the space file, is required");
    }
    set_base();
    set_facts();
    make_levels();
    separate_counted_axes();
    if (auto order = arrange(); !order) { return tl::make_unexpected(std::move(order).error()); }
    connect();
    return std::move(space_);
  }

 private:
  [[nodiscard]] bool is_written(Axis axis) const {
    return std::any_of(source_.file.axes.begin(), source_.file.axes.end(),
                       [&](const WrittenAxis& one) { return one.axis == axis; });
  }
  // Neither given by a flag nor an axis of the file.
  [[nodiscard]] bool is_open(Axis axis) const { return !is_written(axis) && !flag_value(source_.fixed, axis); }

  // Choices that are not axes: the value of the flag, or the default of `orrery estimate`. Degrees and what depends on
  // them are levels.
  void set_base() {
    const parallel::PartialPlan& fixed = source_.fixed;
    Plan& plan = space_.base;
    plan = parallel::whole_plan(fixed);
    plan.tp = plan.cp = plan.pp = plan.dp = 1;
    plan.cp_method = Plan{}.cp_method;
    if (!fixed.zero) { plan.zero = space_.job.is_inference() ? 0 : 1; }
    if (!fixed.dp_overlap) { plan.dp_overlap = source_.dp_overlap; }
    if (!space_.model.is_recommender()) { plan.tables = {}; }
    if (space_.model.is_recommender() && !flag_value(fixed, Axis::table_sharding)) {
      plan.tables.sharding = workload::TableSharding::table;
    }
    space_.dp = fixed.dp;
    space_.pins = plan.placement.any();
    space_.follows_schedule = is_open(Axis::schedule);
    space_.follows_sequence = is_open(Axis::sequence_parallel) && is_open(kTpComm);
    space_.follows_etp = is_open(Axis::etp);
    space_.follows_tables = space_.model.is_recommender() && is_open(Axis::table_sharding);
    space_.refused = !parallel::is_valid(space_.cluster, plan);
    const auto& tier = space_.cluster.second_tier;
    space_.has_second_tier = tier.memory > Bytes(0) && tier.bandwidth > BytesPerSecond(0);
    space_.pool_combines = space_.has_second_tier && tier.combines();
    space_.validity_varies = plan.shard > 0 || is_written(Axis::shard) || has_inner_needs();
  }

  // Whether members of a family may differ in a choice that has requirements on others: then some members may be
  // invalid.
  [[nodiscard]] bool has_inner_needs() const {
    for (const parallel::PlanChoice& choice : parallel::plan_choices()) {
      const Axis axis = choice.parts.front().field;
      const bool may_fail = choice.is_met != nullptr && choice.parts.front().inner;
      if (may_fail && !is_open(axis)) { return true; }
    }
    return false;
  }

  void set_facts() {
    const auto set = [&](Fact fact, std::int64_t value) { space_.slots[slot_of(fact)] = value; };
    const workload::Model& model = space_.model;
    set(Fact::devices, space_.cluster.devices);
    set(Fact::node_size, space_.cluster.node_size());
    set(Fact::hidden, model.hidden);
    set(Fact::heads, model.heads);
    set(Fact::kv_heads, model.kv_heads);
    set(Fact::layers, model.depth());
    set(Fact::experts, model.has_experts() ? model.experts.count : 1);
    set(Fact::tables, model.is_recommender() ? model.recommender.table_count() : 0);
    set(Fact::seq, space_.job.seq);
    set(Fact::batch, space_.job.global_batch);
    set(Fact::max_batch, space_.max_batch.value_or(space_.job.global_batch));
    for (const Axis axis : {Axis::tp, Axis::cp, Axis::pp, Axis::ep, Axis::vpp, Axis::micro_batch}) {
      space_.slots[slot_of(axis)] = flag_value(source_.fixed, axis).value_or(1);
    }
  }

  // Levels are the axes of the file, preceded by degrees that the file omits and by flags whose value must divide
  // something.
  void make_levels() {
    for (const Axis axis : {Axis::tp, Axis::cp, Axis::pp}) { add_unwritten(axis, 1); }
    for (const Axis axis : {Axis::ep, Axis::etp, Axis::vpp, Axis::micro_batch, Axis::cp_method}) {
      if (flag_value(source_.fixed, axis)) { add_unwritten(axis, 1); }
    }
    for (const WrittenAxis& written : source_.file.axes) {
      Level level;
      level.axis = written.axis;
      level.rule = &rule_of(level.axis);
      level.values = written.values;
      level.place = written.place;
      level.order = space_.names.size();
      for (const AllowedValues& one : source_.file.allowed) {
        if (one.axis == level.axis) { level.allowed = one.values; }
      }
      set_flag(level);
      if (level.fixed) { level.values = {}; }
      if (is_in(kWithoutEffect, level.axis)) { space_.without_effect.emplace_back(axis_name(level.axis)); }
      space_.names.emplace_back(axis_name(level.axis));
      open_.push_back(std::move(level));
    }
  }

  void add_unwritten(Axis axis, std::int64_t value) {
    if (is_written(axis)) { return; }
    Level level;
    level.axis = axis;
    level.rule = &rule_of(axis);
    level.fixed = value;
    set_flag(level);
    open_.push_back(std::move(level));
  }

  void set_flag(Level& level) const {
    if (const auto value = flag_value(source_.fixed, level.axis)) {
      level.fixed = value;
      level.by_flag = true;
    }
  }

  // The axes that a level's expressions read, directly or through facts.
  [[nodiscard]] SlotMask read_by_text(const Level& level) const {
    const SlotMask used = level.values.uses();
    const bool reads_batch = space_.max_batch && (used & mask_of(slot_of(Fact::batch))) != 0;
    const bool reads_dp = (used & mask_of(slot_of(Fact::dp))) != 0;
    return (used | (reads_batch || reads_dp ? kDegrees : 0)) & ~mask_of(slot_of(level.axis));
  }
  [[nodiscard]] SlotMask needs(const Level& level) const { return read_by_text(level) | level.rule->needs; }

  // An axis without effect that no other axis reads is not walked: its values are counted with the last level it
  // depends on.
  void separate_counted_axes() {
    const auto is_counted = [&](const Level& level) {
      return is_in(kWithoutEffect, level.axis) && std::none_of(open_.begin(), open_.end(), [&](const Level& other) {
               return is_in(read_by_text(other), level.axis);
             });
    };
    const auto counted =
        std::stable_partition(open_.begin(), open_.end(), [&](const Level& l) { return !is_counted(l); });
    counted_.assign(std::make_move_iterator(counted), std::make_move_iterator(open_.end()));
    open_.erase(counted, open_.end());
  }

  // Order of the walk: levels that families share, then tiers of groups (which rule out most points), then the rest;
  // each in the order written, but after the levels that it needs.
  [[nodiscard]] tl::expected<void, Failure> arrange() {
    const SlotMask inner = inner_axes();
    const auto is_shared = [&](const Level& level) { return !is_in(inner, level.axis); };
    const auto places = [&](const Level& level) { return is_in(inner & kTiers, level.axis); };
    if (!pick(is_shared)) { return cycle_error(); }
    space_.outer = space_.levels.size();
    if (!pick(places)) { return cycle_error(); }
    if (!pick([](const Level&) { return true; })) { return cycle_error(); }
    for (std::size_t i = 0; i < space_.levels.size(); ++i) {
      if (!is_in(kTiers, space_.levels[i].axis)) { continue; }
      space_.pins = true;
      space_.placed = i + 1;
    }
    space_.placed = std::max(space_.placed, space_.outer);
    return {};
  }

  // Whether pinning one group may change the placement of another one that layers use (tp, cp, experts), which a bound
  // depends on. A pinned tp group does not move.
  [[nodiscard]] bool slices_follow_tiers() const {
    const bool has_contexts = is_written(Axis::cp) || flag_value(source_.fixed, Axis::cp).value_or(1) > 1;
    return is_open(Axis::tier_tp) || has_contexts || space_.model.has_experts();
  }

  // Axes in which members of a family differ, except those that shared axes need.
  [[nodiscard]] SlotMask inner_axes() const {
    SlotMask inner = 0;
    for (const Level& level : open_) { inner |= level.rule->inner ? mask_of(slot_of(level.axis)) : 0; }
    if (slices_follow_tiers()) { inner &= ~kTiers; }
    for (SlotMask before = 0; before != inner;) {
      before = inner;
      for (const Level& level : open_) {
        if (!is_in(inner, level.axis)) { inner &= ~needs(level); }
      }
    }
    return inner;
  }

  // Appends the levels for which `sort` is true; false if some depend on each other in a cycle.
  template <class Sort>
  bool pick(Sort sort) {
    while (true) {
      SlotMask waiting = 0;
      for (const Level& level : open_) { waiting |= mask_of(slot_of(level.axis)); }
      const auto next = std::find_if(open_.begin(), open_.end(), [&](const Level& level) {
        return sort(level) && (needs(level) & waiting & ~mask_of(slot_of(level.axis))) == 0;
      });
      if (next == open_.end()) { return std::none_of(open_.begin(), open_.end(), sort) || !has_cycle(sort, waiting); }
      space_.levels.push_back(std::move(*next));
      open_.erase(next);
    }
  }

  // Tiers that depend on an axis of the rest are appended with the rest; that is not a cycle.
  template <class Sort>
  [[nodiscard]] bool has_cycle(Sort sort, SlotMask waiting) const {
    return std::none_of(open_.begin(), open_.end(), [&](const Level& level) {
      return !sort(level) && (needs(level) & waiting & ~mask_of(slot_of(level.axis))) == 0;
    });
  }

  [[nodiscard]] tl::unexpected<Failure> cycle_error() const {
    std::vector<std::string> names;
    for (const Level& level : open_) { names.emplace_back(axis_name(level.axis)); }
    return fail(open_.front().place,
                fmt::format("the values of {} depend on each other in a cycle: an axis may need degrees and other axes "
                            "even if its expression does not name them",
                            join(names, ", ")));
  }

  // Sets which levels read which.
  void connect() {
    SlotMask walked = 0;
    std::size_t last_degree = 0;
    for (std::size_t i = 0; i < space_.levels.size(); ++i) {
      Level& level = space_.levels[i];
      const Axis partner = level.axis == Axis::ep ? Axis::etp : Axis::ep;
      level.reads = needs(level);
      if (level.axis == Axis::ep || level.axis == Axis::etp) { level.reads |= walked & mask_of(slot_of(partner)); }
      if (is_in(kDegrees, level.axis)) {
        level.degrees_before = walked & kDegrees;
        level.reads |= level.degrees_before;
        last_degree = i;
      }
      walked |= mask_of(slot_of(level.axis));
    }
    space_.levels[last_degree].ends_degrees = true;
    for (Level& counted : counted_) { attach(std::move(counted)); }
    for (std::size_t i = 0; i < space_.levels.size(); ++i) { note_readers(i); }
  }

  // Attaches an axis without effect to the last level that it reads, or to the first level.
  void attach(Level counted) {
    counted.reads = needs(counted);
    std::size_t to = 0;
    for (std::size_t i = 0; i < space_.levels.size(); ++i) {
      if (is_in(counted.reads, space_.levels[i].axis)) { to = i; }
    }
    Level& level = space_.levels[to];
    level.reads |= counted.reads & ~mask_of(slot_of(level.axis));
    level.counted.push_back(std::move(counted));
  }

  void note_readers(std::size_t i) {
    Level& level = space_.levels[i];
    bool is_distinguished = false;  // another axis reads which of several values with the same effect was chosen
    for (std::size_t j = 0; j < space_.levels.size(); ++j) {
      const Level& other = space_.levels[j];
      if (j == i) { continue; }
      if (j > i && is_in(other.reads, level.axis)) { level.readers |= LevelMask{1} << j; }
      is_distinguished |= is_in(read_by_text(other), level.axis);
      for (const Level& counted : other.counted) { is_distinguished |= is_in(counted.reads, level.axis); }
    }
    level.merges = !is_distinguished && level.rule->merges;
  }

  const SpaceSource& source_;
  CompiledSpace space_;
  std::vector<Level> open_, counted_;  // not yet in the walk
};

}  // namespace

Result<CompiledSpace> compile(const SpaceSource& source) { return Compiler(source).run(); }

}  // namespace orrery::explore
