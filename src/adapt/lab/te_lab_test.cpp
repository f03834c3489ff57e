// The controller of traffic engineering on real packets: overlay above FRRouting, failures, leases.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "adapt/lab/injector.hpp"
#include "adapt/lab/lab_test_kit.hpp"
#include "adapt/lab/overlay.hpp"
#include "adapt/lab/te_run.hpp"
#include "adapt/lab/te_test_kit.hpp"
#include "adapt/linux_switch/netlink.hpp"
#include "adapt/sim/test_te_stage.hpp"
#include "base/test_effort.hpp"
#include "operate/te/controller_story.hpp"

namespace weft::adapt::lab {
namespace {

using namespace testing;
namespace te = operate::te;
using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

namespace story = te::testing;
constexpr std::string_view four_by_four = story::story_fabric;
constexpr std::uint16_t first_port = story::story_port;
constexpr std::chrono::milliseconds hold{story::story_damping.hold.ps / ps_per_ms};

// Packets that left by each uplink of a rack, by the kernel's counters.
std::map<std::string, std::uint64_t> sent_by_uplink(const Lab& lab, const LabNode& rack) {
  std::map<std::string, std::uint64_t> out;
  REQUIRE(run_in_netns(rack.netns, [&]() -> Status {
    WEFT_TRY(Netlink netlink, Netlink::open(rack.name));
    WEFT_TRY(const auto interfaces, netlink.links());
    for (const EndId end : rack.ends)
      for (const LinkState& interface : interfaces)
        if (interface.name == lab.plan.end(end).interface && !lab.plan.cables[end.cable].to_host)
          out[lab.fabric.name(lab.plan.end(end).link)] = interface.tx_packets;
    return {};
  }));
  return out;
}

// A controller on a thread of its own.
class Running {
 public:
  Running(const Lab& lab, std::vector<te::Flow> flows)
      : thread_([this, &lab, flows = std::move(flows)] {
          TeRun run;
          run.loop.damping = story::story_damping;
          run.stop = [this] { return stop_.load(); };
          run.tell = [this](const TeEvent& event) {
            const std::lock_guard lock(mutex_);
            events_.push_back(event);
            times_.push_back(Clock::now());
          };
          run.standby = [this] { waits = true; };
          status = run_te(lab, flows, run);
        }) {}
  ~Running() { stop(); }
  void stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  std::size_t count() const {
    const std::lock_guard lock(mutex_);
    return events_.size();
  }
  std::vector<TeEvent> events() const {
    const std::lock_guard lock(mutex_);
    return events_;
  }
  // The first event from number `from` on with this in its news, and when it was told.
  std::optional<std::pair<TeEvent, Clock::time_point>> find(std::size_t from,
                                                            std::string_view news) const {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = from; i < events_.size(); ++i)
      for (const std::string& one : events_[i].news)
        if (one == news) return std::pair(events_[i], times_[i]);
    return std::nullopt;
  }
  // The same, within twenty seconds.
  std::optional<std::pair<TeEvent, Clock::time_point>> wait_for(std::size_t from,
                                                                std::string_view news) const {
    for (int i = 0; i < 20'000; ++i) {
      if (auto found = find(from, news)) return found;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return std::nullopt;
  }
  // `count` events, within five seconds.
  bool wait(std::size_t events) const {
    for (int i = 0; i < 500 && count() < events; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return count() >= events;
  }
  Status status;
  std::atomic<bool> waits = false;

 private:
  std::atomic<bool> stop_ = false;
  mutable std::mutex mutex_;
  std::vector<TeEvent> events_;
  std::vector<Clock::time_point> times_;
  std::thread thread_;  // last: it uses the others
};

// With the controller in this process.
class OwnStage final : public LabStage {
 public:
  OwnStage(const Lab& lab, std::span<const te::Flow> flows)
      : LabStage(lab, flows), controller_(lab, {flows.begin(), flows.end()}) {
    REQUIRE(controller_.wait(1));
  }
  void cut(model::CableId cable) override {
    seen_ = controller_.count();
    began_ = Clock::now();
    LabStage::cut(cable);
  }
  void wait_for(std::size_t events) override {
    for (int i = 0; i < 20'000 && controller_.count() < events; ++i) wait(1'000_us);
  }
  void stop_controller() override { controller_.stop(); }
  std::vector<te::Event> events() override {
    std::vector<te::Event> out;
    for (const TeEvent& event : controller_.events())
      out.push_back({.at = event.at, .news = {}, .step = event.step, .is_first = event.is_first});
    return out;
  }
  double mark_s() override {
    const auto event = controller_.wait_for(seen_, news_);
    return event ? std::chrono::duration<double>(event->second - began_).count() : 1e9;
  }

 private:
  Running controller_;
  std::size_t seen_ = 0;
  Clock::time_point began_;
};

// The same story here and in the simulated network.
void compare_with_world(const Lab& lab, std::span<const te::Flow> flows) {
  std::vector<story::Scene> real;
  {
    OwnStage stage(lab, flows);
    real = story::Story(lab.fabric, stage).play();
  }
  sim::testing::WorldStage world(lab.fabric);
  compare_scenes(lab, "lab", real, story::Story(lab.fabric, world).play());
}

// Without marks: a rack turns from a dead uplink by itself, and what comes in waits for BGP.
void measure_bgp(const Lab& lab, std::span<const te::Flow> flows) {
  REQUIRE(Overlay::remove(lab));
  const EndId at = lab.plan.find_sender(lab.fabric, {"ctsw:1->rtsw:1", {}}).value();
  SteadyTraffic unmarked(lab, flows);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  static_cast<void>(unmarked.dark_s());
  set_cable(lab, at, AdminState::down);
  std::this_thread::sleep_for(std::chrono::milliseconds(1'000));
  std::vector<double> dark_s = unmarked.dark_s();
  std::erase(dark_s, 0.0);
  std::ranges::sort(dark_s);
  MESSAGE(fmt::format("BGP: s without a path, by flow: {:.4f}", fmt::join(dark_s, " ")));
  if (test_effort(50) >= 50) CHECK((dark_s.empty() || dark_s.back() < 0.9));
}

TEST_CASE("te: packets take the uplinks of their marks, and hashing's where there is none") {
  if (!can_run(Routing::static_routes)) return;
  const std::string name = lab_name("tem");
  const DownAfter down(name);
  const Lab lab = bring_up_and_open(name, Routing::static_routes, four_by_four);
  auto overlay = Overlay::open(lab);
  REQUIRE_MESSAGE(overlay.has_value(), (overlay ? "" : overlay.error().text()));
  const auto nics = lab.fabric.nics();
  const LabNode& rack = lab.plan.nodes[node(lab.plan, lab.fabric, "rtsw:0")];
  const std::vector<te::Flow> flows{{.src = nics[0], .dst = nics[6], .port = first_port}};
  FlowTraffic traffic(lab, flows);
  const auto burst = [&] {
    const auto before = sent_by_uplink(lab, rack);
    for (int i = 0; i < 50; ++i) traffic.send();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    traffic.receive();
    auto after = sent_by_uplink(lab, rack);
    for (auto& [link, packets] : after) packets -= before.at(link);
    return after;
  };
  for (std::uint32_t spine = 0; spine < 4; ++spine) {
    const std::string uplink = "rtsw:0->ctsw:" + std::to_string(spine);
    const port::RouteMark mark{flows[0].src, flows[0].dst, flows[0].port,
                               lab.fabric.find_link({uplink, {}}).value()};
    REQUIRE((*overlay)->apply(std::array{mark}));
    REQUIRE((*overlay)->renew());
    CHECK((*overlay)->installed().value() == std::vector{mark});
    for (const auto& [link, packets] : burst())
      CHECK_MESSAGE((packets >= 50) == (link == uplink), link);
  }
  // Nobody renews them: hashing takes over, whatever the mark says.
  std::this_thread::sleep_for(std::chrono::milliseconds(3'300));
  std::set<std::string> hashed;
  for (const std::uint32_t spine : {0u, 1u, 3u}) {
    const std::string uplink = "rtsw:0->ctsw:" + std::to_string(spine);
    REQUIRE((*overlay)->apply(std::array{port::RouteMark{
        flows[0].src, flows[0].dst, flows[0].port, lab.fabric.find_link({uplink, {}}).value()}}));
    for (const auto& [link, packets] : burst())
      if (packets >= 50) hashed.insert(link);
  }
  CHECK(hashed.size() == 1);
  REQUIRE((*overlay)->renew());
  // Its interface goes: the routes beneath take over, without anybody's doing.
  const EndId last = lab.plan.find_sender(lab.fabric, {"rtsw:0->ctsw:3", {}}).value();
  REQUIRE(set_link(rack.netns, lab.plan.end(last).interface, AdminState::down));
  const std::size_t before = traffic.received;
  CHECK(burst().at("rtsw:0->ctsw:3") == 0);
  CHECK(traffic.received == before + 50);
  REQUIRE(set_link(rack.netns, lab.plan.end(last).interface, AdminState::up));
  REQUIRE(restore_interface(lab, last));
  REQUIRE(restore_interface(lab, last.peer()));
  REQUIRE((*overlay)->restore(std::array{lab.plan.cables[last.cable].cable}));
  REQUIRE((*overlay)->renew());
  CHECK(burst().at("rtsw:0->ctsw:3") >= 50);
  // Another process finds what is installed, and takes it away.
  auto again = Overlay::open(lab);
  REQUIRE(again);
  CHECK((*again)->installed().value() == (*overlay)->installed().value());
  REQUIRE(Overlay::remove(lab));
  REQUIRE(Overlay::remove(lab));
  CHECK(Overlay::open(lab).value()->installed().value().empty());
}

TEST_CASE("te: fifty cables cut under traffic, BGP beneath") {
  if (!can_run(Routing::frr)) return;
  const std::string lab_is = lab_name("tec");
  const DownAfter down(lab_is);
  const Lab lab = bring_up_and_open(lab_is, Routing::frr, four_by_four);
  const std::vector<te::Flow> flows = story::story_flows(lab.fabric);
  Running controller(lab, flows);
  REQUIRE(controller.wait(1));
  auto traffic = std::make_unique<FlowTraffic>(lab, flows);
  std::jthread sender([&](const std::stop_token& end) {
    while (!end.stop_requested()) {
      traffic->send();
      traffic->receive();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  });
  std::vector<double> installed_ms, heard_ms;
  const auto cuts = static_cast<int>(test_effort(50));
  for (int i = 0; i < cuts; ++i) {
    const EndId at =
        lab.plan.find_sender(lab.fabric, {fmt::format("ctsw:{}->rtsw:{}", i % 4, (i / 4) % 4), {}})
            .value();
    const std::string name = lab.fabric.name(lab.plan.cables[at.cable].cable);
    const std::size_t seen = controller.count();
    const auto cut = Clock::now();
    REQUIRE(set_link(lab.plan.node_of(at).netns, lab.plan.end(at).interface, AdminState::down));
    const auto event = controller.wait_for(seen, name + " down");
    REQUIRE(event);
    installed_ms.push_back(Milliseconds(event->second - cut).count());
    heard_ms.push_back(event->first.took.seconds() * 1e3);
    CHECK(event->first.step.decision.refused == "");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    REQUIRE(set_link(lab.plan.node_of(at).netns, lab.plan.end(at).interface, AdminState::up));
    REQUIRE(restore_interface(lab, at));
    REQUIRE(restore_interface(lab, at.peer()));
    REQUIRE(controller.wait_for(seen, name + " up"));
    std::this_thread::sleep_for(hold + std::chrono::milliseconds(100));
  }
  sender.request_stop();
  sender.join();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  traffic->receive();
  controller.stop();
  REQUIRE_MESSAGE(controller.status.has_value(),
                  (controller.status ? "" : controller.status.error().text()));
  const double worst = *std::ranges::max_element(installed_ms);
  const std::size_t sent = traffic->sent, lost = traffic->sent - traffic->received;
  MESSAGE(
      fmt::format("cable cut to marks installed: median {:.1f} ms, worst {:.1f} ms (of "
                  "which after the news {:.1f} ms); {} of {} packets lost in {} cuts",
                  median(installed_ms), worst, median(heard_ms), lost, sent, cuts));
  traffic.reset();                // its ports
  REQUIRE(Overlay::remove(lab));  // both begin with nothing
  compare_with_world(lab, flows);
  measure_bgp(lab, flows);
  if (cuts < 50) return;  // under sanitizers times mean nothing
  CHECK(median(installed_ms) <= 50);
  CHECK(worst <= 100);
  CHECK(lost <= sent / 1000);
}

}  // namespace
}  // namespace weft::adapt::lab
