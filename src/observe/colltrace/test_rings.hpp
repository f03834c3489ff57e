// For tests: files as libweft-nccl.so leaves them, written down from the layout; and a job of such
// files whose sends over one link wait for long.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.hpp"
#include "base/hash.hpp"
#include "observe/colltrace/ring_layout.hpp"

namespace weft::observe::colltrace::test {

// One process with one thread. Its clock counts ns from the time of opening.
class RingFile {
 public:
  RingFile(std::int32_t rank, std::int64_t opened_ns)
      : opened_ns_(opened_ns), content_(ring::ring_offset + ring::ring_stride, '\0') {
    std::memcpy(head_.magic, ring::magic, sizeof head_.magic);
    head_.version = ring::layout_version;
    head_.pid = 4'000'000 + rank;
    head_.rank = rank;
    head_.opened = {1, static_cast<std::uint64_t>(opened_ns)};
    head_.rings = 1;
    copy("a-pod", head_.host);
    if (const auto id = read_file("/proc/sys/kernel/random/boot_id", 100))
      copy(std::string_view(*id).substr(0, id->find('\n')), head_.boot_id);
    for (const char* name : {"AllReduce", "ncclFloat32"}) {
      ring::Name entry{.is_set = 1, .text = {}};
      copy(name, entry.text);
      put(ring::name_offset + head_.names++ * sizeof entry, entry);
    }
  }

  void communicator(std::uint64_t id, std::int32_t rank, std::int32_t ranks) {
    ring::Communicator c{
        .id = id, .rank = rank, .rank_count = ranks, .node_count = ranks, .state = 1};
    copy("dp", c.name);
    put(ring::comm_offset + head_.communicators++ * sizeof c, c);
  }

  struct Send {
    std::int32_t peer = 0;
    std::uint8_t channel = 0;
    std::int64_t wait_ns = 0;
  };
  // A collective on the one communicator that there is; `end_ns` 0: it has not ended.
  void collective(std::int64_t begin_ns, std::int64_t end_ns, const std::vector<Send>& sends) {
    ring::Record r{};
    r.kind = ring::Kind::collective;
    r.begin = ticks(begin_ns);
    r.device_open = end_ns == 0;
    r.operation = {.channels = 1, .order = order_, .count = bytes_per_send / 4};
    r.operation.seq = order_++;
    r.operation.type = 1;
    r.operation.enqueued = r.operation.seen_begin = r.begin;
    r.operation.begun = 1;
    r.operation.device_begin = r.begin;
    if (end_ns != 0) {
      r.operation.ended = 1;
      r.operation.seen_end = r.operation.device_end = ticks(end_ns);
    }
    const std::uint64_t parent = add(r);
    for (const Send& send : sends) {
      ring::Record p{};
      p.kind = ring::Kind::proxy;
      p.begin = r.begin;
      p.parent = parent;
      p.proxy = {.peer = send.peer, .channel = send.channel, .is_send = 1, .steps = 4};
      p.proxy.steps_done = 4;
      p.proxy.bytes = bytes_per_send;
      p.proxy.wait[1] = static_cast<std::uint32_t>(send.wait_ns >> ring::wait_shift);
      add(p);
    }
  }

  ring::ProcessHead& head() { return head_; }
  std::string bytes() {
    put(0, head_);
    put(ring::ring_offset, ring_);
    return content_;
  }

 private:
  static constexpr std::uint64_t bytes_per_send = 1 << 20;
  std::uint64_t ticks(std::int64_t ns) const {
    return static_cast<std::uint64_t>(ns - opened_ns_) + 1;
  }
  template <std::size_t n>
  static void copy(std::string_view text, char (&to)[n]) {
    std::memcpy(to, text.data(), std::min(text.size(), n - 1));
  }
  template <class T>
  void put(std::size_t at, const T& value) {
    std::memcpy(content_.data() + at, &value, sizeof value);
  }
  // Returns its handle.
  std::uint64_t add(ring::Record& r) {
    const std::size_t slot = ring_.head++ % ring::records_per_ring;
    const std::size_t at = ring::ring_offset + ring::page + slot * sizeof r;
    r.serial = static_cast<std::uint32_t>(ring_.head);
    put(at, r);
    return at | ((ring_.head - 1) >> ring::records_per_ring_log2 & 0xffff) << 48;
  }

  std::int64_t opened_ns_;
  std::string content_;
  ring::ProcessHead head_{};
  ring::RingHead ring_{};
  std::uint64_t order_ = 0;
};

// Data parallel over 8 hosts of 4 racks, 2 ranks on each: a ring for each of the two that goes from
// rack to rack (hosts 0 2 4 6 1 3 5 7), on 4 channels, each over the spine of its number. What
// leaves rack `rack` by spine `spine` waits `factor` times as long.
struct RingJob {
  std::uint32_t rack = 0, spine = 1;
  double factor = 2.2;
  int operations = 30;
  std::int64_t end_ns = 0;

  std::string file(std::uint32_t rank) const { return ring(rank).bytes(); }
  RingFile ring(std::uint32_t rank) const {
    constexpr std::uint32_t order[] = {0, 2, 4, 6, 1, 3, 5, 7};
    std::int32_t at = 0;
    while (order[at] != rank / 2) ++at;
    constexpr std::int64_t ms = 1'000'000;
    const std::int64_t begin = end_ns - std::int64_t{operations} * 25 * ms;
    RingFile out(static_cast<std::int32_t>(rank), begin - ms);
    out.communicator(0x77 + rank % 2, at, 8);
    for (int op = 0; op < operations; ++op) {
      std::vector<RingFile::Send> sends;
      for (std::uint8_t c = 0; c < 4; ++c) {
        const std::uint64_t chance =
            mix64(std::uint64_t{rank} * 1'000'003 + static_cast<std::uint64_t>(op) * 64 + c);
        const double noise = static_cast<double>(chance % 1000) / 1000 - 0.5;
        const double wait = (c == spine && rank / 4 == rack ? factor : 1) * (1 + 0.1 * noise);
        sends.push_back({(at + 1) % 8, c, static_cast<std::int64_t>(wait * 1e6)});
      }
      const std::int64_t t = begin + std::int64_t{op} * 25 * ms;
      out.collective(t, t + 12 * ms, sends);
    }
    return out;
  }
};

}  // namespace weft::observe::colltrace::test
