// For tests of this room: two hosts on one cable, and packets between them.
//
//   weft-tPID_n-a [a0 10.99.0.0] ---- [b0 10.99.0.1] weft-tPID_n-b
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "adapt/lab/doctor.hpp"
#include "adapt/lab/injector.hpp"
#include "adapt/lab/netns.hpp"
#include "adapt/lab/process.hpp"
#include "adapt/lab/user_namespace.hpp"
#include "adapt/linux_switch/netlink.hpp"
#include "base/test_skip.hpp"
#include "os/error.hpp"

namespace weft::adapt::lab::testing {

inline std::int64_t wall_ns() {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

class TestNet {
 public:
  static constexpr Ipv4 address_a = 0x0a630000, address_b = 0x0a630001;

  // Fails where namespaces are not permitted.
  static Result<TestNet> make() {
    static int made = 0;
    TestNet net(fmt::format("weft-t{}_{}", ::getpid(), made++));
    WEFT_TRY_STATUS(net.build());
    return net;
  }
  ~TestNet() {
    if (name_.empty()) return;
    static_cast<void>(end_processes(read_journal(journal()), std::chrono::seconds(2)));
    static_cast<void>(delete_netns(a()));
    static_cast<void>(delete_netns(b()));
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }
  TestNet(TestNet&& other) noexcept
      : name_(std::exchange(other.name_, {})), directory_(std::move(other.directory_)) {}
  TestNet& operator=(TestNet&&) = delete;
  TestNet(const TestNet&) = delete;
  TestNet& operator=(const TestNet&) = delete;

  std::string a() const { return name_ + "-a"; }
  std::string b() const { return name_ + "-b"; }
  std::string journal() const { return directory_ + "/processes"; }
  std::string directory() const { return directory_; }

  // Rules, queues, links, routes and neighbours of a namespace: for "identical to before".
  static std::string kernel_state(const std::string& netns) {
    auto nft = open_nft(netns);
    REQUIRE(nft.has_value());
    const auto rules = nft->run("list ruleset\n");
    REQUIRE(rules.has_value());
    std::string text = *rules + command_in(netns, {"tc", "qdisc", "show"}) +
                       command_in(netns, {"ip", "route"}) + command_in(netns, {"ip", "neigh"});
    for (const LinkState& link : links(netns))
      text += fmt::format("{} {} {}\n", link.name, link.up ? "up" : "down",
                          link.carrier ? "carrier" : "no-carrier");
    return text;
  }
  static std::vector<LinkState> links(const std::string& netns) {
    auto found = [&]() -> Result<std::vector<LinkState>> {
      WEFT_TRY(const InNetns inside, InNetns::enter(netns));
      WEFT_TRY(Netlink netlink, Netlink::open(netns));
      return netlink.links();
    }();
    REQUIRE(found.has_value());
    return *std::move(found);
  }
  // What the interfaces of a namespace admit to have dropped.
  static std::uint64_t drops(const std::string& netns) {
    std::uint64_t sum = 0;
    for (const LinkState& link : links(netns))
      sum += link.tx_dropped + link.tx_errors + link.rx_dropped + link.rx_errors;
    return sum;
  }
  // What a program inside a namespace prints on standard output.
  static std::string command_in(const std::string& netns, std::vector<std::string> words) {
    std::string text;
    const Status ran = run_in_netns(netns, [&]() -> Status {
      std::array<int, 2> ends{};
      if (::pipe2(ends.data(), O_CLOEXEC) != 0) return system_failure("pipe", errno);
      const Fd ear(ends[0]);
      Fd mouth(ends[1]);
      std::vector<char*> argv;
      for (std::string& word : words) argv.push_back(word.data());
      argv.push_back(nullptr);
      posix_spawn_file_actions_t actions;
      ::posix_spawn_file_actions_init(&actions);
      ::posix_spawn_file_actions_adddup2(&actions, mouth.get(), STDOUT_FILENO);
      pid_t child = 0;
      const int error =
          ::posix_spawnp(&child, argv.front(), &actions, nullptr, argv.data(), ::environ);
      ::posix_spawn_file_actions_destroy(&actions);
      if (error != 0) return system_failure(words.front(), error);
      mouth.reset();
      std::array<char, 4'096> chunk{};
      for (ssize_t n = 1; n > 0; text.append(chunk.data(), static_cast<std::size_t>(n < 0 ? 0 : n)))
        n = ::read(ear.get(), chunk.data(), chunk.size());
      ::waitpid(child, nullptr, 0);
      return {};
    });
    REQUIRE_MESSAGE(ran.has_value(), (ran ? "" : ran.error().text()));
    return text;
  }

 private:
  explicit TestNet(std::string name) : name_(std::move(name)) {
    directory_ = (std::filesystem::temp_directory_path() / name_).string();
  }

  Status build() {
    std::error_code error;
    std::filesystem::create_directories(directory_, error);
    WEFT_TRY_STATUS(create_netns(a()));
    WEFT_TRY_STATUS(create_netns(b()));
    WEFT_TRY(const Fd fd_a, open_netns(a()));
    WEFT_TRY(const Fd fd_b, open_netns(b()));
    const Mac mac_a{2, 0, 0, 0, 0, 1};
    const Mac mac_b{2, 0, 0, 0, 0, 2};
    WEFT_TRY(Netlink link, Netlink::open("test"));
    WEFT_TRY_STATUS(link.add_veth({"a0", mac_a, fd_a.get()}, {"b0", mac_b, fd_b.get()}));
    WEFT_TRY_STATUS(link.flush());
    WEFT_TRY_STATUS(address(a(), "a0", address_a, address_b, mac_b));
    return address(b(), "b0", address_b, address_a, mac_a);
  }
  static Status address(const std::string& netns, const char* interface, Ipv4 own, Ipv4 other,
                        const Mac& mac) {
    WEFT_TRY(const InNetns inside, InNetns::enter(netns));
    for (const char* key : {"net/ipv6/conf/all/disable_ipv6", "net/ipv6/conf/default/disable_ipv6"})
      static_cast<void>(write_sysctl(key, "1"));
    WEFT_TRY(Netlink netlink, Netlink::open(netns));
    WEFT_TRY(const auto indexes, netlink.indexes());
    const std::uint32_t index = indexes.find(interface)->second;
    WEFT_TRY_STATUS(netlink.set_up(1));
    WEFT_TRY_STATUS(netlink.add_address(index, own, 31));
    WEFT_TRY_STATUS(netlink.set_up(index));
    WEFT_TRY_STATUS(netlink.add_neighbour(index, other, mac));
    return netlink.flush();
  }

  std::string name_, directory_;
};

// UDP packets from one end to the other.
struct Traffic {
  bool reverse = false;  // b to a
  std::uint32_t count = 1'000;
  std::uint32_t flows = 1;  // source ports, in turn
  std::uint32_t gap_us = 0;
  int tos = 0;
  std::uint32_t bytes = 64;
  int linger_ms = 200;  // to wait for those that are missing
};
struct Heard {
  std::vector<std::uint32_t> by_flow, sequence;
  std::vector<double> latency_us;  // sorted
  std::uint32_t wrong = 0, ce = 0;
  std::int64_t first_ns = 0, last_ns = 0;
  std::uint32_t total() const { return static_cast<std::uint32_t>(sequence.size()); }
  double latency(double share) const {
    REQUIRE(!latency_us.empty());
    return latency_us[static_cast<std::size_t>(share * static_cast<double>(latency_us.size() - 1))];
  }
  double seconds() const { return static_cast<double>(last_ns - first_ns) * 1e-9; }
};

class Exchange {
 public:
  Exchange(const TestNet& net, const Traffic& traffic) : traffic_(traffic) {
    const std::string from = traffic.reverse ? net.b() : net.a();
    const std::string to = traffic.reverse ? net.a() : net.b();
    target_ = endpoint(traffic.reverse ? TestNet::address_a : TestNet::address_b, port);
    receiver_ = open(to);
    const int size = 64 << 20;
    const int yes = 1;
    ::setsockopt(receiver_.get(), SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
    ::setsockopt(receiver_.get(), SOL_SOCKET, SO_TIMESTAMPNS, &yes, sizeof yes);
    ::setsockopt(receiver_.get(), IPPROTO_IP, IP_RECVTOS, &yes, sizeof yes);
    bind_to(receiver_, endpoint(INADDR_ANY, port));
    for (std::uint32_t i = 0; i < traffic.flows; ++i) {
      senders_.push_back(open(from));
      bind_to(senders_.back(), endpoint(INADDR_ANY, static_cast<std::uint16_t>(20'000 + i)));
      ::setsockopt(senders_.back().get(), IPPROTO_IP, IP_TOS, &traffic.tos, sizeof traffic.tos);
      ::setsockopt(senders_.back().get(), SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size);
    }
    heard_.by_flow.resize(traffic.flows);
  }

  Heard run() {
    std::vector<std::uint8_t> packet(traffic_.bytes, 0x5a);
    std::int64_t next = wall_ns();
    for (std::uint32_t i = 0; i < traffic_.count; ++i, next += traffic_.gap_us * 1'000ll) {
      while (traffic_.gap_us > 0 && wall_ns() < next) listen();
      const std::int64_t now = wall_ns();
      std::memcpy(packet.data(), &i, sizeof i);
      std::memcpy(packet.data() + 8, &now, sizeof now);
      ::sendto(senders_[i % traffic_.flows].get(), packet.data(), packet.size(), 0,
               reinterpret_cast<const sockaddr*>(&target_), sizeof target_);
      if (i % 64 == 63) listen();
    }
    constexpr std::int64_t enough_ns = 30'000'000;  // when none is missing: some may come twice
    const std::int64_t sent = wall_ns();
    const std::int64_t end = sent + traffic_.linger_ms * 1'000'000ll;
    const auto is_over = [&](std::int64_t now) {
      return now >= end || (now >= sent + enough_ns && heard_.total() >= traffic_.count);
    };
    while (!is_over(wall_ns())) {
      listen();
      std::this_thread::sleep_for(std::chrono::microseconds(500));
    }
    std::ranges::sort(heard_.latency_us);
    return std::move(heard_);
  }

 private:
  static constexpr std::uint16_t port = 9'000;

  static sockaddr_in endpoint(Ipv4 address, std::uint16_t port) {
    sockaddr_in out{};
    out.sin_family = AF_INET;
    out.sin_port = htons(port);
    out.sin_addr.s_addr = htonl(address);
    return out;
  }
  static Fd open(const std::string& netns) {
    auto socket = socket_in_netns(netns, AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    REQUIRE(socket.has_value());
    return *std::move(socket);
  }
  static void bind_to(const Fd& socket, const sockaddr_in& address) {
    REQUIRE(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  }

  void listen() {
    std::array<std::uint8_t, 2'048> packet{};
    std::array<char, 256> control{};
    sockaddr_in from{};
    for (;;) {
      iovec part{packet.data(), packet.size()};
      msghdr message{};
      message.msg_name = &from;
      message.msg_namelen = sizeof from;
      message.msg_iov = &part;
      message.msg_iovlen = 1;
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      const ssize_t size = ::recvmsg(receiver_.get(), &message, 0);
      if (size < 0) return;
      note(packet, static_cast<std::size_t>(size), from, message);
    }
  }

  void note(const std::array<std::uint8_t, 2'048>& packet, std::size_t size,
            const sockaddr_in& from, msghdr& message) {
    std::uint32_t sequence = 0;
    std::int64_t sent = 0;
    std::memcpy(&sequence, packet.data(), sizeof sequence);
    std::memcpy(&sent, packet.data() + 8, sizeof sent);
    if (size != traffic_.bytes || sequence >= traffic_.count) {
      ++heard_.wrong;
      return;
    }
    std::int64_t arrived = wall_ns();
    for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
      if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
        timespec time{};
        std::memcpy(&time, CMSG_DATA(c), sizeof time);
        arrived = std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
      }
      if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS && (*CMSG_DATA(c) & 3) == 3)
        ++heard_.ce;
    }
    if (heard_.first_ns == 0) heard_.first_ns = arrived;
    heard_.last_ns = arrived;
    const std::uint32_t flow = ntohs(from.sin_port) - 20'000u;
    if (flow < traffic_.flows) ++heard_.by_flow[flow];
    heard_.sequence.push_back(sequence);
    heard_.latency_us.push_back(static_cast<double>(arrived - sent) * 1e-3);
  }

  Traffic traffic_;
  sockaddr_in target_{};
  Fd receiver_;
  std::vector<Fd> senders_;
  Heard heard_;
};

inline Heard exchange(const TestNet& net, const Traffic& traffic) {
  return Exchange(net, traffic).run();
}

// Within `share` of the target. Under sanitizers other tests run beside, and processes wake late as
// long as these last: there nothing may come early, and all may take twice as long.
inline bool is_about(double measured, double target, double share) {
#ifdef WEFT_SANITIZED
  return measured >= target * (1 - share) && measured <= 2 * target;
#else
  return std::abs(measured - target) <= share * target;
#endif
}

// What `measure` makes of an exchange: of up to five that which is nearest to `target`; the first
// that is_about() it is taken. A busy machine wakes processes late now and then, and what is wrong
// shows in all of them.
template <typename Measure>
double nearest_to(double target, double share, const TestNet& net, const Traffic& traffic,
                  Measure measure) {
  double nearest = 0;
  for (int i = 0; i < 5 && !is_about(nearest, target, share); ++i) {
    const double measured = measure(exchange(net, traffic));
    if (i == 0 || std::abs(measured - target) < std::abs(nearest - target)) nearest = measured;
  }
  return nearest;
}

// The kernel lets frames into a new cable in its own time: waits until both directions work.
inline void settle(const TestNet& net) {
  for (const bool reverse : {false, true})
    for (int i = 0; i < 300; ++i)
      if (exchange(net, {.reverse = reverse, .count = 1, .linger_ms = 10}).total() == 1) break;
}

// A network could not be made: the reason to skip the test where the machine does not allow it, a
// failure where it does.
inline void skip_without_namespaces(const Error& error) {
  const Diagnosis found = diagnose();
  if (is_privileged() && found.can_lab()) FAIL(error.text());
  skip_test(found.can_lab() ? error.text() : found.why_not());
}

}  // namespace weft::adapt::lab::testing

// Makes `net`, or leaves the test: skipped where the machine allows no network namespaces.
#define WEFT_TEST_NET(net)                                                         \
  auto weft_made_##net = ::weft::adapt::lab::testing::TestNet::make();             \
  if (!weft_made_##net) {                                                          \
    ::weft::adapt::lab::testing::skip_without_namespaces(weft_made_##net.error()); \
    return;                                                                        \
  }                                                                                \
  const auto& net = *weft_made_##net;                                              \
  ::weft::adapt::lab::testing::settle(net)
