#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "adapt/live/nats_feed.hpp"
#include "adapt/live/test_identity.hpp"
#include "adapt/live/test_nats.hpp"
#include "adapt/live/uplink.hpp"
#include "base/file.hpp"
#include "base/test_folder.hpp"
#include "base/text.hpp"

namespace weft::adapt::live {
namespace {

using namespace std::chrono_literals;
using testing::NatsServers;

TEST_CASE("addresses of NATS") {
  const auto url =
      parse_nats_url({"tls://n1,n2:4333,[2001:db8::1],[2001:db8::2]:5/weft.z-1", "--to"});
  REQUIRE_MESSAGE(url.has_value(), (url ? "" : url.error().text()));
  CHECK(url->is_tls);
  CHECK(url->subject == "weft.z-1");
  REQUIRE(url->servers.size() == 4);
  CHECK(url->servers[0].host == "n1");
  CHECK(url->servers[0].port == 4222);
  CHECK(url->servers[1].port == 4333);
  CHECK(url->servers[2].host == "2001:db8::1");
  CHECK(url->servers[2].port == 4222);
  CHECK(url->servers[3].port == 5);
  const auto plain = parse_nats_url({"nats://127.0.0.1", "--to"});
  REQUIRE(plain.has_value());
  CHECK(plain->subject == "weft");
  for (const auto& [text, part] : std::vector<std::pair<std::string, std::string>>{
           {"nats://far.example", "without TLS"},
           {"nats://127.0.0.1,far.example", "without TLS"},
           {"nats://", "not a host"},
           {"nats://127.0.0.1,,localhost", "not a host"},
           {"nats://user@127.0.0.1", "not a host"},
           {"nats://127.0.0.1:0", "not a host"},
           {"tls://n1/", "not a subject"},
           {"tls://n1/a..b", "not a subject"},
           {"tls://n1/a.*", "not a subject"},
           {"https://n1", "not an address of NATS"}}) {
    CAPTURE(text);
    const auto refused = parse_nats_url({text, "--to"});
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().text().find(part) != std::string::npos);
    CHECK(refused.error().text().find("--to") != std::string::npos);
  }
}

TEST_CASE("the section nats: names every error") {
  const auto config = parse_yaml("{url: \"http://a\", replicas: 7, size: 10 kB, colour: red}", "c");
  const auto refused = read_nats_feed(*config);
  REQUIRE_FALSE(refused.has_value());
  for (const char* part : {"not an address of NATS", "replicas", "size must be 1 MiB", "colour"})
    CHECK_MESSAGE(refused.error().text().find(part) != std::string::npos, refused.error().text());
  CHECK_FALSE(read_nats_feed(Config::map()).has_value());
}

std::vector<std::string> sorted(std::vector<std::string> lines) {
  std::ranges::sort(lines);
  return lines;
}

// What a service does with lines, and how it refuses them for a while.
class Taker {
 public:
  NatsFeed::Accept accept() {
    return [this](std::string_view feed, const std::vector<std::string>& lines) -> Status {
      const std::scoped_lock lock(mutex_);
      if (refusals > 0) {
        --refusals;
        return fail(Errc::io, {}, "the store is full");
      }
      for (const std::string& line : lines) got_.push_back(std::string(feed) + " " + line);
      return {};
    };
  }
  NatsFeed::Log log() {
    return [this](std::string_view line) {
      const std::scoped_lock lock(mutex_);
      said_ += std::string(line) + "\n";
    };
  }
  std::vector<std::string> got() const {
    const std::scoped_lock lock(mutex_);
    return got_;
  }
  std::string said() const {
    const std::scoped_lock lock(mutex_);
    return said_;
  }
  bool waits_for(std::size_t count) const {
    for (int i = 0; i < 2'000 && got().size() < count; ++i) std::this_thread::sleep_for(10ms);
    return got().size() >= count;
  }
  // Each line once, sorted: what a server had not yet noted as acknowledged when it was killed
  // comes again, and late.
  std::vector<std::string> got_once() const {
    std::vector<std::string> out = sorted(got());
    out.erase(std::ranges::unique(out).begin(), out.end());
    return out;
  }
  // Every line of `wanted` and no other, in any order and any number of times.
  bool waits_for_all(const std::vector<std::string>& wanted) const {
    const std::vector<std::string> lines = sorted(wanted);
    for (int i = 0; i < 2'000 && got_once() != lines; ++i) std::this_thread::sleep_for(10ms);
    return got_once() == lines;
  }
  std::atomic<int> refusals = 0;

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> got_;
  std::string said_;
};

NatsFeedSettings settings_of(const std::string& url) {
  const auto config = parse_yaml("{url: \"" + url + "\", size: 8 MiB}", "c");
  auto out = read_nats_feed(*config);
  REQUIRE_MESSAGE(out.has_value(), (out ? "" : out.error().text()));
  out->timeout = 2s;
  return *std::move(out);
}

Uplink uplink_to(const std::string& url, const std::string& feed, const TestFolder& folder,
                 const std::string& token = "") {
  auto out = Uplink::open({.url = url,
                           .path = "/v1/" + feed,
                           .token = token,
                           .spool = {.directory = folder.file("spool-" + feed)},
                           .timeout = 1'000ms,
                           .retry_first = 10ms,
                           .retry_max = 100ms});
  REQUIRE_MESSAGE(out.has_value(), (out ? "" : out.error().text()));
  return *std::move(out);
}

std::vector<std::string> numbered(const std::string& word, int from, int to) {
  std::vector<std::string> out;
  for (int i = from; i < to; ++i) out.push_back(word + std::to_string(i));
  return out;
}

TEST_CASE("lines cross a stream: kept while nobody reads, given again while they are not taken" *
          doctest::test_suite("needs nats")) {
  if (!NatsServers::are_there()) return;
  NatsServers servers(1);
  const TestFolder folder;
  const std::string url = servers.url() + "/weft.z1";
  Taker taker;
  // Without a stream nothing is acknowledged.
  Uplink records = uplink_to(url, "records", folder);
  REQUIRE(records.send(numbered("r", 0, 1'500)).has_value());
  CHECK_FALSE(records.flush(300ms));
  CHECK(records.trouble().find("no stream keeps weft.z1.records") != std::string::npos);
  {
    const NatsFeed feed(settings_of(url), taker.accept(), taker.log());
    CHECK(records.flush(10s));
    CHECK(taker.waits_for(1'500));
  }
  CHECK(taker.said().find("stream WEFT-Z1 made for weft.z1.*") != std::string::npos);
  std::vector<std::string> wanted = numbered("record r", 0, 1'500);
  CHECK(taker.got() == wanted);

  // While no service runs the bus has them, also over its own end.
  Uplink evidence = uplink_to(url, "evidence", folder);
  REQUIRE(evidence.send(numbered("e", 0, 10)).has_value());
  REQUIRE(records.send(numbered("r", 1'500, 1'510)).has_value());
  CHECK(evidence.flush(10s));
  CHECK(records.flush(10s));
  servers.kill(0);
  servers.start(0);
  taker.refusals = 2;
  {
    const NatsFeed feed(settings_of(url), taker.accept(), taker.log());
    CHECK(taker.waits_for(1'520));
    for (int i = 0; i < 1'000 && feed.counts().lines < 20; ++i) std::this_thread::sleep_for(10ms);
    CHECK(feed.counts().lines == 20);
    CHECK(feed.counts().failures >= 2);
    for (const std::string& line : numbered("record r", 1'500, 1'510)) wanted.push_back(line);
    for (const std::string& line : numbered("evidence e", 0, 10)) wanted.push_back(line);
    CHECK(sorted(taker.got()) == sorted(wanted));  // nothing twice
    // The connection breaks, and comes back.
    servers.kill(0);
    REQUIRE(records.send(numbered("r", 1'510, 1'520)).has_value());
    CHECK_FALSE(records.flush(300ms));
    servers.start(0);
    CHECK(records.flush(20s));
    for (const std::string& line : numbered("record r", 1'510, 1'520)) wanted.push_back(line);
    CHECK(taker.waits_for_all(wanted));
  }
  CHECK(taker.said().find("the store is full") != std::string::npos);
}

TEST_CASE("a stream that its server numbers anew is read from its start" *
          doctest::test_suite("needs nats")) {
  if (!NatsServers::are_there()) return;
  NatsServers servers(1);
  const TestFolder folder;
  const std::string url = servers.url() + "/weft.z1";
  Taker taker;
  Uplink records = uplink_to(url, "records", folder);
  const NatsFeed feed(settings_of(url), taker.accept(), taker.log());
  for (int i = 0; i < 3; ++i) {  // messages of their own
    REQUIRE(records.send(numbered("r", i, i + 1)).has_value());
    REQUIRE(records.flush(20s));
  }
  REQUIRE(taker.waits_for(3));
  std::this_thread::sleep_for(1s);  // the server writes what was read a moment later
  servers.kill(0);
  servers.lose_messages(0);
  servers.start(0);
  REQUIRE(records.send(numbered("r", 3, 4)).has_value());
  REQUIRE(records.flush(20s));
  CHECK(taker.waits_for_all(numbered("record r", 0, 4)));
  CHECK_MESSAGE(
      taker.said().find("starts again at message 1, and 3 were read of it") != std::string::npos,
      taker.said());
}

TEST_CASE("a full stream keeps what it has; a line too long for NATS is put aside" *
          doctest::test_suite("needs nats")) {
  if (!NatsServers::are_there()) return;
  const NatsServers servers(1, "authorization {token: secret}", {.token = "secret"});
  const TestFolder folder;
  NatsFeedSettings settings = settings_of(servers.url());
  settings.bytes_max = std::uint64_t{1} << 20;
  Taker taker;
  {
    const NatsFeed stranger(settings, taker.accept(), taker.log());
    for (int i = 0; i < 500 && taker.said().empty(); ++i) std::this_thread::sleep_for(10ms);
    CHECK_MESSAGE(taker.said().find("Authorization") != std::string::npos, taker.said());
  }
  settings.access.token = "secret";
  {
    const NatsFeed feed(settings, taker.accept(), taker.log());
    for (int i = 0; i < 500 && !feed.counts().is_connected; ++i) std::this_thread::sleep_for(10ms);
    CHECK(feed.counts().is_connected);
  }
  Uplink uplink = uplink_to(servers.url(), "syslog", folder, "secret");
  std::vector<std::string> lines = numbered(std::string(100'000, 'x'), 0, 20);  // 2 MB
  lines.insert(lines.begin() + 3, std::string(1'100'000, 'y'));                 // above 1 MiB
  REQUIRE(uplink.send(lines).has_value());
  CHECK_FALSE(uplink.flush(2s));
  CHECK(uplink.counts().acknowledged >= 5);
  CHECK(uplink.counts().acknowledged < 12);
  CHECK(uplink.trouble().find("maximum") != std::string::npos);
  CHECK(uplink.counts().refused == 1);
  CHECK(read_file(folder.file("spool-syslog/refused.jsonl")).value_or("").size() == 1'100'001);
  const NatsFeed feed(settings, taker.accept(), taker.log());
  CHECK(uplink.flush(20s));
  CHECK(taker.waits_for(20));
  CHECK(taker.got() == numbered("syslog " + std::string(100'000, 'x'), 0, 20));
}

TEST_CASE(
    "a message of a subject that is no feed is dropped and counted; a stream that drops is told" *
    doctest::test_suite("needs nats")) {
  if (!NatsServers::are_there()) return;
  const NatsServers servers(1);
  const NatsFeedSettings settings = settings_of(servers.url());
  const auto connection = NatsConnection::open(settings.url, {}, 2s);
  REQUIRE_MESSAGE(connection.has_value(), (connection ? "" : connection.error().text()));
  // Made by somebody else, with the library's usual settings and an age.
  std::array<const char*, 1> subjects{"weft.*"};
  jsStreamConfig config;
  jsStreamConfig_Init(&config);
  config.Name = "WEFT";
  config.Subjects = subjects.data();
  config.SubjectsLen = 1;
  config.MaxAge = 3'600'000'000'000;
  REQUIRE(js_AddStream(nullptr, connection->stream(), &config, nullptr, nullptr) == NATS_OK);
  for (const auto& [subject, body] : std::vector<std::pair<const char*, std::string>>{
           {"weft.rumours", "x"}, {"weft.records", "one\n\ntwo\n"}, {"weft.records", ""}})
    REQUIRE(js_Publish(nullptr, connection->stream(), subject, body.data(),
                       static_cast<int>(body.size()), nullptr, nullptr) == NATS_OK);
  Taker taker;
  const NatsFeed feed(settings, taker.accept(), taker.log());
  CHECK(taker.waits_for(2));
  CHECK(taker.got() == std::vector<std::string>{"record one", "record two"});
  for (int i = 0; i < 500 && feed.counts().messages < 2; ++i) std::this_thread::sleep_for(10ms);
  CHECK(feed.counts().messages == 2);
  CHECK(feed.counts().dropped == 1);
  CHECK(taker.said().find("a message of subject weft.rumours was dropped") != std::string::npos);
  CHECK(taker.said().find("stream WEFT drops its oldest messages") != std::string::npos);
}

TEST_CASE(
    "TLS to NATS: only to who proves its name, with a certificate of ours where it is asked for" *
    doctest::test_suite("needs nats")) {
  if (!NatsServers::are_there()) return;
  const TestFolder folder;
  using test::TestIdentity;
  const TestIdentity authority(folder, "ca", {.name = "ours"}),
      stranger(folder, "stranger", {.name = "another"});
  const TestIdentity here(folder, "here",
                          {.authority = &authority, .alternatives = "DNS:localhost"});
  const TestIdentity client(folder, "client", {.authority = &authority, .name = "agent"});
  const auto tls = [&](const TestIdentity& of) {
    return fmt::format("tls {{cert_file: \"{}\", key_file: \"{}\", ca_file: \"{}\", verify: true}}",
                       of.certificate(), of.key(), authority.certificate());
  };
  const TlsFiles files{authority.certificate(), client.certificate(), client.key()};
  NatsServers servers(1, tls(here), {"localhost", files});
  const auto open = [&](const std::string& host, const TlsFiles& with) {
    const auto url = parse_nats_url({fmt::format("tls://{}:{}", host, servers.port(0)), "--to"});
    REQUIRE(url.has_value());
    const auto out = NatsConnection::open(*url, {.tls = with, .token = ""}, 2s);
    return out ? std::string() : out.error().text();
  };
  CHECK(open("localhost", files).empty());
  CHECK_FALSE(open("127.0.0.1", files).empty());  // not among its names
  CHECK_FALSE(
      open("localhost", {stranger.certificate(), client.certificate(), client.key()}).empty());
  CHECK_FALSE(open("localhost", {"", client.certificate(), client.key()}).empty());
  CHECK_FALSE(open("localhost", {authority.certificate(), "", ""}).empty());
  CHECK(open("localhost", {authority.certificate(), client.certificate(), ""})
            .find("both required") != std::string::npos);
  CHECK(open("localhost", {folder.file("none"), "", ""}).find("no TLS") != std::string::npos);

  // Lines by TLS, through the death of the server.
  NatsFeedSettings settings = settings_of("nats://127.0.0.1");
  settings.url = *parse_nats_url({fmt::format("tls://localhost:{}", servers.port(0)), "url"});
  settings.access.tls = files;
  Taker taker;
  const NatsFeed feed(settings, taker.accept(), taker.log());
  auto uplink = Uplink::open({.url = fmt::format("tls://localhost:{}", servers.port(0)),
                              .tls = files,
                              .spool = {.directory = folder.file("spool")},
                              .timeout = 1'000ms,
                              .retry_first = 10ms,
                              .retry_max = 100ms});
  REQUIRE(uplink.has_value());
  REQUIRE(uplink->send(numbered("a", 0, 10)).has_value());
  CHECK_MESSAGE(uplink->flush(20s), uplink->trouble());
  servers.kill(0);
  REQUIRE(uplink->send(numbered("a", 10, 20)).has_value());
  servers.start(0);
  CHECK_MESSAGE(uplink->flush(20s), uplink->trouble());
  CHECK(taker.waits_for_all(numbered("record a", 0, 20)));
}

}  // namespace
}  // namespace weft::adapt::live
