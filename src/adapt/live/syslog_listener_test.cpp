#include "adapt/live/syslog_listener.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <atomic>
#include <cerrno>

#include "adapt/live/syslog_test_bed.hpp"
#include "adapt/live/system_clock.hpp"
#include "base/rng.hpp"
#include "base/test_skip.hpp"
#include "observe/telemetry/syslog_framing.hpp"

namespace weft::adapt::live {
namespace {

using namespace test;
using observe::telemetry::syslog_bytes_max;
using observe::telemetry::SyslogFraming;
using Counts = SyslogListener::Counts;
using Texts = std::vector<std::string>;

const std::string udp = "udp://127.0.0.1:0", tcp = "tcp://127.0.0.1:0";

std::string counted(std::string_view text) { return fmt::format("{} {}", text.size(), text); }

// As the header promises.
bool is_balanced(const Counts& counts) {
  return counts.received_all() == counts.taken + counts.held + counts.abandoned;
}

std::string error_of(const SyslogOptions& options) {
  Keeper keeper;
  const auto listener = SyslogListener::open(options, keeper.sink());
  return listener ? "" : listener.error().text();
}

bool is_quiet(const SyslogListener& listener, std::uint64_t accepted) {
  return eventually([&] {
    const Counts counts = listener.counts();
    return counts.accepted + counts.refused >= accepted && counts.connections == 0;
  });
}

TEST_CASE("datagrams are messages, as they come and whence") {
  Keeper keeper;
  const auto listener = listen({.listen = {udp}}, keeper);
  REQUIRE(listener->ports().size() == 1);
  CHECK(listener->ports()[0].address.port != 0);
  CHECK(listener->ports()[0].receive_bytes > 0);
  const Fd client = connect_to(*listener);
  const std::string binary("<3>\0\xff\n\n", 7), longest(65'507, 'x');
  const Timestamp before = SystemClock().wall();
  for (const std::string& text : {std::string("<34>1 - a b - - - c\n"), binary, longest})
    REQUIRE(send_all(client, text));
  send_all(client, "");
  REQUIRE(send_all(client, "last"));
  REQUIRE(keeper.wait_for(4));
  listener->stop();
  CHECK(keeper.texts() == Texts{"<34>1 - a b - - - c\n", binary, longest, "last"});
  for (const auto& message : keeper.kept()) {
    CHECK(message.sender == "127.0.0.1");
    CHECK(message.received >= before);
    CHECK(message.received <= SystemClock().wall());
  }
  const Counts counts = listener->counts();
  CHECK(counts.received[static_cast<std::size_t>(SyslogTransport::udp)] == 4);
  CHECK(counts.empty == 1);
  CHECK(counts.taken == 4);
  CHECK(counts.dropped == 0);
}

TEST_CASE("an address of IPv6 hears both, and calls IPv4 senders by their own address" *
          doctest::test_suite("needs ipv6")) {
  Keeper keeper;
  auto listener = SyslogListener::open({.listen = {"udp://[::]:0", "tcp://[::]:0"}}, keeper.sink());
  if (!listener) {
    skip_test("this machine has no IPv6");
    return;
  }
  REQUIRE(send_all(connect_to(**listener, 0), "a"));
  REQUIRE(send_all(connect_to(**listener, 1), "b\n"));
  REQUIRE(keeper.wait_for(2));
  for (const auto& message : keeper.kept()) CHECK(message.sender == "127.0.0.1");
}

TEST_CASE("messages of a connection are framed either way; the last one needs no end") {
  Keeper keeper;
  const auto listener = listen({.listen = {tcp}}, keeper);
  const std::string three("thr\nee\0!", 8);
  {
    const Fd client = connect_to(*listener);
    REQUIRE(send_all(client, "<1>one\n<2>two\r\n\n" + counted(three) + "<4>fo"));
    REQUIRE(keeper.wait_for(3));
    REQUIRE(send_all(client, "ur\n<5>half"));
  }
  REQUIRE(keeper.wait_for(5));
  REQUIRE(is_quiet(*listener, 1));
  CHECK(keeper.texts() == Texts{"<1>one", "<2>two\r", three, "<4>four", "<5>half"});
  const Counts counts = listener->counts();
  CHECK(counts.partial == 1);
  CHECK(counts.broken == 0);
  CHECK(counts.accepted == 1);
  CHECK(is_balanced(counts));
}

TEST_CASE("a small batch comes when it is old, a large one at once") {
  Keeper keeper;
  const auto listener = listen({.listen = {tcp}, .batch_age = milliseconds(60'000)}, keeper);
  const Fd client = connect_to(*listener);
  std::string lines;
  for (int i = 0; i < 2'500; ++i) lines += fmt::format("{:05}\n", i).insert(0, "m");
  REQUIRE(send_all(client, lines));
  REQUIRE(keeper.wait_for(2'000));
  CHECK(eventually([&] { return listener->counts().held == 500; }));
  CHECK(keeper.size() == 2'000);
  CHECK(keeper.batch_max() == 1'000);
  listener->stop();
  CHECK(keeper.size() == 2'500);

  Keeper other;
  const auto quick = listen({.listen = {udp}, .batch_age = milliseconds(50)}, other);
  const auto before = std::chrono::steady_clock::now();
  REQUIRE(send_all(connect_to(*quick), "alone"));
  REQUIRE(other.wait_for(1));
  CHECK(std::chrono::steady_clock::now() - before >= milliseconds(40));
}

TEST_CASE("64 KiB are a message, more is cut and counted") {
  Keeper keeper;
  const auto listener = listen({.listen = {tcp}}, keeper);
  const Fd client = connect_to(*listener);
  const std::string whole(syslog_bytes_max, 'a'), long_one(200'000, 'b');
  REQUIRE(send_all(client, whole + "\n" + long_one + "\n" + counted(whole) + counted(long_one)));
  REQUIRE(send_all(client, "after\n"));
  REQUIRE(keeper.wait_for(5));
  const std::string cut = long_one.substr(0, syslog_bytes_max);
  CHECK(keeper.texts() == Texts{whole, cut, whole, cut, "after"});
  listener->stop();
  CHECK(listener->counts().cut == 2);
}

TEST_CASE("octet counts that lie harm nobody but their sender") {
  Keeper keeper;
  const auto listener = listen({.listen = {tcp}}, keeper);
  const auto say = [&](std::string_view bytes) { send_all(connect_to(*listener), bytes); };
  const auto expect = [&](std::string_view bytes, const Texts& wanted) {
    CAPTURE(bytes);
    const std::size_t before = keeper.size();
    say(bytes);
    REQUIRE(keeper.wait_for(before + wanted.size()));
    Texts got = keeper.texts();
    got.erase(got.begin(), got.begin() + static_cast<std::ptrdiff_t>(before));
    CHECK(got == wanted);
  };
  expect("999999999 <34>1 x\n", {"<34>1 x\n"});
  expect("99999999999999999999999 <34>1 x\n", {"99999999999999999999999 <34>1 x"});
  expect("-5 <34>1 x\n", {"-5 <34>1 x"});
  expect("0 <34>1 x\n", {"0 <34>1 x"});
  expect("3 <34>1 x\n", {"<34", ">1 x"});
  expect("12x <34>\n5 abcde", {"12x <34>", "abcde"});
  expect("77", {"77"});
  listener->stop();
  CHECK(listener->counts().bad_counts == 2);
}

// Any bytes in any pieces: what the framing makes of them in one go, and datagrams unchanged.
TEST_CASE("random bytes in random pieces lose nothing and break nothing") {
  Keeper keeper;
  const auto listener = listen({.listen = {tcp, udp}, .batch_age = milliseconds(1)}, keeper);
  Rng rng = Rng(20260).stream("syslog");
  const auto noise = [&](std::size_t size) {
    // Of few kinds of bytes, so that counts and ends are frequent.
    constexpr std::string_view often = "0123456789 \n<>";
    const std::uint64_t share = rng.below(100);
    std::string out(size, '\0');
    for (char& c : out)
      c = rng.below(100) < share ? often[rng.below(often.size())]
                                 : static_cast<char>(rng.below(256));
    return out;
  };
  Texts wanted;
  for (int round = 0; round < 40; ++round) {
    CAPTURE(round);
    SyslogFraming framing(SyslogFraming::Mode::stream);
    const auto keep = [&](std::string_view message) { wanted.emplace_back(message); };
    const Fd client = connect_to(*listener);
    for (std::size_t piece = 0; piece < 30; ++piece) {
      const std::string bytes = noise(1 + rng.below(piece % 10 == 0 ? 40'000 : 200));
      framing.feed(bytes, keep);
      REQUIRE(send_all(client, bytes));
    }
    framing.finish(keep);
    ::shutdown(client.get(), SHUT_WR);
    REQUIRE(keeper.wait_for(wanted.size()));
    const Fd datagrams = connect_to(*listener, 1);
    wanted.push_back(noise(1 + rng.below(60'000)));
    REQUIRE(send_all(datagrams, wanted.back()));
    REQUIRE(keeper.wait_for(wanted.size()));
  }
  listener->stop();
  CHECK(keeper.texts() == wanted);
  CHECK(is_balanced(listener->counts()));
}

TEST_CASE("while the sink is busy TCP senders wait, and nothing is lost") {
  Keeper keeper;
  keeper.answer(Verdict::busy);
  const auto listener = listen({.listen = {tcp}}, keeper);
  constexpr std::size_t count = 60'000, line_bytes = 300;
  std::atomic<std::size_t> sent = 0;
  std::thread sender([&] {
    const Fd client = connect_to(*listener);
    const int small = 64 << 10;
    ::setsockopt(client.get(), SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    for (std::size_t i = 0; i < count; ++i) {
      std::string line = fmt::format("m{:07}", i);
      line.resize(line_bytes - 1, '.');
      if (!send_all(client, line + "\n")) return;
      ++sent;
    }
  });
  std::this_thread::sleep_for(milliseconds(500));
  const Counts during = listener->counts();
  CHECK(sent > 0);
  CHECK(sent < count / 2);
  CHECK(keeper.size() == 0);
  CHECK(during.busy > 5);
  CHECK(during.busy < 200);
  CHECK(during.held < 2'000);  // what one read brings, beside the batch

  keeper.answer(Verdict::taken);
  sender.join();
  REQUIRE(keeper.wait_for(count));
  listener->stop();
  const Texts texts = keeper.texts();
  REQUIRE(texts.size() == count);
  std::size_t out_of_place = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const bool right = texts[i].starts_with(fmt::format("m{:07}.", i));
    if (!right || texts[i].size() != line_bytes - 1) ++out_of_place;
  }
  CHECK(out_of_place == 0);
  CHECK(listener->counts().taken == count);
  CHECK(listener->counts().abandoned == 0);
}

// client --20,000--> kernel's queue --> our queue --> busy sink: both are too small.
TEST_CASE("datagrams that a busy sink makes us drop are counted exactly") {
  Keeper keeper;
  keeper.answer(Verdict::busy);
  const auto listener =
      listen({.listen = {udp}, .queue_bytes = 1u << 20, .receive_bytes = 64u << 10}, keeper);
  const Fd client = connect_to(*listener);
  constexpr std::uint64_t count = 20'000;
  for (std::uint64_t i = 0; i < count; ++i)
    REQUIRE(send_all(client, fmt::format("{:07}{:.>193}", i, "")));
  const auto is_counted = [&] {
    const Counts counts = listener->counts();
    return counts.held > 0 && counts.dropped > 0;
  };
  CHECK(eventually(is_counted));
  CHECK(keeper.size() == 0);
  keeper.answer(Verdict::taken);
  listener->stop();
  const Counts counts = listener->counts();
  MESSAGE("taken ", counts.taken, ", dropped ", counts.dropped);
  CHECK(counts.taken + counts.dropped == count);
  CHECK(counts.taken > 0);
  CHECK(counts.dropped > 0);
  CHECK(counts.abandoned == 0);
  const Texts texts = keeper.texts();
  CHECK(texts.size() == counts.taken);
  CHECK(std::ranges::adjacent_find(texts, std::ranges::greater_equal{}) == texts.end());
}

TEST_CASE("stopped with a busy sink: in time, and what is given up is counted") {
  Keeper keeper;
  keeper.answer(Verdict::busy);
  const auto listener = listen(
      {.listen = {udp, tcp}, .queue_bytes = 50'000, .stop_grace = milliseconds(100)}, keeper);
  const Fd datagrams = connect_to(*listener, 0), stream = connect_to(*listener, 1);
  for (int i = 0; i < 1'000; ++i) REQUIRE(send_all(datagrams, "datagram"));
  for (int i = 0; i < 100; ++i) REQUIRE(send_all(stream, "line\n"));
  CHECK(eventually([&] { return listener->counts().busy > 0; }));
  const auto before = std::chrono::steady_clock::now();
  listener->stop();
  CHECK(std::chrono::steady_clock::now() - before < milliseconds(2'000));
  const Counts counts = listener->counts();
  CHECK(counts.received[0] + counts.dropped == 1'000);
  CHECK(counts.abandoned == counts.received_all());
  CHECK(counts.taken == 0);
  CHECK(counts.held == 0);
  CHECK(counts.connections == 0);
  CHECK(is_closed(stream));
  listener->stop();  // again: nothing
}

TEST_CASE("what was sent before the stop is taken") {
  Keeper keeper;
  auto listener = listen({.listen = {udp, tcp}}, keeper);
  for (int i = 0; i < 20; ++i) {
    REQUIRE(send_all(connect_to(*listener, 0), "datagram"));
    REQUIRE(send_all(connect_to(*listener, 1), "one\nhalf"));
  }
  listener.reset();
  CHECK(keeper.size() == 60);
}

TEST_CASE("who begins and does not end is closed, who is only quiet is not") {
  Keeper keeper;
  const auto listener = listen({.listen = {tcp}, .unfinished = milliseconds(150)}, keeper);
  const Fd quiet = connect_to(*listener), slow = connect_to(*listener);
  REQUIRE(send_all(quiet, "hello\n"));
  const auto before = std::chrono::steady_clock::now();
  std::size_t bytes = 0;
  while (send_all(slow, "s") && std::chrono::steady_clock::now() - before < patience) {
    ++bytes;
    std::this_thread::sleep_for(milliseconds(10));
  }
  const auto lasted = std::chrono::steady_clock::now() - before;
  CHECK(lasted >= milliseconds(140));
  CHECK(lasted < patience);
  REQUIRE(send_all(quiet, "still here\n"));
  REQUIRE(keeper.wait_for(3));
  const Counts counts = listener->counts();
  CHECK(counts.expired == 1);
  CHECK(counts.partial == 1);
  CHECK(counts.connections == 1);
  CHECK(bytes > 0);
}

TEST_CASE("idle connections are closed, but not for a busy sink's slowness") {
  Keeper keeper;
  const auto listener = listen({.listen = {tcp}, .idle = milliseconds(400)}, keeper);
  const Fd client = connect_to(*listener);
  REQUIRE(send_all(client, "a\n"));
  REQUIRE(keeper.wait_for(1));
  keeper.answer(Verdict::busy);
  REQUIRE(send_all(client, "b\n"));
  std::this_thread::sleep_for(milliseconds(800));
  CHECK(listener->counts().expired == 0);
  keeper.answer(Verdict::taken);
  REQUIRE(keeper.wait_for(2));
  CHECK(is_closed(client));
  CHECK(eventually([&] { return listener->counts().expired == 1; }));
}

TEST_CASE("thousands of connects and resets leave nothing behind") {
  Keeper keeper;
  const auto listener = listen({.listen = {tcp}}, keeper);
  constexpr std::uint64_t count = 2'000;
  for (std::uint64_t i = 0; i < count; ++i) {
    const Fd client = connect_to(*listener);
    if (i % 3 == 0) send_all(client, "half a mess");
    const linger reset{.l_onoff = 1, .l_linger = 0};
    if (i % 2 == 0) ::setsockopt(client.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  }
  REQUIRE(send_all(connect_to(*listener), "the end\n"));
  CHECK(eventually([&] { return std::ranges::count(keeper.texts(), "the end") == 1; }));
  CHECK(eventually([&] { return listener->counts().connections == 0; }));
  listener->stop();
  const Counts counts = listener->counts();
  CHECK(counts.accepted <= count + 1);
  CHECK(counts.accepted >= count / 2);
  CHECK(counts.broken > 0);
  CHECK(is_balanced(counts));
}

TEST_CASE("more connections than allowed are closed at once, and let in when others have gone") {
  Keeper keeper;
  const auto listener = listen({.listen = {tcp}, .connections_max = 8}, keeper);
  std::vector<Fd> clients;
  for (int i = 0; i < 20; ++i) clients.push_back(connect_to(*listener));
  for (std::size_t i = 8; i < 20; ++i) CHECK(is_closed(clients[i]));
  for (std::size_t i = 0; i < 8; ++i) REQUIRE(send_all(clients[i], "in\n"));
  REQUIRE(keeper.wait_for(8));
  CHECK(listener->counts().refused == 12);
  clients.clear();
  REQUIRE(is_quiet(*listener, 20));
  REQUIRE(send_all(connect_to(*listener), "next\n"));
  CHECK(keeper.wait_for(9));
}

TEST_CASE("without descriptors connections wait; nothing spins") {
  Keeper keeper;
  const auto listener = listen({.listen = {tcp}}, keeper);
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  const Fd probe(::fcntl(0, F_DUPFD_CLOEXEC, 0));  // the lowest free number
  rlimit none = before;
  const Fd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  none.rlim_cur = static_cast<rlim_t>(std::max(client.get(), probe.get())) + 1;
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
  const sockaddr_in name = loopback(listener->ports()[0].address.port);
  const int connected =
      ::connect(client.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name);
  std::this_thread::sleep_for(milliseconds(350));
  const Counts during = listener->counts();
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);
  REQUIRE(connected == 0);
  CHECK(during.refused >= 1);
  CHECK(during.refused <= 50);
  REQUIRE(send_all(client, "patient\n"));
  CHECK(keeper.wait_for(1));
}

TEST_CASE("options that cannot be are refused with what to do") {
  const auto says = [](const SyslogOptions& options, std::string_view what) {
    const std::string text = error_of(options);
    CAPTURE(text);
    CHECK(text.find(what) != std::string::npos);
    CHECK(text.find(';') != std::string::npos);
  };
  says({}, "no listen address");
  says({.listen = {udp, "udp://host:514"}}, "must be an IP address");
  says({.listen = {udp}, .certificate = "x"}, "no tls:// address");
  says({.listen = {"tls://127.0.0.1:0"}}, "needs a certificate");
  says({.listen = {"udp://192.0.2.1:0"}}, "cannot listen on udp://192.0.2.1:0");
  says({.listen = {udp}, .connections_max = 0}, "connections_max of 0 is out of bounds");
  says({.listen = {udp}, .idle = milliseconds(-1)}, "idle of -1 is out of bounds");
  says({.listen = {udp}, .batch_max = 1u << 30}, "batch_max");

  Keeper keeper;
  const auto listener = listen({.listen = {udp, tcp}}, keeper);
  for (const SyslogListener::Port& port : listener->ports())
    says({.listen = {to_text(port.address)}}, "another program is using it");
}

}  // namespace
}  // namespace weft::adapt::live
