// Scraping, sending records and posting notices over TLS: only to who proves its name, and as who
// we are. Certificates are made here; the servers are real.
#include "adapt/live/http_client.hpp"

#include <doctest/doctest.h>
#include <httplib.h>
#include <openssl/ssl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "adapt/live/http_post.hpp"
#include "adapt/live/scrape.hpp"
#include "adapt/live/test_identity.hpp"
#include "adapt/live/uplink.hpp"

namespace weft::adapt::live {
namespace {

using namespace std::chrono_literals;
using test::TestIdentity;

constexpr const char* here = "DNS:localhost,IP:127.0.0.1";

// A server of metrics, records and notices that counts whom it heard.
class Server {
 public:
  explicit Server(const TestIdentity& identity, const TestIdentity* client_authority = nullptr)
      : server_(identity.certificate().c_str(), identity.key().c_str(),
                client_authority == nullptr ? nullptr : client_authority->certificate().c_str()) {
    REQUIRE(server_.is_valid());
    const auto hear = [this](const httplib::Request& request, httplib::Response& response) {
      ++heard_;
      const auto lines = std::ranges::count(request.body, '\n');
      response.set_content("{\"acknowledged\": " + std::to_string(lines) + "}", "text/plain");
    };
    server_.Get(".*", hear);
    server_.Post(".*", hear);
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::jthread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::sleep_for(1ms);
  }
  ~Server() { server_.stop(); }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::string origin(const std::string& host = "127.0.0.1") const {
    return "https://" + host + ":" + std::to_string(port_);
  }
  SSL_CTX* context() const { return server_.ssl_context(); }
  int heard() const { return heard_; }

 private:
  httplib::SSLServer server_;
  std::atomic<int> heard_ = 0;
  int port_ = 0;
  std::jthread thread_;
};

// What is said of it, "" where all is well: by scraping, by sending a record, by posting a notice.
std::string scraped(const std::string& origin, const TlsFiles& tls) {
  const auto page = scrape(origin + "/metrics", {.timeout = 3s, .tls = tls, .bearer_token = "t"});
  return page ? std::string() : page.error().text();
}

std::string sent(const std::string& origin, const TlsFiles& tls) {
  const TestFolder folder;
  auto uplink = Uplink::open({.url = origin,
                              .token = "secret",
                              .tls = tls,
                              .spool = {.directory = folder.file("spool")},
                              .timeout = 3s,
                              .retry_first = 5ms,
                              .retry_max = 5ms});
  if (!uplink) return uplink.error().text();
  REQUIRE(uplink->send(std::vector<std::string>{"{}"}).has_value());
  for (int i = 0; i < 3'000; ++i) {
    if (uplink->flush(1ms)) return {};
    if (std::string trouble = uplink->trouble(); !trouble.empty()) {
      CHECK(uplink->counts().waiting_bytes > 2);  // it stays ours
      return trouble;
    }
  }
  return "nothing happened";
}

std::string posted(const std::string& origin, const TlsFiles& tls) {
  const Status done = post_json({.origin = origin, .path = "/", .ca_file = tls.ca},
                                {.tries = 1, .timeout = 3s, .backoff = 1ms, .patience = 3s}, "{}",
                                [] { return HttpHeaders{{"Authorization", "secret"}}; });
  return done ? std::string() : done.error().text();
}

// What each of them says. Posting has no certificate of its own to show.
std::vector<std::string> say(const std::string& origin, const TlsFiles& tls) {
  std::vector<std::string> out{scraped(origin, tls), sent(origin, tls)};
  if (tls.certificate.empty()) out.push_back(posted(origin, tls));
  return out;
}

struct TlsBed {
  TestFolder folder;
  TestIdentity authority{folder, "ca", {.name = "authority"}};
  TestIdentity stranger{folder, "other", {.name = "authority"}};  // another of the same name
  TestIdentity server{
      folder, "server", {.authority = &authority, .alternatives = here, .usage = "serverAuth"}};
  TlsFiles trust() const { return {.ca = authority.certificate()}; }
  TlsFiles as(const TestIdentity& own) const {
    return {.ca = authority.certificate(), .certificate = own.certificate(), .key = own.key()};
  }
};

TEST_CASE("TLS: the right certificate, by address and by name") {
  const TlsBed bed;
  const Server server(bed.server);
  for (const char* host : {"127.0.0.1", "localhost"})
    for (const std::string& trouble : say(server.origin(host), bed.trust())) CHECK(trouble == "");
  CHECK(server.heard() == 6);
}

TEST_CASE("TLS: no wrong certificate is ever talked to, by nobody") {
  const TlsBed bed;
  using Options = TestIdentity::Options;
  const TestIdentity* const ours = &bed.authority;
  struct Wrong {
    const char* what;
    Options options;
    const char* words;
  };
  const Wrong all[] = {
      {"of an authority that nobody trusts",
       {.authority = &bed.stranger, .alternatives = here},
       "signature failure"},
      {"of itself", {.alternatives = here}, "self-signed"},
      {"expired", {.authority = ours, .alternatives = here, .valid_s = -60}, "has expired"},
      {"for another name",
       {.authority = ours, .alternatives = "DNS:other.test,IP:127.0.0.2"},
       "mismatch"},
      {"for another name, with ours where nobody may look",
       {.authority = ours, .name = "127.0.0.1", .alternatives = "DNS:other.test"},
       "mismatch"},
      {"of a client", {.authority = ours, .alternatives = here, .usage = "clientAuth"}, "purpose"},
  };
  for (const Wrong& wrong : all) {
    CAPTURE(wrong.what);
    const Server server(TestIdentity(bed.folder, "wrong", wrong.options));
    for (const std::string& trouble : say(server.origin(), bed.trust())) {
      CHECK_MESSAGE(trouble.find("its certificate is not trusted: ") != std::string::npos, trouble);
      CHECK_MESSAGE(trouble.find(wrong.words) != std::string::npos, trouble);
    }
    CHECK(server.heard() == 0);
  }
  // Ours is none of those that the system trusts, and a wildcard is for one name.
  const Server server(bed.server);
  for (const std::string& trouble : say(server.origin(), {}))
    CHECK_MESSAGE(trouble.find("not trusted") != std::string::npos, trouble);
  const Server wild(TestIdentity(bed.folder, "wild", {.authority = ours, .alternatives = "DNS:*"}));
  for (const std::string& trouble : say(wild.origin("localhost"), bed.trust()))
    CHECK_MESSAGE(trouble.find("not trusted") != std::string::npos, trouble);
  CHECK(server.heard() + wild.heard() == 0);
}

TEST_CASE("TLS: old versions and none at all are not talked to") {
  const TlsBed bed;
  const Server old(bed.server);
  SSL_CTX_set_min_proto_version(old.context(), TLS1_VERSION);
  SSL_CTX_set_max_proto_version(old.context(), TLS1_1_VERSION);
  SSL_CTX_set_security_level(old.context(), 0);
  for (const std::string& trouble : say(old.origin(), bed.trust())) CHECK(trouble != "");
  CHECK(old.heard() == 0);

  httplib::Server plain;
  std::atomic<int> heard = 0;
  plain.set_pre_routing_handler([&](const httplib::Request&, httplib::Response&) {
    ++heard;
    return httplib::Server::HandlerResponse::Handled;
  });
  const int port = plain.bind_to_any_port("127.0.0.1");
  std::jthread thread([&] { plain.listen_after_bind(); });
  while (!plain.is_running()) std::this_thread::sleep_for(1ms);
  for (const std::string& trouble : say("https://127.0.0.1:" + std::to_string(port), bed.trust()))
    CHECK(trouble != "");
  CHECK(heard == 0);
  plain.stop();
}

TEST_CASE("mutual TLS: who we are, where a server wants to know") {
  const TlsBed bed;
  const Server server(bed.server, &bed.authority);
  const TestIdentity agent(bed.folder, "agent", {.authority = &bed.authority, .name = "host:3"});
  for (const std::string& trouble : say(server.origin(), bed.as(agent))) CHECK(trouble == "");
  CHECK(server.heard() == 2);

  const TestIdentity unknown(bed.folder, "unknown", {.authority = &bed.stranger, .name = "host:3"});
  const TestIdentity expired(bed.folder, "expired", {.authority = &bed.authority, .valid_s = -60});
  for (const TlsFiles& wrong : {bed.trust(), bed.as(unknown), bed.as(expired)})
    for (const std::string& trouble : say(server.origin(), wrong)) {
      CAPTURE(trouble);
      // In the alert's own words, where it comes before the connection is gone.
      const bool is_told = trouble.find(" alert ") != std::string::npos ||
                           trouble.find("it may require a client certificate") != std::string::npos;
      CHECK(is_told);
    }
  CHECK(server.heard() == 2);

  // A server that does not ask is not told, and takes everybody.
  const Server open(bed.server);
  for (const std::string& trouble : say(open.origin(), bed.as(agent))) CHECK(trouble == "");
}

TEST_CASE("files that cannot be used are told at once") {
  const TlsBed bed;
  const TestIdentity agent(bed.folder, "agent", {.authority = &bed.authority});
  const std::string none = bed.folder.file("none"), ca = bed.authority.certificate();
  const std::string junk = bed.folder.write("junk", "no certificate\n");
  const TlsFiles all[] = {{.ca = none},
                          {.ca = junk},
                          {.ca = agent.key()},
                          {.ca = ca, .certificate = agent.certificate()},
                          {.ca = ca, .key = agent.key()},
                          {.ca = ca, .certificate = none, .key = agent.key()},
                          {.ca = ca, .certificate = agent.certificate(), .key = junk},
                          {.ca = ca, .certificate = agent.certificate(), .key = bed.server.key()}};
  for (const TlsFiles& wrong : all) {
    const auto client = HttpClient::open({HttpOrigin::Scheme::https, "127.0.0.1", 1}, wrong, 100ms);
    REQUIRE_FALSE(client.has_value());
    CHECK(client.error().text().find(bed.folder.path()) != std::string::npos);
    const auto uplink = Uplink::open(
        {.url = "https://127.0.0.1:1", .tls = wrong, .spool = {.directory = bed.folder.path()}});
    CHECK_FALSE(uplink.has_value());
    CHECK_FALSE(scrape("https://127.0.0.1:1/", {.tls = wrong}).has_value());
  }
}

TEST_CASE("an uplink takes up certificates that were renewed, and loses nothing") {
  const TlsBed bed;
  const Server server(bed.server, &bed.authority);
  const TestFolder spool;
  {
    const TestIdentity expired(bed.folder, "agent", {.authority = &bed.authority, .valid_s = -60});
  }
  auto uplink = Uplink::open({.url = server.origin(),
                              .tls = {.ca = bed.authority.certificate(),
                                      .certificate = bed.folder.file("agent.crt"),
                                      .key = bed.folder.file("agent.key")},
                              .spool = {.directory = spool.path()},
                              .timeout = 3s,
                              .retry_first = 5ms,
                              .retry_max = 5ms});
  REQUIRE_MESSAGE(uplink.has_value(), (uplink ? "" : uplink.error().text()));
  REQUIRE(uplink->send(std::vector<std::string>{"{}"}).has_value());
  CHECK_FALSE(uplink->flush(200ms));
  CHECK(server.heard() == 0);
  {
    const TestIdentity renewed(bed.folder, "agent", {.authority = &bed.authority});
  }
  CHECK(uplink->flush(5s));
  CHECK(server.heard() == 1);
  CHECK(uplink->counts().acknowledged == 1);
}

TEST_CASE("origins") {
  const auto told = [](std::string_view text) {
    const auto origin = parse_origin(text);
    return !origin ? std::string()
                   : (origin->is_tls() ? "tls " : "plain ") + origin->host + " " +
                         std::to_string(origin->port) + (origin->is_this_machine() ? " here" : "");
  };
  CHECK(told("https://weft.example") == "tls weft.example 443");
  CHECK(told("http://localhost") == "plain localhost 80 here");
  CHECK(told("http://127.0.0.9:8630") == "plain 127.0.0.9 8630 here");
  CHECK(told("http://127.0.0.1.example.net:1") == "plain 127.0.0.1.example.net 1");
  CHECK(told("https://[2001:db8::a]:8630") == "tls 2001:db8::a 8630");
  CHECK(told("http://[::1]") == "plain ::1 80 here");
  for (const char* bad : {"", "https://", "https://h/", "https://h:", "https://h:0", "https://h:1x",
                          "https://h:65536", "https://u@h", "https://[::1", "https://[::1]x",
                          "ftp://h", "https://h h", "//h", "https://[]", "https://h?x"})
    CHECK_MESSAGE(told(bad).empty(), bad);
}

std::atomic<int> broken_pipes = 0;

TEST_CASE("a connection that the other side has closed is no reason to die") {
  const auto before = std::signal(SIGPIPE, [](int) { ++broken_pipes; });
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  ::close(ends[0]);
  {
    const QuietPipes quiet;
    CHECK(::write(ends[1], "x", 1) == -1);
  }
  CHECK(broken_pipes == 0);
  CHECK(::write(ends[1], "x", 1) == -1);  // as it was before
  CHECK(broken_pipes == 1);
  ::close(ends[1]);
  std::signal(SIGPIPE, before);
}

}  // namespace
}  // namespace weft::adapt::live
