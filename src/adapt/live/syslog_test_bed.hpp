// What the tests of the syslog listener share: a sink that keeps everything, and clients.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "adapt/live/syslog_listener.hpp"
#include "base/check.hpp"
#include "base/fd.hpp"

namespace weft::adapt::live::test {

using std::chrono::milliseconds;
using Verdict = SyslogListener::Verdict;

constexpr milliseconds patience{5'000};

// Until `is` says so, or patience is at its end; returns what it said last.
template <class Is>
bool eventually(Is is) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (!is()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return true;
}

class Keeper {
 public:
  SyslogListener::Sink sink() {
    return [this](std::vector<SyslogListener::Message>& batch) {
      const std::scoped_lock lock(mutex_);
      batch_max_ = std::max(batch_max_, batch.size());
      if (verdict_ == Verdict::busy) return verdict_;
      for (auto& message : batch) kept_.push_back(std::move(message));
      return verdict_;
    };
  }
  void answer(Verdict verdict) {
    const std::scoped_lock lock(mutex_);
    verdict_ = verdict;
  }
  std::vector<SyslogListener::Message> kept() const {
    const std::scoped_lock lock(mutex_);
    return kept_;
  }
  std::vector<std::string> texts() const {
    std::vector<std::string> out;
    for (const auto& message : kept()) out.push_back(message.text);
    return out;
  }
  std::size_t size() const {
    const std::scoped_lock lock(mutex_);
    return kept_.size();
  }
  std::size_t batch_max() const {
    const std::scoped_lock lock(mutex_);
    return batch_max_;
  }
  bool wait_for(std::size_t count) const {
    return eventually([&] { return size() >= count; });
  }

 private:
  mutable std::mutex mutex_;
  std::vector<SyslogListener::Message> kept_;
  std::size_t batch_max_ = 0;
  Verdict verdict_ = Verdict::taken;
};

inline std::unique_ptr<SyslogListener> listen(const SyslogOptions& options, Keeper& keeper) {
  auto listener = SyslogListener::open(options, keeper.sink());
  WEFT_CHECK(listener.has_value());
  return *std::move(listener);
}

inline sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(port);
  out.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return out;
}

// A socket that blocks, connected to the listener's address of that number.
inline Fd connect_to(const SyslogListener& listener, std::size_t index = 0) {
  const SyslogAddress& address = listener.ports()[index].address;
  const bool datagrams = address.transport == SyslogTransport::udp;
  Fd out(::socket(AF_INET, (datagrams ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC, 0));
  const sockaddr_in name = loopback(address.port);
  WEFT_CHECK(::connect(out.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0);
  return out;
}

// Of a stream all of it, of UDP one datagram. False when the other side has closed.
inline bool send_all(const Fd& socket, std::string_view bytes) {
  do {
    const ssize_t sent = ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  } while (!bytes.empty());
  return true;
}

// The other side has closed, or does so before patience is at its end.
inline bool is_closed(const Fd& socket) {
  const timeval wait{.tv_sec = patience.count() / 1'000, .tv_usec = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
  char byte = 0;
  const ssize_t got = ::recv(socket.get(), &byte, 1, 0);
  return got == 0 || (got < 0 && errno == ECONNRESET);
}

}  // namespace weft::adapt::live::test
