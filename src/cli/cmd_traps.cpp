#include "cli/cmd_traps.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <utility>
#include <vector>

#include "adapt/live/signals.hpp"
#include "adapt/live/system_clock.hpp"
#include "base/csv.hpp"
#include "base/file.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "cli/context.hpp"

namespace weft::cli {
namespace {

struct TrapsArgs {
  std::string listen = "127.0.0.1:1162";
  std::string fabric, addresses;
  std::string senders;      // CSV
  std::uint64_t count = 0;  // traps; 0: until stopped
};

namespace live = adapt::live;
namespace snmp = adapt::snmp;

Result<snmp::Endpoint> read_endpoint(const std::string& text, const char* option) {
  const std::size_t colon = text.rfind(':');
  const auto port =
      parse_count({colon == std::string::npos ? "" : std::string_view(text).substr(colon + 1), {}});
  if (!port || *port < 1 || *port > UINT16_MAX)
    return fail(Errc::value, {option, 0, 0}, fmt::format("{} has no port", quote(text)),
                "write e.g. 10.0.0.1:162");
  std::string address = text.substr(0, colon);
  if (address.starts_with('[') && address.ends_with(']'))
    address = address.substr(1, address.size() - 2);
  return snmp::Endpoint{std::move(address), static_cast<std::uint16_t>(*port)};
}

Status read_senders(const std::string& path, snmp::TrapReceiverOptions& out) {
  WEFT_TRY(const std::string text, read_file(path));
  const std::vector<std::string> optional{"community", "user",          "auth",  "auth_password",
                                          "priv",      "priv_password", "engine"};
  CsvReader csv(text, path);
  WEFT_TRY_STATUS(csv.header({}, optional));
  while (csv.next()) {
    if (const std::string_view community = csv.cell(0).text; !community.empty()) {
      out.communities.emplace_back(community);
      continue;
    }
    snmp::TrapUser user;
    WEFT_TRY(user.credentials,
             snmp::read_user(csv.cell(1), csv.cell(2), csv.cell(3), csv.cell(4), csv.cell(5)));
    user.engine = trim(csv.cell(6).text);
    out.users.push_back(std::move(user));
  }
  if (csv.error() != nullptr) return std::unexpected(*csv.error());
  return {};
}

Status run_traps(const Common& common, const TrapsArgs& args) {
  WEFT_TRY(const auto options, read_trap_options(args.listen, "--listen", args.senders));
  WEFT_TRY(const auto context, load_context(common, args.fabric, args.addresses));
  WEFT_TRY(live::Signals signals, live::Signals::open());
  live::SystemClock clock;
  WEFT_TRY(snmp::TrapReceiver receiver, snmp::TrapReceiver::open(options, clock));
  snmp::TrapReader reader(context->inventory, {});
  while ((args.count == 0 || reader.counts().traps < args.count) &&
         signals.take() != live::Signals::Seen::stop) {
    receiver.step();
    while (const auto trap = receiver.take()) reader.take(*trap);
    print_records(*context, reader.take_records());
    receiver.wait(clock.now() + turn_ns);
  }
  if (!common.quiet) fmt::print(stderr, "{}", to_text(receiver.counts(), reader.counts()));
  return {};
}

}  // namespace

Result<snmp::TrapReceiverOptions> read_trap_options(const std::string& listen, const char* option,
                                                    const std::string& senders) {
  snmp::TrapReceiverOptions out;
  WEFT_TRY(out.listen, read_endpoint(listen, option));
  WEFT_TRY_STATUS(read_senders(senders, out));
  return out;
}

std::string to_text(const snmp::TrapReceiverCounts& heard, const snmp::TrapCounts& read) {
  return fmt::format(
      "{} traps, {} of them informs: {} recognized; unknown kind {}, device {}, port {}\n{} "
      "refused, {} not authentic, {} malformed, {} duplicates, {} dropped\n",
      heard.heard, heard.informs, read.known, read.unknown_kinds, read.unknown_devices,
      read.unknown_ports, heard.refused, heard.unauthentic, heard.malformed, heard.duplicates,
      heard.dropped);
}

void add_traps(Commands& commands) {
  const auto [command, args] =
      commands.add<TrapsArgs>("traps", "Receive SNMP traps; print records", run_traps);
  command.add_option("--listen", args.listen, "Address and UDP port");
  command
      .add_option("--senders", args.senders,
                  "CSV of permitted senders: community, or user, auth, ... and engine")
      ->required();
  command.add_option("--fabric", args.fabric, "Scenario or fabric file")->required();
  command.add_option("--addresses", args.addresses, "CSV with names that are not in the fabric");
  command.add_option("--count", args.count, "Number of traps to receive; default: until stopped");
}

}  // namespace weft::cli
