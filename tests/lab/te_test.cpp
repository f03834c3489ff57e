// Traffic engineering as operators run it: `weft serve` with te:, `weft agent --te` in the
// namespace of each switch, FRRouting beneath, and packets of all flows.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "adapt/lab/te_test_kit.hpp"
#include "adapt/sim/test_te_stage.hpp"
#include "base/test_effort.hpp"
#include "base/text.hpp"
#include "operate/te/controller_story.hpp"
#include "run_weft.hpp"
#include "socket_client.hpp"

using namespace weft;
using namespace weft::adapt::lab;
using namespace weft::adapt::lab::testing;
using nlohmann::json;
namespace story = weft::operate::te::testing;

namespace {

// Nanoseconds since 1970.
std::int64_t wall_ns(std::chrono::system_clock::time_point at) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(at.time_since_epoch()).count();
}

// The service and the agents on a lab's switches, as processes.
class Site {
 public:
  Site(const Lab& lab, std::span<const te::Flow> flows) : lab_(lab) {
    scratch_.write("zone.yaml", fmt::format("fabric: {}\n", story::story_fabric));
    std::string csv = "src,dst,port\n";
    for (const te::Flow& flow : flows)
      csv += fmt::format("{},{},{}\n", lab.fabric.name(flow.src), lab.fabric.name(flow.dst),
                         flow.port);
    scratch_.write("flows.csv", csv);
    scratch_.write("serve.yaml",
                   "te: {flows: flows.csv, hold: 300 ms, hold_max: 300 ms, forget: 10 min}\n");
    serve();
    for (const LabNodeId id : lab.plan.switches()) {
      const std::string& name = lab.plan.nodes[id].name;
      agents_.push_back(scratch_.start(
          {"lab", "exec", name, "--name", lab.options.name, "--", WEFT_BINARY, "agent", "--fabric",
           "zone.yaml", "--device", name, "--te", "--to", "unix:" + socket(), "--spool",
           fmt::format("spool{}", id.index()), "--quiet"},
          fmt::format("agent{}", id.index())));
    }
  }
  ~Site() {
    kill_service(SIGTERM);
    for (const int agent : agents_) ::kill(agent, SIGTERM);
    for (const int agent : agents_) cli_test::wait_for(agent);
  }
  Site(const Site&) = delete;
  Site& operator=(const Site&) = delete;

  void serve() {
    service_ = scratch_.start({"serve", "--fabric", "zone.yaml", "--store", "weft.db", "--config",
                               "serve.yaml", "--listen", "unix:" + socket()},
                              "serve");
    decisions_.clear();
  }
  void kill_service(int signal) {
    if (service_ <= 0) return;
    ::kill(service_, signal);
    cli_test::wait_for(std::exchange(service_, 0));
  }
  std::optional<json> state() {
    const auto answer = client_.Get("/v1/te");
    if (!answer || answer->status != 200) return std::nullopt;
    json out = json::parse(answer->body);
    for (const json& one : out["decisions"]) {
      const auto same = [&](const json& d) { return d["t"] == one["t"]; };
      const auto at = std::ranges::find_if(decisions_, same);
      if (at == decisions_.end())
        decisions_.push_back(one);
      else
        *at = one;
    }
    return out;
  }
  // Of this service, oldest first.
  const std::vector<json>& decisions() {
    static_cast<void>(state());
    return decisions_;
  }
  // Until it is so, at most 20 s.
  template <class Is>
  bool wait_until(Is is) {
    for (int i = 0; i < 4'000; ++i) {
      if (is()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }
  // All agents report, and every flow is placed.
  bool is_ready(std::size_t marks) {
    return wait_until([&] {
      const auto now = state();
      return now && (*now)["started"] == true && (*now)["silent"].empty() &&
             (*now)["marks"] == marks && (*now)["cables_down"].empty();
    });
  }
  // A decision with this news from number `from` on that all switches have carried out.
  std::optional<json> installed(std::size_t from, const std::string& news) {
    std::optional<json> out;
    static_cast<void>(wait_until([&] {
      const auto& all = decisions();
      for (std::size_t i = from; i < all.size(); ++i)
        for (const json& one : all[i]["news"])
          if (one == news && !all[i]["installed_s"].is_null()) out = all[i];
      return out.has_value();
    }));
    return out;
  }
  // What weft te prints of it.
  std::string show() {
    const cli_test::Outcome shown = scratch_.run({"te", "--from", "unix:" + socket()});
    return shown.out + shown.err;
  }
  std::string errors() {
    std::string out = scratch_.read("serve.err");
    for (std::size_t i = 0; i < agents_.size(); ++i)
      out += scratch_.read(fmt::format("agent{}.err", i));
    return out;
  }
  const Lab& lab() const { return lab_; }

 private:
  std::string socket() { return scratch_.path() + "/api.sock"; }

  const Lab& lab_;
  cli_test::Scratch scratch_;
  httplib::Client client_ = cli_test::socket_client(socket());
  int service_ = 0;
  std::vector<int> agents_;
  std::vector<json> decisions_;
};

// From that time until all switches had the decision's marks.
double since_s(const json& decision, std::chrono::system_clock::time_point from) {
  const auto at = parse_timestamp({decision["t"].get<std::string>(), {}});
  REQUIRE(at);
  return static_cast<double>(at->ns - wall_ns(from)) / 1e9 + decision["installed_s"].get<double>();
}

class LiveStage final : public LabStage {
 public:
  LiveStage(Site& site, std::span<const te::Flow> flows)
      : LabStage(site.lab(), flows), site_(site) {}
  void cut(model::CableId cable) override {
    seen_ = site_.decisions().size();
    LabStage::cut(cable);
  }
  void wait_for(std::size_t events) override {
    CHECK(site_.wait_until([&] { return site_.decisions().size() >= events; }));
  }
  void stop_controller() override { site_.kill_service(SIGKILL); }
  std::vector<te::Event> events() override {
    std::vector<te::Event> out;
    for (const json& one : site_.decisions()) {
      te::Event event{.at = {}, .news = {}, .step = {}, .is_first = one["first"]};
      event.step.changes = one["changes"];
      event.step.decision.hit = one["hit"];
      event.step.decision.moved = one["moved"];
      out.push_back(std::move(event));
    }
    return out;
  }
  double mark_s() override {
    const auto decision = site_.installed(seen_, news_);
    return decision ? since_s(*decision, cut_) : 1e9;
  }

 private:
  Site& site_;
  std::size_t seen_ = 0;
};

void check_cuts(Site& site, std::span<const te::Flow> flows) {
  const Lab& lab = site.lab();
  SteadyTraffic traffic(lab, flows);
  static_cast<void>(traffic.dark_s());
  std::vector<double> marks_s, heard_s;
  double dark_s = 0;
  const auto cuts = static_cast<int>(test_effort(50));
  for (int i = 0; i < cuts; ++i) {
    const model::CableId cable =
        lab.fabric.find_cable({fmt::format("rtsw:{}--ctsw:{}", i / 4 % 4, i % 4), {}}).value();
    const std::size_t seen = site.decisions().size();
    const auto cut = std::chrono::system_clock::now();
    set_cable(lab, spine_end(lab, cable), AdminState::down);
    const auto decision = site.installed(seen, lab.fabric.name(cable) + " down");
    REQUIRE_MESSAGE(decision, site.errors());
    marks_s.push_back(since_s(*decision, cut));
    heard_s.push_back(marks_s.back() - (*decision)["installed_s"].get<double>());
    if (marks_s.back() > 0.05)
      MESSAGE(fmt::format("{}: decided after {:.1f} ms, installed after {:.1f} ms",
                          lab.fabric.name(cable), heard_s.back() * 1e3, marks_s.back() * 1e3));
    CHECK((*decision)["refused"] == "");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    for (const double one : traffic.dark_s()) dark_s += one;
    set_cable(lab, spine_end(lab, cable), AdminState::up);
    REQUIRE_MESSAGE(site.installed(seen, lab.fabric.name(cable) + " up"), site.errors());
    std::this_thread::sleep_for(std::chrono::milliseconds(400));  // its hold
    for (const double one : traffic.dark_s()) CHECK(one <= 0.005);
  }
  const double worst = std::ranges::max(marks_s);
  MESSAGE(
      fmt::format("cable cut to last mark installed, by agents and the service: median {:.1f} "
                  "ms, worst {:.1f} ms of {}; flows without a path {:.1f} ms in all a cut",
                  median(marks_s) * 1e3, worst * 1e3, cuts, dark_s / cuts * 1e3));
  if (cuts < 50) return;  // under sanitizers times mean nothing
  CHECK(median(marks_s) <= 0.05);
  CHECK(worst <= 0.1);
}

// Marks of the lab with agents and those of the simulated network, fault by fault.
void check_faults(Site& site, std::span<const te::Flow> flows) {
  const Lab& lab = site.lab();
  std::vector<story::Scene> real;
  {
    LiveStage stage(site, flows);
    real = story::Story(lab.fabric, stage).play();
  }
  adapt::sim::testing::WorldStage world(lab.fabric);
  compare_scenes(lab, "agents", real, story::Story(lab.fabric, world).play());
}

TEST_CASE("te agents: every flow gets a mark, and another one when its cable is cut") {
  if (!can_run(Routing::static_routes)) return;
  const std::string name = lab_name("tea");
  const DownAfter down(name);
  const Lab lab = bring_up_and_open(name, Routing::static_routes, story::story_fabric);
  const std::vector<te::Flow> flows = story::story_flows(lab.fabric);
  Site site(lab, flows);
  REQUIRE_MESSAGE(site.is_ready(flows.size()), site.errors());
  const std::string shown = site.show();
  CHECK_MESSAGE(shown.starts_with("48 flows, 48 marks; all cables up\n"), shown);
  const model::CableId cable = lab.fabric.find_cable({"rtsw:2--ctsw:1", {}}).value();
  set_cable(lab, spine_end(lab, cable), AdminState::down);
  const auto decision = site.installed(0, "rtsw:2--ctsw:1 down");
  REQUIRE_MESSAGE(decision, site.errors());
  CHECK((*decision)["hit"] == 6);
  const auto marks = Overlay::open(lab).value()->installed().value();
  CHECK(marks.size() == flows.size());
  for (const port::RouteMark& mark : marks) CHECK(model::cable_of(mark.uplink) != cable);
}

TEST_CASE("te live: agents and the service on FRRouting, cut fifty times, killed, started again") {
  if (!can_run(Routing::frr)) return;
  const std::string name = lab_name("tel");
  const DownAfter down(name);
  const Lab lab = bring_up_and_open(name, Routing::frr, story::story_fabric);
  const std::vector<te::Flow> flows = story::story_flows(lab.fabric);
  {
    Site site(lab, flows);
    REQUIRE_MESSAGE(site.is_ready(flows.size()), site.errors());
    check_faults(site, flows);
    // The last scene killed the service after which a cable was cut. Another one finds the marks as
    // they are, and moves those that were hit.
    site.serve();
    REQUIRE_MESSAGE(site.wait_until([&] { return !site.decisions().empty(); }), site.errors());
    CHECK(site.decisions()[0]["first"] == true);
    CHECK(site.decisions()[0]["hit"] == 6);
    CHECK(site.decisions()[0]["news"] == json{"rtsw:1--ctsw:0 down"});
    const std::size_t seen = site.decisions().size();
    set_cable(lab, spine_end(lab, lab.fabric.find_cable({"rtsw:1--ctsw:0", {}}).value()),
              AdminState::up);
    REQUIRE(site.installed(seen, "rtsw:1--ctsw:0 up"));
    std::this_thread::sleep_for(std::chrono::milliseconds(400));
    check_cuts(site, flows);
    // Somebody reloads the switch's firewall: the agent looks every ten seconds.
    const std::string& netns = lab.plan.nodes[node(lab.plan, lab.fabric, "rtsw:0")].netns;
    REQUIRE(open_nft(netns)->run("flush ruleset\n"));
    CHECK(site.wait_until([&] {
      const auto listed = open_nft(netns)->run("list map ip weft_te paths\n");
      return listed && split(*listed, ':').size() > flows.size() / 4;
    }));
  }
  REQUIRE(Overlay::remove(lab));
}

}  // namespace
