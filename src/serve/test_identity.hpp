// For tests: keys and certificates, made on the spot.
#pragma once

#include <doctest/doctest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>

#include "base/test_folder.hpp"

namespace weft::serve::testing {

struct Free {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(BIO* bio) const { BIO_free(bio); }
};

// A key and its certificate, signed by an authority or by itself.
class Identity {
 public:
  Identity(const TestFolder& folder, const std::string& file, const std::string& name,
           const Identity* authority = nullptr, long valid_s = 3600,
           const std::string& alternatives = {}, const std::string& usage = {})
      : path_(folder.file(file)), key_(EVP_EC_gen("P-256")), certificate_(X509_new()) {
    X509* to = certificate_.get();
    X509_set_version(to, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(to),
                     1 + static_cast<long>(std::hash<std::string>()(file) % 1'000'000));
    X509_gmtime_adj(X509_getm_notBefore(to), -7200);
    X509_gmtime_adj(X509_getm_notAfter(to), valid_s);
    X509_set_pubkey(to, key_.get());
    if (!name.empty())
      X509_NAME_add_entry_by_txt(X509_get_subject_name(to), "CN", MBSTRING_UTF8,
                                 reinterpret_cast<const unsigned char*>(name.data()),
                                 static_cast<int>(name.size()), -1, 0);
    const Identity& signer = authority == nullptr ? *this : *authority;
    X509_set_issuer_name(to, X509_get_subject_name(signer.certificate_.get()));
    if (authority == nullptr) add(NID_basic_constraints, "critical,CA:TRUE");
    if (!alternatives.empty()) add(NID_subject_alt_name, alternatives);
    if (!usage.empty()) add(NID_key_usage, usage);
    X509_sign(to, signer.key_.get(), EVP_sha256());
    const std::unique_ptr<BIO, Free> pem(BIO_new_file((path_ + ".crt").c_str(), "w"));
    PEM_write_bio_X509(pem.get(), to);
    const std::unique_ptr<BIO, Free> key(BIO_new_file((path_ + ".key").c_str(), "w"));
    PEM_write_bio_PrivateKey(key.get(), key_.get(), nullptr, nullptr, 0, nullptr, nullptr);
  }
  std::string certificate() const { return path_ + ".crt"; }
  std::string key() const { return path_ + ".key"; }
  X509* get() const { return certificate_.get(); }
  EVP_PKEY* key_pair() const { return key_.get(); }

 private:
  void add(int kind, const std::string& value) {
    X509_EXTENSION* made = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str());
    REQUIRE(made != nullptr);
    X509_add_ext(certificate_.get(), made, -1);
    X509_EXTENSION_free(made);
  }

  std::string path_;
  std::unique_ptr<EVP_PKEY, Free> key_;
  std::unique_ptr<X509, Free> certificate_;
};

// A client's side that trusts `authority` and shows `own`, where there is one.
inline std::unique_ptr<SSL_CTX, Free> client_context(const Identity& authority,
                                                     const Identity* own) {
  std::unique_ptr<SSL_CTX, Free> out(SSL_CTX_new(TLS_client_method()));
  SSL_CTX_load_verify_file(out.get(), authority.certificate().c_str());
  SSL_CTX_set_verify(out.get(), SSL_VERIFY_PEER, nullptr);
  if (own != nullptr) {
    REQUIRE(SSL_CTX_use_certificate_file(out.get(), own->certificate().c_str(), SSL_FILETYPE_PEM) ==
            1);
    REQUIRE(SSL_CTX_use_PrivateKey_file(out.get(), own->key().c_str(), SSL_FILETYPE_PEM) == 1);
  }
  return out;
}

}  // namespace weft::serve::testing
