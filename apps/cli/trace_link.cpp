// `orrery trace link`.
#include <fmt/format.h>

#include "apps/cli/commands.hpp"
#include "apps/cli/interrupt.hpp"
#include "apps/cli/terminal.hpp"
#include "apps/cli/trace.hpp"
#include "orrery/api/profile.hpp"
#include "orrery/trace/output.hpp"

namespace orrery::cli {

namespace of_trace_link {
namespace {

constexpr const char* kFooter = R"(Examples
  orrery trace link --host host.json --device rank0.pt.trace.json.gz --out linked.et
  orrery trace link --host host.json --device rank0.pt.trace.json.gz --json

Operators are linked by the ids of their record functions where both files have them, else by order and names on each
thread; a host trace may cover fewer steps than the profile. Files of different processes are refused.
Exit codes: 0 done, 1 less than half of the operators are linked, 2 bad input, 3 internal error.
)";

struct Options {
  std::string host, device, out;
  bool json = false, tolerant = false;
};

Result<int> run(const Options& options) {
  Failure failure;
  for (const auto& [value, flag] : {std::pair{&options.host, "--host"}, {&options.device, "--device"}}) {
    if (value->empty()) { failure.diagnostics.push_back({flag_place(flag), "is missing; name a file"}); }
  }
  if (!failure.diagnostics.empty()) { return tl::make_unexpected(std::move(failure)); }
  std::vector<std::string> partials;
  if (std::string name = options.out.empty() ? std::string() : trace::partial_path(options.out); !name.empty()) {
    partials.push_back(std::move(name));
  }
  const PartialFiles partial(partials);
  api::TraceOptions reading;
  reading.tolerant = options.tolerant;
  ORRERY_TRY(link, api::profile_link(options.host, options.device, options.out, reading));
  print(options.json ? report::profile_link_json(link) : report::profile_link_text(link));
  return 2 * link.linked < link.operators ? 1 : 0;
}

}  // namespace
}  // namespace of_trace_link

Command trace_link_command() {
  using of_trace_link::Options;
  Command command("trace link",
                  "Link a PyTorch execution trace (host) with the Kineto profile (device) of the same process.");
  const auto options = std::make_shared<Options>();
  const std::string input = "Reading";
  command.option({"--host", "FILE", "PyTorch execution trace (JSON) [required]", input},
                 [options](const std::string& file) { options->host = file; });
  command.option({"--device", "FILE", "Kineto profile (Chrome trace JSON) [required]", input},
                 [options](const std::string& file) { options->device = file; });
  command.toggle({"--tolerant", "", "read truncated files up to their last whole entry", input},
                 [options](bool on) { options->tolerant = on; });
  command.option({"--out", "FILE", "Chakra graph to write: the operators with times, and their kernels; .et or .et.gz",
                  std::string(kOutputGroup)},
                 [options](const std::string& file) { options->out = file; });
  command.toggle(
      {"--json", "", "print one JSON document (orrery.trace-link/1) and nothing else", std::string(kOutputGroup)},
      [options](bool on) { options->json = on; });
  command.footer(of_trace_link::kFooter);
  command.action([options] { return of_trace_link::run(*options); });
  return command;
}

}  // namespace orrery::cli
