// `orrery web`: a local page, and the same interface for programs.
#include <spawn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "apps/cli/commands.hpp"
#include "apps/cli/interrupt.hpp"
#include "apps/cli/plan_serve.hpp"
#include "apps/cli/terminal.hpp"
#include "apps/server/guard.hpp"
#include "apps/server/server.hpp"
#include "orrery/api/explore.hpp"
#include "orrery/core/text.hpp"
#include "orrery/report/page.hpp"

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

Result<server::Options> server_options(const Options& options) {
  server::Options read{.address = options.address, .port = 0, .token = options.token};
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

void open_browser(const std::string& url) {
  std::string program = "xdg-open", target = url;
  const std::array<char*, 3> arguments = {program.data(), target.data(), nullptr};
  pid_t child = 0;
  if (::posix_spawnp(&child, program.c_str(), nullptr, nullptr, arguments.data(), environ) != 0) {
    print_aside("note: no browser can be opened (xdg-open is missing)\n");
  }
}

Result<int> run(const Options& options) {
  ORRERY_TRY(read, server_options(options));
  read.chart_library = report::chart_library();
  if (!options.study.empty()) {
    ORRERY_TRY(page, api::study_page(options.study));
    read.study = std::filesystem::path(options.study).filename();
    read.study_page = [file = options.study] { return api::study_page(file); };
  }
  ORRERY_TRY(data, data_directory());
  server::Server web(read, served_commands());
  ORRERY_TRY(port, web.bind());
  const std::string shown = server::is_loopback(options.address) ? "localhost" : options.address;
  const std::string url =
      fmt::format("http://{}:{}/{}", shown, port, options.token.empty() ? "" : "?token=" + options.token);
  print(url + "\n");
  print_aside("Ctrl-C ends the server\n");
  if (options.open) { open_browser(url); }
  const InterruptFlag interrupt;
  std::thread serving([&web] { web.run(); });
  while (!InterruptFlag::is_set()) { std::this_thread::sleep_for(std::chrono::milliseconds(50)); }
  web.stop();
  serving.join();
  return 0;
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
