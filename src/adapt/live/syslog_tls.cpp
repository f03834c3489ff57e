#include "adapt/live/syslog_tls.hpp"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <algorithm>
#include <climits>

namespace weft::adapt::live {
void TlsSession::Free::operator()(ssl_st* session) const { ::SSL_free(session); }

Result<TlsServer> TlsServer::open(const std::string& certificate, const std::string& key,
                                  const std::string& client_ca) {
  WEFT_TRY(TlsContextHandle context, make_tls_server(certificate, key, client_ca));
  ::SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);
  ::SSL_CTX_clear_mode(context.get(), SSL_MODE_AUTO_RETRY);  // one call reads one record
  return TlsServer(std::move(context));
}

Result<TlsSession> TlsServer::accept(int socket) const {
  ::ERR_clear_error();
  TlsSession::Session session(::SSL_new(context_.get()));
  if (!session || ::SSL_set_fd(session.get(), socket) != 1)
    return fail(Errc::io, {}, "cannot start a TLS session: " + take_tls_reason());
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
      why_ = take_tls_reason();
      if (why_.empty()) why_ = "unknown reason";
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
