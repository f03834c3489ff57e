// TLS of the server's side, by OpenSSL.
#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"

struct ssl_ctx_st;

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
  // Fails: Errc::io, Errc::value with what OpenSSL says.
  static Result<TlsContext> load(const TlsFiles& files);
  ssl_ctx_st* get() const { return context_.get(); }

 private:
  struct Free {
    void operator()(ssl_ctx_st* context) const;
  };
  std::unique_ptr<ssl_ctx_st, Free> context_;
};

// What OpenSSL's queue of errors says, emptied.
std::string tls_error();

}  // namespace weft::serve
