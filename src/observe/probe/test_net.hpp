// A network of one prober and its responders in memory, with a clock that only tests move.
// Every address and port that is probed has a responder of its own.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <vector>

#include "observe/probe/prober.hpp"
#include "observe/probe/responder.hpp"
#include "observe/probe/targets.hpp"
#include "port/probe_io.hpp"

namespace weft::observe::probe::testing {

inline constexpr Key key{0x0123456789abcdefull, 0xfedcba9876543210ull};
inline constexpr port::Endpoint far_end{0x0a000002, default_port};

class TestClock : public port::Clock {
 public:
  port::Instant now() override { return {now_}; }
  Timestamp wall() override { return {now_ + wall_offset}; }
  void set(std::int64_t ns) { now_ = std::max(now_, ns); }
  std::int64_t wall_offset = 1'700'000'000 * ns_per_s;

 private:
  std::int64_t now_ = ns_per_s;
};

// Delivers datagrams after a delay; hooks decide over loss and more.
//   prober --(there)--> responder --(back)--> prober
class TestNet : public port::ProbeIo {
 public:
  struct Fate {
    bool lost = false;
    std::int64_t delay_ns = 5'000;
    int copies = 1;
  };
  using Hook = std::function<Fate(const Message&)>;

  explicit TestNet(TestClock& clock) : clock_(clock) {}

  Hook there = [](const Message&) { return Fate{}; };
  Hook back = [](const Message&) { return Fate{}; };
  // Whether the network carries the datagram to its target, and the answer to it back.
  std::function<bool(const port::Outgoing&)> carries = [](const port::Outgoing&) { return true; };
  std::function<bool(const port::Outgoing&)> carries_back = carries;
  // May change the bytes of a probe, and of an answer, on their way.
  std::function<void(std::span<std::byte>)> mangle = [](std::span<std::byte>) {};
  std::function<void(std::span<std::byte>)> mangle_back = mangle;
  std::int64_t dwell_ns = 1'000;
  bool stamps = true;  // whether the kernel stamps
  std::uint64_t dropped_count = 0;
  std::size_t sends_max = SIZE_MAX;  // then there is no room
  std::uint64_t asks = 0;            // questions for counts

  Responder& responder(port::Endpoint at = far_end) {
    return responders_.try_emplace(at, ResponderOptions{.key = key}).first->second;
  }
  void restart_responder() { responders_.erase(far_end); }
  // A datagram out of nowhere.
  void inject(std::span<const std::byte> bytes, port::Endpoint from = far_end) {
    deliver(clock_.now().ns, from, bytes);
  }
  const std::vector<WireBytes>& replies() const { return replies_; }
  const std::vector<std::int64_t>& send_times() const { return send_times_; }

  port::SendResult send(std::span<const port::Outgoing> batch) override {
    std::size_t sent = 0;
    for (const port::Outgoing& out : batch) {
      if (sends_max == 0) break;
      --sends_max;
      ++sent;
      carry(out);
    }
    return {sent, 0};
  }
  std::size_t receive(std::span<port::Incoming> batch) override {
    std::size_t count = 0;
    while (count < batch.size() && !queue_.empty() && queue_.begin()->first <= clock_.now().ns) {
      batch[count++] = queue_.begin()->second;
      queue_.erase(queue_.begin());
    }
    return count;
  }
  std::size_t send_stamps(std::span<port::SendStamp> batch) override {
    const std::size_t count = std::min(batch.size(), stamps_.size());
    std::copy_n(stamps_.begin(), count, batch.begin());
    stamps_.erase(stamps_.begin(), stamps_.begin() + static_cast<std::ptrdiff_t>(count));
    return count;
  }
  std::size_t complaints(std::span<port::Complaint>) override { return 0; }
  port::Stamp stamping() const override { return stamps ? port::Stamp::wanted : port::Stamp::none; }
  std::uint64_t dropped() override { return dropped_count; }
  void wait(port::Instant until, port::Wake wake) override {
    std::int64_t next = until.ns;
    if (wake == port::Wake::arrival && !queue_.empty())
      next = std::min(next, queue_.begin()->first);
    clock_.set(next);
  }

 private:
  void carry(const port::Outgoing& out) {
    const std::int64_t now = clock_.now().ns;
    send_times_.push_back(now);
    if (stamps && out.stamp == port::Stamp::wanted) stamps_.push_back({out.token, {now}});
    Message request;
    REQUIRE(decode(out.payload, key, request) == Fault::none);
    if (request.kind == Kind::ask) ++asks;
    if (!carries(out)) return;
    const Fate fate = there(request);
    for (int copy = 0; !fate.lost && copy < fate.copies; ++copy) answer(out, now + fate.delay_ns);
  }
  void answer(const port::Outgoing& out, std::int64_t at) {
    port::Incoming in;
    in.from = {0x0a000001, static_cast<std::uint16_t>(50'000 + out.port)};
    in.dscp = out.dscp;
    in.size = static_cast<std::uint32_t>(out.payload.size());
    in.when = port::Instant{at};
    std::ranges::copy(out.payload, in.bytes.begin());
    mangle(std::span(in.bytes).first(in.size));
    Message reply;
    const Timestamp wall{at + clock_.wall_offset};
    if (responder(out.to).take(in, {at}, wall, reply) != Verdict::answered) return;
    const Timestamp left{wall.ns + dwell_ns};
    Responder::stamp(reply, in, {at + dwell_ns}, left);
    WireBytes bytes;
    encode(reply, key, bytes);
    replies_.push_back(bytes);
    if (!carries_back(out)) return;
    mangle_back(bytes);
    const Fate fate = back(reply);
    for (int copy = 0; !fate.lost && copy < fate.copies; ++copy)
      deliver(at + dwell_ns + fate.delay_ns, out.to, bytes, out.port);
  }
  void deliver(std::int64_t at, port::Endpoint from, std::span<const std::byte> bytes,
               std::uint32_t port = 0) {
    port::Incoming in;
    in.port = port;
    in.from = from;
    in.size = static_cast<std::uint32_t>(bytes.size());
    if (stamps) in.when = port::Instant{at};
    std::copy_n(bytes.begin(), std::min(bytes.size(), in.bytes.size()), in.bytes.begin());
    queue_.emplace(at, in);
  }

  TestClock& clock_;
  std::map<port::Endpoint, Responder> responders_;
  std::multimap<std::int64_t, port::Incoming> queue_;
  std::vector<port::SendStamp> stamps_;
  std::vector<WireBytes> replies_;
  std::vector<std::int64_t> send_times_;
};

inline ProberOptions options_of(std::uint64_t count) {
  return {.key = key, .session = 77, .rate = 10'000, .count = count};
}

// Runs the prober to its end; the reports, in order.
inline std::vector<WindowReport> run(Prober& prober, TestNet& net) {
  std::vector<WindowReport> out;
  for (std::size_t step = 0; !prober.done(); ++step) {
    REQUIRE(step < 10'000'000);
    prober.step();
    while (auto report = prober.take_report()) out.push_back(std::move(*report));
    net.wait(prober.wake_at(), prober.wake());
  }
  while (auto report = prober.take_report()) out.push_back(std::move(*report));
  return out;
}

}  // namespace weft::observe::probe::testing
