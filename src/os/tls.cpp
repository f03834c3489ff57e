#include "os/tls.hpp"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <string_view>
#include <utility>

#include "base/fd.hpp"

namespace weft {
inline namespace os {
namespace {

// OpenSSL would ask the terminal.
int no_pass_phrase(char* /*into*/, int /*size*/, int /*writing*/, void* /*user*/) { return -1; }

Status check(bool is_fine, std::string_view what, const std::string& file, std::string hint) {
  if (is_fine) return {};
  const std::string reason = take_tls_reason();
  return fail(Errc::io, {},
              fmt::format("cannot use {} \"{}\": {}", what, file,
                          reason.empty() ? "unknown reason" : reason),
              std::move(hint));
}

Status require_clients_of(SSL_CTX* context, const std::string& authorities) {
  WEFT_TRY_STATUS(trust_authorities(context, authorities));
  STACK_OF(X509_NAME)* const names = SSL_load_client_CA_file(authorities.c_str());
  WEFT_TRY_STATUS(check(names != nullptr, "the CA certificates", authorities,
                        "use certificates in PEM format"));
  SSL_CTX_set_client_CA_list(context, names);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return {};
}

}  // namespace

void FreeTlsContext::operator()(ssl_ctx_st* context) const { SSL_CTX_free(context); }

std::string take_tls_reason() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (ERR_SYSTEM_ERROR(code)) return errno_text(ERR_GET_REASON(code));
  const char* const reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason == nullptr ? std::string() : reason;
}

Status use_certificate(ssl_ctx_st* context, const std::string& certificate,
                       const std::string& key) {
  ERR_clear_error();
  SSL_CTX_set_default_passwd_cb(context, no_pass_phrase);
  WEFT_TRY_STATUS(check(SSL_CTX_use_certificate_chain_file(context, certificate.c_str()) == 1,
                        "the certificate", certificate,
                        "use the certificate with its chain in PEM format"));
  WEFT_TRY_STATUS(check(SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) == 1,
                        "the key", key,
                        "use the certificate's key in PEM format, without a password"));
  return check(SSL_CTX_check_private_key(context) == 1, "the key", key,
               "use the key of the certificate");
}

Status trust_authorities(ssl_ctx_st* context, const std::string& file) {
  ERR_clear_error();
  return check(SSL_CTX_load_verify_file(context, file.c_str()) == 1, "the CA certificates", file,
               "use certificates in PEM format");
}

Result<TlsContextHandle> make_tls_server(const std::string& certificate, const std::string& key,
                                         const std::string& client_ca) {
  ERR_clear_error();
  TlsContextHandle out(SSL_CTX_new(TLS_server_method()));
  if (!out) return fail(Errc::io, {}, "cannot initialize TLS: " + take_tls_reason());
  SSL_CTX* const context = out.get();
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET);
  WEFT_TRY_STATUS(use_certificate(context, certificate, key));
  if (!client_ca.empty()) WEFT_TRY_STATUS(require_clients_of(context, client_ca));
  return out;
}

}  // namespace os
}  // namespace weft
