// Who may do what: tokens, names on certificates, and roles.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/timestamp.hpp"
#include "serve/svid.hpp"

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
  std::string tenant;  // what is of other tenants, or of none, is closed to it; "": of nobody
};

// The people and tools that are let in. One a line, blank lines and what follows # aside:
//   NAME ROLE[,ROLE] SHA256-OF-THE-TOKEN-IN-HEX
//   NAME ROLE[,ROLE] certificate          whoever shows a certificate of that common name
//   SPIFFE-ID ROLE[,ROLE] svid            whoever shows an X.509-SVID or a JWT-SVID of that name
// and behind it, perhaps, tenant=NAME.
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
  // Of a SPIFFE ID that was verified.
  std::optional<Principal> of_svid(std::string_view id) const;
  // Bearers of JWT-SVIDs of these keys for that audience are let in, too.
  void trust(JwtKeys keys, std::string audience);
  // Whose JWT it is. Fails: as JwtKeys::verify(); Errc::unsupported where no keys are trusted.
  Result<Principal> of_jwt(std::string_view token, Timestamp now) const;

  bool has_tokens() const;  // or trusts keys of JWT-SVIDs
  std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    Principal principal;
    std::string digest;  // hex; "": of a certificate or SVID
    bool is_svid = false;
  };
  // What is wrong with it joins the errors.
  Entry parse_entry(const std::vector<std::string_view>& words, const Where& where,
                    Errors& errors) const;

  std::vector<Entry> entries_;
  std::optional<JwtKeys> keys_;
  std::string audience_;
};

// The token of an Authorization header: "Bearer TOKEN", or "Basic" with the token as the password
// (for browsers). None for anything else.
std::optional<std::string> token_of_header(std::string_view authorization);

}  // namespace weft::serve
