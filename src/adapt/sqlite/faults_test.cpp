// Disks that are full or broken: an error each time, nothing acknowledged lost, and on it goes.
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <set>

#include "adapt/sqlite/store.hpp"
#include "adapt/sqlite/test_kit.hpp"
#include "base/rng.hpp"
#include "base/test_effort.hpp"
#include "port/store_contract.hpp"

using namespace weft;
using namespace weft::adapt::sqlite;
using namespace weft::adapt::sqlite::testing;
using port::testing::all;
using port::testing::lines;
using port::testing::must;

namespace {

// What the disk does. Global, since SQLite reaches it through plain functions.
struct Disk {
  bool is_test = false;  // else the machine's own
  int writes_left = -1;  // then every write fails, for want of room; -1: never
  int syncs_left = -1;   // then every sync fails; -1: never
  std::set<int> dirty;   // descriptors of logs with writes that are not synced
  int sync_count = 0;
};
Disk disk;

bool spend(int& left) {
  if (left == 0) return false;
  if (left > 0) --left;
  return true;
}

bool is_log(int fd) {
  std::array<char, 512> name{};
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t size = readlink(link.c_str(), name.data(), name.size());
  return size > 0 &&
         std::string_view(name.data(), static_cast<std::size_t>(size)).ends_with("-wal");
}

ssize_t write_at(int fd, const void* data, std::size_t size, off_t at) {
  if (!spend(disk.writes_left)) {
    errno = ENOSPC;
    return -1;
  }
  if (is_log(fd)) disk.dirty.insert(fd);
  return pwrite(fd, data, size, at);
}

int sync_data(int fd) {
  if (!spend(disk.syncs_left)) {
    errno = EIO;
    return -1;
  }
  ++disk.sync_count;
  disk.dirty.erase(fd);
  return disk.is_test ? 0 : static_cast<int>(syscall(SYS_fdatasync, fd));
}

// Puts `disk` between SQLite and the system for as long as it lives.
class OnTestDisk {
 public:
  OnTestDisk() {
    disk = {.is_test = true};
    set(reinterpret_cast<sqlite3_syscall_ptr>(write_at));
  }
  ~OnTestDisk() {
    set(nullptr);
    disk = {};
  }
  OnTestDisk(const OnTestDisk&) = delete;
  OnTestDisk& operator=(const OnTestDisk&) = delete;

 private:
  static void set(sqlite3_syscall_ptr call) {
    sqlite3_vfs* const vfs = sqlite3_vfs_find(nullptr);
    for (const char* name : {"pwrite", "pwrite64"})
      REQUIRE(vfs->xSetSystemCall(vfs, name, call) == SQLITE_OK);
  }
};

// Commits until one fails; what was acknowledged is added to `acked`.
Error commit_until_failure(port::Store& store, const port::Commit& commit, std::uint64_t& acked) {
  for (int i = 0; i < 10'000; ++i) {
    const auto done = store.commit(commit);
    if (!done) return done.error();
    acked += commit.events.size();
  }
  FAIL("the disk was never full");
  return {};
}

// All that was acknowledged, in commits of `batch` events, and no more.
void check_holds(port::Store& store, std::uint64_t acked, std::uint64_t batch = 50) {
  const auto events = must(store.events(0, all));
  CHECK(events.size() == acked);
  if (!events.empty()) CHECK(events.back().seq == acked);
  CHECK(must(store.audit(0, "", all)).size() * batch == acked);
}

port::Commit commit_of(std::size_t batch) {
  return {.events = lines(std::string(300, 'x'), batch),
          .documents = {{"case", "1", {1}, "{}"}},
          .audit = {{0, {1}, "weft", "", "did", "{}"}}};
}

port::Commit fifty() { return commit_of(50); }

// The disk is full at the n-th write, for a while.
void fill_at(int n, std::size_t batch) {
  CAPTURE(n);
  const TestFolder folder;
  const std::string path = folder.file("weft.db");
  const port::Commit commit = commit_of(batch);
  auto store = open_store(path);
  std::uint64_t acked = 0;
  disk.writes_left = n;
  const Error error = commit_until_failure(*store, commit, acked);
  CHECK(error.code == Errc::io);
  CHECK(error.text().find("no space left on its disk") != std::string::npos);
  CHECK(error.text().find(path) != std::string::npos);
  CHECK_FALSE(store->commit(commit).has_value());
  check_holds(*store, acked, batch);
  disk.writes_left = -1;
  CHECK(must(store->commit(commit)) == acked + 1);
  store.reset();
  check_holds(*open_store(path), acked + batch, batch);
}

}  // namespace

// The program's own comes before the C library's, also for SQLite.
extern "C" __attribute__((visibility("default"))) int fdatasync(int fd) { return sync_data(fd); }

TEST_CASE("a commit is on the disk, not only written, when it is acknowledged") {
  const TestFolder folder;
  const OnTestDisk on_disk;
  const auto store = open_store(folder.file("weft.db"));
  for (int i = 0; i < 100; ++i) {  // long enough to move the log into the file
    const int before = disk.sync_count;
    must(store->commit(commit_of(i < 30 ? 1 : 1000)));
    REQUIRE(disk.sync_count > before);
    REQUIRE(disk.dirty.empty());
  }
}

TEST_CASE("no room at the n-th write, for every n: nothing acknowledged is lost, and on it goes") {
  const OnTestDisk on_disk;
  const int stride = test_is_quick ? 4 : 1;
  for (int n = 0; n < 100; n += stride) fill_at(n, 50);
  Rng rng(5);  // and about the time when the log is moved into the file
  for (std::uint64_t i = 0; i < test_effort(20); ++i)
    fill_at(7500 + static_cast<int>(rng.below(2500)), 1000);
}

TEST_CASE("no room to make the store") {
  const TestFolder folder;
  const OnTestDisk on_disk;
  const std::string path = folder.file("weft.db");
  for (int n = 0;; ++n) {
    disk.writes_left = n;
    const auto store = open_sqlite(path);
    disk.writes_left = -1;
    if (store) break;
    CHECK(store.error().text().find("no space left on its disk") != std::string::npos);
    REQUIRE(n < 100);
  }
  CHECK(must(open_store(path)->commit(fifty())) == 1);
}

TEST_CASE("a sync that fails is no acknowledgement") {
  const TestFolder folder;
  const OnTestDisk on_disk;
  for (int n = 0; n < 20; ++n) {
    CAPTURE(n);
    const std::string path = folder.file(std::to_string(n));
    auto store = open_store(path);
    std::uint64_t acked = 0;
    disk.syncs_left = n;
    const Error error = commit_until_failure(*store, fifty(), acked);
    CHECK(error.text().find("reading or writing failed (Input/output error)") != std::string::npos);
    CHECK(error.text().find("check the disk") != std::string::npos);
    check_holds(*store, acked);
    disk.syncs_left = -1;
    CHECK(must(store->commit(fifty())) == acked + 1);
    store.reset();
    check_holds(*open_store(path), acked + 50);
  }
}

TEST_CASE("the system's limit on the size of files is a full disk, and can be lifted") {
  const TestFolder folder;
  const std::string path = folder.file("weft.db");
  auto store = open_store(path);
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  const auto on_signal = signal(SIGXFSZ, SIG_IGN);
  const rlimit tight{1 << 20, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &tight) == 0);
  std::uint64_t acked = 0;
  const Error error = commit_until_failure(*store, fifty(), acked);
  const bool second = store->commit(fifty()).has_value();
  REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
  signal(SIGXFSZ, on_signal);
  INFO(error.text());
  CHECK(error.text().find("no space left on its disk (File too large)") != std::string::npos);
  CHECK_FALSE(second);
  CHECK(acked > 1000);
  check_holds(*store, acked);
  CHECK(must(store->commit(fifty())) == acked + 1);
  store.reset();
  check_holds(*open_store(path), acked + 50);
}
