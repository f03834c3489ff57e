// For tests: keys and certificates, made on the spot.
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <functional>
#include <memory>
#include <string>

#include "base/check.hpp"
#include "base/test_folder.hpp"

namespace weft::adapt::live::test {

// A key and its certificate in PEM files, signed by an authority or by itself.
class TestIdentity {
 public:
  struct Options {
    const TestIdentity* authority = nullptr;  // none: an authority itself
    std::string name = "weft";                // the common name
    std::string alternatives;                 // "DNS:localhost,IP:127.0.0.1"; "": none
    std::string usage;                        // "serverAuth"; "": any
    long valid_s = 3'600;                     // from now on; below 0: it is over
  };
  TestIdentity(const TestFolder& folder, const std::string& file, const Options& options)
      : path_(folder.file(file)), key_(EVP_EC_gen("P-256")), certificate_(X509_new()) {
    X509* const to = certificate_.get();
    X509_set_version(to, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(to),
                     1 + static_cast<long>(std::hash<std::string>()(path_) % 1'000'000));
    X509_gmtime_adj(X509_getm_notBefore(to), -7'200);
    X509_gmtime_adj(X509_getm_notAfter(to), options.valid_s);
    X509_set_pubkey(to, key_.get());
    X509_NAME_add_entry_by_txt(X509_get_subject_name(to), "CN", MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(options.name.c_str()), -1, -1,
                               0);
    const TestIdentity& signer = options.authority == nullptr ? *this : *options.authority;
    X509_set_issuer_name(to, X509_get_subject_name(signer.certificate_.get()));
    if (options.authority == nullptr) add(NID_basic_constraints, "critical,CA:TRUE");
    add(NID_subject_alt_name, options.alternatives);
    add(NID_ext_key_usage, options.usage);
    WEFT_CHECK(X509_sign(to, signer.key_.get(), EVP_sha256()) > 0);
    write();
  }
  std::string certificate() const { return path_ + ".crt"; }
  std::string key() const { return path_ + ".key"; }

 private:
  struct Free {
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
    void operator()(X509* certificate) const { X509_free(certificate); }
    void operator()(BIO* bio) const { BIO_free(bio); }
  };

  void add(int kind, const std::string& value) {
    if (value.empty()) return;
    X509_EXTENSION* const made = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str());
    WEFT_CHECK(made != nullptr);
    X509_add_ext(certificate_.get(), made, -1);
    X509_EXTENSION_free(made);
  }
  void write() const {
    const std::unique_ptr<BIO, Free> pem(BIO_new_file(certificate().c_str(), "w"));
    WEFT_CHECK(PEM_write_bio_X509(pem.get(), certificate_.get()) == 1);
    const std::unique_ptr<BIO, Free> secret(BIO_new_file(key().c_str(), "w"));
    WEFT_CHECK(PEM_write_bio_PrivateKey(secret.get(), key_.get(), nullptr, nullptr, 0, nullptr,
                                        nullptr) == 1);
  }

  std::string path_;
  std::unique_ptr<EVP_PKEY, Free> key_;
  std::unique_ptr<X509, Free> certificate_;
};

}  // namespace weft::adapt::live::test
