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
#include "adapt/snmp/trap.hpp"
#include "adapt/snmp/trap_receiver.hpp"
#include "cli/cli.hpp"
#include "cli/cmd_traps.hpp"
#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/telemetry_files.hpp"
#include "observe/telemetry/metrics.hpp"
#include "observe/telemetry/prometheus.hpp"

namespace weft::cli {
namespace {

struct PollArgs {
  std::string feed;                  // "snmp" or "prometheus"
  std::vector<std::string> targets;  // snmp: CSV files; prometheus: [DEVICE=]URL
  std::string fabric, addresses;     // names and addresses that the fabric does not have: CSV
  std::string rules, mapping;        // YAML; empty: as built in
  std::string every = "30 s", timeout = "2 s";
  std::string ca, certificate, key;  // prometheus: PEM files
  std::string traps, senders;        // snmp: where traps come to, and whose
  std::uint64_t count = 0;           // rounds; 0: until stopped
};

namespace live = adapt::live;
namespace snmp = adapt::snmp;
namespace telemetry = observe::telemetry;
using std::chrono::milliseconds;

constexpr std::size_t scrapers_max = 16, urls_max = 10'000;

Result<telemetry::PrometheusMapping> load_mapping(const std::string& path) {
  if (path.empty()) return telemetry::PrometheusMapping::built_in();
  WEFT_TRY(const Config config, load_yaml(path));
  return telemetry::PrometheusMapping::from_yaml(config);
}

// --- SNMP

// Traps that come beside the polls: records of their own, and a reason to ask at once.
class TrapsBesides {
 public:
  // All must outlive this.
  TrapsBesides(const Context& context, const snmp::TrapTargets& targets, snmp::SnmpPoller& poller,
               snmp::TrapReceiver receiver)
      : context_(context),
        targets_(targets),
        poller_(poller),
        receiver_(std::move(receiver)),
        // Traps may have but numbers of interfaces; the last poll knows their names.
        reader_(context.inventory, [this](std::string_view device, std::uint32_t if_index) {
          return poller_.interface_name(targets_.of(device), if_index);
        }) {}
  TrapsBesides(const TrapsBesides&) = delete;
  TrapsBesides& operator=(const TrapsBesides&) = delete;

  void step() {
    receiver_.step();
    while (const auto trap = receiver_.take()) {
      reader_.take(*trap);
      if (changes_state(*trap)) poller_.poll_soon(targets_.of(*trap));
    }
    print_records(context_, reader_.take_records());
  }
  int fd() const { return receiver_.fd(); }
  std::string told() const { return to_text(receiver_.counts(), reader_.counts()); }

 private:
  const Context& context_;
  const snmp::TrapTargets& targets_;
  snmp::SnmpPoller& poller_;
  snmp::TrapReceiver receiver_;
  snmp::TrapReader reader_;
};

Result<std::optional<snmp::TrapReceiver>> open_receiver(const PollArgs& args, port::Clock& clock) {
  if (args.traps.empty() && args.senders.empty()) return std::optional<snmp::TrapReceiver>{};
  if (args.traps.empty() || args.senders.empty())
    return fail(Errc::value, {args.traps.empty() ? "--traps" : "--senders", 0, 0}, "is required",
                "traps need a listen address and a CSV of permitted senders");
  WEFT_TRY(const auto options, read_trap_options(args.traps, "--traps", args.senders));
  WEFT_TRY(snmp::TrapReceiver receiver, snmp::TrapReceiver::open(options, clock));
  return std::optional(std::move(receiver));
}

std::string poll_counts_text(const snmp::PollerCounts& counts) {
  return fmt::format(
      "{} polls: {} complete, {} partial, {} unanswered, {} refused; {} skipped, {} due to "
      "traps\n{} requests; columns: {} loops, {} malformed, {} truncated\n",
      counts.polls, counts.complete, counts.partial, counts.silent, counts.refused, counts.skipped,
      counts.early, counts.requests, counts.loops, counts.garbage, counts.cut);
}

// Whether any device answered.
Result<bool> poll_snmp(const Common& common, const PollArgs& args, const Context& context,
                       telemetry::MetricReader& reader, live::Signals& signals) {
  WEFT_TRY(std::vector<snmp::Target> targets, load_snmp_targets(args.targets));
  snmp::PollerOptions options;
  WEFT_TRY(options.every, read_span_ms(args.every, "--every"));
  WEFT_TRY(options.timeout, read_span_ms(args.timeout, "--timeout"));
  options.patience = std::max(options.patience, options.timeout * (options.retries + 2));
  const std::uint64_t wanted = args.count * targets.size();
  live::SystemClock clock;
  WEFT_TRY(auto receiver, open_receiver(args, clock));
  const snmp::TrapTargets known(context.inventory, targets);
  WEFT_TRY(snmp::SnmpPoller poller, snmp::SnmpPoller::create(std::move(targets), options, clock));
  std::optional<TrapsBesides> traps;
  if (receiver) traps.emplace(context, known, poller, *std::move(receiver));
  for (std::uint64_t polls = 0; (wanted == 0 || polls < wanted + poller.counts().early) &&
                                signals.take() != live::Signals::Seen::stop;) {
    if (traps) traps->step();
    poller.step();
    while (const auto poll = poller.take()) {
      ++polls;
      if (!poll->error.empty() && !common.quiet)
        fmt::print(stderr, "weft: note: {} refused: {}\n", poll->device, poll->error);
      reader.take(poll->samples, poll->received);
      print_records(context, reader.take_records());
    }
    poller.wait(clock.now() + turn_ns, traps ? traps->fd() : -1);
  }
  if (!common.quiet)
    fmt::print(stderr, "{}{}", poll_counts_text(poller.counts()), traps ? traps->told() : "");
  return poller.counts().complete + poller.counts().partial > 0;
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
                  fmt::format("{} is not a URL to scrape", quote(target)),
                  "write e.g. http://10.0.0.1:9100/metrics or host:3=http://...");
    out.push_back(std::move(page));
  }
  if (out.size() > urls_max)
    return fail(Errc::value, {"--targets", 0, 0}, "more than 10,000 targets",
                "use several processes");
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

// Whether any page was there.
Result<bool> poll_prometheus(const Common& common, const PollArgs& args, const Context& context,
                             telemetry::MetricReader& reader, live::Signals& signals) {
  WEFT_TRY(std::vector<Page> pages, read_pages(args.targets));
  WEFT_TRY(const telemetry::PrometheusMapping mapping, load_mapping(args.mapping));
  WEFT_TRY(const milliseconds every, read_span_ms(args.every, "--every"));
  live::ScrapeOptions options{
      .tls = {.ca = args.ca, .certificate = args.certificate, .key = args.key}};
  WEFT_TRY(options.timeout, read_span_ms(args.timeout, "--timeout"));
  telemetry::PrometheusReader lines(mapping);
  live::SystemClock clock;
  port::Instant due = clock.now();
  bool has_answer = false;
  for (std::uint64_t round = 0; args.count == 0 || round < args.count; ++round) {
    scrape_all(pages, options);
    for (const Page& page : pages) {
      std::vector<port::Sample> samples;
      has_answer |= page.text.has_value();
      if (page.text)
        lines.read(*page.text, page.device, page.received, samples);
      else if (!common.quiet)
        fmt::print(stderr, "weft: note: {}\n", page.text.error().text());
      samples.push_back(
          {page.received, page.device, "", port::Metric::reachable, 0, page.text ? 1.0 : 0.0});
      reader.take(samples, page.received);
    }
    print_records(context, reader.take_records());
    due = std::max(due + every.count() * 1'000'000, clock.now());
    while (clock.now() < due && round + 1 != args.count) {
      if (signals.take() == live::Signals::Seen::stop) return has_answer;
      std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(due - clock.now(), turn_ns)));
    }
  }
  if (!common.quiet) fmt::print(stderr, "{}", to_text(lines.counts()));
  return has_answer;
}

Result<bool> poll(const Common& common, const PollArgs& args) {
  if (args.feed != "snmp" && !(args.traps + args.senders).empty())
    return fail(Errc::value, {"--traps", 0, 0}, "traps need devices polled by SNMP",
                "remove it, or use snmp");
  if (args.feed != "snmp" && args.feed != "prometheus")
    return fail(Errc::unknown, {"poll", 0, 0}, fmt::format("{} cannot be polled", quote(args.feed)),
                "use snmp or prometheus");
  const bool is_snmp = args.feed == "snmp";
  WEFT_TRY(const telemetry::MetricRules rules, load_metric_rules(args.rules));
  WEFT_TRY(const auto context, load_context(common, args.fabric, args.addresses));
  WEFT_TRY(live::Signals signals, live::Signals::open());
  telemetry::MetricReader reader(
      context->inventory, rules,
      {.source = is_snmp ? model::Source::snmp : model::Source::prometheus,
       .id_prefix = is_snmp ? "snmp" : "prom"});
  WEFT_TRY(const bool has_answer,
           (is_snmp ? poll_snmp : poll_prometheus)(common, args, *context, reader, signals));
  if (!common.quiet) fmt::print(stderr, "{}", to_text(reader.counts()));
  return has_answer;
}

// A single look that nobody answered has failed; a feed that was stopped has not.
int run_poll(const Common& common, const PollArgs& args) {
  const auto has_answer = poll(common, args);
  if (!has_answer) return report(has_answer.error());
  if (*has_answer || args.count == 0) return done;
  fmt::print(stderr, "weft: error: no target answered\n");
  return work_failed;
}

}  // namespace

void add_poll(Commands& commands) {
  const auto [command, args] = commands.add<PollArgs>(
      "poll", "Poll devices by SNMP, or Prometheus exporters; print records", run_poll);
  command.add_option("feed", args.feed, "snmp or prometheus")->required();
  command
      .add_option("--targets", args.targets,
                  "snmp: CSV of devices and credentials; prometheus: URLs, or DEVICE=URL")
      ->required();
  command.add_option("--fabric", args.fabric, "Scenario or fabric file")->required();
  command.add_option("--addresses", args.addresses, "CSV with names that are not in the fabric");
  command.add_option("--rules", args.rules, "YAML merged over the default value rules");
  command.add_option("--mapping", args.mapping, "prometheus: YAML with additional metric names");
  command.add_option("--ca", args.ca, "prometheus: certificates to trust instead of the system's");
  command.add_option("--cert", args.certificate, "prometheus: client certificate for mutual TLS");
  command.add_option("--key", args.key, "prometheus: key of --cert");
  command.add_option("--traps", args.traps,
                     "snmp: address and UDP port to receive traps; a device that sends a trap is "
                     "polled immediately");
  command.add_option("--senders", args.senders, "snmp: CSV of permitted trap senders");
  command.add_option("--every", args.every, "Time between two polls of the same device");
  command.add_option("--timeout", args.timeout, "Timeout for an answer");
  command.add_option("--count", args.count, "Number of polls per device; default: until stopped");
}

}  // namespace weft::cli
