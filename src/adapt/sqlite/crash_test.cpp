// What a process had acknowledged when it was killed is there afterwards, and nothing in parts.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <thread>

#include "adapt/sqlite/store.hpp"
#include "adapt/sqlite/test_kit.hpp"
#include "base/fd.hpp"
#include "base/rng.hpp"
#include "port/store_contract.hpp"

using namespace weft;
using namespace weft::adapt::sqlite;
using namespace weft::adapt::sqlite::testing;
using port::testing::all;
using port::testing::must;

namespace {

// Batch k, known by its number: lines of many sizes, a document and an audit entry.
port::Commit batch(std::uint64_t k) {
  Rng rng(k);
  port::Commit out;
  const std::uint64_t count = 1 + rng.below(60);
  for (std::uint64_t i = 0; i < count; ++i)
    out.events.push_back(port::testing::event(
        fmt::format("{}:{}/{} {}", k, i, count, std::string(rng.below(4096), 'x'))));
  const auto at = static_cast<std::int64_t>(k);
  out.documents = {{"batch", std::to_string(k), {at}, std::to_string(count)}};
  out.audit = {{0, {at}, "child", fmt::format("batch-{}", k), "made", "{}"}};
  return out;
}

// Commits batches from `k` on, and says the number of each that was acknowledged, until killed.
[[noreturn]] void work(const std::string& path, std::uint64_t k, int acks) {
  auto store = open_sqlite(path);
  if (!store) _exit(1);
  for (;; ++k) {
    if (!(*store)->commit(batch(k))) _exit(2);
    if (write(acks, &k, sizeof k) != sizeof k) _exit(3);
  }
}

// Kills the worker after `life`; the number of the last batch it acknowledged, or `last`.
std::uint64_t live_and_die(const std::string& path, std::uint64_t last,
                           std::chrono::microseconds life) {
  std::array<int, 2> ends{};
  REQUIRE(pipe2(ends.data(), O_CLOEXEC) == 0);
  const Fd read_end(ends[0]);
  Fd write_end(ends[1]);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) work(path, last + 1, write_end.get());
  write_end.reset();
  std::this_thread::sleep_for(life);
  kill(child, SIGKILL);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  for (std::uint64_t k = 0; read(read_end.get(), &k, sizeof k) == sizeof k; last = k) continue;
  return last;
}

struct Progress {
  std::uint64_t batches = 0, events = 0;  // found so far
};

// Every batch after `before` is there whole, in order, up to some number, and nothing of the next.
Progress examine(const std::string& path, Progress before) {
  const auto store = open_store(path);
  const auto events = must(store->events(before.events + 1, all));
  Progress now = before;
  std::size_t at = 0;
  while (at < events.size()) {
    const std::uint64_t k = now.batches + 1;
    const port::Commit wanted = batch(k);
    REQUIRE(at + wanted.events.size() <= events.size());
    for (const port::StoredEvent& event : wanted.events) {
      REQUIRE(events[at].seq == ++now.events);
      REQUIRE((events[at++].line == event.line));
    }
    REQUIRE(must(store->document("batch", std::to_string(k))).body ==
            std::to_string(wanted.events.size()));
    REQUIRE(must(store->audit(0, fmt::format("batch-{}", k), all)).size() == 1);
    now.batches = k;
  }
  REQUIRE_FALSE(store->document("batch", std::to_string(now.batches + 1)).has_value());
  REQUIRE(must(store->audit(0, "", all)).size() == now.batches);
  return now;
}

}  // namespace

TEST_CASE("kill -9 at 100 random moments: what was acknowledged is there, and nothing in parts") {
  const TestFolder folder;
  const std::string path = folder.file("weft.db");
  Rng rng(1);
  Progress progress;
  std::uint64_t unacknowledged = 0;
  for (int round = 0; round < 100; ++round) {
    const std::chrono::microseconds life(rng.below(50'000));
    const std::uint64_t acked = live_and_die(path, progress.batches, life);
    progress = examine(path, progress);
    REQUIRE(progress.batches >= acked);
    unacknowledged += progress.batches - acked;
  }
  MESSAGE(progress.batches << " batches, " << progress.events << " events; " << unacknowledged
                           << " were there whole without having been acknowledged");
  CHECK(progress.batches > 20);  // more on a disk that syncs quickly
  examine(path, {});
}
