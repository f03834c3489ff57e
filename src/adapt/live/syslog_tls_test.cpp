// TLS as the listener speaks it, with certificates made here.
#include "adapt/live/syslog_tls.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <csignal>
#include <cstdio>

#include "adapt/live/syslog_test_bed.hpp"
#include "base/rng.hpp"
#include "base/test_folder.hpp"

namespace weft::adapt::live {
namespace {

using namespace test;
using Counts = SyslogListener::Counts;

template <auto free>
struct Free {
  template <class T>
  void operator()(T* thing) const {
    free(thing);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Free<X509_free>>;
using File = std::unique_ptr<std::FILE, Free<std::fclose>>;

struct Identity {
  Key key;
  Certificate certificate;
};

// Signed by `issuer`, or by itself.
Identity make_identity(const char* name, const Identity* issuer) {
  Identity out{.key = Key(::EVP_EC_gen("P-256")), .certificate = Certificate(::X509_new())};
  X509* const x = out.certificate.get();
  ::X509_set_version(x, 2);
  ::ASN1_INTEGER_set(::X509_get_serialNumber(x), 1);
  ::X509_gmtime_adj(::X509_getm_notBefore(x), -3'600);
  ::X509_gmtime_adj(::X509_getm_notAfter(x), 3'600);
  ::X509_set_pubkey(x, out.key.get());
  ::X509_NAME_add_entry_by_txt(::X509_get_subject_name(x), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name), -1, -1, 0);
  const X509* const above = issuer != nullptr ? issuer->certificate.get() : x;
  ::X509_set_issuer_name(x, ::X509_get_subject_name(above));
  if (issuer == nullptr) {
    X509_EXTENSION* const authority =
        ::X509V3_EXT_conf_nid(nullptr, nullptr, NID_basic_constraints, "critical,CA:TRUE");
    ::X509_add_ext(x, authority, -1);
    ::X509_EXTENSION_free(authority);
  }
  EVP_PKEY* const signer = issuer != nullptr ? issuer->key.get() : out.key.get();
  WEFT_CHECK(::X509_sign(x, signer, ::EVP_sha256()) > 0);
  return out;
}

// A folder of PEM files that goes with the test.
class Folder {
 public:
  std::string put(const char* name, const Certificate& certificate) const {
    ::PEM_write_X509(open(name).get(), certificate.get());
    return path(name);
  }
  // With a password when `cipher` is given.
  std::string put(const char* name, const Key& key, const EVP_CIPHER* cipher = nullptr) const {
    const unsigned char* const password = reinterpret_cast<const unsigned char*>("secret");
    ::PEM_write_PrivateKey(open(name).get(), key.get(), cipher, cipher ? password : nullptr,
                           cipher ? 6 : 0, nullptr, nullptr);
    return path(name);
  }
  std::string path(const char* name) const { return folder_.file(name); }

 private:
  File open(const char* name) const {
    File file(std::fopen(path(name).c_str(), "w"));
    WEFT_CHECK(file != nullptr);
    return file;
  }
  TestFolder folder_;
};

// An authority, what it signed, and a stranger.
struct Bed {
  Folder folder;
  Identity authority = make_identity("authority", nullptr);
  Identity server = make_identity("server", &authority);
  Identity client = make_identity("client", &authority);
  Identity stranger = make_identity("stranger", nullptr);
  SyslogOptions options{.listen = {"tls://127.0.0.1:0"},
                        .certificate = folder.put("server.pem", server.certificate),
                        .key = folder.put("server.key", server.key),
                        .client_ca = ""};
  SyslogOptions mutual_options() const {
    SyslogOptions out = options;
    out.client_ca = folder.put("authority.pem", authority.certificate);
    return out;
  }

  Bed() { std::signal(SIGPIPE, SIG_IGN); }  // of clients that write to who has closed
};

class TlsClient {
 public:
  // Trusts the authority only, and is nobody when there is no `self`.
  TlsClient(const SyslogListener& listener, const Identity& authority, const Identity* self)
      : socket_(connect_to(listener)), context_(::SSL_CTX_new(::TLS_client_method())) {
    SSL_CTX* const raw = context_.get();
    ::X509_STORE_add_cert(::SSL_CTX_get_cert_store(raw), authority.certificate.get());
    ::SSL_CTX_set_verify(raw, SSL_VERIFY_PEER, nullptr);
    if (self != nullptr) {
      ::SSL_CTX_use_certificate(raw, self->certificate.get());
      ::SSL_CTX_use_PrivateKey(raw, self->key.get());
    }
    ssl_.reset(::SSL_new(raw));
    ::SSL_set_fd(ssl_.get(), socket_.get());
    connected_ = ::SSL_connect(ssl_.get()) == 1;
  }
  bool connected() const { return connected_; }
  bool send(std::string_view bytes) {
    return ::SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size())) > 0;
  }
  // The server ends this, with or without a goodbye.
  bool is_ended() {
    char byte = 0;
    return ::SSL_read(ssl_.get(), &byte, 1) <= 0;
  }
  void say_goodbye() { ::SSL_shutdown(ssl_.get()); }

 private:
  Fd socket_;
  std::unique_ptr<SSL_CTX, Free<SSL_CTX_free>> context_;
  std::unique_ptr<SSL, Free<SSL_free>> ssl_;
  bool connected_ = false;
};

TEST_CASE("messages over TLS, in whatever records they come") {
  const Bed bed;
  Keeper keeper;
  const auto listener = listen(bed.options, keeper);
  std::string bytes;
  std::vector<std::string> wanted;
  for (std::size_t i = 0; i < 20'000; ++i) {
    wanted.push_back(fmt::format("<34>1 message {} {:.>{}}", i, "", i % 300));
    bytes += fmt::format("{} {}", wanted.back().size(), wanted.back());
  }
  TlsClient client(*listener, bed.authority, nullptr);
  REQUIRE(client.connected());
  Rng rng = Rng(5).stream("records");
  for (std::string_view rest = bytes; !rest.empty();) {
    const std::string_view piece = rest.substr(0, 1 + rng.below(60'000));
    REQUIRE(client.send(piece));
    rest.remove_prefix(piece.size());
  }
  REQUIRE(keeper.wait_for(wanted.size()));
  CHECK(keeper.texts() == wanted);
  CHECK(keeper.kept().front().sender == "127.0.0.1");
  client.say_goodbye();
  CHECK(eventually([&] { return listener->counts().connections == 0; }));
  const Counts counts = listener->counts();
  CHECK(counts.received[static_cast<std::size_t>(SyslogTransport::tls)] == wanted.size());
  CHECK(counts.broken == 0);
  CHECK(counts.untrusted == 0);
}

TEST_CASE("a client that trusts other authorities does not talk to us") {
  const Bed bed;
  Keeper keeper;
  const auto listener = listen(bed.options, keeper);
  const TlsClient client(*listener, bed.stranger, nullptr);
  CHECK_FALSE(client.connected());
  CHECK(eventually([&] { return listener->counts().untrusted == 1; }));
}

TEST_CASE("mutual: only clients of the authority are heard") {
  const Bed bed;
  Keeper keeper;
  const auto listener = listen(bed.mutual_options(), keeper);
  for (const Identity* self : {&bed.stranger, static_cast<const Identity*>(nullptr)}) {
    TlsClient client(*listener, bed.authority, self);
    if (client.connected()) client.send("let me in\n");
    CHECK(client.is_ended());
  }
  CHECK(eventually([&] { return listener->counts().untrusted == 2; }));
  CHECK(listener->counts().last_untrusted.starts_with("127.0.0.1: "));
  CHECK(keeper.size() == 0);

  TlsClient known(*listener, bed.authority, &bed.client);
  REQUIRE(known.connected());
  REQUIRE(known.send("trusted\n"));
  REQUIRE(keeper.wait_for(1));
  CHECK(keeper.texts().front() == "trusted");
  CHECK(listener->counts().connections == 1);
}

TEST_CASE("a connection that is cut off gives what it has brought, and is counted") {
  const Bed bed;
  Keeper keeper;
  const auto listener = listen(bed.options, keeper);
  {
    TlsClient client(*listener, bed.authority, nullptr);
    REQUIRE(client.send("whole\nhalf"));
  }
  REQUIRE(keeper.wait_for(2));
  CHECK(keeper.texts() == std::vector<std::string>{"whole", "half"});
  CHECK(eventually([&] { return listener->counts().broken == 1; }));
  CHECK(listener->counts().partial == 1);
}

TEST_CASE("a busy sink makes TLS senders wait too") {
  const Bed bed;
  Keeper keeper;
  keeper.answer(Verdict::busy);
  const auto listener = listen(bed.options, keeper);
  constexpr std::size_t count = 20'000;
  std::thread sender([&] {
    TlsClient client(*listener, bed.authority, nullptr);
    for (std::size_t i = 0; i < count; ++i) client.send(fmt::format("{:.<300}\n", 'm'));
    client.say_goodbye();
  });
  CHECK(eventually([&] { return listener->counts().busy > 20; }));
  CHECK(listener->counts().held < 2'000);
  keeper.answer(Verdict::taken);
  sender.join();
  CHECK(keeper.wait_for(count));
}

TEST_CASE("garbage instead of a handshake, and handshakes that never end") {
  const Bed bed;
  Keeper keeper;
  SyslogOptions options = bed.options;
  options.unfinished = milliseconds(500);
  const auto listener = listen(options, keeper);
  Rng rng = Rng(6).stream("garbage");
  constexpr std::uint64_t garbage = 200;
  for (std::uint64_t i = 0; i < garbage; ++i) {
    const Fd client = connect_to(*listener);
    // Half of them begin like a record, so that more of the reading is reached.
    std::string bytes = i % 2 == 0 ? std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc", 9) : "";
    for (std::uint64_t n = rng.below(3'000) + 10; n > 0; --n)
      bytes += static_cast<char>(rng.below(256));
    send_all(client, bytes);
  }
  const Fd silent = connect_to(*listener), slow = connect_to(*listener);
  send_all(slow, std::string_view("\x16\x03\x01", 3));
  CHECK(is_closed(silent));
  CHECK(is_closed(slow));
  CHECK(eventually([&] {
    const Counts counts = listener->counts();
    return counts.expired >= 2 && counts.untrusted + counts.expired == garbage + 2;
  }));

  TlsClient client(*listener, bed.authority, nullptr);
  REQUIRE(client.connected());
  std::this_thread::sleep_for(milliseconds(800));  // quiet, but nothing has begun
  REQUIRE(client.send("fine\n"));
  CHECK(keeper.wait_for(1));
}

TEST_CASE("files that cannot be used are told, with the reason; nobody is asked for a password") {
  const Bed bed;
  const auto error_of = [](const std::string& certificate, const std::string& key,
                           const std::string& client_ca) {
    const auto server = TlsServer::open(certificate, key, client_ca);
    return server ? "" : server.error().text();
  };
  const auto& [certificate, key] = std::pair(bed.options.certificate, bed.options.key);
  CHECK(error_of(certificate, key, "").empty());
  const std::string none = bed.folder.path("none");
  for (const std::string& text :
       {error_of(none, key, ""), error_of(certificate, none, ""), error_of(certificate, key, none),
        error_of(key, key, ""), error_of(certificate, certificate, ""),
        error_of(certificate, key, key),
        error_of(certificate, bed.folder.put("other.key", bed.client.key), ""),
        error_of(certificate, bed.folder.put("locked.key", bed.server.key, ::EVP_aes_128_cbc()),
                 "")}) {
    CAPTURE(text);
    CHECK(text.starts_with("cannot use "));
    CHECK(text.find(bed.folder.path("")) != std::string::npos);
    CHECK(text.find("unknown reason") == std::string::npos);
  }
}

}  // namespace
}  // namespace weft::adapt::live
