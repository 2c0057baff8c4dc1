#include "apps/server/connections.hpp"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace orrery::server {

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

std::chrono::milliseconds until(Clock::time_point deadline) {
  return std::max(0ms, std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()));
}

using AddressOf = int (*)(int, sockaddr*, socklen_t*);

void read_address(int socket, AddressOf address_of, std::string& ip, int& port) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  auto* address = reinterpret_cast<sockaddr*>(&storage);  // NOLINT(*-reinterpret-cast): the interface of sockets
  if (address_of(socket, address, &size) != 0) { return; }
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> service{};
  if (::getnameinfo(address, size, host.data(), host.size(), service.data(), service.size(),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return;
  }
  ip = host.data();
  port = std::atoi(service.data());
}

}  // namespace

bool LimitedStream::has_event(short event, std::chrono::milliseconds patience) const {
  pollfd entry{socket_, event, 0};
  int events = 0;
  do { events = ::poll(&entry, 1, static_cast<int>(patience.count())); } while (events < 0 && errno == EINTR);
  return events > 0;
}

bool LimitedStream::is_open() const {
  char byte = 0;
  const ssize_t got = ::recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
}

bool LimitedStream::waits_for_request(const std::atomic<socket_t>& listening) {
  const auto end = Clock::now() + limits_.idle;
  while (begin_ == end_ && !has_event(POLLIN, std::min(100ms, until(end)))) {
    if (listening == INVALID_SOCKET || Clock::now() >= end) { return false; }
  }
  deadline_ = Clock::now() + limits_.time;
  left_ = limits_.bytes;
  return listening != INVALID_SOCKET;
}

bool LimitedStream::is_readable() const { return begin_ < end_ || has_event(POLLIN, until(deadline_)); }

bool LimitedStream::is_writable() const { return has_event(POLLOUT, limits_.write) && is_open(); }

ssize_t LimitedStream::read(char* to, std::size_t size) {
  if (left_ == 0) { return -1; }
  if (begin_ == end_) {
    if (!has_event(POLLIN, until(deadline_))) { return -1; }
    ssize_t got = 0;
    do { got = ::recv(socket_, buffer_.data(), buffer_.size(), 0); } while (got < 0 && errno == EINTR);
    if (got <= 0) { return got; }
    begin_ = 0;
    end_ = static_cast<std::size_t>(got);
  }
  const std::size_t taken = std::min({size, end_ - begin_, left_});
  std::memcpy(to, buffer_.data() + begin_, taken);
  begin_ += taken;
  left_ -= taken;
  return static_cast<ssize_t>(taken);
}

ssize_t LimitedStream::write(const char* from, std::size_t size) {
  if (!is_writable()) { return -1; }
  ssize_t sent = 0;
  do { sent = ::send(socket_, from, size, MSG_NOSIGNAL); } while (sent < 0 && errno == EINTR);
  return sent;
}

void LimitedStream::get_remote_ip_and_port(std::string& ip, int& port) const {
  read_address(socket_, [](int s, sockaddr* a, socklen_t* n) { return ::getpeername(s, a, n); }, ip, port);
}

void LimitedStream::get_local_ip_and_port(std::string& ip, int& port) const {
  read_address(socket_, [](int s, sockaddr* a, socklen_t* n) { return ::getsockname(s, a, n); }, ip, port);
}

bool Connections::process_and_close_socket(socket_t socket) {
  LimitedStream stream(socket, limits_);
  bool is_good = true, is_closed = false;
  for (int left = limits_.requests; left > 0 && is_good && !is_closed && stream.waits_for_request(svr_sock_); --left) {
    is_good = process_request(stream, left == 1, is_closed, nullptr);
  }
  ::shutdown(socket, SHUT_RDWR);
  ::close(socket);
  return is_good;
}

}  // namespace orrery::server
