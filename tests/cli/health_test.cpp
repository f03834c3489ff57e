// Path health from a record to NCCL: a service that is told of a slow link, an agent on another
// host, and the plugin in this process.
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <httplib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "adapt/nccl/tuner.hpp"
#include "run_weft.hpp"

using weft::cli_test::Scratch;
using namespace std::chrono_literals;

namespace {

constexpr const char* health_zone =
    "fabric: {generator: ai_zone, racks: 4, hosts_per_rack: 1, spines: 8}\n"
    "routing: {scheme: e_ecmp, qps: 4}\n"
    "jobs: [{name: llama, collective: all_reduce, gpus: 32, bytes: 1 GiB}]\n";

// Seconds until it is true; 60 where it never was.
double seconds_until(const std::function<bool()>& is_true) {
  const auto begin = std::chrono::steady_clock::now();
  const auto spent = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  while (!is_true() && spent() < 60) std::this_thread::sleep_for(20ms);
  return spent();
}

// NCCL's side of a communicator of 32 ranks on 4 hosts, whose own choice is the ring.
class Tuned {
 public:
  explicit Tuned(const std::string& table) {
    ::setenv("WEFT_NCCL_HEALTH_LIVE", table.c_str(), 1);
    ::setenv("WEFT_NCCL_HEALTH_FOLLOW", "1", 1);
    ::setenv("WEFT_NCCL_JOB", "llama", 1);
    void* library = ::dlopen(WEFT_NCCL_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(library != nullptr);
    tuner_ = static_cast<const weft::adapt::nccl::Tuner4*>(::dlsym(library, "ncclTunerPlugin_v4"));
    REQUIRE(tuner_ != nullptr);
    REQUIRE(tuner_->init(32, 4, nullptr, &context_) == 0);
  }
  ~Tuned() { tuner_->destroy(context_); }
  Tuned(const Tuned&) = delete;
  Tuned& operator=(const Tuned&) = delete;
  // Whether an all-reduce of 1 GiB gets anything else than NCCL's own choice.
  bool has_opinion() const {
    std::array<float, 21> costs;
    costs.fill(-1);
    for (std::size_t i = 0; i < 3; ++i) {
      costs[i] = 300;
      costs[3 + i] = 200;
    }
    const auto before = costs;
    int channels = 0;
    constexpr std::size_t gib = std::size_t{1} << 30;
    constexpr int all_reduce = 4;
    CHECK(tuner_->choose(context_, all_reduce, gib, 1, reinterpret_cast<float**>(costs.data()), 7,
                         3, 0, &channels) == 0);
    return costs != before || channels != 0;
  }

 private:
  const weft::adapt::nccl::Tuner4* tuner_ = nullptr;
  void* context_ = nullptr;
};

}  // namespace

TEST_CASE("path health: a slow NIC reaches NCCL's tuner by way of service and agent, and is gone") {
  const Scratch scratch;
  scratch.write("zone.yaml", health_zone);
  const int service = scratch.start({"serve", "--fabric", "zone.yaml", "--store", "weft.db",
                                     "--listen", "unix:api.sock", "--health", "service.health"},
                                    "serve");
  CHECK(seconds_until([&] { return scratch.read("serve.err").contains("ready,"); }) < 60);
  const int agent =
      scratch.start({"agent", "--fabric", "zone.yaml", "--device", "host:2", "--to",
                     "unix:api.sock", "--health", "host.health", "--interval", "200 ms", "--quiet"},
                    "agent");
  const Tuned nccl(scratch.path() + "/host.health");
  CHECK(seconds_until([&] { return scratch.has("host.health"); }) < 60);
  std::this_thread::sleep_for(500ms);
  CHECK_FALSE(nccl.has_opinion());

  int number = 0;
  const auto tell = [&](const char* share) {
    httplib::Client client(scratch.path() + "/api.sock");
    client.set_address_family(AF_UNIX);
    const std::string line =
        fmt::format(R"({{"id":"r{}","t":"{}","source":"agent","kind":"info","entity":"nic:7",)"
                    R"("attrs":{{"rate_share":"{}"}}}})",
                    ++number, std::chrono::system_clock::now().time_since_epoch().count(), share);
    const auto answer = client.Post("/v1/records", line, "application/x-ndjson");
    REQUIRE(answer);
    CHECK(answer->status == 200);
  };
  tell("0.5");
  const double on_s = seconds_until([&] { return nccl.has_opinion(); });
  const auto shown = scratch.run({"agent", "--show-health", "host.health", "--json"});
  tell("1");
  const double off_s = seconds_until([&] { return !nccl.has_opinion(); });
  MESSAGE("from the record to another choice ", on_s, " s, and back ", off_s, " s");
  CHECK(on_s < 10);
  CHECK(off_s < 10);
  CHECK(shown.status == 0);
  const auto table = nlohmann::json::parse(shown.out);
  CHECK(table["rails"][7]["worst_rate"] == 0.5);
  CHECK(table["links"].size() == 2);
  CHECK(table["links"][0]["evidence"][0] == "slow");
  CHECK_FALSE(table["advice"].empty());
  CHECK(table["is_fresh"] == true);

  for (const int process : {service, agent}) {
    ::kill(process, SIGKILL);
    weft::cli_test::wait_for(process);
  }
}
