// libweft-nccl.so. Runs inside a training job: whatever goes wrong here, the job goes on untraced.
// A callback takes no lock, makes no system call and no atomic read-modify-write; only the first
// one of a thread opens that thread's ring. Records and their fields:
// observe/colltrace/ring_layout.hpp.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#ifdef __x86_64__
#include <cpuid.h>
#include <x86intrin.h>
#endif

#include <atomic>

#include "adapt/nccl/profiler.hpp"
#include "observe/colltrace/ring_layout.hpp"

namespace weft::adapt::nccl {
namespace {

using namespace observe::colltrace::ring;

constexpr std::uint64_t events_of_all =
    event_collective | event_p2p | event_proxy | event_step | event_kernel;

// A handle is the address of a record, with its generation above bit 48 and in the low seven bits
// what of the record it stands for: stops and states need no look-up, and one that comes after its
// record was reused is known by its generation.
constexpr std::uintptr_t low_bits = 127, is_proxy = 8, is_step = 16, is_kernel = 64;
constexpr std::uintptr_t address_bits = (std::uintptr_t{1} << 48) - 1 - low_bits;
constexpr std::uint32_t open_slots_skipped_max = 8;
constexpr std::uint64_t slots_per_clock_pair = 1024;

template <class T>
T get(const T& place, std::memory_order order = std::memory_order_relaxed) {
  return __atomic_load_n(&place, static_cast<int>(order));
}
template <class T>
void set(T& place, T value, std::memory_order order = std::memory_order_relaxed) {
  __atomic_store_n(&place, value, static_cast<int>(order));
}
// Not one step: for counters that one thread writes and others read.
template <class T>
void add(T& place, T value) {
  set(place, static_cast<T>(get(place) + value));
}

enum class Mode : std::uint8_t { off, by_counter, by_system };  // off: nothing is written

struct Process {
  Mode mode = Mode::off;
  char* map = nullptr;
  int file = -1;
  pid_t pid = 0;
  bool has_counter = false;
  pthread_key_t at_thread_end{};
  char path[256] = {};
  char reason[320] = {};  // why there is no map
};
Process process;
pthread_once_t process_once = PTHREAD_ONCE_INIT;

// A name and its index, found by the address of the text: NCCL passes constants of its own.
struct KnownName {
  const char* text;
  char first;
  std::uint8_t index;
};
constexpr std::size_t known_names = 64;
KnownName names_by_ring[rings_max][known_names];

struct Thread {
  RingHead* ring;
  Record* records;
  std::uint64_t head;
  KnownName* names;
  bool refused;
};
// Within the static block of thread-local storage, found by one instruction. That block has little
// room for libraries that are loaded late.
__attribute__((tls_model("initial-exec"))) thread_local Thread self{};

ProcessHead& head_of_file() { return *reinterpret_cast<ProcessHead*>(process.map); }

std::uint64_t clock_ns(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(t.tv_nsec);
}

// With the counter it calls nothing, which spares the callbacks that read it their stack frame.
template <bool by_counter>
inline std::uint64_t read_clock() {
#if defined(__x86_64__)
  if constexpr (by_counter) return __rdtsc();
#elif defined(__aarch64__)
  if constexpr (by_counter) {
    std::uint64_t value;
    asm volatile("mrs %0, cntvct_el0" : "=r"(value));
    return value;
  }
#endif
  return clock_ns(CLOCK_MONOTONIC);
}

std::uint64_t ticks() { return process.has_counter ? read_clock<true>() : read_clock<false>(); }

// A counter that runs at one rate on all cores, through sleep states and changes of frequency.
bool has_steady_counter() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0;
#elif defined(__aarch64__)
  return true;
#else
  return false;
#endif
}

int rank_by_launcher() {
  for (const char* name : {"RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"})
    if (const char* text = secure_getenv(name)) {
      char* end = nullptr;
      const long value = strtol(text, &end, 10);
      if (end != text && *end == 0 && value >= 0 && value < (1 << 30))
        return static_cast<int>(value);
    }
  return -1;
}

void copy_text(char* to, std::size_t room, const char* from) {
  std::size_t n = 0;
  for (; from != nullptr && n + 1 < room && from[n] != 0; ++n) to[n] = from[n];
  to[n] = 0;
}

void read_boot_id(char* to, std::size_t room) {
  const int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  const ssize_t n = read(file, to, room - 1);
  for (ssize_t i = 0; i < n; ++i)
    if (to[i] == '\n') to[i] = 0;
  close(file);
}

// A name that no file has: process ids recur, and containers share /dev/shm.
int create_file(const char* folder) {
  for (int i = 0; i < 1000; ++i) {
    snprintf(process.path, sizeof process.path, "%s/weft-nccl-%d-%d.ring", folder, process.pid, i);
    const int file = open(process.path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file >= 0 || errno != EEXIST) return file;
  }
  return -1;
}

void give_up(const char* what, int error) {
  snprintf(process.reason, sizeof process.reason, "%s %.200s: %.80s", what, process.path,
           strerror(error));
  if (process.file >= 0) {
    unlink(process.path);
    close(process.file);
    process.file = -1;
  }
}

// Its own child after fork() would write into the parent's rings: it writes nowhere.
void after_fork() {
  self = Thread{.refused = true};
  process.mode = Mode::off;
  process.map = nullptr;
}

void end_of_thread(void* ring) {
  if (process.map != nullptr)
    set(static_cast<RingHead*>(ring)->owner, 0u, std::memory_order_release);
}

void open_process() {
  process.pid = getpid();
  process.has_counter = has_steady_counter();
  const char* folder = secure_getenv("WEFT_NCCL_DIR");
  process.file = create_file(folder != nullptr && *folder != 0 ? folder : "/dev/shm");
  if (process.file < 0) return give_up("cannot create", errno);
  rlimit limit{};  // beyond it, growing a file is a signal that ends the process
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < file_bytes)
    return give_up("no room for", EFBIG);
  if (ftruncate(process.file, static_cast<off_t>(file_bytes)) != 0)
    return give_up("cannot size", errno);
  // Room is claimed before it is written to: a store into a full file system is SIGBUS.
  if (const int error = posix_fallocate(process.file, 0, static_cast<off_t>(ring_offset)))
    return give_up("no room for", error);
  void* map = mmap(nullptr, file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, process.file, 0);
  if (map == MAP_FAILED) return give_up("cannot map", errno);
  if (pthread_key_create(&process.at_thread_end, end_of_thread) != 0 ||
      pthread_atfork(nullptr, nullptr, after_fork) != 0) {
    munmap(map, file_bytes);
    return give_up("no thread key for", EAGAIN);
  }
  process.map = static_cast<char*>(map);
  process.mode = process.has_counter ? Mode::by_counter : Mode::by_system;
  ProcessHead& head = head_of_file();
  head.version = layout_version;
  head.clock = process.has_counter ? ClockKind::cpu_counter : ClockKind::monotonic_ns;
  head.pid = process.pid;
  head.rank = rank_by_launcher();
  head.base = reinterpret_cast<std::uint64_t>(map);
  head.opened = {ticks(), clock_ns(CLOCK_REALTIME)};
  struct stat pid_namespace{};
  if (stat("/proc/self/ns/pid", &pid_namespace) == 0) head.pid_namespace = pid_namespace.st_ino;
  gethostname(head.host, sizeof head.host - 1);
  read_boot_id(head.boot_id, sizeof head.boot_id);
  const char* job = secure_getenv("WEFT_NCCL_JOB");
  copy_text(head.job, sizeof head.job, job != nullptr ? job : secure_getenv("SLURM_JOB_ID"));
  std::atomic_thread_fence(std::memory_order_release);
  memcpy(head.magic, magic, sizeof magic);
}

// All communicators finalized: nothing is left to look at. Otherwise the file stays.
__attribute__((destructor)) void end_of_process() {
  if (process.map == nullptr || getpid() != process.pid) return;
  ProcessHead& head = head_of_file();
  set(head.finished_ns, clock_ns(CLOCK_REALTIME));
  const auto* table = reinterpret_cast<const Communicator*>(process.map + comm_offset);
  const std::uint32_t count = get(head.communicators);
  for (std::uint32_t i = 0; i < count && i < communicators_max; ++i)
    if (get(table[i].state) != 2) return;
  if (secure_getenv("WEFT_NCCL_KEEP") == nullptr) unlink(process.path);
}

RingHead* ring_at(std::uint32_t i) {
  return reinterpret_cast<RingHead*>(process.map + ring_offset + i * ring_stride);
}

// A ring whose thread has ended, or the next new one. Once for each thread.
RingHead* claim_ring() {
  const auto tid = static_cast<std::uint32_t>(syscall(SYS_gettid));
  ProcessHead& head = head_of_file();
  const std::uint32_t taken = get(head.rings);
  for (std::uint32_t i = 0; i < taken && i < rings_max; ++i) {
    std::uint32_t free = 0;
    if (get(ring_at(i)->pair_count, std::memory_order_acquire) > 0 &&
        __atomic_compare_exchange_n(&ring_at(i)->owner, &free, tid, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED))
      return ring_at(i);
  }
  const std::uint32_t i = __atomic_fetch_add(&head.rings, 1u, __ATOMIC_ACQ_REL);
  if (i >= rings_max) return nullptr;
  const auto at = static_cast<off_t>(ring_offset + i * ring_stride);
  if (posix_fallocate(process.file, at, static_cast<off_t>(ring_stride)) != 0) return nullptr;
  // Brings its pages in now, not in the middle of a step. They are zero already.
  memset(reinterpret_cast<char*>(ring_at(i)) + page, 0, ring_stride - page);
  set(ring_at(i)->owner, tid);
  return ring_at(i);
}

void renew_clock_pair(RingHead& ring) {
  const std::uint32_t n = get(ring.pair_count);
  ring.pairs[n % 2] = {ticks(), clock_ns(CLOCK_REALTIME)};
  set(ring.pair_count, n + 1, std::memory_order_release);
}

__attribute__((noinline)) bool open_ring() {
  if (process.map == nullptr) return false;
  RingHead* ring = self.refused ? nullptr : claim_ring();
  if (ring == nullptr || pthread_setspecific(process.at_thread_end, ring) != 0) {
    if (!self.refused) __atomic_fetch_add(&head_of_file().untraced_threads, 1u, __ATOMIC_RELAXED);
    self.refused = true;
    __atomic_fetch_add(&head_of_file().untraced_events, std::uint64_t{1}, __ATOMIC_RELAXED);
    return false;
  }
  renew_clock_pair(*ring);
  char* at = reinterpret_cast<char*>(ring);
  const auto i = (static_cast<std::size_t>(at - process.map) - ring_offset) / ring_stride;
  self = {ring, reinterpret_cast<Record*>(at + page), get(ring->head), names_by_ring[i], false};
  return true;
}

std::uintptr_t generation(std::uint32_t serial) {
  return static_cast<std::uintptr_t>((serial - 1) >> records_per_ring_log2 & 0xffff) << 48;
}

// A record to write: the next one that is not open. None, and counted: eight in a row are.
inline Record* take(std::uint32_t& serial) {
  if (self.ring == nullptr && !open_ring()) [[unlikely]]
    return nullptr;
  for (std::uint32_t i = 0; i < open_slots_skipped_max; ++i) {
    Record& r = self.records[self.head & (records_per_ring - 1)];
    serial = static_cast<std::uint32_t>(++self.head);
    if (self.head % slots_per_clock_pair == 0) [[unlikely]]
      renew_clock_pair(*self.ring);
    if (serial == 0 || get(r.host_open, std::memory_order_acquire) != 0 ||
        get(r.device_open, std::memory_order_acquire) != 0) [[unlikely]]
      continue;
    const char* next =
        reinterpret_cast<const char*>(&self.records[(self.head + 1) & (records_per_ring - 1)]);
    __builtin_prefetch(next, 1);
    __builtin_prefetch(next + 64, 1);
    set(r.serial, 0u);
    std::atomic_thread_fence(std::memory_order_release);
    return &r;
  }
  set(self.ring->head, self.head, std::memory_order_release);
  add(self.ring->dropped, std::uint64_t{1});
  return nullptr;
}

// Handles are addresses with the generation above and the kind of event below: NCCL keeps a pointer
// for each event and nothing more.
inline void* to_handle(std::uintptr_t bits) {
  return reinterpret_cast<void*>(bits);  // NOLINT(performance-no-int-to-ptr)
}

// The record is whole: readers may take it, and handles to it are valid.
inline void* publish(Record& r, std::uint32_t serial, std::uintptr_t what) {
  set(r.serial, serial, std::memory_order_release);
  set(self.ring->head, self.head, std::memory_order_release);
  return to_handle(reinterpret_cast<std::uintptr_t>(&r) | generation(serial) | what);
}

inline Record* record_of(std::uintptr_t handle) {
  auto* r = static_cast<Record*>(to_handle(handle & address_bits));
  // generation(serial), compared where the serial has it
  constexpr std::uint32_t bits = 0xffffu << records_per_ring_log2;
  const auto expected = static_cast<std::uint32_t>(handle >> (48 - records_per_ring_log2));
  if ((((get(r->serial, std::memory_order_acquire) - 1) ^ expected) & bits) != 0) [[unlikely]] {
    if (self.ring != nullptr) add(self.ring->stale, std::uint64_t{1});
    return nullptr;
  }
  return r;
}

// Index of a text in the table of names; two threads that come at once may enter it twice.
std::uint8_t name_index(const char* text) {
  auto* table = reinterpret_cast<Name*>(process.map + name_offset);
  if (text == nullptr) text = "?";
  char cut[sizeof table->text];
  copy_text(cut, sizeof cut, text);
  const std::uint32_t known = get(head_of_file().names, std::memory_order_acquire);
  for (std::uint32_t i = 0; i < known && i < names_max; ++i)
    if (get(table[i].is_set, std::memory_order_acquire) != 0 && strcmp(table[i].text, cut) == 0)
      return static_cast<std::uint8_t>(i);
  const std::uint32_t i = __atomic_fetch_add(&head_of_file().names, 1u, __ATOMIC_ACQ_REL);
  if (i >= names_max) return 255;
  memcpy(table[i].text, cut, sizeof cut);
  set(table[i].is_set, 1u, std::memory_order_release);
  return static_cast<std::uint8_t>(i);
}

inline std::uint8_t name_by_address(const char* text) {
  constexpr unsigned shift = 64 - 6;
  static_assert(known_names == 1u << 6);
  KnownName& k = self.names[reinterpret_cast<std::uintptr_t>(text) * 0x9e3779b97f4a7c15u >> shift];
  if (k.text == text && text != nullptr && k.first == *text) [[likely]]
    return k.index;
  k = {text, text != nullptr ? *text : '\0', name_index(text)};
  return k.index;
}

Communicator* communicator_of(void* context) { return static_cast<Communicator*>(context); }

std::uint16_t index_of(const Communicator* c) {
  const auto* table = reinterpret_cast<const Communicator*>(process.map + comm_offset);
  return static_cast<std::uint16_t>(c - table);
}

void* start_operation(Communicator* comm, Kind kind, const Event& e) {
  std::uint64_t& next = kind == Kind::p2p ? comm->sends : comm->orders;
  const std::uint64_t order = get(next);
  set(next, order + 1);
  std::uint32_t serial = 0;
  Record* r = take(serial);
  if (r == nullptr) return nullptr;
  r->kind = kind;
  r->begin = ticks();
  r->parent = 0;
  Operation& o = r->operation;
  o = Operation{.communicator = index_of(comm), .order = order};
  if (kind == Kind::p2p) {
    o.channels = e.p2p.channels;
    o.peer = e.p2p.peer;
    o.count = e.p2p.count;
    o.function = name_by_address(e.p2p.function);
    o.type = name_by_address(e.p2p.type);
    o.algorithm = o.protocol = name_by_address("");
  } else {  // what stands before the number of channels is the same for the copy engine
    o.peer = e.collective.root;
    o.seq = e.collective.seq;
    o.count = e.collective.count;
    o.function = name_by_address(e.collective.function);
    o.type = name_by_address(e.collective.type);
    const bool is_kernel_run = kind == Kind::collective;
    o.channels = is_kernel_run ? e.collective.channels : 0;
    o.warps = is_kernel_run ? e.collective.warps : 0;
    o.algorithm = name_by_address(is_kernel_run ? e.collective.algorithm : e.copy_engine.strategy);
    o.protocol = name_by_address(is_kernel_run ? e.collective.protocol : "");
  }
  set(r->host_open, std::uint8_t{1});
  return publish(*r, serial, 0);
}

void* start_proxy(const Communicator* comm, const Event& e) {
  std::uint32_t serial = 0;
  Record* r = take(serial);
  if (r == nullptr) return nullptr;
  r->kind = Kind::proxy;
  r->begin = ticks();
  r->proxy = Proxy{.peer = e.proxy.peer,
                   .chunk = static_cast<std::uint32_t>(e.proxy.chunk),
                   .channel = e.proxy.channel,
                   .is_send = static_cast<std::uint8_t>(e.proxy.is_send != 0),
                   .communicator = index_of(comm),
                   .steps = static_cast<std::uint32_t>(e.proxy.steps),
                   .pid = e.proxy.pid};
  // An operation of another process on this host, which sends through our card: its handle is an
  // address there.
  const auto parent = reinterpret_cast<std::uintptr_t>(e.parent);
  r->parent = e.proxy.pid == process.pid ? parent : 0;
  if (r->parent != 0)
    if (Record* operation = record_of(parent)) add(operation->operation.proxies_begun, 1u);
  set(r->host_open, std::uint8_t{1});
  return publish(*r, serial, is_proxy);
}

// A channel's part of the kernel has begun. No record: a bit in that of the operation.
void* start_kernel(const Event& e) {
  const auto parent = reinterpret_cast<std::uintptr_t>(e.parent);
  if (parent == 0 || e.kernel.channel > 63) return nullptr;
  Record* r = record_of(parent);
  if (r == nullptr) return nullptr;
  Operation& o = r->operation;
  if (get(o.begun) == 0) {
    set(o.seen_begin, ticks());
    set(o.device_begin, e.kernel.timer);
  }
  set(o.begun, get(o.begun) | std::uint64_t{1} << e.kernel.channel);
  set(r->device_open, std::uint8_t{1});
  return to_handle((parent & ~low_bits) | is_kernel | e.kernel.channel);
}

template <bool by_counter>
inline void stop_kernel(Record& r, std::uintptr_t handle) {
  Operation& o = r.operation;
  const std::uint64_t ended = get(o.ended) | std::uint64_t{1} << (handle & 63);
  set(o.ended, ended);
  if (ended == get(o.begun) && __builtin_popcountll(ended) >= o.channels) {
    set(o.seen_end, read_clock<by_counter>());
    set(r.device_open, std::uint8_t{0}, std::memory_order_release);
  }
}

template <bool by_counter>
inline std::uint32_t since(const Record& r) {
  const std::uint64_t t = (read_clock<by_counter>() - r.begin) >> wait_shift;
  return t < 0xffffffff ? static_cast<std::uint32_t>(t) : 0xffffffff;
}

// Ends the wait that the cell is in, at that time.
inline void leave(Proxy& p, std::size_t cell, std::uint32_t t) {
  if (p.state[cell] != 0) p.wait[(p.state[cell] - 1) & 3] += t - p.last[cell];
}

template <int version>
int start(void* context, void** handle, const Event* event) {
  *handle = nullptr;
  Communicator* comm = communicator_of(context);
  if (comm == nullptr || process.mode == Mode::off) [[unlikely]]
    return success;
  const Event& e = *event;
  switch (version == 4 ? e.type & 0xff : e.type) {
    case event_step: {
      const auto parent = reinterpret_cast<std::uintptr_t>(e.parent);
      if (parent == 0) break;
      // No record and no clock: the first state comes at once. Eight steps are under way at most.
      const auto cell = static_cast<std::uintptr_t>(e.step) & 7;
      Record* r = record_of(parent);
      if (r == nullptr) break;
      r->proxy.state[cell] = 0;
      *handle = to_handle((parent & ~low_bits) | is_step | cell);
      break;
    }
    case event_proxy:
      *handle = start_proxy(comm, e);
      break;
    case event_kernel:
      *handle = start_kernel(e);
      break;
    case event_collective:
      *handle = start_operation(comm, Kind::collective, e);
      break;
    case event_p2p:
      *handle = start_operation(comm, Kind::p2p, e);
      break;
    case event_copy_engine:
      if (version >= 6) *handle = start_operation(comm, Kind::copy_engine, e);
      break;
    default:
      break;
  }
  return success;
}

template <bool by_counter>
int stop_by(std::uintptr_t handle) {
  Record* r = record_of(handle);
  if (r == nullptr) return success;
  if ((handle & is_kernel) != 0) {
    stop_kernel<by_counter>(*r, handle);
  } else if ((handle & is_step) != 0) {
    Proxy& p = r->proxy;
    const std::uint32_t t = since<by_counter>(*r);
    leave(p, handle & 7, t);
    p.state[handle & 7] = 0;
    p.end = t;
    ++p.steps_done;
  } else if ((handle & is_proxy) != 0) {  // it ended with its last step, if it had any
    if (r->proxy.steps_done == 0) r->proxy.end = since<by_counter>(*r);
    if (r->parent != 0)
      if (Record* operation = record_of(r->parent)) add(operation->operation.proxies_ended, 1u);
    set(r->host_open, std::uint8_t{0}, std::memory_order_release);
  } else {
    set(r->operation.enqueued, read_clock<by_counter>());
    set(r->host_open, std::uint8_t{0}, std::memory_order_release);
  }
  return success;
}

int stop(void* of) {
  const auto handle = reinterpret_cast<std::uintptr_t>(of);
  if (handle == 0 || process.mode == Mode::off) [[unlikely]]
    return success;
  return process.mode == Mode::by_counter ? stop_by<true>(handle) : stop_by<false>(handle);
}

// 1 + the Wait that a step is in from that state on; 0: none.
constexpr std::uint8_t wait_of(int state) {
  switch (state) {
    case step_send_gpu_wait:
    case step_receive_gpu_wait:
      return 1 + static_cast<std::uint8_t>(Wait::gpu);
    case step_send_wait:
      return 1 + static_cast<std::uint8_t>(Wait::send);
    case step_receive_wait:
      return 1 + static_cast<std::uint8_t>(Wait::receive);
    case step_flush_wait:
    case step_send_peer_wait:
      return 1 + static_cast<std::uint8_t>(Wait::peer_or_flush);
    default:
      return 0;
  }
}
struct Waits {
  std::uint8_t of[32];
};
constexpr Waits waits = [] {
  Waits out{};
  for (int state = 0; state < 32; ++state) out.of[state] = wait_of(state);
  return out;
}();

template <bool by_counter>
int state_by(std::uintptr_t handle, int new_state, const StateArguments* arguments) {
  Record* r = record_of(handle);
  if (r == nullptr) return success;
  if ((handle & is_kernel) != 0) {
    if (arguments != nullptr && new_state == kernel_stop)
      set(r->operation.device_end, arguments->kernel_timer);
    return success;
  }
  const std::uint8_t wait = waits.of[new_state & 31];
  if (wait == 0 || new_state > 31) return success;
  Proxy& p = r->proxy;
  const std::size_t cell = handle & 7;
  const std::uint32_t t = since<by_counter>(*r);
  leave(p, cell, t);
  p.last[cell] = t;
  p.state[cell] = wait;
  const bool has_bytes = new_state == step_send_wait || new_state == step_flush_wait;
  if (has_bytes && arguments != nullptr) p.bytes += arguments->step_bytes;
  return success;
}

int state(void* of, int new_state, const StateArguments* arguments) {
  const auto handle = reinterpret_cast<std::uintptr_t>(of);
  if ((handle & (is_step | is_kernel)) == 0 || process.mode == Mode::off) return success;
  return process.mode == Mode::by_counter ? state_by<true>(handle, new_state, arguments)
                                          : state_by<false>(handle, new_state, arguments);
}

int finalize(void* context) {
  if (Communicator* comm = communicator_of(context); comm != nullptr && process.map != nullptr) {
    comm->closed_ticks = ticks();
    set(comm->state, 2u, std::memory_order_release);
  }
  return success;
}

// A communicator that cannot be traced has no events; its job runs as without the plugin.
int open_communicator(void** context, int* mask, std::uint64_t events, std::uint64_t id,
                      const char* name, int nodes, int ranks, int rank, Log log) {
  constexpr int warn = 2, info = 3;
  constexpr unsigned long any = ~0ul;
  *context = nullptr;
  *mask = 0;
  pthread_once(&process_once, open_process);
  if (process.map == nullptr) {
    if (log != nullptr)
      log(warn, any, __FILE__, __LINE__, "weft: not traced: %s; WEFT_NCCL_DIR names another folder",
          process.reason);
    return success;
  }
  ProcessHead& head = head_of_file();
  const std::uint32_t i = __atomic_fetch_add(&head.communicators, 1u, __ATOMIC_ACQ_REL);
  if (i >= communicators_max) {
    if (log != nullptr)
      log(warn, any, __FILE__, __LINE__, "weft: not traced: more than %u communicators",
          communicators_max);
    return success;
  }
  auto& comm = reinterpret_cast<Communicator*>(process.map + comm_offset)[i];
  comm.id = id;
  comm.rank = rank;
  comm.rank_count = ranks;
  comm.node_count = nodes;
  comm.opened_ticks = ticks();
  copy_text(comm.name, sizeof comm.name, name);
  set(comm.state, 1u, std::memory_order_release);
  if (log != nullptr && i == 0)
    log(info, any, __FILE__, __LINE__, "weft: traced in %s", process.path);
  *context = &comm;
  *mask = static_cast<int>(events);
  return success;
}

int init4(void** context, int* mask, const char* name, std::uint64_t id, int nodes, int ranks,
          int rank, Log log) {
  return open_communicator(context, mask, events_of_all, id, name, nodes, ranks, rank, log);
}
int init5(void** context, std::uint64_t id, int* mask, const char* name, int nodes, int ranks,
          int rank, Log log) {
  return open_communicator(context, mask, events_of_all, id, name, nodes, ranks, rank, log);
}
int init6(void** context, std::uint64_t id, int* mask, const char* name, int nodes, int ranks,
          int rank, Log log) {
  return open_communicator(context, mask, events_of_all | event_copy_engine, id, name, nodes, ranks,
                           rank, log);
}

}  // namespace
}  // namespace weft::adapt::nccl

// NOLINTBEGIN(readability-identifier-naming): NCCL looks for these names.
#define WEFT_EXPORTED extern "C" __attribute__((visibility("default"))) const
WEFT_EXPORTED weft::adapt::nccl::Plugin4 ncclProfiler_v4{"weft",
                                                         weft::adapt::nccl::init4,
                                                         weft::adapt::nccl::start<4>,
                                                         weft::adapt::nccl::stop,
                                                         weft::adapt::nccl::state,
                                                         weft::adapt::nccl::finalize};
WEFT_EXPORTED weft::adapt::nccl::Plugin5 ncclProfiler_v5{"weft",
                                                         weft::adapt::nccl::init5,
                                                         weft::adapt::nccl::start<5>,
                                                         weft::adapt::nccl::stop,
                                                         weft::adapt::nccl::state,
                                                         weft::adapt::nccl::finalize};
WEFT_EXPORTED weft::adapt::nccl::Plugin5 ncclProfiler_v6{"weft",
                                                         weft::adapt::nccl::init6,
                                                         weft::adapt::nccl::start<6>,
                                                         weft::adapt::nccl::stop,
                                                         weft::adapt::nccl::state,
                                                         weft::adapt::nccl::finalize};
// NOLINTEND(readability-identifier-naming)
