#include "observe/colltrace/ring.hpp"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#ifdef __x86_64__
#include <x86intrin.h>
#endif

#include <algorithm>
#include <cstring>
#include <map>
#include <tuple>
#include <utility>

#include "base/file.hpp"
#include "base/file_stream.hpp"
#include "base/text.hpp"

namespace weft::observe::colltrace {
namespace {

using namespace ring;

template <class T>
T copy_at(std::string_view content, std::size_t offset) {
  T out;
  std::memcpy(static_cast<void*>(&out), content.data() + offset, sizeof out);
  return out;
}

template <std::size_t n>
std::string text_of(const char (&field)[n]) {
  return std::string(field, ::strnlen(field, n));
}

// Ticks as time: a line through the moment of opening and one as late as there is.
class Clock {
 public:
  Clock(const ProcessHead& head, const ClockPair& late) : opened_(head.opened) {
    const std::uint64_t ticks = late.ticks - opened_.ticks;
    const std::uint64_t ns = late.realtime_ns - opened_.realtime_ns;
    const bool is_later = late.ticks > opened_.ticks && late.realtime_ns > opened_.realtime_ns;
    if (head.clock == ClockKind::monotonic_ns)
      ns_per_tick_ = 1;
    else if (is_later && ns > 1'000'000)
      ns_per_tick_ = static_cast<double>(ns) / static_cast<double>(ticks);
  }
  double ns_per_tick() const { return ns_per_tick_; }
  std::uint64_t span(std::uint64_t ticks) const {
    return static_cast<std::uint64_t>(
        std::clamp(static_cast<double>(ticks) * ns_per_tick_, 0.0, 9e18));
  }
  // 0 stays 0. What the line puts outside of the years that have a time becomes 1 ns.
  std::int64_t time(std::uint64_t ticks) const {
    if (ticks == 0) return 0;
    const double at =
        static_cast<double>(static_cast<std::int64_t>(ticks - opened_.ticks)) * ns_per_tick_ +
        static_cast<double>(opened_.realtime_ns);
    if (at < 1 || at > 9e18) return 1;
    const auto since =
        static_cast<double>(static_cast<std::int64_t>(ticks - opened_.ticks)) * ns_per_tick_;
    return static_cast<std::int64_t>(opened_.realtime_ns) + static_cast<std::int64_t>(since);
  }

 private:
  ClockPair opened_;
  double ns_per_tick_ = 0.4;  // unknown within a millisecond of the opening: 2.5 GHz
};

class Reader {
 public:
  Reader(std::string_view content, const std::string& file) : content_(content), file_(file) {}

  Result<RingTrace> read(const std::optional<ClockPair>& now) {
    WEFT_TRY_STATUS(read_head());
    read_tables();
    Clock clock(head_, now ? *now : latest_pair());
    out_.ns_per_tick = clock.ns_per_tick();
    read_records(clock);
    join();
    return std::move(out_);
  }

 private:
  std::unexpected<Error> refuse(std::size_t at, std::string what) const {
    return fail(Errc::parse, {file_, 0, 0}, fmt::format("byte {}: {}", at, what),
                "give a file that libweft-nccl.so has written");
  }

  Status read_head() {
    if (!is_ring(content_) || content_.size() < ring_offset)
      return refuse(0, "no ring of libweft-nccl.so, or cut off");
    head_ = copy_at<ProcessHead>(content_, 0);
    if (head_.version != layout_version)
      return refuse(8, fmt::format("layout {}, this weft reads {}", head_.version, layout_version));
    if (head_.clock != ClockKind::monotonic_ns && head_.clock != ClockKind::cpu_counter)
      return refuse(12, "unknown kind of clock");
    if (head_.opened.realtime_ns == 0 || head_.opened.realtime_ns >> 63 != 0)
      return refuse(offsetof(ProcessHead, opened), "no time of opening");
    if (content_.size() > file_bytes || (content_.size() - ring_offset) % ring_stride != 0)
      return refuse(content_.size(), "ends within a ring");
    return {};
  }

  void read_tables() {
    out_.host = text_of(head_.host);
    out_.job = text_of(head_.job);
    out_.boot_id = text_of(head_.boot_id);
    out_.clock = head_.clock;
    out_.pid = head_.pid;
    out_.rank = head_.rank;
    out_.pid_namespace = head_.pid_namespace;
    out_.opened_ns = static_cast<std::int64_t>(head_.opened.realtime_ns);
    out_.is_finished = head_.finished_ns != 0;
    out_.is_gone = head_.gone_ns != 0;
    out_.untraced_threads = head_.untraced_threads;
    out_.untraced_events = head_.untraced_events;
    const std::uint32_t communicators = std::min(head_.communicators, communicators_max);
    out_.untraced_communicators = head_.communicators - communicators;
    for (std::uint32_t i = 0; i < communicators; ++i) {
      const auto c = copy_at<Communicator>(content_, comm_offset + i * sizeof(Communicator));
      out_.communicators.push_back({c.id, text_of(c.name), c.rank, c.rank_count, c.node_count,
                                    c.orders, c.sends, c.state == 2});
    }
    for (std::uint32_t i = 0; i < names_max; ++i) {
      const auto n = copy_at<Name>(content_, name_offset + i * sizeof(Name));
      out_.names.push_back(n.is_set != 0 ? text_of(n.text) : "?");
    }
    out_.names.resize(256, "?");
  }

  std::size_t ring_count() const {
    return std::min<std::size_t>(head_.rings, (content_.size() - ring_offset) / ring_stride);
  }

  ClockPair latest_pair() const {
    ClockPair out = head_.opened;
    for (std::size_t i = 0; i < ring_count(); ++i) {
      const auto h = copy_at<RingHead>(content_, ring_offset + i * ring_stride);
      if (h.pair_count == 0) continue;
      const ClockPair& pair = h.pairs[(h.pair_count - 1) % 2];
      if (pair.ticks > out.ticks) out = pair;
    }
    return out;
  }

  void read_records(const Clock& clock) {
    for (std::size_t i = 0; i < ring_count(); ++i) {
      const std::size_t at = ring_offset + i * ring_stride;
      const auto h = copy_at<RingHead>(content_, at);
      out_.dropped += h.dropped;
      out_.stale += h.stale;
      for (std::uint32_t slot = 0; slot < records_per_ring; ++slot) {
        const std::size_t record_at = at + page + slot * sizeof(Record);
        const auto r = copy_at<Record>(content_, record_at);
        // Just being written, or never.
        if (r.serial == 0 || (r.serial - 1) % records_per_ring != slot) continue;
        if (r.kind == Kind::proxy)
          add_proxy(r, clock);
        else if (r.kind != Kind::none && r.kind <= Kind::copy_engine)
          add_operation(r, record_at, clock);
      }
    }
  }

  void add_operation(const Record& r, std::size_t at, const Clock& clock) {
    using State = RingOperation::State;
    const Operation& o = r.operation;
    if (o.communicator >= out_.communicators.size()) return;
    RingOperation op{.communicator = o.communicator,
                     .kind = r.kind,
                     .order = o.order,
                     .seq = o.seq,
                     .count = o.count,
                     .peer = o.peer,
                     .function = o.function,
                     .type = o.type,
                     .algorithm = o.algorithm,
                     .protocol = o.protocol,
                     .called_ns = clock.time(r.begin),
                     .started_ns = clock.time(o.seen_begin),
                     .channels_open = o.begun & ~o.ended};
    const bool has_ended = o.seen_end != 0 && r.device_open == 0;
    op.state = has_ended ? State::completed : o.begun != 0 ? State::started : State::enqueued;
    if (r.kind == Kind::copy_engine && o.enqueued != 0) op.state = State::completed;
    if (has_ended) op.ended_ns = clock.time(o.seen_end);
    if (has_ended && o.device_end > o.device_begin) op.device_ns = o.device_end - o.device_begin;
    operations_.push_back({head_.base + at, r.serial, op});
  }

  void add_proxy(const Record& r, const Clock& clock) {
    const Proxy& p = r.proxy;
    RingProxy out{.begin_ns = clock.time(r.begin),
                  .peer = p.peer,
                  .channel = p.channel,
                  .is_send = p.is_send != 0,
                  .is_open = r.host_open != 0,
                  .steps = p.steps,
                  .steps_done = p.steps_done,
                  .bytes = p.bytes};
    for (std::size_t i = 0; i < 4; ++i)
      out.wait_ns[i] = clock.span(std::uint64_t{p.wait[i]} << wait_shift);
    std::uint32_t oldest = 0xffffffff;
    for (std::size_t i = 0; i < 8; ++i)
      if (out.is_open && p.state[i] != 0 && p.last[i] < oldest) {
        oldest = p.last[i];
        out.stuck_in = static_cast<Wait>((p.state[i] - 1) & 3);
      }
    proxies_.push_back({r.parent, out});
  }

  // A proxy's parent is a handle: an address, with the generation of the record above bit 48.
  void join() {
    std::ranges::sort(operations_, {}, [](const Found& f) {
      return std::tuple(f.operation.communicator, f.operation.order, f.address);
    });
    std::vector<std::tuple<std::uint64_t, std::uint64_t, std::uint32_t>> index;
    for (std::uint32_t i = 0; i < operations_.size(); ++i) {
      const Found& f = operations_[i];
      index.emplace_back(f.address & address_bits, (f.serial - 1) >> records_per_ring_log2 & 0xffff,
                         i);
      out_.operations.push_back(f.operation);
    }
    std::ranges::sort(index);
    for (auto& [parent, proxy] : proxies_) {
      const std::tuple key(parent & address_bits, parent >> 48, std::uint32_t{0});
      const auto found = std::ranges::lower_bound(index, key);
      const bool is_it = parent != 0 && found != index.end() &&
                         std::get<0>(*found) == std::get<0>(key) &&
                         std::get<1>(*found) == std::get<1>(key);
      if (is_it) proxy.operation = std::get<2>(*found);
      out_.proxies.push_back(proxy);
    }
    std::ranges::stable_sort(out_.proxies, {}, &RingProxy::begin_ns);
  }

  static constexpr std::uint64_t address_bits = (std::uint64_t{1} << 48) - 128;
  struct Found {
    std::uint64_t address;
    std::uint32_t serial;
    RingOperation operation;
  };
  std::string_view content_;
  const std::string& file_;
  ProcessHead head_{};
  RingTrace out_;
  std::vector<Found> operations_;
  std::vector<std::pair<std::uint64_t, RingProxy>> proxies_;
};

}  // namespace

bool is_ring(std::string_view content) {
  return content.starts_with(std::string_view(magic, sizeof magic));
}

Result<RingTrace> read_ring(std::string_view content, const std::string& file,
                            const std::optional<ClockPair>& now) {
  return Reader(content, file).read(now);
}

Result<File> open_trace_file(const std::string& path, Links links) {
  const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | (links == Links::refuse ? O_NOFOLLOW : 0);
  const int descriptor = ::open(path.c_str(), flags);
  if (descriptor < 0) return io_error(path, "open");
  struct stat status{};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    return fail(Errc::io, {path, 0, 0}, "not a regular file", "copy its contents to a file first");
  }
  File in(::fdopen(descriptor, "rb"));
  if (!in) return io_error(path, "open");
  return in;
}

Result<std::string> load_ring(const std::string& path, Links links) {
  WEFT_TRY(const File file, open_trace_file(path, links));
  std::string content(ring_offset, '\0');
  content.resize(std::fread(content.data(), 1, content.size(), file.get()));
  if (!is_ring(content) || content.size() < ring_offset) return content;
  const std::size_t rings = std::min(copy_at<ProcessHead>(content, 0).rings, rings_max);
  content.resize(ring_offset + rings * ring_stride);
  const std::size_t rest =
      std::fread(content.data() + ring_offset, 1, rings * ring_stride, file.get());
  if (std::ferror(file.get()) != 0) return io_error(path, "read");
  content.resize(ring_offset + rest);
  return content;
}

void cut_ring(std::string& content, std::uint32_t records) {
  for (std::size_t at = ring_offset; at < content.size(); at += ring_stride) {
    const std::uint64_t head = copy_at<RingHead>(content, at).head;
    for (std::size_t slot = 0; slot < records_per_ring; ++slot) {
      const std::size_t record_at = at + page + slot * sizeof(Record);
      const auto r = copy_at<Record>(content, record_at);
      // Serials wrap at 32 bits, as the plugin counts them.
      const bool is_late = r.serial != 0 && static_cast<std::uint32_t>(head) - r.serial < records;
      if (!is_late && r.host_open == 0 && r.device_open == 0)
        std::memset(content.data() + record_at, 0, sizeof(Record));
    }
  }
}

void stamp_ring(std::string& content, const std::optional<ClockPair>& now, std::int64_t gone_ns) {
  auto process = copy_at<ProcessHead>(content, 0);
  process.gone_ns = static_cast<std::uint64_t>(gone_ns);
  std::memcpy(content.data(), &process, sizeof process);
  if (!now || content.size() < ring_offset + ring_stride) return;
  auto head = copy_at<RingHead>(content, ring_offset);
  head.pair_count = std::max(head.pair_count, 1u);
  head.pairs[(head.pair_count - 1) % 2] = *now;
  std::memcpy(content.data() + ring_offset, &head, sizeof head);
}

namespace {

bool is_own_boot(std::string_view boot_id) {
  const auto own = read_file("/proc/sys/kernel/random/boot_id", 100);
  return own && trim(*own) == boot_id;
}

}  // namespace

std::optional<ClockPair> clock_of(std::string_view boot_id, ClockKind kind) {
  if (kind != ClockKind::cpu_counter || !is_own_boot(boot_id)) return {};
#ifdef __x86_64__
  timespec t{};
  ::clock_gettime(CLOCK_REALTIME, &t);
  return ClockPair{__rdtsc(), static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u +
                                  static_cast<std::uint64_t>(t.tv_nsec)};
#else
  return {};
#endif
}

bool is_of_this_machine(const RingTrace& trace) { return is_own_boot(trace.boot_id); }

bool is_process_gone(const RingTrace& trace) {
  struct stat own{};
  return !trace.is_finished && is_of_this_machine(trace) &&
         ::stat("/proc/self/ns/pid", &own) == 0 && own.st_ino == trace.pid_namespace &&
         ::kill(trace.pid, 0) != 0 && errno == ESRCH;
}

RingLife life_of(const RingTrace& trace, std::string host) {
  RingLife out{.host = std::move(host),
               .job = trace.job,
               .rank = trace.rank,
               .opened_ns = trace.opened_ns,
               .latest_ns = trace.opened_ns,
               .is_gone = trace.is_gone};
  for (const RingOperation& o : trace.operations)
    out.latest_ns = std::max({out.latest_ns, o.called_ns, o.started_ns, o.ended_ns});
  if (!trace.proxies.empty())
    out.latest_ns = std::max(out.latest_ns, trace.proxies.back().begin_ns);
  return out;
}

std::vector<bool> are_current(const std::vector<RingLife>& lives) {
  constexpr std::int64_t patience_ns = 60'000'000'000;     // processes of a job begin one by one
  using Rank = std::pair<std::string_view, std::int32_t>;  // of a job
  std::map<std::pair<std::string_view, Rank>, std::size_t> latest;  // on a host
  std::map<Rank, std::int64_t> newest, living;                      // when the latest was opened
  std::map<std::string_view, std::int64_t> first_living_ns;         // by job
  for (std::size_t i = 0; i < lives.size(); ++i) {
    const RingLife& life = lives[i];
    const Rank rank{life.job, life.rank};
    newest[rank] = std::max(newest[rank], life.opened_ns);
    if (!life.is_gone) {
      std::int64_t& first = first_living_ns.try_emplace(life.job, life.opened_ns).first->second;
      first = std::min(first, life.opened_ns);
      std::int64_t& opened_ns = living[rank];
      opened_ns = std::max(opened_ns, life.opened_ns);
    }
    const auto [at, is_new] = latest.try_emplace({life.host, rank}, i);
    if (!is_new && lives[at->second].opened_ns < life.opened_ns) at->second = i;
  }
  std::vector<bool> out;
  for (std::size_t i = 0; i < lives.size(); ++i) {
    const RingLife& life = lives[i];
    const Rank rank{life.job, life.rank};
    const bool is_latest = life.rank < 0 || latest.at({life.host, rank}) == i;
    const auto other = living.find(rank);
    const bool is_replaced =
        life.rank >= 0 &&
        (newest.at(rank) > life.latest_ns ||
         (life.is_gone && other != living.end() && other->second > life.opened_ns));
    const auto first = first_living_ns.find(life.job);
    const bool is_before = life.is_gone && first != first_living_ns.end() &&
                           life.latest_ns < first->second - patience_ns;
    out.push_back(is_latest && !is_replaced && !is_before);
  }
  return out;
}

}  // namespace weft::observe::colltrace
