// Who an agent is, and what it wants to hear before it answers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/text.hpp"

namespace weft::adapt::snmp {

struct Endpoint {
  std::string address;  // IPv4 or IPv6, no name: looking one up would wait
  std::uint16_t port = 161;
};

struct Credentials {
  enum class Version : std::uint8_t { v2c, v3 };
  enum class Auth : std::uint8_t { none, md5, sha, sha256, sha512 };
  enum class Priv : std::uint8_t { none, des, aes };
  Version version = Version::v2c;
  std::string community;  // v2c
  std::string user;       // v3
  Auth auth = Auth::none;
  std::string auth_password;  // of at least 8 bytes (RFC 3414)
  Priv priv = Priv::none;
  std::string priv_password;
};

struct Target {
  std::string device;  // as samples name it
  Endpoint agent;
  Credentials credentials;
};

// Reads CSV: device, address; optional port, version (2c, 3), community, user, auth (none, md5,
// sha, sha256, sha512), auth_password, priv (none, des, aes), priv_password. Fails with up to 100
// errors by line: an address that is none, a missing community, a short password, privacy without
// authentication, a duplicate device. No message shows a secret.
Result<std::vector<Target>> read_targets(std::string_view csv, const std::string& file);

// A v3 user from cells as read_targets takes them. Fails: Errc::value, with positions.
Result<Credentials> read_user(const Token& user, const Token& auth, const Token& auth_password,
                              const Token& priv, const Token& priv_password);

// Fails: Errc::value, at `where`.
Status check(const Endpoint& endpoint, const Where& where);
Status check(const Credentials& credentials, const Where& where);

}  // namespace weft::adapt::snmp
