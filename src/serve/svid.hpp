// SPIFFE identities: names of workloads on X.509 certificates and in JSON web tokens.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/timestamp.hpp"

struct ssl_st;
struct x509_st;

namespace weft::serve {

// "spiffe://DOMAIN/PATH" as the SPIFFE ID standard has it: a domain of a-z 0-9 . - _, segments of
// letters, digits and . - _, none of them "." or "..", no slash at the end, at most 2,048 bytes.
bool is_spiffe_id(std::string_view text);

// The identity of an X.509-SVID: its one URI among the alternative names. None for certificates
// that are none: several URIs, an authority's, without the key usage digitalSignature or with one
// that signs certificates or revocations. The chain is not looked at.
std::optional<std::string> spiffe_id_of_certificate(x509_st* certificate);
// The same of a client whose certificate was verified.
std::optional<std::string> spiffe_id_of(ssl_st* tls);

// Three pieces with dots between them.
bool looks_like_jwt(std::string_view token);

// Public keys that sign JWT-SVIDs: a SPIFFE trust bundle, which is a JWK set (RFC 7517).
class JwtKeys {
 public:
  // Fails: Errc::io; Errc::parse and Errc::value with what is wrong. Keys whose use is another than
  // jwt-svid are passed over, but not all may be.
  static Result<JwtKeys> load(const std::string& path);
  static Result<JwtKeys> parse(std::string_view text, const std::string& file);

  // The SPIFFE ID that the token is about (its `sub`). The signature (RS, PS, ES; 256, 384, 512)
  // must be of the key that it names, `aud` hold the audience, `exp` lie ahead, `nbf` and `iat` not
  // ahead by more than a minute. Fails: Errc::value with what is wrong; never says more than the
  // bearer knows.
  Result<std::string> verify(std::string_view token, std::string_view audience,
                             Timestamp now) const;

 private:
  struct Key;
  std::vector<std::shared_ptr<const Key>> keys_;
};

}  // namespace weft::serve
