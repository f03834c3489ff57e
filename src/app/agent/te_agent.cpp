#include "app/agent/te_agent.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <utility>

#include "adapt/live/signals.hpp"
#include "adapt/live/system_clock.hpp"
#include "base/file.hpp"
#include "base/markup.hpp"
#include "base/text.hpp"
#include "os/log.hpp"

namespace weft::app {
namespace {

namespace live = adapt::live;
namespace te = operate::te;
using adapt::Netlink;
using adapt::SwitchOverlay;
using model::LinkId;
using std::chrono::milliseconds;

constexpr milliseconds te_turn{200};     // between looks at routes that are waited for
constexpr milliseconds te_look{10'000};  // at all interfaces and neighbours, without news
constexpr milliseconds te_hold{1'500};   // that the service may hold a request for
constexpr milliseconds te_patience{4'000};
constexpr milliseconds te_fresh{2'000};  // an answer that took longer renews nothing
constexpr milliseconds te_refused{5'000};
constexpr milliseconds te_stop{50};
constexpr milliseconds te_again{1'000};  // after orders that could not be carried out

constexpr std::string_view rights_hint =
    "traffic engineering needs root (CAP_NET_ADMIN), nf_tables in the kernel and libnftables1";

// All cables of a switch in the zone, in its order.
std::vector<TeAgent::Port> ports_of(const model::Fabric& fabric, const route::Zone& zone,
                                    model::NodeId device) {
  std::vector<TeAgent::Port> out;
  for (const LinkId up : zone.up) {
    if (!up.valid() || (fabric.from(up) != device && fabric.to(up) != device)) continue;
    const LinkId link = fabric.from(up) == device ? up : model::reverse(up);
    out.push_back({.link = link, .name = fabric.name(link), .interface = {}, .lost = {}});
  }
  return out;
}

bool is_rack(const model::Fabric& fabric, const route::Zone& zone, model::NodeId device) {
  return std::ranges::any_of(zone.up,
                             [&](LinkId up) { return up.valid() && fabric.from(up) == device; });
}

Status with_hint(Status status) {
  if (status || !status.error().hint.empty()) return status;
  Error error = std::move(status).error();
  error.hint = rights_hint;
  return std::unexpected(std::move(error));
}

Status check_forwarding() {
  const auto text = read_file("/proc/sys/net/ipv4/ip_forward", 16);
  if (text && trim(*text) == "1") return {};
  return fail(Errc::unsupported, {"--te", 0, 0},
              "this machine does not forward IPv4 packets (net.ipv4.ip_forward is not 1)",
              "run the agent on a switch that forwards with the Linux kernel, in the network "
              "namespace in which it does");
}

void name_interfaces(const model::Fabric& fabric, const std::vector<adapt::LinkState>& interfaces,
                     std::vector<TeAgent::Port>& ports,
                     const std::function<void(TeAgent::Port&, bool carrier)>& set_carrier) {
  for (TeAgent::Port& port : ports) {
    const auto found = std::ranges::find(
        interfaces, adapt::kernel_name(fabric.interface_name(port.link)), &adapt::LinkState::name);
    port.interface = found == interfaces.end() ? "" : found->name;
    port.index = found == interfaces.end() ? 0 : found->index;
    set_carrier(port, found != interfaces.end() && found->carrier);
  }
}

// A service that is away is looked for again at once; one that refuses has its reasons.
milliseconds pause_after(const Error& error) {
  return error.code == Errc::io ? te_turn : te_refused;
}

void rest(milliseconds pause, const std::stop_token& stop) {
  for (milliseconds slept{0}; slept < pause && !stop.stop_requested(); slept += te_stop)
    std::this_thread::sleep_for(te_stop);
}

}  // namespace

Result<std::unique_ptr<TeAgent>> TeAgent::open(TeAgentSettings settings) {
  const model::Fabric& fabric = settings.fabric;
  const std::string name = fabric.name(settings.device);
  WEFT_TRY(route::Zone zone, route::find_zone(fabric));
  std::vector<Port> ports = ports_of(fabric, zone, settings.device);
  if (ports.empty())
    return fail(Errc::unsupported, {"--te", 0, 0}, name + " has no cables between racks and spines",
                "run weft agent --te on the switches of the zone");
  WEFT_TRY_STATUS(check_forwarding());
  WEFT_TRY(Netlink netlink, Netlink::open(name));
  WEFT_TRY(adapt::LinkWatch watch, adapt::LinkWatch::open());
  WEFT_TRY(const auto interfaces, netlink.links());
  name_interfaces(settings.fabric, interfaces, ports,
                  [](Port& port, bool carrier) { port.carrier = carrier; });
  std::vector<std::string> without;
  for (const Port& port : ports)
    if (port.interface.empty())
      without.push_back(adapt::kernel_name(fabric.interface_name(port.link)));
  if (without.size() == ports.size())
    return fail(Errc::unsupported, {"--te", 0, 0},
                fmt::format("the kernel has none of the interfaces of {}: {}", name,
                            fmt::join(without, ", ")),
                "name them in the fabric file as the kernel does; a switch whose kernel does not "
                "have its ports cannot be told by marks");
  if (!without.empty())
    log(LogLevel::warning, "weft agent",
        fmt::format("{}: the kernel has no interface {}: taken for down", name,
                    fmt::join(without, ", ")));
  std::optional<SwitchOverlay> overlay;
  if (is_rack(fabric, zone, settings.device)) {
    std::vector<adapt::OverlayUplink> uplinks;
    for (const Port& port : ports) uplinks.push_back({port.interface, 0});
    auto made = SwitchOverlay::open(name, std::move(uplinks));
    if (!made) return std::unexpected(with_hint(std::unexpected(made.error())).error());
    overlay = *std::move(made);
  }
  return std::make_unique<TeAgent>(std::move(settings), std::move(zone), std::move(ports),
                                   std::move(netlink), std::move(watch), std::move(overlay));
}

Status TeAgent::remove(const model::Fabric& fabric, model::NodeId device) {
  WEFT_TRY(const route::Zone zone, route::find_zone(fabric));
  return with_hint(
      SwitchOverlay::remove(fabric.name(device), ports_of(fabric, zone, device).size()));
}

TeAgent::TeAgent(TeAgentSettings settings, route::Zone zone, std::vector<Port> ports,
                 Netlink netlink, adapt::LinkWatch watch, std::optional<SwitchOverlay> overlay)
    : settings_(std::move(settings)),
      zone_(std::move(zone)),
      name_(settings_.fabric.name(settings_.device)),
      path_("/v1/te/switches/" + percent_encoded(name_)),
      agent_(fmt::format("{}-{:x}", ::getpid(), live::SystemClock().wall().ns)),
      netlink_(std::move(netlink)),
      links_(std::move(watch)),
      overlay_(std::move(overlay)),
      ports_(std::move(ports)) {
  for (const auto& [nic, address] : settings_.addresses)
    if (const std::uint32_t rack = zone_.rack_of[nic]; rack != route::Zone::none)
      rack_addresses_[rack].push_back(address);
  for (std::uint32_t rack = 0; rack < zone_.racks; ++rack)
    for (std::uint32_t c = 0; c < zone_.columns; ++c)
      if (const LinkId up = zone_.uplink(rack, c); up.valid())
        rack_names_[rack] = settings_.fabric.name(settings_.fabric.from(up));
  std::string said;
  say("interfaces", look(), said);
  cables_ = std::jthread([this](const std::stop_token& stop) { watch_cables(stop); });
  marks_ = std::jthread([this](const std::stop_token& stop) { keep_marks(stop); });
}

void TeAgent::say(std::string_view what, const Status& status, std::string& said) const {
  const std::string text = status ? "" : status.error().text();
  if (text == said) return;
  said = text;
  log(text.empty() ? LogLevel::info : LogLevel::warning, "weft agent",
      fmt::format("traffic engineering: {}: {}", what, text.empty() ? "well again" : text));
}

te::SwitchReport TeAgent::compose() {
  const std::scoped_lock lock(mutex_);
  te::SwitchReport out{.agent = agent_, .serial = ++serial_};
  for (const Port& port : ports_) {
    out.ports.push_back({port.name, port.carrier, port.has_route || !overlay_});
    if (port.is_watched) out.routes.push_back({port.name, port.lost});
  }
  return out;
}

// What was found of its routes before is of no use then, and the kernel forgets that of the
// overlay.
void TeAgent::set_carrier(Port& port, bool carrier) {
  if (port.carrier == carrier) return;
  port.carrier = carrier;
  port.has_route = false;
  port.lost = racks_behind(port);
}

// What the kernel says of carrier. True: something has changed.
bool TeAgent::take_news() {
  bool is_news = false, is_back = false;
  const auto take = [&](std::string_view interface, bool carrier) {
    const auto port = std::ranges::find(ports_, interface, &Port::interface);
    if (port == ports_.end() || port->carrier == carrier) return;
    set_carrier(*port, carrier);
    is_news = true;
    is_back |= carrier;
  };
  bool is_whole = true;
  {
    const std::scoped_lock lock(mutex_);
    is_whole = links_.read(take);
  }
  // Looked at anew, so that a cable that is back has its route before that is reported.
  if ((is_back || !is_whole) && !look()) return is_news;
  return is_news || !is_whole;
}

// All interfaces as they are, neighbours of uplinks, and the overlay's routes.
Status TeAgent::look() {
  WEFT_TRY(const auto interfaces, netlink_.links());
  WEFT_TRY(auto routes, netlink_.routes());
  const adapt::MainTable table(std::move(routes));
  const std::scoped_lock overlay_lock(overlay_mutex_);
  const std::scoped_lock lock(mutex_);
  name_interfaces(settings_.fabric, interfaces, ports_,
                  [this](Port& port, bool carrier) { set_carrier(port, carrier); });
  if (!overlay_) return {};
  WEFT_TRY(const bool is_same, overlay_->reread());
  if (!is_same) is_resync_ = true;
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    if (const adapt::Ipv4 found = table.neighbour(ports_[i].index); found != 0)
      ports_[i].gateway = found;
    overlay_->set_uplink(i, {ports_[i].interface, ports_[i].gateway});
  }
  const Status written = overlay_->write_routes();
  for (Port& port : ports_)
    port.has_route = written.has_value() && port.carrier && port.gateway != 0;
  return written;
}

std::vector<std::string> TeAgent::racks_behind(const Port& port) const {
  std::vector<std::string> out;
  const model::NodeId other = settings_.fabric.to(port.link);
  for (const auto& [rack, name] : rack_names_)
    if (overlay_ ? name != name_ : name == settings_.fabric.name(other)) out.push_back(name);
  return out;
}

// Which racks' NICs the main table does not lead to over the cables that are waited for.
Status TeAgent::look_at_routes() {
  WEFT_TRY(auto routes, netlink_.routes());
  const adapt::MainTable table(std::move(routes));
  const std::scoped_lock lock(mutex_);
  for (Port& port : ports_) {
    if (!port.is_watched) continue;
    port.lost = racks_behind(port);
    std::erase_if(port.lost, [&](const std::string& name) {
      const auto rack =
          std::ranges::find(rack_names_, name, [](const auto& r) { return r.second; });
      const auto addresses = rack_addresses_.find(rack->first);
      return addresses == rack_addresses_.end() ||
             std::ranges::all_of(addresses->second, [&](adapt::Ipv4 address) {
               return table.leads(address, port.index);
             });
    });
  }
  return {};
}

Result<std::string> TeAgent::send(std::optional<live::HttpClient>& client, const std::string& path,
                                  const te::SwitchReport& report, const std::stop_token& stop) {
  if (!client) {
    WEFT_TRY(client, live::open_service(settings_.service, settings_.tls, te_patience));
  }
  const std::stop_callback end_at_once(stop, [&] { client->stop(); });
  auto out =
      live::send_json(*client, "POST", path, te::to_json(report), settings_.token, te_patience);
  if (!out) client.reset();
  return out;
}

void TeAgent::watch_cables(const std::stop_token& stop) {
  live::prefer_early_turns();  // flows wait for it, whatever else the switch has to do
  std::optional<live::HttpClient> client;
  std::string said_looks, said_reports;
  Clock::time_point looked = Clock::now(), turned = looked;
  bool is_unsent = true;
  while (!stop.stop_requested()) {
    pollfd wanted{links_.fd(), POLLIN, 0};
    static_cast<void>(::poll(&wanted, 1, static_cast<int>(te_turn.count())));
    if ((wanted.revents & POLLIN) != 0) is_unsent |= take_news();
    const auto now = Clock::now();
    bool is_incomplete = false, is_watched = false;
    {
      const std::scoped_lock lock(mutex_);
      for (const Port& port : ports_) {
        is_incomplete |= overlay_ && port.carrier && !port.has_route;
        is_watched |= port.is_watched;
      }
    }
    if (now - looked >= (is_incomplete ? te_turn : te_look)) {
      const auto before = compose().ports;
      say("interfaces", look(), said_looks);
      looked = now;
      is_unsent |= compose().ports != before;
    }
    if (is_watched && now - turned >= te_turn) {
      const auto before = compose().routes;
      say("routes", look_at_routes(), said_looks);
      turned = now;
      is_unsent |= compose().routes != before;
    }
    if (!is_unsent) continue;
    const auto sent = send(client, path_, compose(), stop);
    if (stop.stop_requested()) return;
    is_unsent = !sent;
    say("reports", sent ? Status() : std::unexpected(sent.error()), said_reports);
    if (!sent) rest(pause_after(sent.error()), stop);
  }
}

Result<std::optional<std::uint32_t>> TeAgent::place_of(const std::string& uplink) const {
  if (uplink.empty()) return std::nullopt;
  for (std::size_t i = 0; i < ports_.size(); ++i)
    if (ports_[i].name == uplink) return static_cast<std::uint32_t>(i);
  return fail(Errc::unknown, {},
              fmt::format("{} has no uplink {}: the service's fabric file is another one", name_,
                          quote(uplink)),
              "give both the same file");
}

Result<std::vector<te::SwitchMark>> TeAgent::installed() {
  std::vector<te::SwitchMark> out;
  const std::scoped_lock lock(overlay_mutex_);
  if (overlay_)
    for (const auto& [flow, uplink] : overlay_->installed())
      out.push_back({flow.src, flow.dst, flow.port, ports_[uplink].name});
  return out;
}

// What the next request reports goes to `next`.
void TeAgent::carry_out(const te::SwitchOrders& orders, Clock::time_point asked,
                        te::SwitchReport& next) {
  Status done;
  std::vector<adapt::FlowMark> changes;
  for (const te::SwitchMark& mark : orders.changes) {
    auto place = place_of(mark.uplink);
    if (!place)
      done = std::unexpected(place.error());
    else
      changes.push_back({.flow = {mark.src, mark.dst, mark.port}, .uplink = *place});
  }
  const std::scoped_lock lock(overlay_mutex_);
  if (done && !changes.empty())
    done = overlay_ ? overlay_->apply(changes)
                    : fail(Errc::unknown, {}, name_ + " is a spine: it holds no marks");
  if (done && orders.renewals != 0 && overlay_ && Clock::now() - asked <= te_fresh)
    done = overlay_->renew();
  if (!done && overlay_)
    if (const auto is_same = overlay_->reread(); is_same && !*is_same) is_resync_ = true;
  next.trouble = done ? "" : done.error().text();
  if (done) next.done = orders.place;
}

void TeAgent::keep_marks(const std::stop_token& stop) {
  live::prefer_early_turns();
  std::optional<live::HttpClient> client;
  std::string said_service, said_orders;
  const std::string path = fmt::format("{}?wait_ms={}", path_, te_hold.count());
  te::SwitchReport next{.done = te::OrderPlace{}};
  std::pair<std::string, std::uint64_t> renewed;
  while (!stop.stop_requested()) {
    if (is_resync_.exchange(false)) next.done = te::OrderPlace{};
    te::SwitchReport report = compose();
    report.done = next.done;
    report.marks = next.marks;
    report.trouble = next.trouble;
    const auto asked = Clock::now();
    const auto text = send(client, path, report, stop);
    auto orders = text ? te::parse_orders(*text, settings_.service.url)
                       : Result<te::SwitchOrders>(std::unexpected(text.error()));
    if (stop.stop_requested()) return;
    say("orders", orders ? Status() : std::unexpected(orders.error()), said_service);
    if (!orders) {
      rest(pause_after(orders.error()), stop);
      continue;
    }
    next.marks.reset();
    if (orders->wants_marks) {
      next.done = orders->place;
      next.marks = installed().value();
      continue;
    }
    {
      const std::scoped_lock lock(mutex_);
      for (Port& port : ports_) {
        const bool is_watched = std::ranges::find(orders->watch, port.name) != orders->watch.end();
        if (is_watched && !port.is_watched) port.lost = racks_behind(port);  // not looked at yet
        port.is_watched = is_watched;
      }
    }
    te::SwitchOrders to_do = *std::move(orders);
    const std::pair<std::string, std::uint64_t> renewal{to_do.place.epoch, to_do.renewals};
    if (std::exchange(renewed, renewal) == renewal) to_do.renewals = 0;
    carry_out(to_do, asked, next);
    say("orders", next.trouble.empty() ? Status() : fail(Errc::io, {}, next.trouble), said_orders);
    if (!next.trouble.empty()) rest(te_again, stop);
  }
}

}  // namespace weft::app
