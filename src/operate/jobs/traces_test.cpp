#include "operate/jobs/traces.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <ctime>
#include <filesystem>
#include <optional>
#include <thread>

#include "base/file.hpp"
#include "base/test_folder.hpp"
#include "model/formats/test_fabric.hpp"
#include "observe/colltrace/load.hpp"
#include "observe/colltrace/test_rings.hpp"
#include "observe/colltrace/verdict.hpp"

namespace weft::operate::jobs {
namespace {

namespace fs = std::filesystem;
using observe::colltrace::test::RingJob;

constexpr std::int64_t day_ns = 1'800'000'000 * ns_per_s;

Timestamp after(std::int64_t seconds) { return {day_ns + seconds * ns_per_s}; }

std::string packed_ring(std::uint32_t rank, int operations = 3) {
  return *gzip(RingJob{.operations = operations, .end_ns = day_ns}.file(rank));
}

TEST_CASE("traces: the latest of each process is kept, within bounds, and over a restart") {
  const TestFolder disk;
  const std::string one = packed_ring(0), other = packed_ring(1, 20);
  TraceLimits limits{.keep_ns = 60 * ns_per_s};
  limits.bytes_max = one.size() + 2 * other.size();
  auto folder = *TraceFolder::open(disk.path() + "/traces", limits);
  const auto put = [&](const char* job, const char* host, const char* name,
                       const std::string& packed,
                       std::int64_t at) { return folder->put(job, host, name, packed, after(at)); };
  CHECK(put("ml/train", "host0", "a.ring", one, 0).has_value());
  CHECK(put("ml/train", "host0", "a.ring", other, 10).has_value());  // in its place
  CHECK(put("..", "host1", "a.ring", one, 20).has_value());
  auto jobs = folder->jobs();
  REQUIRE(jobs.size() == 2);
  CHECK(jobs[0].job == "..");
  CHECK(jobs[1].job == "ml/train");
  CHECK(jobs[1].processes == 1);
  CHECK(jobs[1].bytes == other.size());
  CHECK(jobs[1].newest == after(10));
  CHECK(std::filesystem::exists(disk.path() + "/traces/ml%2Ftrain/host0+a.ring.gz"));
  CHECK(std::filesystem::exists(disk.path() + "/traces/%2E./host1+a.ring.gz"));
  CHECK(TraceFolder::host_of("traces/ml%2Ftrain/host0+a.ring.gz") == "host0");

  CHECK(put("..", "host2", "a.ring", other, 20).has_value());
  const auto full = put("..", "host3", "a.ring", one, 20);
  REQUIRE_FALSE(full.has_value());
  CHECK(full.error().code == Errc::io);
  CHECK(full.error().what.find(std::to_string(limits.bytes_max) + " bytes") != std::string::npos);

  limits.bytes_max = one.size();
  auto small = *TraceFolder::open(disk.path() + "/small", limits);
  CHECK(small->put("j", "h", "a.ring", one, after(0)).has_value());
  CHECK(small->put("j", "h", "a.ring", one, after(1)).has_value());
  const Status large = small->put("j", "h", "a.ring", other, after(2));
  REQUIRE_FALSE(large.has_value());
  CHECK(large.error().code == Errc::io);

  folder->forget(after(75));
  jobs = folder->jobs();
  REQUIRE(jobs.size() == 1);  // that of ml/train is 65 s old
  CHECK_FALSE(std::filesystem::exists(disk.path() + "/traces/ml%2Ftrain"));
  folder = *TraceFolder::open(disk.path() + "/traces", limits);
  REQUIRE(folder->jobs().size() == 1);
  CHECK(folder->jobs()[0].job == "..");
  CHECK(folder->jobs()[0].processes == 2);
  CHECK(folder->jobs()[0].bytes == one.size() + other.size());
}

TEST_CASE("traces: names, sizes and contents that are refused") {
  const TestFolder disk;
  auto folder = *TraceFolder::open(
      disk.path(), {.packed_max = 100'000, .unpacked_max = 3 << 20, .ranks_max = 8});
  const std::string good = packed_ring(2);
  const auto code = [&](std::string_view job, std::string_view host, std::string_view name,
                        std::string_view packed) -> std::optional<Errc> {
    const Status done = folder->put(job, host, name, packed, after(0));
    if (done) return std::nullopt;
    CHECK_FALSE(done.error().what.empty());
    return done.error().code;
  };
  CHECK(code("j", "h", "a.ring", good) == std::nullopt);
  CHECK(code("", "h", "a.ring", good) == Errc::value);
  CHECK(code("j", std::string(201, 'h'), "a.ring", good) == Errc::value);
  CHECK(code("j", "h", "a\n.ring", good) == Errc::value);
  CHECK(code("j", "h", "a.json", good) == Errc::value);
  CHECK(code("j", "h", "a.ring", std::string(100'001, 'x')) == Errc::value);
  CHECK(code("j", "h", "a.ring", "x") == Errc::parse);
  CHECK(code("j", "h", "a.ring", good.substr(0, good.size() / 2)) == Errc::parse);
  CHECK(code("j", std::string(100, ':'), "a.ring", good) == Errc::value);  // three bytes each
  CHECK(code(std::string(100, ':'), "h", "a.ring", good) == Errc::value);
  REQUIRE(write_file(disk.path() + "/18", "in the way of a folder").has_value());
  CHECK(code("18", "h", "a.ring", good) == Errc::io);
  CHECK(fs::is_empty(disk.path() + "/.incoming"));
  CHECK(code("j", "h", "a.ring", *gzip(std::string(4 << 20, '\0'))) == Errc::parse);
  CHECK(code("j", "h", "a.ring", packed_ring(15)) == Errc::value);  // rank 15 of 8
  CHECK(folder->jobs().size() == 1);
}

TEST_CASE("traces: as many processes as there are GPUs allow, and the refusal says so") {
  const TestFolder disk;
  const auto folder = *TraceFolder::open(disk.path(), {.ranks_max = 8});
  const std::string good = packed_ring(2);
  const auto put = [&](int job, int host) {
    const Status done = folder->put("j" + std::to_string(job), "h" + std::to_string(host), "a.ring",
                                    good, after(0));
    return done ? std::string() : done.error().what;
  };
  for (int host = 0; host < 16; ++host) REQUIRE(put(0, host) == "");
  CHECK(put(0, 3) == "");  // in place of an earlier one
  CHECK(put(0, 16).find("job j0 has 16 processes; at most 16") != std::string::npos);
  for (int host = 0; host < 16; ++host) REQUIRE(put(1, host) == "");
  CHECK(put(2, 0).find("32 processes; at most 32 are kept, four for each of 8 GPUs") !=
        std::string::npos);
}

TEST_CASE("traces: a folder that holds anything else is refused, and nothing there is deleted") {
  const TestFolder disk;
  const auto open = [&] { return TraceFolder::open(disk.path(), {.keep_ns = 1}); };
  {
    const auto folder = *open();
    REQUIRE(folder->put("17", "host:0", "a.ring", packed_ring(2), after(0)).has_value());
  }
  REQUIRE(write_file(disk.path() + "/.incoming/7.tmp.4711", "of a crash").has_value());
  fs::create_directories(disk.path() + "/lost+found");
  fs::create_directories(disk.path() + "/empty");
  const auto refused = [&](const std::string& path) {
    CAPTURE(path);
    REQUIRE(write_file(disk.path() + path, "somebody's").has_value());
    const auto folder = open();
    REQUIRE_FALSE(folder.has_value());
    CHECK(folder.error().code == Errc::value);
    CHECK(fs::exists(disk.path() + "/.incoming/7.tmp.4711"));
    fs::remove(disk.path() + path);
  };
  refused("/report.txt");
  refused("/17/notes.txt");
  refused("/17/host+a.txt.gz");
  refused("/17/host:0+a.ring.gz");  // ':' would be %3a
  refused("/.incoming/letter");
  refused("/home/.bashrc");
  fs::remove(disk.path() + "/home");
  refused("/17/deep/host+a.ring.gz");
  fs::remove(disk.path() + "/17/deep");
  fs::create_symlink("/etc/hostname", disk.path() + "/17/host+b.ring.gz");
  CHECK_FALSE(open().has_value());
  fs::remove(disk.path() + "/17/host+b.ring.gz");

  auto folder = open();
  REQUIRE_MESSAGE(folder.has_value(), (folder ? "" : folder.error().text()));
  REQUIRE((*folder)->jobs().size() == 1);
  CHECK_FALSE(fs::exists(disk.path() + "/.incoming/7.tmp.4711"));
  (*folder)->forget({end_of_time.ns - 1});
  CHECK_FALSE(fs::exists(disk.path() + "/17"));
  CHECK(fs::exists(disk.path() + "/empty"));
  CHECK(fs::exists(disk.path() + "/lost+found"));
}

TEST_CASE("traces: while one is unpacked, others are not kept waiting") {
  const TestFolder disk;
  const auto folder = *TraceFolder::open(disk.path(), {});
  const std::string good = packed_ring(2), slow = *gzip(std::string(64 << 20, '\0'));
  bool was_refused = false;
  for (int round = 0; round < 20 && !was_refused; ++round) {
    std::atomic<bool> is_done = false;
    std::jthread other([&] {
      while (folder->put("j", "h", "b.ring", slow, after(0)).error().code == Errc::io) {
      }
      is_done = true;
    });
    while (!is_done && !was_refused)
      if (const Status done = folder->put("j", "h", "a.ring", good, after(0)); !done) {
        CHECK(done.error().code == Errc::io);
        was_refused = true;
      }
  }
  CHECK(was_refused);
}

constexpr const char* traced_zone =
    "{generator: ai_zone, racks: 4, hosts_per_rack: 2, gpus_per_host: 2, spines: 4, "
    "link: 400 Gbps}";

constexpr std::int64_t hang_ns = 2 * ns_per_s;

// A job of 16 ranks on hosts of two, as agents send it.
class SentJob {
 public:
  std::int64_t sent_s = 0;  // after the day's begin

  Status put(std::uint32_t rank, const std::string& ring, const std::string& name = "",
             std::optional<std::uint32_t> host = {}) {
    return folder_->put("17", "host" + std::to_string(host.value_or(rank / 2)),
                        (name.empty() ? std::to_string(rank) : name) + ".ring", *gzip(ring),
                        after(sent_s));
  }
  Result<TraceFindings> judge(TraceLimits limits = {}) {
    folder_ = *TraceFolder::open(disk_.path(), limits);
    return judge_now();
  }
  Result<TraceFindings> judge_now() {
    return judge_traces(fabric_, NodeNames(fabric_), *folder_, "17", {}, after(1), hang_ns);
  }
  const std::string& path() const { return disk_.path(); }
  const model::Fabric& fabric() const { return fabric_; }
  std::size_t processes() const { return folder_->jobs().at(0).processes; }

 private:
  TestFolder disk_;
  model::Fabric fabric_ = model::testing::make_fabric(traced_zone);
  std::unique_ptr<TraceFolder> folder_ = *TraceFolder::open(disk_.path(), {});
};

TEST_CASE("traces: after a restart of the job those of its new processes count") {
  SentJob sent;
  const RingJob before{.end_ns = day_ns - 600 * ns_per_s}, now{.end_ns = day_ns};
  for (std::uint32_t rank = 0; rank < 16; ++rank) {
    std::string crashed = before.file(rank);
    observe::colltrace::stamp_ring(crashed, {}, 1);
    REQUIRE(sent.put(rank, crashed, "old" + std::to_string(rank)).has_value());
  }
  // The second half of the ranks has changed hosts.
  for (std::uint32_t rank = 0; rank < 16; ++rank)
    REQUIRE(sent.put(rank, now.file(rank), "", rank / 2 < 4 ? rank / 2 : rank / 2 ^ 2).has_value());
  CHECK(sent.processes() == 24);                             // eight were replaced
  REQUIRE(sent.put(3, before.file(3), "old3").has_value());  // too late
  CHECK(sent.processes() == 24);
  const auto found = sent.judge();  // of a service that knows the files alone
  REQUIRE_MESSAGE(found.has_value(), (found ? "" : found.error().text()));
  CAPTURE(found->json);
  CHECK_FALSE(found->is_hang);
  CHECK(found->json.find(R"("ranks":16)") != std::string::npos);
  CHECK(found->json.find(R"("edges":64)") != std::string::npos);
  CHECK(found->json.find("of a process that another has replaced") != std::string::npos);
}

TEST_CASE("traces: a rank without a trace is not called dead, one whose process is gone is") {
  const auto ring_of = [](std::uint32_t rank, bool waits) {
    observe::colltrace::test::RingFile ring(static_cast<std::int32_t>(rank), day_ns - ns_per_s);
    ring.communicator(0x77, static_cast<std::int32_t>(rank), 16);
    for (std::int64_t i = 9; i > 0; --i)
      ring.collective(day_ns - i * 100'000, day_ns - i * 90'000, {});
    if (waits) ring.collective(day_ns, 0, {});
    return ring.bytes();
  };
  SentJob sent;
  for (std::uint32_t rank = 0; rank < 14; ++rank) REQUIRE(sent.put(rank, ring_of(rank, true)));
  auto found = sent.judge();
  REQUIRE(found.has_value());
  CAPTURE(found->json);
  CHECK_FALSE(found->is_hang);
  const auto dumps = observe::colltrace::load_job({sent.path() + "/17"});  // as if they were all
  REQUIRE(dumps.has_value());
  CHECK(observe::colltrace::analyse(*dumps, {}).is_hang);
  for (std::uint32_t rank = 14; rank < 16; ++rank) {
    std::string ring = ring_of(rank, false);
    observe::colltrace::stamp_ring(ring, {}, day_ns);
    REQUIRE(sent.put(rank, ring));
  }
  found = sent.judge_now();
  REQUIRE(found.has_value());
  CHECK(found->is_hang);
  CHECK(found->json.find(R"("finding":"dead")") != std::string::npos);
  CHECK(found->records.rows.empty());  // it may only just have begun
  // Half of the hosts and one say that nothing has happened for two seconds more.
  sent.sent_s = 2;
  for (std::uint32_t rank = 0; rank < 7; ++rank) REQUIRE(sent.put(rank, ring_of(rank, true)));
  CHECK(sent.judge_now()->records.rows.empty());
  for (std::uint32_t rank = 7; rank < 9; ++rank) REQUIRE(sent.put(rank, ring_of(rank, true)));
  found = sent.judge_now();
  REQUIRE(found.has_value());
  REQUIRE(found->records.rows.size() == 1);  // both ranks are on one host
  const model::Record& row = found->records.rows[0];
  CHECK(row.kind == model::EventKind::job_hang);
  CHECK(row.entity == model::entity(sent.fabric().hosts()[7]));
  const std::string text = model::to_json(sent.fabric(), found->records, row);
  CAPTURE(text);
  CHECK(text.find("job 17 is stalled, waiting for ranks 14, 15 on host:7") != std::string::npos);
}

TEST_CASE("traces: what cannot be analysed within bounds is refused in words") {
  SentJob sent;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    auto ring = RingJob{.end_ns = day_ns}.ring(rank);
    for (std::uint64_t id = 0; id < 64; ++id)
      ring.communicator(1000 + id, static_cast<std::int32_t>(rank), 16);
    REQUIRE(sent.put(rank, ring.bytes()));
  }
  const auto refusal = [&](const TraceLimits& limits) {
    const auto found = sent.judge(limits);
    return found ? std::string() : found.error().what;
  };
  CHECK(refusal({.ranks_max = 17}) == "");
  CHECK(refusal({.ranks_max = 16}).find("1024 members of communicators") != std::string::npos);
  for (std::uint32_t rank = 2; rank < 12; ++rank)
    REQUIRE(sent.put(rank, RingJob{.operations = 1800, .end_ns = day_ns}.file(rank)));
  CHECK(refusal({.ranks_max = 20}) == "");
  CHECK(refusal({.ranks_max = 20, .records_least = 0}).find("81920 records") != std::string::npos);
}

TEST_CASE("traces: neither a rare call nor a broken clock ages what a record rests on") {
  SentJob sent;
  const RingJob job{.rack = 2, .spine = 3, .end_ns = day_ns};
  for (std::uint32_t rank = 0; rank < 16; ++rank) {
    auto ring = job.ring(rank);
    if (rank == 0) ring.collective(day_ns - ns_per_s, 8'900'000'000 * ns_per_s, {});
    if (rank == 1) ring.collective(day_ns - 7200 * ns_per_s, day_ns - 7199 * ns_per_s, {});
    REQUIRE(sent.put(rank, ring.bytes()));
  }
  const auto found = sent.judge();
  REQUIRE(found.has_value());
  CHECK(found->last_ns <= day_ns);
  CHECK(found->first_ns < found->last_ns);
  CHECK(found->first_ns > day_ns - 375'000'000);  // the latest third of 30
}

TEST_CASE("traces: a job is placed by the hosts that sent its traces, and its link is named") {
  const TestFolder disk;
  const model::Fabric fabric = model::testing::make_fabric(traced_zone);
  const NodeNames names(fabric);
  auto folder = *TraceFolder::open(disk.path(), {});
  const RingJob job{.rack = 2, .spine = 3, .end_ns = day_ns};
  for (std::uint32_t rank = 0; rank < 16; ++rank)
    REQUIRE(folder
                ->put("17", "host" + std::to_string(rank / 2), std::to_string(rank) + ".ring",
                      *gzip(job.file(rank)), after(0))
                .has_value());
  const auto found = judge_traces(fabric, names, *folder, "17", {}, after(1), hang_ns);
  REQUIRE_MESSAGE(found.has_value(), (found ? "" : found.error().text()));
  CHECK(found->verdicts == 0);
  CHECK(found->last_ns < day_ns);
  CHECK(found->first_ns < found->last_ns);
  CAPTURE(found->json);
  // Without probes each of the four ways out of the rack is as likely; all are of rack 2.
  CHECK(found->json.find(R"("entity":"rtsw:2->ctsw:3")") != std::string::npos);
  CHECK(found->json.find(R"("edges":64)") != std::string::npos);
  CHECK(found->json.find(R"("missing":0)") != std::string::npos);
}

TEST_CASE("figures of the page: what traces cost" * doctest::skip()) {
  const TestFolder disk;
  const model::Fabric fabric = model::testing::make_fabric(traced_zone);
  const NodeNames names(fabric);
  const auto folder = *TraceFolder::open(disk.path(), {});
  const RingJob job{.operations = 4000, .end_ns = day_ns};  // 20,000 records: full
  double copying = 0, keeping = 0, judging = 0;
  std::size_t bytes = 0;
  const auto timed = [](double& sum, const auto& work) {
    const std::clock_t begin = std::clock();
    work();
    sum += static_cast<double>(std::clock() - begin) * 1e3 / CLOCKS_PER_SEC;
  };
  for (std::uint32_t rank = 0; rank < 16; ++rank) {
    std::string ring = job.file(rank), packed;
    timed(copying, [&] {
      REQUIRE(observe::colltrace::read_ring(ring, "a.ring").has_value());
      observe::colltrace::cut_ring(ring, 1024);
      packed = *gzip(ring);
    });
    bytes += packed.size();
    timed(keeping, [&] {
      const std::string host = "host" + std::to_string(rank / 2);
      REQUIRE(folder->put("17", host, std::to_string(rank) + ".ring", packed, after(0)));
    });
  }
  timed(judging,
        [&] { REQUIRE(judge_traces(fabric, names, *folder, "17", {}, after(1), hang_ns)); });
  MESSAGE("of a process: " << bytes / 16 << " bytes; cut and compressed in " << copying / 16
                           << " ms, kept in " << keeping / 16 << " ms, judged in " << judging / 16
                           << " ms of CPU time");
}

}  // namespace
}  // namespace weft::operate::jobs
