#include "cli/cmd_poll.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "adapt/live/scrape.hpp"
#include "adapt/live/signals.hpp"
#include "adapt/live/system_clock.hpp"
#include "adapt/snmp/poller.hpp"
#include "adapt/snmp/trap_receiver.hpp"
#include "base/csv.hpp"
#include "base/file.hpp"
#include "cli/cli.hpp"
#include "observe/telemetry/metrics.hpp"
#include "observe/telemetry/prometheus.hpp"

namespace weft::cli {
namespace {

namespace live = adapt::live;
namespace snmp = adapt::snmp;
namespace telemetry = observe::telemetry;
using std::chrono::milliseconds;

constexpr std::size_t scrapers_max = 16, urls_max = 10'000;
constexpr std::int64_t turn_ns = ns_per_s / 10;
constexpr std::int64_t ps_per_ms = 1'000'000'000;

// Fabric and names, which the readers borrow: they stay where they are.
struct Ground {
  model::Fabric fabric;
  telemetry::Inventory inventory;
  explicit Ground(model::Fabric its) : fabric(std::move(its)), inventory(fabric) {}
  Ground(const Ground&) = delete;
  Ground& operator=(const Ground&) = delete;
};

Result<std::unique_ptr<Ground>> load_ground(const Common& common, const std::string& fabric,
                                            const std::string& addresses) {
  WEFT_TRY(model::Fabric loaded, load_fabric(common, fabric));
  auto out = std::make_unique<Ground>(std::move(loaded));
  if (!addresses.empty()) {
    WEFT_TRY(const std::string text, read_file(addresses));
    WEFT_TRY_STATUS(out->inventory.add_csv(text, addresses));
  }
  return out;
}

Result<milliseconds> read_span(const std::string& text, const char* option) {
  WEFT_TRY(const Duration span, parse_duration({text, {option, 0, 0}}));
  if (span.ps >= 100 * ps_per_ms) return milliseconds(span.ps / ps_per_ms);
  return fail(Errc::value, {option, 0, 0}, "less than 100 ms", "write e.g. \"30 s\"");
}

Result<telemetry::MetricRules> load_rules(const std::string& path) {
  if (path.empty()) return telemetry::default_metric_rules();
  WEFT_TRY(const Config config, load_yaml(path));
  return telemetry::read_metric_rules(config);
}

Result<telemetry::PrometheusMapping> load_mapping(const std::string& path) {
  if (path.empty()) return telemetry::PrometheusMapping::built_in();
  WEFT_TRY(const Config config, load_yaml(path));
  return telemetry::PrometheusMapping::from_yaml(config);
}

void print(const model::Fabric& fabric, const model::RecordSet& set) {
  for (const model::Record& row : set.rows) fmt::print("{}\n", to_json(fabric, set, row));
  std::fflush(stdout);
}

// --- SNMP

Status poll_snmp(const Common& common, const PollArgs& args, const Ground& ground,
                 telemetry::MetricReader& reader, live::Signals& signals) {
  std::vector<snmp::Target> targets;
  for (const std::string& path : args.targets) {
    WEFT_TRY(const std::string text, read_file(path));
    WEFT_TRY(std::vector<snmp::Target> more, snmp::read_targets(text, path));
    std::ranges::move(more, std::back_inserter(targets));
  }
  snmp::PollerOptions options;
  WEFT_TRY(options.every, read_span(args.every, "--every"));
  WEFT_TRY(options.timeout, read_span(args.timeout, "--timeout"));
  options.patience = std::max(options.patience, options.timeout * (options.retries + 2));
  const std::uint64_t wanted = args.count * targets.size();
  live::SystemClock clock;
  WEFT_TRY(snmp::SnmpPoller poller, snmp::SnmpPoller::create(std::move(targets), options, clock));
  for (std::uint64_t polls = 0;
       (wanted == 0 || polls < wanted) && signals.take() != live::Signals::Seen::stop;) {
    poller.step();
    while (const auto poll = poller.take()) {
      ++polls;
      if (!poll->error.empty() && !common.quiet)
        fmt::print(stderr, "weft: note: {} refuses: {}\n", poll->device, poll->error);
      reader.take(poll->samples, poll->received);
      print(ground.fabric, reader.take_records());
    }
    poller.wait(clock.now() + turn_ns);
  }
  const snmp::PollerCounts& counts = poller.counts();
  if (!common.quiet)
    fmt::print(stderr,
               "{} polls: {} complete, {} partial, {} without an answer, {} refused; {} skipped\n"
               "{} requests; columns: {} loops, {} garbage, {} cut\n",
               counts.polls, counts.complete, counts.partial, counts.silent, counts.refused,
               counts.skipped, counts.requests, counts.loops, counts.garbage, counts.cut);
  return {};
}

// --- Prometheus

struct Page {
  std::string device, url;
  Result<std::string> text = std::string();
  Timestamp received;
};

// "DEVICE=URL", or a URL whose host is the device's name or address.
Result<std::vector<Page>> read_pages(const std::vector<std::string>& targets) {
  std::vector<Page> out;
  for (const std::string& target : targets) {
    const std::size_t equals = target.find('=');
    const bool is_named = equals < target.find("://");
    Page page;
    page.url = is_named ? target.substr(equals + 1) : target;
    const std::string host = live::host_of(page.url);
    page.device = is_named ? target.substr(0, equals) : host;
    if (host.empty() || page.device.empty())
      return fail(Errc::value, {"--targets", 0, 0},
                  fmt::format("{} is no URL to scrape", base::quoted(target)),
                  "write e.g. http://10.0.0.1:9100/metrics or host:3=http://...");
    out.push_back(std::move(page));
  }
  if (out.size() > urls_max)
    return fail(Errc::value, {"--targets", 0, 0}, "more than 10,000 targets", "use several");
  return out;
}

// All of them, some at once: a server that hangs holds one thread up.
void scrape_all(std::vector<Page>& pages, const live::ScrapeOptions& options) {
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < pages.size(); i = next++) {
      live::SystemClock clock;
      pages[i].text = live::scrape(pages[i].url, options);
      pages[i].received = clock.wall();
    }
  };
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < std::min(scrapers_max, pages.size()); ++i) threads.emplace_back(work);
}

Status poll_prometheus(const Common& common, const PollArgs& args, const Ground& ground,
                       telemetry::MetricReader& reader, live::Signals& signals) {
  WEFT_TRY(std::vector<Page> pages, read_pages(args.targets));
  WEFT_TRY(const telemetry::PrometheusMapping mapping, load_mapping(args.mapping));
  WEFT_TRY(const milliseconds every, read_span(args.every, "--every"));
  live::ScrapeOptions options{.ca_file = args.ca};
  WEFT_TRY(options.timeout, read_span(args.timeout, "--timeout"));
  telemetry::PrometheusReader lines(mapping);
  live::SystemClock clock;
  port::Instant due = clock.now();
  for (std::uint64_t round = 0; args.count == 0 || round < args.count; ++round) {
    scrape_all(pages, options);
    for (const Page& page : pages) {
      std::vector<port::Sample> samples;
      if (page.text)
        lines.read(*page.text, page.device, page.received, samples);
      else if (!common.quiet)
        fmt::print(stderr, "weft: note: {}\n", page.text.error().text());
      samples.push_back(
          {page.received, page.device, "", port::Metric::reachable, 0, page.text ? 1.0 : 0.0});
      reader.take(samples, page.received);
    }
    print(ground.fabric, reader.take_records());
    due = std::max(due + every.count() * 1'000'000, clock.now());
    while (clock.now() < due && round + 1 != args.count) {
      if (signals.take() == live::Signals::Seen::stop) return {};
      std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(due - clock.now(), turn_ns)));
    }
  }
  if (!common.quiet) fmt::print(stderr, "{}", to_text(lines.counts()));
  return {};
}

Status run_poll(const Common& common, const PollArgs& args) {
  if (args.feed != "snmp" && args.feed != "prometheus")
    return fail(Errc::unknown, {"poll", 0, 0},
                fmt::format("{} cannot be polled", base::quoted(args.feed)),
                "give snmp or prometheus");
  const bool is_snmp = args.feed == "snmp";
  WEFT_TRY(const telemetry::MetricRules rules, load_rules(args.rules));
  WEFT_TRY(const auto ground, load_ground(common, args.fabric, args.addresses));
  WEFT_TRY(live::Signals signals, live::Signals::open());
  telemetry::MetricReader reader(
      ground->inventory, rules,
      {.source = is_snmp ? model::Source::snmp : model::Source::prometheus,
       .id_prefix = is_snmp ? "snmp" : "prom"});
  WEFT_TRY_STATUS((is_snmp ? poll_snmp : poll_prometheus)(common, args, *ground, reader, signals));
  if (!common.quiet) fmt::print(stderr, "{}", to_text(reader.counts()));
  return {};
}

// --- Traps

Result<snmp::Endpoint> read_endpoint(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const auto port =
      parse_count({colon == std::string::npos ? "" : std::string_view(text).substr(colon + 1), {}});
  if (!port || *port < 1 || *port > UINT16_MAX)
    return fail(Errc::value, {"--listen", 0, 0}, fmt::format("{} has no port", base::quoted(text)),
                "write e.g. 10.0.0.1:162");
  std::string address = text.substr(0, colon);
  if (address.starts_with('[') && address.ends_with(']'))
    address = address.substr(1, address.size() - 2);
  return snmp::Endpoint{std::move(address), static_cast<std::uint16_t>(*port)};
}

// Columns community, or those of a v3 user and the sender's engine id.
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
  snmp::TrapReceiverOptions options;
  WEFT_TRY(options.listen, read_endpoint(args.listen));
  WEFT_TRY_STATUS(read_senders(args.senders, options));
  WEFT_TRY(const auto ground, load_ground(common, args.fabric, args.addresses));
  WEFT_TRY(live::Signals signals, live::Signals::open());
  live::SystemClock clock;
  WEFT_TRY(snmp::TrapReceiver receiver, snmp::TrapReceiver::open(options, clock));
  snmp::TrapReader reader(ground->inventory, {});
  while ((args.count == 0 || reader.counts().traps < args.count) &&
         signals.take() != live::Signals::Seen::stop) {
    receiver.step();
    while (const auto trap = receiver.take()) reader.take(*trap);
    print(ground->fabric, reader.take_records());
    receiver.wait(clock.now() + turn_ns);
  }
  const snmp::TrapReceiverCounts heard = receiver.counts();
  const snmp::TrapCounts& read = reader.counts();
  if (!common.quiet)
    fmt::print(stderr,
               "{} traps, {} of them informs: {} with a meaning; of unknown kind {}, device {}, "
               "port {}\n{} refused, {} not authentic, {} malformed, {} duplicates, {} dropped\n",
               heard.heard, heard.informs, read.known, read.unknown_kinds, read.unknown_devices,
               read.unknown_ports, heard.refused, heard.unauthentic, heard.malformed,
               heard.duplicates, heard.dropped);
  return {};
}

}  // namespace

void add_poll(CLI::App& command, PollArgs& args) {
  command.add_option("feed", args.feed, "snmp or prometheus")->required();
  command
      .add_option("--targets", args.targets,
                  "snmp: CSV of devices and how to get in; prometheus: URLs, or DEVICE=URL")
      ->required();
  command.add_option("--fabric", args.fabric, "Scenario or fabric file")->required();
  command.add_option("--addresses", args.addresses, "CSV of names that the fabric does not have");
  command.add_option("--rules", args.rules, "YAML laid over the rules by which values are judged");
  command.add_option("--mapping", args.mapping, "prometheus: YAML of further metric names");
  command.add_option("--ca", args.ca, "prometheus: certificates to trust instead of the system's");
  command.add_option("--every", args.every, "Time between two polls of one device");
  command.add_option("--timeout", args.timeout, "How long an answer may take");
  command.add_option("--count", args.count,
                     "So many polls of each device; without it until stopped");
}

int poll_command(const Common& common, const PollArgs& args) {
  const Status status = run_poll(common, args);
  return status ? done : report(status.error());
}

void add_traps(CLI::App& command, TrapsArgs& args) {
  command.add_option("--listen", args.listen, "Address and UDP port");
  command
      .add_option("--senders", args.senders,
                  "CSV of who is heard: community, or user, auth, ... and engine")
      ->required();
  command.add_option("--fabric", args.fabric, "Scenario or fabric file")->required();
  command.add_option("--addresses", args.addresses, "CSV of names that the fabric does not have");
  command.add_option("--count", args.count, "So many traps; without it until stopped");
}

int traps_command(const Common& common, const TrapsArgs& args) {
  const Status status = run_traps(common, args);
  return status ? done : report(status.error());
}

}  // namespace weft::cli
