// Who may do what: tokens, names on certificates, and roles.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace weft::serve {

// Roles do not include each other: a collector that delivers lines reads nothing.
enum class Role : std::uint8_t { read, ingest, operate };
inline constexpr std::size_t role_count = 3;
std::string_view to_text(Role role);

class Roles {
 public:
  constexpr Roles() = default;
  static constexpr Roles all() {
    return Roles().with(Role::read).with(Role::ingest).with(Role::operate);
  }
  constexpr Roles with(Role role) const {
    Roles out = *this;
    out.bits_ = static_cast<std::uint8_t>(bits_ | bit(role));
    return out;
  }
  constexpr bool has(Role role) const { return (bits_ & bit(role)) != 0; }

 private:
  static constexpr unsigned bit(Role role) { return 1U << static_cast<unsigned>(role); }
  std::uint8_t bits_ = 0;
};

struct Principal {
  std::string name;
  Roles roles;
};

// The people and tools that are let in. One a line, blank lines and what follows # aside:
//   NAME ROLE[,ROLE] SHA256-OF-THE-TOKEN-IN-HEX
//   NAME ROLE[,ROLE] certificate          whoever shows a certificate of that common name
// A name may stand on several lines, so that tokens can be changed one after the other.
class Tokens {
 public:
  // Fails: Errc::io, also for a file that others may read or change; Errc::parse and Errc::value
  // with every line that is wrong.
  static Result<Tokens> load(const std::string& path);
  static Result<Tokens> parse(std::string_view text, const std::string& file);

  // Whose token it is. Takes the same time whichever it is, or none.
  std::optional<Principal> of_token(std::string_view token) const;
  std::optional<Principal> of_certificate(std::string_view common_name) const;

  bool has_tokens() const;
  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    Principal principal;
    std::string digest;  // hex; "": of a certificate
  };
  std::vector<Entry> entries_;
};

// The token of an Authorization header: "Bearer TOKEN", or "Basic" with the token as the password
// (for browsers). None for anything else.
std::optional<std::string> token_of_header(std::string_view authorization);

}  // namespace weft::serve
