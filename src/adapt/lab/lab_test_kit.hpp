// For tests of this room on real labs: up, traffic across, down again.
#pragma once

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "adapt/lab/doctor.hpp"
#include "adapt/lab/lab.hpp"
#include "adapt/lab/lab_test_fabric.hpp"
#include "adapt/lab/netns.hpp"
#include "adapt/lab/up.hpp"
#include "adapt/lab/user_namespace.hpp"
#include "base/test_skip.hpp"

namespace weft::adapt::lab::testing {

inline constexpr std::uint16_t echo_port = 7'777;
inline constexpr std::uint16_t first_source_port = 20'000;

// Whether a test can run here; otherwise it is marked as skipped, with the reason. Tests do not
// enter user namespaces: a process with threads cannot.
inline bool can_run(Routing routing) {
  std::string missing;
  if (!is_privileged()) {
    missing = "not root with CAP_NET_ADMIN and CAP_SYS_ADMIN";
  } else {
    const Diagnosis found = diagnose();
    if (!found.can_lab()) missing = found.why_not();
    if (missing.empty() && routing == Routing::frr && !found.has("frr"))
      missing = "FRRouting is not installed";
  }
  if (!missing.empty()) skip_test(missing);
  return missing.empty();
}

// A name that no other test process has.
inline std::string lab_name(std::string_view what) {
  return fmt::format("{}{}", what, getpid() % 1'000'000);
}

// Takes the lab down also when a check fails.
struct DownAfter {
  explicit DownAfter(std::string lab) : name(std::move(lab)) {}
  ~DownAfter() { static_cast<void>(take_down(name)); }
  DownAfter(const DownAfter&) = delete;
  DownAfter& operator=(const DownAfter&) = delete;
  std::string name;
};

inline UpRequest request(const std::string& name, Routing routing) {
  return {.options = {.name = name, .routing = routing},
          .program = "/proc/self/exe",
          .progress = Progress::Show::never};
}

inline sockaddr_in ipv4(Ipv4 address, std::uint16_t port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(port);
  out.sin_addr.s_addr = htonl(address);
  return out;
}

inline Fd udp_in(const std::string& netns, std::uint16_t port) {
  auto fd = socket_in_netns(netns, AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
  REQUIRE_MESSAGE(fd.has_value(), (fd ? "" : fd.error().text()));
  const int bytes = 4 << 20;
  setsockopt(fd->get(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
  const sockaddr_in local = ipv4(0, port);
  REQUIRE(bind(fd->get(), reinterpret_cast<const sockaddr*>(&local), sizeof local) == 0);
  return std::move(*fd);
}

// A stream of small packets from one host to another, over 32 source ports.
class Stream {
 public:
  Stream(const Lab& lab, std::string_view from, std::string_view to)
      : receiver_(udp_in(netns(lab, to), echo_port)), target_(ipv4(address(lab, to), echo_port)) {
    for (std::uint16_t i = 0; i < 32; ++i)
      senders_.push_back(
          udp_in(netns(lab, from), static_cast<std::uint16_t>(first_source_port + i)));
  }
  void send_for(std::chrono::milliseconds span) {
    const auto end = std::chrono::steady_clock::now() + span;
    while (std::chrono::steady_clock::now() < end && !stop_) {
      const Fd& sender = senders_[sent_ % senders_.size()];
      if (sendto(sender.get(), "x", 1, 0, reinterpret_cast<const sockaddr*>(&target_),
                 sizeof target_) == 1)
        ++sent_;
      receive();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  void stop() { stop_ = true; }
  std::size_t sent() const { return sent_; }
  // After the last have had time to arrive.
  std::size_t received() {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    receive();
    return received_;
  }

 private:
  static const LabNode& find(const Lab& lab, std::string_view name) {
    return lab.plan.nodes[node(lab.plan, lab.fabric, name)];
  }
  static std::string netns(const Lab& lab, std::string_view name) { return find(lab, name).netns; }
  static Ipv4 address(const Lab& lab, std::string_view name) {
    return lab.plan.end(find(lab, name).ends.front()).address;
  }
  void receive() {
    char byte = 0;
    while (recv(receiver_.get(), &byte, 1, 0) == 1) ++received_;
  }

  Fd receiver_;
  sockaddr_in target_;
  std::vector<Fd> senders_;
  std::size_t sent_ = 0, received_ = 0;
  std::atomic<bool> stop_ = false;
};

inline Lab bring_up_and_open(const std::string& name, Routing routing,
                             std::string_view yaml = two_by_two) {
  const auto up = bring_up(make_fabric(yaml), request(name, routing));
  REQUIRE_MESSAGE(up.has_value(), (up ? "" : up.error().text()));
  auto lab = open_lab(name);
  REQUIRE_MESSAGE(lab.has_value(), (lab ? "" : lab.error().text()));
  return *std::move(lab);
}

}  // namespace weft::adapt::lab::testing
