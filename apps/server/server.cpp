#include "apps/server/server.hpp"

#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <exception>
#include <filesystem>
#include <optional>
#include <system_error>
#include <thread>

#include <fmt/format.h>
#include <httplib.h>
#include <nlohmann/json.hpp>

#include "apps/server/answers.hpp"
#include "apps/server/arguments.hpp"
#include "apps/server/assets.hpp"
#include "apps/server/child.hpp"
#include "apps/server/connections.hpp"
#include "apps/server/folder.hpp"
#include "apps/server/guard.hpp"
#include "apps/server/slots.hpp"
#include "apps/server/threads.hpp"
#include "orrery/core/text.hpp"

namespace orrery::server {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kLargestRequest = std::size_t{1} << 20;
constexpr std::size_t kLargestStudyPage = std::size_t{1} << 30;
constexpr std::size_t kLargestHeaders = std::size_t{64} << 10;
constexpr RequestLimits kRequestLimits = {kLargestRequest + kLargestHeaders, 30s, 10s, 5s, 1000};
constexpr int kBacklog = 4096;   // connections that wait to be accepted
constexpr auto kPatience = 60s;  // of a request for a place to run in
constexpr auto kShort = 30s, kLong = 600s;
constexpr const char* kJson = "application/json";
constexpr const char* kLines = "application/x-ndjson";
constexpr const char* kTokenCookie = "orrery_token";

std::string cookie_token(const std::string& cookies) {
  const std::string key = std::string(kTokenCookie) + "=";
  const std::size_t at = cookies.find(key);
  if (at == std::string::npos) { return ""; }
  return cookies.substr(at + key.size(), cookies.find(';', at) - at - key.size());
}

Caller caller_of(const httplib::Request& request) {
  Caller caller;
  caller.host = request.get_header_value("Host");
  if (request.has_header("Origin")) { caller.origin = request.get_header_value("Origin"); }
  caller.fetch_site = request.get_header_value("Sec-Fetch-Site");
  const std::string authorization = request.get_header_value("Authorization");
  if (authorization.starts_with("Bearer ")) {
    caller.token = authorization.substr(7);
  } else if (request.has_param("token")) {
    caller.token = request.get_param_value("token");
  } else {
    caller.token = cookie_token(request.get_header_value("Cookie"));
  }
  return caller;
}

void add_safety_headers(httplib::Response& response) {
  response.set_header("X-Content-Type-Options", "nosniff");
  response.set_header("X-Frame-Options", "DENY");
  response.set_header("Referrer-Policy", "no-referrer");
  response.set_header("Cross-Origin-Resource-Policy", "same-origin");
  response.set_header("Cache-Control", "no-store");
  response.set_header("Content-Security-Policy",
                      "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
                      "frame-ancestors 'none'; base-uri 'none'; form-action 'none'");
}

void answer(httplib::Response& response, const Answer& given) {
  response.status = given.status;
  response.set_content(given.body, kJson);
}

// Each connection and each command needs file descriptors.
void raise_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    (void)::setrlimit(RLIMIT_NOFILE, &limit);
  }
}

}  // namespace

class Server::State {
 public:
  explicit State(Setup setup)
      : setup_(std::move(setup)),
        http_(kRequestLimits),
        short_slots_(std::max(2, 2 * static_cast<int>(std::thread::hardware_concurrency()))),
        long_slots_(2) {}

  Result<int> bind();
  void run() { http_.listen_after_bind(); }
  void stop() {
    is_stopping_ = true;
    http_.stop();
  }

 private:
  void route();
  void serve_assets();
  void serve_study();
  [[nodiscard]] ChildResult study_page() const;
  void serve_commands();
  [[nodiscard]] std::string commands_json() const;
  void serve_command(const std::string& name);
  void serve(const ServedCommand& command, const std::string& body, const httplib::Request& request,
             httplib::Response& response);
  // Runs the command with arguments that were read.
  [[nodiscard]] Answer run_command(const ServedCommand& command, const Arguments& arguments, const ChildWatch& watch);
  // Answers line by line while the command runs.
  void stream(const ServedCommand& command, Arguments arguments, httplib::Response& response);

  Setup setup_;
  std::unique_ptr<Guard> guard_;
  Connections http_;
  Slots short_slots_, long_slots_;
  std::atomic<bool> is_stopping_ = false;
  int socket_ = -1;
};

Result<int> Server::State::bind() {
  raise_file_limit();
  http_.new_task_queue = [] { return new ThreadPerConnection(); };  // NOLINT(*-owning-memory): httplib deletes it
  http_.set_payload_max_length(kLargestRequest);
  http_.set_keep_alive_max_count(static_cast<std::size_t>(kRequestLimits.requests));
  http_.set_read_timeout(5s);
  http_.set_write_timeout(10s);
  http_.set_tcp_nodelay(true);
  // No SO_REUSEPORT, which httplib sets: a second server on the port is an error, not a lottery.
  http_.set_socket_options([this](socket_t socket) {
    const int yes = 1;
    (void)::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    socket_ = socket;
  });
  errno = 0;
  const bool any = setup_.port == 0;
  const int port = any ? http_.bind_to_any_port(setup_.address) : setup_.port;
  const bool bound = any ? port > 0 : http_.bind_to_port(setup_.address, setup_.port);
  if (!bound) {
    const int code = errno;
    return fail(
        Place{"", 0, 0, "--port"},
        fmt::format("{}: {}:{} cannot be used{}", setup_.port, setup_.address, setup_.port,
                    code == 0 ? "; try another port, or 0 for any" : ": " + std::generic_category().message(code)));
  }
  if (socket_ >= 0) { (void)::listen(socket_, kBacklog); }  // httplib's own backlog is 5
  setup_.port = port;
  guard_ = std::make_unique<Guard>(setup_.address, port, setup_.token);
  route();
  return port;
}

void Server::State::route() {
  using Handled = httplib::Server::HandlerResponse;
  http_.set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
    add_safety_headers(response);
    if (const auto why = guard_->refusal(caller_of(request))) {
      answer(response, error_answer(403, *why));
      return Handled::Handled;
    }
    if (!setup_.token.empty() && request.has_param("token")) {
      response.set_header("Set-Cookie",
                          fmt::format("{}={}; HttpOnly; SameSite=Strict; Path=/", kTokenCookie, setup_.token));
    }
    return Handled::Unhandled;
  });
  http_.set_error_handler([](const httplib::Request& request, httplib::Response& response) {
    if (response.body.empty()) {
      answer(response, error_answer(response.status, reason_of(response.status, request.path)));
    }
  });
  http_.set_exception_handler([](const httplib::Request&, httplib::Response& response, std::exception_ptr thrown) {
    try {
      std::rethrow_exception(std::move(thrown));
    } catch (const std::exception& error) { answer(response, error_answer(500, error.what())); }
  });
  serve_assets();
  if (!setup_.study.empty()) { serve_study(); }
  serve_commands();
}

void Server::State::serve_assets() {
  for (const Asset& asset : assets()) {
    http_.Get(asset.path, [asset](const httplib::Request&, httplib::Response& response) {
      response.set_content(asset.content.data(), asset.content.size(), std::string(asset.type));
    });
  }
}

ChildResult Server::State::study_page() const {
  ChildLimits limits;
  limits.time = kLong;
  limits.output = kLargestStudyPage;
  ChildWatch watch;
  watch.is_wanted = [this] { return !is_stopping_; };
  return run_child(setup_.program, {"report", setup_.study, "--out", "/dev/stdout"}, ".", limits, watch);
}

// The page has its script, its style and its data inside, and is shown in a frame of this server's own page.
void Server::State::serve_study() {
  http_.Get("/study", [this](const httplib::Request&, httplib::Response& response) {
    const Slot slot(short_slots_, kPatience);
    if (!slot.is_taken()) {
      return answer(response, error_answer(503, "too many requests are being answered; try again"));
    }
    const ChildResult report = study_page();
    if (report.end != ChildResult::End::exited || report.code != 0) {
      Answer failed = answer_of(report, true);
      if (failed.status == 400) { failed.status = 500; }  // no mistake of the request
      return answer(response, failed);
    }
    response.headers.erase("X-Frame-Options");
    response.headers.erase("Content-Security-Policy");
    response.set_header(
        "Content-Security-Policy",
        "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
        "frame-ancestors 'self'; base-uri 'none'; form-action 'none'");
    response.set_content(report.out, "text/html");
  });
}

void Server::State::serve_commands() {
  http_.Get("/api", [this](const httplib::Request&, httplib::Response& response) {
    response.set_content(commands_json(), kJson);
  });
  for (const ServedCommand& command : setup_.commands) {
    if (command.task.empty()) { serve_command(command.name); }
  }
}

namespace {

// The body as it was sent, whatever type it claims: httplib itself refuses more than 8 KiB of what curl -d sends
// (application/x-www-form-urlencoded). A body of several parts is empty. Nothing: the response has the error's status.
std::optional<std::string> body_of(const httplib::Request& request, httplib::Response& response,
                                   const httplib::ContentReader& reader) {
  std::string body;
  bool is_too_large = false;
  const auto add = [&](const char* data, std::size_t size) {
    is_too_large = is_too_large || body.size() + size > kLargestRequest;
    if (!is_too_large) { body.append(data, size); }
    return true;  // the rest is read, so that the connection's next request starts at its start
  };
  const auto drop = [](const char*, std::size_t) { return true; };
  const bool is_read = request.is_multipart_form_data()
                           ? reader([](const httplib::MultipartFormData&) { return true; }, drop)
                           : reader(add);
  if (is_too_large) { response.status = 413; }
  if (!is_read || is_too_large) { return std::nullopt; }
  return body;
}

}  // namespace

void Server::State::serve_command(const std::string& name) {
  std::vector<const ServedCommand*> forms;
  for (const ServedCommand& command : setup_.commands) {
    if (command.name == name) { forms.push_back(&command); }
  }
  const std::string path = "/api/" + name;
  http_.Post(path, [this, forms](const httplib::Request& request, httplib::Response& response,
                                 const httplib::ContentReader& reader) {
    const auto body = body_of(request, response, reader);
    if (body) { serve(form_of(forms, *body), *body, request, response); }
  });
  const auto refuse = [name](const httplib::Request&, httplib::Response& response) {
    response.set_header("Allow", "POST");
    answer(response, error_answer(405, fmt::format("/api/{} takes POST with a JSON object of flags", name)));
  };
  http_.Get(path, refuse);
  http_.Put(path, refuse);
  http_.Patch(path, refuse);
  http_.Delete(path, refuse);
  http_.Options(path, refuse);
}

std::string Server::State::commands_json() const {
  auto commands = nlohmann::ordered_json::array();
  for (const ServedCommand& command : setup_.commands) {
    auto flags = nlohmann::ordered_json::array();
    for (const ServedFlag& flag : command.flags) {
      flags.push_back({{"name", flag.name},
                       {"kind", flag.kind == FlagKind::toggle ? "toggle"
                                : flag.kind == FlagKind::many ? "many"
                                                              : "value"},
                       {"value", flag.value},
                       {"doc", flag.doc},
                       {"group", flag.group},
                       {"choices", flag.choices}});
    }
    nlohmann::ordered_json one = {{"name", command.name}};
    if (!command.task.empty()) { one["task"] = command.task; }
    one["positionals"] = command.positionals;
    one["flags"] = std::move(flags);
    commands.push_back(std::move(one));
  }
  nlohmann::ordered_json all = {{"schema", "orrery.web/1"}, {"commands", std::move(commands)}};
  if (!setup_.study.empty()) { all["study"] = std::filesystem::path(setup_.study).filename().string(); }
  return all.dump() + "\n";
}

void Server::State::serve(const ServedCommand& command, const std::string& body, const httplib::Request& request,
                          httplib::Response& response) {
  auto arguments = arguments_of(command, body);
  if (!arguments) { return answer(response, error_answer(400, message_of(arguments.error()))); }
  if (request.get_header_value("Accept").find(kLines) != std::string::npos) {
    return stream(command, std::move(*arguments), response);
  }
  ChildWatch watch;
  watch.is_wanted = [this] { return !is_stopping_; };
  answer(response, run_command(command, *arguments, watch));
}

Answer Server::State::run_command(const ServedCommand& command, const Arguments& arguments, const ChildWatch& watch) {
  const Slot slot(command.is_long ? long_slots_ : short_slots_, kPatience);
  if (!slot.is_taken()) { return error_answer(503, "too many requests are being answered; try again"); }
  const PrivateFolder folder;
  for (const auto& [name, text] : arguments.documents) { folder.write(name, text); }
  auto values = arguments.values;
  values.insert(values.begin(), command.name);
  const bool is_text =
      std::any_of(values.begin(), values.end(), [](const auto& v) { return v.starts_with("--emit="); });
  if (!is_text) { values.emplace_back("--json"); }
  ChildLimits limits;
  limits.time = command.is_long ? kLong : kShort;
  const Answer answer = answer_of(run_child(setup_.program, values, folder.path(), limits, watch), is_text);
  return arguments.wants_timeline ? with_timeline(answer, folder.read(kTimelineFile)) : answer;
}

void Server::State::stream(const ServedCommand& command, Arguments arguments, httplib::Response& response) {
  const auto run = [this, &command, arguments = std::move(arguments)](std::size_t, httplib::DataSink& sink) {
    const auto send = [&sink](const std::string& line) { return sink.write(line.data(), line.size()); };
    ChildWatch watch;
    watch.is_wanted = [this, &sink] { return !is_stopping_ && sink.is_writable(); };
    watch.line = [&send](std::string_view line) {
      if (const auto progress = progress_line(line)) { send(*progress); }
    };
    send(final_line(run_command(command, arguments, watch)));
    sink.done();
    return true;
  };
  response.set_chunked_content_provider(kLines, run);
}

Server::Server(Setup setup) : state_(std::make_unique<State>(std::move(setup))) {}
Server::~Server() = default;
Result<int> Server::bind() { return state_->bind(); }
void Server::run() { state_->run(); }
void Server::stop() { state_->stop(); }

}  // namespace orrery::server
