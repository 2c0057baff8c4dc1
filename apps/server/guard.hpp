// Who may talk to the server. A page of another site must not reach it through the user's browser: neither by a request
// across sites (its Origin is foreign) nor by a name that it lets point to this machine (its Host is foreign: DNS
// rebinding).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace orrery::server {

struct Caller {
  std::string host;                   // header Host
  std::optional<std::string> origin;  // header Origin; browsers send it with every POST
  std::string fetch_site;             // header Sec-Fetch-Site; empty: the client sends none
  std::string token;                  // of Authorization or of the cookie; empty: none
};

class Guard {
 public:
  // `address`: that the server is bound to. `token` empty: none is needed, which is for loopback addresses only.
  Guard(std::string address, int port, std::string token);

  // Why the caller is refused; nothing: it is let in.
  [[nodiscard]] std::optional<std::string> refusal(const Caller& caller) const;

 private:
  [[nodiscard]] bool is_own_host(std::string_view host) const;

  std::string address_;
  int port_;
  std::string token_;
};

}  // namespace orrery::server
