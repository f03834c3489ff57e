#include "adapt/lab/fault.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <iterator>
#include <memory>
#include <set>

#include "adapt/lab/build.hpp"
#include "adapt/lab/fault_book.hpp"
#include "adapt/lab/fault_test_net.hpp"
#include "adapt/lab/routes.hpp"
#include "base/config.hpp"
#include "base/file.hpp"
#include "model/formats/build_fabric.hpp"

namespace weft::adapt::lab {
namespace {

using testing::TestNet;

//   host:0 -- rtsw:0   rtsw:1 -- host:1
//                 | \ / |
//                 | / \ |
//             ctsw:0   ctsw:1          static routes
class TestLab {
 public:
  TestLab() = default;
  static Result<std::unique_ptr<TestLab>> make() {
    static int made = 0;
    WEFT_TRY(const Config section,
             parse_yaml("{generator: ai_zone, racks: 2, hosts_per_rack: 1, gpus_per_host: 1, "
                        "spines: 2, link: 100 Gbps}",
                        "test.yaml"));
    auto out = std::make_unique<TestLab>();
    WEFT_TRY(out->lab.fabric, model::build_fabric(section));
    out->lab.options.routing = Routing::static_routes;
    out->lab.options.name = fmt::format("f{}_{}", ::getpid() % 1'000'000, made++);
    WEFT_TRY(out->lab.plan, make_plan(out->lab.fabric, {.lab = out->lab.options.name}));
    out->lab.directory =
        (std::filesystem::temp_directory_path() / ("weft-test-" + out->lab.options.name)).string();
    std::error_code error;
    std::filesystem::create_directories(out->lab.directory, error);
    WEFT_TRY_STATUS(out->build());
    return out;
  }
  ~TestLab() {
    static_cast<void>(end_processes(read_journal(lab.journal()), std::chrono::seconds(2)));
    for (const LabNode& node : lab.plan.nodes) static_cast<void>(delete_netns(node.netns));
    std::error_code ignored;
    std::filesystem::remove_all(lab.directory, ignored);
  }
  TestLab(const TestLab&) = delete;
  TestLab& operator=(const TestLab&) = delete;

  // Of all namespaces.
  std::string kernel_state() const {
    std::string text;
    for (const LabNode& node : lab.plan.nodes)
      text += node.name + "\n" + TestNet::kernel_state(node.netns);
    return text;
  }
  // The lines in which the state differs from what it was. The kernel sees to carriers in its own
  // time, so that it is given some.
  std::string changes(const std::string& before) const {
    std::string out = difference(before, kernel_state());
    for (int i = 0; i < 150 && !out.empty(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      out = difference(before, kernel_state());
    }
    return out;
  }
  std::string state_of(const std::string& node) const {
    return TestNet::kernel_state(lab.plan.nodes[*lab.plan.find_node(lab.fabric, {node, {}})].netns);
  }
  FaultRecord inject(std::string_view kind, std::string_view target,
                     const std::vector<FaultOption>& options = {}) const {
    const auto record = try_inject(kind, target, options);
    REQUIRE_MESSAGE(record.has_value(), (record ? "" : record.error().text()));
    return *record;
  }
  Result<FaultRecord> try_inject(std::string_view kind, std::string_view target,
                                 const std::vector<FaultOption>& options = {}) const {
    WEFT_TRY(const FaultSpec spec, parse_fault(kind, target, options));
    return inject_fault(lab, spec);
  }
  void heal(std::string_view which) const {
    const auto healed = heal_faults(lab, which);
    REQUIRE_MESSAGE(healed.has_value(), (healed ? "" : healed.error().text()));
  }
  std::vector<FaultRecord> list() const {
    auto listed = list_faults(lab);
    REQUIRE_MESSAGE(listed.has_value(), (listed ? "" : listed.error().text()));
    return *std::move(listed);
  }
  // Packets that come back of `count` from host 0 to host 1.
  int ping(int count) const {
    const auto& net = lab.plan.nodes[*lab.plan.find_node(lab.fabric, {"host:0", {}})].netns;
    const std::string out = TestNet::command_in(
        net,
        {"ping", "-q", "-n", "-c", fmt::format("{}", count), "-i", "0.01", "-W", "1", "10.0.0.2"});
    const std::size_t at = out.find(" received");
    const std::size_t from = out.rfind(' ', at - 1);
    return at == std::string::npos ? -1 : std::stoi(out.substr(from));
  }

  Lab lab;

 private:
  static std::string difference(const std::string& before, const std::string& after) {
    const auto lines = [](const std::string& text) {
      const auto pieces = split(text, '\n');
      return std::multiset<std::string_view>(pieces.begin(), pieces.end());
    };
    std::vector<std::string_view> different;
    std::ranges::set_symmetric_difference(lines(before), lines(after),
                                          std::back_inserter(different));
    std::string out;
    for (const std::string_view line : different) out += std::string(line) + "\n";
    return out;
  }
  Status build() const {
    WEFT_TRY(const auto warnings, build_nodes(lab.plan));
    std::vector<LabNodeId> switches;
    for (const LabNodeId node : lab.plan.switches()) switches.push_back(node);
    WEFT_TRY_STATUS(
        write_static_routes(lab.plan, Routes::shortest(lab.plan), switches, RouteWrite::create));
    for (int i = 0; i < 150 && kernel_state().find("no-carrier") != std::string::npos; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return {};
  }
};

#define WEFT_TEST_LAB(name)                                    \
  const auto weft_lab_##name = TestLab::make();                \
  if (!weft_lab_##name) {                                      \
    testing::skip_without_namespaces(weft_lab_##name.error()); \
    return;                                                    \
  }                                                            \
  const TestLab& name = **weft_lab_##name

bool says(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST_SUITE_BEGIN("needs namespaces");

TEST_CASE("every kind goes in, is listed, and heals to exactly what was before") {
  WEFT_TEST_LAB(net);
  const std::string before = net.kernel_state();
  REQUIRE(net.ping(5) == 5);
  struct Case {
    std::string kind, target;
    std::vector<FaultOption> options;
  };
  const std::vector<Case> cases{
      {"link_lossy", "ctsw:1->rtsw:1", {{"rate", "1%"}, {"bucket", "3/64"}, {"class", "46"}}},
      {"link_lossy", "ctsw:0--rtsw:1", {}},
      {"switch_lossy", "ctsw:1", {{"rate", "1e-6"}}},
      {"dead_link", "ctsw:0--rtsw:0", {}},
      {"ecn_mark", "rtsw:0->ctsw:0", {{"rate", "50%"}}},
      {"delay", "rtsw:0--ctsw:0", {{"delay", "2 ms"}}},
      {"jitter", "rtsw:0->ctsw:0", {{"jitter", "1 ms"}}},
      {"corrupt", "rtsw:0->ctsw:1", {{"rate", "1%"}}},
      {"reorder", "rtsw:0->ctsw:1", {{"rate", "1%"}}},
      {"duplicate", "rtsw:1->ctsw:1", {{"rate", "1%"}}},
      {"link_degraded", "rtsw:1--ctsw:1", {{"rate", "100 Mbps"}}},
      {"link_degraded", "rtsw:1->ctsw:0", {{"rate", "100 Mbps"}, {"ecn", "20 KiB"}}},
      {"link_down", "rtsw:0--ctsw:0", {}},
      {"port_flap", "rtsw:1--ctsw:0", {{"period", "50 ms"}, {"count", "1000"}}},
      {"blackhole", "ctsw:0", {{"to", "host:1"}}},
      {"switch_down", "ctsw:1", {}},
      {"icmp_ratelimit", "ctsw:0", {{"interval", "500"}}},
  };
  for (const Case& one : cases) {
    CAPTURE(one.kind);
    const FaultRecord record = net.inject(one.kind, one.target, one.options);
    CHECK(record.phase == FaultPhase::active);
    CHECK(net.list().back().phase == FaultPhase::active);
    if (one.kind != "icmp_ratelimit" && one.kind != "port_flap")
      CHECK(net.kernel_state() != before);
    net.heal(record.id);
    CHECK(net.changes(before) == "");
    CHECK(net.list().back().phase == FaultPhase::over);
  }
  REQUIRE(net.ping(5) == 5);
  // Together, and all healed at once.
  for (const Case& one : cases)
    if (one.kind != "port_flap") net.inject(one.kind, one.target, one.options);
  net.heal("all");
  CHECK(net.changes(before) == "");
  CHECK(net.ping(5) == 5);
  for (const LabProcess& process : read_journal(net.lab.journal()))
    CHECK_FALSE(is_alive(process.id));
}

TEST_CASE("a fault bites where it is told to, and its truth is exact") {
  WEFT_TEST_LAB(net);
  const FaultRecord loss = net.inject("link_lossy", "rtsw:1->nic:1", {});
  CHECK(net.ping(10) == 0);
  CHECK(net.list().front().hits.at("packets") == 10);
  net.heal(loss.id);
  CHECK(net.ping(10) == 10);
  const FaultRecord hole = net.inject("blackhole", "rtsw:0", {{"to", "10.0.0.2"}});
  CHECK(net.ping(5) == 0);
  net.heal(hole.id);
  const auto records = net.list();
  REQUIRE(records.size() == 2);
  CHECK(records[0].hits.at("packets") == 10);
  CHECK(records[0].start < records[0].end);
  CHECK(records[0].end < records[1].start);
  const std::string truth = truth_line(records[0]);
  CHECK(says(truth, "\"id\":\"f1\""));
  CHECK(says(truth, "\"kind\":\"link_lossy\""));
  CHECK(says(truth, "\"packets\":10"));
  CHECK(says(truth, "\"entities\":[\"rtsw:1->"));
  CHECK(truth.find('\n') == std::string::npos);
}

TEST_CASE(
    "both ends of a link that is down lose the carrier, and it stays down for as long as one "
    "fault wants") {
  WEFT_TEST_LAB(net);
  const std::string before = net.kernel_state();
  const FaultRecord link = net.inject("link_down", "rtsw:0--ctsw:0");
  // One end is set down, the other sees its carrier go.
  CHECK((says(net.state_of("rtsw:0"), " down ") || says(net.state_of("ctsw:0"), " down ")));
  CHECK((says(net.state_of("rtsw:0"), "no-carrier") || says(net.state_of("ctsw:0"), "no-carrier")));
  const std::string one = net.kernel_state();
  const FaultRecord power = net.inject("switch_down", "rtsw:0");
  CHECK(says(net.state_of("ctsw:1"), "no-carrier"));
  CHECK(net.ping(2) <= 0);
  net.heal(power.id);
  CHECK(net.changes(one) == "");
  net.heal(link.id);
  CHECK(net.changes(before) == "");
}

TEST_CASE("a flap ends by itself with the link as it was") {
  WEFT_TEST_LAB(net);
  const std::string before = net.kernel_state();
  net.inject("port_flap", "rtsw:0--ctsw:1", {{"period", "40 ms"}, {"count", "5"}});
  std::set<bool> seen;
  for (int i = 0; i < 300; ++i) {
    seen.insert(says(net.state_of("ctsw:1"), "no-carrier"));
    if (net.list().front().phase == FaultPhase::over) break;
  }
  CHECK(seen.size() == 2);
  const FaultRecord over = net.list().front();
  CHECK(over.phase == FaultPhase::over);
  CHECK(over.hits.at("flaps") == 5);
  CHECK(net.changes(before) == "");
}

TEST_CASE("a daemon that hangs goes on when healed") {
  WEFT_TEST_LAB(net);
  const auto daemon = start_process(
      {.role = "bgpd", .node = "rtsw:0", .argv = {"/bin/sleep", "60"}}, net.lab.journal());
  REQUIRE(daemon.has_value());
  const auto state = [&] {
    const auto text = read_file(fmt::format("/proc/{}/stat", daemon->id.pid));
    return text ? (*text)[text->rfind(')') + 2] : '?';
  };
  const FaultRecord hang = net.inject("daemon_hang", "rtsw:0");
  for (int i = 0; i < 100 && state() != 'T'; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(state() == 'T');
  const auto twice = net.try_inject("daemon_kill", "rtsw:0");
  REQUIRE_FALSE(twice.has_value());
  CHECK(says(twice.error().text(), "already applies to rtsw:0"));
  net.heal(hang.id);
  for (int i = 0; i < 100 && state() == 'T'; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(state() != 'T');
  net.inject("daemon_kill", "rtsw:0");
  CHECK_FALSE(is_alive(daemon->id));
  CHECK_FALSE(net.try_inject("daemon_kill", "ctsw:0").has_value());  // runs none
  CHECK_FALSE(net.try_inject("daemon_hang", "rtsw:0").has_value());  // does not run any more
  CHECK(net.list().size() == 2);
}

TEST_CASE("the same fault twice, unknown ids and conflicts are refused clearly") {
  WEFT_TEST_LAB(net);
  net.inject("link_lossy", "rtsw:0--ctsw:0", {{"rate", "1%"}});
  const auto twice = net.try_inject("link_lossy", "ctsw:0--rtsw:0", {{"rate", "1%"}});
  REQUIRE_FALSE(twice.has_value());
  CHECK(says(twice.error().text(), "already active, as f1"));
  net.inject("link_lossy", "rtsw:0--ctsw:0", {{"rate", "2%"}});  // another one: they stack
  net.inject("link_down", "rtsw:0--ctsw:0");
  const auto flap =
      net.try_inject("port_flap", "rtsw:0--ctsw:0", {{"period", "1 s"}, {"count", "1"}});
  REQUIRE_FALSE(flap.has_value());
  CHECK(says(flap.error().text(), "f3 (link_down) already applies to"));
  net.inject("blackhole", "ctsw:0", {{"to", "host:1"}});
  const auto hole = net.try_inject("blackhole", "ctsw:0", {{"to", "10.0.0.2"}});  // the same
  REQUIRE_FALSE(hole.has_value());
  CHECK(says(hole.error().text(), "already active, as f4"));
  const auto unknown = heal_faults(net.lab, "f9");
  REQUIRE_FALSE(unknown.has_value());
  CHECK(says(unknown.error().text(), "fault \"f9\" does not exist"));
  net.heal("f1");
  CHECK_FALSE(heal_faults(net.lab, "f1").has_value());  // over
  net.heal("all");
  net.heal("all");  // none is left: no failure
  CHECK(net.list().size() == 4);
}

TEST_CASE("a crash between writing down and injecting, or after, is healed") {
  WEFT_TEST_LAB(net);
  const std::string before = net.kernel_state();
  const FaultRecord loss = net.inject("link_lossy", "ctsw:0->rtsw:0");
  const FaultRecord slow = net.inject("delay", "ctsw:0->rtsw:0", {{"delay", "1 ms"}});
  {
    auto book = FaultBook::open(net.lab.directory);
    REQUIRE(book.has_value());
    for (FaultRecord& record : book->records) record.phase = FaultPhase::injecting;
    FaultRecord never = book->records.front();  // died before the first change
    never.id = "f3";
    never.spec.target = "ctsw:1->rtsw:0";
    book->records.push_back(never);
    REQUIRE(book->save().has_value());
  }
  CHECK(net.list().back().phase == FaultPhase::injecting);
  net.heal("all");
  CHECK(net.changes(before) == "");
}

TEST_CASE("a fault that cannot be put in leaves nothing and is not listed") {
  WEFT_TEST_LAB(net);
  const std::string before = net.kernel_state();
  // The second direction's rate limit finds a queue there already.
  net.inject("link_degraded", "ctsw:0->rtsw:0", {{"rate", "10 Mbps"}});
  const std::string one = net.kernel_state();
  CHECK_FALSE(net.try_inject("link_degraded", "rtsw:0--ctsw:0", {{"rate", "20 Mbps"}}).has_value());
  CHECK(net.changes(one) == "");
  CHECK(net.list().size() == 1);
  net.heal("all");
  CHECK(net.changes(before) == "");
}

TEST_CASE("a damaged list of faults is an error, not a guess") {
  WEFT_TEST_LAB(net);
  for (const char* text : {"", "{", "[]", "{\"faults\": [{}]}", "{\"faults\": [{\"kind\": 3}]}"}) {
    REQUIRE(write_file(net.lab.directory + "/faults.json", text).has_value());
    const auto listed = list_faults(net.lab);
    REQUIRE_FALSE(listed.has_value());
    CHECK(says(listed.error().text(), "faults.json"));
  }
}

TEST_SUITE_END();

}  // namespace
}  // namespace weft::adapt::lab
