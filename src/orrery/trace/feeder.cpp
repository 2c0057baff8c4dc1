#include "orrery/trace/feeder.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "orrery/trace/feeder_index.hpp"
#include "orrery/trace/feeder_nodes.hpp"

namespace orrery::trace {

using graph::Children;
using graph::NodeRecord;
using Position = FeederIndex::Position;

namespace {

// The number of records in the file is estimated after so many.
constexpr std::size_t kSample = 4096;

// An error names so many nodes at the beginning of a cycle, and one at its end.
constexpr std::size_t kNamed = 8;

template <class Visit>
void each_parent(const NodeRecord& node, Children::Of follow, const Visit& visit) {
  if (follow != Children::Of::ctrl) { std::for_each(node.data_deps.begin(), node.data_deps.end(), visit); }
  if (follow != Children::Of::data) { std::for_each(node.ctrl_deps.begin(), node.ctrl_deps.end(), visit); }
}

std::string_view name_of(FeederIndex::State state) {
  switch (state) {
    case FeederIndex::State::waiting: return "waits for its parents";
    case FeederIndex::State::ready: return "is ready but not issued";
    case FeederIndex::State::issued: return "is issued";
    case FeederIndex::State::complete: return "is already complete";
  }
  return "";
}

}  // namespace

struct Feeder::State {
  State(std::unique_ptr<NodeStore> store, std::string file, const FeederOptions& settings)
      : nodes(std::move(store)), name(std::move(file)), options(settings), cache(settings.cached_records) {}

  std::unique_ptr<NodeStore> nodes;
  std::string name;
  FeederOptions options;
  FeederIndex index;
  RecordCache cache;
  bool streams = false;

  [[nodiscard]] tl::unexpected<Failure> failure(const std::string& what) const {
    return fail(Place{name, 0, 0, {}}, what);
  }

  Result<void> build() {
    FeederIndexBuilder builder;
    for (;;) {
      ORRERY_TRY(item, nodes->next());
      if (item.record == nullptr) { break; }
      if (builder.size() == kSample) { builder.reserve(nodes->estimate()); }
      builder.add(item.record->id, item.place);
      each_parent(*item.record, options.follow, [&](std::uint64_t parent) { builder.add_parent(parent); });
      if (builder.too_large()) { return failure("has more nodes or dependencies than a feeder can hold (4294967293)"); }
    }
    index = builder.finish();
    return check(builder);
  }

  // Whether the graph can finish.
  Result<void> check(const FeederIndexBuilder& builder) const {
    if (const auto& twice = builder.duplicate()) {
      return failure(fmt::format("{}node {}: has the same id as another node{}", nodes->where(twice->second), twice->id,
                                 streams ? fmt::format(", at byte {}", twice->first) : ""));
    }
    const auto& missing = builder.missing();
    if (missing.count > 0 && !options.ignore_missing) {
      const std::string more =
          missing.count > 1 ? fmt::format("; {} more dependencies are on missing nodes", missing.count - 1) : "";
      return failure(fmt::format("{}node {}: can never run: it depends on node {}, which is missing{}",
                                 nodes->where(missing.place), missing.node, missing.parent, more));
    }
    const std::vector<std::uint32_t> blocked_parents = index.blocked_parents();
    return blocked_parents.empty() ? Result<void>() : cycle(blocked_parents);
  }

  // Names a cycle. Every node that never runs has a parent that never runs: following them closes a cycle.
  Result<void> cycle(const std::vector<std::uint32_t>& blocked_parents) const {
    const auto is_blocked = [&](Position node) { return blocked_parents[node] != 0; };
    std::vector<Position> path;
    std::unordered_map<Position, std::size_t> seen;
    Position node = 0;
    while (!is_blocked(node)) { ++node; }
    while (seen.try_emplace(node, path.size()).second) {
      path.push_back(node);
      ORRERY_TRY(record, nodes->at(index.place(node)));
      std::optional<Position> parent;
      each_parent(*record, options.follow, [&](std::uint64_t id) {
        const auto found = index.find(id);
        if (!parent && found && is_blocked(*found)) { parent = found; }
      });
      ORRERY_ASSERT(parent.has_value());
      node = *parent;
    }
    path.erase(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(seen[node]));
    return failure(cycle_text(path));
  }

  [[nodiscard]] std::string cycle_text(const std::vector<Position>& path) const {
    const std::uint64_t first = index.id(path.front());
    const std::string where = nodes->where(index.place(path.front()));
    if (path.size() == 1) { return fmt::format("{}node {}: can never run: it depends on itself", where, first); }
    std::string text =
        fmt::format("{}node {}: can never run: nodes wait for each other in a cycle: {}", where, first, first);
    for (std::size_t i = 1; i < path.size(); ++i) {
      if (path.size() > kNamed + 2 && i == kNamed) {
        text += fmt::format(" for … ({} more)", path.size() - kNamed - 1);
        i = path.size() - 1;
      }
      text += fmt::format(" for {}", index.id(path[i]));
    }
    return text + fmt::format(" for {}", first);
  }

  Result<const NodeRecord*> record(Position node) {
    if (const NodeRecord* kept = cache.find(node)) { return kept; }
    ORRERY_TRY(decoded, nodes->at(index.place(node)));
    if (decoded == nullptr || decoded->id != index.id(node)) {
      return failure(fmt::format("{}node {}: the file has changed since it was opened", nodes->where(index.place(node)),
                                 index.id(node)));
    }
    return cache.keep(node, *decoded);
  }
};

Feeder::Feeder(std::unique_ptr<State> state) : state_(std::move(state)) {}
Feeder::Feeder(Feeder&&) noexcept = default;
Feeder& Feeder::operator=(Feeder&&) noexcept = default;
Feeder::~Feeder() = default;

namespace {

// A source with random access is fed directly, any other from a graph.
template <class Read>
Result<std::unique_ptr<NodeStore>> store_of(std::unique_ptr<Source> source, const std::string& name,
                                            const FeederOptions& options, const Read& read) {
  if (source->whole()) { return FileNodes::of(std::move(source), name, options); }
  source.reset();
  ORRERY_TRY(trace, read());
  return std::make_unique<GraphNodes>(std::move(trace.graph));
}

}  // namespace

Result<Feeder> Feeder::open(const std::string& path, const FeederOptions& options) {
  ORRERY_TRY(source, open_source(path));
  const bool streams = source->whole().has_value();
  ORRERY_TRY(nodes, store_of(std::move(source), path, options, [&] { return read_chakra(path, options.read); }));
  auto state = std::make_unique<State>(std::move(nodes), path, options);
  state->streams = streams;
  if (auto built = state->build(); !built) { return tl::make_unexpected(std::move(built).error()); }
  return Feeder(std::move(state));
}

Result<Feeder> Feeder::of_bytes(std::string_view bytes, const std::string& name, const FeederOptions& options) {
  ORRERY_TRY(source, source_of_bytes(bytes, name));
  const bool streams = source->whole().has_value();
  ORRERY_TRY(nodes,
             store_of(std::move(source), name, options, [&] { return read_chakra_bytes(bytes, name, options.read); }));
  auto state = std::make_unique<State>(std::move(nodes), name, options);
  state->streams = streams;
  if (auto built = state->build(); !built) { return tl::make_unexpected(std::move(built).error()); }
  return Feeder(std::move(state));
}

Result<Feeder> Feeder::of_graph(graph::Graph graph, const std::string& name, const FeederOptions& options) {
  auto state = std::make_unique<State>(std::make_unique<GraphNodes>(std::move(graph)), name, options);
  if (auto built = state->build(); !built) { return tl::make_unexpected(std::move(built).error()); }
  return Feeder(std::move(state));
}

Result<const NodeRecord*> Feeder::next() {
  const auto node = state_->index.issue();
  if (!node) { return nullptr; }
  return state_->record(*node);
}

Result<void> Feeder::complete(std::uint64_t id) {
  const auto node = state_->index.find(id);
  if (!node) { return state_->failure(fmt::format("node {}: cannot be completed: it does not exist", id)); }
  const FeederIndex::State now = state_->index.state(*node);
  if (now != FeederIndex::State::issued) {
    return state_->failure(fmt::format("node {}: cannot be completed: it {}", id, name_of(now)));
  }
  state_->index.complete(*node);
  return {};
}

Result<const NodeRecord*> Feeder::node(std::uint64_t id) {
  const auto node = state_->index.find(id);
  if (!node) { return state_->failure(fmt::format("node {}: does not exist", id)); }
  return state_->record(*node);
}

bool Feeder::done() const { return state_->index.completed() == state_->index.size(); }
std::size_t Feeder::nodes() const { return state_->index.size(); }
std::size_t Feeder::ready() const { return state_->index.ready(); }
std::size_t Feeder::issued() const { return state_->index.issued(); }
std::size_t Feeder::completed() const { return state_->index.completed(); }
const graph::Metadata& Feeder::metadata() const { return state_->nodes->metadata(); }
bool Feeder::streams() const { return state_->streams; }
std::size_t Feeder::index_memory() const { return state_->index.memory(); }

}  // namespace orrery::trace
