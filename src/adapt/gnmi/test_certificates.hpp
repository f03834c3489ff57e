// Certificates for tests, made on the spot.
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>

namespace weft::adapt::gnmi {

struct TestKey {
  std::string certificate, key;  // PEM
};

// An authority that signs certificates for 127.0.0.1 and for a name. Elliptic curve P-256.
class TestAuthority {
 public:
  TestAuthority() : key_(EVP_EC_gen("P-256")), own_(make("test authority", *key_)) {
    add(*own_, *own_, NID_basic_constraints, "critical,CA:TRUE");
    sign(*own_);
  }

  std::string certificate() const { return pem(*own_); }
  TestKey issue(const std::string& name) const {
    const Key key(EVP_EC_gen("P-256"));
    const Certificate made = make(name, *key);
    add(*made, *own_, NID_subject_alt_name, "IP:127.0.0.1,DNS:" + name);
    X509_set_issuer_name(made.get(), X509_get_subject_name(own_.get()));
    sign(*made);
    return {pem(*made), pem(*key)};
  }

 private:
  template <auto function>
  struct Free {
    void operator()(auto* it) const { function(it); }
  };
  using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
  using Certificate = std::unique_ptr<X509, Free<X509_free>>;

  static Certificate make(const std::string& name, EVP_PKEY& key) {
    Certificate out(X509_new());
    X509_set_version(out.get(), 2);
    ASN1_INTEGER_set(X509_get_serialNumber(out.get()), 1);
    X509_gmtime_adj(X509_getm_notBefore(out.get()), -3600);
    X509_gmtime_adj(X509_getm_notAfter(out.get()), 86'400);
    X509_set_pubkey(out.get(), &key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(out.get()), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
    X509_set_issuer_name(out.get(), X509_get_subject_name(out.get()));
    return out;
  }
  static void add(X509& to, X509& issuer, int nid, const std::string& value) {
    X509V3_CTX context;
    X509V3_set_ctx(&context, &issuer, &to, nullptr, nullptr, 0);
    X509_EXTENSION* made = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
    X509_add_ext(&to, made, -1);
    X509_EXTENSION_free(made);
  }
  void sign(X509& it) const { X509_sign(&it, key_.get(), EVP_sha256()); }
  static std::string text_of(BIO& out) {
    char* data = nullptr;
    const long size = BIO_get_mem_data(&out, &data);
    return {data, static_cast<std::size_t>(size)};
  }
  using Bio = std::unique_ptr<BIO, Free<BIO_free_all>>;
  static std::string pem(X509& it) {
    const Bio out(BIO_new(BIO_s_mem()));
    PEM_write_bio_X509(out.get(), &it);
    return text_of(*out);
  }
  static std::string pem(EVP_PKEY& it) {
    const Bio out(BIO_new(BIO_s_mem()));
    PEM_write_bio_PrivateKey(out.get(), &it, nullptr, nullptr, 0, nullptr, nullptr);
    return text_of(*out);
  }

  Key key_;
  Certificate own_;
};

}  // namespace weft::adapt::gnmi
