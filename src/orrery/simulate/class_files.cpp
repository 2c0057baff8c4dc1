#include "orrery/simulate/class_files.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "orrery/config/node.hpp"
#include "orrery/core/text.hpp"
#include "orrery/simulate/on_cluster.hpp"
#include "orrery/trace/node_stream.hpp"

namespace orrery::simulate {

namespace fs = std::filesystem;
using config::Kind;
using config::Node;

namespace {

constexpr std::string_view kSchema = "orrery.classes/1";
constexpr std::string_view kSuffix = ".classes.json";
constexpr std::uint64_t kMostRanks = std::uint64_t{1} << 26;

// Reads the fields of one file; the first error of each value is kept.
class ClassReader {
 public:
  ClassReader(Node root, std::string file) : root_(std::move(root)) { files_.file = std::move(file); }

  Result<ClassFiles> run() {
    static const std::array<std::string, 6> kKeys = {"schema", "ranks", "node_ports", "groups", "classes", "layout"};
    check_keys(root_, kKeys);
    const std::string schema = text(root_, "schema");
    if (failure_.diagnostics.empty() && schema != kSchema) {
      add_error(root_.find("schema")->place, fmt::format("is {}; valid: {}", quote(schema), quote(kSchema)));
    }
    const std::uint64_t ranks = whole(root_, "ranks", 1);
    if (root_.find("node_ports") != nullptr) { read_node_ports(); }
    read_classes();
    if (root_.find("layout") != nullptr) { read_layout(); }
    if (failure_.diagnostics.empty() && files_.ranks() != ranks) {
      add_error(root_.find("ranks")->place,
                fmt::format("is {}, but the classes have {} ranks together", ranks, files_.ranks()));
    }
    if (failure_.diagnostics.empty()) { read_groups(); }
    if (!failure_.diagnostics.empty()) { return tl::make_unexpected(std::move(failure_)); }
    return std::move(files_);
  }

 private:
  void add_error(const Place& place, std::string message) {
    failure_.diagnostics.push_back({place, std::move(message)});
  }

  void check_keys(const Node& object, std::span<const std::string> valid) {
    for (const auto& member : object.members) {
      if (std::find(valid.begin(), valid.end(), member.key) != valid.end()) { continue; }
      const auto near = nearest(member.key, valid);
      add_error(member.place(), near ? fmt::format("unknown key; did you mean {}?", quote(*near))
                                     : fmt::format("unknown key; valid keys: {}", join(valid, ", ")));
    }
  }

  const Node* need(const Node& object, std::string_view key) {
    const Node* value = object.find(key);
    if (value == nullptr) { add_error(object.place, fmt::format("{} is missing", key)); }
    return value;
  }

  std::string text(const Node& object, std::string_view key) {
    const Node* value = need(object, key);
    if (value == nullptr) { return {}; }
    if (value->kind != Kind::text) { add_error(value->place, fmt::format("{} is not a text", key)); }
    return value->scalar;
  }

  std::uint64_t whole(const Node& object, std::string_view key, std::uint64_t least) {
    const Node* value = need(object, key);
    if (value == nullptr) { return least; }
    const auto number = value->is_scalar() ? whole_number(value->scalar) : std::nullopt;
    if (number && *number >= least && *number <= kMostRanks) { return *number; }
    add_error(value->place,
              fmt::format("{} is not valid; valid: a whole number from {} to {}",
                          value->is_scalar() ? quote(value->scalar) : std::string(key), least, kMostRanks));
    return least;
  }

  const std::vector<Node>& list(std::string_view key) {
    static const std::vector<Node> kNone;
    const Node* value = need(root_, key);
    if (value == nullptr) { return kNone; }
    if (value->kind != Kind::sequence) { add_error(value->place, fmt::format("{} is not a list", key)); }
    return value->items;
  }

  void read_node_ports() {
    const Node& ports = *root_.find("node_ports");
    if (ports.scalar == "one") { files_.egress = network::NodeEgress::one_port; }
    if (ports.scalar == "one" || ports.scalar == "all") { return; }
    add_error(ports.place, fmt::format("{} is not valid; valid: one, all",
                                       ports.is_scalar() ? quote(ports.scalar) : std::string("node_ports")));
  }

  void read_classes() {
    const auto& classes = list("classes");
    if (classes.empty() && failure_.diagnostics.empty()) { add_error(root_.place, "classes is empty"); }
    static const std::array<std::string, 3> kKeys = {"file", "first_rank", "ranks"};
    for (const Node& one : classes) {
      check_keys(one, kKeys);
      const std::uint64_t first = whole(one, "first_rank", 0), ranks = whole(one, "ranks", 1);
      if (files_.graphs.empty()) { files_.class_ranks = static_cast<std::uint32_t>(ranks); }
      if (failure_.diagnostics.empty() && (ranks != files_.class_ranks || first != files_.ranks())) {
        add_error(one.place,
                  fmt::format("has ranks {} to {}; expected {} to {}: classes have the same number of ranks, "
                              "one behind the other",
                              first, first + ranks - 1, files_.ranks(), files_.ranks() + files_.class_ranks - 1));
      }
      files_.graphs.push_back((fs::path(files_.file).parent_path() / text(one, "file")).string());
      if (std::uint64_t{files_.class_ranks} * files_.graphs.size() > kMostRanks) {
        return add_error(one.place, fmt::format("classes have more than {} ranks", kMostRanks));
      }
    }
  }

  void read_layout() {
    std::uint64_t positions = 1;
    static const std::array<std::string, 2> kKeys = {"dimension", "ranks"};
    for (const Node& one : list("layout")) {
      check_keys(one, kKeys);
      const std::uint64_t dimension = whole(one, "dimension", 0), ranks = whole(one, "ranks", 1);
      if (dimension >= hardware::kMaxDimensions || files_.layout.size() == parallel::kMostDigits) {
        return add_error(one.place, "is not a digit of a placement: its dimension, or their number, is too large");
      }
      files_.layout.push_back({static_cast<int>(dimension), static_cast<std::int64_t>(ranks)});
      positions = std::min(positions * ranks, kMostRanks + 1);
    }
    if (failure_.diagnostics.empty() && positions != files_.ranks()) {
      add_error(root_.find("layout")->place,
                fmt::format("has {} positions, but there are {} ranks", positions, files_.ranks()));
    }
  }

  void read_groups() {
    static const std::array<std::string, 8> kKeys = {"name",   "first_name", "count",        "kind",
                                                     "stride", "degree",     "outer_stride", "outer_degree"};
    for (const Node& one : list("groups")) {
      check_keys(one, kKeys);
      GroupFamily family;
      family.name = text(one, "name");
      family.first_name = whole(one, "first_name", 1);
      family.count = whole(one, "count", 1);
      family.stride = whole(one, "stride", 1);
      family.degree = whole(one, "degree", 2);
      if (one.find("outer_degree") != nullptr) {
        family.outer_degree = whole(one, "outer_degree", 2);
        family.outer_stride = whole(one, "outer_stride", family.stride * family.degree);
      }
      const std::string kind = text(one, "kind");
      family.is_mirrored = kind == "mirrored";
      if (!failure_.diagnostics.empty()) { return; }
      if (!family.is_mirrored && kind != "strided") {
        return add_error(one.find("kind")->place,
                         fmt::format("{} is not valid; valid: strided, mirrored", quote(kind)));
      }
      const std::string clash = clash_of(family), problem = clash.empty() ? problem_of(family) : clash;
      if (!problem.empty()) { return add_error(one.place, problem); }
      files_.families.push_back(std::move(family));
    }
  }

  // Graphs of single ranks name groups by number: no number twice.
  [[nodiscard]] std::string clash_of(const GroupFamily& family) const {
    for (const GroupFamily& other : files_.families) {
      if (other.name == family.name) { return fmt::format("{} is listed twice", quote(family.name)); }
      if (other.first_name < family.first_name + family.count && family.first_name < other.first_name + other.count) {
        return fmt::format("its groups are named {} to {}; those of {} are named {} to {}", family.first_name,
                           family.first_name + family.count - 1, quote(other.name), other.first_name,
                           other.first_name + other.count - 1);
      }
    }
    return {};
  }

  [[nodiscard]] std::string problem_of(const GroupFamily& family) const {
    if (family.is_mirrored) {
      const bool fits = files_.graphs.size() % 2 == 0 && family.degree == 2 && family.count == files_.ranks() / 2;
      return fits ? ""
                  : "mirrored groups join two ranks each: an even number of classes, and half as many groups as ranks";
    }
    const std::uint64_t block = family.stride * family.degree;
    if (family.outer_degree > 1 && family.outer_stride % block != 0) {
      return fmt::format("outer_stride {} is not a multiple of stride x degree ({})", family.outer_stride, block);
    }
    ClassJob job;
    const StridedRanks last = job.members(family, family.count - 1);
    const std::uint64_t end = last.rank(last.degree - 1);
    return end < files_.ranks()
               ? ""
               : fmt::format("{} groups of {} ranks with stride {} need rank {}; the ranks are 0 to {}", family.count,
                             family.size(), family.stride, end, files_.ranks() - 1);
  }

  Node root_;
  ClassFiles files_;
  Failure failure_;
};

}  // namespace

std::optional<std::string> classes_file_of(const std::vector<std::string>& workload) {
  if (workload.size() != 1) { return std::nullopt; }
  const std::string& name = workload.front();
  if (name.ends_with(kSuffix)) { return name; }
  const std::string file = name + std::string(kSuffix);
  return !fs::exists(name) && fs::is_regular_file(file) ? std::optional(file) : std::nullopt;
}

Result<ClassFiles> read_class_files(const std::string& file) {
  ORRERY_TRY(root, config::read_file(file));
  if (root.kind != Kind::mapping) { return fail(root.place, "is not an object with classes and groups"); }
  return ClassReader(std::move(root), file).run();
}

Result<ClassJob> read_class_job(const hardware::Cluster& cluster, const ClassFiles& classes,
                                const SimulationFiles& files) {
  ClassJob job;
  job.machine = machine_on(cluster);
  job.machine.backend = Backend::flow;
  job.machine.tables = files.tables;
  job.machine.explain = files.explain;
  job.machine.roofline = files.roofline;
  job.machine.energy = files.energy;
  job.machine.memory_over_time = files.memory_over_time;
  job.machine.chunk_order = files.chunk_order;
  job.machine.by_message = files.by_message;
  job.machine.spans = files.spans || files.tables || files.explain || files.memory_over_time;
  job.egress = classes.egress;
  job.class_ranks = classes.class_ranks;
  for (const network::Extent& digit : classes.layout) {
    if (static_cast<std::size_t>(digit.dimension) < cluster.dimensions.size()) { continue; }
    return fail(Place{classes.file, 0, 0, "layout"},
                fmt::format("has ranks on dimension {}; cluster \"{}\" has dimensions 0 to {}", digit.dimension,
                            cluster.name, cluster.dimensions.size() - 1));
  }
  job.layout = classes.layout;
  job.families = classes.families;
  for (const std::string& file : classes.graphs) {
    if (!fs::exists(file)) {
      return fail(Place{file, 0, 0, {}}, fmt::format("does not exist; {} names it", classes.file));
    }
    trace::ReadOptions options;
    options.threads = files.threads;
    ORRERY_TRY(loaded, trace::load(file, options));
    if (auto added = add_class(job, loaded.graph, file, classes.graphs.size()); !added) {
      return tl::make_unexpected(std::move(added).error());
    }
  }
  return job;
}

}  // namespace orrery::simulate
