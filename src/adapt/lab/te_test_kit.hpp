// For tests of traffic engineering on real packets: traffic of its flows, and cables that are cut.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "adapt/lab/injector.hpp"
#include "adapt/lab/lab_test_kit.hpp"
#include "adapt/lab/overlay.hpp"
#include "base/test_effort.hpp"
#include "operate/te/controller_story.hpp"

namespace weft::adapt::lab::testing {

namespace te = operate::te;

inline const LabNode& host_of(const Lab& lab, model::NodeId nic) {
  return lab.plan.nodes[lab.plan.lab_of[nic]];
}

// UDP packets of given flows, and how many arrive.
class FlowTraffic {
 public:
  FlowTraffic(const Lab& lab, std::span<const te::Flow> flows) {
    for (const te::Flow& flow : flows) {
      senders_.push_back(udp_in(host_of(lab, flow.src).netns, flow.port));
      targets_.push_back(ipv4(lab.fabric.address(flow.dst), flow.port));
      receivers_.push_back(udp_in(host_of(lab, flow.dst).netns, flow.port));
    }
    arrived.assign(flows.size(), 0);
  }
  // One packet of each flow.
  void send() {
    ++rounds;
    for (std::size_t f = 0; f < senders_.size(); ++f)
      if (sendto(senders_[f].get(), "x", 1, 0, reinterpret_cast<const sockaddr*>(&targets_[f]),
                 sizeof targets_[f]) == 1)
        ++sent;
  }
  void receive() {
    char byte = 0;
    for (std::size_t f = 0; f < receivers_.size(); ++f)
      while (recv(receivers_[f].get(), &byte, 1, 0) == 1) {
        ++received;
        ++arrived[f];
      }
  }
  std::size_t sent = 0, received = 0, rounds = 0;
  std::vector<std::size_t> arrived;  // by flow

 private:
  std::vector<Fd> senders_, receivers_;
  std::vector<sockaddr_in> targets_;
};

inline double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Packets of all flows, some 1 ms apart, until the end.
class SteadyTraffic {
 public:
  SteadyTraffic(const Lab& lab, std::span<const te::Flow> flows)
      : traffic_(lab, flows), thread_([this](const std::stop_token& end) {
          for (; !end.stop_requested(); std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
            const std::lock_guard lock(mutex_);
            traffic_.send();
            traffic_.receive();
          }
        }) {}
  // Seconds that each flow lost packets for since the last call.
  std::vector<double> dark_s() {
    const std::lock_guard lock(mutex_);
    std::this_thread::sleep_for(std::chrono::milliseconds(30));  // what is on its way
    traffic_.receive();
    const auto now = std::chrono::steady_clock::now();
    const double each_s = std::chrono::duration<double>(now - since_).count() /
                          static_cast<double>(std::max<std::size_t>(traffic_.rounds, 1));
    std::vector<double> out;
    for (const std::size_t arrived : traffic_.arrived)
      out.push_back(static_cast<double>(traffic_.rounds - std::min(arrived, traffic_.rounds)) *
                    each_s);
    std::ranges::fill(traffic_.arrived, 0);
    traffic_.rounds = 0;
    since_ = now;
    return out;
  }

 private:
  std::mutex mutex_;
  FlowTraffic traffic_;
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
  std::jthread thread_;  // last: it uses the others
};

inline void set_cable(const Lab& lab, EndId at, AdminState state) {
  REQUIRE(set_link(lab.plan.node_of(at).netns, lab.plan.end(at).interface, state));
  if (state == AdminState::down) return;
  REQUIRE(restore_interface(lab, at));
  REQUIRE(restore_interface(lab, at.peer()));
}

// Of a cable between switches.
inline EndId spine_end(const Lab& lab, model::CableId cable) {
  for (const LabCableId id : ids<LabCableId>(lab.plan.cables.size())) {
    if (lab.plan.cables[id].cable != cable) continue;
    const EndId end{id, 0};
    return lab.plan.node_of(end).name.starts_with("ctsw") ? end : end.peer();
  }
  FAIL("no such cable");
  return {};
}

// What a stage does to a lab, whoever runs the controller there.
class LabStage : public te::testing::Stage {
 public:
  LabStage(const Lab& lab, std::span<const te::Flow> flows) : lab_(lab), traffic_(lab, flows) {}
  void cut(model::CableId cable) override {
    news_ = lab_.fabric.name(cable) + " down";
    cut_ = std::chrono::system_clock::now();
    set_cable(lab_, spine_end(lab_, cable), AdminState::down);
  }
  void mend(model::CableId cable) override {
    set_cable(lab_, spine_end(lab_, cable), AdminState::up);
  }
  void slow(model::CableId cable) override {
    const EndId at = spine_end(lab_, cable);
    REQUIRE(add_rate_limit(lab_.plan.node_of(at).netns, lab_.plan.end(at).interface, 1,
                           Rate{500'000'000}, 1_MB));
  }
  void unslow(model::CableId cable) override {
    const EndId at = spine_end(lab_, cable);
    REQUIRE(remove_rate_limit(lab_.plan.node_of(at).netns, lab_.plan.end(at).interface, 1));
  }
  void wait(Duration span) override {
    std::this_thread::sleep_for(std::chrono::nanoseconds(span.ps / ps_per_ns));
  }
  std::vector<port::RouteMark> marks() override {
    return Overlay::open(lab_).value()->installed().value();
  }
  std::vector<double> dark_s() override { return traffic_.dark_s(); }

 protected:
  const Lab& lab_;
  std::string news_;                           // of the last cut
  std::chrono::system_clock::time_point cut_;  // when that was

 private:
  SteadyTraffic traffic_;
};

// The story as it went on real packets (`who` made it), beside that of the simulated network: the
// same decisions, and times that a network may take.
inline void compare_scenes(const Lab& lab, std::string_view who,
                           const std::vector<te::testing::Scene>& real,
                           const std::vector<te::testing::Scene>& simulated) {
  REQUIRE(real.size() == simulated.size());
  for (std::size_t i = 0; i < real.size(); ++i) {
    CAPTURE(real[i].name);
    if (i + 1 < real.size()) CHECK(real[i].marks == simulated[i].marks);  // then they lapse
    CHECK(real[i].hit == simulated[i].hit);
    CHECK(real[i].moved == simulated[i].moved);
    CHECK(real[i].changing == simulated[i].changing);
    MESSAGE(fmt::format("{}: longest s without a path: {} {:.4f}, world {:.4f}", real[i].name, who,
                        std::ranges::max(real[i].dark_s), std::ranges::max(simulated[i].dark_s)));
  }
  MESSAGE(fmt::format("cut to marks installed: {} {:.4f} s, world {:.4f} s", who, real[1].mark_s,
                      simulated[1].mark_s));
  if (test_effort(50) < 50) return;  // under sanitizers times mean nothing
  te::testing::check_story(lab.fabric, real,
                           {.notice_s = 0,
                            .mark_s = 0.1,
                            .bgp_s = 0.9,
                            .lease_s = overlay_lease.seconds(),
                            .slack_s = 0.05});
}

}  // namespace weft::adapt::lab::testing
