#include "engine/packet/check_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

namespace weft::engine::packet {
namespace {

using model::Fabric;
using model::LinkId;
using model::NodeId;
using model::NodeKind;

constexpr Bytes queue_max{UINT32_MAX};

class Checker {
 public:
  Checker(const Options& options, Reader& transport, const ReadContext& context)
      : options_(options), transport_(transport), context_(context) {}

  void check() {
    check_window();
    check_classes();
    check_transport();
    if (context_.runner == ReadContext::Runner::packets) check_paths();
    check_thresholds();
    check_buffer_sizes();
    if (context_.fabric == nullptr) return;
    check_roles(*context_.fabric);
    check_rates(*context_.fabric);
    if (options_.pfc.on) check_memory(*context_.fabric);
  }

 private:
  void check_window();
  void check_classes();
  void check_transport();
  void check_paths();
  void check_thresholds();
  void check_buffer_sizes();
  void check_roles(const Fabric& fabric);
  void check_rates(const Fabric& fabric);
  void check_memory(const Fabric& fabric);
  bool check_switch(const Fabric& fabric, NodeId node, const Buffer& buffer);

  Bytes full_packet() const { return options_.wire.mtu + options_.wire.header; }
  // Where a key of a map inside the section stands.
  Where where(std::string_view key, std::string_view inner) const;
  void error(Errc code, const Where& where, std::string what, std::string hint) {
    transport_.error(code, where, std::move(what), std::move(hint));
  }
  void contradiction(std::string_view key, std::string what, std::string hint) {
    transport_.error(Errc::infeasible, transport_.where(key), std::move(what), std::move(hint));
  }
  const Buffer* buffer_of(const Fabric& fabric, NodeId node) const;

  const Options& options_;
  Reader& transport_;
  const ReadContext& context_;
};

Where Checker::where(std::string_view key, std::string_view inner) const {
  const Config* section = transport_.child(key);
  const Config* value = section != nullptr ? section->find(inner) : nullptr;
  return value != nullptr ? value->where : transport_.where(key);
}

void Checker::check_window() {
  if (options_.window.count > 0 && options_.window < full_packet())
    error(Errc::value, transport_.where("window"),
          fmt::format("a window of {} is too small for a packet of {}", to_text(options_.window),
                      to_text(full_packet())),
          "one round trip at line rate is typical; omit it for no limit");
  if (options_.ack_timeout.ps == 0)
    error(Errc::value, transport_.where("ack_timeout"),
          "ack_timeout is 0: everything would be retransmitted immediately",
          "use more than a round trip, e.g. 1 ms");
}

void Checker::check_classes() {
  const Scheduler& scheduler = options_.scheduler;
  const std::size_t count = scheduler.weights.size();
  if (count > class_count_max)
    error(Errc::value, where("classes", "weights"),
          fmt::format("{} classes; at most {} are supported", count, class_count_max),
          "merge some of them");
  const auto check = [&](const char* key, std::uint32_t number) {
    if (number >= count)
      error(Errc::value, where("classes", key),
            fmt::format("classes.{} is {}, but weights has {} classes", key, number, count),
            "classes are numbered from 0: give one weight per class");
  };
  check("data", scheduler.data_class);
  check("ack", scheduler.ack_class);
  check("control", scheduler.control_class);
  for (const std::uint32_t weight : scheduler.weights)
    if (count > 1 && weight > 0 && Bytes{weight} < full_packet())
      error(Errc::value, where("classes", "weights"),
            fmt::format("a weight of {} B is below a full packet of {}", weight,
                        to_text(full_packet())),
            "set the bytes that a class may send per turn, or 0 for strict priority");
  const bool high =
      options_.admission == Admission::cts && options_.cts.queue == CtsOptions::Queue::high;
  if (high && (scheduler.control_class >= count || scheduler.control_class == scheduler.data_class))
    contradiction("classes", "cts.queue: high needs a separate class for control packets",
                  "write e.g. classes: {weights: [4160 B, 0], control: 1}, or cts: {queue: data}");
}

void Checker::check_transport() {
  const bool selective = options_.reliability == Reliability::selective;
  // Schemes that spread packets make it so where the section does not say.
  const bool by_scheme =
      context_.runner == ReadContext::Runner::other && !transport_.has("reliability");
  if (options_.congestion == Congestion::hpcc && selective && !by_scheme)
    contradiction(transport_.has("reliability") ? "reliability" : "cc",
                  "cc: hpcc compares telemetry of one path, packet by packet, and does not work "
                  "with selective retransmission",
                  "use go_back_n on one path, or cc: nscc");
  if (options_.congestion == Congestion::nscc && !selective)
    contradiction("reliability", "cc: nscc counts each packet, which go_back_n does not report",
                  "use reliability: selective");
  if (options_.admission == Admission::cts && selective)
    contradiction("reliability",
                  "name: cts clears chunks that come in order, and selective retransmission takes "
                  "packets in any order",
                  "use reliability: go_back_n, best with a scheme of one path, e.g. e_ecmp");
  if (options_.admission != Admission::pull) return;
  if (options_.congestion != Congestion::none)
    contradiction("cc", "name: eqds lets the receiver set the sending rate, and so does cc:",
                  "remove cc, or use name: nscc");
  if (!selective)
    contradiction("reliability",
                  "name: eqds retransmits single packets, not all packets since a loss",
                  "use reliability: selective");
}

void Checker::check_paths() {
  const route::RoutingConfig& routing = context_.routing;
  if (options_.congestion == Congestion::hpcc && options_.balance != Balance::path &&
      options_.reliability == Reliability::goback_n)
    contradiction("cc",
                  fmt::format("cc: hpcc compares telemetry of one path; scheme {} changes the path",
                              routing.scheme),
                  "use ecmp or e_ecmp");
  if (options_.admission == Admission::pull &&
      (options_.balance == Balance::multipath || options_.balance == Balance::ugal))
    contradiction(
        "name",
        fmt::format("name: eqds gives credit to packets that switches route; under scheme "
                    "{} they keep to paths of their own",
                    routing.scheme),
        "use spray, reps or adaptive, or name: nscc");
  if (routing.weighted && options_.balance != Balance::path)
    error(Errc::unsupported, routing.where,
          fmt::format("scheme {} ignores weights on the packet engine", routing.scheme),
          "remove weighted, or use ecmp or e_ecmp");
}

void Checker::check_thresholds() {
  const Pfc& pfc = options_.pfc;
  if (!pfc.on) return;
  if (pfc.threshold == Pfc::Threshold::fixed && (pfc.xoff < full_packet() || pfc.xoff > queue_max))
    error(Errc::value, where("pfc", "xoff"),
          fmt::format("pfc.xoff {} is not within a full packet ({}) .. 4 GiB", to_text(pfc.xoff),
                      to_text(full_packet())),
          "10 to 100 packets is typical");
  if (pfc.reserve > queue_max)
    error(Errc::value, where("pfc", "reserve"),
          fmt::format("pfc.reserve {} is above 4 GiB", to_text(pfc.reserve)),
          "a few packets is typical");
  if (pfc.headroom > queue_max)
    error(Errc::value, where("pfc", "headroom"),
          fmt::format("pfc.headroom {} is above 4 GiB", to_text(pfc.headroom)),
          "omit it to use what the links need");
}

void Checker::check_buffer_sizes() {
  const Config* section = transport_.child("buffers");
  for (const auto& [role, buffer] : options_.buffers) {
    const std::string name = role.empty() ? "switches" : role;
    const Where place = section != nullptr && section->find(role.empty() ? "others" : role)
                            ? where("buffers", role.empty() ? "others" : role)
                            : transport_.where("buffers");
    for (const Bytes size : {buffer.shared, buffer.per_port})
      if (size.count > 0 && size < full_packet())
        error(Errc::value, place,
              fmt::format("{} buffer {}, less than one packet of {} (mtu and header)", name,
                          to_text(size), to_text(full_packet())),
              "use more memory or a smaller mtu; 0 means all memory");
    if (buffer.per_port > queue_max)
      error(Errc::value, place, fmt::format("{} buffer more than 4 GiB for one port", name),
            "0 means all memory");
  }
  if (options_.overflow == Overflow::trim && options_.reliability == Reliability::goback_n &&
      options_.transport != "eqds" && options_.transport != "nscc")
    error(Errc::infeasible, transport_.where("overflow"),
          "go-back-N cannot use trimmed packets: it accepts only packets in order",
          "use reliability: selective, or overflow: drop");
  if (options_.overflow == Overflow::trim && options_.buffers.empty() &&
      !options_.round_trip_queues)
    context_.notes.push_back(
        "switches have unlimited buffers, so none trims packets: transport.buffers limits them");
}

void Checker::check_roles(const Fabric& fabric) {
  const Config* section = transport_.child("buffers");
  if (section == nullptr || section->kind != Config::Kind::map) return;
  std::vector<std::string> roles;
  for (const Fabric::Role& role : fabric.roles()) {
    const bool slow_nic = role.kind == NodeKind::nic && options_.receive_rate > 0;
    if (role.kind == NodeKind::fabric_switch || slow_nic) roles.push_back(role.name);
  }
  roles.emplace_back("others");
  for (const Config::Field& field : section->fields)
    if (std::ranges::find(roles, field.key) == roles.end())
      error(Errc::unknown, field.where,
            fmt::format("no switch of this fabric has the role {}{}", quote(field.key),
                        did_you_mean(field.key, roles)),
            fmt::format("choose among {}", fmt::join(roles, ", ")));
}

void Checker::check_rates(const Fabric& fabric) {
  if (options_.congestion != Congestion::dcqcn || options_.dcqcn.minimum.bps <= 0) return;
  for (const NodeId nic : fabric.nics())
    for (const LinkId link : fabric.out(nic)) {
      if (!fabric.on_wire(link) || options_.dcqcn.minimum <= fabric.rate(link)) continue;
      return error(Errc::value, where("dcqcn", "minimum"),
                   fmt::format("dcqcn.minimum {} is above the rate of {}, {}",
                               to_text(options_.dcqcn.minimum), fabric.name(link),
                               to_text(fabric.rate(link))),
                   "reduce it");
    }
}

const Buffer* Checker::buffer_of(const Fabric& fabric, NodeId node) const {
  auto found = options_.buffers.find(fabric.role_name(node));
  if (found == options_.buffers.end()) found = options_.buffers.find("");
  return found == options_.buffers.end() ? nullptr : &found->second;
}

// One error or note for each role.
void Checker::check_memory(const Fabric& fabric) {
  std::set<std::string> unbounded;
  for (const Fabric::Role& role : fabric.roles()) {
    if (role.kind != NodeKind::fabric_switch) continue;
    for (const NodeId node : role.nodes) {
      const Buffer* buffer = buffer_of(fabric, node);
      if (buffer == nullptr || buffer->shared.count == 0) {
        unbounded.insert(role.name);
      } else if (!check_switch(fabric, node, *buffer)) {
        break;
      }
    }
  }
  if (options_.pfc.threshold == Pfc::Threshold::dynamic && !unbounded.empty())
    context_.notes.push_back(
        fmt::format("{} have no limited shared memory, so pfc.alpha never pauses their senders: "
                    "set transport.buffers, or use fixed thresholds (pfc.xoff)",
                    fmt::join(unbounded, ", ")));
}

// False, with an error, when nothing is left beside the headrooms.
bool Checker::check_switch(const Fabric& fabric, NodeId node, const Buffer& buffer) {
  const Pfc& pfc = options_.pfc;
  std::map<std::int64_t, std::size_t> ports;  // by headroom
  double reserved = 0;
  const double reserves = static_cast<double>(pfc.reserve.count) *
                          static_cast<double>(options_.scheduler.weights.size());
  for (const LinkId out : fabric.out(node)) {
    const LinkId in = reverse(out);
    const Bytes room = headroom_of(options_, fabric.rate(in), fabric.latency(in));
    const double bytes = static_cast<double>(room.count) * pfc.headroom_factor + reserves;
    ++ports[static_cast<std::int64_t>(std::min(bytes, 4e18))];
    reserved += bytes;
  }
  if (reserved + static_cast<double>(full_packet().count) <=
      static_cast<double>(buffer.shared.count))
    return true;
  std::string sum;
  for (const auto& [room, count] : ports)
    sum += fmt::format("{}{} ports x {} B", sum.empty() ? "" : " + ", count, room);
  error(Errc::infeasible, transport_.where("buffers"),
        fmt::format("the headroom{} of {} takes {} = {:.0f} B, but its memory has {} B",
                    reserves > 0 ? " and reserve" : "", fabric.name(node), sum, reserved,
                    buffer.shared.count),
        "increase its memory, or set pfc.headroom");
  return false;
}

}  // namespace

void check_options(const Options& options, Reader& transport, const ReadContext& context) {
  Checker(options, transport, context).check();
}

}  // namespace weft::engine::packet
