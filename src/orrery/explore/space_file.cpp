#include "orrery/explore/space_file.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "orrery/core/text.hpp"
#include "orrery/estimate/request.hpp"

namespace orrery::explore {

using config::Kind;
using config::Node;

namespace {

constexpr auto kJobFields = std::to_array<std::string_view>({"model",
                                                             "cluster",
                                                             "devices",
                                                             "stack",
                                                             "semantics",
                                                             "task",
                                                             "global_batch",
                                                             "seq",
                                                             "precision",
                                                             "prompt",
                                                             "generate",
                                                             "batch",
                                                             "lora",
                                                             "lora_targets",
                                                             "gradient_precision",
                                                             "reduce_precision",
                                                             "bucket",
                                                             "weight_format",
                                                             "kv_format",
                                                             "attention_precision",
                                                             "quantized",
                                                             "reduce_every",
                                                             "optimizer",
                                                             "fp8_recipe",
                                                             "images",
                                                             "image_size"});
constexpr std::array<std::string_view, 3> kOwnKeys{"max_batch", "count_invalid", "axes"};

constexpr std::int64_t kLargestBatch = 1'000'000'000;

bool is_job_field(std::string_view key) {
  return std::find(kJobFields.begin(), kJobFields.end(), key) != kJobFields.end();
}

std::vector<std::string> header_keys() {
  std::vector<std::string> keys(kJobFields.begin(), kJobFields.end());
  keys.insert(keys.end(), kOwnKeys.begin(), kOwnKeys.end());
  return keys;
}

// Keys under `axes`; tiers are nested under `tier`.
std::vector<std::string> axis_keys() {
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < kAxes; ++i) {
    const std::string_view name = axis_name(static_cast<Axis>(i));
    if (name.find('.') == std::string_view::npos) { keys.emplace_back(name); }
  }
  keys.emplace_back("tier");
  return keys;
}

std::optional<Axis> axis_of(std::string_view name) {
  for (std::size_t i = 0; i < kAxes; ++i) {
    if (axis_name(static_cast<Axis>(i)) == name) { return static_cast<Axis>(i); }
  }
  return std::nullopt;
}

std::string unknown_key(const std::string& key, const std::vector<std::string>& names) {
  if (const auto near = nearest(key, names)) { return fmt::format("unknown key; did you mean \"{}\"?", *near); }
  return fmt::format("unknown key; valid keys: {}", join(names, ", "));
}

// Axes that set the same choice.
constexpr std::array<std::pair<Axis, Axis>, 2> kPairs{
    {{Axis::zero, kOptimizerSharding}, {Axis::sequence_parallel, kTpComm}}};

bool is_degree(Axis axis) { return axis == Axis::tp || axis == Axis::cp || axis == Axis::pp; }

// Reads the header, then the axes in their order; an axis may use the names before it.
class Reader {
 public:
  Result<SpaceFile> read(const Node& root) {
    if (root.kind != Kind::mapping) {
      return fail(root.place, "a space file must be a mapping with keys such as model, cluster, axes");
    }
    file_.scenario = config::mapping_node();
    file_.scenario.place = root.place;
    for (const auto& member : root.members) { read_key(member); }
    check_scenario();
    read_axes(root);
    check_pairs();
    if (!errors_.empty()) { return tl::make_unexpected(config::failure_of(std::move(errors_))); }
    return std::move(file_);
  }

  Result<SpaceFile> replace(SpaceFile file, const Node& values) {
    file_ = std::move(file);
    for (const WrittenAxis& one : file_.axes) { all_.push_back(one.axis); }
    for (const auto& member : values.members) {
      const auto axis = axis_of(member.key);
      if (!axis) { return fail(member.place(), unknown_key(member.key, axis_keys())); }
      replace_values(*axis, member);
    }
    if (!errors_.empty()) { return tl::make_unexpected(config::failure_of(std::move(errors_))); }
    return std::move(file_);
  }

 private:
  void replace_values(Axis axis, const config::Member& member) {
    for (const auto& [a, b] : kPairs) {
      const Axis same = axis == a ? b : axis == b ? a : axis;
      std::erase_if(file_.axes, [&](const WrittenAxis& one) { return same != axis && one.axis == same; });
    }
    read_values(axis, member);  // appends
    WrittenAxis made = std::move(file_.axes.back());
    file_.axes.pop_back();
    const auto before =
        std::find_if(file_.axes.begin(), file_.axes.end(), [&](const auto& one) { return one.axis == axis; });
    if (before != file_.axes.end()) {
      *before = std::move(made);
    } else {
      file_.axes.push_back(std::move(made));
    }
  }

  void add_error(const Place& place, std::string message) { errors_.push_back({place, std::move(message)}); }

  void read_key(const config::Member& member) {
    if (member.key == "axes") { return; }
    if (member.key == "max_batch") { return read_max_batch(member.value); }
    if (member.key == "count_invalid") { return read_count_invalid(member.value); }
    if (member.key == "cluster" && member.value.kind == Kind::mapping) { return read_cluster(member.value); }
    if (is_job_field(member.key)) { return add_field(member.key, member); }
    if (axis_of(member.key) || member.key == "tier") {
      return add_error(member.place(), fmt::format(R"("{}" is an axis; write it under "axes")", member.key));
    }
    add_error(member.place(), unknown_key(member.key, header_keys()));
  }

  void add_field(const std::string& key, const config::Member& member) {
    if (file_.scenario.find(key) != nullptr) {
      return add_error(member.place(),
                       fmt::format(R"("{}" is given twice: under "cluster" and at the top level)", key));
    }
    file_.scenario.members.push_back({key, member.line, member.column, member.value});
  }

  // cluster: {use: dgx-a100, devices: 512}
  void read_cluster(const Node& cluster) {
    for (const auto& member : cluster.members) {
      if (member.key == "use" || member.key == "devices") {
        add_field(member.key == "use" ? "cluster" : "devices", member);
      } else {
        add_error(member.place(), unknown_key(member.key, {"use", "devices"}));
      }
    }
  }

  void read_max_batch(const Node& node) {
    const config::Limits limits{
        .min = 1, .max = static_cast<double>(kLargestBatch), .positive = false, .nonempty = false, .unit = {}};
    const config::Reading reading{"max_batch", limits, false, errors_};
    using Range = std::numeric_limits<std::int64_t>;
    file_.max_batch = config::read_integer(node, reading, Range::min(), Range::max());
    max_batch_place_ = node.place;
  }

  void read_count_invalid(const Node& node) {
    const config::Limits limits{};
    const auto value = config::read_boolean(node, {"count_invalid", limits, false, errors_});
    file_.count_invalid = value.value_or(true);
  }

  // Checks each value by the rules of a scenario; missing values may come from flags.
  void check_scenario() {
    const auto read = estimate::request_record().read_over(estimate::Request{}, file_.scenario);
    if (!read) { errors_.insert(errors_.end(), read.error().diagnostics.begin(), read.error().diagnostics.end()); }
    if (file_.max_batch &&
        (file_.scenario.find("global_batch") != nullptr || file_.scenario.find("batch") != nullptr)) {
      add_error(max_batch_place_, "cannot be combined with a fixed batch; remove one of them");
    }
  }

  void read_axes(const Node& root) {
    const Node* axes = root.find("axes");
    if (axes == nullptr) { return add_error(root.place, "required key \"axes\" is missing"); }
    if (axes->kind != Kind::mapping || axes->members.empty()) {
      return add_error(axes->place, "\"axes\" must be a mapping of names to values, such as \"tp: divisors(devices)\"");
    }
    for (const auto& member : axes->members) {
      if (member.key == "tier") {
        if (member.value.kind == Kind::mapping) { add_tiers(member.value); }
      } else if (const auto axis = axis_of(member.key)) {
        all_.push_back(*axis);
      }
    }
    for (const auto& member : axes->members) { read_axis(member); }
  }

  void add_tiers(const Node& tiers) {
    for (const auto& member : tiers.members) {
      if (const auto axis = axis_of("tier." + member.key)) { all_.push_back(*axis); }
    }
  }

  void read_axis(const config::Member& member) {
    if (member.key == "tier") { return read_tiers(member); }
    const auto axis = member.key.starts_with("tier.") ? std::nullopt : axis_of(member.key);
    if (!axis) { return add_error(member.place(), unknown_key(member.key, axis_keys())); }
    read_values(*axis, member);
  }

  // tier: {tp: [0, 1], dp: [0, 1]}
  void read_tiers(const config::Member& member) {
    if (member.value.kind != Kind::mapping) {
      return add_error(member.value.place,
                       "\"tier\" must be a mapping of groups to network dimensions, such as {tp: [0, 1]}");
    }
    for (const auto& group : member.value.members) {
      const auto axis = axis_of("tier." + group.key);
      if (axis) {
        read_values(*axis, group);
      } else {
        add_error(group.place(), unknown_key(group.key, {"tp", "cp", "dp", "pp"}));
      }
    }
  }

  void read_values(Axis axis, const config::Member& member) {
    auto values = parse_values(member.value, kind_of(axis), vocabulary(axis));
    file_.axes.push_back({axis, member.value.place, {}});
    if (!values) {
      errors_.insert(errors_.end(), values.error().diagnostics.begin(), values.error().diagnostics.end());
      return;
    }
    check_uses(axis, *values);
    file_.axes.back().values = std::move(*values);
  }

  // The axis itself, and facts that depend on it, may only be used in its conditions.
  void check_uses(Axis axis, const AxisValues& values) {
    for (const auto& set : values.sets) {
      const SlotMask used = set.first.uses() | set.last.uses();
      if ((used & mask_of(slot_of(axis))) != 0) {
        add_error(set.place,
                  fmt::format("the values of {0} cannot depend on {0}; only a condition can", axis_name(axis)));
      }
      const SlotMask following = mask_of(slot_of(Fact::dp)) | (file_.max_batch ? mask_of(slot_of(Fact::batch)) : 0);
      if (is_degree(axis) && (used & following) != 0) {
        add_error(set.place,
                  fmt::format("the values of {} cannot depend on dp, which depends on them; only a condition can",
                              axis_name(axis)));
      }
    }
  }

  [[nodiscard]] bool is_written_before(Axis axis) const {
    return std::any_of(file_.axes.begin(), file_.axes.end(), [&](const auto& one) { return one.axis == axis; });
  }
  [[nodiscard]] bool is_written(Axis axis) const { return std::find(all_.begin(), all_.end(), axis) != all_.end(); }

  // One of tp, cp and pp that is written after `axis`; empty: none.
  [[nodiscard]] std::string missing_degree(Axis axis) const {
    for (const Axis degree : {Axis::tp, Axis::cp, Axis::pp}) {
      if (degree != axis && is_written(degree) && !is_written_before(degree)) { return std::string(axis_name(degree)); }
    }
    return {};
  }

  [[nodiscard]] Vocabulary vocabulary(Axis axis) const {
    Vocabulary vocabulary;
    vocabulary.devices = slot_of(Fact::devices);
    for (std::size_t i = 0; i < kFacts; ++i) {
      const Fact fact = static_cast<Fact>(i);
      vocabulary.words.push_back({std::string(fact_name(fact)), slot_of(fact), &integers(), why_not(fact, axis)});
    }
    for (std::size_t i = 0; i < kAxes; ++i) {
      const Axis other = static_cast<Axis>(i);
      if (other == Axis::dp) { continue; }  // dp is also a fact
      vocabulary.words.push_back(
          {std::string(axis_name(other)), slot_of(other), &kind_of(other), why_not(other, axis)});
      vocabulary.kinds.push_back(&kind_of(other));
    }
    return vocabulary;
  }

  [[nodiscard]] std::string why_not(Fact fact, Axis axis) const {
    if (fact == Fact::max_batch && !file_.max_batch) { return "the file has no max_batch"; }
    const bool follows = fact == Fact::dp || (fact == Fact::batch && file_.max_batch);
    const std::string degree = follows ? missing_degree(axis) : "";
    return degree.empty() ? "" : fmt::format("it depends on axis {}, which is written later", degree);
  }

  // A name with one value in the whole space may be used although it is not an axis.
  [[nodiscard]] std::string why_not(Axis other, Axis axis) const {
    if (other == axis || is_written_before(other)) { return ""; }
    if (is_written(other)) { return fmt::format("axis {} is written later", axis_name(other)); }
    const bool known = is_degree(other) || other == Axis::ep || other == Axis::vpp || other == Axis::micro_batch;
    return known ? "" : "the file has no such axis";
  }

  void check_pairs() {
    for (const auto& [a, b] : kPairs) {
      if (!is_written_before(a) || !is_written_before(b)) { continue; }
      const auto found =
          std::find_if(file_.axes.begin(), file_.axes.end(), [&](const auto& one) { return one.axis == b; });
      add_error(found->place, fmt::format("sets the same choice as {}; remove one of them", axis_name(a)));
    }
  }

  SpaceFile file_;
  std::vector<Axis> all_;
  std::vector<Diagnostic> errors_;
  Place max_batch_place_;
};

}  // namespace

Result<SpaceFile> space_of(const Node& root) { return Reader().read(root); }

Result<SpaceFile> with_values(SpaceFile file, const Node& values) {
  return values.members.empty() ? Result<SpaceFile>(std::move(file)) : Reader().replace(std::move(file), values);
}

Result<SpaceFile> read_space_file(const std::string& path) {
  ORRERY_TRY(root, config::read_file(path));
  return space_of(root);
}

}  // namespace orrery::explore
