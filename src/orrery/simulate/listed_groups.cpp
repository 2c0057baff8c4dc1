#include "orrery/simulate/listed_groups.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "orrery/config/node.hpp"
#include "orrery/core/text.hpp"

namespace orrery::simulate {

using config::Kind;
using config::Node;

namespace {

class GroupTables {
 public:
  GroupTables(const graph::Graph& graph, std::uint32_t rank, std::string file, std::uint32_t ranks)
      : graph_(graph), rank_(rank), file_(std::move(file)), ranks_(ranks) {}

  Result<std::vector<Group>> run() {
    for (const graph::ProcessGroup& listed : graph::process_groups(graph_.metadata())) {
      where_ = Place{file_, 0, 0, fmt::format("rank {}, {}{}", rank_, graph::keys::process_group_prefix, listed.name)};
      add(listed.name, listed.ranks);
    }
    for (graph::NodeIndex node = 0; node < graph_.node_count(); ++node) {
      if (graph_.type(node) != graph::NodeType::metadata) { continue; }
      const auto inputs = graph_.inputs(node);
      if (!inputs || inputs->values.find("pg_name") == std::string_view::npos) { continue; }
      where_ = Place{file_, 0, 0, fmt::format("rank {}, node {}", rank_, graph_.id(node))};
      read(std::string(inputs->values));
    }
    if (!failure_.diagnostics.empty()) { return tl::make_unexpected(std::move(failure_)); }
    return std::move(groups_);
  }

 private:
  void add_error(std::string message) { failure_.diagnostics.push_back({where_, std::move(message)}); }

  // Parsed as YAML, which includes JSON and the strings and lists that Python prints. A list of one text is read as the
  // text.
  void read(std::string text) {
    constexpr int kDeepest = 3;
    for (int depth = 0; depth < kDeepest; ++depth) {
      const auto root = config::parse_yaml(text, file_);
      if (!root) { break; }
      const Node* inner = &*root;
      while (inner->kind == Kind::sequence && inner->items.size() == 1 && inner->items.front().kind != Kind::mapping) {
        inner = &inner->items.front();
      }
      if (inner->kind == Kind::sequence) { return read_table(*inner); }
      if (!inner->is_scalar()) { break; }
      text = std::string(inner->scalar);
    }
    add_error(fmt::format("has a table of process groups that cannot be read: {}", quote(text)));
  }

  void read_table(const Node& table) {
    for (const Node& entry : table.items) {
      const Node* name = entry.find("pg_name");
      const Node* members = entry.find("ranks");
      if (name == nullptr || !name->is_scalar() || members == nullptr || members->kind != Kind::sequence) {
        add_error("lists a process group without a pg_name and a list of ranks");
        return;
      }
      std::vector<std::uint64_t> ranks;
      for (const Node& item : members->items) {
        const auto rank = item.is_scalar() ? whole_number(item.scalar) : std::nullopt;
        if (!rank) {
          return add_error(
              fmt::format("lists {} as a rank of process group {}", quote(item.scalar), quote(name->scalar)));
        }
        ranks.push_back(*rank);
      }
      add(name->scalar, ranks);
    }
  }

  void add(std::string_view name, const std::vector<std::uint64_t>& ranks) {
    if (name.empty() || ranks.empty()) { return; }
    Group group{group_key(name), {}};
    for (const std::uint64_t rank : ranks) {
      if (rank >= ranks_) { return; }  // the group of a larger job: an error if a node uses it
      group.ranks.push_back(static_cast<std::uint32_t>(rank));
    }
    std::vector<std::uint32_t> ascending = group.ranks;
    std::sort(ascending.begin(), ascending.end());
    const auto twice = std::adjacent_find(ascending.begin(), ascending.end());
    if (twice != ascending.end()) {
      return add_error(fmt::format("lists rank {} twice in process group {}", *twice, group.name));
    }
    const auto [known, is_new] = positions_.try_emplace(group.name, groups_.size());
    if (is_new) {
      groups_.push_back(std::move(group));
    } else if (groups_[known->second].ranks != group.ranks) {
      add_error(fmt::format("lists process group {} twice, with different ranks", group.name));
    }
  }

  const graph::Graph& graph_;
  std::uint32_t rank_;
  std::string file_;
  std::uint32_t ranks_;
  Place where_;
  std::vector<Group> groups_;
  std::unordered_map<std::string, std::size_t> positions_;  // in groups_, by name
  Failure failure_;
};

}  // namespace

Result<std::vector<Group>> listed_groups(const graph::Graph& graph, std::uint32_t rank, const std::string& file,
                                         std::uint32_t ranks) {
  return GroupTables(graph, rank, file, ranks).run();
}

Result<void> join_groups(std::vector<Group>& groups, std::vector<ReadGraph>& graphs) {
  const auto job_groups = static_cast<std::uint32_t>(groups.size());
  std::map<std::pair<std::string, std::vector<std::uint32_t>>, std::uint32_t> known;  // 1 + position
  std::map<std::pair<std::string, std::uint32_t>, std::uint32_t> member_of;           // name, rank
  for (ReadGraph& graph : graphs) {
    std::vector<std::uint32_t> number_in_job;
    for (const Group& group : graph.own) {
      const auto [found, is_new] =
          known.try_emplace({group.name, group.ranks}, static_cast<std::uint32_t>(groups.size() + 1));
      if (is_new) { groups.push_back(group); }
      number_in_job.push_back(found->second);
      for (const std::uint32_t member : is_new ? group.ranks : std::vector<std::uint32_t>{}) {
        const auto [other, first] = member_of.try_emplace({group.name, member}, found->second);
        if (first) { continue; }
        return fail(Place{graph.file, 0, 0, fmt::format("rank {}", graph.rank)},
                    fmt::format("lists process group {} with other ranks than an earlier file; rank {} is in both",
                                group.name, member));
      }
    }
    for (NodeTask& task : graph.graph.nodes) {
      if (task.group > job_groups) { task.group = number_in_job[task.group - job_groups - 1]; }
    }
  }
  return {};
}

}  // namespace orrery::simulate
