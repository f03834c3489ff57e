#include "adapt/lab/wire_queue.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <numeric>

namespace weft::adapt::lab {
namespace {

using Frame = std::vector<std::uint8_t>;

constexpr Duration us(std::int64_t n) { return {n * 1'000'000}; }

struct Left {
  std::int64_t at_ns;
  Frame frame;
  friend bool operator==(const Left&, const Left&) = default;
};

// Sends frames numbered in their first bytes at fixed spacing, and lets all leave when due.
std::vector<Left> pass(WireQueue& queue, std::uint32_t count, std::int64_t gap_ns,
                       std::size_t bytes = 100) {
  for (std::uint32_t i = 0; i < count; ++i) {
    Frame frame(bytes, 0);
    frame[0] = static_cast<std::uint8_t>(i >> 8);
    frame[1] = static_cast<std::uint8_t>(i);
    queue.admit(i * gap_ns, frame);
  }
  std::vector<Left> out;
  for (; !queue.empty(); queue.pop())
    out.push_back({queue.due_ns(), Frame(queue.front().begin(), queue.front().end())});
  return out;
}

std::uint32_t number(const Left& left) { return left.frame[0] * 256u + left.frame[1]; }

Frame ipv4_frame(unsigned ecn) {
  Frame frame(60, 0);
  frame[12] = 8;
  const std::array<std::uint8_t, 20> header{0x45, static_cast<std::uint8_t>(0xb8 | ecn),
                                            0,    46,
                                            1,    2,
                                            0x40, 0,
                                            64,   17,
                                            0,    0,
                                            10,   0,
                                            0,    1,
                                            10,   0,
                                            0,    2};
  std::copy(header.begin(), header.end(), frame.begin() + 14);
  return frame;
}
// The sum that a right header adds up to with its checksum is 0xffff.
unsigned header_sum(const Frame& frame) {
  unsigned sum = 0;
  for (std::size_t i = 14; i < 34; i += 2) sum += frame[i] * 256u + frame[i + 1];
  sum = (sum & 0xffff) + (sum >> 16);
  return (sum & 0xffff) + (sum >> 16);
}
void set_checksum(Frame& frame) {
  frame[24] = frame[25] = 0;
  const unsigned sum = ~header_sum(frame) & 0xffff;
  frame[24] = static_cast<std::uint8_t>(sum >> 8);
  frame[25] = static_cast<std::uint8_t>(sum);
}

TEST_CASE("a wire that does nothing lets frames leave as they came") {
  WireQueue queue({});
  const auto left = pass(queue, 100, 1'000);
  REQUIRE(left.size() == 100);
  for (std::uint32_t i = 0; i < 100; ++i) {
    CHECK(left[i].at_ns == i * 1'000);
    CHECK(number(left[i]) == i);
  }
}

TEST_CASE("delay is exact, jitter is uniform and keeps order") {
  WireQueue queue({.delay = us(500), .jitter = us(100)});
  const auto left = pass(queue, 20'000, 200'000);  // apart by more than the jitter
  REQUIRE(left.size() == 20'000);
  double sum = 0;
  for (std::uint32_t i = 0; i < left.size(); ++i) {
    const std::int64_t extra = left[i].at_ns - i * 200'000ll - 500'000;
    REQUIRE(number(left[i]) == i);
    REQUIRE(extra >= 0);
    REQUIRE(extra <= 100'000);
    sum += static_cast<double>(extra);
  }
  // Mean of U(0, 100 us), deviation 100 / sqrt(12 n).
  CHECK(std::abs(sum / 20'000 - 50'000) < 5 * 100'000 / std::sqrt(12.0 * 20'000));
  WireQueue dense({.jitter = us(100)});
  const auto close = pass(dense, 1'000, 1'000);
  for (std::uint32_t i = 0; i < close.size(); ++i) CHECK(number(close[i]) == i);
}

TEST_CASE("a corrupt frame differs in one bit behind the Ethernet header") {
  WireQueue queue({.corrupt = 0.5, .seed = 3});
  const auto left = pass(queue, 10'000, 10);
  std::uint64_t flipped = 0;
  for (const Left& one : left) {
    int bits = 0;
    for (std::size_t i = 2; i < one.frame.size(); ++i) {
      bits += std::popcount(one.frame[i]);
      if (i < 14) REQUIRE(one.frame[i] == 0);
    }
    REQUIRE(bits <= 1);
    flipped += static_cast<std::uint64_t>(bits);
  }
  CHECK(flipped == queue.count.corrupted);
  CHECK(std::abs(static_cast<double>(flipped) - 5'000) < 5 * 50);
}

TEST_CASE("reordered frames are overtaken, duplicated ones come twice, none is lost") {
  WireQueue queue({.duplicate = 0.1, .reorder = 0.1, .hold = us(10), .seed = 9});
  const auto left = pass(queue, 5'000, 1'000);
  CHECK(left.size() == 5'000 + queue.count.duplicated);
  std::vector<std::uint32_t> seen(5'000, 0);
  for (const Left& one : left) ++seen[number(one)];
  CHECK(std::accumulate(seen.begin(), seen.end(), 0u) == left.size());
  for (const std::uint32_t times : seen) REQUIRE((times == 1 || times == 2));
  std::uint64_t overtaken = 0;
  std::uint32_t highest = 0;
  std::vector<bool> counted(5'000, false);
  for (const Left& one : left) {
    const std::uint32_t n = number(one);
    if (n < highest && !counted[n]) ++overtaken;
    if (n < highest) counted[n] = true;
    highest = std::max(highest, n);
  }
  CHECK(overtaken <= queue.count.reordered);
  CHECK(overtaken + 1 >= queue.count.reordered);  // the last has nobody behind it
}

TEST_CASE("a slow link serves frames one after another and bounds its queue") {
  // 100 bytes at 8 Mbit/s take 100 us.
  WireQueue queue({.rate = {8'000'000}, .queue = {1'000}});
  const auto left = pass(queue, 50, 0);
  REQUIRE(left.size() == 10);  // 1,000 bytes of queue
  for (std::size_t i = 0; i < left.size(); ++i)
    CHECK(left[i].at_ns == static_cast<std::int64_t>(i + 1) * 100'000);
  CHECK(queue.count.overflowed == 40);
  WireQueue paced({.rate = {8'000'000}, .queue = {100}});
  CHECK(pass(paced, 50, 100'000).size() == 50);  // just as fast as it serves
  CHECK(paced.count.overflowed == 0);
}

TEST_CASE("above the threshold ECT frames are marked, checksum and all") {
  WireQueue queue({.rate = {8'000'000}, .queue = {10'000}, .ecn = {300}});
  for (int i = 0; i < 20; ++i) {
    Frame frame = ipv4_frame(i % 2 == 0 ? 2 : 0);
    set_checksum(frame);
    queue.admit(0, frame);
  }
  std::uint32_t marked = 0;
  for (; !queue.empty(); queue.pop()) {
    const Frame frame(queue.front().begin(), queue.front().end());
    CHECK(header_sum(frame) == 0xffff);
    marked += (frame[15] & 3) == 3 ? 1 : 0;
  }
  // 60 bytes each: backlog is above 300 from the seventh on, every second one is ECT.
  CHECK(marked == 7);
  CHECK(queue.count.marked == marked);
}

TEST_CASE("CE: every ECN field, every byte of type of service, IPv4 and IPv6") {
  for (unsigned tos = 0; tos < 256; ++tos) {
    Frame frame = ipv4_frame(0);
    frame[15] = static_cast<std::uint8_t>(tos);
    set_checksum(frame);
    const Frame before = frame;
    const bool ect = (tos & 3) == 1 || (tos & 3) == 2;
    CHECK(mark_ce(frame) == ect);
    CHECK(header_sum(frame) == 0xffff);
    CHECK(frame[15] == (ect ? (tos | 3) : tos));
    if (!ect) CHECK(frame == before);
  }
  Frame six(60, 0);
  six[12] = 0x86;
  six[13] = 0xdd;
  six[14] = 0x60;
  six[15] = 0x25;  // class 2 (ECT(0)), flow label 5...
  CHECK(mark_ce(six));
  CHECK(six[15] == 0x35);
  CHECK_FALSE(mark_ce(six));
  Frame arp(60, 0);
  arp[12] = 8;
  arp[13] = 6;
  arp[15] = 2;
  CHECK_FALSE(mark_ce(arp));
  Frame cut(20, 8);
  CHECK_FALSE(mark_ce(cut));
  CHECK_FALSE(mark_ce({}));
}

TEST_CASE("the same seed gives the same fates, another one others") {
  const WireModel model{.delay = us(5),
                        .jitter = us(50),
                        .corrupt = 0.1,
                        .duplicate = 0.1,
                        .reorder = 0.1,
                        .hold = us(10),
                        .seed = 4};
  WireQueue a(model);
  WireQueue b(model);
  const auto once = pass(a, 1'000, 500);
  CHECK(once == pass(b, 1'000, 500));
  WireModel other = model;
  other.seed = 5;
  WireQueue c(other);
  CHECK(once != pass(c, 1'000, 500));
}

TEST_CASE("the number of waiting frames is bounded") {
  WireQueue queue({.delay = us(1'000'000)});
  const Frame frame(64, 0);
  for (std::size_t i = 0; i < wire_frames_max + 10; ++i) queue.admit(0, frame);
  CHECK(queue.waiting() == wire_frames_max);
  CHECK(queue.count.overflowed == 10);
}

}  // namespace
}  // namespace weft::adapt::lab
