#include "apps/server/guard.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include <fmt/format.h>

#include "orrery/core/text.hpp"

namespace orrery::server {

namespace {

// Takes as long for any wrong token as for the right one.
bool same_secret(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned>(static_cast<unsigned char>(a[i]) ^
                                        static_cast<unsigned char>(b.empty() ? '\0' : b[i % b.size()]));
  }
  return difference == 0;
}

}  // namespace

Guard::Guard(std::string address, int port, std::string token)
    : address_(std::move(address)), port_(port), token_(std::move(token)) {}

bool Guard::is_own_host(std::string_view host) const {
  const std::array<std::string, 4> names = {"localhost", "127.0.0.1", "[::1]", address_};
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return host == fmt::format("{}:{}", name, port_); });
}

std::optional<std::string> Guard::refusal(const Caller& caller) const {
  if (token_.empty() && !is_own_host(caller.host)) {
    return fmt::format("the Host {} is not this server; open http://localhost:{}/", quote(caller.host), port_);
  }
  if (caller.origin && *caller.origin != "http://" + caller.host) {
    return fmt::format("requests from the page of another site ({}) are refused", quote(*caller.origin));
  }
  if (caller.fetch_site == "cross-site") { return "requests from the page of another site are refused"; }
  if (!token_.empty() && !same_secret(token_, caller.token)) {
    return "the token is missing or wrong; the address that \"orrery web\" prints contains it";
  }
  return std::nullopt;
}

}  // namespace orrery::server
