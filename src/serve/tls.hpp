// TLS of the server's side, by OpenSSL.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/result.hpp"
#include "os/tls.hpp"

struct ssl_st;

namespace weft::serve {

// Paths of PEM files.
struct TlsFiles {
  std::string certificate;  // with the chain behind it
  std::string key;          // without a pass phrase
  std::string client_ca;    // "": clients need no certificate; else they all need one of these
};

class TlsContext {
 public:
  // TLS 1.2 and up, no session resumption (each connection proves itself).
  // Fails: as make_tls_server().
  static Result<TlsContext> load(const TlsFiles& files);
  ssl_ctx_st* get() const { return context_.get(); }

 private:
  explicit TlsContext(TlsContextHandle context) : context_(std::move(context)) {}

  TlsContextHandle context_;
};

// The common name of the client's certificate, which was verified; none where there is no such
// certificate, or it names nobody in printable characters.
std::optional<std::string> common_name(ssl_st* tls);

}  // namespace weft::serve
