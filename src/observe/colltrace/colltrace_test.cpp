#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/file.hpp"
#include "base/test_effort.hpp"
#include "base/test_folder.hpp"
#include "observe/colltrace/flight.hpp"
#include "observe/colltrace/load.hpp"
#include "observe/colltrace/ring.hpp"
#include "observe/colltrace/test_rings.hpp"
#include "observe/colltrace/test_world.hpp"
#include "observe/colltrace/verdict.hpp"
#include "os/tar.hpp"

namespace weft::observe::colltrace {
namespace {

Result<Job> job_of(std::vector<std::pair<std::string, std::string>> files) {
  JobBuilder builder;
  for (auto& [name, content] : files) {
    content.reserve(content.size() + json_padding);
    WEFT_TRY_STATUS(read_flight(content, name, builder));
  }
  return builder.finish();
}

Report judge(const Job& job) { return analyse(job, {}); }

// One of the cases that come with the tree: 64 ranks, the last 10 entries of each.
Job case_of(const char* name) {
  const auto packed = read_file(fmt::format("tests/docs/inputs/colltrace-{}.tar.gz", name));
  WEFT_CHECK(packed.has_value());
  const auto archive = gunzip(*packed, name);
  WEFT_CHECK(archive.has_value());
  const auto members = os::read_tar(*archive, name);
  WEFT_CHECK(members.has_value());
  std::vector<std::pair<std::string, std::string>> files;
  for (const auto& m : *members) files.emplace_back(m.path, m.content);
  auto job = job_of(std::move(files));
  WEFT_CHECK(job.has_value());
  return std::move(*job);
}

TEST_CASE("cases with known truth") {
  const Job net = case_of("net"), size = case_of("size"), skip = case_of("stuck");
  const Report a = judge(net), b = judge(size), c = judge(skip);
  REQUIRE(a.verdicts.size() == 1);
  CHECK(a.verdicts[0].finding == Finding::network);
  CHECK(net.groups[a.verdicts[0].groups.at(0)].name == "10");
  CHECK(a.waiting_count == 64);
  REQUIRE(b.verdicts.size() == 1);
  CHECK(b.verdicts[0].finding == Finding::size);
  CHECK(b.verdicts[0].ranks == std::vector<std::uint32_t>{60});
  CHECK(size.groups[b.verdicts[0].groups.at(0)].name == "8");
  REQUIRE(c.verdicts.size() == 1);
  CHECK(c.verdicts[0].finding == Finding::stuck);
  CHECK(c.verdicts[0].ranks == std::vector<std::uint32_t>{57});
}

// One all_reduce of two ranks; `more` goes into the entry.
std::string dump_with(std::string_view more, std::string_view version = "2.9") {
  return fmt::format(
      R"({{"entries": [{{"collective_seq_id": 1, "process_group": ["0", "default_pg"], )"
      R"("profiling_name": "nccl:all_reduce", "input_sizes": [[4, 8]], "input_dtypes": ["Float"], )"
      R"("state": "started"{}}}], )"
      R"("pg_config": {{"0": {{"desc": "default_pg", "ranks": "[0, 1]"}}}}, )"
      R"("version": "{}"}})",
      more, version);
}

TEST_CASE("dumps: unknown keys, times that are not known, versions") {
  const auto job =
      job_of({{"dir/nccl_trace_rank_1.json",
               dump_with(R"(, "time_discovered_started_ns": 0, "new_one": {"a": [1]})")}});
  REQUIRE(job.has_value());
  CHECK(job->ranks.at(0).rank == 1);
  CHECK(job->unknown_keys == std::map<std::string, std::uint64_t>{{"new_one", 1}});
  CHECK(job->entries.at(0).started_ns == 0);
  CHECK(job->entries.at(0).state == EntryState::started);
  CHECK(job->groups.at(0).members == std::vector<std::uint32_t>{0, 1});
  CHECK(job->signatures.at(0).size == "[[4,8]]  ");
  for (const char* good : {"2.4", "2.10"})
    CHECK(job_of({{"r_0", dump_with("", good)}}).has_value());
  CHECK(job_of({{"r_0", dump_with("", "2.11")}})->notes.size() == 1);
  for (const char* bad : {"2.3", "1.0", "3.0", "x"}) CHECK(!job_of({{"r_0", dump_with("", bad)}}));
}

TEST_CASE("dumps that are refused") {
  const std::string good = dump_with("");
  CHECK(!job_of({{"no_number", good}}));
  CHECK(!job_of({{"r_0", good.substr(0, good.size() / 2)}}));
  CHECK(!job_of({{"r_0", good}, {"s_0", good}}));  // rank 0 twice
  const auto twice = job_of({{"r_0", dump_with(R"(, "state": "asleep")")}});
  REQUIRE(!twice);
  CHECK(twice.error().text().find("asleep") != std::string::npos);
  // What os.system would be called by: refused by name, not run.
  using namespace std::string_literals;
  const auto evil = job_of({{"r_0", "\x80\x02}(X\x07\0\0\0entries"s + "cposix\nsystem\n" +
                                        "X\x04\0\0\0true"s + "\x85Ru."}});
  REQUIRE(!evil);
  CHECK(evil.error().text().find("posix.system") != std::string::npos);
}

// As a rank leaves it that was killed while it wrote.
TEST_CASE("a dump that was cut short is left out with a note, and its rank has no trace") {
  const TestFolder folder;
  const std::string good = dump_with("");
  const std::string one = folder.write("r_1", good);
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, good.size() / 2, good.size() - 1})
    for (const bool is_named : {false, true}) {
      CAPTURE(size);
      const std::string cut = folder.write("r_7", good.substr(0, size));
      const auto job = is_named ? load_job({one, cut}) : load_job({folder.path()});
      REQUIRE(job.has_value());
      CHECK(job->ranks.size() == 1);
      REQUIRE(job->notes.size() == 1);
      CHECK(job->notes[0].starts_with(cut + ": "));
      if (size < 2) continue;  // of no format
      CHECK(judge(*job).missing_count == 7);
      CHECK(job->notes[0].find(fmt::format("byte {}: ", size)) != std::string::npos);
    }
  const std::string two = folder.write("r_2", good.substr(0, 60));
  const auto none = load_job({folder.write("r_1", good.substr(0, 50)), two});
  REQUIRE(!none);
  CHECK(none.error().text().find("r_1: byte 50") != std::string::npos);
  CHECK(none.error().text().find("r_2: byte 60") != std::string::npos);
  CHECK(!load_job({folder.write("r_1", good), folder.write("r_2", "text")}));  // the wrong file
}

TEST_CASE(
    "a ring that leaves its machine: the latest and the open entries, and what is known there") {
  constexpr std::int64_t begin = 1'800'000'000'000'000'000, ms = 1'000'000;
  test::RingFile file(3, begin);
  file.communicator(0x77, 3, 8);
  file.collective(begin + ms, 0, {});  // it never ends
  for (int i = 1; i < 6000; ++i)
    file.collective(begin + i * ms, begin + i * ms + ms / 2, {{.peer = 4, .wait_ns = 5'000}});
  std::string content = file.bytes();
  const std::string whole = content;
  cut_ring(content, 100);
  CHECK(content.size() == whole.size());
  auto trace = read_ring(content, "a.ring");
  REQUIRE(trace.has_value());
  REQUIRE(trace->operations.size() == 51);
  CHECK(trace->operations[0].order == 0);
  CHECK(trace->operations[0].state == RingOperation::State::started);
  CHECK(trace->operations[1].order == 5950);
  CHECK(trace->operations.back().ended_ns == begin + 5999 * ms + ms / 2);
  CHECK(trace->proxies.size() == 50);
  CHECK(trace->proxies.back().operation == 50u);
  CHECK(trace->communicators[0].id == 0x77);
  CHECK_FALSE(trace->is_gone);

  stamp_ring(content, ring::ClockPair{2'000'000, begin + 4'000'000}, begin + 9 * ms);
  trace = read_ring(content, "a.ring");
  REQUIRE(trace.has_value());
  CHECK(trace->is_gone);
  CHECK(trace->operations.size() == 51);

  const TestFolder folder;
  const auto job = load_job({folder.write("a.ring.gz", *gzip(whole))});
  REQUIRE_MESSAGE(job.has_value(), (job ? "" : job.error().text()));
  CHECK(job->ranks.at(0).rank == 3);
  CHECK(job->entries.size() == 6000);
  CHECK(trace->opened_ns == begin);
}

TEST_CASE("no trace is waited for: a pipe is refused, and a link where it is not to be followed") {
  const TestFolder folder;
  for (const char* name : {"a.ring", "r_1"}) {
    const std::string pipe = folder.file(name);
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    const auto job = load_job({pipe});
    REQUIRE_FALSE(job.has_value());
    CHECK(job.error().text().find("not a regular file") != std::string::npos);
  }
  CHECK_FALSE(load_ring(folder.file("a.ring")).has_value());
  const std::string link = folder.file("b.ring");
  std::filesystem::create_symlink(folder.write("c.ring", test::RingFile(3, 1).bytes()), link);
  CHECK(load_ring(link).has_value());
  CHECK_FALSE(load_ring(link, Links::refuse).has_value());
}

TEST_CASE("processes of now, and those that they have replaced") {
  constexpr std::int64_t s = 1'000'000'000;
  const auto current = [](const std::vector<RingLife>& lives) { return are_current(lives); };
  using Expected = std::vector<bool>;
  // Both live, as far as one knows: the newer one.
  CHECK(current({{"a", "", 3, 100 * s, 110 * s}, {"a", "", 3, 200 * s, 210 * s}}) ==
        Expected{false, true});
  // The same rank on another host: it has moved; two that go on at one time are of two jobs.
  CHECK(current({{"a", "", 3, 100 * s, 190 * s, true}, {"b", "", 3, 200 * s, 210 * s}}) ==
        Expected{false, true});
  CHECK(current({{"a", "", 3, 100 * s, 205 * s, true}, {"b", "", 3, 200 * s, 210 * s}}) ==
        Expected{false, true});
  CHECK(current({{"a", "", 3, 100 * s, 190 * s}, {"b", "", 3, 200 * s, 210 * s}}) ==
        Expected{false, true});
  CHECK(current({{"a", "", 3, 100 * s, 205 * s}, {"b", "", 3, 200 * s, 210 * s}}) ==
        Expected{true, true});
  // Of a job before: it ended before any of these began. One that died among them is their own.
  CHECK(current({{"a", "", 9, 100 * s, 130 * s, true},
                 {"a", "", 2, 200 * s, 250 * s, true},
                 {"a", "", 1, 201 * s, 300 * s}}) == Expected{false, true, true});
  CHECK(current({{"a", "", -1, 100 * s, 110 * s}, {"a", "", -1, 200 * s, 210 * s}}) ==
        Expected{true, true});
  // Two jobs on one host number their ranks alike.
  CHECK(
      current({{.host = "a", .job = "x", .rank = 3, .opened_ns = 100 * s, .latest_ns = 110 * s},
               {.host = "a", .job = "y", .rank = 3, .opened_ns = 200 * s, .latest_ns = 210 * s}}) ==
      Expected{true, true});
}

TEST_CASE("rings of a job that was started again: those of earlier processes are left out") {
  constexpr std::int64_t day = 1'800'000'000'000'000'000, s = 1'000'000'000;
  const TestFolder folder;
  const auto add = [&](const char* name, std::uint32_t rank, std::int64_t end_ns) {
    return folder.write(name, test::RingJob{.end_ns = end_ns}.file(rank));
  };
  add("a-1.ring", 0, day);
  const std::string second = add("a-2.ring", 0, day + 2 * s);
  add("b-2.ring", 1, day + 2 * s);
  add("a-0.ring", 0, day - 2 * s);
  const auto job = load_job({folder.path()});
  REQUIRE_MESSAGE(job.has_value(), (job ? "" : job.error().text()));
  REQUIRE(job->ranks.size() == 2);
  CHECK(job->ranks[0].rank == 0);
  CHECK(job->ranks[0].file == second);
  CHECK(job->ranks[1].rank == 1);
  const auto said = [&](std::string_view words) {
    return std::ranges::count_if(
        job->notes, [&](const std::string& note) { return note.find(words) != std::string::npos; });
  };
  CHECK(said("of an earlier process of rank 0, left out") == 2);
  // Two at one time are no restart, and have no numbers of one job.
  add("c.ring", 0, day + 2 * s + s / 10);
  const auto mixed = load_job({folder.path()});
  REQUIRE(mixed.has_value());
  CHECK(mixed->ranks.size() == 3);
}

TEST_CASE("rings of several jobs in one folder: one of them is asked for") {
  const TestFolder folder;
  for (const std::string job : {"17", "18"})
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      std::string ring = test::RingJob{.end_ns = 1'800'000'000'000'000'000}.file(rank);
      job.copy(ring.data() + offsetof(ring::ProcessHead, job), job.size());
      folder.write(fmt::format("{}-{}.ring", job, rank), ring);
    }
  const auto all = load_job({folder.path()});
  REQUIRE_FALSE(all.has_value());
  CHECK(all.error().text().find(R"(several jobs: "17", "18")") != std::string::npos);
  CHECK_FALSE(load_job({folder.path()}, "19").has_value());
  const auto one = load_job({folder.path()}, "18");
  REQUIRE_MESSAGE(one.has_value(), (one ? "" : one.error().text()));
  CHECK(one->ranks.size() == 2);
  REQUIRE(one->notes.size() >= 2);
  CHECK(one->notes[0].find("of job \"17\", left out") != std::string::npos);
}

TEST_CASE("NCCL Inspector, Kineto and RAS") {
  const TestFolder folder;
  std::string lines = "==> a mark of tail <==\n";
  for (int i = 0; i < 3; ++i)
    lines += fmt::format(
        R"({{"header":{{"id":"0x12","comm_name":"dp","rank":1,"n_ranks":2,"nnodes":2}},)"
        R"("metadata":{{"inspector_output_format_version":"v4.0",)"
        R"("dump_timestamp_us":1795228379436036,)"
        R"("hostname":"vm","pid":31690}},"coll_perf":{{"coll":"AllReduce","coll_sn":{},)"
        R"("coll_msg_size_bytes":4194304,"coll_exec_time_us":{}}}}})"
        "\n",
        i, 100 + i);
  const auto inspector = load_job({folder.write("a.log", lines)});
  REQUIRE(inspector.has_value());
  CHECK(inspector->ranks.at(0).rank == 1);
  REQUIRE(inspector->entries.size() == 3);
  CHECK(inspector->entries[2].duration_us == 102);
  CHECK(inspector->entries[2].seq == 2);
  CHECK(inspector->signatures.at(0).operation == "AllReduce");

  const auto kineto = load_job({folder.write(
      "k.json", R"({"schemaVersion": 1, "distributedInfo": {"rank": 3}, "traceEvents": [)"
                R"({"ph": "X", "cat": "kernel", "ts": 2000.5, "dur": 7, )"
                R"("args": {"Collective name": "allreduce", )"
                R"("Process Group Name": "0", "Process Group Ranks": "[2, 3]", )"
                R"("In msg nelems": 8, "dtype": "Int"}},)"
                R"({"ph": "X", "cat": "cpu_op", "ts": 1, "dur": 1, "args": {}}]})")});
  REQUIRE(kineto.has_value());
  REQUIRE(kineto->entries.size() == 1);
  CHECK(kineto->ranks.at(0).rank == 3);
  CHECK(kineto->entries[0].started_ns == 2'000'500);
  CHECK(kineto->entries[0].ended_ns == 2'007'500);

  std::string ranks;
  for (int r = 0; r < 8; ++r)
    ranks += fmt::format(R"({}{{"rank": {}, "host": "h", "pid": {}, "cuda_dev": {},)"
                         R"("collective_counts": {{"AllReduce": {}, "Reduce": 0}}}})",
                         r == 0 ? "" : ",", r, 100 + r, r, r == 6 ? 41 : 42);
  const auto ras = load_job({folder.write(
      "ras.json",
      fmt::format(R"({{"nccl_version": "2.29.1", "communicators": [{{"hash": "0x1", "size": 8,)"
                  R"("ranks": [{}], "missing_ranks": []}}]}})",
                  ranks))});
  REQUIRE(ras.has_value());
  const Report report = judge(*ras);
  REQUIRE(report.verdicts.size() == 1);
  CHECK(report.verdicts[0].finding == Finding::stuck);
  CHECK(report.verdicts[0].ranks == std::vector<std::uint32_t>{6});
}

struct Score {
  int right = 0, wrong = 0, missed = 0;
  double precision() const { return right + wrong == 0 ? 1 : double(right) / (right + wrong); }
  double recall() const { return right + missed == 0 ? 1 : double(right) / (right + missed); }
};

using test::Fault;
using test::World;

bool is_right(const test::Run& run, const World& w, const Job& job, const Verdict& v) {
  const auto names = [&](std::initializer_list<Finding> findings) {
    return std::ranges::find(findings, v.finding) != findings.end() && v.ranks.size() == 1 &&
           v.ranks[0] == run.culprit();
  };
  const auto is_group = [&] {
    return !v.groups.empty() && job.groups[v.groups[0]].members == run.group(run.culprit()).members;
  };
  switch (w.fault) {
    case Fault::none:
      return false;
    case Fault::stuck:
      return names({Finding::stuck});
    case Fault::stuck_host:
      return v.finding == Finding::stuck && v.ranks.size() == 1 &&
             v.ranks[0] / 8 == run.culprit() / 8;
    case Fault::dead:
      if (v.finding == Finding::dead_or_network)  // several that lack in one operation
        return v.ranks.size() <= 2 && std::ranges::find(v.ranks, run.culprit()) != v.ranks.end();
      return names({Finding::dead});
    case Fault::skip:
      return names({Finding::skip, Finding::order_or_skip});
    case Fault::order:
      return names({Finding::order, Finding::order_or_skip});
    case Fault::operation:
      return names({Finding::operation});
    case Fault::size:
      return names({Finding::size});
    case Fault::type:
      return names({Finding::type});
    case Fault::network:
      return (v.finding == Finding::network || v.finding == Finding::dead_or_network) && is_group();
    case Fault::slow_rank:
      return names({Finding::slow_rank});
    case Fault::slow_host:
      return v.finding == Finding::slow_host &&
             std::ranges::find(v.ranks, run.culprit()) != v.ranks.end();
    case Fault::slow_network:
      return v.finding == Finding::slow_network && is_group();
  }
  return false;
}

Score score_of(World w, std::uint64_t seeds) {
  Score out;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    test::Run run(w, seed * 31 + 7);
    JobBuilder builder;
    for (std::uint32_t r = 0; r < run.ranks(); ++r) {
      std::string dump = run.dump(r);
      if (dump.empty()) continue;
      const Status status = read_flight(dump, fmt::format("rank_{}", r), builder);
      INFO((status ? "" : status.error().text()));
      REQUIRE(status.has_value());
    }
    const Job job = builder.finish();
    const Report report = judge(job);
    int right = 0;
    for (const Verdict& v : report.verdicts) {
      const bool is = is_right(run, w, job, v);
      (is ? right : out.wrong) += 1;
      if (!is)
        MESSAGE("seed " << seed << ", culprit " << run.culprit() << ": wrong " << to_text(v.finding)
                        << " of " << v.ranks.size() << " ranks");
    }
    out.right += right > 0;
    out.missed += w.fault != Fault::none && right == 0;
  }
  return out;
}

constexpr Fault hangs[] = {Fault::stuck, Fault::stuck_host, Fault::dead,
                           Fault::skip,  Fault::order,      Fault::operation,
                           Fault::size,  Fault::type,       Fault::network};

Score all_hangs(World w, std::uint64_t seeds) {
  Score all;
  for (const Fault fault : hangs) {
    w.fault = fault;
    const Score one = score_of(w, seeds);
    INFO("fault " << static_cast<int>(fault) << ": right " << one.right << ", wrong " << one.wrong
                  << ", missed " << one.missed);
    CHECK(one.missed * 2 <= one.right);
    MESSAGE("fault " << static_cast<int>(fault) << ": right " << one.right << ", wrong "
                     << one.wrong << ", missed " << one.missed);
    all.right += one.right;
    all.wrong += one.wrong;
    all.missed += one.missed;
  }
  MESSAGE("precision " << all.precision() << ", recall " << all.recall());
  return all;
}

TEST_CASE("hangs of a made-up job") {
  const Score all = all_hangs({}, test_effort(16));
  CHECK(all.precision() >= 0.98);
  CHECK(all.recall() >= 0.97);
}

TEST_CASE("hangs of a made-up job, without 5 % of its dumps") {
  const Score all = all_hangs({.missing = 0.05}, test_effort(16));
  CHECK(all.precision() >= 0.93);
  CHECK(all.recall() >= 0.90);
}

// Minutes, and a GB of dumps in all: by hand, with --no-skip.
TEST_CASE("hangs of 1,024 ranks" * doctest::skip()) {
  const Score all = all_hangs({.tensor = 8, .stages = 4, .replicas = 32}, 4);
  CHECK(all.precision() >= 0.98);
  CHECK(all.recall() >= 0.97);
}

TEST_CASE("a job that runs has no verdict") {
  for (const double skew_ms : {0.0, 0.5, 5.0, 50.0})
    for (const double missing : {0.0, 0.05})
      for (const World& shape : {World{}, World{.tensor = 1, .stages = 1, .replicas = 32},
                                 World{.tensor = 8, .stages = 1, .replicas = 4},
                                 World{.tensor = 8, .stages = 1, .replicas = 1}}) {
        // One group and dumps that are missing: a rank that died looks the same.
        if (shape.stages == 1 && missing > 0) continue;
        World w = shape;
        w.skew_ms = skew_ms;
        w.missing = missing;
        const Score s = score_of(w, test_effort(8));
        MESSAGE("skew " << skew_ms << " missing " << missing << " tensor " << w.tensor << " stages "
                        << w.stages << ": " << s.wrong);
        CHECK(s.wrong == 0);
      }
}

TEST_CASE("slow ranks, hosts and networks") {
  Score all;
  for (const Fault fault : {Fault::slow_rank, Fault::slow_host, Fault::slow_network})
    for (const double factor : {1.3, 1.15}) {
      const Score one =
          score_of({.fault = fault, .factor = factor, .has_coarse_times = false, .window = 120},
                   test_effort(16));
      MESSAGE("fault " << static_cast<int>(fault) << " factor " << factor << ": right " << one.right
                       << ", wrong " << one.wrong << ", missed " << one.missed);
      all.right += one.right;
      all.wrong += one.wrong;
      all.missed += one.missed;
    }
  MESSAGE("precision " << all.precision() << ", recall " << all.recall());
  CHECK(all.precision() >= 0.98);
  CHECK(all.recall() >= 0.97);
  CHECK(score_of({.has_coarse_times = false, .window = 120}, test_effort(32)).wrong == 0);
}

// As rings show a job of which one rank is far behind, or was read long ago.
TEST_CASE("ranks that have no records in common are not compared") {
  Job job;
  job.world = 3;
  job.has_measured_times = true;
  job.groups.push_back({.name = "0", .description = "", .members = {0, 1, 2}});
  job.signatures.push_back({.operation = "AllReduce", .type = "", .size = ""});
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    const std::uint32_t first = 100 * rank;
    job.ranks.push_back({.rank = rank, .begin = job.entries.size(), .end = job.entries.size() + 2});
    job.ranks.back().first_record = first;
    for (const std::uint32_t seq : {first, first + 1}) {
      Entry& entry = job.entries.emplace_back();
      entry.created_ns = 1'000 + seq;
      entry.started_ns = 2'000 + seq;
      entry.ended_ns = 2'001 + seq;
      entry.seq = seq;
      entry.state = EntryState::completed;
    }
  }
  const Report report = judge(job);
  CHECK(report.paces.empty());
  for (const Verdict& v : report.verdicts) CHECK(v.finding != Finding::slow_rank);
}

// A watchdog that looks every 100 ms says nothing of how long a rank computes.
TEST_CASE("no slow rank from times that nobody has measured") {
  for (const bool has_durations : {false, true}) {
    const Score s = score_of(
        {.fault = Fault::slow_rank, .factor = 2, .has_durations = has_durations, .window = 120},
        test_effort(8));
    CHECK(s.right == 0);
    CHECK(s.wrong == 0);
  }
}

}  // namespace
}  // namespace weft::observe::colltrace
