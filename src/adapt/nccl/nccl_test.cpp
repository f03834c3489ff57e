#include <dlfcn.h>
#include <doctest/doctest.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iostream>
#include <thread>
#include <type_traits>
#include <vector>

#include "adapt/nccl/hashes.h"
#include "adapt/nccl/profiler.hpp"
#include "base/file.hpp"
#include "base/test_folder.hpp"
#include "base/test_skip.hpp"
#include "observe/colltrace/dissent.hpp"
#include "observe/colltrace/load.hpp"
#include "observe/colltrace/ring.hpp"
#include "observe/colltrace/verdict.hpp"

namespace weft::adapt::nccl {
namespace {

using namespace observe::colltrace;

// Where NCCL's public headers have these fields on 64-bit Linux. Versions 4 to 6 differ in the
// width of the type (1, 8, 8 bytes at 0), in the end of the union and in copy engines.
struct Offset {
  std::size_t ours, documented;
};
constexpr Offset offsets[] = {
    {offsetof(Event, type), 0},
    {offsetof(Event, parent), 8},
    {offsetof(Event, rank), 16},
    {offsetof(Event, collective.seq), 24},
    {offsetof(Event, collective.function), 32},
    {offsetof(Event, collective.count), 56},
    {offsetof(Event, collective.root), 64},
    {offsetof(Event, collective.type), 72},
    {offsetof(Event, collective.channels), 80},
    {offsetof(Event, collective.warps), 81},
    {offsetof(Event, collective.algorithm), 88},
    {offsetof(Event, collective.protocol), 96},
    {offsetof(Event, collective.group), 104},  // = the size of version 4's event
    {offsetof(Event, p2p.function), 24},
    {offsetof(Event, p2p.type), 40},
    {offsetof(Event, p2p.count), 48},
    {offsetof(Event, p2p.peer), 56},
    {offsetof(Event, p2p.channels), 60},
    {offsetof(Event, p2p.group), 64},
    {offsetof(Event, proxy.pid), 24},
    {offsetof(Event, proxy.channel), 28},
    {offsetof(Event, proxy.peer), 32},
    {offsetof(Event, proxy.steps), 36},
    {offsetof(Event, proxy.chunk), 40},
    {offsetof(Event, proxy.is_send), 44},
    {offsetof(Event, step), 24},
    {offsetof(Event, kernel.channel), 24},
    {offsetof(Event, kernel.timer), 32},
    {offsetof(Event, copy_engine.seq), 24},
    {offsetof(Event, copy_engine.count), 56},
    {offsetof(Event, copy_engine.type), 72},
    {offsetof(Event, copy_engine.strategy), 80},
    {offsetof(Event, copy_engine.number), 100},
    {offsetof(Event, copy_engine.stream), 104},
};
static_assert(std::ranges::all_of(offsets, [](Offset o) { return o.ours == o.documented; }));
static_assert(sizeof(Event) == 112 && sizeof(StateArguments) == 8);
static_assert(sizeof(Plugin4) == 48 && sizeof(Plugin5) == 48);

// The plugin in this process, as NCCL holds it.
template <class Plugin>
const Plugin& load(const char* symbol) {
  void* library = ::dlopen(WEFT_NCCL_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  WEFT_CHECK(library != nullptr);
  const auto* plugin = static_cast<const Plugin*>(::dlsym(library, symbol));
  WEFT_CHECK(plugin != nullptr);
  return *plugin;
}

// One communicator, driven in the order that NCCL documents.
struct Driver {
  const Plugin5& plugin = load<Plugin5>("ncclProfiler_v6");
  void* context = nullptr;
  int mask = 0;

  explicit Driver(int rank = 0, std::uint64_t id = 77) {
    WEFT_CHECK(plugin.init(&context, id, &mask, "DP Group 0", 2, 8, rank, nullptr) == success);
  }
  void* begin(Event e) const {
    void* handle = nullptr;
    WEFT_CHECK(plugin.start(context, &handle, &e) == success);
    return handle;
  }
  void* collective(std::uint64_t seq, std::uint8_t channels = 2) const {
    Event e{.type = event_collective};
    e.collective = {.seq = seq,
                    .function = "AllReduce",
                    .count = 1000 + seq,
                    .type = "ncclFloat32",
                    .channels = channels,
                    .algorithm = "RING",
                    .protocol = "LL128"};
    return begin(e);
  }
  void* p2p(int peer) const {
    Event e{.type = event_p2p};
    e.p2p = {.function = "Send", .type = "ncclInt8", .count = 5, .peer = peer, .channels = 1};
    return begin(e);
  }
  void* kernel(void* parent, int channel, std::uint64_t timer) const {
    Event e{.type = event_kernel, .parent = parent};
    e.kernel = {static_cast<std::uint8_t>(channel), timer};
    return begin(e);
  }
  void end_kernel(void* handle, std::uint64_t timer) const {
    const StateArguments a{.kernel_timer = timer};
    plugin.state(handle, kernel_stop, &a);
    plugin.stop(handle);
  }
  void* proxy(void* parent, int pid = ::getpid()) const {
    Event e{.type = event_proxy, .parent = parent};
    e.proxy = {.pid = pid, .channel = 1, .peer = 3, .steps = 4, .chunk = 512, .is_send = 1};
    return begin(e);
  }
  void* step(void* parent, int number) const {
    Event e{.type = event_step, .parent = parent};
    e.step = number;
    return begin(e);
  }
  void state(void* handle, int to, std::size_t bytes) const {
    const StateArguments a{.step_bytes = bytes};
    plugin.state(handle, to, &a);
  }
  void whole(std::uint64_t seq) const {
    void* op = collective(seq);
    plugin.stop(op);
    void* k[2] = {kernel(op, 0, 10), kernel(op, 1, 12)};
    void* p = proxy(op);
    for (int i = 0; i < 4; ++i) {
      void* s = step(p, i);
      for (const int to : {step_send_gpu_wait, step_send_peer_wait, step_send_wait})
        state(s, to, to == step_send_wait ? 100 : 0);
      plugin.stop(s);
    }
    plugin.stop(p);
    for (void* one : k) end_kernel(one, 50);
  }
};

// A process of its own: the plugin has one file for each. It ends when `work` returns, or waits to
// be killed. The parent sees its files afterwards.
enum class End : std::uint8_t { exits, is_killed };
int in_child(const TestFolder& folder, End end, const std::function<void()>& work) {
  int ready[2];
  WEFT_CHECK(::pipe(ready) == 0);
  std::cout.flush();
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::setenv("WEFT_NCCL_DIR", folder.path().c_str(), 1);
    ::setenv("WEFT_NCCL_KEEP", "1", 1);
    ::setenv("RANK", "5", 1);
    work();
    WEFT_CHECK(::write(ready[1], "x", 1) == 1);
    while (end == End::is_killed) ::pause();
    ::exit(0);
  }
  ::close(ready[1]);
  char byte = 0;
  const bool came = ::read(ready[0], &byte, 1) == 1;
  ::close(ready[0]);
  if (end == End::is_killed) ::kill(pid, SIGKILL);
  int status = 0;
  WEFT_CHECK(::waitpid(pid, &status, 0) == pid);
  CHECK(came);
  return status;
}

RingTrace trace_in(const TestFolder& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    const auto content = load_ring(entry.path());
    WEFT_CHECK(content.has_value());
    auto trace = read_ring(*content, entry.path());
    WEFT_CHECK(trace.has_value());
    return *std::move(trace);
  }
  WEFT_CHECK(false);
  return {};
}

using State = RingOperation::State;

TEST_CASE("what was under way when a process was killed can be read") {
  const TestFolder folder;
  const int status = in_child(folder, End::is_killed, [] {
    const Driver d;
    for (std::uint64_t i = 0; i < 10; ++i) d.whole(i);
    void* stuck = d.collective(10);
    d.plugin.stop(stuck);  // enqueued; the GPU works on it
    d.end_kernel(d.kernel(stuck, 0, 100), 120);
    d.kernel(stuck, 1, 101);
    void* p = d.proxy(stuck);
    void* s = d.step(p, 0);
    d.state(s, step_send_gpu_wait, 0);
    d.state(s, step_send_wait, 100);
    d.plugin.stop(d.collective(11));
  });
  CHECK(WIFSIGNALED(status));
  const RingTrace t = trace_in(folder);
  CHECK(t.rank == 5);
  CHECK_FALSE(t.is_finished);
  CHECK(t.dropped + t.stale + t.untraced_events == 0);
  REQUIRE(t.communicators.size() == 1);
  CHECK(t.communicators[0].name == "DP Group 0");
  CHECK(t.communicators[0].id == 77);
  CHECK(t.communicators[0].orders == 12);
  REQUIRE(t.operations.size() == 12);
  for (std::size_t i = 0; i < 12; ++i) {
    const RingOperation& o = t.operations[i];
    CHECK(o.order == i);
    CHECK(o.seq == i);
    CHECK(o.count == 1000 + i);
    CHECK(t.names[o.function] == "AllReduce");
    CHECK(t.names[o.type] == "ncclFloat32");
    CHECK(t.names[o.algorithm] == "RING");
    CHECK(t.names[o.protocol] == "LL128");
    CHECK(o.state == (i < 10 ? State::completed : i == 10 ? State::started : State::enqueued));
    CHECK(o.called_ns > 1'500'000'000'000'000'000);
    CHECK((o.ended_ns >= o.started_ns) == (i != 10));
    CHECK(o.device_ns == (i < 10 ? 40u : 0u));
  }
  CHECK(t.operations[10].channels_open == 2);
  REQUIRE(t.proxies.size() == 11);
  for (std::size_t i = 0; i < 11; ++i) {
    const RingProxy& p = t.proxies[i];
    REQUIRE(p.operation.has_value());
    CHECK(*p.operation == i);
    CHECK(p.peer == 3);
    CHECK(p.is_open == (i == 10));
    CHECK(p.steps_done == (i < 10 ? 4u : 0u));
    CHECK(p.bytes == (i < 10 ? 400u : 100u));
  }
  REQUIRE(t.proxies[10].stuck_in.has_value());
  CHECK(*t.proxies[10].stuck_in == ring::Wait::send);
}

TEST_CASE("version 4: one byte of type, other arguments") {
  const TestFolder folder;
  in_child(folder, End::is_killed, [] {
    const auto& plugin = load<Plugin4>("ncclProfiler_v4");
    void* context = nullptr;
    int mask = 0;
    plugin.init(&context, &mask, "tp", 9, 1, 8, 6, nullptr);
    WEFT_CHECK(mask == (event_collective | event_p2p | event_proxy | event_step | event_kernel));
    Event e{.type = 0xabcdef00u | event_collective};
    e.collective = {.seq = 3,
                    .function = "Broadcast",
                    .count = 8,
                    .root = 2,
                    .type = "ncclInt8",
                    .channels = 1,
                    .algorithm = "TREE",
                    .protocol = "LL"};
    void* handle = nullptr;
    plugin.start(context, &handle, &e);
    WEFT_CHECK(handle != nullptr);
    plugin.stop(handle);
  });
  const RingTrace t = trace_in(folder);
  REQUIRE(t.operations.size() == 1);
  CHECK(t.names[t.operations[0].function] == "Broadcast");
  CHECK(t.operations[0].peer == 2);
  CHECK(t.communicators[0].rank == 6);
  CHECK(t.communicators[0].id == 9);
}

TEST_CASE("a ring that wraps keeps what is open, and counts what it has no room for") {
  const TestFolder folder;
  in_child(folder, End::exits, [] {
    const Driver d;
    void* early = d.p2p(4);  // never ends
    WEFT_CHECK(early != nullptr);
    void* scheduled = d.collective(1);
    d.plugin.stop(scheduled);
    for (std::uint64_t i = 0; i < ring::records_per_ring; ++i) d.whole(i);
    WEFT_CHECK(d.kernel(scheduled, 0, 1) == nullptr);  // its record is somebody else's now
    // Every slot is open now: no more records.
    std::vector<void*> open;
    for (std::uint32_t i = 0; i < ring::records_per_ring; ++i) open.push_back(d.p2p(1));
    WEFT_CHECK(d.p2p(1) == nullptr);
    for (void* one : open)
      if (one != nullptr) d.plugin.stop(one);
    WEFT_CHECK(d.p2p(2) != nullptr);
  });
  const RingTrace t = trace_in(folder);
  CHECK(t.is_finished);
  CHECK(t.stale == 1);
  const auto early = std::ranges::find(t.operations, 4, &RingOperation::peer);
  REQUIRE(early != t.operations.end());
  CHECK(early->order == 0);
  CHECK(early->state == State::enqueued);
  CHECK(t.operations.back().peer == 2);
  CHECK(t.operations.back().order == ring::records_per_ring + 2);
  CHECK(t.dropped >= 1);
  CHECK(t.dropped <= 2);
  CHECK(t.communicators[0].orders == 1 + ring::records_per_ring);
  CHECK(t.communicators[0].sends == 3 + ring::records_per_ring);
}

TEST_CASE("threads: operations begin on one and go on on another") {
  const TestFolder folder;
  constexpr int threads = 4, each = 20'000;
  const int status = in_child(folder, End::exits, [] {
    std::vector<std::thread> pool;
    for (int i = 0; i < threads; ++i)
      pool.emplace_back([i] {
        const Driver d(i, 100);
        for (std::uint64_t n = 0; n < each; n += 100) {
          std::vector<void*> open;
          for (std::uint64_t k = 0; k < 100; ++k) open.push_back(d.collective(n + k, 1));
          for (void* one : open) d.plugin.stop(one);
          std::thread([&] {  // as the network thread does; each takes a ring that is free again
            for (void* one : open) {
              void* kernel = d.kernel(one, 0, 1);
              d.plugin.stop(d.proxy(one));
              d.end_kernel(kernel, 2);
            }
          })
              .join();
        }
        d.plugin.finalize(d.context);
      });
    for (auto& thread : pool) thread.join();
  });
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);  // else what a sanitizer found
  const RingTrace t = trace_in(folder);
  CHECK(t.dropped + t.stale + t.untraced_events == 0);
  REQUIRE(t.communicators.size() == threads);
  std::size_t completed = 0;
  for (const RingOperation& o : t.operations) completed += o.state == State::completed ? 1 : 0;
  CHECK(completed == t.operations.size());
  CHECK(completed > ring::records_per_ring);  // others were overwritten
  for (const RingCommunicator& c : t.communicators) {
    CHECK(c.is_finalized);
    CHECK(c.orders == each);
  }
}

TEST_CASE("work of another process on this host, and a child by fork") {
  const TestFolder folder;
  in_child(folder, End::is_killed, [] {
    const Driver d;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): not an address of ours
    void* elsewhere = reinterpret_cast<void*>(std::uintptr_t{0x5'0000'0000'0080});
    void* p = d.proxy(elsewhere, ::getpid() + 1);
    d.plugin.stop(d.step(p, 0));
    d.plugin.stop(p);
    if (::fork() == 0) {  // writes nothing, and does no harm
      d.whole(1);
      std::thread([&] { d.whole(2); }).join();
      ::_exit(0);
    }
    WEFT_CHECK(::wait(nullptr) > 0);
    d.whole(3);
  });
  const RingTrace t = trace_in(folder);
  REQUIRE(t.operations.size() == 1);
  CHECK(t.operations[0].seq == 3);
  REQUIRE(t.proxies.size() == 2);
  CHECK_FALSE(t.proxies[0].operation.has_value());
}

// The job goes on: no error, no event asked for, and events that come all the same do nothing.
void runs_untraced() {
  const Driver d;
  WEFT_CHECK(d.mask == 0 && d.context == nullptr);
  d.whole(0);
  WEFT_CHECK(d.plugin.stop(nullptr) == success);
  WEFT_CHECK(d.plugin.finalize(nullptr) == success);
}

TEST_CASE("a folder that cannot be written to, or files that must be small") {
  const TestFolder folder;
  const int status = in_child(folder, End::exits, [] {
    ::setenv("WEFT_NCCL_DIR", "/proc/no/such/folder", 1);
    runs_untraced();
  });
  CHECK(status == 0);
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("an end in order leaves no file") {
  const TestFolder folder;
  const int status = in_child(folder, End::exits, [] {
    ::unsetenv("WEFT_NCCL_KEEP");
    const Driver d;
    d.whole(0);
    d.plugin.finalize(d.context);
  });
  CHECK(status == 0);
  CHECK(std::filesystem::is_empty(folder.path()));
}

// Ranks of one job, each a process with two collectives behind it. `join`: whether it comes to the
// third, too.
std::vector<pid_t> start_job(const TestFolder& folder, int ranks,
                             const std::function<bool(int)>& joins) {
  std::vector<pid_t> out;
  std::cout.flush();
  for (int rank = 0; rank < ranks; ++rank) {
    int ready[2];
    WEFT_CHECK(::pipe(ready) == 0);
    out.push_back(::fork());
    if (out.back() == 0) {
      ::setenv("WEFT_NCCL_DIR", folder.path().c_str(), 1);
      ::setenv("RANK", std::to_string(rank).c_str(), 1);
      const Driver d(rank);
      for (std::uint64_t i = 0; i < 2; ++i) d.whole(i);
      if (joins(rank)) {
        void* op = d.collective(2);
        d.plugin.stop(op);
        d.kernel(op, 0, 100);
      }
      WEFT_CHECK(::write(ready[1], "x", 1) == 1);
      while (true) ::pause();
    }
    char byte = 0;
    CHECK(::read(ready[0], &byte, 1) == 1);
    ::close(ready[0]);
    ::close(ready[1]);
  }
  return out;
}

void end_job(const std::vector<pid_t>& pids) {
  for (const pid_t pid : pids) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
}

TEST_CASE("from the plugin to a verdict: stuck, then dead") {
  const TestFolder folder;
  const auto pids = start_job(folder, 8, [](int rank) { return rank != 5; });
  const auto judge = [&] {
    const auto job = load_job({folder.path()});
    WEFT_CHECK(job.has_value());
    CHECK(job->ranks.size() == 8);
    CHECK(job->notes.empty());
    return analyse(*job, {});
  };
  Report report = judge();
  REQUIRE(report.verdicts.size() == 1);
  CHECK(report.verdicts[0].finding == Finding::stuck);
  CHECK(report.verdicts[0].ranks == std::vector<std::uint32_t>{5});
  CHECK(report.verdicts[0].operation == "AllReduce");
  ::kill(pids[5], SIGKILL);
  ::waitpid(pids[5], nullptr, 0);
  report = judge();
  REQUIRE(report.verdicts.size() == 1);
  CHECK(report.verdicts[0].finding == Finding::dead);
  CHECK(report.verdicts[0].ranks == std::vector<std::uint32_t>{5});
  end_job(pids);
}

// A file system of its own, that size, at the folder: gone with the child.
bool mount_small(const std::string& at, const char* size) {
  return ::unshare(CLONE_NEWNS) == 0 &&
         ::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("tmpfs", at.c_str(), "tmpfs", 0, size) == 0;
}

TEST_CASE("hashes: known values, rows that weft reads, and what is refused") {
  void* library = ::dlopen(WEFT_NCCL_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  const auto find = [&]<class F>(std::type_identity<F>, const char* name) {
    return reinterpret_cast<F*>(::dlsym(library, name));
  };
  const auto hash = find(std::type_identity<decltype(weft_hash)>(), "weft_hash");
  const auto open = find(std::type_identity<decltype(weft_hashes_open)>(), "weft_hashes_open");
  const auto add = find(std::type_identity<decltype(weft_hashes_add)>(), "weft_hashes_add");
  const auto close = find(std::type_identity<decltype(weft_hashes_close)>(), "weft_hashes_close");
  CHECK(add(nullptr, "output", "dp", 7, 1, -1, 0, "w", 1, 1) == -1);  // open() failed, say
  // XXH3's published value of no bytes, and what xxhsum -H3 prints of "weft".
  CHECK(hash("", 0) == 0x2d06800538d394c2u);
  CHECK(hash("weft", 4) == 0x15d05235f1304082u);

  const TestFolder folder;
  const std::string path = folder.path() + "/hashes.csv";
  std::vector<char> bytes(1003, 'w');
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    weft_hashes* h = open(path.c_str(), rank, 2);
    REQUIRE(h != nullptr);
    bytes[700] = rank == 1 ? 'v' : 'w';  // in the last of three slices
    const auto place = static_cast<std::int32_t>(rank);
    CHECK(add(h, "output", "dp 0", 7, 1, place, 3, bytes.data(), bytes.size(), 3) == 0);
    CHECK(add(h, "weights", "dp 0", 7, 0, -1, 0, bytes.data(), 600, 1) == 0);
    errno = 0;
    CHECK(add(h, "output", "a,b", 7, 2, -1, 0, bytes.data(), 600, 1) == -1);
    CHECK(errno == EINVAL);
    CHECK(add(h, "outptu", "dp", 7, 2, -1, 0, bytes.data(), 600, 1) == -1);
    CHECK(add(h, "output", "dp", 7, 2, 3, 3, bytes.data(), 600, 1) == -1);
    CHECK(add(h, "output", "dp", 7, 2, -1, 0, bytes.data(), 600, 0) == -1);
    close(h);
  }
  const auto hashes = load_hashes({folder.path()});
  REQUIRE(hashes.has_value());
  REQUIRE(hashes->rows.size() == 6);
  CHECK(hashes->rows[0].run == 2);
  CHECK(hashes->hosts.size() == 3);
  CHECK(hashes->last.ns > 0);
  const auto report = find_dissent(*hashes);
  REQUIRE(report.has_value());
  REQUIRE(report->dissents.size() == 1);
  CHECK(report->dissents[0].ranks == std::vector<std::uint32_t>{1});
  CHECK(open("/nowhere/hashes.csv", 0, 0) == nullptr);
  CHECK(errno == ENOENT);
}

TEST_SUITE("needs root") {
  TEST_CASE("a full file system") {
    if (::geteuid() != 0) return skip_test("needs root to mount a small file system");
    const TestFolder folder;
    CHECK(in_child(folder, End::exits, [&] {
            WEFT_CHECK(mount_small(folder.path(), "size=64k"));
            runs_untraced();
          }) == 0);
    CHECK(in_child(folder, End::exits, [&] {  // room for the ring of one thread
            WEFT_CHECK(mount_small(folder.path(), "size=3m"));
            const Driver d;
            d.whole(0);
            std::thread([&] { d.whole(1); }).join();  // its own is there, and free again
            std::thread other([&] { d.whole(2); });
            d.whole(3);
            other.join();
            const RingTrace t = trace_in(folder);
            WEFT_CHECK(t.untraced_threads == 2 && t.untraced_events == 4);
            WEFT_CHECK(t.operations.size() == 2);
          }) == 0);
  }
}

}  // namespace
}  // namespace weft::adapt::nccl
