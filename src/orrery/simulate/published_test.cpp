// What ASTRA-sim printed for several hundred configurations, held against what we simulate for the same files. The
// configurations are not part of the repository; without them the test is skipped.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "orrery/simulate/simulate.hpp"

namespace orrery::simulate {
namespace {

namespace fs = std::filesystem;

struct Row {
  std::string name, group;
  std::map<std::string, std::string> cells;
};

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

std::vector<Row> rows_of(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  const std::vector<std::string> header = fields_of(line);
  std::vector<Row> rows;
  while (std::getline(in, line)) {
    const std::vector<std::string> cells = fields_of(line);
    Row row;
    for (std::size_t i = 0; i < header.size() && i < cells.size(); ++i) { row.cells[header[i]] = cells[i]; }
    row.name = row.cells["example"];
    row.group = row.cells["group"];
    rows.push_back(row);
  }
  return rows;
}

// "64744x4 100": four ranks, then one.
std::vector<std::uint64_t> cycles_of(const std::string& text) {
  std::istringstream in(text);
  std::string word;
  std::vector<std::uint64_t> cycles;
  while (in >> word) {
    const std::size_t times = word.find('x');
    const std::uint64_t value = std::stoull(word);
    cycles.insert(cycles.end(), times == std::string::npos ? 1 : std::stoull(word.substr(times + 1)), value);
  }
  return cycles;
}

// The packed inputs, unpacked once beside the test.
std::optional<fs::path> unpacked(const fs::path& packed) {
  const fs::path folder = fs::temp_directory_path() / ("orrery_astra_inputs_" + std::to_string(fs::file_size(packed)));
  if (!fs::exists(folder / "done")) {
    fs::create_directories(folder);
    const std::string command = "tar xJf '" + packed.string() + "' -C '" + folder.string() + "'";
    if (std::system(command.c_str()) != 0) { return std::nullopt; }  // NOLINT(concurrency-mt-unsafe)
    std::ofstream(folder / "done") << "\n";
  }
  return folder / "inputs";
}

SimulationFiles files_of(Row& row) {
  SimulationFiles files;
  files.workload = row.cells["workload"];
  files.system = row.cells["system"];
  files.network = row.cells["network"];
  files.memory = row.cells["memory"];
  files.groups = row.cells["comm_group"];
  files.backend = row.cells["backend"] == "aware" ? Backend::congestion_aware : Backend::congestion_unaware;
  std::istringstream flags(row.cells["extra_args"]);
  std::string flag;
  while (flags >> flag) {
    const std::string value = flag.substr(flag.find('=') + 1);
    if (flag.starts_with("--num-queues-per-dim=")) {
      files.flags.queues_per_dimension = static_cast<std::uint32_t>(std::stoul(value));
    }
    if (flag.starts_with("--rendezvous-protocol=")) { files.flags.rendezvous = value == "true"; }
  }
  return files;
}

// A network file that was overwritten after its rows were made: the number of ranks that printed is not the product of
// its dimensions. The last dimension is then the one that was changed.
std::string repaired(const std::string& network, std::uint32_t ranks, const fs::path& folder) {
  Warnings warnings;
  const auto read = read_network(network, Semantics::astra_sim, warnings);
  if (!read || read->ranks() == ranks) { return network; }
  std::uint32_t rest = ranks;
  std::ostringstream topology, count, bandwidth, latency;
  for (std::size_t i = 0; i < read->dimensions.size(); ++i) {
    const NetworkDimension& dimension = read->dimensions[i];
    constexpr std::array<const char*, 3> kNames = {"Ring", "FullyConnected", "Switch"};
    const bool last = i + 1 == read->dimensions.size();
    const char* comma = last ? "" : ", ";
    topology << kNames[static_cast<std::size_t>(dimension.topology)] << comma;
    count << (last ? rest : dimension.ranks) << comma;
    bandwidth << dimension.bytes_per_second / static_cast<double>(1U << 30U) << comma;
    latency << dimension.latency_ns << comma;
    rest /= dimension.ranks;
  }
  const std::string file = (folder / "repaired.yml").string();
  std::ofstream(file) << "topology: [" << topology.str() << "]\nnpus_count: [" << count.str() << "]\nbandwidth: ["
                      << bandwidth.str() << "]\nlatency: [" << latency.str() << "]\n";
  return file;
}

// What differs, or nothing.
std::string difference(Row& row, const fs::path& folder) {
  SimulationFiles files = files_of(row);
  const auto finish = cycles_of(row.cells["finish_cycles_per_rank"]);
  const auto exposed = cycles_of(row.cells["exposed_comm_cycles_per_rank"]);
  if (!finish.empty()) { files.network = repaired(files.network, static_cast<std::uint32_t>(finish.size()), folder); }
  const auto job = read_job(files);
  if (!job) { return job.error().text(); }
  const auto simulation = simulate(*job);
  if (!simulation) { return finish.empty() ? "" : simulation.error().text(); }
  if (simulation->ranks.size() != finish.size()) { return "number of ranks"; }
  for (std::size_t i = 0; i < finish.size(); ++i) {
    const auto& rank = simulation->ranks[i];
    if (rank.finish_ns == finish[i] && rank.exposed_comm_ns == exposed[i]) { continue; }
    std::ostringstream out;
    out << "rank " << i << ": " << rank.finish_ns << " (exposed " << rank.exposed_comm_ns << "), expected " << finish[i]
        << " (" << exposed[i] << ")";
    return out.str();
  }
  return "";
}

TEST(Published, finish_and_exposed_cycles_of_every_rank_are_those_of_the_original) {
  fs::path data;
  for (const char* place : {"../shared/data/astra-sim"}) {
    const fs::path at = fs::path(ORRERY_SOURCE_DATA_DIR).parent_path() / place;
    if (fs::exists(at / "results.csv")) { data = at; }
  }
  if (data.empty()) { GTEST_SKIP() << "no ../shared/data/astra-sim"; }
  const auto folder = unpacked(data / "inputs.tar.xz");
  ASSERT_TRUE(folder);
  const fs::path before = fs::current_path();
  fs::current_path(*folder);                         // paths in the files start there
  std::map<std::string, std::pair<int, int>> equal;  // of all
  for (Row& row : rows_of(data / "results.csv")) {
    const std::string wrong = difference(row, *folder);
    ++equal[row.group].second;
    equal[row.group].first += wrong.empty() ? 1 : 0;
    EXPECT_EQ(wrong, "") << row.name << " " << row.cells["backend"];
  }
  fs::current_path(before);
  int all = 0, rows = 0;
  for (const auto& [group, count] : equal) {
    std::cout << "  " << group << ": " << count.first << " of " << count.second << "\n";
    all += count.first;
    rows += count.second;
  }
  std::cout << "  all: " << all << " of " << rows << "\n";
}

}  // namespace
}  // namespace orrery::simulate
