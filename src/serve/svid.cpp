#include "serve/svid.hpp"

#include <fmt/format.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/rsa.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <tuple>
#include <utility>

#include "base/file.hpp"
#include "base/json_line.hpp"
#include "base/text.hpp"
#include "os/digest.hpp"
#include "os/tls.hpp"

namespace weft::serve {
namespace {

constexpr std::string_view spiffe_scheme = "spiffe://";
constexpr std::size_t spiffe_bytes_max = 2048, domain_bytes_max = 255;
constexpr std::size_t jwt_bytes_max = 16 << 10, jwt_keys_max = 100;
constexpr std::uint64_t jwks_limit = 1 << 20;
constexpr std::int64_t clock_leeway_s = 60;
constexpr int rsa_bits_least = 2048;

struct FreeSvidParts {
  void operator()(GENERAL_NAMES* names) const { GENERAL_NAMES_free(names); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(EVP_PKEY_CTX* context) const { EVP_PKEY_CTX_free(context); }
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  void operator()(OSSL_PARAM_BLD* builder) const { OSSL_PARAM_BLD_free(builder); }
  void operator()(OSSL_PARAM* params) const { OSSL_PARAM_free(params); }
  void operator()(BIGNUM* number) const { BN_free(number); }
  void operator()(ECDSA_SIG* signature) const { ECDSA_SIG_free(signature); }
};
template <class T>
using Held = std::unique_ptr<T, FreeSvidParts>;

bool is_spiffe_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '_';
}

// RFC 4648's alphabet for URLs, without padding.
std::optional<std::string> from_base64url(std::string_view text) {
  std::string plain(text);
  for (char& c : plain) {
    if (c == '+' || c == '/' || c == '=') return std::nullopt;
    c = c == '-' ? '+' : c == '_' ? '/' : c;
  }
  plain.append((4 - plain.size() % 4) % 4, '=');
  return from_base64(plain);
}

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

Held<BIGNUM> big_number(std::string_view bytes) {
  return Held<BIGNUM>(BN_bin2bn(bytes_of(bytes), static_cast<int>(bytes.size()), nullptr));
}

struct Curve {
  std::string_view name;  // of JWK
  const char* group;
  std::size_t bytes;  // of a coordinate
};
constexpr std::array<Curve, 3> curves{Curve{"P-256", "P-256", 32}, Curve{"P-384", "P-384", 48},
                                      Curve{"P-521", "P-521", 66}};

Held<EVP_PKEY> make_key(const char* type, OSSL_PARAM_BLD* builder) {
  const Held<OSSL_PARAM> params(OSSL_PARAM_BLD_to_param(builder));
  const Held<EVP_PKEY_CTX> context(EVP_PKEY_CTX_new_from_name(nullptr, type, nullptr));
  EVP_PKEY* key = nullptr;
  if (!params || !context || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, params.get()) != 1)
    return nullptr;
  return Held<EVP_PKEY>(key);
}

Held<EVP_PKEY> rsa_key(std::string_view n, std::string_view e) {
  const Held<OSSL_PARAM_BLD> builder(OSSL_PARAM_BLD_new());
  const Held<BIGNUM> modulus = big_number(n), exponent = big_number(e);
  if (!builder || !modulus || !exponent || BN_num_bits(modulus.get()) < rsa_bits_least ||
      OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, modulus.get()) != 1 ||
      OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, exponent.get()) != 1)
    return nullptr;
  return make_key("RSA", builder.get());
}

Held<EVP_PKEY> ec_key(const Curve& curve, std::string_view x, std::string_view y) {
  if (x.size() != curve.bytes || y.size() != curve.bytes) return nullptr;
  const std::string point = "\x04" + std::string(x) + std::string(y);
  const Held<OSSL_PARAM_BLD> builder(OSSL_PARAM_BLD_new());
  if (!builder ||
      OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, curve.group, 0) !=
          1 ||
      OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(),
                                       point.size()) != 1)
    return nullptr;
  return make_key("EC", builder.get());
}

// r and s side by side, as JWTs have them, to the DER that OpenSSL verifies.
std::string der_signature(std::string_view raw) {
  const std::size_t half = raw.size() / 2;
  const Held<ECDSA_SIG> signature(ECDSA_SIG_new());
  Held<BIGNUM> r = big_number(raw.substr(0, half)), s = big_number(raw.substr(half));
  if (!signature || ECDSA_SIG_set0(signature.get(), r.get(), s.get()) != 1) return "";
  std::ignore = r.release();
  std::ignore = s.release();
  unsigned char* bytes = nullptr;
  const int size = i2d_ECDSA_SIG(signature.get(), &bytes);
  if (size <= 0) return "";
  std::string out(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
  OPENSSL_free(bytes);
  return out;
}

Result<JsonLine> piece_of(std::string_view piece, const char* what) {
  const auto bytes = from_base64url(piece);
  if (!bytes) return fail(Errc::value, {}, fmt::format("the JWT's {} is not base64url", what));
  auto out = JsonLine::parse(*bytes, {what});
  if (!out) return fail(Errc::value, {}, fmt::format("the JWT's {} is not a JSON object", what));
  return out;
}

bool holds_audience(const JsonNode& aud, std::string_view audience) {
  if (aud.text()) return *aud.text() == audience;
  for (std::size_t i = 0; i < aud.size(); ++i)
    if (aud.item(i).text() == audience) return true;
  return false;
}

// What a JWT's claims must be, apart from who signed them.
Status check_claims(const JsonNode& claims, std::string_view audience, Timestamp now) {
  const double now_s = static_cast<double>(now.ns) / ns_per_s;
  const auto expiry = claims.member("exp").number();
  if (!expiry) return fail(Errc::value, {}, "the JWT has no exp");
  if (*expiry <= now_s) return fail(Errc::value, {}, "the JWT has expired");
  for (const char* name : {"nbf", "iat"}) {
    const JsonNode claim = claims.member(name);
    if (!claim) continue;
    const auto from = claim.number();
    if (!from || *from > now_s + clock_leeway_s)
      return fail(Errc::value, {}, fmt::format("the JWT is not valid yet ({})", name));
  }
  if (!holds_audience(claims.member("aud"), audience))
    return fail(Errc::value, {}, "the JWT is for another audience");
  return {};
}

}  // namespace

struct JwtKeys::Key {
  std::string id;
  std::shared_ptr<EVP_PKEY> key;  // shared for its type alone: one key has it

  bool is_rsa() const { return EVP_PKEY_is_a(key.get(), "RSA") == 1; }
  static Result<std::shared_ptr<const Key>> read(const JsonNode& node, const Where& where);
  bool has_signed(std::string_view algorithm, std::string_view text, std::string_view raw) const;
};

Result<std::shared_ptr<const JwtKeys::Key>> JwtKeys::Key::read(const JsonNode& node,
                                                               const Where& where) {
  auto out = std::make_shared<Key>();
  out->id = text_of(node, "kid");
  const auto bytes = [&](std::string_view name) {
    return from_base64url(text_of(node, name)).value_or("");
  };
  const std::string type = text_of(node, "kty");
  const auto curve = std::ranges::find(curves, text_of(node, "crv"), &Curve::name);
  if (type == "RSA")
    out->key = rsa_key(bytes("n"), bytes("e"));
  else if (type == "EC" && curve != curves.end())
    out->key = ec_key(*curve, bytes("x"), bytes("y"));
  if (out->key) return out;
  std::ignore = take_tls_reason();
  return fail(Errc::value, where,
              fmt::format("the key {} is neither an RSA key of 2,048 bits or more nor an EC key on "
                          "P-256, P-384 or P-521",
                          quote(out->id)),
              "give the trust bundle as the SPIFFE server prints it");
}

bool JwtKeys::Key::has_signed(std::string_view algorithm, std::string_view text,
                              std::string_view raw) const {
  if (algorithm.size() != 5) return false;
  const std::string_view family = algorithm.substr(0, 2), size = algorithm.substr(2);
  const char* digest = size == "256"   ? "SHA256"
                       : size == "384" ? "SHA384"
                       : size == "512" ? "SHA512"
                                       : nullptr;
  if (digest == nullptr || is_rsa() == (family == "ES")) return false;
  if (family != "ES" && family != "RS" && family != "PS") return false;
  std::string signature(raw);
  if (family == "ES") {
    // Each size has its own curve (RFC 7518, 3.4).
    const std::size_t wanted = size == "256" ? 0 : size == "384" ? 1 : 2;
    const int bits = EVP_PKEY_get_bits(key.get());
    if (raw.size() != 2 * curves[wanted].bytes ||
        static_cast<std::size_t>((bits + 7) / 8) != curves[wanted].bytes)
      return false;
    signature = der_signature(raw);
  }
  const Held<EVP_MD_CTX> context(EVP_MD_CTX_new());
  EVP_PKEY_CTX* options = nullptr;  // the context's
  bool is_set = context && EVP_DigestVerifyInit_ex(context.get(), &options, digest, nullptr,
                                                   nullptr, key.get(), nullptr) == 1;
  if (is_set && family == "PS")
    is_set = EVP_PKEY_CTX_set_rsa_padding(options, RSA_PKCS1_PSS_PADDING) > 0 &&
             EVP_PKEY_CTX_set_rsa_pss_saltlen(options, RSA_PSS_SALTLEN_DIGEST) > 0;
  const bool is_signed =
      is_set && EVP_DigestVerify(context.get(), bytes_of(signature), signature.size(),
                                 bytes_of(text), text.size()) == 1;
  std::ignore = take_tls_reason();
  return is_signed;
}

bool is_spiffe_id(std::string_view text) {
  if (text.size() > spiffe_bytes_max || !text.starts_with(spiffe_scheme)) return false;
  const auto pieces = split(text.substr(spiffe_scheme.size()), '/');
  const std::string_view domain = pieces[0];
  if (domain.empty() || domain.size() > domain_bytes_max) return false;
  if (std::ranges::any_of(domain, [](char c) { return c >= 'A' && c <= 'Z'; })) return false;
  return std::ranges::all_of(pieces, [](std::string_view piece) {
    return !piece.empty() && piece != "." && piece != ".." &&
           std::ranges::all_of(piece, is_spiffe_char);
  });
}

std::optional<std::string> spiffe_id_of_certificate(x509_st* certificate) {
  const std::uint32_t flags = X509_get_extension_flags(certificate);
  const std::uint32_t usage = X509_get_key_usage(certificate);
  if ((flags & EXFLAG_CA) != 0 || (flags & EXFLAG_KUSAGE) == 0 ||
      (usage & KU_DIGITAL_SIGNATURE) == 0 || (usage & (KU_KEY_CERT_SIGN | KU_CRL_SIGN)) != 0)
    return std::nullopt;
  const Held<GENERAL_NAMES> names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::optional<std::string> out;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    if (out) return std::nullopt;
    const ASN1_IA5STRING* uri = name->d.uniformResourceIdentifier;
    out.emplace(reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                static_cast<std::size_t>(ASN1_STRING_length(uri)));
  }
  return out && is_spiffe_id(*out) ? out : std::nullopt;
}

std::optional<std::string> spiffe_id_of(ssl_st* tls) {
  if (SSL_get_verify_result(tls) != X509_V_OK) return std::nullopt;
  X509* certificate = SSL_get0_peer_certificate(tls);
  return certificate == nullptr ? std::nullopt : spiffe_id_of_certificate(certificate);
}

bool looks_like_jwt(std::string_view token) { return std::ranges::count(token, '.') == 2; }

Result<JwtKeys> JwtKeys::load(const std::string& path) {
  WEFT_TRY(const std::string text, read_file(path, jwks_limit));
  return parse(text, path);
}

Result<JwtKeys> JwtKeys::parse(std::string_view text, const std::string& file) {
  WEFT_TRY(const JsonLine line, JsonLine::parse(text, {file}));
  const JsonNode keys = line.node().member("keys");
  if (!keys.is_list() || keys.size() > jwt_keys_max)
    return fail(Errc::value, {file}, fmt::format("no list \"keys\" of at most {}", jwt_keys_max),
                "give a JWK set, such as a SPIFFE trust bundle");
  JwtKeys out;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const std::string use = text_of(keys.item(i), "use");
    if (!use.empty() && use != "jwt-svid") continue;
    WEFT_TRY(auto key, Key::read(keys.item(i), {file}));
    out.keys_.push_back(std::move(key));
  }
  if (out.keys_.empty())
    return fail(Errc::value, {file}, "none of the keys is for JWT-SVIDs",
                "their use is \"jwt-svid\" or absent");
  return out;
}

Result<std::string> JwtKeys::verify(std::string_view token, std::string_view audience,
                                    Timestamp now) const {
  const auto pieces = split(token, '.');
  if (pieces.size() != 3 || token.size() > jwt_bytes_max)
    return fail(Errc::value, {}, "this is not a JWT");
  WEFT_TRY(const JsonLine head, piece_of(pieces[0], "header"));
  WEFT_TRY(const JsonLine claims, piece_of(pieces[1], "claims"));
  const auto signature = from_base64url(pieces[2]);
  if (!signature) return fail(Errc::value, {}, "the JWT's signature is not base64url");
  if (head.has("crit")) return fail(Errc::value, {}, "the JWT has extensions (crit)");
  if (const std::string type = text_of(head.node(), "typ");
      !type.empty() && type != "JWT" && type != "JOSE")
    return fail(Errc::value, {}, "the JWT's typ is neither JWT nor JOSE");
  const std::string algorithm = text_of(head.node(), "alg"), id = text_of(head.node(), "kid");
  const std::string_view text = token.substr(0, pieces[0].size() + 1 + pieces[1].size());
  const bool is_signed = std::ranges::any_of(keys_, [&](const auto& key) {
    return (id.empty() || key->id.empty() || key->id == id) &&
           key->has_signed(algorithm, text, *signature);
  });
  if (!is_signed) return fail(Errc::value, {}, "the JWT is not signed by a key that is trusted");
  WEFT_TRY_STATUS(check_claims(claims.node(), audience, now));
  std::string subject = text_of(claims.node(), "sub");
  if (!is_spiffe_id(subject)) return fail(Errc::value, {}, "the JWT's sub is not a SPIFFE ID");
  return subject;
}

}  // namespace weft::serve
