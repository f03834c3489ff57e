// Traces of a running job, from files on hosts to one case: an agent that sends those of its host,
// a service that keeps and judges them with what probes say, and its second life.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <httplib.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>

#include "base/file.hpp"
#include "observe/colltrace/test_rings.hpp"
#include "run_weft.hpp"
#include "socket_client.hpp"

using nlohmann::json;
using weft::cli_test::Scratch;
using weft::observe::colltrace::test::RingJob;
using namespace std::chrono_literals;

namespace {

// Hosts 8 and 9 are in no job.
constexpr const char* traced_zone =
    "fabric: {generator: ai_zone, racks: 5, hosts_per_rack: 2, gpus_per_host: 2, spines: 4, "
    "link: 400 Gbps}\n";
constexpr const char* traced_config =
    "traces: {every: 100 ms}\n"
    "localise: {keep: 60 s, every: 200 ms}\n"
    "jobs: {from: slurm, every: 200 ms, run: [/bin/cat, queue]}\n";

class TracedService {
 public:
  TracedService() {
    scratch_.write("zone.yaml", traced_zone);
    scratch_.write("serve.yaml", traced_config);
    scratch_.write("queue", "17|ann|0|host[0-7]|llama\n");
    start();
  }
  ~TracedService() { kill(); }
  TracedService(const TracedService&) = delete;
  TracedService& operator=(const TracedService&) = delete;

  void start() {
    service_ = scratch_.start({"serve", "--fabric", "zone.yaml", "--config", "serve.yaml",
                               "--listen", "unix:api.sock", "--traces", "traces"},
                              "serve");
    REQUIRE_MESSAGE(until([&] { return get("/v1/jobs").value("stale", true) == false; }),
                    scratch_.read("serve.err"));
  }
  void kill() {
    ::kill(service_, SIGKILL);
    weft::cli_test::wait_for(service_);
  }
  static bool until(const std::function<bool()>& is_true) {
    const auto end = std::chrono::steady_clock::now() + 60s;
    while (!is_true()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(20ms);
    }
    return true;
  }
  httplib::Client client() const {
    return weft::cli_test::socket_client(scratch_.path() + "/api.sock");
  }
  json get(const std::string& path) const {
    const auto answer = client().Get(path);
    if (!answer || answer->status != 200) return json::object();
    return json::parse(answer->body, nullptr, false);
  }
  int put(const std::string& path, const std::string& body,
          const char* type = "application/gzip") const {
    for (;;) {
      const auto answer = client().Put(path, body, type);
      if (!answer) return -1;
      if (answer->body.find("another trace is just being taken") == std::string::npos)
        return answer->status;  // else the agent's
    }
  }
  int send_rank(const RingJob& job, std::uint32_t rank) const {
    return put(fmt::format("/v1/traces/host:{}/weft-nccl-{}-0.ring", rank / 2, 100 + rank),
               *weft::gzip(job.file(rank)));
  }
  // From the first card of each host to that of each other rack, over each spine: one in a hundred
  // is lost on the way out of a rack by a spine.
  void probe(std::int64_t t, std::uint32_t bad_rack, std::uint32_t bad_spine) const {
    std::string lines;
    for (std::uint32_t from = 0; from < 8; ++from)
      for (std::uint32_t to = 0; to < 8; ++to)
        for (std::uint32_t spine = 0; spine < 4 && from / 2 != to / 2; ++spine)
          lines += fmt::format(
              R"({{"t":"{}","src":"nic:{}","dst":"nic:{}","sport":{},"leg":"forward",)"
              R"("path":["nic:{}->rtsw:{}","rtsw:{}->ctsw:{}",)"
              R"("ctsw:{}->rtsw:{}","rtsw:{}->nic:{}"],)"
              R"("sent":1000,"lost":{}}})"
              "\n",
              t, from * 2, to * 2, 49'152 + spine, from * 2, from / 2, from / 2, spine, spine,
              to / 2, to / 2, to * 2, from / 2 == bad_rack && spine == bad_spine ? 10 : 0);
    const auto answer = client().Post("/v1/evidence", lines, "application/x-ndjson");
    REQUIRE(answer);
    REQUIRE_MESSAGE(json::parse(answer->body).value("refused_count", 1) == 0, answer->body);
  }
  // Cases that are believed in, and how often the job stands among the members of the first.
  json cases() const {
    json out = json::array();
    for (const json& c : get("/v1/cases").value("items", json::array()))
      if (c["standing"] != "superseded" && c["standing"] != "withdrawn") out.push_back(c);
    return out;
  }
  static int count_of_job(const json& found) {
    int out = 0;
    for (const json& member : found.value("members", json::array()))
      out += member["record"].get<std::string>().starts_with("job:17/") ? 1 : 0;
    return out;
  }
  const Scratch& scratch() const { return scratch_; }

 private:
  Scratch scratch_;
  int service_ = 0;
};

std::int64_t now_of_day() {
  return std::chrono::system_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

// Rings of the ranks 0 and 1. Beside them what an agent must leave alone: a process of the same
// rank before a restart, one that ended in order, one of another machine, and a pipe.
void write_rings(const Scratch& scratch, const RingJob& job) {
  const auto write = [&](const std::string& name, const std::string& content) {
    scratch.write("rings/" + name + ".ring", content);
  };
  write("weft-nccl-100-0", job.file(0));
  write("weft #1?%23", job.file(1));
  write("weft-nccl-90-0", RingJob{.end_ns = job.end_ns - 600'000'000'000}.file(0));
  auto other = job.ring(2);
  other.head().finished_ns = 1;
  write("weft-nccl-102-0", other.bytes());
  other = job.ring(4);
  other.head().boot_id[0] = '?';
  write("weft-nccl-104-0", other.bytes());
  REQUIRE(::mkfifo((scratch.path() + "/rings/a.ring").c_str(), 0600) == 0);
}

// Without a list of jobs nobody is told that there are none.
void check_stale_list(const TracedService& service, const RingJob& job) {
  std::filesystem::remove(service.scratch().path() + "/queue");
  const std::string path = "/v1/traces/host:1/a.ring", good = *weft::gzip(job.file(3));
  REQUIRE(TracedService::until([&] { return service.put(path, good) == 503; }));
  const auto answer = service.client().Put(path, good, "application/gzip");
  REQUIRE(answer);
  CHECK(answer->body.find("the list of jobs is stale, last read at 20") != std::string::npos);
  CHECK(answer->has_header("Retry-After"));
}

void check_refusals(const TracedService& service, const RingJob& job) {
  const std::string good = *weft::gzip(job.file(3));
  CHECK(service.put("/v1/traces/host:99/a.ring", good) == 404);
  CHECK(service.put("/v1/traces/host:8/a.ring", good) == 409);  // no job is there
  CHECK(service.put("/v1/traces/host:8/a.ring?job=18", good) == 200);
  CHECK(service.put("/v1/traces/host:1/a.txt", good) == 400);
  CHECK(service.put("/v1/traces/host:1/..%2Fa.ring", good) == 200);  // a name like another
  CHECK(service.put("/v1/traces/host:1/a.ring", "no gzip") == 400);
  CHECK(service.put("/v1/traces/host:1/a.ring", *weft::gzip("no ring")) == 400);
  CHECK(service.put("/v1/traces/host:1/a.ring", *weft::gzip(job.file(3).substr(0, 300'000))) ==
        400);
  CHECK(service.put("/v1/traces/host:1/a.ring", std::string(3 << 20, 'x')) == 400);
  CHECK(service.put("/v1/traces/host:1/a.ring", good, "text/plain") == 415);
  CHECK(service.get("/v1/jobs/19/trace").empty());
  CHECK(service.scratch().files().size() < 60);
  CHECK_FALSE(service.scratch().has("traces/a.ring.gz"));
}

}  // namespace

TEST_CASE("traces of a job: what agents send and probes see makes one case of link and job, once") {
  TracedService service;
  const RingJob job{.end_ns = now_of_day()};
  write_rings(service.scratch(), job);  // of host:0, whose agent sends them
  const int agent = service.scratch().start(
      {"agent", "--fabric", "zone.yaml", "--device", "host:0", "--to", "unix:api.sock", "--traces",
       "rings", "--trace-every", "1 s", "--job", "17", "--quiet"},
      "agent");
  // Probers send a window a second, however long the rest takes.
  auto probe = [&, probed = std::int64_t{0}]() mutable {
    const std::int64_t now = now_of_day();
    if (now - probed >= 1'000'000'000) service.probe(probed = now, 0, 1);
  };
  probe();
  for (std::uint32_t rank = 2; rank < 16; ++rank) {
    CHECK(service.send_rank(job, rank) == 200);
    probe();
  }

  const auto is_whole = [&] {
    probe();
    const json trace = service.get("/v1/jobs/17/trace");
    return trace.value("ranks", 0) == 16 && trace.value("missing", -1) == 0 &&
           trace.value("/network/probe_rows"_json_pointer, 0) >= 192;  // a window's
  };
  REQUIRE_MESSAGE(TracedService::until(is_whole), service.scratch().read("agent.err"));
  const json trace = service.get("/v1/jobs/17/trace");
  CAPTURE(trace.dump(1));
  CHECK(trace["hang"] == false);
  CHECK(trace["network"]["network"] > 0.9);
  CHECK(trace["network"]["edges"] == 64);
  CHECK(trace["network"]["suspects"][0]["entity"] == "rtsw:0->ctsw:1");
  const json list = service.get("/v1/traces")["items"];
  REQUIRE(list.size() == 1);
  CHECK(list[0]["job"] == "17");
  CHECK(list[0]["processes"] == 16);
  CHECK(list[0]["suspects"] == json::array({"rtsw:0->ctsw:1"}));

  const auto metrics = service.client().Get("/metrics");
  REQUIRE(metrics);
  CHECK(metrics->body.find("\nweft_traces 16\n") != std::string::npos);
  CHECK(metrics->body.find("\nweft_traces_failures_total 0\n") != std::string::npos);

  // The job's record is said once, and the case of the cable has it.
  const auto is_one = [&] {
    probe();
    const json cases = service.cases();
    return cases.size() == 1 && TracedService::count_of_job(cases[0]) > 0;
  };
  REQUIRE_MESSAGE(TracedService::until(is_one), service.cases().dump(1)
                                                    << service.client().Get("/metrics")->body
                                                    << service.scratch().read("serve.err"));
  const json found = service.cases()[0];
  CHECK(found["cause"]["entity"] == "rtsw:0--ctsw:1");

  // A second life says nothing twice.
  const int told = TracedService::count_of_job(found);
  service.kill();
  service.start();
  REQUIRE(TracedService::until(is_whole));
  std::this_thread::sleep_for(300ms);
  const json again = service.cases();
  REQUIRE(again.size() == 1);
  CHECK(again[0]["id"] == found["id"]);
  CHECK(TracedService::count_of_job(again[0]) == told);
  check_refusals(service, job);
  check_stale_list(service, job);
  ::kill(agent, SIGTERM);
  CHECK(weft::cli_test::wait_for(agent) == 0);
}
