// Real agents (net-snmp's snmpd) and worse ones, on loopback alone.
#include "adapt/snmp/poller.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "adapt/snmp/test_kit.hpp"
#include "adapt/snmp/trap_receiver.hpp"
#include "base/test_approx.hpp"
#include "base/test_skip.hpp"

namespace weft::adapt::snmp {
namespace {

using port::Metric;
using std::chrono::milliseconds;

using test::WallClock;

constexpr const char* access_lines =
    "rocommunity lab 127.0.0.1\n"
    "createUser weft SHA-256 \"a long secret\" AES \"another secret\"\n"
    "rouser weft priv\n";
// A port that is down, a heated sensor, a session that is not established.
constexpr const char* table_lines =
    "override .1.3.6.1.2.1.2.2.1.2.1001 octet_str \"Ethernet1/8\"\n"
    "override .1.3.6.1.2.1.2.2.1.7.1001 integer 1\n"
    "override .1.3.6.1.2.1.2.2.1.8.1001 integer 2\n"
    "override .1.3.6.1.2.1.2.2.1.14.1001 counter 4711\n"
    "override .1.3.6.1.2.1.31.1.1.1.1.1001 octet_str \"Ethernet1/8\"\n"
    "override .1.3.6.1.2.1.47.1.1.1.1.7.300 octet_str \"Inlet\"\n"
    "override .1.3.6.1.2.1.99.1.1.1.1.300 integer 8\n"
    "override .1.3.6.1.2.1.99.1.1.1.2.300 integer 9\n"
    "override .1.3.6.1.2.1.99.1.1.1.3.300 integer 1\n"
    "override .1.3.6.1.2.1.99.1.1.1.4.300 integer 253\n"
    "override .1.3.6.1.2.1.99.1.1.1.5.300 integer 1\n"
    "override .1.3.6.1.2.1.15.3.1.2.10.9.0.1 integer 3\n";

Target target(const char* device, std::uint16_t port) {
  Target out{device, {"127.0.0.1", port}, {}};
  out.credentials.community = "lab";
  return out;
}
Target target_v3(const char* device, std::uint16_t port) {
  Target out{device, {"127.0.0.1", port}, {}};
  out.credentials = {.version = Credentials::Version::v3,
                     .user = "weft",
                     .auth = Credentials::Auth::sha256,
                     .auth_password = "a long secret",
                     .priv = Credentials::Priv::aes,
                     .priv_password = "another secret"};
  return out;
}

SnmpPoller open_poller(std::vector<Target> targets, const PollerOptions& options,
                       WallClock& clock) {
  auto poller = SnmpPoller::create(std::move(targets), options, clock);
  if (!poller) FAIL(poller.error().text());
  return *std::move(poller);
}

// Polls until `count` are done, at most 30 s.
std::vector<Poll> polls(SnmpPoller& poller, WallClock& clock, std::size_t count) {
  std::vector<Poll> out;
  const port::Instant end = clock.now() + 30 * ns_per_s;
  while (out.size() < count && clock.now() < end) {
    poller.step();
    while (auto poll = poller.take()) out.push_back(*std::move(poll));
    if (out.size() < count) poller.wait(clock.now() + 50'000'000);
  }
  return out;
}

std::optional<double> value(const Poll& poll, std::string_view component, Metric metric) {
  for (const port::Sample& sample : poll.samples)
    if (sample.component == component && sample.metric == metric) return sample.value;
  return std::nullopt;
}

// Otherwise the test is marked as skipped.
bool has(const char* program) {
  if (test::has_program(program)) return true;
  skip_test(fmt::format("there is no {}", program));
  return false;
}

// snmpd needs a moment before it listens: asks until it answers.
void await(WallClock& clock, const Target& agent) {
  PollerOptions options{.every = milliseconds(300), .timeout = milliseconds(100), .retries = 0};
  SnmpPoller poller = open_poller({agent}, options, clock);
  const port::Instant end = clock.now() + 20 * ns_per_s;
  while (clock.now() < end)
    for (const Poll& poll : polls(poller, clock, 1))
      if (value(poll, "", Metric::reachable) == 1.0) return;
  FAIL("snmpd does not answer");
}

TEST_CASE("a real agent by v2c and v3: its tables become samples" *
          doctest::test_suite("needs snmpd")) {
  if (!has("/usr/sbin/snmpd")) return;
  WallClock clock;
  test::Agent agent(std::string(access_lines) + table_lines);
  await(clock, target("one", agent.port()));
  SnmpPoller poller =
      open_poller({target("one", agent.port()), target_v3("two", agent.port())}, {}, clock);
  const std::vector<Poll> got = polls(poller, clock, 2);
  REQUIRE(got.size() == 2);
  for (const Poll& poll : got) {
    INFO(poll.device << " " << poll.error);
    CHECK(value(poll, "", Metric::reachable) == 1.0);
    CHECK(value(poll, "Ethernet1/8", Metric::admin_up) == 1.0);
    CHECK(value(poll, "Ethernet1/8", Metric::oper_up) == 0.0);
    CHECK(value(poll, "Ethernet1/8", Metric::in_errors) == 4711.0);
    CHECK(value(poll, "Inlet", Metric::celsius) == approx(25.3));
    CHECK(value(poll, "10.9.0.1", Metric::bgp_established) == 0.0);
    CHECK(value(poll, "lo", Metric::oper_up) == 1.0);
    CHECK(value(poll, "lo", Metric::in_octets).has_value());
    CHECK(value(poll, "", Metric::uptime_s).value_or(0) > 1);
    CHECK(value(poll, "", Metric::memory_share).value_or(2) <= 1);
    for (const port::Sample& sample : poll.samples) CHECK(sample.device == poll.device);
  }
  CHECK(poller.interface_name("one", 1001) == "Ethernet1/8");
  CHECK(poller.interface_name("one", 7'777).empty());
  CHECK(poller.counts().complete == 2);
  CHECK(poller.counts().loops == 0);
  // Again, by the engine id that is known now; and at once when a trap asks for it.
  const std::uint64_t before = poller.counts().requests;
  CHECK(poller.poll_soon("two"));
  CHECK_FALSE(poller.poll_soon("three"));
  const std::vector<Poll> again = polls(poller, clock, 1);
  REQUIRE(again.size() == 1);
  CHECK(value(again[0], "Ethernet1/8", Metric::oper_up) == 0.0);
  CHECK(poller.counts().requests - before < before);
}

TEST_CASE("who is not there, not known, or talks rubbish, holds nobody up" *
          doctest::test_suite("needs snmpd")) {
  if (!has("/usr/sbin/snmpd")) return;
  WallClock clock;
  test::Agent agent(std::string(access_lines) + table_lines);
  await(clock, target("one", agent.port()));
  // A socket that is there and says nothing.
  const Fd mute(::socket(AF_INET, SOCK_DGRAM, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  REQUIRE(::bind(mute.get(), reinterpret_cast<sockaddr*>(&at), size) == 0);
  REQUIRE(::getsockname(mute.get(), reinterpret_cast<sockaddr*>(&at), &size) == 0);
  const std::uint16_t mute_port = ntohs(at.sin_port);

  std::vector<Target> all;
  const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (int i = 0; i < 40; ++i) out.push_back("mute" + std::to_string(i));
    return out;
  }();
  for (const std::string& name : names) all.push_back(target(name.c_str(), mute_port));
  Target stranger = target_v3("stranger", agent.port());
  stranger.credentials.user = "nobody-here";
  Target wrong = target_v3("wrong", agent.port());
  wrong.credentials.auth_password = "not the secret";
  // Another user: the library keeps one key for each user of an engine.
  wrong.credentials.user = "weft";
  all.push_back(stranger);
  all.push_back(target("good", agent.port()));
  const PollerOptions options{.timeout = milliseconds(200), .retries = 1, .in_flight = 64};
  SnmpPoller poller = open_poller(all, options, clock);
  const port::Instant begin = clock.now();
  std::vector<Poll> got;
  std::int64_t longest_step = 0;
  while (got.size() < all.size() && clock.now() - begin < 20 * ns_per_s) {
    const port::Instant before = clock.now();
    poller.step();
    longest_step = std::max(longest_step, clock.now() - before);
    while (auto poll = poller.take()) got.push_back(*std::move(poll));
    // Rubbish to whoever asked.
    std::array<char, 2'048> buffer{};
    sockaddr_in from{};
    socklen_t length = sizeof from;
    while (::recvfrom(mute.get(), buffer.data(), buffer.size(), MSG_DONTWAIT,
                      reinterpret_cast<sockaddr*>(&from), &length) > 0)
      ::sendto(mute.get(), "0rubbish\xff\x30\x82", 11, 0, reinterpret_cast<sockaddr*>(&from),
               length);
    poller.wait(clock.now() + 10'000'000);
  }
  REQUIRE(got.size() == all.size());
  // All at once, not one after the other: 40 agents of 400 ms and more.
  CHECK(clock.now() - begin < 6 * ns_per_s);
  CHECK(longest_step < ns_per_s / 2);
  for (const Poll& poll : got) {
    const bool is_mute = poll.device.starts_with("mute");
    CHECK(value(poll, "", Metric::reachable) == (is_mute ? 0.0 : 1.0));
    if (poll.device == "good") CHECK(value(poll, "Ethernet1/8", Metric::oper_up) == 0.0);
    if (poll.device == "stranger") CHECK_FALSE(poll.error.empty());
  }
  CHECK(poller.counts().silent == 40);
  CHECK(poller.counts().refused == 1);
}

TEST_CASE("an agent that dies is unreachable, one that comes back is asked again" *
          doctest::test_suite("needs snmpd")) {
  if (!has("/usr/sbin/snmpd")) return;
  WallClock clock;
  std::optional<test::Agent> agent;
  agent.emplace(access_lines);
  const std::uint16_t port = agent->port();
  await(clock, target_v3("one", port));
  const PollerOptions options{
      .every = milliseconds(500), .timeout = milliseconds(150), .retries = 1};
  SnmpPoller poller = open_poller({target_v3("one", port)}, options, clock);
  const auto await_reachable = [&](double wanted) {
    for (int i = 0; i < 40; ++i) {
      const auto got = polls(poller, clock, 1);
      if (!got.empty() && value(got[0], "", Metric::reachable) == wanted) return true;
    }
    return false;
  };
  CHECK(await_reachable(1));
  agent->stop();
  CHECK(await_reachable(0));
  agent.emplace(access_lines, port);  // with another engine id
  CHECK(await_reachable(1));
  bool has_uptime = false;
  for (int i = 0; i < 10 && !has_uptime; ++i)
    for (const Poll& poll : polls(poller, clock, 1))
      has_uptime |= value(poll, "", Metric::uptime_s).has_value();
  CHECK(has_uptime);
}

// Runs snmpset or snmptrap with these words.
int run(const char* program, std::vector<std::string> words, const TestFolder& folder) {
  words.insert(words.begin(), {program, "-v2c", "-c", "lab", "-M", folder.path()});
  return test::Child(std::move(words), folder.path()).wait();
}

// What is measured of Ethernet1/8 by an agent that is asked once an hour, but tells by traps.
struct TrapBed {
  static constexpr const char* down = "1.3.6.1.6.3.1.1.5.3";
  static constexpr const char* up = "1.3.6.1.6.3.1.1.5.4";
  static constexpr const char* oper = ".1.3.6.1.2.1.2.2.1.8.1001";
  WallClock clock;
  TestFolder folder;
  test::Agent agent{"rwcommunity lab 127.0.0.1\n" + std::string(access_lines) +
                    "override -rw .1.3.6.1.2.1.2.2.1.8.1001 integer 1\n"
                    "override .1.3.6.1.2.1.2.2.1.2.1001 octet_str \"Ethernet1/8\"\n"
                    "override .1.3.6.1.2.1.31.1.1.1.1.1001 octet_str \"Ethernet1/8\"\n"};
  std::uint16_t port = free_port(SOCK_DGRAM);
  TrapReceiver receiver = open_receiver();
  std::optional<SnmpPoller> poller;
  std::vector<std::pair<port::Instant, double>> states;  // when known, and which
  int uptime = 0;  // of traps: the receiver takes two of one time for the same

  TrapReceiver open_receiver() {
    auto out = TrapReceiver::open({.listen = {"127.0.0.1", port}, .communities = {"lab"}}, clock);
    REQUIRE_MESSAGE(out.has_value(), (out ? "" : out.error().text()));
    return *std::move(out);
  }
  void set(int state) {
    REQUIRE(run("/usr/bin/snmpset",
                {"127.0.0.1:" + std::to_string(agent.port()), oper, "i", std::to_string(state)},
                folder) == 0);
  }
  void trap(const char* kind) {
    REQUIRE(run("/usr/bin/snmptrap",
                {"127.0.0.1:" + std::to_string(port), std::to_string(++uptime), kind,
                 "1.3.6.1.2.1.2.2.1.1.1001", "i", "1001"},
                folder) == 0);
  }
  void turn(std::int64_t span_ns) {
    const port::Instant end = clock.now() + span_ns;
    while (clock.now() < end) {
      receiver.step();
      while (const auto trap = receiver.take())
        if (changes_state(*trap)) CHECK(poller->poll_soon("one"));
      poller->step();
      while (const auto poll = poller->take())
        if (const auto state = value(*poll, "Ethernet1/8", Metric::oper_up))
          states.emplace_back(clock.now(), *state);
      poller->wait(end, receiver.fd());
    }
  }
  // Turns until so many polls are done, at most 10 s.
  bool turn_until(std::size_t polls) {
    const port::Instant end = clock.now() + 10 * ns_per_s;
    while (states.size() < polls && clock.now() < end) turn(20'000'000);
    return states.size() >= polls;
  }
};

TEST_CASE("a trap makes its agent be asked at once, not more than once a second, and once more" *
          doctest::test_suite("needs snmpd")) {
  if (!has("/usr/sbin/snmpd") || !has("/usr/bin/snmpset")) return;
  TrapBed bed;
  await(bed.clock, target_v3("one", bed.agent.port()));
  bed.poller.emplace(open_poller({target_v3("one", bed.agent.port())},
                                 {.every = milliseconds(3'600'000)}, bed.clock));
  REQUIRE(bed.turn_until(1));
  CHECK(bed.states[0].second == 1);

  bed.set(2);
  bed.turn(ns_per_s / 2);
  CHECK(bed.states.size() == 1);  // nobody asks until the trap comes
  const port::Instant told = bed.clock.now();
  bed.trap(TrapBed::down);
  REQUIRE(bed.turn_until(2));
  CHECK(bed.states[1].second == 0);
  CHECK(bed.states[1].first - told < ns_per_s);

  // Ten traps within a moment are one poll more, of how it is after the last of them.
  for (int i = 0; i < 9; ++i) bed.trap(i % 2 == 0 ? TrapBed::up : TrapBed::down);
  bed.set(1);
  bed.trap(TrapBed::up);
  const port::Instant flapped = bed.clock.now();
  bed.turn(5 * ns_per_s / 2);
  REQUIRE(bed.states.size() >= 3);
  CHECK(bed.states.size() <= 4);  // two where starting those programs took longer than a second
  CHECK(bed.states.back().second == 1);
  CHECK(bed.states.back().first - flapped < 2 * ns_per_s);
  CHECK(bed.poller->counts().early == bed.states.size() - 1);

  // And once more after five seconds, for agents that answer from old tables.
  const std::size_t before = bed.states.size();
  bed.turn(5 * ns_per_s);
  CHECK(bed.states.size() == before + 1);
  CHECK(bed.poller->counts().early == before - 1);
  CHECK(bed.poller->counts().skipped == 0);
}

TEST_CASE("bounds") {
  WallClock clock;
  CHECK_FALSE(SnmpPoller::create({}, {}, clock).has_value());
  CHECK_FALSE(SnmpPoller::create({target("a", 1)}, {.every = milliseconds(1)}, clock).has_value());
  Target named = target("a", 161);
  named.agent.address = "switch.example.net";
  CHECK_FALSE(SnmpPoller::create({named}, {}, clock).has_value());
  CHECK_FALSE(SnmpPoller::create({target("a", 161), target("a", 162)}, {}, clock).has_value());
}

}  // namespace
}  // namespace weft::adapt::snmp
