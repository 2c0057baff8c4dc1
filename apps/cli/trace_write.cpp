// `orrery trace convert`, `anonymize`, `timeline`: commands that write files.
#include <fmt/format.h>

#include "apps/cli/commands.hpp"
#include "apps/cli/interrupt.hpp"
#include "apps/cli/terminal.hpp"
#include "apps/cli/trace.hpp"
#include "apps/cli/trace_text.hpp"
#include "orrery/api/profile_import.hpp"
#include "orrery/core/text.hpp"
#include "orrery/trace/output.hpp"

namespace orrery::cli {

namespace {

constexpr const char* kConvertFooter = R"(Examples
  orrery trace convert old.et --out new.et.gz
  orrery trace convert run.0.et --out run.jsonl
  orrery trace convert run.*.et --out plain.jsonl
  orrery trace convert run.0.et --fold name --out run.dot
  orrery trace convert run.0.et --fold depth=50 --out run.graphml
  orrery trace convert resnet.txt --dimensions 8,4 --out resnet

The suffix of --out selects the format: .et (Chakra, current schema), .jsonl (JSON lines, lossless in both directions),
.dot or .graphml (drawings), each with or without .gz or .zst. With several input files, the rank is inserted before the
suffix: plain.0.jsonl, plain.1.jsonl.
A text workload is converted to one trace per rank: resnet.0.et to resnet.31.et.
Exit codes: 0 done, 2 bad input (no incomplete file is left), 3 internal error.
)";

constexpr const char* kAnonymizeFooter = R"(Examples
  orrery trace anonymize run.*.et --out plain.et

Kept: ids, types, dependencies, times, sizes and the other attributes that simulators read.
Replaced: names of nodes and process groups; equal names stay equal, also between files.
Removed: everything else (shapes, comments, operator schemas, paths, metadata).
Exit codes: 0 done, 2 bad input, 3 internal error.
)";

constexpr const char* kTimelineFooter = R"(Examples
  orrery trace timeline run.*.et --out run.json
  orrery trace timeline run.0.et --out run.json.gz

Open the file in https://ui.perfetto.dev or chrome://tracing. Nodes without a recorded start time are placed by their
dependencies and durations; each is marked in the file, and a note gives their number.
Exit codes: 0 done, 2 bad input, 3 internal error.
)";

constexpr const char* kImportFooter = R"(Examples
  orrery trace import rank*.pt.trace.json.gz --out job --rows job
  orrery validate --data job.kernels.csv
  orrery trace import rank*.json host*.json --out job
  orrery trace import rank*.json --out job --rows job --command "estimate --model llama-3.1-8b ..."
  orrery simulate --workload job
  orrery simulate --workload job --scale comm=4 --scale gemm=0.5 --late 1:3ms

Waiting is derived, not copied: kernels wait for their stream, for other streams and for their launch; blocking calls for
the device; collectives for the last rank. The report states how much of the recorded waiting has a known cause, and how
far a replay without changes is from the record. What is guessed is marked in the graphs (attribute "uncertain").
Execution traces add shapes, process groups and waits to the profiles of the same processes; alone, they become graphs
without times. Files of other processes are refused.
Exit codes: 0 done, 2 bad input, 3 internal error.
)";

struct WriteArguments {
  std::string out;
  std::string fold;
  std::string rows;
  std::string command;
};

using SharedWriteArguments = std::shared_ptr<WriteArguments>;

void declare_out(Command& command, const SharedWriteArguments& arguments, const std::string& doc) {
  command.option({"--out", "FILE", doc, std::string(kOutputGroup)},
                 [arguments](const std::string& file) { arguments->out = file; });
}

Result<void> need_out(const TraceArguments& read, const WriteArguments& write) {
  Failure failure;
  if (read.files.empty()) { failure.diagnostics.push_back({flag_place("FILE"), "is missing; name a trace file"}); }
  if (write.out.empty()) { failure.diagnostics.push_back({flag_place("--out"), "is missing; name the file to write"}); }
  if (!failure.diagnostics.empty()) { return tl::make_unexpected(std::move(failure)); }
  return {};
}

Result<graph::Fold> fold_of(const std::string& text) {
  if (text.empty()) { return graph::Fold{}; }
  if (text == "name") { return graph::Fold{graph::Fold::By::name, 1}; }
  if (text.starts_with("depth=")) {
    ORRERY_TRY(levels, whole_number("--fold", text.substr(6), 1));
    return graph::Fold{graph::Fold::By::depth, levels};
  }
  return fail(flag_place("--fold"), quote(text) + " is not valid; use name or depth=N");
}

// Runs a command that writes files; incomplete files are removed if the program is interrupted.
template <class Write>
Result<int> run(const TraceArguments& read, const WriteArguments& arguments, bool one_file, const Write& write) {
  if (auto ok = need_out(read, arguments); !ok) { return tl::make_unexpected(ok.error()); }
  const std::vector<std::string> one = {arguments.out};
  const PartialFiles partial(api::partial_files(one_file ? one : read.files, arguments.out));
  ORRERY_TRY(written, write());
  print_notes(written.notes);
  return 0;
}

// A text workload has its own flags, and one output file per rank.
Result<int> run_text(const TraceArguments& read, const WriteArguments& write, const TextArguments& text) {
  if (auto ok = need_out(read, write); !ok) { return tl::make_unexpected(ok.error()); }
  if (!write.fold.empty()) {
    return fail(flag_place("--fold"), "applies to drawings only; convert the text workload to traces first");
  }
  if (read.tolerant) {
    return fail(flag_place("--tolerant"), "applies to traces only; a text workload with mistakes is always rejected");
  }
  ORRERY_TRY(options, text.options());
  ORRERY_TRY(files, api::text_workload_files(write.out, options));
  std::vector<std::string> partials;
  for (const std::string& file : files) {
    if (std::string name = trace::partial_path(file); !name.empty()) { partials.push_back(std::move(name)); }
  }
  const PartialFiles partial(partials);
  ORRERY_TRY(written, api::trace_import_text(read.files.front(), write.out, options));
  print_notes(written.notes);
  return 0;
}

Result<int> run_import(const TraceArguments& read, const WriteArguments& write) {
  if (auto ok = need_out(read, write); !ok) { return tl::make_unexpected(ok.error()); }
  if (!write.command.empty() && write.rows.empty()) {
    return fail(flag_place("--command"), "needs --rows, which writes the step to PREFIX.steps.csv");
  }
  const PartialFiles partial(api::partial_imports(read.files, write.out));
  ORRERY_TRY(made, api::profile_import(read.files, write.out, read.options()));
  if (made.ranks.empty() && !write.rows.empty()) {
    return fail(flag_place("--rows"), "needs Kineto profiles: execution traces have no times");
  }
  if (!write.rows.empty()) {
    for (const auto& [suffix, text] :
         {std::pair{".kernels.csv", &made.rows.kernels}, {".collectives.csv", &made.rows.collectives}}) {
      if (auto ok = write_file(write.rows + suffix, *text, flag_place("--rows")); !ok) {
        return tl::make_unexpected(ok.error());
      }
    }
  }
  if (!write.command.empty()) {
    const std::string steps = profile::step_rows(made.rows, write.command);
    if (auto ok = write_file(write.rows + ".steps.csv", steps, flag_place("--rows")); !ok) {
      return tl::make_unexpected(ok.error());
    }
  }
  print(read.json ? report::profile_import_json(made) : report::profile_import_text(made, terminal_style()));
  return 0;
}

}  // namespace

Command trace_convert_command() {
  Command command("trace convert",
                  "Convert traces to Chakra, JSON lines, Graphviz or GraphML, and text workloads to traces.");
  const auto read = std::make_shared<TraceArguments>();
  const auto write = std::make_shared<WriteArguments>();
  declare_files(command, read, "FILE...", "traces");
  const auto text = std::make_shared<TextArguments>();
  declare_out(command, write, "file to write; its suffix selects the format [required]");
  command.option({"--fold", "HOW",
                  "draw one box for all nodes whose names differ only in numbers (name), or for all nodes of "
                  "the same type within N levels (depth=N)",
                  "Drawings"},
                 [write](const std::string& how) { write->fold = how; });
  declare_text(command, text);
  command.footer(kConvertFooter);
  command.action([read, write, text]() -> Result<int> {
    ORRERY_TRY(is_text, text->apply_to(read->files));
    if (is_text) { return run_text(*read, *write, *text); }
    ORRERY_TRY(fold, fold_of(write->fold));
    return run(*read, *write, false,
               [&] { return api::trace_convert(read->files, write->out, fold, read->options()); });
  });
  return command;
}

Command trace_anonymize_command() {
  Command command("trace anonymize", "Remove from traces what identifies a model; structure, sizes and times stay.");
  const auto read = std::make_shared<TraceArguments>();
  const auto write = std::make_shared<WriteArguments>();
  declare_files(command, read, "FILE...", "traces");
  declare_out(command, write, "file to write: .et or .jsonl, with or without .gz or .zst [required]");
  command.footer(kAnonymizeFooter);
  command.action([read, write] {
    return run(*read, *write, false, [&] { return api::trace_anonymize(read->files, write->out, read->options()); });
  });
  return command;
}

Command trace_import_command() {
  Command command(
      "trace import",
      "Convert profiles of PyTorch (Kineto, execution traces) to Chakra graphs that can be replayed and changed.");
  const auto read = std::make_shared<TraceArguments>();
  const auto write = std::make_shared<WriteArguments>();
  declare_files(command, read, "FILE...",
                "Kineto profiles, one per rank; PyTorch execution traces of the same processes");
  command.option({"--out", "PREFIX", "graphs to write: PREFIX.<rank>.et [required]", std::string(kOutputGroup)},
                 [write](const std::string& prefix) { write->out = prefix; });
  command.option({"--rows", "PREFIX",
                  "write matrix products and collectives as measurements for validate and calibrate: "
                  "PREFIX.kernels.csv, PREFIX.collectives.csv",
                  std::string(kOutputGroup)},
                 [write](const std::string& prefix) { write->rows = prefix; });
  command.option({"--command", "TEXT",
                  "with --rows: the command that predicts the job, such as \"estimate --model ...\"; writes the step "
                  "as a measurement of it to PREFIX.steps.csv",
                  std::string(kOutputGroup)},
                 [write](const std::string& text) { write->command = text; });
  declare_json(command, read, "orrery.trace-import/1");
  command.footer(kImportFooter);
  command.action([read, write] { return run_import(*read, *write); });
  return command;
}

Command trace_timeline_command() {
  Command command("trace timeline", "Write recorded times as a Chrome trace, for Perfetto.");
  const auto read = std::make_shared<TraceArguments>();
  const auto write = std::make_shared<WriteArguments>();
  declare_files(command, read, "FILE...", "traces");
  declare_out(command, write, "Chrome trace to write: .json, with or without .gz or .zst [required]");
  command.footer(kTimelineFooter);
  command.action([read, write] {
    return run(*read, *write, true, [&] { return api::trace_timeline(read->files, write->out, read->options()); });
  });
  return command;
}

}  // namespace orrery::cli
