#include "adapt/lab/rates.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "adapt/lab/netns.hpp"
#include "adapt/lab/overlay.hpp"
#include "os/error.hpp"

namespace weft::adapt::lab {
namespace {

using RateClock = std::chrono::steady_clock;
using StampClock = std::chrono::system_clock;  // by which the kernel stamps what arrives

constexpr std::uint16_t rate_port = 4791;
constexpr std::size_t rate_packet = 1400;
constexpr int rate_buffer = 4 << 20;
constexpr std::int64_t rate_burst_max = 64;  // packets of one flow in a row
constexpr double rate_sent_least = 0.9;      // of a flow's packets in time, for its rate to count
constexpr int rate_attempts = 10;            // a busy machine may stall for a while
constexpr auto rate_drain = std::chrono::milliseconds(200);  // for what queues hold of an attempt
constexpr auto rate_way = std::chrono::milliseconds(5);      // from sender to receiver, at most

sockaddr_in rate_address(const model::Fabric& fabric, model::NodeId nic, std::uint16_t port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(port);
  out.sin_addr.s_addr = htonl(fabric.address(nic));
  return out;
}

Result<Fd> rate_socket(const Lab& lab, model::NodeId nic, std::uint16_t port) {
  const LabNode& host = lab.plan.nodes[lab.plan.lab_of[nic]];
  WEFT_TRY(Fd out, socket_in_netns(host.netns, AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0));
  // More than the usual limit, for which this process has the right in the lab.
  if (::setsockopt(out.get(), SOL_SOCKET, SO_RCVBUFFORCE, &rate_buffer, sizeof rate_buffer) != 0)
    ::setsockopt(out.get(), SOL_SOCKET, SO_RCVBUF, &rate_buffer, sizeof rate_buffer);
  static constexpr int on = 1;
  if (::setsockopt(out.get(), SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on) != 0)
    return system_failure("stamps of arrival", errno);
  const sockaddr_in local = rate_address(lab.fabric, nic, port);
  if (::bind(out.get(), reinterpret_cast<const sockaddr*>(&local), sizeof local) != 0)
    return system_failure(host.name + ", UDP port " + std::to_string(port), errno);
  return out;
}

// Marks for as long as the object lives and is renewed each second.
class RateMarks {
 public:
  static Result<RateMarks> install(const Lab& lab, std::span<const RateFlow> flows) {
    WEFT_TRY(auto overlay, Overlay::open(lab));
    WEFT_TRY(const auto there, overlay->installed());
    if (!there.empty())
      return fail(Errc::infeasible, {}, "marks of traffic engineering are installed in the lab",
                  "end weft lab te, and remove its marks by weft lab te --off");
    std::vector<port::RouteMark> marks;
    for (const RateFlow& flow : flows)
      if (flow.uplink.valid()) marks.push_back({flow.src, flow.dst, flow.port, flow.uplink});
    WEFT_TRY_STATUS(overlay->apply(marks));
    WEFT_TRY_STATUS(overlay->renew());
    return RateMarks(std::move(overlay), std::move(marks));
  }
  ~RateMarks() {
    if (overlay_ == nullptr) return;
    for (port::RouteMark& mark : marks_) mark.uplink = {};
    static_cast<void>(overlay_->apply(marks_));
  }
  Status renew() { return overlay_->renew(); }
  RateMarks(RateMarks&&) noexcept = default;
  RateMarks& operator=(RateMarks&&) = delete;
  RateMarks(const RateMarks&) = delete;
  RateMarks& operator=(const RateMarks&) = delete;

 private:
  RateMarks(std::unique_ptr<Overlay> overlay, std::vector<port::RouteMark> marks)
      : overlay_(std::move(overlay)), marks_(std::move(marks)) {}

  std::unique_ptr<Overlay> overlay_;
  std::vector<port::RouteMark> marks_;
};

StampClock::time_point arrival(msghdr& message) {
  const cmsghdr* control = CMSG_FIRSTHDR(&message);
  if (control == nullptr || control->cmsg_type != SCM_TIMESTAMPNS) return StampClock::now();
  timespec at{};
  std::memcpy(&at, CMSG_DATA(control), sizeof at);
  return StampClock::time_point(std::chrono::seconds(at.tv_sec) +
                                std::chrono::nanoseconds(at.tv_nsec));
}

struct RateStream {
  Fd sender, receiver;
  sockaddr_in target{};
  std::int64_t sent = 0, received = 0;  // packets

  void send(std::int64_t due) {
    static constexpr std::array<char, rate_packet> payload{};
    for (std::int64_t i = 0; i < rate_burst_max && sent < due; ++i, ++sent)  // lost: not received
      static_cast<void>(::sendto(sender.get(), payload.data(), payload.size(), 0,
                                 reinterpret_cast<const sockaddr*>(&target), sizeof target));
  }
  // The kernel's stamp decides, not when this process came to read: a queue that drains while the
  // machine is busy elsewhere would make a slow path look sound.
  void receive(StampClock::time_point deadline) {
    char byte = 0;
    iovec into{&byte, 1};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(timespec))> control;
    for (;;) {
      msghdr message{};
      message.msg_iov = &into;
      message.msg_iovlen = 1;
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      if (::recvmsg(receiver.get(), &message, 0) < 0) return;
      received += arrival(message) <= deadline ? 1 : 0;
    }
  }
};

struct Round {
  double sent = 1;             // the least share of its packets that a flow sent in time
  std::vector<double> shares;  // that arrived of each flow
};

Result<Round> measure_round(const Lab& lab, std::span<const RateFlow> flows,
                            const RateOptions& options) {
  std::vector<RateStream> streams;
  for (const RateFlow& flow : flows) {
    RateStream stream;
    WEFT_TRY(stream.sender, rate_socket(lab, flow.src, flow.port));
    WEFT_TRY(stream.receiver, rate_socket(lab, flow.dst, rate_port));
    // What an earlier round left in queues does not count in this one.
    const sockaddr_in source = rate_address(lab.fabric, flow.src, flow.port);
    if (::connect(stream.receiver.get(), reinterpret_cast<const sockaddr*>(&source),
                  sizeof source) != 0)
      return system_failure("connect", errno);
    stream.target = rate_address(lab.fabric, flow.dst, rate_port);
    streams.push_back(std::move(stream));
  }
  WEFT_TRY(RateMarks marks, RateMarks::install(lab, flows));
  const double packets_per_s = static_cast<double>(options.rate.bps) / (8.0 * rate_packet);
  const double length = options.length.seconds();
  const auto start = RateClock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(RateClock::now() - start).count();
  };
  const auto deadline =
      StampClock::now() + rate_way + std::chrono::nanoseconds(options.length.ps / ps_per_ns);
  double renewed = 0, sent_last = 0, pause_max = 0;
  for (double now = 0; now < length; now = elapsed()) {
    pause_max = std::max(pause_max, now - sent_last);
    sent_last = now;
    if (now >= renewed + 1) {
      WEFT_TRY_STATUS(marks.renew());
      renewed = now;
    }
    for (RateStream& stream : streams) {
      stream.send(static_cast<std::int64_t>(now * packets_per_s) + 1);
      stream.receive(deadline);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::this_thread::sleep_for(rate_way);
  const double wanted = length * packets_per_s;
  Round out{.sent = 1 - pause_max / length};  // a slow link's queue runs empty in a pause
  for (RateStream& stream : streams) {
    stream.receive(deadline);
    const auto sent = static_cast<double>(stream.sent);
    out.sent = std::min(out.sent, sent / wanted);
    out.shares.push_back(static_cast<double>(std::min(stream.received, stream.sent)) / sent);
  }
  return out;
}

}  // namespace

Result<std::vector<double>> measure_rates(const Lab& lab, std::span<const RateFlow> flows,
                                          const RateOptions& options) {
  double best = 0;
  for (int attempt = 0; attempt < rate_attempts; ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(rate_drain);
    WEFT_TRY(Round round, measure_round(lab, flows, options));
    if (round.sent >= rate_sent_least) return std::move(round.shares);
    best = std::max(best, round.sent);
  }
  return fail(Errc::infeasible, {},
              fmt::format("in each of {} attempts this machine sent too few packets in time "
                          "for the rate, {:.0f} % at best",
                          rate_attempts, 100 * best),
              "lower --rate, or let nothing else run beside the lab");
}

}  // namespace weft::adapt::lab
