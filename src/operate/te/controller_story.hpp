// For tests: what a controller of traffic engineering lives through on any network, the same
// faults in the same order, so that networks can be compared.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "operate/te/controller.hpp"

namespace weft::operate::te::testing {

// Four racks of two NICs under four spines: 48 flows, three over each uplink and each way.
inline constexpr std::string_view story_fabric =
    "{generator: ai_zone, racks: 4, hosts_per_rack: 2, gpus_per_host: 1, spines: 4}";
inline constexpr Damping story_damping{.hold = 300'000_us, .hold_max = 300'000_us, .forget = 600_s};
inline constexpr std::uint16_t story_port = 50'000;

// Each NIC to each of another rack.
inline std::vector<Flow> story_flows(const Fabric& fabric) {
  std::vector<Flow> out;
  const auto nics = fabric.nics();
  for (std::uint32_t a = 0; a < nics.size(); ++a)
    for (std::uint32_t b = 0; b < nics.size(); ++b)
      if (a / 2 != b / 2)
        out.push_back({.src = nics[a],
                       .dst = nics[b],
                       .port = static_cast<std::uint16_t>(story_port + out.size())});
  return out;
}

// A network with a controller at work on story_flows(), with story_damping.
class Stage {
 public:
  virtual ~Stage() = default;
  // Of a cable, at the spine's end; the carrier goes and comes.
  virtual void cut(model::CableId cable) = 0;
  virtual void mend(model::CableId cable) = 0;
  virtual void slow(model::CableId cable) = 0;  // to half of its rate, the carrier stays
  virtual void unslow(model::CableId cable) = 0;
  virtual void wait(Duration span) = 0;  // flows go on
  // Until the controller has decided `events` times in all, at most 20 s.
  virtual void wait_for(std::size_t events) = 0;
  virtual void stop_controller() = 0;
  virtual std::vector<Event> events() = 0;
  // From the last cut until its marks were installed.
  virtual double mark_s() = 0;
  virtual std::vector<port::RouteMark> marks() = 0;
  // Seconds that each flow was without a path since the last call; 0: it was not. A lab counts
  // packets, and is as exact as its traffic is dense.
  virtual std::vector<double> dark_s() = 0;
};

struct Scene {
  std::string name;
  std::vector<port::RouteMark> marks;  // at its end
  std::uint32_t hit = 0, moved = 0;    // of all its decisions
  std::size_t changing = 0;            // decisions that changed marks
  double mark_s = 0;
  std::vector<double> dark_s;  // by flow
};

class Story {
 public:
  Story(const Fabric& fabric, Stage& stage)
      : fabric_(fabric), stage_(stage), flows_(story_flows(fabric)) {}

  std::vector<Scene> play() {
    const model::CableId one = cable("rtsw:2--ctsw:1");
    end("start");
    cut(one);
    end("cut", true);
    mend(one);
    end("back");
    flap(one);
    end("flaps");
    stage_.slow(one);
    stage_.wait(300'000_us);
    end("slow");
    stage_.unslow(one);
    stage_.wait(100'000_us);
    static_cast<void>(stage_.dark_s());
    stage_.stop_controller();
    stage_.cut(cable("rtsw:1--ctsw:0"));
    stage_.wait(4_s);
    end("nobody there");
    return std::move(scenes_);
  }

 private:
  model::CableId cable(std::string_view name) const {
    return fabric_.find_cable({std::string(name), {}}).value();
  }
  void cut(model::CableId at) {
    const std::size_t before = stage_.events().size();
    stage_.cut(at);
    stage_.wait_for(before + 1);
    stage_.wait(100'000_us);
  }
  // Its routes, then the end of the hold.
  void mend(model::CableId at) {
    const std::size_t before = stage_.events().size();
    stage_.mend(at);
    stage_.wait_for(before + 2);
    stage_.wait(100'000_us);
  }
  // It goes a second time before its hold is over, and then stays.
  void flap(model::CableId at) {
    cut(at);
    stage_.mend(at);
    stage_.wait(50'000_us);
    cut(at);
    mend(at);
  }
  void end(std::string name, bool has_cut = false) {
    const std::vector<Event> events = stage_.events();
    Scene scene{.name = std::move(name), .marks = stage_.marks(), .dark_s = stage_.dark_s()};
    if (has_cut) scene.mark_s = stage_.mark_s();
    for (; seen_ < events.size(); ++seen_) {
      scene.hit += events[seen_].step.decision.hit;
      scene.moved += events[seen_].step.decision.moved;
      scene.changing += events[seen_].step.changes > 0 ? 1 : 0;
    }
    scenes_.push_back(std::move(scene));
  }

  const Fabric& fabric_;
  Stage& stage_;
  std::vector<Flow> flows_;
  std::vector<Scene> scenes_;
  std::size_t seen_ = 0;
};

// Of the marks of a scene: those whose path crosses the cable, by their flow; `leaves`: those that
// leave its rack over it, else those that come in.
inline std::vector<std::size_t> flows_over(const Fabric& fabric, const Scene& scene,
                                           std::string_view cable_name, bool leaves) {
  const route::Zone zone = route::find_zone(fabric).value();
  const model::CableId cable = fabric.find_cable({std::string(cable_name), {}}).value();
  std::vector<std::size_t> out;
  for (const port::RouteMark& mark : scene.marks) {
    const auto path = zone.path(mark.src, mark.dst, zone.column_of(mark.src, mark.uplink));
    if (model::cable_of(leaves ? path[1] : path[2]) == cable)
      out.push_back(std::size_t{mark.port} - story_port);
  }
  std::ranges::sort(out);
  return out;
}

// Time is measured to `slack_s`; what a controller or BGP does takes the times given.
struct StoryTimes {
  double notice_s, mark_s, bgp_s, lease_s, slack_s;
};

// What holds on any network, from the marks before each fault.
inline void check_story(const Fabric& fabric, const std::vector<Scene>& scenes,
                        const StoryTimes& times) {
  REQUIRE(scenes.size() == 6);
  const auto has = [](const std::vector<std::size_t>& flows, std::size_t f) {
    return std::ranges::find(flows, f) != flows.end();
  };
  const auto check_dark = [&](const Scene& scene, const Scene& before, std::string_view cable,
                              double leave_s, double come_s) {
    const auto leave = flows_over(fabric, before, cable, true);
    const auto come = flows_over(fabric, before, cable, false);
    CHECK(leave.size() == 3);
    CHECK(come.size() == 3);
    for (std::size_t f = 0; f < scene.dark_s.size(); ++f) {
      CAPTURE(scene.name);
      CAPTURE(f);
      const double bound = has(leave, f) ? leave_s : has(come, f) ? come_s : 0;
      CHECK(scene.dark_s[f] <= bound + times.slack_s);
    }
  };
  const auto& [start, cut, back, flaps, slow, nobody] =
      std::tie(scenes[0], scenes[1], scenes[2], scenes[3], scenes[4], scenes[5]);
  for (const Scene* scene : {&start, &cut, &back, &flaps, &slow}) CHECK(scene->marks.size() == 48);
  // Hit flows get another mark, and nothing is left over the cable.
  check_dark(cut, start, "rtsw:2--ctsw:1", times.notice_s, times.mark_s);
  CHECK(cut.hit == 6);
  CHECK(cut.changing == 1);
  CHECK(cut.mark_s <= times.mark_s + times.slack_s);
  CHECK(flows_over(fabric, cut, "rtsw:2--ctsw:1", true).empty());
  CHECK(flows_over(fabric, cut, "rtsw:2--ctsw:1", false).empty());
  // Back: three over it again each way, and nobody is without a path meanwhile.
  CHECK(flows_over(fabric, back, "rtsw:2--ctsw:1", true).size() == 3);
  CHECK(back.changing == 1);
  CHECK(std::ranges::max(back.dark_s) <= times.slack_s);
  // Flapping: marks leave it once, and come back once.
  CHECK(flaps.changing == 2);
  CHECK(flaps.hit == 6);
  // A rate is not what the controller hears of.
  CHECK(slow.marks == flaps.marks);
  CHECK(slow.changing == 0);
  CHECK(std::ranges::max(slow.dark_s) <= times.slack_s);
  // Nobody there: a rack turns from its own uplink; what comes in waits for the lease or BGP.
  check_dark(nobody, slow, "rtsw:1--ctsw:0", times.notice_s, std::max(times.lease_s, times.bgp_s));
  for (const std::size_t f : flows_over(fabric, slow, "rtsw:1--ctsw:0", false))
    CHECK(nobody.dark_s[f] >= times.lease_s - 1.2 - times.slack_s);  // renewed each second
}

}  // namespace weft::operate::te::testing
