#include "adapt/live/syslog_tls.hpp"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <algorithm>
#include <climits>
#include <system_error>

namespace weft::adapt::live {
namespace {

// What OpenSSL said first; leaves nothing for the next one to find.
std::string take_reason() {
  const unsigned long code = ::ERR_get_error();
  ::ERR_clear_error();
  if (ERR_SYSTEM_ERROR(code)) return std::generic_category().message(ERR_GET_REASON(code));
  const char* const reason = code != 0 ? ::ERR_reason_error_string(code) : nullptr;
  return reason != nullptr ? reason : "unknown reason";
}

std::unexpected<Error> file_error(std::string_view what, const std::string& file,
                                  std::string hint) {
  return fail(Errc::io, {}, fmt::format("cannot use {} \"{}\": {}", what, file, take_reason()),
              std::move(hint));
}

// A key that is locked is an error rather than a question at the terminal.
int no_password(char* /*into*/, int /*size*/, int /*writing*/, void* /*user*/) { return -1; }

Status trust_clients_of(SSL_CTX* context, const std::string& file) {
  STACK_OF(X509_NAME)* names = nullptr;
  if (::SSL_CTX_load_verify_locations(context, file.c_str(), nullptr) == 1)
    names = ::SSL_load_client_CA_file(file.c_str());
  if (names == nullptr)
    return file_error("the clients' authorities", file, "give certificates as PEM");
  ::SSL_CTX_set_client_CA_list(context, names);
  ::SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return {};
}

// Nothing is resumed, so sessions leave nothing behind; clients cannot make us sign again; one
// call reads one record.
void set_limits(SSL_CTX* context) {
  ::SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  ::SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  ::SSL_CTX_set_num_tickets(context, 0);
  ::SSL_CTX_set_options(context,
                        SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET);
  ::SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  ::SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
  ::SSL_CTX_set_default_passwd_cb(context, no_password);
}

}  // namespace

void TlsServer::Free::operator()(ssl_ctx_st* context) const { ::SSL_CTX_free(context); }
void TlsSession::Free::operator()(ssl_st* session) const { ::SSL_free(session); }

Result<TlsServer> TlsServer::open(const std::string& certificate, const std::string& key,
                                  const std::string& client_ca) {
  ::ERR_clear_error();
  Context context(::SSL_CTX_new(::TLS_server_method()));
  if (!context) return fail(Errc::io, {}, "cannot begin with TLS: " + take_reason());
  SSL_CTX* const raw = context.get();
  set_limits(raw);
  if (::SSL_CTX_use_certificate_chain_file(raw, certificate.c_str()) != 1)
    return file_error("the certificate", certificate, "give it and its chain as PEM");
  if (::SSL_CTX_use_PrivateKey_file(raw, key.c_str(), SSL_FILETYPE_PEM) != 1)
    return file_error("the key", key, "give the certificate's key as PEM, without a password");
  if (::SSL_CTX_check_private_key(raw) != 1)
    return file_error("the key", key, "give that of the certificate");
  if (!client_ca.empty()) WEFT_TRY_STATUS(trust_clients_of(raw, client_ca));
  return TlsServer(std::move(context));
}

Result<TlsSession> TlsServer::accept(int socket) const {
  ::ERR_clear_error();
  TlsSession::Session session(::SSL_new(context_.get()));
  if (!session || ::SSL_set_fd(session.get(), socket) != 1)
    return fail(Errc::io, {}, "cannot begin a TLS session: " + take_reason());
  ::SSL_set_accept_state(session.get());
  return TlsSession(std::move(session));
}

TlsSession::Read TlsSession::read(std::span<char> into) {
  ::ERR_clear_error();  // OpenSSL takes an old error for one of this call
  if (!ready_) {
    const int done = ::SSL_do_handshake(session_.get());
    if (done != 1) return {.state = failed(::SSL_get_error(session_.get(), done)), .size = 0};
    ready_ = true;
  }
  const auto room = static_cast<int>(std::min<std::size_t>(into.size(), INT_MAX));
  const int got = ::SSL_read(session_.get(), into.data(), room);
  if (got > 0) return {.state = State::data, .size = static_cast<std::size_t>(got)};
  return {.state = failed(::SSL_get_error(session_.get(), got)), .size = 0};
}

TlsSession::State TlsSession::failed(int code) {
  switch (code) {
    case SSL_ERROR_WANT_READ:
      return State::want_read;
    case SSL_ERROR_WANT_WRITE:
      return State::want_write;
    case SSL_ERROR_ZERO_RETURN:
      return State::end;
    case SSL_ERROR_SYSCALL:
      why_ = "the connection was reset";
      return State::failed;
    default: {
      const long verdict = ::SSL_get_verify_result(session_.get());
      why_ = take_reason();
      if (verdict != X509_V_OK)
        why_ += fmt::format(" ({})", ::X509_verify_cert_error_string(verdict));
      return State::failed;
    }
  }
}

void TlsSession::close() {
  ::ERR_clear_error();
  if (ready_) ::SSL_shutdown(session_.get());
  ::ERR_clear_error();
}

}  // namespace weft::adapt::live
