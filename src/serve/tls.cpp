#include "serve/tls.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <array>
#include <utility>

namespace weft::serve {
namespace {

Status check(int result, const std::string& file, const char* what, const char* hint) {
  if (result == 1) return {};
  return fail(Errc::value, {file}, std::string(what) + ": " + tls_error(), hint);
}

// OpenSSL would ask the terminal.
int no_pass_phrase(char*, int, int, void*) { return -1; }

Status load_client_ca(SSL_CTX* context, const std::string& file) {
  WEFT_TRY_STATUS(check(SSL_CTX_load_verify_file(context, file.c_str()), file,
                        "no certificates of clients' authorities", "give a PEM file"));
  if (auto* names = SSL_load_client_CA_file(file.c_str()); names != nullptr)
    SSL_CTX_set_client_CA_list(context, names);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return {};
}

}  // namespace

void TlsContext::Free::operator()(ssl_ctx_st* context) const { SSL_CTX_free(context); }

std::string tls_error() {
  std::string out;
  while (const unsigned long code = ERR_get_error()) {
    std::array<char, 256> text{};
    ERR_error_string_n(code, text.data(), text.size());
    out += (out.empty() ? "" : ", ") + std::string(text.data());
  }
  return out.empty() ? "no reason given" : out;
}

Result<TlsContext> TlsContext::load(const TlsFiles& files) {
  ERR_clear_error();
  TlsContext out;
  out.context_.reset(SSL_CTX_new(TLS_server_method()));
  SSL_CTX* context = out.get();
  if (context == nullptr) return fail(Errc::io, {}, "no TLS: " + tls_error());
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context,
                      SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_default_passwd_cb(context, no_pass_phrase);
  WEFT_TRY_STATUS(check(SSL_CTX_use_certificate_chain_file(context, files.certificate.c_str()),
                        files.certificate, "no certificate", "give a PEM file"));
  WEFT_TRY_STATUS(check(SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM),
                        files.key, "no private key", "give a PEM file without a pass phrase"));
  WEFT_TRY_STATUS(check(SSL_CTX_check_private_key(context), files.key, "not the certificate's key",
                        "give the pair"));
  if (!files.client_ca.empty()) WEFT_TRY_STATUS(load_client_ca(context, files.client_ca));
  return out;
}

}  // namespace weft::serve
