// `orrery trace convert`, `anonymize`, `timeline`: what writes files.
#include <fmt/format.h>

#include "apps/cli/commands.hpp"
#include "apps/cli/interrupt.hpp"
#include "apps/cli/terminal.hpp"
#include "apps/cli/trace.hpp"
#include "apps/cli/trace_text.hpp"
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

The suffix of --out is the form: .et (Chakra, the current schema), .jsonl (JSON lines, nothing lost either way), .dot
and .graphml (drawings), each with or without .gz. With several files the rank goes before the suffix: plain.0.jsonl.
A text workload becomes the traces of all its ranks: resnet.0.et to resnet.31.et.
Exit codes: 0 done, 2 bad input (nothing is left half-written), 3 internal error.
)";

constexpr const char* kAnonymizeFooter = R"(Examples
  orrery trace anonymize run.*.et --out plain.et

Kept: ids, types, dependencies, times, sizes and what else simulators read. Replaced: names of nodes and groups, equal
ones by equal ones. Removed: all else (shapes, comments, operator schemas, paths, what the file says of itself).
Exit codes: 0 done, 2 bad input, 3 internal error.
)";

constexpr const char* kTimelineFooter = R"(Examples
  orrery trace timeline run.*.et --out run.json
  orrery trace timeline run.0.et --out run.json.gz

For https://ui.perfetto.dev or chrome://tracing. Nodes without a start time are placed by dependencies and durations;
the file says so of each, and a note of how many.
Exit codes: 0 done, 2 bad input, 3 internal error.
)";

struct WriteArguments {
  std::string out;
  std::string fold;
};

using SharedWriteArguments = std::shared_ptr<WriteArguments>;

void declare_out(Command& command, const SharedWriteArguments& arguments, const std::string& doc) {
  command.option({"--out", "FILE", doc, std::string(kOutputGroup)},
                 [arguments](const std::string& file) { arguments->out = file; });
}

Result<void> need_out(const TraceArguments& read, const WriteArguments& write) {
  Failure failure;
  if (read.files.empty()) { failure.diagnostics.push_back({flag_place("FILE"), "is missing: which trace?"}); }
  if (write.out.empty()) { failure.diagnostics.push_back({flag_place("--out"), "is missing: where to?"}); }
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
  return fail(flag_place("--fold"), orrery::quoted(text) + " is no way to fold; name and depth=N are");
}

// Runs what writes, with its partial files removed when the program is stopped.
template <class Write>
Result<int> run(const TraceArguments& read, const WriteArguments& arguments, bool one_file, const Write& write) {
  if (auto ok = need_out(read, arguments); !ok) { return tl::make_unexpected(ok.error()); }
  const std::vector<std::string> one = {arguments.out};
  const PartialFiles partial(api::partial_files(one_file ? one : read.files, arguments.out));
  ORRERY_TRY(written, write());
  print_notes(written.notes);
  return 0;
}

// A text workload has its own flags, and a file per rank.
Result<int> run_text(const TraceArguments& read, const WriteArguments& write, const TextArguments& text) {
  if (auto ok = need_out(read, write); !ok) { return tl::make_unexpected(ok.error()); }
  if (!write.fold.empty()) { return fail(flag_place("--fold"), "is for drawings: fold what the workload becomes"); }
  if (read.tolerant) { return fail(flag_place("--tolerant"), "is for traces: a text workload is read whole or not"); }
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

}  // namespace

Command trace_convert_command() {
  Command command("trace convert", "Traces in another form: Chakra, JSON lines, Graphviz, GraphML.");
  const auto read = std::make_shared<TraceArguments>();
  const auto write = std::make_shared<WriteArguments>();
  declare_files(command, read, "FILE...", "traces");
  const auto text = std::make_shared<TextArguments>();
  declare_out(command, write, "what to write, in the form that its suffix says");
  command.option({"--fold", "HOW",
                  "drawings: one box for nodes with the same name but for numbers (name), or for the "
                  "nodes of a type within N levels (depth=N)",
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
  Command command("trace anonymize", "Traces without what identifies a model; structure, sizes and times stay.");
  const auto read = std::make_shared<TraceArguments>();
  const auto write = std::make_shared<WriteArguments>();
  declare_files(command, read, "FILE...", "traces");
  declare_out(command, write, "what to write: .et or .jsonl, with or without .gz");
  command.footer(kAnonymizeFooter);
  command.action([read, write] {
    return run(*read, *write, false, [&] { return api::trace_anonymize(read->files, write->out, read->options()); });
  });
  return command;
}

Command trace_timeline_command() {
  Command command("trace timeline", "Recorded times as a Chrome trace, for Perfetto.");
  const auto read = std::make_shared<TraceArguments>();
  const auto write = std::make_shared<WriteArguments>();
  declare_files(command, read, "FILE...", "traces");
  declare_out(command, write, "the Chrome trace to write, with or without .gz");
  command.footer(kTimelineFooter);
  command.action([read, write] {
    return run(*read, *write, true, [&] { return api::trace_timeline(read->files, write->out, read->options()); });
  });
  return command;
}

}  // namespace orrery::cli
