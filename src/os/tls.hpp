// What TLS servers and clients set up alike, on OpenSSL's contexts.
#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"

struct ssl_ctx_st;

namespace weft {
inline namespace os {

struct FreeTlsContext {
  void operator()(ssl_ctx_st* context) const;
};
using TlsContextHandle = std::unique_ptr<ssl_ctx_st, FreeTlsContext>;

// The first entry of this thread's queue of OpenSSL errors, the others of which follow from it; ""
// for an empty queue. The queue is empty afterwards: OpenSSL takes an old error for one of the next
// call.
std::string take_tls_reason();

// Sets the certificate that is shown to the other side, with its chain, and its key. PEM files; a
// key with a pass phrase is an error rather than a question at the terminal.
// Fails: Errc::io with the file and OpenSSL's reason.
Status use_certificate(ssl_ctx_st* context, const std::string& certificate, const std::string& key);

// Trusts the authorities of a PEM file. Fails: Errc::io with the file and OpenSSL's reason.
Status trust_authorities(ssl_ctx_st* context, const std::string& file);

// A server's context: TLS 1.2 and later, no session resumption (each connection proves itself), no
// renegotiation, no compression. `client_ca` "": clients need no certificate; else each needs one
// of these authorities. Fails: as use_certificate() and trust_authorities().
Result<TlsContextHandle> make_tls_server(const std::string& certificate, const std::string& key,
                                         const std::string& client_ca);

}  // namespace os
}  // namespace weft
