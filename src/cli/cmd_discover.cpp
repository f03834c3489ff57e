#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "adapt/gnmi/neighbours.hpp"
#include "adapt/gnmi/subscriber.hpp"
#include "adapt/gnmi/target_file.hpp"
#include "adapt/live/http_post.hpp"
#include "adapt/live/netbox.hpp"
#include "adapt/live/signals.hpp"
#include "adapt/live/system_clock.hpp"
#include "adapt/snmp/poller.hpp"
#include "base/file.hpp"
#include "base/json_text.hpp"
#include "base/names.hpp"
#include "base/plural.hpp"
#include "base/text.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "cli/telemetry_files.hpp"
#include "model/formats/cabling.hpp"
#include "model/formats/neighbours.hpp"
#include "model/formats/seen_cables.hpp"

namespace weft::cli {
namespace {

using model::CableDiff;
using model::NeighbourProtocol;
using model::Neighbours;
using model::SeenCable;

struct DiscoverArgs {
  std::vector<std::string> targets;       // CSV files of agents
  std::string gnmi;                       // CSV file of targets, instead
  std::string netbox, token, ca, filter;  // instead
  std::string by = "lldp";
  std::string fabric, out;
  // "": 2 s of an agent, 10 s of a gNMI target, 60 s of NetBox, which may take that for a page
  std::string timeout;
};

// A device that was asked.
struct Asked {
  Neighbours said;
  std::string error;  // "": it has answered
};

struct Discovery {
  std::vector<Asked> devices;
  std::vector<SeenCable> cables;
  std::size_t unplaced = 0;  // sessions of BGP
  std::uint64_t cut = 0;     // tables (SNMP) or values (gNMI) of more rows than are taken
};

Result<std::chrono::milliseconds> timeout_of(const DiscoverArgs& args, const char* usual) {
  return read_span_ms(args.timeout.empty() ? usual : args.timeout, "--timeout");
}

Result<NeighbourProtocol> protocol_of(const DiscoverArgs& args) {
  constexpr std::array<std::string_view, 2> names{"lldp", "bgp"};
  WEFT_TRY(const std::size_t name, find_name({args.by, {"--by", 0, 0}}, names));
  return static_cast<NeighbourProtocol>(name);
}

// What is wrong with an answer that came to its end.
std::string lack_of(const Neighbours& said, NeighbourProtocol by) {
  if (by == NeighbourProtocol::lldp)
    return said.system_name.empty() && said.lldp.empty() ? "answers, but has no LLDP" : "";
  if (said.sessions.empty()) return "answers, but has no neighbours of BGP with addresses";
  return said.addresses.empty() ? "answers, but has no addresses of interfaces" : "";
}

Discovery discovery_of(std::vector<Asked> devices, std::uint64_t cut) {
  std::ranges::sort(devices, model::natural_less, [](const Asked& one) { return one.said.device; });
  std::vector<Neighbours> said;
  for (const Asked& one : devices) said.push_back(one.said);
  model::NeighbourCables cables = model::cables_of(said);
  return {std::move(devices), std::move(cables.cables), cables.unplaced, cut};
}

Asked answer_of(adapt::snmp::Poll poll, NeighbourProtocol by) {
  Asked out{.said = std::move(poll.neighbours), .error = std::move(poll.error)};
  if (out.error.empty())
    out.error = poll.is_complete ? lack_of(out.said, by) : "no answer, or none to the end";
  return out;
}

constexpr std::size_t rows_max = adapt::gnmi::NeighbourReader::rows_max;
constexpr const char* stopped = "stopped before all devices had answered";

// Each device once.
Result<Discovery> ask_agents(const DiscoverArgs& args) {
  WEFT_TRY(const NeighbourProtocol by, protocol_of(args));
  WEFT_TRY(std::vector<adapt::snmp::Target> targets, load_snmp_targets(args.targets));
  adapt::snmp::PollerOptions options{
      .neighbours = by, .every = std::chrono::hours(24), .rows_max = rows_max};
  WEFT_TRY(options.timeout, timeout_of(args, "2 s"));
  options.patience = std::max(options.patience, options.timeout * (options.retries + 2));
  const std::size_t wanted = targets.size();
  WEFT_TRY(adapt::live::Signals signals, adapt::live::Signals::open());
  adapt::live::SystemClock clock;
  WEFT_TRY(auto poller, adapt::snmp::SnmpPoller::create(std::move(targets), options, clock));
  std::vector<Asked> devices;
  while (devices.size() < wanted) {
    if (signals.take() == adapt::live::Signals::Seen::stop) return fail(Errc::io, {}, stopped);
    poller.step();
    while (auto poll = poller.take()) devices.push_back(answer_of(*std::move(poll), by));
    poller.wait(clock.now() + turn_ns, -1);
  }
  return discovery_of(std::move(devices), poller.counts().cut);
}

Result<Discovery> ask_gnmi(const DiscoverArgs& args) {
  namespace gnmi = adapt::gnmi;
  WEFT_TRY(const NeighbourProtocol by, protocol_of(args));
  WEFT_TRY(const std::string text, read_file(args.gnmi));
  WEFT_TRY(const std::vector<gnmi::Target> targets, gnmi::read_targets(text, args.gnmi));
  WEFT_TRY(const std::chrono::milliseconds timeout, timeout_of(args, "10 s"));
  gnmi::NeighbourReader reader;
  gnmi::SubscriberOptions options{.mode = gnmi::Mode::once,
                                  .subscriptions = gnmi::neighbour_subscriptions(by)};
  options.silence_ns = std::chrono::nanoseconds(timeout).count();
  options.sink = [&](std::string_view device, const gnmi::Leaf& leaf) {
    reader.take(device, leaf);
  };
  WEFT_TRY(adapt::live::Signals signals, adapt::live::Signals::open());
  adapt::live::SystemClock clock;
  WEFT_TRY(auto subscriber, gnmi::GnmiSubscriber::open(targets, options, clock));
  constexpr std::size_t samples_max = 10'000;  // whether devices are there, which is not asked
  while (!subscriber.done()) {
    if (signals.take() == adapt::live::Signals::Seen::stop) return fail(Errc::io, {}, stopped);
    subscriber.take(samples_max, clock.now() + turn_ns);
  }
  std::map<std::string, Neighbours> said;
  for (Neighbours& one : reader.finish()) said.emplace(one.device, std::move(one));
  std::vector<Asked> devices;
  for (const gnmi::TargetReport& report : subscriber.targets()) {
    Neighbours& one = said[report.device];
    one.device = report.device;
    std::string error = report.is_synced ? lack_of(one, by) : report.last_error;
    devices.push_back({std::move(one), std::move(error)});
  }
  return discovery_of(std::move(devices), reader.left_out());
}

// URL of --netbox: the origin, and the path under which it is.
std::pair<std::string, std::string> origin_and_prefix(const std::string& url) {
  const std::size_t scheme = url.find("://");
  const std::size_t slash = url.find('/', scheme == std::string::npos ? 0 : scheme + 3);
  std::string prefix = slash == std::string::npos ? "" : url.substr(slash);
  while (prefix.ends_with('/')) prefix.pop_back();
  return {url.substr(0, slash), prefix};
}

Result<Discovery> ask_netbox(const Common& common, const DiscoverArgs& args) {
  WEFT_TRY(const std::chrono::milliseconds timeout, timeout_of(args, "60 s"));
  const auto [origin, prefix] = origin_and_prefix(args.netbox);
  adapt::live::NetBoxQuery query{.prefix = prefix, .filter = args.filter, .timeout = timeout};
  if (!args.token.empty()) {
    WEFT_TRY(query.token, adapt::live::read_secret(args.token));
  }
  WEFT_TRY(auto client, adapt::live::open_service({origin, "--netbox"}, {.ca = args.ca}, timeout));
  WEFT_TRY(auto read, read_netbox_cables(client, query));
  if (!common.quiet) {
    if (read.not_connected + read.others > 0)
      fmt::print(stderr,
                 "weft: note: left out: {} planned or being removed, {} of power, circuits "
                 "and the like\n",
                 counted(read.not_connected, "cable"), read.others);
    if (!read.panels.empty())
      fmt::print(stderr,
                 "weft: note: {} end at patch panels: {}{}; connect interfaces with "
                 "interfaces\n",
                 counted(read.panels.size(), "cable"), read.panels.front(),
                 read.panels.size() > 1 ? ", ..." : "");
  }
  return Discovery{.devices = {}, .cables = std::move(read.cables), .unplaced = 0, .cut = 0};
}

std::string diff_line(const CableDiff::Row& row) {
  if (row.kind == CableDiff::Kind::missing)
    return fmt::format("missing    {} -- {}: neither end sees the other\n", row.port, row.said);
  if (row.kind == CableDiff::Kind::extra)
    return fmt::format("extra      {} -- {}: the fabric has no such ports\n", row.port, row.seen);
  return fmt::format("elsewhere  {} leads to {}; in the fabric to {}\n", row.port, row.seen,
                     row.said);
}

void print_devices(const Discovery& found, bool is_netbox) {
  if (is_netbox) return fmt::print("NetBox has {}\n", counted(found.cables.size(), "cable"));
  const auto answered = std::ranges::count(found.devices, "", &Asked::error);
  fmt::print("{} of {} devices answered; they see {}\n", answered, found.devices.size(),
             counted(found.cables.size(), "cable"));
  if (found.unplaced > 0)
    fmt::print(
        "left out   {} of BGP over no subnet that interfaces of two of these devices share\n",
        counted(found.unplaced, "neighbour"));
  if (found.cut > 0)
    fmt::print("cut        {} of more than {} rows; what is behind was not taken\n",
               counted(found.cut, "answer"), rows_max);
  for (const auto& [said, error] : found.devices) {
    if (!error.empty()) fmt::print("silent     {}: {}\n", said.device, error);
    const std::string short_name = said.system_name.substr(0, said.system_name.find('.'));
    if (!said.system_name.empty() && said.system_name != said.device && short_name != said.device)
      fmt::print("named      {} calls itself {}\n", said.device, said.system_name);
  }
}

void print_diff(const CableDiff& diff) {
  fmt::print("{} as in the fabric", counted(diff.confirmed, "cable"));
  if (diff.by_device > 0)
    fmt::print(" ({} of them by one end and the device only)", diff.by_device);
  fmt::print(", {}, {} not verified (nobody was heard at one of the ends), {} to devices outside\n",
             counted(diff.rows.size(), "difference"), diff.unverified, diff.outside);
  for (const CableDiff::Row& row : diff.rows) fmt::print("{}", diff_line(row));
}

std::string to_json(const Discovery& found, const CableDiff* diff) {
  JsonList devices, cables, rows;
  for (const auto& [said, error] : found.devices)
    devices.add(JsonObject()
                    .add("device", said.device)
                    .add("answered", error.empty())
                    .add("system_name", said.system_name)
                    .add("neighbours", said.lldp.size() + said.sessions.size())
                    .add("error", error));
  for (const SeenCable& cable : found.cables)
    cables.add(JsonObject()
                   .add("a_device", cable.a.device)
                   .add("a_port", cable.a.port)
                   .add("b_device", cable.b.device)
                   .add("b_port", cable.b.port));
  JsonObject out;
  out.add("devices", devices)
      .add("cables", cables)
      .add("unplaced", found.unplaced)
      .add("cut", found.cut);
  if (diff == nullptr) return out.text();
  for (const CableDiff::Row& row : diff->rows)
    rows.add(JsonObject()
                 .add("kind", to_text(row.kind))
                 .add("port", row.port)
                 .add("seen", row.seen)
                 .add("fabric", row.said));
  return out.add("confirmed", diff->confirmed)
      .add("confirmed_by_device", diff->by_device)
      .add("unverified", diff->unverified)
      .add("outside", diff->outside)
      .add("differences", rows)
      .text();
}

// Whether everybody answered, in full, and all is as in the fabric.
Result<bool> discover(const Common& common, const DiscoverArgs& args) {
  if (args.targets.empty() && args.gnmi.empty() && args.netbox.empty())
    return fail(Errc::value, {"discover", 0, 0}, "whom to ask is missing",
                "give --targets FILE, --gnmi FILE or --netbox URL");
  std::optional<model::Fabric> fabric;
  if (!args.fabric.empty()) {
    WEFT_TRY(auto loaded, load_fabric(common, args.fabric));
    fabric = std::move(loaded);
  }
  WEFT_TRY(const Discovery found, !args.netbox.empty() ? ask_netbox(common, args)
                                  : !args.gnmi.empty() ? ask_gnmi(args)
                                                       : ask_agents(args));
  if (!args.out.empty()) WEFT_TRY_STATUS(write_file(args.out, to_cable_list(found.cables)));
  std::vector<std::string> heard;
  for (const auto& [said, error] : found.devices)
    if (error.empty()) heard.push_back(said.device);
  std::optional<CableDiff> diff;
  if (fabric) diff = compare_cables(*fabric, found.cables, heard);
  if (common.json) {
    fmt::print("{}\n", to_json(found, diff ? &*diff : nullptr));
  } else {
    print_devices(found, !args.netbox.empty());
    if (diff) print_diff(*diff);
  }
  return heard.size() == found.devices.size() && found.cut == 0 && (!diff || diff->rows.empty());
}

int run_discover(const Common& common, const DiscoverArgs& args) {
  const auto is_well = discover(common, args);
  if (!is_well) return report(is_well.error());
  return *is_well ? done : work_failed;
}

}  // namespace

void add_discover(Commands& commands) {
  const auto [command, args] = commands.add<DiscoverArgs>(
      "discover",
      "Read the cables from switches (LLDP or BGP) or NetBox, and compare with a fabric",
      run_discover);
  auto* const targets = command.add_option("--targets", args.targets,
                                           "CSV of devices and credentials, as of weft poll");
  auto* const netbox =
      command.add_option("--netbox", args.netbox, "Root of a NetBox to read instead, https://...");
  auto* const gnmi =
      command.add_option("--gnmi", args.gnmi, "CSV of gNMI targets instead, as of weft gnmi");
  targets->excludes(netbox)->excludes(gnmi);
  gnmi->excludes(netbox);
  command.add_option("--by", args.by, "What switches are asked for: lldp, or bgp")
      ->excludes(netbox);
  command.add_option("--token", args.token, "File with the token for NetBox")->needs(netbox);
  command.add_option("--ca", args.ca, "Certificates to trust, PEM")->needs(netbox);
  command.add_option("--filter", args.filter, "Of NetBox's cables, e.g. \"site=ams1\"")
      ->needs(netbox);
  command.add_option("--fabric", args.fabric, "Scenario or fabric file to compare with");
  command.add_option("-o,--out", args.out,
                     "Write the cables as a list that fabric: {file: ...} reads");
  command.add_option("--timeout", args.timeout,
                     "For an answer; default: 2 s by SNMP, 10 s by gNMI, 60 s of NetBox");
}

}  // namespace weft::cli
