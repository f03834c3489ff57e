#include "adapt/lab/actuator.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "adapt/lab/cable_check.hpp"
#include "adapt/lab/drain.hpp"
#include "adapt/lab/drain_bgp.hpp"
#include "adapt/lab/drain_target.hpp"
#include "adapt/lab/flow_check.hpp"
#include "adapt/lab/forwarding.hpp"
#include "adapt/lab/frr.hpp"
#include "adapt/lab/sessions.hpp"
#include "base/text.hpp"

namespace weft::adapt::lab {
namespace {

using port::Service;

constexpr std::chrono::milliseconds lock_patience{5'000};
constexpr std::chrono::milliseconds daemon_patience{1'000};
constexpr std::size_t packets_at_once_max = 20'000;  // of all cables, each way

Result<Fd> lock_patiently(const std::string& directory) {
  const auto deadline = std::chrono::steady_clock::now() + lock_patience;
  for (;;) {
    Result<Fd> lock = lock_lab(directory);
    if (lock || lock.error().code != Errc::infeasible ||
        std::chrono::steady_clock::now() >= deadline)
      return lock;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

// How the switches that guard a target see their sessions over it.
struct SessionCount {
  std::size_t shut = 0, established = 0, down = 0;
  std::size_t known() const { return shut + established + down; }
};

SessionCount count_sessions(const Lab& lab, const DrainTarget& target) {
  std::map<LabNodeId, std::map<Ipv4, Session>> by_switch;
  SessionCount out;
  for (const EndId end : guarding_ends(lab.plan, target)) {
    const LabNodeId node = lab.plan.end(end).node;
    if (!by_switch.contains(node))
      by_switch.emplace(
          node, read_sessions(lab, node, daemon_patience).value_or(std::map<Ipv4, Session>{}));
    const auto it = by_switch[node].find(lab.plan.end(end.peer()).address);
    if (it == by_switch[node].end()) continue;
    ++(it->second == Session::shut          ? out.shut
       : it->second == Session::established ? out.established
                                            : out.down);
  }
  return out;
}

// Whether daemons have been told to send traffic elsewhere: what there is to see of a drain that
// was broken off before the sessions were shut.
bool is_asked_to_leave(const Lab& lab, const DrainTarget& target) {
  const std::string mark = target.node ? "bgp graceful-shutdown" : " route-map DRAIN out";
  for (const LabNodeId node : own_switches(lab, target)) {
    auto vty = Vty::connect(vty_path(lab.node_directory(node), "bgpd"),
                            std::chrono::milliseconds(0), daemon_patience);
    const auto config = vty ? vty->run({"show running-config"}) : Result<std::string>("");
    if (!config) continue;
    if (target.node && config->find(mark) != std::string::npos) return true;
    for (const EndId end : guarding_ends(lab.plan, target))
      if (target.cable && lab.plan.end(end).node == node &&
          config->find(ipv4_text(lab.plan.end(end.peer()).address) + mark) != std::string::npos)
        return true;
  }
  return false;
}

// A cable is shut where one end shuts it; a switch where all of its neighbours do.
Service judge(const Lab& lab, const SessionCount& sessions, const DrainTarget& target,
              bool crossed) {
  if (sessions.known() == 0) return Service::unknown;
  const bool shut = target.cable ? sessions.shut > 0 && sessions.established == 0
                                 : sessions.shut == sessions.known();
  if (shut) return crossed ? Service::draining : Service::drained;
  if (sessions.shut > 0) return Service::draining;
  if (crossed || sessions.established == 0) return Service::in_service;
  return is_asked_to_leave(lab, target) ? Service::draining : Service::in_service;
}

// The cables that an entity is made of: those of NICs too.
Result<std::vector<LabCableId>> cables_of(const Lab& lab, std::string_view entity) {
  const Token token{entity, {}};
  std::vector<LabCableId> out;
  if (entity.contains("--")) {
    WEFT_TRY(const LabCableId cable, lab.plan.find_cable(lab.fabric, token));
    out.push_back(cable);
    return out;
  }
  WEFT_TRY(const LabNodeId node, lab.plan.find_node(lab.fabric, token));
  for (const EndId end : lab.plan.nodes[node].ends) out.push_back(end.cable);
  return out;
}

}  // namespace

LabActuator::LabActuator(std::unique_ptr<Lab> lab, const LabActuatorOptions& options)
    : lab_(std::move(lab)), options_(options) {}
LabActuator::LabActuator(LabActuator&&) noexcept = default;
LabActuator& LabActuator::operator=(LabActuator&&) noexcept = default;
LabActuator::~LabActuator() = default;

Result<LabActuator> LabActuator::create(const std::string& lab_name,
                                        const LabActuatorOptions& options) {
  WEFT_TRY(Lab lab, open_lab(lab_name));
  return LabActuator(std::make_unique<Lab>(std::move(lab)), options);
}

Status LabActuator::act(const port::Action& action) {
  WEFT_TRY(const Fd lock, lock_patiently(lab_->directory));
  // Others may have drained and undrained since.
  WEFT_TRY(Lab lab, open_lab(lab_->options.name));
  const auto done = action.kind == port::ActionKind::drain ? drain(lab, action.entity)
                                                           : undrain(lab, action.entity);
  if (!done) return std::unexpected(done.error());
  return {};
}

Result<Service> LabActuator::state(std::string_view entity) {
  WEFT_TRY(const DrainTarget target, find_drain_target(*lab_, entity));
  WEFT_TRY(const Forwarding now, Forwarding::read(lab_->plan));
  const bool crossed = crosses(now, target);
  if (lab_->options.routing == Routing::static_routes)
    return crossed ? Service::in_service : Service::drained;
  return judge(*lab_, count_sessions(*lab_, target), target, crossed);
}

Result<port::Check> LabActuator::check(std::string_view entity) {
  WEFT_TRY(const std::vector<LabCableId> cables, cables_of(*lab_, entity));
  const std::size_t share = packets_at_once_max / std::max<std::size_t>(cables.size(), 1);
  const std::size_t packets =
      std::clamp(share, options_.packets_each_way / 5, options_.packets_each_way);
  return check_cables(lab_->plan, cables, std::max<std::size_t>(packets, 1));
}

Result<port::Check> LabActuator::check_flows(std::string_view entity,
                                             std::span<const port::Flow> flows) {
  WEFT_TRY(port::Check out, check(entity));
  WEFT_TRY(const std::vector<LabCableId> cables, cables_of(*lab_, entity));
  std::vector<port::Flow> over;
  for (const port::Flow& flow : flows) {
    const auto from = lab_->plan.find_sender(lab_->fabric, {flow.link, {}});
    if (from && std::ranges::find(cables, from->cable) != cables.end()) over.push_back(flow);
  }
  WEFT_TRY(const port::Check repeated, lab::check_flows(lab_->fabric, lab_->plan, over));
  out.sent += repeated.sent;
  out.lost += repeated.lost;
  return out;
}

}  // namespace weft::adapt::lab
