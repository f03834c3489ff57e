#include "serve/tls.hpp"

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <utility>

#include "base/text.hpp"

namespace weft::serve {
namespace {

constexpr std::size_t common_name_bytes_max = 128;

}  // namespace

std::optional<std::string> common_name(ssl_st* tls) {
  if (SSL_get_verify_result(tls) != X509_V_OK) return std::nullopt;
  const X509* certificate = SSL_get0_peer_certificate(tls);
  if (certificate == nullptr) return std::nullopt;
  const X509_NAME* subject = X509_get_subject_name(certificate);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at < 0) return std::nullopt;
  unsigned char* bytes = nullptr;
  const int size =
      ASN1_STRING_to_UTF8(&bytes, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
  if (size < 0) return std::nullopt;
  std::string name(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  OPENSSL_free(bytes);
  const bool is_printable =
      find_not_text(name) == std::string::npos && name.find_first_of("\t\r\n") == std::string::npos;
  if (name.empty() || name.size() > common_name_bytes_max || !is_printable) return std::nullopt;
  return name;
}

Result<TlsContext> TlsContext::load(const TlsFiles& files) {
  WEFT_TRY(TlsContextHandle context,
           make_tls_server(files.certificate, files.key, files.client_ca));
  SSL_CTX_set_options(context.get(), SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_mode(context.get(),
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  return TlsContext(std::move(context));
}

}  // namespace weft::serve
