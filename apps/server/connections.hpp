// Connections of the server: httplib reads and answers requests, this file reads and writes the sockets. httplib's own
// streams have no limit on the number of headers of a request, nor on the time in which it must be complete.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <string>

#include <httplib.h>

namespace orrery::server {

// What one request may cost.
struct RequestLimits {
  std::size_t bytes = 0;               // of a request, its headers and body together
  std::chrono::milliseconds time{0};   // from its first byte to its last
  std::chrono::milliseconds write{0};  // in which the client must take a part of the answer
  std::chrono::milliseconds idle{0};   // between two requests on one connection
  int requests = 0;                    // on one connection
};

// One connection. Reading fails (-1) after the limits of the request that is being read.
class LimitedStream : public httplib::Stream {
 public:
  LimitedStream(int socket, RequestLimits limits) : socket_(socket), limits_(limits) {}

  // Whether the next request begins before `idle` has passed; its limits start then. False if the server stops.
  bool waits_for_request(const std::atomic<socket_t>& listening);

  [[nodiscard]] bool is_readable() const override;
  [[nodiscard]] bool is_writable() const override;
  ssize_t read(char* to, std::size_t size) override;
  ssize_t write(const char* from, std::size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  [[nodiscard]] socket_t socket() const override { return socket_; }

 private:
  [[nodiscard]] bool has_event(short event, std::chrono::milliseconds patience) const;
  [[nodiscard]] bool is_open() const;

  int socket_;
  RequestLimits limits_;
  std::chrono::steady_clock::time_point deadline_;
  std::size_t left_ = 0;  // bytes that the request may still have
  std::array<char, 4096> buffer_{};
  std::size_t begin_ = 0, end_ = 0;  // of what was received and not yet read
};

class Connections : public httplib::Server {
 public:
  explicit Connections(RequestLimits limits) : limits_(limits) {}

 private:
  bool process_and_close_socket(socket_t socket) override;

  RequestLimits limits_;
};

}  // namespace orrery::server
