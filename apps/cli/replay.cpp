#include "apps/cli/replay.hpp"

#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "apps/cli/commands.hpp"
#include "apps/cli/terminal.hpp"
#include "orrery/api/profile_import.hpp"
#include "orrery/config/units_text.hpp"
#include "orrery/core/text.hpp"

namespace orrery::cli {

namespace of_replay {
namespace {

// "2", "2x", "0.5".
Result<double> factor_of(const std::string& flag, std::string text) {
  if (text.ends_with('x')) { text.pop_back(); }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || !std::isfinite(value) || value < 0 ||
      value > 1e6) {
    return fail(flag_place(flag), fmt::format("{} is not a factor of durations; valid: 0.5, 2, 2x", quote(text)));
  }
  return value;
}

// "compute=2x", "comm=0.5", "gemm=0.5", "kernel:TEXT=0.5".
Result<std::monostate> add_scale(const std::string& whole, profile::ReplayChange& change) {
  const std::size_t equals = whole.rfind('=');
  const std::string what = whole.substr(0, equals);
  if (equals == std::string::npos || what.empty()) {
    return fail(flag_place("--scale"),
                fmt::format("{} has no factor; valid: WHAT=X, such as compute=0.5, gemm=2x", quote(whole)));
  }
  ORRERY_TRY(factor, factor_of("--scale", whole.substr(equals + 1)));
  if (what == "compute" || what == "comm") {
    (what == "compute" ? change.compute : change.comm) *= factor;
    return std::monostate{};
  }
  constexpr std::string_view kByName = "kernel:";
  if (what.starts_with(kByName) && what.size() > kByName.size()) {
    change.kernels.push_back({std::nullopt, what.substr(kByName.size()), factor});
    return std::monostate{};
  }
  for (std::size_t i = 0; i < profile::kKernelClasses.size(); ++i) {
    if (what != profile::kKernelClasses[i]) { continue; }
    change.kernels.push_back({static_cast<profile::KernelClass>(i), {}, factor});
    return std::monostate{};
  }
  std::vector<std::string> valid = {"compute", "comm"};
  valid.insert(valid.end(), profile::kKernelClasses.begin(), profile::kKernelClasses.end());
  valid.emplace_back("kernel:TEXT");
  return fail(flag_place("--scale"), fmt::format("unknown kind of work {}; valid: {}", quote(what), join(valid, ", ")));
}

Result<std::uint64_t> natural(const std::string& text, const std::string& whole, const char* what) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    return fail(flag_place("--late"), fmt::format("{}: {} is not a {}; valid: RANK:TIME[@STEP], such as 1:3ms@2",
                                                  quote(whole), quote(text), what));
  }
  return value;
}

// "1:3ms", "1:3ms@2", "rank=1:3ms".
Result<profile::Lateness> late_of(const std::string& whole) {
  std::string text = whole.starts_with("rank=") ? whole.substr(5) : whole;
  profile::Lateness late;
  if (const std::size_t at = text.find('@'); at != std::string::npos) {
    ORRERY_TRY(step, natural(text.substr(at + 1), whole, "step"));
    late.step = step;
    text.resize(at);
  }
  const std::size_t colon = text.find(':');
  ORRERY_TRY(rank, natural(text.substr(0, colon), whole, "rank"));
  late.rank = rank;
  const auto time =
      config::parse_quantity<Seconds>(colon == std::string::npos ? std::string() : text.substr(colon + 1));
  if (!time) {
    return fail(flag_place("--late"),
                fmt::format("{} has no time; valid: RANK:TIME[@STEP], such as 1:3ms@2", quote(whole)));
  }
  constexpr double kLongest = 1e6;  // s: as the longest event of a profile
  if (time->value() < 0 || time->value() > kLongest) {
    return fail(flag_place("--late"),
                fmt::format("{} is not a valid time; valid: 0 to 1e6 s, such as 1:3ms@2", quote(whole)));
  }
  late.ns = std::llround(time->value() * 1e9);
  return late;
}

}  // namespace
}  // namespace of_replay

void declare_replay(Command& command, const std::shared_ptr<ReplayFlags>& flags) {
  const std::string group = "Changes of an imported profile";
  command.repeated({"--scale", "WHAT=X",
                    "multiply the time of compute, of comm (collectives on the wire), of a class of kernels (gemm, "
                    "attention, convolution, normalization, embedding, elementwise, reduction, copy, other), or of "
                    "kernels by name (kernel:TEXT); factors of one kernel are multiplied",
                    group},
                   [flags](const std::string& text) { flags->scale.push_back(text); });
  command.option({"--scale-compute", "X", "multiply the time of kernels and copies on the device", group},
                 [flags](const std::string& text) { flags->scale_compute = text; });
  command.option({"--scale-comm", "X", "multiply the time of collectives on the wire", group},
                 [flags](const std::string& text) { flags->scale_comm = text; });
  command.repeated({"--late", "RANK:TIME[@STEP]",
                    "delay a rank at the start of a step, such as 1:3ms@2 [default: its "
                    "first step]",
                    group},
                   [flags](const std::string& text) { flags->late.push_back(text); });
  command.toggle({"--common-start", "", "start all ranks at the same time", group},
                 [flags](bool on) { flags->common_start = on; });
}

Result<bool> is_replay(const ReplayFlags& flags, const std::vector<std::string>& workload) {
  const bool imported = !workload.empty() && api::is_imported_workload(workload);
  if (!imported && flags.any()) {
    const char* const flag = !flags.scale.empty()           ? "--scale"
                             : !flags.scale_compute.empty() ? "--scale-compute"
                             : !flags.scale_comm.empty()    ? "--scale-comm"
                             : !flags.late.empty()          ? "--late"
                                                            : "--common-start";
    return fail(flag_place(flag), "needs --workload with graphs that \"orrery trace import\" wrote");
  }
  return imported;
}

Result<int> run_replay(const ReplayFlags& flags, const std::vector<std::string>& workload, const std::string& cluster,
                       bool json) {
  api::ReplayOptions options;
  options.cluster = cluster;
  options.change.common_start = flags.common_start;
  if (!flags.scale_compute.empty()) {
    ORRERY_TRY(factor, of_replay::factor_of("--scale-compute", flags.scale_compute));
    options.change.compute = factor;
  }
  if (!flags.scale_comm.empty()) {
    ORRERY_TRY(factor, of_replay::factor_of("--scale-comm", flags.scale_comm));
    options.change.comm = factor;
  }
  for (const std::string& text : flags.scale) {
    ORRERY_TRY(added, of_replay::add_scale(text, options.change));
    (void)added;
  }
  for (const std::string& text : flags.late) {
    ORRERY_TRY(late, of_replay::late_of(text));
    options.change.late.push_back(late);
  }
  std::string data;
  if (!cluster.empty()) {
    ORRERY_TRY(folder, data_directory());
    data = folder;
  }
  ORRERY_TRY(replay, api::profile_replay(data, workload, options));
  print(json ? report::profile_replay_json(replay) : report::profile_replay_text(replay, terminal_style()));
  return 0;
}

}  // namespace orrery::cli
