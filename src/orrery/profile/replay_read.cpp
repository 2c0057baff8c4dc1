#include "orrery/profile/replay_read.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace orrery::profile {

namespace {

std::optional<std::int64_t> number(const graph::Metadata& metadata, std::string_view key) {
  const graph::Attribute* const found = metadata.find(key);
  return found == nullptr ? std::nullopt : found->value.as_int();
}

std::optional<std::int64_t> number(const graph::NodeRecord& node, std::string_view key) {
  const graph::Attribute* const found = node.find(key);
  return found == nullptr ? std::nullopt : found->value.as_int();
}

std::string_view text(const graph::NodeRecord& node, std::string_view key) {
  const graph::Attribute* const found = node.find(key);
  return found == nullptr ? std::string_view() : found->value.as_text().value_or(std::string_view());
}

// The exact time of an attribute, else the field with whole microseconds.
std::int64_t nanoseconds(const graph::NodeRecord& node, std::string_view key, std::uint64_t microseconds) {
  return number(node, key).value_or(static_cast<std::int64_t>(std::min<std::uint64_t>(microseconds, INT64_MAX / 1000)) *
                                    1000);
}

}  // namespace

bool is_imported_profile(const graph::Metadata& metadata) {
  const graph::Attribute* const schema = metadata.find(keys::schema);
  return schema != nullptr && schema->value.as_text() == std::optional<std::string_view>(kGraphSchema);
}

Result<void> ReplayJob::Reader::begin(const graph::Metadata& metadata) {
  if (!is_imported_profile(metadata)) { return fail("is not a graph that \"orrery trace import\" wrote"); }
  Rank rank;
  rank.number = static_cast<std::uint64_t>(number(metadata, keys::rank).value_or(0));
  const auto same = [&](const Rank& other) { return other.number == rank.number; };
  if (std::any_of(job_.ranks_.begin(), job_.ranks_.end(), same)) {
    return fail(fmt::format("is a graph of rank {}, as another file is; valid: one file of each rank", rank.number));
  }
  std::vector<std::int64_t> together;
  if (const graph::Attribute* const ranks = metadata.find(keys::imported); ranks != nullptr) {
    for (std::size_t i = 0; const auto one = ranks->value.as_int(i); ++i) { together.push_back(*one); }
  }
  if (!job_.ranks_.empty() && together != together_) {
    return fail(
        fmt::format("is a graph of another import: of rank {} here, of rank {} before; valid: the files of one "
                    "import",
                    fmt::join(together, ", "), fmt::join(together_, ", ")));
  }
  together_ = std::move(together);
  rank.first = static_cast<std::uint32_t>(job_.nodes_.size());
  rank.host_start = number(metadata, keys::host_start).value_or(0);
  rank.host_end = number(metadata, keys::host_end).value_or(0);
  rank.device_end = number(metadata, keys::device_end).value_or(0);
  job_.blocked_without_cause_ns_ += number(metadata, keys::blocked_without_cause).value_or(0);
  job_.ranks_.push_back(rank);
  if (const graph::Attribute* const device = metadata.find(keys::device_name); device != nullptr) {
    const std::string name(device->value.as_text().value_or(""));
    if (std::find(job_.devices_.begin(), job_.devices_.end(), name) == job_.devices_.end()) {
      job_.devices_.push_back(name);
    }
  }
  ids_.clear();
  dep_ids_.clear();
  return {};
}

void ReplayJob::Reader::add(const graph::NodeRecord& node) {
  Node made;
  made.duration = nanoseconds(node, graph::keys::duration_ns, node.duration_us);
  made.recorded_start = nanoseconds(node, graph::keys::start_time_ns, node.start_us);
  made.deps_begin = static_cast<std::uint32_t>(job_.deps_.size());
  const graph::Attribute* const cpu = node.find(graph::keys::is_cpu_op);
  made.on_device = cpu != nullptr && !cpu->value.as_bool().value_or(true);
  const auto position = static_cast<std::uint32_t>(job_.nodes_.size());
  ids_.push_back(node.id);
  const graph::Attribute* const lags = node.find(keys::lags);
  for (std::size_t i = 0; i < node.data_deps.size(); ++i) {
    dep_ids_.push_back(node.data_deps[i]);
    job_.deps_.push_back({kNo, lags == nullptr ? 0 : lags->value.as_int(i).value_or(0)});
  }
  if (const auto step = number(node, keys::step_begin)) { add_step(static_cast<std::uint64_t>(*step), position, true); }
  if (const auto step = number(node, keys::step_end)) { add_step(static_cast<std::uint64_t>(*step), position, false); }
  made.unexplained = number(node, keys::unexplained).value_or(0);
  job_.ranks_.back().unexplained += made.unexplained;
  if (const auto instance = number(node, keys::collective)) {
    made.communicates = true;
    job_.nodes_.push_back(made);
    add_member(node, *instance, number(node, keys::wire).value_or(made.duration), position);
    return;
  }
  if (made.on_device) { made.kernel = kernel(node, made.duration); }
  job_.nodes_.push_back(made);
}

Result<void> ReplayJob::Reader::end() {
  Rank& rank = job_.ranks_.back();
  rank.last = static_cast<std::uint32_t>(job_.nodes_.size());
  std::unordered_map<std::uint64_t, std::uint32_t> positions;
  bool in_order = true;  // as an import writes them
  for (std::size_t i = 0; i < ids_.size() && in_order; ++i) { in_order = ids_[i] == i; }
  for (std::uint32_t i = 0; i < ids_.size() && !in_order; ++i) { positions.emplace(ids_[i], i); }
  const std::size_t first_dep = job_.deps_.size() - dep_ids_.size();
  for (std::uint32_t node = 0; node < ids_.size(); ++node) {
    const std::size_t begin = job_.nodes_[rank.first + node].deps_begin;
    const std::size_t end = node + 1 < ids_.size() ? job_.nodes_[rank.first + node + 1].deps_begin : job_.deps_.size();
    for (std::size_t i = begin; i < end; ++i) {
      const std::uint64_t id = dep_ids_[i - first_dep];
      const auto found = in_order ? positions.end() : positions.find(id);
      if (in_order ? id >= ids_.size() : found == positions.end()) {
        return fail(fmt::format("node {}: depends on node {}, which is not in the file", ids_[node], id));
      }
      job_.deps_[i].node = rank.first + (in_order ? static_cast<std::uint32_t>(id) : found->second);
    }
  }
  return {};
}

std::uint32_t ReplayJob::Reader::kernel(const graph::NodeRecord& node, std::int64_t duration) {
  const std::string_view operation = text(node, keys::operation);
  const std::string_view shapes = node.inputs ? node.inputs->shapes : std::string_view();
  const std::string_view types = node.inputs ? node.inputs->types : std::string_view();
  const auto [known, is_new] = kernels_.try_emplace(fmt::format("{}\n{}\n{}\n{}", node.name, operation, shapes, types),
                                                    static_cast<std::uint32_t>(job_.kernels_.size()));
  if (is_new) {
    job_.kernels_.push_back({std::string(node.name), std::string(operation), kernel_class(node.name, operation),
                             work_shape_of(operation, shapes, types), 0, 0});
  }
  ++job_.kernels_[known->second].count;
  job_.kernels_[known->second].time_ns += duration;
  return known->second;
}

void ReplayJob::Reader::add_step(std::uint64_t step, std::uint32_t node, bool begins) {
  const std::size_t rank = job_.ranks_.size() - 1;
  const auto [found, is_new] = step_of_.try_emplace({rank, step}, static_cast<std::uint32_t>(job_.steps_.size()));
  if (is_new) { job_.steps_.push_back({rank, step, kNo, kNo}); }
  std::uint32_t& border = begins ? job_.steps_[found->second].begin : job_.steps_[found->second].end;
  if (border == kNo) { border = node; }
}

void ReplayJob::Reader::add_member(const graph::NodeRecord& node, std::int64_t instance, std::int64_t wire,
                                   std::uint32_t position) {
  const auto [found, is_new] = instances_.try_emplace(instance, static_cast<std::uint32_t>(job_.collectives_.size()));
  if (is_new) {
    Collective made;
    made.about.group = text(node, keys::group);
    made.about.kind = text(node, keys::kind);
    made.about.called = text(node, keys::called);
    const auto natural = [&](std::string_view key) {
      return static_cast<std::uint64_t>(std::max<std::int64_t>(number(node, key).value_or(0), 0));
    };
    made.about.number = natural(keys::number);
    made.about.group_size = natural(keys::group_size);
    made.about.bytes = natural(graph::keys::comm_size);
    if (const graph::Attribute* const partners = node.find(keys::members); partners != nullptr) {
      for (std::size_t i = 0; const auto rank = partners->value.as_int(i); ++i) {
        partners_.insert(static_cast<std::uint64_t>(*rank));
      }
    }
    job_.collectives_.push_back(std::move(made));
  }
  Collective& collective = job_.collectives_[found->second];
  if (const graph::Attribute* const waits = node.find(keys::waits_for); waits != nullptr) {
    std::vector<std::uint64_t>& ranks =
        waits_for_[{found->second, static_cast<std::uint32_t>(collective.members.size())}];
    for (std::size_t i = 0; const auto rank = waits->value.as_uint(i); ++i) { ranks.push_back(*rank); }
    collective.one_sided = true;
  }
  collective.members.push_back({position, wire, {}});
  collective.about.members.push_back(job_.ranks_.back().number);
  job_.nodes_[position].collective = found->second;
}

// The ranks that members wait for, as positions among the members. A member without such a list waits for all.
void ReplayJob::Reader::resolve_members() {
  for (std::uint32_t i = 0; i < job_.collectives_.size(); ++i) {
    Collective& collective = job_.collectives_[i];
    collective.about.alone = collective.members.size() == 1;
    if (!collective.one_sided) { continue; }
    for (std::uint32_t m = 0; m < collective.members.size(); ++m) {
      const auto listed = waits_for_.find({i, m});
      for (std::uint32_t other = 0; other < collective.members.size(); ++other) {
        const bool waits = other == m || listed == waits_for_.end() ||
                           std::find(listed->second.begin(), listed->second.end(), collective.about.members[other]) !=
                               listed->second.end();
        if (waits) { collective.members[m].waits_for.push_back(other); }
      }
    }
  }
}

Result<void> ReplayJob::Reader::check_partners() const {
  std::set<std::uint64_t> missing = partners_;
  for (const Rank& rank : job_.ranks_) { missing.erase(rank.number); }
  if (missing.empty()) { return {}; }
  constexpr std::size_t kListed = 8;
  std::string list;
  for (std::size_t i = 0; const std::uint64_t rank : missing) {
    if (i++ == kListed) { break; }
    list += fmt::format("{}{}", list.empty() ? "" : ", ", rank);
  }
  if (missing.size() > kListed) { list += ", …"; }
  return fail(
      fmt::format("{} of {} ranks imported together {} no file: {}. The waiting of the others for them is not "
                  "known; give the files of all ranks, or import the profiles of fewer ranks",
                  missing.size(), partners_.size(), missing.size() == 1 ? "has" : "have", list));
}

Result<ReplayJob> ReplayJob::Reader::finish() {
  if (auto ok = check_partners(); !ok) { return tl::make_unexpected(ok.error()); }
  for (std::uint32_t i = 0; i < job_.steps_.size(); ++i) {
    if (job_.steps_[i].begin != kNo) { job_.nodes_[job_.steps_[i].begin].step = i; }
  }
  resolve_members();
  return std::move(job_);
}

Result<ReplayJob> ReplayJob::of(const std::vector<graph::Graph>& graphs) {
  Reader reader;
  graph::NodeRecord record;
  for (const graph::Graph& graph : graphs) {
    if (auto ok = reader.begin(graph.metadata()); !ok) { return tl::make_unexpected(ok.error()); }
    for (graph::NodeIndex node = 0; node < graph.node_count(); ++node) {
      graph.copy_record(node, record);
      reader.add(record);
    }
    if (auto ok = reader.end(); !ok) { return tl::make_unexpected(ok.error()); }
  }
  return reader.finish();
}

void ReplayJob::scale_kernels(const std::vector<double>& factors) {
  for (Node& node : nodes_) {
    if (node.kernel == kNo || node.kernel >= factors.size() || factors[node.kernel] == 1) { continue; }
    node.duration = std::llround(std::min(static_cast<double>(node.duration) * factors[node.kernel], 1e17));
  }
}

void ReplayJob::set_wire_times(const std::vector<std::optional<std::int64_t>>& wire_ns) {
  for (std::size_t i = 0; i < collectives_.size() && i < wire_ns.size(); ++i) {
    if (!wire_ns[i]) { continue; }
    for (Member& member : collectives_[i].members) { member.wire = *wire_ns[i]; }
  }
}

}  // namespace orrery::profile
