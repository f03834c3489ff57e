#include "adapt/devices/actuator.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/text.hpp"

namespace weft::adapt::devices {
namespace {

using port::ActionKind;
using port::Service;

constexpr std::chrono::milliseconds look_every{250};

ActionKind opposite(ActionKind kind) {
  return kind == ActionKind::drain ? ActionKind::undrain : ActionKind::drain;
}

Service judge(const Result<PortState>& a, const Result<PortState>& b) {
  const auto is_any = [&](auto get, Level level) {
    return (a && get(*a) == level) || (b && get(*b) == level);
  };
  const auto admin = [](const PortState& port) { return port.admin; };
  const auto oper = [](const PortState& port) { return port.oper; };
  if (is_any(admin, Level::down))
    return is_any(oper, Level::up) ? Service::draining : Service::drained;
  const bool are_open = a && b && a->admin == Level::up && b->admin == Level::up;
  return are_open ? Service::in_service : Service::unknown;
}

}  // namespace

std::string to_text(const Plan& plan) {
  std::vector<std::string> all;
  for (const Commands& step : plan.steps) all.insert(all.end(), step.begin(), step.end());
  return fmt::format("{} ({}, {}): {}", plan.device->name, plan.device->dialect->name,
                     plan.device->address, fmt::join(all, "; "));
}

DeviceActuator::DeviceActuator(const model::Fabric& fabric, Settings settings, OpenSession open)
    : fabric_(fabric), settings_(std::move(settings)), open_(std::move(open)) {}

Result<DeviceActuator> DeviceActuator::create(const model::Fabric& fabric, Settings settings,
                                              OpenSession open) {
  DeviceActuator out(fabric, std::move(settings), std::move(open));
  Errors errors;
  for (const Device& device : out.settings_.devices) {
    const auto entity = model::find_entity(fabric, {device.name, device.where});
    if (!entity)
      errors.push_back(entity.error());
    else if (entity->kind != model::EntityKind::node ||
             !fabric.is_switch(model::NodeId(entity->id)))
      errors.push_back({Errc::unknown,
                        device.where,
                        fmt::format("{} is not a switch of the fabric", quote(device.name)),
                        "list switches only",
                        {}});
    else
      out.by_node_[model::NodeId(entity->id)] = &device;
  }
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return out;
}

Result<Plan> DeviceActuator::plan_of(model::NodeId node, std::string_view interface_name,
                                     ActionKind kind) const {
  const auto found = by_node_.find(node);
  if (found == by_node_.end())
    return fail(Errc::unsupported, {},
                fmt::format("{} is not among the switches of actuator:", fabric_.name(node)),
                "add it to the file of switches");
  const Dialect& dialect = *found->second->dialect;
  const bool drains = kind == ActionKind::drain;
  Plan out{.device = found->second,
           .interface_name = std::string(interface_name),
           .steps = {},
           .state = {}};
  if (!interface_name.empty()) {
    WEFT_TRY(Commands step, of_port(drains ? dialect.shut : dialect.open, interface_name));
    out.steps.push_back(std::move(step));
    WEFT_TRY(out.state, of_port(dialect.port_state, interface_name));
    return out;
  }
  if (dialect.drain.empty())
    return fail(Errc::unsupported, {},
                fmt::format("{}: the dialect {} has no commands for whole switches",
                            found->second->name, dialect.name),
                "drain its cables, or use another dialect");
  out.steps = drains ? dialect.drain : dialect.undrain;
  out.state = dialect.switch_state;
  return out;
}

Result<std::vector<Plan>> DeviceActuator::plan(std::string_view entity, ActionKind kind) const {
  WEFT_TRY(const model::Entity found, model::find_entity(fabric_, {entity, {}}));
  std::vector<Plan> out;
  if (found.kind == model::EntityKind::node) {
    WEFT_TRY(Plan one, plan_of(model::NodeId(found.id), "", kind));
    out.push_back(std::move(one));
    return out;
  }
  if (found.kind != model::EntityKind::cable && found.kind != model::EntityKind::link)
    return fail(Errc::unsupported, {},
                fmt::format("{} is neither a switch nor a cable", quote(entity)));
  const model::LinkId link = found.kind == model::EntityKind::cable
                                 ? forward(model::CableId(found.id))
                                 : model::LinkId(found.id);
  for (const model::LinkId end : {link, reverse(link)}) {
    WEFT_TRY(Plan one, plan_of(fabric_.from(end), fabric_.interface_name(end), kind));
    out.push_back(std::move(one));
  }
  return out;
}

Result<PortState> DeviceActuator::read_port(const Plan& end) {
  WEFT_TRY(const std::vector<std::string> answers, open_(*end.device, settings_)->run(end.state));
  return end.device->dialect->read_port(answers);
}

Result<Service> DeviceActuator::read_switch(const Plan& plan) {
  WEFT_TRY(const std::vector<std::string> answers, open_(*plan.device, settings_)->run(plan.state));
  return plan.device->dialect->read_switch(answers);
}

Status DeviceActuator::send(const Plan& plan, const Commands& step) {
  WEFT_TRY_STATUS(open_(*plan.device, settings_)->run(step));
  return {};
}

Status DeviceActuator::act(const port::Action& action) {
  WEFT_TRY(const std::vector<Plan> plans, plan(action.entity, action.kind));
  WEFT_TRY(const std::vector<Plan> back, plan(action.entity, opposite(action.kind)));
  if (settings_.dry_run) {
    std::vector<std::string> lines;
    for (const Plan& one : plans) lines.push_back(to_text(one));
    return fail(Errc::infeasible, {},
                fmt::format("dry run, nothing was sent: {}", fmt::join(lines, " | ")));
  }
  return plans.size() == 1 ? act_on_switch(plans[0], back[0], action.kind)
                           : act_on_cable(plans, back, action.kind);
}

Status DeviceActuator::act_on_switch(const Plan& plan, const Plan& back, ActionKind kind) {
  WEFT_TRY(const Service before, read_switch(plan));
  const bool drains = kind == ActionKind::drain;
  if (before == (drains ? Service::drained : Service::in_service)) return {};
  if (drains && before == Service::unknown)
    return fail(Errc::unsupported, {},
                fmt::format("{} does not say whether it is in service", plan.device->name));
  Status sent;
  std::size_t done = 0;
  for (; done < plan.steps.size() && sent; ++done) {
    if (done > 0) std::this_thread::sleep_for(settings_.settle);
    sent = send(plan, plan.steps[done]);
  }
  // Of an undrain what was done is left: the switch is that much closer to service.
  if (sent || sent.error().code == Errc::io || !drains || done == 1) return sent;
  for (const Commands& step : back.steps)
    if (const Status undone = send(back, step); !undone)
      return fail(Errc::io, {},
                  fmt::format("{}; what it had taken could not be taken back: {}",
                              sent.error().what, undone.error().what));
  return sent;
}

// Fails: Errc::unsupported where the end still has a signal after the time to settle.
Status DeviceActuator::await_no_signal(const Plan& end) {
  const auto until = std::chrono::steady_clock::now() + settings_.settle;
  for (;;) {
    const auto state = read_port(end);
    if (!state || state->oper != Level::up) return {};  // whoever does not answer is not in the way
    if (std::chrono::steady_clock::now() >= until)
      return fail(Errc::unsupported, {},
                  fmt::format("{} of {} still has a signal, although the other end of the cable "
                              "was shut: the cabling is not as the fabric has it",
                              end.interface_name, end.device->name));
    std::this_thread::sleep_for(look_every);
  }
}

Status DeviceActuator::act_on_cable(const std::vector<Plan>& ends, const std::vector<Plan>& back,
                                    ActionKind kind) {
  const bool drains = kind == ActionKind::drain;
  const Level wanted = drains ? Level::down : Level::up;
  std::vector<Result<PortState>> before;
  for (const Plan& end : ends) {
    before.push_back(read_port(end));
    const auto& state = before.back();
    if (state && state->admin == Level::unknown)
      return fail(Errc::unsupported, {},
                  fmt::format("{} does not say whether {} is shut: is that the name of the port?",
                              end.device->name, end.interface_name));
    if (!state && (!drains || state.error().code != Errc::io))
      return std::unexpected(state.error());
  }
  if (!before[0] && !before[1]) return std::unexpected(before[0].error());
  std::vector<std::size_t> done;
  Status sent;
  for (std::size_t i = 0; i < ends.size() && sent; ++i) {
    if (!before[i] || before[i]->admin == wanted) continue;
    sent = send(ends[i], ends[i].steps[0]);
    if (sent) done.push_back(i);
    const auto& other = before[1 - i];
    if (sent && drains && i == 0 && other && other->oper == Level::up)
      sent = await_no_signal(ends[1]);
  }
  if (sent || sent.error().code == Errc::io) return sent;
  for (const std::size_t i : done)
    if (const Status undone = send(back[i], back[i].steps[0]); !undone)
      return fail(Errc::io, {},
                  fmt::format("{}; {} of {} could not be set back: {}", sent.error().what,
                              ends[i].interface_name, ends[i].device->name, undone.error().what));
  return sent;
}

Result<Service> DeviceActuator::state(std::string_view entity) {
  WEFT_TRY(const std::vector<Plan> plans, plan(entity, ActionKind::drain));
  if (plans.size() == 1) return read_switch(plans[0]);
  const auto a = read_port(plans[0]), b = read_port(plans[1]);
  const Service out = judge(a, b);
  if (out == Service::unknown && !a) return std::unexpected(a.error());
  if (out == Service::unknown && !b) return std::unexpected(b.error());
  return out;
}

Result<port::Check> DeviceActuator::check(std::string_view) {
  return fail(Errc::unsupported, {}, "switches send no test traffic");
}

}  // namespace weft::adapt::devices
