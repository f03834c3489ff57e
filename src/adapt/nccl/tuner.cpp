// The tuner half of libweft-nccl.so: what a table of path health advises, as costs of NCCL's.
//
// All ranks of a communicator must choose alike: ranks that run different algorithms wait for each
// other for ever. So a choice depends on nothing but a table that all ranks have, the job, and what
// NCCL says of the call; not on the host, not on the time, unless the user says that ranks follow
// their hosts' tables (WEFT_NCCL_HEALTH_FOLLOW).
#include "adapt/nccl/tuner.hpp"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "operate/health/layout.hpp"

namespace weft::adapt::nccl {
namespace {

using namespace operate::health::layout;

constexpr const char* live_path = "/dev/shm/weft-health";
constexpr std::int64_t ns_per_s = 1'000'000'000;
constexpr std::int64_t look_every_ns = ns_per_s / 10;

struct Settings {
  char live[4096] = {};  // the host's table, for weft_health_read() and with `follows`
  bool follows = false;
  std::uint64_t job = 0;
  char from[4096] = {};  // for the log
};

struct Tuning {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  Settings settings;
  // The table that counts; all zero: none.
  alignas(8) unsigned char table[slot_bytes] = {};
  bool has_table = false;
  std::int64_t looked_ns = 0;  // monotonic; with `follows`
  std::uint64_t sequence = 0;  // of the file, as it was then
};
Tuning tuning;
pthread_once_t tuning_once = PTHREAD_ONCE_INIT;

struct Locked {
  Locked() { pthread_mutex_lock(&tuning.mutex); }
  ~Locked() { pthread_mutex_unlock(&tuning.mutex); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
};

struct Context {
  std::uint32_t ranks, nodes;
  Log log;
  std::uint64_t told;  // sum of the last advice that was logged
};

std::int64_t time_ns(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return std::int64_t{t.tv_sec} * ns_per_s + t.tv_nsec;
}

template <std::size_t n>
void keep_text(char (&to)[n], const char* from) {
  std::size_t i = 0;
  for (; i + 1 < n && from[i] != 0; ++i) to[i] = from[i];
  to[i] = 0;
}

// Files are read and not mapped: a file that somebody cuts short while it is mapped kills who looks
// at it.
bool read_at(int file, void* to, std::size_t bytes, std::size_t offset) {
  return pread(file, to, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
}

// The newest table of the file into `to`; 0 where there is none. `known`: the sequence that the
// caller has already; then nothing is read, and same is true.
std::size_t read_table(const char* path, unsigned char* to, std::uint64_t& known, bool& same) {
  same = false;
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return 0;
  std::size_t size = 0;
  for (int tries = 0; tries < 3 && size == 0 && !same; ++tries) {
    FileHead head{};
    if (!read_at(file, &head, sizeof head, 0) ||
        memcmp(head.magic, file_magic, sizeof file_magic) != 0 || head.version != version ||
        head.slot_bytes != slot_bytes)
      break;
    if (head.sequence == known) {
      same = true;
      break;
    }
    const std::size_t offset = slot_offset + head.sequence % 2 * slot_bytes;
    if (!read_at(file, to, slot_bytes, offset)) break;
    if (!is_table(to, slot_bytes)) continue;  // overtaken by its writer
    TableHead table{};
    memcpy(&table, to, sizeof table);
    size = table.bytes;
    known = head.sequence;
  }
  close(file);
  return size;
}

TableHead head_of(const unsigned char* table) {
  TableHead head{};
  memcpy(&head, table, sizeof head);
  return head;
}

bool take_table(const unsigned char* bytes, std::size_t size) {
  tuning.has_table = bytes != nullptr && size <= slot_bytes && is_table(bytes, size);
  if (tuning.has_table) memcpy(tuning.table, bytes, head_of(bytes).bytes);
  return tuning.has_table;
}

// Ten times a second at most, under the lock.
void follow() {
  const std::int64_t now = time_ns(CLOCK_MONOTONIC_COARSE);
  if (now - tuning.looked_ns < look_every_ns && tuning.looked_ns != 0) return;
  tuning.looked_ns = now;
  alignas(8) unsigned char bytes[slot_bytes];
  bool same = false;
  const std::size_t size = read_table(tuning.settings.live, bytes, tuning.sequence, same);
  if (!same) take_table(bytes, size);
  if (!same && size == 0) tuning.sequence = 0;
}

void begin() {
  Settings& s = tuning.settings;
  const char* live = secure_getenv("WEFT_NCCL_HEALTH_LIVE");
  keep_text(s.live, live != nullptr && *live != 0 ? live : live_path);
  const char* follows = secure_getenv("WEFT_NCCL_HEALTH_FOLLOW");
  s.follows = follows != nullptr && strcmp(follows, "1") == 0;
  const char* job = secure_getenv("WEFT_NCCL_JOB");
  if (job == nullptr) job = secure_getenv("SLURM_JOB_ID");
  if (job != nullptr) s.job = hash_of(job);
  if (s.follows) {
    keep_text(s.from, s.live);
    return;
  }
  const char* copy = secure_getenv("WEFT_NCCL_HEALTH");
  if (copy == nullptr || *copy == 0) return;
  keep_text(s.from, copy);
  alignas(8) unsigned char bytes[slot_bytes];
  std::uint64_t known = 0;
  bool same = false;
  const std::size_t size = read_table(copy, bytes, known, same);
  if (size > 0) take_table(bytes, size);  // of any age: clocks differ, and what ranks do must not
}

// The first advice for the call that NCCL can follow here.
bool find_advice(const Context& context, int operation, std::size_t bytes, const float* costs,
                 int algorithms, int protocols, Advice& out) {
  const TableHead head = head_of(tuning.table);
  const unsigned char* at =
      tuning.table + sizeof head + head.rails * sizeof(Rail) + head.links * sizeof(Link);
  for (std::uint32_t i = 0; i < head.advice; ++i, at += sizeof(Advice)) {
    memcpy(&out, at, sizeof out);
    if (out.job != tuning.settings.job || out.operation != operation ||
        out.ranks != context.ranks || out.nodes != context.nodes || bytes < out.bytes_from ||
        bytes >= out.bytes_to || out.algorithm >= algorithms)
      continue;
    for (int p = 0; p < protocols; ++p)
      if (costs[out.algorithm * protocols + p] >= 0) return true;
  }
  return false;
}

constexpr float cost_max = 1e30F;  // of what may be preferred: twice as much is still a number
bool is_usable(float cost) { return cost >= 0 && cost < cost_max; }

// The advised protocol where it is possible, else the algorithm's cheapest. Everything else that is
// possible becomes dearer; what is not possible stays so.
bool prefer(const Advice& advice, float* costs, int algorithms, int protocols) {
  float* of = costs + static_cast<std::ptrdiff_t>(advice.algorithm) * protocols;
  int best = advice.protocol < protocols && is_usable(of[advice.protocol]) ? advice.protocol : -1;
  for (int p = 0; p < protocols && (best < 0 || best != advice.protocol); ++p)
    if (is_usable(of[p]) && (best < 0 || of[p] < of[best])) best = p;
  if (best < 0) return false;
  const float least = of[best] > 0.5F ? 2 * of[best] : 1;
  for (int i = 0; i < algorithms * protocols; ++i)
    if (costs + i != of + best && costs[i] >= 0 && costs[i] < least) costs[i] = least;
  return true;
}

void tell(Context& context, const Advice& advice, std::size_t bytes) {
  constexpr int info = 3;
  constexpr unsigned long about_tuning = 0x40;
  const std::uint64_t sum = sum_of(&advice, sizeof advice);
  if (context.log == nullptr || context.told == sum) return;
  context.told = sum;
  context.log(info, about_tuning, __FILE__, __LINE__,
              "weft: operation %d of %zu bytes, %u ranks: algorithm %d, protocol %d, %d channels "
              "(0: all), predicted %.2f of the time",
              advice.operation, bytes, context.ranks, advice.algorithm, advice.protocol,
              advice.channels, advice.share_ppm / 1e6);
}

int choose_for(void* of, int operation, std::size_t bytes, float** costs, int algorithms,
               int protocols, int* channels) {
  constexpr int most = 64;  // of algorithms and of protocols: NCCL has 7 and 3
  auto* context = static_cast<Context*>(of);
  if (context == nullptr || costs == nullptr || algorithms < 1 || algorithms > most ||
      protocols < 1 || protocols > most)
    return success;
  auto* table = reinterpret_cast<float*>(costs);  // as NCCL passes it: the numbers themselves
  Advice advice{};
  {
    const Locked lock;
    if (tuning.settings.follows) follow();
    if (!tuning.has_table) return success;
    if (tuning.settings.follows && !is_fresh(head_of(tuning.table), time_ns(CLOCK_REALTIME_COARSE)))
      return success;
    if (!find_advice(*context, operation, bytes, table, algorithms, protocols, advice))
      return success;
  }
  if (!prefer(advice, table, algorithms, protocols)) return success;
  if (channels != nullptr && advice.channels > 0) *channels = advice.channels;
  tell(*context, advice, bytes);
  return success;
}

int open_context(std::size_t ranks, std::size_t nodes, Log log, void** context) {
  pthread_once(&tuning_once, begin);
  *context = nullptr;
  if (ranks > UINT32_MAX || nodes > UINT32_MAX) return success;
  auto* out = static_cast<Context*>(calloc(1, sizeof(Context)));
  if (out == nullptr) return success;  // no opinion
  out->ranks = static_cast<std::uint32_t>(ranks);
  out->nodes = static_cast<std::uint32_t>(nodes);
  out->log = log;
  *context = out;
  if (log == nullptr) return success;
  constexpr int info = 3;
  constexpr unsigned long about_tuning = 0x40;
  const Locked lock;
  const Settings& s = tuning.settings;
  if (s.follows)
    log(info, about_tuning, __FILE__, __LINE__, "weft: tuned by %s as it changes", s.from);
  else if (tuning.has_table)
    log(info, about_tuning, __FILE__, __LINE__, "weft: tuned by the table %s", s.from);
  else
    log(info, about_tuning, __FILE__, __LINE__, "weft: no table of path health%s%s: not tuned",
        s.from[0] != 0 ? " that is new enough in " : "", s.from);
  return success;
}

int init3(std::size_t ranks, std::size_t nodes, Log log, void** context) {
  return open_context(ranks, nodes, log, context);
}
int init5(void** context, std::uint64_t, std::size_t ranks, std::size_t nodes, Log log, void*,
          void*) {
  return open_context(ranks, nodes, log, context);
}
int choose3(void* context, int operation, std::size_t bytes, int, float** costs, int algorithms,
            int protocols, int* channels) {
  return choose_for(context, operation, bytes, costs, algorithms, protocols, channels);
}
int choose4(void* context, int operation, std::size_t bytes, int, float** costs, int algorithms,
            int protocols, int, int* channels) {
  return choose_for(context, operation, bytes, costs, algorithms, protocols, channels);
}
int close_context(void* context) {
  free(context);
  return success;
}

}  // namespace
}  // namespace weft::adapt::nccl

#define WEFT_EXPORTED extern "C" __attribute__((visibility("default"))) const
// NOLINTBEGIN(readability-identifier-naming): NCCL looks for these names.
WEFT_EXPORTED weft::adapt::nccl::Tuner3 ncclTunerPlugin_v3{
    "weft", weft::adapt::nccl::init3, weft::adapt::nccl::choose3, weft::adapt::nccl::close_context};
WEFT_EXPORTED weft::adapt::nccl::Tuner4 ncclTunerPlugin_v4{
    "weft", weft::adapt::nccl::init3, weft::adapt::nccl::choose4, weft::adapt::nccl::close_context};
WEFT_EXPORTED weft::adapt::nccl::Tuner5 ncclTunerPlugin_v5{
    "weft", weft::adapt::nccl::init5, weft::adapt::nccl::choose4, weft::adapt::nccl::close_context};
// NOLINTEND(readability-identifier-naming)

std::size_t weft_health_read(void* to, std::size_t room) {
  using namespace weft::adapt::nccl;
  pthread_once(&tuning_once, begin);
  alignas(8) unsigned char bytes[slot_bytes];
  std::uint64_t known = 0;
  bool same = false;
  const std::size_t size = read_table(tuning.settings.live, bytes, known, same);
  if (to == nullptr || size == 0 || size > room ||
      !is_fresh(head_of(bytes), time_ns(CLOCK_REALTIME)))
    return 0;
  memcpy(to, bytes, size);
  return size;
}

int weft_health_adopt(const void* table, std::size_t size) {
  using namespace weft::adapt::nccl;
  pthread_once(&tuning_once, begin);
  const Locked lock;
  if (tuning.settings.follows) return 0;  // the user has said so
  return take_table(static_cast<const unsigned char*>(table), size) ? 1 : 0;
}
