#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "adapt/live/http_post.hpp"
#include "adapt/live/netbox.hpp"
#include "adapt/live/signals.hpp"
#include "adapt/live/system_clock.hpp"
#include "adapt/snmp/poller.hpp"
#include "base/file.hpp"
#include "base/json_text.hpp"
#include "base/plural.hpp"
#include "base/text.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "cli/telemetry_files.hpp"
#include "model/formats/cabling.hpp"
#include "model/formats/seen_cables.hpp"

namespace weft::cli {
namespace {

using model::CableDiff;
using model::SeenCable;

struct DiscoverArgs {
  std::vector<std::string> targets;       // CSV files
  std::string netbox, token, ca, filter;  // instead
  std::string fabric, out;
  std::string timeout;  // "": 2 s of a device, 60 s of NetBox, which may take that for a page
};

// A device that was asked.
struct Asked {
  std::string device, system_name, error;
  std::size_t neighbours = 0;
  bool has_answered = false;
};

struct Discovery {
  std::vector<Asked> devices;
  std::vector<SeenCable> cables;
};

void take_poll(const adapt::snmp::Poll& poll, Discovery& out) {
  Asked asked{.device = poll.device, .system_name = poll.neighbours.system_name};
  asked.neighbours = poll.neighbours.rows.size();
  asked.has_answered = poll.is_complete;
  if (!poll.error.empty())
    asked.error = poll.error;
  else if (!poll.is_complete)
    asked.error = "no answer, or none to the end";
  else if (asked.system_name.empty() && asked.neighbours == 0)
    asked.error = "answers, but has no LLDP-MIB";
  asked.has_answered &= asked.error.empty();
  for (const adapt::snmp::Neighbour& row : poll.neighbours.rows)
    out.cables.push_back({{poll.device, row.port}, {row.device, row.device_port}});
  out.devices.push_back(std::move(asked));
}

Result<std::chrono::milliseconds> timeout_of(const DiscoverArgs& args, const char* usual) {
  return read_span_ms(args.timeout.empty() ? usual : args.timeout, "--timeout");
}

// Each device once.
Result<Discovery> ask_devices(const DiscoverArgs& args) {
  WEFT_TRY(std::vector<adapt::snmp::Target> targets, load_snmp_targets(args.targets));
  adapt::snmp::PollerOptions options{.asked = adapt::snmp::Asked::neighbours,
                                     .every = std::chrono::hours(24)};
  WEFT_TRY(options.timeout, timeout_of(args, "2 s"));
  options.patience = std::max(options.patience, options.timeout * (options.retries + 2));
  const std::size_t wanted = targets.size();
  WEFT_TRY(adapt::live::Signals signals, adapt::live::Signals::open());
  adapt::live::SystemClock clock;
  WEFT_TRY(auto poller, adapt::snmp::SnmpPoller::create(std::move(targets), options, clock));
  Discovery out;
  while (out.devices.size() < wanted) {
    if (signals.take() == adapt::live::Signals::Seen::stop)
      return fail(Errc::io, {}, "stopped before all devices had answered");
    poller.step();
    while (const auto poll = poller.take()) take_poll(*poll, out);
    poller.wait(clock.now() + turn_ns, -1);
  }
  std::ranges::sort(out.devices, model::natural_less, &Asked::device);
  // A device may call itself otherwise than the list of targets does; its neighbours know only
  // that.
  std::map<std::string, std::string> named;
  for (const Asked& asked : out.devices) named.emplace(asked.system_name, asked.device);
  for (SeenCable& cable : out.cables)
    if (const auto at = named.find(cable.b.device); at != named.end()) cable.b.device = at->second;
  out.cables = each_once(std::move(out.cables));
  return out;
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
  return Discovery{.devices = {}, .cables = std::move(read.cables)};
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
  const auto answered = std::ranges::count_if(found.devices, &Asked::has_answered);
  fmt::print("{} of {} devices answered; they see {}\n", answered, found.devices.size(),
             counted(found.cables.size(), "cable"));
  for (const Asked& asked : found.devices) {
    if (!asked.error.empty()) fmt::print("silent     {}: {}\n", asked.device, asked.error);
    const std::string short_name = asked.system_name.substr(0, asked.system_name.find('.'));
    if (!asked.system_name.empty() && asked.system_name != asked.device &&
        short_name != asked.device)
      fmt::print("named      {} calls itself {}\n", asked.device, asked.system_name);
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
  for (const Asked& asked : found.devices)
    devices.add(JsonObject()
                    .add("device", asked.device)
                    .add("answered", asked.has_answered)
                    .add("system_name", asked.system_name)
                    .add("neighbours", asked.neighbours)
                    .add("error", asked.error));
  for (const SeenCable& cable : found.cables)
    cables.add(JsonObject()
                   .add("a_device", cable.a.device)
                   .add("a_port", cable.a.port)
                   .add("b_device", cable.b.device)
                   .add("b_port", cable.b.port));
  JsonObject out;
  out.add("devices", devices).add("cables", cables);
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

// Whether everybody answered and all is as in the fabric.
Result<bool> discover(const Common& common, const DiscoverArgs& args) {
  if (args.targets.empty() && args.netbox.empty())
    return fail(Errc::value, {"discover", 0, 0}, "whom to ask is missing",
                "give --targets FILE, or --netbox URL");
  std::optional<model::Fabric> fabric;
  if (!args.fabric.empty()) {
    WEFT_TRY(auto loaded, load_fabric(common, args.fabric));
    fabric = std::move(loaded);
  }
  WEFT_TRY(const Discovery found,
           args.netbox.empty() ? ask_devices(args) : ask_netbox(common, args));
  if (!args.out.empty()) WEFT_TRY_STATUS(write_file(args.out, to_cable_list(found.cables)));
  std::vector<std::string> heard;
  for (const Asked& asked : found.devices)
    if (asked.has_answered) heard.push_back(asked.device);
  std::optional<CableDiff> diff;
  if (fabric) diff = compare_cables(*fabric, found.cables, heard);
  if (common.json) {
    fmt::print("{}\n", to_json(found, diff ? &*diff : nullptr));
  } else {
    print_devices(found, !args.netbox.empty());
    if (diff) print_diff(*diff);
  }
  return heard.size() == found.devices.size() && (!diff || diff->rows.empty());
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
      "Read the cables from switches (LLDP by SNMP) or NetBox, and compare with a fabric",
      run_discover);
  auto* const targets = command.add_option("--targets", args.targets,
                                           "CSV of devices and credentials, as of weft poll");
  auto* const netbox =
      command.add_option("--netbox", args.netbox, "Root of a NetBox to read instead, https://...");
  targets->excludes(netbox);
  command.add_option("--token", args.token, "File with the token for NetBox")->needs(netbox);
  command.add_option("--ca", args.ca, "Certificates to trust, PEM")->needs(netbox);
  command.add_option("--filter", args.filter, "Of NetBox's cables, e.g. \"site=ams1\"")
      ->needs(netbox);
  command.add_option("--fabric", args.fabric, "Scenario or fabric file to compare with");
  command.add_option("-o,--out", args.out,
                     "Write the cables as a list that fabric: {file: ...} reads");
  command.add_option("--timeout", args.timeout, "For an answer; default: 2 s, of NetBox 60 s");
}

}  // namespace weft::cli
