#include "serve/svid.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>

#include <array>
#include <ctime>
#include <memory>
#include <string>

#include "base/test_folder.hpp"
#include "base/text.hpp"
#include "os/digest.hpp"
#include "serve/api_kit.hpp"
#include "serve/external_metrics.hpp"
#include "serve/test_identity.hpp"
#include "serve/web.hpp"

namespace weft::serve {
namespace {

using namespace testing;

std::string base64url(std::string_view bytes) {
  std::string out(4 * (bytes.size() / 3 + 1) + 1, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                   reinterpret_cast<const unsigned char*>(bytes.data()),
                                   static_cast<int>(bytes.size()));
  out.resize(static_cast<std::size_t>(size));
  for (char& c : out) c = c == '+' ? '-' : c == '/' ? '_' : c;
  out.erase(std::min(out.find('='), out.size()));
  return out;
}

std::string number(const EVP_PKEY* key, const char* name, int bytes) {
  BIGNUM* n = nullptr;
  REQUIRE(EVP_PKEY_get_bn_param(key, name, &n) == 1);
  std::string out(static_cast<std::size_t>(std::max(bytes, BN_num_bytes(n))), '\0');
  BN_bn2binpad(n, reinterpret_cast<unsigned char*>(out.data()), static_cast<int>(out.size()));
  BN_free(n);
  return out;
}

// A signer of JWTs as a SPIFFE server is one.
class Signer {
 public:
  Signer(std::string id, EVP_PKEY* key) : id_(std::move(id)), key_(key, EVP_PKEY_free) {}

  std::string jwk() const {
    if (EVP_PKEY_is_a(key_.get(), "RSA"))
      return fmt::format(R"({{"kty":"RSA","kid":"{}","use":"jwt-svid","n":"{}","e":"{}"}})", id_,
                         base64url(number(key_.get(), "n", 0)),
                         base64url(number(key_.get(), "e", 0)));
    return fmt::format(
        R"({{"kty":"EC","kid":"{}","use":"jwt-svid","crv":"P-256","x":"{}","y":"{}"}})", id_,
        base64url(number(key_.get(), "qx", 32)), base64url(number(key_.get(), "qy", 32)));
  }
  std::string sign(const std::string& algorithm, const std::string& claims) const {
    const std::string text =
        base64url(fmt::format(R"({{"alg":"{}","kid":"{}","typ":"JWT"}})", algorithm, id_)) + "." +
        base64url(claims);
    EVP_MD_CTX* context = EVP_MD_CTX_new();
    EVP_PKEY_CTX* options = nullptr;
    REQUIRE(EVP_DigestSignInit(context, &options, EVP_sha256(), nullptr, key_.get()) == 1);
    if (algorithm == "PS256") {
      EVP_PKEY_CTX_set_rsa_padding(options, RSA_PKCS1_PSS_PADDING);
      EVP_PKEY_CTX_set_rsa_pss_saltlen(options, RSA_PSS_SALTLEN_DIGEST);
    }
    std::string out(1024, '\0');
    std::size_t size = out.size();
    REQUIRE(EVP_DigestSign(context, reinterpret_cast<unsigned char*>(out.data()), &size,
                           reinterpret_cast<const unsigned char*>(text.data()), text.size()) == 1);
    EVP_MD_CTX_free(context);
    out.resize(size);
    return text + "." + base64url(algorithm == "ES256" ? raw_of(out) : out);
  }

 private:
  static std::string raw_of(const std::string& der) {
    const auto* at = reinterpret_cast<const unsigned char*>(der.data());
    ECDSA_SIG* signature = d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(der.size()));
    std::string out(64, '\0');
    auto* to = reinterpret_cast<unsigned char*>(out.data());
    BN_bn2binpad(ECDSA_SIG_get0_r(signature), to, 32);
    BN_bn2binpad(ECDSA_SIG_get0_s(signature), to + 32, 32);
    ECDSA_SIG_free(signature);
    return out;
  }

  std::string id_;
  std::shared_ptr<EVP_PKEY> key_;
};

std::string claims_of(const std::string& subject, std::int64_t expiry,
                      const std::string& audience = R"("weft")", const std::string& more = {}) {
  return fmt::format(R"({{"sub":"{}","aud":{},"exp":{}{}}})", subject, audience, expiry, more);
}

constexpr const char* shop_id = "spiffe://edge.example/retail/shop";

ApiOptions tenant_options(const TestFolder& folder, const Identity& authority,
                          const Identity& server, const Signer& signer) {
  return ApiOptions{
      .certificate = server.certificate(),
      .key = server.key(),
      .client_ca = authority.certificate(),
      .tokens =
          folder.write("tokens", fmt::format("{} read,ingest svid tenant=retail\n"
                                             "spiffe://edge.example/assistant/chat read,ingest "
                                             "svid tenant=assistant\n"
                                             "ops read {}\n",
                                             shop_id, sha256_hex("a.b.c"))),
      .jwt_keys = folder.write("keys", fmt::format(R"({{"keys":[{}]}})", signer.jwk())),
      .audience = "weft"};
}

// One value of every tenant, and samples that are counted.
std::unique_ptr<Web> tenant_web(ApiOptions options, int& pushed) {
  ExternalMetricSource source{
      .names = {"weft_replicas"},
      .read = [](std::string_view tenant,
                 std::string_view name) -> Result<std::vector<ExternalMetric>> {
        return std::vector{ExternalMetric{std::string(tenant), std::string(name), {}, {}, 7}};
      },
      .push = [&](auto, auto, auto) -> Result<std::size_t> { return ++pushed; },
      .metrics = [] { return std::string(); }};
  return Web::listen(std::move(options),
                     [&](const auto&, Meters& meters, const auto&) {
                       return external_metric_routes(source, meters);
                     })
      .value();
}

}  // namespace

TEST_CASE("SPIFFE IDs: what the standard takes, and what it does not") {
  for (const char* good :
       {"spiffe://edge.example/retail/shop", "spiffe://a", "spiffe://a_b-1.c/X.y"})
    CHECK(is_spiffe_id(good));
  for (const char* bad :
       {"", "spiffe://", "spiffe:///a", "https://a/b", "spiffe://Edge/a", "spiffe://a/",
        "spiffe://a//b", "spiffe://a/./b", "spiffe://a/../b", "spiffe://a:80/b", "spiffe://u@a/b",
        "spiffe://a/b?c", "spiffe://a/b#c", "spiffe://a/%41", "SPIFFE://a/b", "spiffe://a/b\n"})
    CHECK_FALSE(is_spiffe_id(bad));
  CHECK_FALSE(is_spiffe_id("spiffe://a/" + std::string(2048, 'b')));
}

TEST_CASE("X.509-SVIDs: one URI, a leaf that signs, or none") {
  const TestFolder folder;
  const Identity authority(folder, "ca", "ca");
  auto id = [&, n = 0](const std::string& alternatives, const std::string& usage) mutable {
    return spiffe_id_of_certificate(
        Identity(folder, fmt::format("c{}", n++), "x", &authority, 3600, alternatives, usage)
            .get());
  };
  const std::string uri = fmt::format("URI:{}", shop_id), leaf = "critical,digitalSignature";
  CHECK(id(uri, leaf) == shop_id);
  CHECK(id(uri + ",DNS:shop.example", leaf) == shop_id);
  CHECK_FALSE(id("DNS:shop.example", leaf));
  CHECK_FALSE(id(uri + ",URI:spiffe://edge.example/b", leaf));
  CHECK_FALSE(id("URI:https://edge.example/b", leaf));
  CHECK_FALSE(id(uri, ""));
  CHECK_FALSE(id(uri, "critical,keyEncipherment"));
  CHECK_FALSE(id(uri, "critical,digitalSignature,keyCertSign"));
  CHECK_FALSE(
      spiffe_id_of_certificate(Identity(folder, "ca2", "ca", nullptr, 3600, uri, leaf).get()));
}

TEST_CASE("JWT-SVIDs: every rule that one can break is checked") {
  const Signer ec("k1", EVP_EC_gen("P-256")), rsa("k2", EVP_RSA_gen(2048));
  const Signer stranger("k1", EVP_EC_gen("P-256"));
  const JwtKeys keys =
      JwtKeys::parse(fmt::format(R"({{"keys":[{},{}]}})", ec.jwk(), rsa.jwk()), "b").value();
  const Timestamp now{1'800'000'000 * ns_per_s};
  const auto why = [&](const std::string& token) {
    const auto out = keys.verify(token, "weft", now);
    return out ? std::string("let in as ") + *out : out.error().what;
  };
  const std::string good = claims_of(shop_id, 1'800'000'100);
  const std::string let_in = std::string("let in as ") + shop_id;
  CHECK(why(ec.sign("ES256", good)) == let_in);
  CHECK(why(rsa.sign("RS256", good)) == let_in);
  CHECK(why(rsa.sign("PS256", good)) == let_in);
  CHECK(why(ec.sign("ES256", claims_of(shop_id, 1'800'000'100, R"(["a","weft"])"))) == let_in);

  const std::string unsigned_why = "the JWT is not signed by a key that is trusted";
  CHECK(why(stranger.sign("ES256", good)) == unsigned_why);
  CHECK(why(ec.sign("none", good)) == unsigned_why);
  CHECK(why(rsa.sign("HS256", good)) == unsigned_why);
  CHECK(why(rsa.sign("RS384", good)) == unsigned_why);
  const std::string token = ec.sign("ES256", good);
  for (std::size_t at = token.find('.') + 1; at < token.size(); at += 7) {
    std::string changed = token;
    changed[at] = changed[at] == 'A' ? 'B' : 'A';
    CHECK(why(changed) != let_in);
  }
  CHECK(why(ec.sign("ES256", claims_of(shop_id, 1'800'000'000))) == "the JWT has expired");
  CHECK(why(ec.sign("ES256", fmt::format(R"({{"sub":"{}","aud":"weft"}})", shop_id))) ==
        "the JWT has no exp");
  CHECK(why(ec.sign("ES256", claims_of(shop_id, 1'800'000'100, R"("other")"))) ==
        "the JWT is for another audience");
  CHECK(why(ec.sign("ES256",
                    claims_of(shop_id, 1'800'000'100, R"("weft")", R"(,"nbf":1800000061)"))) ==
        "the JWT is not valid yet (nbf)");
  CHECK(why(ec.sign("ES256", claims_of("bob", 1'800'000'100))) ==
        "the JWT's sub is not a SPIFFE ID");
  for (const char* bad : {"", "a.b", "..", "a.b.c", "e30.e30.e30"}) CHECK(why(bad) != let_in);

  const auto wrong = [](const char* text) { return JwtKeys::parse(text, "b").error().what; };
  CHECK(wrong(R"({"keys":[]})") == "none of the keys is for JWT-SVIDs");
  CHECK(wrong(R"({"keys":[{"kty":"EC","use":"x509-svid"}]})") ==
        "none of the keys is for JWT-SVIDs");
  CHECK(wrong(R"({"keys":[{"kty":"oct","k":"AA"}]})").contains("is neither an RSA key"));
  CHECK(wrong(R"({"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}]})")
            .contains("is neither an RSA"));
}

TEST_CASE("tenants of an API: own namespace, nothing else; refusals are logged") {
  const TestFolder folder;
  const Identity authority(folder, "ca", "ca");
  const Identity server(folder, "server", "localhost", &authority);
  const auto workload = [&](const char* file, const char* uri) {
    return Identity(folder, file, "", &authority, 3600, fmt::format("URI:{}", uri),
                    "critical,digitalSignature");
  };
  const Identity shop = workload("shop", shop_id);
  const Identity chat = workload("chat", "spiffe://edge.example/assistant/chat");
  const Identity nobody = workload("nobody", "spiffe://edge.example/else");
  const Signer signer("k", EVP_EC_gen("P-256"));
  std::vector<std::string> log;
  std::mutex mutex;
  ApiOptions options = tenant_options(folder, authority, server, signer);
  options.log = [&](LogLevel, std::string_view line) {
    const std::lock_guard lock(mutex);
    log.emplace_back(line);
  };
  int pushed = 0;
  const auto web = tenant_web(std::move(options), pushed);
  const auto ask = [&](const Identity& who, std::string_view method, const std::string& target,
                       const std::string& header = {}) {
    const auto context = client_context(authority, &who);
    Client client(web->port());
    return client.start_tls(context.get())
               ? client.call(method, target, method == "POST" ? "time,value\n" : "", header).status
               : 0;
  };
  const std::string values = "/apis/external.metrics.k8s.io/v1beta1/namespaces/";
  const std::string jwt = "Authorization: Bearer " +
                          signer.sign("ES256", claims_of(shop_id, std::time(nullptr) + 60)) +
                          "\r\n";
  // Own namespace: by certificate and by token, where the connection is somebody else's.
  CHECK(ask(shop, "GET", values + "retail/weft_replicas") == 200);
  CHECK(ask(shop, "POST", "/v1/series/retail/shop") == 200);
  CHECK(ask(nobody, "GET", values + "retail/weft_replicas", jwt) == 200);
  CHECK(ask(nobody, "GET", "/metrics", "Authorization: Bearer a.b.c\r\n") == 200);
  CHECK(pushed == 1);
  // Every other pair of identity, request and tenant.
  int refused = 0;
  for (const Identity* who : {&shop, &chat})
    for (const char* tenant : {"retail", "assistant", "other", "%72etail", "Retail"}) {
      const bool is_own =
          (who == &shop) == (std::string_view(tenant).ends_with("etail") && tenant[0] != 'R') &&
          (who == &shop || std::string_view(tenant) == "assistant");
      if (is_own) continue;
      CHECK(ask(*who, "GET", values + tenant + "/weft_replicas") == 403);
      CHECK(ask(*who, "POST", fmt::format("/v1/series/{}/shop", tenant)) == 403);
      refused += 2;
    }
  CHECK(ask(shop, "GET", "/metrics") == 403);  // of all tenants
  CHECK(ask(nobody, "GET", values + "retail/weft_replicas") == 403);
  CHECK(ask(chat, "GET", values + "assistant/weft_replicas", jwt) == 403);  // the token counts
  std::string forged = jwt;
  forged[forged.size() - 10] = forged[forged.size() - 10] == 'A' ? 'B' : 'A';
  CHECK(ask(nobody, "GET", values + "retail/weft_replicas", forged) == 401);
  refused += 4;
  CHECK(pushed == 1);
  web->stop();
  int lines = 0, left_out = 0;
  for (const std::string& line : log) {
    lines += line.starts_with("refused with 40") ? 1 : 0;
    const std::size_t more = line.find(" more were left out");
    if (more != std::string::npos) left_out += std::stoi(line.substr(line.rfind('(', more) + 1));
  }
  CHECK(lines + left_out >= 10);
  CHECK(lines + left_out <= refused);
  CHECK(log[1].contains("other-tenant: spiffe://edge.example/"));
}

}  // namespace weft::serve
