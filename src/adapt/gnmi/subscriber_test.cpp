#include "adapt/gnmi/subscriber.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "adapt/gnmi/gnmi_test_target.hpp"
#include "base/fd.hpp"

// The subscriber and a target on loopback:
//
//   GnmiSubscriber --- HTTP/2 --- TestTarget(script)

namespace weft::adapt::gnmi {
namespace {

constexpr std::int64_t ms = 1'000'000;

class TestClock final : public port::Clock {
 public:
  port::Instant now() override {
    return {std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1)};
  }
  Timestamp wall() override {
    return {std::chrono::system_clock::now().time_since_epoch() / std::chrono::nanoseconds(1)};
  }
};

const std::string octets = "interfaces/interface[name=e1]/state/counters/in-octets";

SubscriberOptions quick() {
  SubscriberOptions out;
  out.sample_ns = 50 * ms;
  out.silence_ns = 10 * ns_per_s;
  out.backoff_least_ns = 10 * ms;
  out.backoff_most_ns = 50 * ms;
  return out;
}

Target plain(const TestTarget& target, std::string device = "leaf1") {
  return {.device = std::move(device), .address = target.address(), .security = Security::plain};
}

struct Client {
  TestClock clock;
  GnmiSubscriber subscriber;

  Client(std::vector<Target> targets, const SubscriberOptions& options)
      : subscriber(must(GnmiSubscriber::open(std::move(targets), options, clock))) {}

  static GnmiSubscriber must(Result<GnmiSubscriber> made) {
    if (!made) FAIL(made.error().text());
    return std::move(*made);
  }
  port::Instant in(std::int64_t ns) { return clock.now() + ns; }
  TargetReport report() const { return subscriber.targets().front(); }

  // Samples as "device component metric=value" until `enough` says so, or five seconds are over.
  std::vector<std::string> until(const std::function<bool(const std::vector<std::string>&)>& enough,
                                 std::int64_t patience = 5 * ns_per_s) {
    std::vector<std::string> out;
    const port::Instant end = in(patience);
    while (!enough(out) && clock.now() < end)
      for (const port::Sample& one : subscriber.take(1000, in(20 * ms)))
        out.push_back(fmt::format("{} {} {}={:.9g}", one.device, one.component, to_text(one.metric),
                                  one.value));
    return out;
  }
  std::vector<std::string> first(std::size_t count) {
    return until([&](const auto& lines) { return lines.size() >= count; });
  }
  template <class Condition>
  bool waits_for(const Condition& condition, std::int64_t patience = 5 * ns_per_s) {
    until([&](const auto&) { return condition(); }, patience);
    return condition();
  }
};
using Lines = std::vector<std::string>;

// Takes connections and says nothing.
class MuteListener {
 public:
  MuteListener() : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    auto* const plain = reinterpret_cast<sockaddr*>(&at);
    REQUIRE(::bind(fd_.get(), plain, size) == 0);
    REQUIRE(::listen(fd_.get(), 16) == 0);
    REQUIRE(::getsockname(fd_.get(), plain, &size) == 0);
    port_ = ntohs(at.sin_port);
  }
  std::string address() const { return fmt::format("127.0.0.1:{}", port_); }

 private:
  Fd fd_;
  int port_ = 0;
};

TEST_CASE("a stream: what is asked, and what comes, in order") {
  ::gnmi::SubscribeRequest asked;
  std::atomic<bool> is_asked = false;
  const TestTarget target([&](TestStream& stream, const auto& request, int) {
    asked = request;
    is_asked = true;
    stream.Write(number_message(octets, 1));
    stream.Write(sync_message());
    for (std::uint64_t i = 2; i <= 50; ++i) stream.Write(number_message(octets, i));
    return hang(stream);
  });
  SubscriberOptions options = quick();
  options.subscriptions = {{"/interfaces/interface[name=*]/state/counters"},
                           {"origin:/a/b[x=1]", Trigger::on_change}};
  Target one = plain(target);
  one.database = "OC-YANG";
  Client client({one}, options);
  Lines wanted{"leaf1  reachable=1"};
  for (int i = 1; i <= 50; ++i) wanted.push_back(fmt::format("leaf1 e1 in_octets={}", i));
  CHECK(client.first(51) == wanted);
  const TargetReport report = client.report();
  CHECK(report.is_synced);
  CHECK(report.connects == 1);
  CHECK(report.failures == 0);
  CHECK(report.decoded.samples == 50);

  REQUIRE(is_asked);
  const auto& list = asked.subscribe();
  CHECK(list.mode() == ::gnmi::SubscriptionList::STREAM);
  CHECK(list.encoding() == ::gnmi::PROTO);
  CHECK(list.prefix().target() == "OC-YANG");
  REQUIRE(list.subscription_size() == 2);
  CHECK(list.subscription(0).mode() == ::gnmi::SAMPLE);
  CHECK(list.subscription(0).sample_interval() == 50'000'000);
  CHECK(list.subscription(0).path().elem(1).key().at("name") == "*");
  CHECK(list.subscription(1).mode() == ::gnmi::ON_CHANGE);
  CHECK(list.subscription(1).heartbeat_interval() == 60'000'000'000);
  CHECK(list.subscription(1).path().origin() == "origin");
}

TEST_CASE("encodings: as the target says; the next where it refuses one after all") {
  std::mutex lock;
  std::vector<::gnmi::Encoding> asked;
  const auto script = [&](TestStream& stream, const ::gnmi::SubscribeRequest& request, int) {
    const auto encoding = request.subscribe().encoding();
    {
      const std::lock_guard guard(lock);
      asked.push_back(encoding);
    }
    if (encoding != ::gnmi::JSON)
      return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "not this\nencoding");
    stream.Write(json_message("interfaces", R"({"interface":[{"name":"e1","state":
      {"counters":{"in-octets":"7"}}}]})"));
    return hang(stream);
  };
  for (const bool has_capabilities : {true, false}) {
    asked.clear();
    const TestTarget target(script, {.encodings = {::gnmi::JSON, ::gnmi::JSON_IETF},
                                     .has_capabilities = has_capabilities});
    Client client({plain(target)}, quick());
    CHECK(client.first(2) == Lines{"leaf1  reachable=1", "leaf1 e1 in_octets=7"});
    CHECK(client.report().last_error == "INVALID_ARGUMENT: not this?encoding");
    const std::lock_guard guard(lock);
    CHECK(asked.front() == ::gnmi::JSON_IETF);
    CHECK(asked.back() == ::gnmi::JSON);
  }
}

TEST_CASE("a target that refuses all because of a path it does not have is asked for the others") {
  const TestTarget target([](TestStream& stream, const ::gnmi::SubscribeRequest& request, int) {
    for (const auto& one : request.subscribe().subscription())
      if (one.path().elem_size() > 3 && one.path().elem(3).name() == "output")
        return grpc::Status(grpc::StatusCode::NOT_FOUND, "no such path");
    stream.Write(number_message(
        octets, static_cast<std::uint64_t>(request.subscribe().subscription_size())));
    stream.Write(sync_message());
    return hang(stream);
  });
  SubscriberOptions options = quick();
  options.backoff_least_ns = 2 * ms;
  for (const Mode mode : {Mode::stream, Mode::once}) {
    options.mode = mode;
    Client client({plain(target)}, options);
    CHECK(client.waits_for([&] { return client.report().is_synced; }));
    CHECK(client.report().refused ==
          Lines{"/qos/interfaces/interface[interface-id=*]/output/queues/queue[name=*]/state"});
    CHECK(client.report().decoded.samples == 1);
  }
  const std::size_t wanted = default_subscriptions().size() - 1;
  Client client({plain(target)}, options);
  const Lines lines = client.until([&](const auto&) { return client.subscriber.done(); });
  CHECK(lines.back() == fmt::format("leaf1 e1 in_octets={}", wanted));
}

TEST_CASE("what a target does not tell on change is sampled") {
  std::mutex lock;
  ::gnmi::SubscribeRequest asked;
  const TestTarget target([&](TestStream& stream, const ::gnmi::SubscribeRequest& request, int) {
    for (const auto& one : request.subscribe().subscription())
      if (one.mode() == ::gnmi::ON_CHANGE && one.path().elem(0).name() == "a")
        return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "not on change");
    {
      const std::lock_guard guard(lock);
      asked = request;
    }
    stream.Write(sync_message());
    return hang(stream);
  });
  SubscriberOptions options = quick();
  options.backoff_least_ns = 2 * ms;
  options.subscriptions = {{"/a", Trigger::on_change}, {"/b", Trigger::on_change}, {"/c"}};
  Client client({plain(target)}, options);
  CHECK(client.waits_for([&] { return client.report().is_synced; }));
  CHECK(client.report().refused.empty());
  const std::lock_guard guard(lock);
  const auto& list = asked.subscribe();
  REQUIRE(list.subscription_size() == 3);
  for (const auto& one : list.subscription())
    CHECK((one.mode() == ::gnmi::ON_CHANGE) == (one.path().elem(0).name() == "b"));
}

TEST_CASE("a session that ends begins again, later and later, and at once after it was well") {
  const TestTarget target([](TestStream& stream, const auto&, int session) {
    if (session >= 5) {
      stream.Write(number_message(octets, static_cast<std::uint64_t>(session)));
      stream.Write(sync_message());
      return hang(stream);
    }
    if (session == 1) return grpc::Status(grpc::StatusCode::INTERNAL, "broken");
    return grpc::Status::OK;
  });
  SubscriberOptions options = quick();
  options.backoff_least_ns = 20 * ms;
  options.backoff_most_ns = 80 * ms;
  Client client({plain(target)}, options);
  const port::Instant start = client.clock.now();
  CHECK(client.first(2) == Lines{"leaf1  reachable=1", "leaf1 e1 in_octets=5"});
  // 20, 40, 80, 80, 80 ms, each at least three quarters of it.
  CHECK(client.clock.now() - start > 225 * ms);
  CHECK(client.report().failures == 5);
  CHECK(client.report().connects == 1);
}

TEST_CASE("a target that comes up late, goes and returns is found again") {
  const auto script = [](TestStream& stream, const auto&, int) {
    stream.Write(number_message(octets, 1));
    stream.Write(sync_message());
    return hang(stream);
  };
  auto target = std::make_unique<TestTarget>(script);
  const int port = target->port();
  const Target where = plain(*target);
  target.reset();
  Client client({where}, quick());
  CHECK(client.waits_for([&] { return client.report().failures >= 2; }));
  CHECK(client.report().last_error.starts_with("UNAVAILABLE: "));
  for (int round = 0; round < 2; ++round) {
    target = std::make_unique<TestTarget>(script, TestTargetOptions{.port = port});
    CHECK(client.first(2) == Lines{"leaf1  reachable=1", "leaf1 e1 in_octets=1"});
    target.reset();
    CHECK(client.waits_for([&] { return !client.report().is_synced; }));
  }
}

TEST_CASE("silence: said as not reachable, again and again, and the session begins anew") {
  const TestTarget target([](TestStream& stream, const auto&, int) {
    stream.Write(number_message(octets, 1));
    return hang(stream);
  });
  SubscriberOptions options = quick();
  options.silence_ns = 200 * ms;
  Client client({plain(target)}, options);
  CHECK(client.first(6) == Lines{"leaf1  reachable=1", "leaf1 e1 in_octets=1", "leaf1  reachable=0",
                                 "leaf1  reachable=1", "leaf1 e1 in_octets=1",
                                 "leaf1  reachable=0"});
  CHECK(client.report().last_error == "it sent nothing for 0.2 s");
  CHECK(target.sessions() >= 2);
}

TEST_CASE("nobody listens, or nobody speaks HTTP/2: not reachable within the limit") {
  SubscriberOptions options = quick();
  options.silence_ns = 150 * ms;
  Client nobody({{.device = "leaf1", .address = "127.0.0.1:1", .security = Security::plain}},
                options);
  CHECK(nobody.first(2) == Lines{"leaf1  reachable=0", "leaf1  reachable=0"});
  const MuteListener mute;
  Client unheard({{.device = "leaf1", .address = mute.address(), .security = Security::plain}},
                 options);
  CHECK(unheard.first(2) == Lines{"leaf1  reachable=0", "leaf1  reachable=0"});
}

TEST_CASE("a slow caller is no silence of the target") {
  const TestTarget target([](TestStream& stream, const auto&, int) {
    for (std::uint64_t i = 0; stream.Write(number_message(octets, i)); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return grpc::Status::OK;
  });
  SubscriberOptions options = quick();
  options.silence_ns = 150 * ms;
  Client client({plain(target)}, options);
  CHECK(client.first(2).size() >= 2);
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  for (const std::string& line : client.first(20)) CHECK(line.find("reachable=0") == line.npos);
  CHECK(client.report().failures == 0);
}

TEST_CASE("user name and password") {
  const TestTarget target(
      [](TestStream& stream, const auto&, int) {
        stream.Write(number_message(octets, 1));
        return hang(stream);
      },
      {.username = "weft", .password = "secret"});
  Target known = plain(target);
  known.username = "weft";
  known.password = "secret";
  Client good({known}, quick());
  CHECK(good.first(2).size() == 2);
  known.password = "guess";
  Client bad({known}, quick());
  CHECK(bad.waits_for([&] { return bad.report().failures >= 2; }));
  CHECK(bad.report().last_error.starts_with("UNAUTHENTICATED: "));
  CHECK(bad.report().connects == 0);
}

TEST_CASE("TLS: whom the authority vouches for, and nobody else") {
  const TestAuthority ours, theirs;
  const auto script = [](TestStream& stream, const auto&, int) {
    stream.Write(number_message(octets, 1));
    return hang(stream);
  };
  const TestTarget target(script,
                          {.key = ours.issue("leaf1.test"), .client_ca = ours.certificate()});
  const TestKey client = ours.issue("weft.test"), stranger = theirs.issue("weft.test");
  const Target good{.device = "leaf1",
                    .address = target.address(),
                    .ca = ours.certificate(),
                    .certificate = client.certificate,
                    .key = client.key};
  const auto is_served = [](const Target& as) {
    Client one({as}, quick());
    one.waits_for([&] { return one.report().connects > 0 || one.report().failures > 1; });
    return one.report().connects > 0;
  };
  CHECK(is_served(good));
  Target named = good;
  named.server_name = "leaf1.test";
  CHECK(is_served(named));
  named.server_name = "leaf2.test";
  CHECK(!is_served(named));
  Target other_authority = good;
  other_authority.ca = theirs.certificate();
  CHECK(!is_served(other_authority));
  Target without_own = good;
  without_own.certificate = without_own.key = "";
  CHECK(!is_served(without_own));
  Target as_stranger = good;
  as_stranger.certificate = stranger.certificate;
  as_stranger.key = stranger.key;
  CHECK(!is_served(as_stranger));
  CHECK(!is_served(plain(target)));
  Target garbage = good;
  garbage.ca = "no certificate";
  CHECK(!is_served(garbage));
}

TEST_CASE("a flood with a slow caller: the target waits, nothing is lost, memory stays small") {
  constexpr std::uint64_t updates = 100'000;
  std::atomic<std::uint64_t> written = 0;
  const TestTarget target([&](TestStream& stream, const auto&, int) {
    for (std::uint64_t i = 1; i <= updates; ++i) {
      if (!stream.Write(number_message(octets, i))) break;
      ++written;
    }
    return hang(stream);
  });
  Client client({plain(target)}, quick());
  std::uint64_t seen = 0;
  bool in_order = true;
  const auto take = [&](std::size_t most) {
    for (const port::Sample& one : client.subscriber.take(most, client.in(ns_per_s))) {
      if (one.metric != port::Metric::in_octets) continue;
      in_order &= one.value == static_cast<double>(++seen);
    }
  };
  while (seen < 1000) take(100);
  // Nobody takes: what was written ahead fits into the windows of gRPC and the kernel, and once
  // they are full the target stands still.
  std::uint64_t ahead = 0;
  for (int tries = 0; tries < 100 && written - seen != ahead; ++tries) {
    ahead = written - seen;
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }
  CHECK(written - seen == ahead);
  CHECK(ahead < updates / 2);
  const port::Instant start = client.clock.now();
  const std::uint64_t before = seen;
  while (seen < updates && client.clock.now() - start < 20 * ns_per_s) take(1000);
  const double seconds = static_cast<double>(client.clock.now() - start) * 1e-9;
  CHECK(seen == updates);
  CHECK(in_order);
  MESSAGE(fmt::format("{} updates ahead; {:.0f} updates/s, one a message", ahead,
                      static_cast<double>(updates - before) / seconds));
}

TEST_CASE("a flood of one target does not hide the silence of another, nor keep a third away") {
  const auto flood = [](TestStream& stream, const auto&, int) {
    while (stream.Write(number_message(octets, 1))) {
    }
    return grpc::Status::OK;
  };
  const auto late = [](TestStream& stream, const auto&, int session) {
    if (session < 3) return grpc::Status::OK;
    stream.Write(sync_message());
    return hang(stream);
  };
  const TestTarget loud(flood), third(late);
  SubscriberOptions options = quick();
  options.silence_ns = 300 * ms;
  const Target dead{.device = "dead", .address = "127.0.0.1:1", .security = Security::plain};
  Client client({plain(loud), dead, plain(third, "third")}, options);
  bool is_silent = false, is_there = false;
  const port::Instant end = client.in(5 * ns_per_s);
  while (!(is_silent && is_there) && client.clock.now() < end)
    for (const port::Sample& one : client.subscriber.take(5, client.in(ms))) {
      is_silent |= one.device == "dead" && one.value == 0;
      is_there |= one.device == "third" && one.value == 1;
    }
  CHECK(is_silent);
  CHECK(is_there);
}

TEST_CASE("a message beyond the limit ends the session, and is no surprise") {
  const TestTarget target([](TestStream& stream, const auto&, int) {
    stream.Write(json_message("interfaces", std::string(100'000, ' ')));
    return hang(stream);
  });
  SubscriberOptions options = quick();
  options.message_bytes_max = 50'000;
  Client client({plain(target)}, options);
  CHECK(client.waits_for([&] { return client.report().failures >= 2; }));
  CHECK(client.report().last_error.starts_with("RESOURCE_EXHAUSTED: "));
}

TEST_CASE("garbage is counted by path, and the rest is read") {
  const TestTarget target([](TestStream& stream, const auto&, int) {
    stream.Write(number_message("a/b[c=d]/e", 1));
    stream.Write(json_message("interfaces", "{]"));
    stream.Write({});
    stream.Write(number_message(octets, 1));
    return hang(stream);
  });
  Client client({plain(target)}, quick());
  CHECK(client.first(2).back() == "leaf1 e1 in_octets=1");
  const auto rows = client.subscriber.misread().rows();
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].path == "a/b/e");
  CHECK(rows[0].why == Misread::unmapped);
  CHECK(rows[1].why == Misread::bad_json);
}

TEST_CASE("once: done when all have said everything, or were silent for too long") {
  const TestTarget target([](TestStream& stream, const auto& request, int) {
    CHECK(request.subscribe().mode() == ::gnmi::SubscriptionList::ONCE);
    stream.Write(number_message(octets, 1));
    stream.Write(sync_message());
    return grpc::Status::OK;
  });
  SubscriberOptions options = quick();
  options.mode = Mode::once;
  options.silence_ns = 300 * ms;
  const Target dead{.device = "leaf2", .address = "127.0.0.1:1", .security = Security::plain};
  Client client({plain(target), dead}, options);
  const Lines lines = client.until([&](const auto&) { return client.subscriber.done(); });
  CHECK(lines == Lines{"leaf1  reachable=1", "leaf1 e1 in_octets=1", "leaf2  reachable=0"});
  const auto reports = client.subscriber.targets();
  CHECK(reports[0].is_synced);
  CHECK(reports[0].failures == 0);
  CHECK(!reports[1].is_synced);
  CHECK(reports[1].last_error.starts_with("UNAVAILABLE: "));
  CHECK(target.sessions() == 1);
}

TEST_CASE("poll: asked again after each interval") {
  const TestTarget target([](TestStream& stream, const auto& request, int) {
    CHECK(request.subscribe().mode() == ::gnmi::SubscriptionList::POLL);
    ::gnmi::SubscribeRequest next;
    std::uint64_t polls = 0;
    do {
      stream.Write(number_message(octets, polls++));
      stream.Write(sync_message());
    } while (stream.Read(&next) && next.has_poll());
    return grpc::Status::OK;
  });
  SubscriberOptions options = quick();
  options.mode = Mode::poll;
  Client client({plain(target)}, options);
  const port::Instant start = client.clock.now();
  CHECK(client.first(5) == Lines{"leaf1  reachable=1", "leaf1 e1 in_octets=0",
                                 "leaf1 e1 in_octets=1", "leaf1 e1 in_octets=2",
                                 "leaf1 e1 in_octets=3"});
  CHECK(client.clock.now() - start > 3 * options.sample_ns);
  CHECK(target.sessions() == 1);
}

TEST_CASE("many targets: each in its own order, one broken one harms no other") {
  constexpr int count = 30, each = 200;
  const TestTarget target([](TestStream& stream, const auto&, int) {
    for (std::uint64_t i = 1; i <= each; ++i) stream.Write(number_message(octets, i));
    return hang(stream);
  });
  std::vector<Target> targets{
      {.device = "dead", .address = "127.0.0.1:1", .security = Security::plain}};
  for (int i = 0; i < count; ++i) targets.push_back(plain(target, fmt::format("leaf{}", i)));
  Client client(targets, quick());
  std::map<std::string, int> last;
  int wrong = 0, seen = 0;
  const port::Instant end = client.in(10 * ns_per_s);
  while (seen < count * each && client.clock.now() < end)
    for (const port::Sample& one : client.subscriber.take(500, client.in(20 * ms))) {
      if (one.metric != port::Metric::in_octets) continue;
      ++seen;
      wrong += one.value == ++last[one.device] ? 0 : 1;
    }
  CHECK(seen == count * each);
  CHECK(wrong == 0);
}

TEST_CASE("options and targets that cannot be are refused together") {
  TestClock clock;
  SubscriberOptions options;
  options.sample_ns = options.silence_ns;
  options.subscriptions = {{"a//b"}};
  const auto made = GnmiSubscriber::open(
      {{.device = "", .address = "nowhere"},
       {.device = "a", .address = "h:1", .key = "k"},
       {.device = "a", .address = "h:99999"},
       {.device = "b", .address = "h:1", .password = "x\r\n"},
       {.device = "c", .address = "[::1]:1", .security = Security::plain, .ca = "x"}},
      options, clock);
  REQUIRE(!made);
  CHECK(made.error().more.size() == 8);
  CHECK(!GnmiSubscriber::open({}, {}, clock));
}

}  // namespace
}  // namespace weft::adapt::gnmi
