#include "operate/jobs/traces.hpp"

#include <doctest/doctest.h>

#include <ctime>
#include <filesystem>
#include <optional>

#include "base/file.hpp"
#include "base/test_folder.hpp"
#include "model/formats/test_fabric.hpp"
#include "observe/colltrace/test_rings.hpp"

namespace weft::operate::jobs {
namespace {

using observe::colltrace::test::RingJob;

constexpr std::int64_t day_ns = 1'800'000'000 * ns_per_s;

Timestamp after(std::int64_t seconds) { return {day_ns + seconds * ns_per_s}; }

std::string packed_ring(std::uint32_t rank, int operations = 3) {
  return *gzip(RingJob{.operations = operations, .end_ns = day_ns}.file(rank));
}

TEST_CASE("traces: the latest of each process is kept, within bounds, and over a restart") {
  const TestFolder disk;
  const std::string one = packed_ring(0), other = packed_ring(1, 20);
  TraceLimits limits{.files_max = 3, .keep_ns = 60 * ns_per_s};
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
  CHECK(full.error().what.find("in 3 of 3 files") != std::string::npos);

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
  CHECK(code("j", "h", "a.ring", *gzip(std::string(4 << 20, '\0'))) == Errc::parse);
  CHECK(code("j", "h", "a.ring", packed_ring(15)) == Errc::value);  // rank 15 of 8
  CHECK(folder->jobs().size() == 1);
}

TEST_CASE("traces: a job is placed by the hosts that sent its traces, and its link is named") {
  const TestFolder disk;
  const model::Fabric fabric = model::testing::make_fabric(
      "{generator: ai_zone, racks: 4, hosts_per_rack: 2, gpus_per_host: 2, spines: 4, "
      "link: 400 Gbps}");
  const NodeNames names(fabric);
  auto folder = *TraceFolder::open(disk.path(), {});
  const RingJob job{.rack = 2, .spine = 3, .end_ns = day_ns};
  for (std::uint32_t rank = 0; rank < 16; ++rank)
    REQUIRE(folder
                ->put("17", "host" + std::to_string(rank / 2), std::to_string(rank) + ".ring",
                      *gzip(job.file(rank)), after(0))
                .has_value());
  const auto found = judge_traces(fabric, names, *folder, "17", {}, after(1));
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
  const model::Fabric fabric = model::testing::make_fabric(
      "{generator: ai_zone, racks: 4, hosts_per_rack: 2, gpus_per_host: 2, spines: 4, "
      "link: 400 Gbps}");
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
      REQUIRE(observe::colltrace::cut_ring(ring, "a.ring", 1024).has_value());
      packed = *gzip(ring);
    });
    bytes += packed.size();
    timed(keeping, [&] {
      const std::string host = "host" + std::to_string(rank / 2);
      REQUIRE(folder->put("17", host, std::to_string(rank) + ".ring", packed, after(0)));
    });
  }
  timed(judging, [&] { REQUIRE(judge_traces(fabric, names, *folder, "17", {}, after(1))); });
  MESSAGE("of a process: " << bytes / 16 << " bytes; cut and compressed in " << copying / 16
                           << " ms, kept in " << keeping / 16 << " ms, judged in " << judging / 16
                           << " ms of CPU time");
}

}  // namespace
}  // namespace weft::operate::jobs
