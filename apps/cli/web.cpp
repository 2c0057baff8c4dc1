// `orrery web`: a local page, and the same interface for programs. The server is a program of its own, orrery-web
// (apps/server), which this command becomes after its checks.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "apps/cli/commands.hpp"
#include "apps/cli/plan_serve.hpp"
#include "apps/cli/terminal.hpp"
#include "apps/server/setup.hpp"
#include "orrery/api/report_page.hpp"
#include "orrery/core/text.hpp"

namespace orrery::cli {

namespace of_web {
namespace {

constexpr const char* kFooter = R"(Examples
  orrery web                       # then open http://localhost:8080/
  orrery web --port 0 --open       # any free port, opened in the browser
  orrery web --study results.db     # with the charts of a study
  curl -s localhost:8080/api/estimate -d '{"model": "llama-3.1-8b", "cluster": "dgx-h100",
       "devices": 64, "global-batch": 64, "seq": 8192}'

POST /api/COMMAND takes a JSON object of the command's flags without dashes and answers what --json
prints; GET /api lists commands and flags. Models and clusters are names of the catalogue, or documents
(the content of a config.json or of a cluster file as a JSON object). Files of this machine are neither
read nor written. Bad input answers 400 with {"error": "..."}. Ctrl-C ends the server.
)";

struct Options {
  std::string port = "8080";
  std::string address = "127.0.0.1";
  std::string token;
  std::string study;
  bool open = false;
};

// Commands that answer from the catalogue and the request alone.
constexpr std::array<std::string_view, 9> kServed = {"estimate", "plan", "simulate", "collective", "serve",
                                                     "campaign", "list", "describe", "validate"};
constexpr std::array<std::string_view, 5> kLong = {"plan", "simulate", "serve", "campaign", "validate"};

std::string without_dashes(const std::string& flag) {
  return flag.substr(std::min(flag.size(), flag.find_first_not_of('-')));
}

server::ServedFlag served_flag(const Flag& flag) {
  const bool is_toggle = flag.value.empty();
  return {.name = without_dashes(flag.name),
          .kind = is_toggle   ? server::FlagKind::toggle
                  : flag.many ? server::FlagKind::many
                              : server::FlagKind::value,
          .value = flag.value,
          .negation = flag.negation.empty() ? "" : without_dashes(flag.negation),
          .doc = flag.doc,
          .group = flag.group,
          .choices = flag.choices};
}

server::ServedCommand served_command(const Command& command) {
  server::ServedCommand one{
      command.name(), {}, {}, std::find(kLong.begin(), kLong.end(), command.name()) != kLong.end()};
  for (const Flag& flag : command.flags()) {
    if (flag.name != "--json") { one.flags.push_back(served_flag(flag)); }
  }
  for (const Flag& positional : command.positionals()) { one.positionals.push_back(positional.name); }
  return one;
}

std::vector<server::ServedCommand> served_commands() {
  std::vector<server::ServedCommand> served;
  for (const Command& command : all_commands()) {
    if (std::find(kServed.begin(), kServed.end(), command.name()) == kServed.end()) { continue; }
    served.push_back(served_command(command));
  }
  served.push_back(served_command(plan_serve_command()));
  served.back().task = "serve";
  return served;
}

Result<server::Setup> server_setup(const Options& options) {
  server::Setup read;
  read.address = options.address;
  read.token = options.token;
  read.opens_page = options.open;
  const char* end = options.port.data() + options.port.size();
  const auto number = std::from_chars(options.port.data(), end, read.port);
  if (number.ec != std::errc() || number.ptr != end || read.port < 0 || read.port > 65535) {
    return fail(flag_place("--port"), fmt::format("{} must be a number between 0 and 65535", quote(options.port)));
  }
  constexpr std::size_t kShortestToken = 16;
  if (!server::is_loopback(options.address) && options.token.size() < kShortestToken) {
    return fail(flag_place("--address"),
                fmt::format("{} can be reached from other machines: --token with at least {} characters is needed",
                            quote(options.address), kShortestToken));
  }
  const bool is_plain = std::all_of(options.token.begin(), options.token.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
  });
  if (!is_plain) { return fail(flag_place("--token"), "has other characters than letters, digits, - and _"); }
  return read;
}

constexpr const char* kServer = "orrery-web";

// Of the build, beside the program; of an installation, where programs are that users do not start.
Result<std::filesystem::path> server_program(const std::filesystem::path& program) {
  std::error_code error;
  const auto folder = program.parent_path();
  for (const auto& path : {folder / kServer, folder.parent_path() / "libexec/orrery" / kServer}) {
    if (std::filesystem::exists(path, error)) { return path; }
  }
  const bool is_preset = folder.parent_path().filename() == "build";
  return fail(fmt::format("the server of this page, {}, is missing; \"./dev build {} {}\" builds it",
                          quote((folder / kServer).string()), is_preset ? folder.filename().string() : "release",
                          kServer));
}

// An anonymous file with the text, open at its start; -1: there is none.
int anonymous_file(std::string_view text) {
  const int file = ::memfd_create(kServer, 0);
  while (file >= 0 && !text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0) {
      (void)::close(file);
      return -1;
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  if (file >= 0) { (void)::lseek(file, 0, SEEK_SET); }
  return file;
}

// Becomes the server; returns only if it cannot.
Failure become(const std::filesystem::path& server, const server::Setup& setup) {
  const int file = anonymous_file(server::packed(setup));
  if (file >= 0) {
    std::string name = kServer, descriptor = std::to_string(file);
    const std::array<char*, 3> arguments = {name.data(), descriptor.data(), nullptr};
    (void)::execv(server.c_str(), arguments.data());
  }
  const int code = errno;
  if (file >= 0) { (void)::close(file); }
  return Failure{{{{},
                   fmt::format("the server of this page, {}, cannot be started: {}", quote(server.string()),
                               std::generic_category().message(code))}}};
}

Result<int> run(const Options& options) {
  ORRERY_TRY(setup, server_setup(options));
  if (CapturedOutput::current() != nullptr) { return fail("the page is served from the command line only"); }
  if (!options.study.empty()) {
    // A name that begins with a dash would be a flag of the command that makes the page.
    setup.study = options.study.starts_with('-') ? "./" + options.study : options.study;
    if (const auto page = api::results_page({setup.study}); !page) { return tl::make_unexpected(page.error()); }
  }
  ORRERY_TRY(data, data_directory());
  std::error_code error;
  if (std::getenv("ORRERY_DATA") != nullptr) {  // NOLINT(concurrency-mt-unsafe): no thread runs
    // Commands run in folders of their own.
    (void)::setenv("ORRERY_DATA", std::filesystem::absolute(data, error).c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  }
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  setup.program = program.string();
  ORRERY_TRY(server, server_program(program));
  setup.commands = served_commands();
  return tl::make_unexpected(become(server, setup));
}

}  // namespace
}  // namespace of_web

Command web_command() {
  using namespace of_web;
  Command command("web",
                  "Serve a page on this machine: models, clusters and plans to change and compare in the browser.");
  const auto options = std::make_shared<Options>();
  command.option({"--port", "N", "TCP port; 0: any that is free [default 8080]", ""},
                 [options](const std::string& text) { options->port = text; });
  command.toggle({"--open", "", "open the page in the browser", ""}, [options](bool on) { options->open = on; });
  command.option({"--address", "IP",
                  "address to listen on; another than a loopback address needs --token [default 127.0.0.1]", ""},
                 [options](const std::string& text) { options->address = text; });
  command.option({"--token", "TEXT", "secret that each request must have (the printed address contains it)", ""},
                 [options](const std::string& text) { options->token = text; });
  command.option(
      {"--study", "DATABASE", "also show the results of a study (orrery explore), as they are at each look", ""},
      [options](const std::string& file) { options->study = file; });
  command.footer(kFooter);
  command.action([options] { return run(*options); });
  return command;
}

}  // namespace orrery::cli
