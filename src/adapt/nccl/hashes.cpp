// Part of libweft-nccl.so, like plugin.cpp: nothing of the rest of weft, no exceptions.
#include "adapt/nccl/hashes.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL  // so that the plugin needs no library
#include <xxhash.h>

constexpr uint32_t weft_slices_max = 4096;

struct weft_hashes {
  int file;
  uint32_t rank;
  uint64_t run;
  char host[65];
  // A row being made: of each slice its value, then the text.
  uint64_t values[weft_slices_max];
  char line[1400 + 17 * weft_slices_max];
};

namespace {

constexpr char header[] = "step,kind,group,seq,rank,run,place,size,bytes,ns,time,host,hash\n";

uint64_t now_ns(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

bool is_kind(const char* text) {
  constexpr const char* kinds[] = {"input", "compute", "output", "weights"};
  for (const char* kind : kinds)
    if (strcmp(text, kind) == 0) return true;
  return false;
}

bool is_plain(const char* text) {
  if (*text == '\0' || *text == '#') return false;
  for (; *text != '\0'; ++text)
    if (static_cast<unsigned char>(*text) < ' ' || *text == ',' || *text == '"' || *text == '\x7f')
      return false;
  return true;
}

// In one call, so that rows of ranks that share a file do not mix.
int append(int file, const char* text, size_t size) {
  const ssize_t done = write(file, text, size);
  if (done == static_cast<ssize_t>(size)) return 0;
  if (done >= 0) errno = ENOSPC;
  return -1;
}

// The header, if nobody has written it.
int begin_file(int file) {
  struct stat status{};
  if (flock(file, LOCK_EX) != 0) return -1;
  int result = fstat(file, &status);
  if (result == 0 && status.st_size == 0) result = append(file, header, sizeof header - 1);
  const int kept = errno;
  flock(file, LOCK_UN);
  errno = kept;
  return result;
}

}  // namespace

#define WEFT_PUBLIC __attribute__((visibility("default")))

WEFT_PUBLIC uint64_t weft_hash(const void* data, uint64_t bytes) {
  return XXH3_64bits(data, bytes);
}

WEFT_PUBLIC weft_hashes* weft_hashes_open(const char* path, uint32_t rank, uint64_t run) {
  const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) return nullptr;
  auto* out = static_cast<weft_hashes*>(calloc(1, sizeof(weft_hashes)));
  if (out == nullptr || begin_file(file) != 0) {
    const int kept = errno;
    free(out);
    close(file);
    errno = kept;
    return nullptr;
  }
  out->file = file;
  out->rank = rank;
  out->run = run;
  if (gethostname(out->host, sizeof out->host - 1) != 0 || !is_plain(out->host)) out->host[0] = 0;
  return out;
}

WEFT_PUBLIC int weft_hashes_add(weft_hashes* hashes, const char* kind, const char* group,
                                uint64_t step, uint64_t seq, int32_t place, uint32_t size,
                                const void* data, uint64_t bytes, uint32_t slices) {
  const bool has_place = place >= 0;
  if (hashes == nullptr || kind == nullptr || group == nullptr || (data == nullptr && bytes > 0)) {
    errno = EINVAL;
    return -1;
  }
  if (!is_kind(kind) || !is_plain(group) || has_place != (size > 0) ||
      (has_place && static_cast<uint32_t>(place) >= size) || slices == 0 ||
      slices > weft_slices_max || strlen(group) > 1024) {
    errno = EINVAL;
    return -1;
  }
  uint64_t* const values = hashes->values;
  char* const line = hashes->line;
  constexpr size_t room = sizeof hashes->line;
  const uint64_t begin = now_ns(CLOCK_MONOTONIC);
  const auto* at = static_cast<const char*>(data);
  for (uint32_t i = 0; i < slices; ++i) {
    const uint64_t each = bytes / slices;
    values[i] = XXH3_64bits(at, i + 1 == slices ? bytes - each * i : each);
    at += each;
  }
  const uint64_t ns = now_ns(CLOCK_MONOTONIC) - begin;
  char where[32] = ",";
  if (has_place) snprintf(where, sizeof where, "%" PRId32 ",%" PRIu32, place, size);
  int length = snprintf(line, room,
                        "%" PRIu64 ",%s,%s,%" PRIu64 ",%" PRIu32 ",%" PRIu64 ",%s,%" PRIu64
                        ",%" PRIu64 ",%" PRIu64 ",%s,",
                        step, kind, group, seq, hashes->rank, hashes->run, where, bytes, ns,
                        now_ns(CLOCK_REALTIME), hashes->host);
  for (uint32_t i = 0; i < slices; ++i)
    length += snprintf(line + length, room - static_cast<size_t>(length), "%016" PRIx64 "%c",
                       values[i], i + 1 == slices ? '\n' : ':');
  return append(hashes->file, line, static_cast<size_t>(length));
}

WEFT_PUBLIC void weft_hashes_close(weft_hashes* hashes) {
  if (hashes == nullptr) return;
  close(hashes->file);
  free(hashes);
}
