// Reads the files of a trace command. Private to the room.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "orrery/api/trace.hpp"
#include "orrery/trace/node_stream.hpp"

namespace orrery::api {

[[nodiscard]] trace::ReadOptions read_options(const TraceOptions& options);

// The facts of a file that was read.
[[nodiscard]] results::TraceFile trace_file(const std::string& path, trace::Format format,
                                            const trace::ReadReport& report, std::uint64_t nodes);

// Reads one file after another and calls use(position, graph, facts). Errors of all files are collected.
using UseGraph = std::function<Result<void>(std::size_t position, graph::Graph& graph, results::TraceFile facts)>;
[[nodiscard]] Result<void> for_each_graph(const std::vector<std::string>& files, const TraceOptions& options,
                                          const UseGraph& use);

// Adds errors to those before.
void collect(Failure& into, Failure failure);

// Reports how many bytes of the files are done.
class ReadProgress {
 public:
  ReadProgress(const std::vector<std::string>& files, const TraceOptions& options);

  void within(std::uint64_t bytes) const;  // of the file that is being read
  void next_file();

 private:
  const TraceOptions& options_;
  std::vector<std::uint64_t> sizes_;
  std::size_t file_ = 0;
  std::uint64_t done_ = 0, all_ = 0;
};

// "w.0.et: " before each of the notes.
[[nodiscard]] std::vector<std::string> placed_notes(const results::TraceFile& file);

}  // namespace orrery::api
