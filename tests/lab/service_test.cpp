// The whole circle on a real fabric: a fault is put in, the service finds it, takes a snapshot,
// asks what a drain would cost, drains, waits until the part is mended, tests it, and takes it
// back.
#include <doctest/doctest.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/rng.hpp"
#include "base/test_skip.hpp"
#include "base/text.hpp"
#include "base/timestamp.hpp"
#include "lab_kit.hpp"
#include "socket_client.hpp"

using namespace weft;
using namespace weft::lab_test;
using nlohmann::json;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

constexpr const char* config = R"(
policy:
  defaults: {soak: 3 s, verify: {packets: 8000, lost: 0}}  # 0.2 % in one direction: 8 lost
  timing: {recheck: 1 s, recheck_max: 2 s, grace: 2 s}
objectives:
  objectives: [{name: cross-rack, scope: cross-rack, loss: 0.01 %, minimum_probes: 1000}]
)";

constexpr const char* forgets_soon = "localise: {keep: 4 s, every: 500 ms}\n";

// Sanitizers make everything some times slower: there only what happens counts, not when.
#ifdef WEFT_SANITIZED
constexpr double slower = 10;
constexpr const char* crossings = "250";  // more may take more than two processors
constexpr std::size_t lossy_cables = 1;   // so few probes do not settle on 0.5 %
#else
constexpr double slower = 1;
constexpr const char* crossings = "1000";
constexpr std::size_t lossy_cables = 2;
#endif

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// What a service says, over its API.
class Service {
 public:
  virtual ~Service() = default;
  virtual httplib::Client client() = 0;

  std::optional<json> get(const std::string& path) {
    const auto answer = client().Get(path);
    if (!answer || answer->status != 200) return std::nullopt;
    json out = json::parse(answer->body, nullptr, false);
    return out.contains("items") ? out["items"] : out;
  }
  // Documents whose cause or part is `entity`.
  std::optional<json> find_case(const std::string& entity) {
    const auto list = get("/v1/cases");
    if (list)
      for (const json& c : *list)
        if (c["cause"]["entity"] == entity && c["standing"] != "superseded") return c;
    return std::nullopt;
  }
  // Causes of the cases that were ever published, of those that are still believed in, and of those
  // that will not change any more.
  struct Causes {
    std::set<std::string> ever, believed, final;
  };
  Causes causes() {
    Causes out;
    const auto list = get("/v1/cases?limit=1000");
    if (!list) return out;
    for (const json& c : *list) {
      const std::string cause = fmt::format("{} {}", c["cause"]["kind"].get<std::string>(),
                                            c["cause"]["entity"].get<std::string>());
      out.ever.insert(cause);
      const bool is_gone = c["standing"] == "superseded" || c["standing"] == "withdrawn";
      if (!is_gone) out.believed.insert(cause);
      if (c["standing"] == "open" || c["standing"] == "closed") out.final.insert(cause);
    }
    return out;
  }
  // When each part was drained, by the audit log.
  std::map<std::string, std::vector<std::string>> drains() {
    std::map<std::string, std::vector<std::string>> out;
    const auto list = get("/v1/audit?limit=1000");
    if (!list) return out;
    for (const json& entry : *list)
      if (entry["action"] == "stage" && entry["detail"].value("to", "") == "drained")
        out[entry["detail"].value("part", "")].push_back(entry["t"]);
    return out;
  }
  std::string stage(const std::string& part) {
    const auto list = get("/v1/repairs");
    std::string out;
    if (list)
      for (const json& repair : *list)
        if (repair.value("part", "") == part && out.empty()) out = repair["stage"];
    return out;
  }
  static bool wait_until(std::chrono::milliseconds patience, const std::function<bool()>& so) {
    const auto start = Clock::now();
    while (seconds_since(start) < slower * std::chrono::duration<double>(patience).count()) {
      if (so()) return true;
      std::this_thread::sleep_for(50ms);
    }
    return so();
  }
};

class ServiceLab : public TestLab, public Service {
 public:
  ~ServiceLab() override {
    if (server_ > 0) stop(SIGTERM);
  }

  // A lab, its ways learned, the service, and probes from every host to every other.
  void begin(const std::string& more_config = forgets_soon,
             const std::vector<std::string>& options = {}) {
    up({"--syslog"});
    learn(crossings, "1 s");
    serve(more_config, options);
    probe();
    std::this_thread::sleep_for(3s);
  }
  void serve(const std::string& more_config = forgets_soon,
             const std::vector<std::string>& options = {}) {
    scratch().write("serve.yaml", config + more_config);
    std::vector<std::string> words{
        "serve",     "--fabric",   "zone.yaml",       "--lab",   name(),
        "--config",  "serve.yaml", "--store",         "weft.db", "--snapshots",
        "snapshots", "--listen",   "unix:" + socket()};
    words.insert(words.end(), options.begin(), options.end());
    server_ = scratch().start(words, "serve.out");
    REQUIRE_MESSAGE(wait_until(10s, [this] { return get("/readyz").has_value(); }),
                    scratch().read("serve.out.err"));
  }
  int stop(int signal) {
    ::kill(server_, signal);
    return cli_test::wait_for(std::exchange(server_, 0));
  }

  // All hosts probe until the end of the lab, and send what they find. The sender ends when the
  // prober, whose process this is, closes the pipe.
  void probe() {
    for (int host = 0; host < host_count; ++host) {
      const std::string command = fmt::format(
          "mkfifo pipe{1} && {{ {0} send --to unix:{2} --feed evidence --spool spool{1} --linger "
          "1s < pipe{1} & }} && "
          "exec {0} probe --plan plan.jsonl --fabric zone.yaml --from host:{1} --addresses "
          "addresses.csv --key key --window 1s --late 400ms --timeout 100ms "
          "--duration 1200s --json > pipe{1}",
          WEFT_BINARY, host, socket());
      keep(start_program(host, {"/bin/sh", "-c", command}, fmt::format("p{}", host)));
    }
  }

  // Taken within a second of the case, and whole.
  void check_snapshot(const std::string& case_id) {
    const auto list = get("/v1/snapshots");
    REQUIRE(list.has_value());
    std::string path;
    for (const json& one : *list)
      if (one["case"] == case_id) path = one["path"];
    REQUIRE_FALSE(path.empty());
    const Outcome verified = scratch().run({"snapshot", "verify", path});
    CHECK_MESSAGE(verified.status == 0, verified.err);
    CHECK(scratch().run({"snapshot", "show", path}).out.find("bgp_summary") != std::string::npos);
  }
  // Cases, this one among them, are what made minutes bad; none is without an explanation.
  void check_minutes(const std::string& from, const std::string& case_id) {
    const auto report = get("/v1/sli?from=" + from + "&to=" + to_text(Timestamp{now_ns()}));
    REQUIRE(report.has_value());
    const json& all = (*report)["series"].at(0);
    CHECK(all["entity"] == "all");
    CHECK(all["minutes"]["bad"] >= 1);
    bool is_named = false;
    for (const json& cause : all["causes"]) {
      CHECK_MESSAGE(cause["episode"].is_string(), all["causes"].dump());
      is_named |= cause["episode"] == case_id;
    }
    CHECK_MESSAGE(is_named, all["causes"].dump());
  }
  // Whatever was bad is put down to one of these causes, "cable rtsw:1--ctsw:2"; some seconds of
  // loss may also be too little for a bad minute.
  void check_blame(const std::string& from, const std::set<std::string>& causes) {
    const auto report = get("/v1/sli?from=" + from + "&to=" + to_text(Timestamp{now_ns()}));
    const auto list = get("/v1/cases?limit=1000");
    REQUIRE((report.has_value() && list.has_value()));
    for (const json& blamed : (*report)["series"].at(0)["causes"])
      for (const json& c : *list)
        if (c["id"] == blamed["episode"])
          CHECK_MESSAGE(causes.contains(fmt::format("{} {}", c["cause"]["kind"].get<std::string>(),
                                                    c["cause"]["entity"].get<std::string>())),
                        blamed.dump());
  }
  static std::int64_t now_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
  std::string socket() { return scratch().path() + "/api.sock"; }
  httplib::Client client() override {
    httplib::Client out = cli_test::socket_client(socket());
    out.set_read_timeout(static_cast<time_t>(5 * slower));
    return out;
  }

 private:
  int server_ = 0;
};

// The cases, and the words of the audit log, in order.
std::string story(Service& lab) {
  std::string out = lab.get("/v1/cases").value_or(json()).dump() + "\n";
  const auto list = lab.get("/v1/audit?limit=1000");
  if (list)
    for (const json& entry : *list)
      out += fmt::format("{} {} {} {}\n", entry["t"].get<std::string>(),
                         entry["case"].get<std::string>(), entry["action"].get<std::string>(),
                         entry["detail"].dump().substr(0, 300));
  return out;
}

TEST_CASE("a fault is found, drained, mended, tested and taken back") {
  if (skips_without_lab()) return;
  Rng rng(doctest::getContextOptions()->rand_seed);  // --rand-seed=N
  const auto any = [&](int count) { return rng.below(static_cast<std::uint64_t>(count)); };
  ServiceLab lab;
  const std::string start_of_day = to_text(Timestamp{ServiceLab::now_ns()});
  lab.begin();
  CHECK_MESSAGE(lab.get("/v1/cases").value_or(json()) == json::array(), story(lab));

  const std::string cut = fmt::format("rtsw:{}--ctsw:{}", any(rack_count), any(spine_count));
  auto start = Clock::now();
  CHECK(lab.lab({"fault", "link_down", cut}).status == 0);
  CHECK(lab.wait_until(10s, [&] { return lab.find_case(cut).has_value(); }));
  const double found_s = seconds_since(start);
  CHECK(lab.wait_until(
      10s, [&] { return lab.stage(cut) == "drained" || lab.stage(cut) == "repairing"; }));
  const double drained_s = seconds_since(start);
  MESSAGE("link down: case after " << found_s << " s, drained after " << drained_s << " s");
  CHECK_MESSAGE(found_s <= 2 * slower, story(lab));
  CHECK_MESSAGE(drained_s <= 5 * slower, story(lab));
  // The service dies and comes back in the middle of it.
  CHECK(lab.stop(SIGKILL) == -1);
  lab.serve();
  CHECK(lab.lab({"heal", "all"}).status == 0);
  CHECK_MESSAGE(lab.wait_until(30s, [&] { return lab.stage(cut) == "returned"; }), story(lab));

  // Another one: what fails again is kept out for long.
  const int rack = (cut[5] - '0' + 1) % rack_count;
  std::string lossy = fmt::format("ctsw:{}->rtsw:{}", any(spine_count), rack);
  const std::string cable = lossy.substr(8) + "--" + lossy.substr(0, 6);
  if (any(2) == 1) lossy = lossy.substr(8) + "->" + lossy.substr(0, 6);
  start = Clock::now();
  CHECK(lab.lab({"fault", "link_lossy", lossy, "--rate", "1%"}).status == 0);
  CHECK_MESSAGE(
      lab.wait_until(
          25s, [&] { return lab.stage(cable) == "repairing" || lab.stage(cable) == "drained"; }),
      story(lab));
  const double grey_s = seconds_since(start);
  MESSAGE("1 % loss on " << lossy << ": drained after " << grey_s << " s");
  CHECK(grey_s <= 20 * slower);
  CHECK(lab.lab({"heal", "all"}).status == 0);
  CHECK_MESSAGE(lab.wait_until(30s, [&] { return lab.stage(cable) == "returned"; }), story(lab));

  const auto lossy_case = lab.find_case(cable);
  REQUIRE(lossy_case.has_value());
  lab.check_snapshot((*lossy_case)["id"]);
  lab.check_minutes(start_of_day, (*lossy_case)["id"]);
  const auto ledger = lab.get("/v1/ledger");
  REQUIRE(ledger.has_value());
  CHECK_MESSAGE((*ledger)["problems"].at(0)["repairs"] == 2, ledger->dump());
  CHECK(lab.stop(SIGTERM) == 0);
  lab.down();
}

TEST_CASE("what a drain does to the network is nobody's fault: the final case is the cable") {
  if (skips_without_lab()) return;
  ServiceLab lab;
  const std::string start_of_day = to_text(Timestamp{ServiceLab::now_ns()});
  lab.begin();
  std::set<std::string> cables;
  const std::array faults{std::tuple("ctsw:2->rtsw:1", "rtsw:1--ctsw:2", "1%"),
                          std::tuple("rtsw:3->ctsw:0", "rtsw:3--ctsw:0", "0.5%")};
  for (const auto& [from, cable, rate] : faults | std::views::take(lossy_cables)) {
    CAPTURE(cable);
    CHECK(lab.lab({"fault", "link_lossy", from, "--rate", rate}).status == 0);
    const auto is_out = [&] { return lab.stage(cable) == "repairing"; };
    REQUIRE_MESSAGE(lab.wait_until(60s, is_out), story(lab));
    CHECK(lab.lab({"heal", "all"}).status == 0);
    CHECK_MESSAGE(lab.wait_until(30s, [&] { return lab.stage(cable) == "returned"; }), story(lab));
    cables.insert(fmt::format("cable {}", cable));
    // Half a minute of lateness, and as long for the losses that may still come.
    CHECK_MESSAGE(lab.wait_until(150s, [&] { return lab.causes().final == cables; }), story(lab));
    const auto lossy_case = lab.find_case(cable);
    REQUIRE(lossy_case.has_value());
    CHECK((*lossy_case)["standing"] != "provisional");
    lab.check_blame(start_of_day, cables);
  }
  for (const std::string& cause : lab.causes().ever)
    CHECK_MESSAGE(!cause.starts_with("misconfiguration"), story(lab));
  CHECK(lab.stop(SIGTERM) == 0);
  lab.down();
}

TEST_CASE("a spine that eats some flows costs no healthy part, and no part more than twice") {
  if (skips_without_lab()) return;
  ServiceLab lab;
  lab.begin();
  // Which flows the hash eats is chance: a seed that eats one that is probed.
  bool is_seen = false;
  for (int seed = 1; seed <= 8 && !is_seen; ++seed) {
    CHECK(lab.lab({"heal", "all"}).status == 0);
    CHECK(lab.lab({"fault", "switch_lossy", "ctsw:2", "--bucket", "3/64", "--seed",
                   std::to_string(seed)})
              .status == 0);
    is_seen = lab.wait_until(12s, [&] { return !lab.drains().empty(); });
  }
  CHECK_MESSAGE(is_seen, story(lab));  // that no probed flow is eaten by 8 seeds: 1 in 500
  std::this_thread::sleep_for(120s);
  CHECK(lab.lab({"heal", "all"}).status == 0);
  std::this_thread::sleep_for(30s);
  for (const std::string& cause : lab.causes().ever) MESSAGE("a case: " << cause);
  for (const auto& [part, times] : lab.drains()) {
    MESSAGE(part << " was drained " << times.size() << " times");
    CHECK_MESSAGE(part.ends_with("ctsw:2"), story(lab));
    CHECK_MESSAGE(times.size() <= 2, story(lab));
  }
  CHECK(lab.stop(SIGTERM) == 0);
  lab.down();
}

// A job of one rank on each host, traced by the plugin as in production, whose rings the agents
// send. Nothing is drained, so that the job goes on over the bad cable.
TEST_CASE("a lossy cable under a traced job: one case that names the cable and the job") {
  if (skips_without_lab()) return;
  const auto start = Clock::now();
  ServiceLab lab;
  lab.scratch().write("queue", "17|ann|0|host[0-7]|llama\n");
  lab.begin(std::string(forgets_soon) +
                "traces: {every: 1 s}\njobs: {from: slurm, every: 1 s, run: [/bin/cat, queue]}\n",
            {"--traces", "traces"});
  REQUIRE(lab.client().Put("/v1/kill-switch", R"({"reason":"the job shall go on"})",
                           "application/json"));
  for (int host = 0; host < host_count; ++host) {
    const std::string rings = fmt::format("{}/rings{}", lab.scratch().path(), host);
    lab.scratch().write(fmt::format("rings{}/about", host), "of one host");
    lab.keep(
        lab.start_program(host,
                          {"/usr/bin/env", "WEFT_NCCL_DIR=" + rings, fmt::format("RANK={}", host),
                           WEFT_RING_JOB, WEFT_NCCL_PLUGIN, std::to_string(host)},
                          fmt::format("j{}", host)));
    lab.keep(lab.start(host,
                       {"agent", "--fabric", "zone.yaml", "--device", fmt::format("host:{}", host),
                        "--to", "unix:" + lab.socket(), "--traces", rings, "--trace-every", "2 s",
                        "--spool", fmt::format("agent{}", host), "--quiet"},
                       fmt::format("a{}", host)));
  }
  // Sound: every rank is there, and nothing is said against any part.
  const auto trace = [&] { return lab.get("/v1/jobs/17/trace").value_or(json::object()); };
  REQUIRE_MESSAGE(lab.wait_until(30s,
                                 [&] {
                                   const json t = trace();
                                   return t.value("ranks", 0) == host_count &&
                                          t.value("/network/edges"_json_pointer, 0) == 48;
                                 }),
                  trace().dump(1) << story(lab));
  MESSAGE("sound: " << trace()["network"].dump());
  CHECK(lab.causes().ever.empty());

  constexpr const char* cable = "rtsw:1--ctsw:2";
  for (const char* link : {"rtsw:1->ctsw:2", "ctsw:2->rtsw:1"})
    CHECK(lab.lab({"fault", "link_lossy", link, "--rate", "4%"}).status == 0);
  const auto fault = Clock::now();
  // Ids of the job's records in the case of the cable.
  const auto words = [&] {
    std::vector<std::string> out;
    const auto found = lab.find_case(cable);
    if (found)
      for (const json& member : (*found)["members"])
        if (const std::string id = member["record"]; id.starts_with("job:17/")) out.push_back(id);
    return out;
  };
  const bool is_named = lab.wait_until(60s, [&] { return !words().empty(); });
  MESSAGE("the case has the job after " << seconds_since(fault) << " s: " << trace().dump());
  REQUIRE_MESSAGE(is_named, story(lab));
  for (const std::string& id : words())
    CHECK_MESSAGE((id.find("rtsw:1--ctsw:2") != id.npos || id.find("rtsw:1->ctsw:2") != id.npos ||
                   id.find("ctsw:2->rtsw:1") != id.npos),
                  id);
  CHECK(trace()["network"]["network"] > 0.5);
  const std::set<std::string> only{fmt::format("cable {}", cable)};
  CHECK_MESSAGE(lab.causes().final.size() <= 1, story(lab));
  for (const std::string& cause : lab.causes().ever)
    CHECK_MESSAGE(only.contains(cause), story(lab));
  CHECK(lab.drains().empty());
  MESSAGE("all of it took " << seconds_since(start) << " s");
  CHECK(lab.stop(SIGTERM) == 0);
  lab.down();
}

// One after the other, as docs/world.md has them of a simulated network.
struct Kind {
  std::string kind, target;
  std::vector<std::string> options;
  std::set<std::string> parts;  // any of these is the right root; none: it needs no case
  enum class Found : std::uint8_t { yes, no } found = Found::yes;  // docs/world.md says why not
};

std::vector<Kind> kinds() {
  const auto cable = [](std::string part) { return std::set<std::string>{std::move(part)}; };
  return {
      {"link_down", "rtsw:0--ctsw:0", {}, cable("rtsw:0--ctsw:0")},
      {"dead_link", "rtsw:1--ctsw:1", {}, cable("rtsw:1--ctsw:1")},
      {"link_lossy", "ctsw:2->rtsw:2", {"--rate", "1%"}, cable("rtsw:2--ctsw:2")},
      {"link_lossy", "rtsw:3--ctsw:3", {"--bucket", "3/64"}, cable("rtsw:3--ctsw:3")},
      {"link_lossy", "nic:4--rtsw:2", {"--rate", "1%"}, {"nic:4", "nic:4--rtsw:2", "host:4"}},
      {"link_degraded",
       "rtsw:3--ctsw:0",
       {"--rate", "20 Mbps"},
       cable("rtsw:3--ctsw:0"),
       Kind::Found::no},
      {"port_flap", "rtsw:0--ctsw:1", {"--period", "2 s", "--count", "8"}, cable("rtsw:0--ctsw:1")},
      {"corrupt", "rtsw:1->ctsw:2", {"--rate", "1%"}, cable("rtsw:1--ctsw:2")},
      {"delay", "rtsw:2->ctsw:3", {"--delay", "2 ms"}, cable("rtsw:2--ctsw:3")},
      {"jitter", "rtsw:3->ctsw:1", {"--jitter", "4 ms"}, cable("rtsw:3--ctsw:1")},
      {"reorder", "rtsw:0->ctsw:2", {"--rate", "5%"}, cable("rtsw:0--ctsw:2"), Kind::Found::no},
      {"duplicate", "rtsw:1->ctsw:3", {"--rate", "1%"}, cable("rtsw:1--ctsw:3")},
      {"switch_down", "ctsw:0", {}, {"ctsw:0"}},
      {"switch_lossy", "ctsw:1", {"--rate", "1%"}, {"ctsw:1"}},
      {"daemon_kill", "ctsw:2", {}, {"ctsw:2"}},
      {"daemon_kill", "ctsw:2", {"--daemon", "zebra"}, {"ctsw:2"}},
      {"daemon_stop", "ctsw:3", {}, {"ctsw:3"}},
      {"daemon_hang", "ctsw:0", {}, {"ctsw:0"}},
      {"daemon_hang", "ctsw:1", {"--daemon", "zebra"}, {"ctsw:1"}},
      {"blackhole", "ctsw:3", {"--to", "host:5"}, {"ctsw:3"}},
      {"icmp_ratelimit", "ctsw:2", {}, {}, Kind::Found::no},
  };
}

struct KindResult {
  std::optional<double> case_s, drain_s, back_s;
  std::set<std::string> roots, drained;  // of all cases and drains meanwhile
};

KindResult try_kind(ServiceLab& lab, const Kind& kind) {
  KindResult out;
  const auto before = lab.causes().ever;
  const auto drained_before = lab.drains();
  std::vector<std::string> words{"fault", kind.kind, kind.target};
  words.insert(words.end(), kind.options.begin(), kind.options.end());
  const Outcome injected = lab.lab(words);
  REQUIRE_MESSAGE(injected.status == 0, injected.err);
  const auto start = Clock::now();
  const auto is_found = [&] {
    return std::ranges::any_of(kind.parts, [&](const std::string& part) {
      const auto found = lab.find_case(part);
      return found && (*found)["closed"].is_null();
    });
  };
  const auto is_drained = [&] {
    return std::ranges::any_of(kind.parts, [&](const std::string& part) {
      const std::string stage = lab.stage(part);
      return stage == "drained" || stage == "repairing";
    });
  };
  if (lab.wait_until(30s, is_found)) {
    out.case_s = seconds_since(start);
    if (lab.wait_until(15s, is_drained)) out.drain_s = seconds_since(start);
  }
  CHECK(lab.lab({"heal", "all"}).status == 0);
  const auto healed = Clock::now();
  const auto is_quiet = [&] {
    const auto list = lab.get("/v1/repairs");
    return list && std::ranges::none_of(*list, [](const json& repair) {
             return repair["ended"].is_null() && !repair.value("part", std::string()).empty();
           });
  };
  if (lab.wait_until(out.drain_s ? 90s : 5s, is_quiet) && out.drain_s)
    out.back_s = seconds_since(healed);
  std::this_thread::sleep_for(10s);
  for (const std::string& cause : lab.causes().ever)
    if (!before.contains(cause)) out.roots.insert(cause);
  for (const auto& [part, times] : lab.drains())
    if (const auto at = drained_before.find(part);
        at == drained_before.end() || at->second.size() < times.size())
      out.drained.insert(part);
  return out;
}

// One kind, or those that -sc="blackhole*" names, in a lab of its own each: what a fault leaves in
// the service's memory is not the next one's. The localiser is as it comes.
TEST_CASE("every kind of fault that the lab makes: found, drained, healed, returned" *
          doctest::skip()) {
  if (skips_without_lab()) return;
  const auto seconds = [](const std::optional<double>& s) {
    return s ? fmt::format("{:.1f}", *s) : std::string("-");
  };
  for (const Kind& kind : kinds()) {
    const std::string name =
        fmt::format("{} {} {}", kind.kind, kind.target, fmt::join(kind.options, " "));
    SUBCASE(name.c_str()) {
      ServiceLab lab;
      lab.begin("");
      const KindResult result = try_kind(lab, kind);
      fmt::print(stderr,
                 "{:45} case {:>5} s, drain {:>5} s, back {:>5} s; cases: {}; drained: {}\n", name,
                 seconds(result.case_s), seconds(result.drain_s), seconds(result.back_s),
                 fmt::join(result.roots, ", "), fmt::join(result.drained, ", "));
      if (kind.found == Kind::Found::yes)
        CHECK_MESSAGE(result.case_s.value_or(99) <= 20, story(lab));
      if (kind.parts.empty()) CHECK_MESSAGE(result.roots.empty(), story(lab));
      const auto is_of_it = [&](const std::string& what) {
        return std::ranges::any_of(
            kind.parts, [&](const std::string& one) { return what.find(one) != what.npos; });
      };
      // Cases and drains of parts that are well.
      for (const std::string& root : result.roots) CHECK_MESSAGE(is_of_it(root), story(lab));
      for (const std::string& part : result.drained) CHECK_MESSAGE(is_of_it(part), story(lab));
      CHECK(lab.stop(SIGTERM) == 0);
      lab.down();
    }
  }
}

// The lab and the site of `weft up --lab`, which plans its probes anew when routes change.
class SiteLab : public Service {
 public:
  SiteLab() : name_(fmt::format("u{}", ::getpid() % 1'000'000)) {
    up_ = scratch_.start({"up", "--lab", "site", "--name", name_, "--no-fault"}, "up.out");
    const auto is_up = [&] { return scratch_.read("up.out").contains("all hosts probe"); };
    REQUIRE_MESSAGE(wait_until(60s, is_up), scratch_.read("up.out.err"));
    std::this_thread::sleep_for(5s);
  }
  ~SiteLab() override {
    ::kill(up_, SIGTERM);
    cli_test::wait_for(up_);
    scratch_.run({"lab", "down", "--name", name_});
  }
  Outcome lab(std::vector<std::string> words) const {
    words.insert(words.begin(), "lab");
    words.insert(words.end(), {"--name", name_});
    return scratch_.run(words);
  }
  httplib::Client client() override { return httplib::Client("127.0.0.1", 8630); }

 private:
  Scratch scratch_;
  std::string name_;
  int up_ = 0;
};

// Two or three faults at once, each at a spine of its own, and when each comes.
struct Planted {
  Kind fault;
  double after_s;
};

std::vector<Planted> sequence(std::uint64_t number) {
  Rng rng = Rng(number).stream("sequence");
  const auto any = [&](std::uint64_t count) { return rng.below(count); };
  std::vector<Planted> out;
  std::set<std::uint64_t> used;
  for (std::uint64_t left = 2 + any(2); left > 0; --left) {
    std::uint64_t spine = any(spine_count);
    while (!used.insert(spine).second) spine = any(spine_count);
    const std::string upper = fmt::format("ctsw:{}", spine);
    const std::string lower = fmt::format("rtsw:{}", any(rack_count));
    const std::string cable = fmt::format("{}--{}", lower, upper);
    const std::string one_way =
        any(2) == 0 ? fmt::format("{}->{}", lower, upper) : fmt::format("{}->{}", upper, lower);
    const std::vector<Kind> choice{
        {"link_down", cable, {}, {cable}},
        {"dead_link", cable, {}, {cable}},
        {"link_lossy", one_way, {"--rate", fmt::format("{}%", 1 + any(9))}, {cable}},
        {"port_flap", cable, {"--period", "2 s", "--count", "8"}, {cable}},
        {"corrupt", one_way, {"--rate", fmt::format("{}%", 1 + any(9))}, {cable}},
        {"delay", one_way, {"--delay", fmt::format("{} ms", 3 + any(6))}, {cable}},
        {"jitter", one_way, {"--jitter", fmt::format("{} ms", 5 + any(5))}, {cable}},
        {"duplicate", one_way, {"--rate", "1%"}, {cable}},
        {"switch_down", upper, {}, {upper}},
        {"switch_lossy", upper, {"--rate", fmt::format("{}%", 1 + any(9))}, {upper}},
        {"daemon_kill", upper, {}, {upper}},
        {"daemon_kill", upper, {"--daemon", "zebra"}, {upper}},
        {"daemon_stop", upper, {}, {upper}},
        {"daemon_hang", upper, {}, {upper}},
        {"daemon_hang", upper, {"--daemon", "zebra"}, {upper}},
        {"blackhole", upper, {"--to", fmt::format("host:{}", any(host_count))}, {upper}}};
    out.push_back({choice[any(choice.size())], 10 * rng.uniform()});
  }
  std::ranges::sort(out, {}, &Planted::after_s);
  return out;
}

// What came of a sequence: cases believed in at the end, parts drained, and parts never returned.
struct SequenceResult {
  std::set<std::string> roots, drained, kept_out;
};

SequenceResult try_sequence(SiteLab& lab, const std::vector<Planted>& sequence) {
  const auto start = Clock::now();
  for (const auto& [fault, after_s] : sequence) {
    std::this_thread::sleep_until(start + std::chrono::duration<double>(after_s));
    std::vector<std::string> words{"fault", fault.kind, fault.target};
    words.insert(words.end(), fault.options.begin(), fault.options.end());
    const Outcome injected = lab.lab(words);
    REQUIRE_MESSAGE(injected.status == 0, injected.err);
  }
  lab.wait_until(40s, [&] {
    return std::ranges::all_of(sequence, [&](const Planted& planted) {
      return std::ranges::any_of(planted.fault.parts,
                                 [&](const auto& part) { return lab.find_case(part).has_value(); });
    });
  });
  std::this_thread::sleep_for(10s);
  CHECK(lab.lab({"heal", "all"}).status == 0);
  SequenceResult out;
  lab.wait_until(120s, [&] {
    out.kept_out.clear();
    for (const auto& [part, times] : lab.drains())
      if (lab.stage(part) != "returned") out.kept_out.insert(part);
    return out.kept_out.empty();
  });
  // For evidence that may still come.
  std::this_thread::sleep_for(15s);
  out.roots = lab.causes().believed;
  for (const auto& [part, times] : lab.drains()) out.drained.insert(part);
  return out;
}

// Some: -sc="sequence 01?". A minute and a half each.
TEST_CASE("a hundred sequences of faults that overlap" * doctest::skip()) {
  if (skips_without_lab()) return;
  for (std::uint64_t number = 1; number <= 100; ++number)
    SUBCASE(fmt::format("sequence {:03}", number).c_str()) {
      const std::vector<Planted> planted = sequence(number);
      SiteLab lab;
      const SequenceResult result = try_sequence(lab, planted);
      std::string text = fmt::format("sequence {:03}:", number);
      for (const auto& [fault, after_s] : planted)
        text += fmt::format(" {} {} {} at {:.1f} s;", fault.kind, fault.target,
                            fmt::join(fault.options, " "), after_s);
      fmt::print(stderr, "{}\n  cases: {}; drained: {}; kept out: {}\n", text,
                 fmt::join(result.roots, ", "), fmt::join(result.drained, ", "),
                 fmt::join(result.kept_out, ", "));
      // A case "cable rtsw:0--ctsw:1"; what is drained may be a cable of a faulty switch.
      const auto is_of = [&](const auto& same) {
        return std::ranges::any_of(planted, [&](const Planted& one) {
          return std::ranges::any_of(one.fault.parts, same);
        });
      };
      std::string wrong;
      for (const Planted& one : planted)
        if (std::ranges::none_of(result.roots, [&](const std::string& root) {
              return one.fault.parts.contains(root.substr(root.find(' ') + 1));
            }))
          wrong += "; not found: " + one.fault.target;
      for (const std::string& root : result.roots)
        if (!is_of([&](const auto& part) { return root.ends_with(" " + part); }))
          wrong += "; false: " + root;
      for (const std::string& part : result.drained)
        if (!is_of([&](const auto& one) { return part == one || part.ends_with("--" + one); }))
          wrong += "; drained: " + part;
      CHECK_MESSAGE(wrong.empty(), text << wrong << "\n" << story(lab));
      CHECK_MESSAGE(result.kept_out.empty(), text << "\n" << story(lab));
    }
}

}  // namespace
