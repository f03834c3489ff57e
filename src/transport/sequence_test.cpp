#include "transport/sequence.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "base/rng.hpp"

namespace weft::transport {
namespace {

using enum Arrival;

constexpr std::uint32_t near_wrap = UINT32_MAX - 2;  // three numbers before 0

TEST_CASE("numbers wrap") {
  CHECK(psn_distance(5, 8) == 3);
  CHECK(psn_distance(8, 5) == -3);
  CHECK(psn_distance(UINT32_MAX, 1) == 2);
  CHECK(psn_distance(1, UINT32_MAX) == -2);
}

TEST_CASE("go-back-N: one NACK per hole") {
  for (const std::uint32_t first : {0u, near_wrap}) {
    GobackReceiver receiver(first);
    const auto arrives = [&](std::uint32_t offset) { return receiver.on_packet(first + offset); };
    CHECK(arrives(0) == fresh);
    CHECK(arrives(1) == fresh);
    CHECK(arrives(3) == gap);
    CHECK(arrives(4) == ignored);
    CHECK(arrives(5) == ignored);
    CHECK(arrives(1) == duplicate);
    CHECK(arrives(4) == ignored);  // a duplicate fills no hole
    CHECK(receiver.expected() == first + 2);
    CHECK(arrives(2) == fresh);
    CHECK(arrives(3) == fresh);
    CHECK(arrives(6) == gap);  // another hole, another NACK
    CHECK(arrives(4) == fresh);
    CHECK(receiver.expected() == first + 5);
  }
}

// Every order in which up to 6 packets can come, some twice.
TEST_CASE("go-back-N: all sequences of 6 arrivals of 4 packets, against the rule in words") {
  std::array<std::uint32_t, 6> order{};
  for (int code = 0; code < 4096; ++code) {
    for (std::size_t i = 0; i < 6; ++i) order[i] = static_cast<std::uint32_t>(code >> (2 * i)) & 3;
    GobackReceiver receiver(near_wrap);
    std::uint32_t expected = 0;
    std::set<std::uint32_t> nacked;
    for (const std::uint32_t packet : order) {
      const Arrival out = receiver.on_packet(near_wrap + packet);
      if (packet < expected) {
        REQUIRE(out == duplicate);
      } else if (packet == expected) {
        REQUIRE(out == fresh);
        ++expected;
      } else {
        REQUIRE(out == (nacked.insert(expected).second ? gap : ignored));
      }
      REQUIRE(receiver.expected() == near_wrap + expected);
    }
  }
}

TEST_CASE("selective: all orders of 7 packets across a word and the wrap") {
  for (const std::uint32_t first : {0u, 60u, near_wrap, 61u - 64u}) {
    std::array<std::uint32_t, 7> order{0, 1, 2, 3, 4, 5, 6};
    do {
      std::array<std::uint64_t, 1> bits{};
      SelectiveReceiver receiver(first);
      std::set<std::uint32_t> have;
      for (const std::uint32_t packet : order) {
        REQUIRE(receiver.on_packet(bits, first + packet) == fresh);
        REQUIRE(receiver.on_packet(bits, first + packet) == duplicate);
        have.insert(packet);
        std::uint32_t cumulative = 0;
        while (have.contains(cumulative)) ++cumulative;
        REQUIRE(receiver.cumulative() == first + cumulative);
      }
      REQUIRE(bits[0] == 0);
    } while (std::ranges::next_permutation(order).found);
  }
}

TEST_CASE("selective: the window ends where it should") {
  std::vector<std::uint64_t> bits(2);
  SelectiveReceiver receiver(near_wrap);
  CHECK(receiver.on_packet(bits, near_wrap + 128) == ignored);
  CHECK(receiver.on_packet(bits, near_wrap + 127) == fresh);
  CHECK(receiver.on_packet(bits, near_wrap - 1) == duplicate);
  for (std::uint32_t i = 1; i < 127; ++i) CHECK(receiver.on_packet(bits, near_wrap + i) == fresh);
  CHECK(receiver.cumulative() == near_wrap);
  CHECK(receiver.on_packet(bits, near_wrap) == fresh);
  CHECK(receiver.cumulative() == near_wrap + 128);
  CHECK(bits == std::vector<std::uint64_t>(2));
}

TEST_CASE("selective receiver: random arrivals against a set") {
  Rng rng(6);
  for (const std::uint32_t window : {64u, 256u, 4096u}) {
    CAPTURE(window);
    std::vector<std::uint64_t> bits(window / 64);
    const std::uint32_t first = 0u - 2 * window;
    SelectiveReceiver receiver(first);
    std::set<std::uint64_t> have;
    std::uint64_t cumulative = 0;
    for (int step = 0; step < 60'000; ++step) {
      // Mostly near the hole, sometimes far off on either side.
      const std::uint64_t from = cumulative > 20 ? cumulative - 20 : 0;
      const std::uint64_t packet = from + rng.below(rng.below(4) == 0 ? 2 * window : 60);
      const Arrival out = receiver.on_packet(bits, first + static_cast<std::uint32_t>(packet));
      if (packet >= cumulative + window) {
        REQUIRE(out == ignored);
      } else {
        REQUIRE(out == (packet >= cumulative && have.insert(packet).second ? fresh : duplicate));
      }
      while (have.erase(cumulative) == 1) ++cumulative;
      REQUIRE(receiver.cumulative() == first + static_cast<std::uint32_t>(cumulative));
    }
    CHECK(cumulative > 2 * window);  // went through the wrap
  }
}

TEST_CASE("selective sender: oldest hole first") {
  std::array<std::uint64_t, 2> words{};
  SelectiveSender sender(near_wrap);
  for (std::uint32_t i = 0; i < 64; ++i) {
    REQUIRE(sender.may_send(words));
    REQUIRE(sender.send() == near_wrap + i);
  }
  CHECK_FALSE(sender.may_send(words));
  CHECK(sender.take_lost(words) == std::nullopt);
  CHECK(sender.on_lost(words, near_wrap + 9));
  CHECK(sender.on_lost(words, near_wrap + 2));
  CHECK_FALSE(sender.on_lost(words, near_wrap + 9));
  CHECK(sender.on_lost(words, near_wrap + 40));
  CHECK_FALSE(sender.on_lost(words, near_wrap + 64));  // never sent
  CHECK(sender.lost_count() == 3);
  CHECK(sender.on_ack(words, near_wrap + 9));  // the loss was reported too soon
  CHECK_FALSE(sender.on_ack(words, near_wrap + 9));
  CHECK(sender.is_acked(words, near_wrap + 9));
  CHECK(sender.is_lost(words, near_wrap + 40));
  CHECK(sender.take_lost(words) == near_wrap + 2);
  CHECK(sender.take_lost(words) == near_wrap + 40);
  CHECK(sender.take_lost(words) == std::nullopt);
  CHECK(sender.on_cumulative(words, near_wrap + 10) == 9);
  CHECK(sender.base() == near_wrap + 10);
  CHECK(sender.on_cumulative(words, near_wrap + 65) == 0);  // of a packet never sent
  CHECK(sender.may_send(words));
  CHECK(sender.on_timeout(words) == 54);
  CHECK(sender.take_lost(words) == near_wrap + 10);
}

// What the sender should know, in plain sets.
struct SenderTruth {
  std::uint64_t next = 0;
  std::set<std::uint64_t> waits, lost;

  std::uint64_t base() const { return waits.empty() ? next : *waits.begin(); }
};

class SenderPair {
 public:
  SenderPair(std::uint32_t window, std::uint64_t seed)
      : window_(window), first_(0u - 2 * window), words_(window / 32), rng_(seed) {}

  void step() {
    const std::uint64_t psn = near();
    const std::uint32_t number = first_ + static_cast<std::uint32_t>(psn);
    switch (rng_.below(6)) {
      case 0:
        return send();
      case 1:
        return take();
      case 2:
        return lose(psn, number);
      case 3:
        return rng_.below(200) == 0 ? time_out() : cumulative(psn, number);
      default:
        return ack(psn, number);
    }
  }
  void check() {
    REQUIRE(sender_.base() == first_ + static_cast<std::uint32_t>(truth_.base()));
    REQUIRE(sender_.lost_count() == truth_.lost.size());
  }
  std::uint64_t base() const { return truth_.base(); }

 private:
  std::uint64_t near() {
    const std::uint64_t from = truth_.base() > 5 ? truth_.base() - 5 : 0;
    return from + rng_.below(rng_.below(4) == 0 ? window_ + 20 : 12);
  }
  void send() {
    REQUIRE(sender_.may_send(words_) == (truth_.next - truth_.base() < window_));
    for (int i = 0; i < 3 && sender_.may_send(words_); ++i) {
      REQUIRE(sender_.send() == first_ + static_cast<std::uint32_t>(truth_.next));
      truth_.waits.insert(truth_.next++);
    }
  }
  void take() {
    const auto out = sender_.take_lost(words_);
    REQUIRE(out.has_value() == !truth_.lost.empty());
    if (!out) return;
    REQUIRE(*out == first_ + static_cast<std::uint32_t>(*truth_.lost.begin()));
    truth_.lost.erase(truth_.lost.begin());
  }
  void lose(std::uint64_t psn, std::uint32_t number) {
    const bool news = truth_.waits.contains(psn) && truth_.lost.insert(psn).second;
    REQUIRE(sender_.on_lost(words_, number) == news);
    REQUIRE(sender_.is_lost(words_, number) == truth_.lost.contains(psn));
  }
  void ack(std::uint64_t psn, std::uint32_t number) {
    truth_.lost.erase(psn);
    REQUIRE(sender_.on_ack(words_, number) == (truth_.waits.erase(psn) == 1));
    REQUIRE(sender_.is_acked(words_, number) == (psn < truth_.next));
  }
  void cumulative(std::uint64_t psn, std::uint32_t number) {
    std::uint32_t news = 0;
    while (psn <= truth_.next && truth_.base() < psn) {
      truth_.lost.erase(truth_.base());
      truth_.waits.erase(truth_.waits.begin());
      ++news;
    }
    REQUIRE(sender_.on_cumulative(words_, number) == news);
  }
  void time_out() {
    const std::size_t before = truth_.lost.size();
    truth_.lost = truth_.waits;
    REQUIRE(sender_.on_timeout(words_) == truth_.lost.size() - before);
  }

  std::uint32_t window_, first_;
  std::vector<std::uint64_t> words_;
  Rng rng_;
  SelectiveSender sender_{first_};
  SenderTruth truth_;
};

TEST_CASE("selective sender: random events against sets") {
  for (const std::uint32_t window : {64u, 128u, 4096u}) {
    CAPTURE(window);
    SenderPair pair(window, window);
    for (int step = 0; step < 60'000; ++step) {
      pair.step();
      pair.check();
    }
    CHECK(pair.base() > 4 * window);  // went through the wrap
  }
}

TEST_CASE("windows are powers of two from 64 to 4096") {
  CHECK(is_window(64));
  CHECK(is_window(4096));
  for (const std::size_t wrong : {0u, 1u, 32u, 96u, 8192u}) CHECK_FALSE(is_window(wrong));
}

}  // namespace
}  // namespace weft::transport
