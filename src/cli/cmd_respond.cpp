#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "adapt/live/signals.hpp"
#include "adapt/live/system_clock.hpp"
#include "adapt/live/udp_io.hpp"
#include "base/file.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "cli/probe_key.hpp"
#include "observe/probe/probe_server.hpp"
#include "observe/probe/targets.hpp"

namespace weft::cli {
namespace {

struct RespondArgs {
  std::vector<std::string> listen{"0.0.0.0"};
  std::string key, metrics;
  std::string age = "60 s";
  double source_rate = 1e6;  // answers a second
};

namespace probe = observe::probe;
using adapt::live::Signals;

constexpr std::int64_t metrics_every_ns = ns_per_s;

Result<adapt::live::UdpIo> open_ports(const RespondArgs& args, port::Clock& clock) {
  adapt::live::UdpIoOptions options{.send_stamps = port::Stamp::none};
  for (const std::string& text : args.listen) {
    WEFT_TRY(const auto ports, probe::parse_listen({text, {"LISTEN", 0, 0}}));
    options.ports.insert(options.ports.end(), ports.begin(), ports.end());
  }
  if (options.ports.size() > probe::port_count_max)
    return fail(Errc::value, {"LISTEN", 0, 0},
                fmt::format("{} ports, more than {}", options.ports.size(), probe::port_count_max),
                "use fewer ports");
  return adapt::live::UdpIo::open(options, clock);
}

Result<probe::ResponderOptions> read_options(const RespondArgs& args) {
  probe::ResponderOptions options;
  WEFT_TRY(options.key, read_probe_key(args.key));
  WEFT_TRY(options.age_max_ns, read_span_ns(args.age, "--max-age"));
  options.source_rate = args.source_rate;
  options.salt = random_number();
  return options;
}

std::string summary(const probe::Responder& responder, std::uint64_t overflows) {
  std::string out;
  for (std::size_t i = 0; i < probe::verdict_count; ++i) {
    const auto verdict = static_cast<probe::Verdict>(i);
    if (responder.count(verdict) > 0 || verdict == probe::Verdict::answered)
      out += fmt::format("{} {}, ", probe::to_text(verdict), responder.count(verdict));
  }
  return out + fmt::format("{} dropped by full queues", overflows);
}

class RespondServer {
 public:
  RespondServer(const Common& common, const RespondArgs& args, probe::Responder& responder,
                adapt::live::UdpIo& io, Signals& signals, port::Clock& clock)
      : common_(common),
        args_(args),
        responder_(responder),
        io_(io),
        signals_(signals),
        clock_(clock),
        server_(responder, io, clock) {}

  // Until a signal ends it.
  Status serve() {
    for (std::uint64_t turn = 0;; ++turn) {
      const std::size_t count = server_.step();
      // Under load signals are looked at now and then.
      if (count > 0 && turn % 64 != 0) continue;
      const Signals::Seen seen = signals_.take();
      if (seen == Signals::Seen::show) show();
      if (seen == Signals::Seen::stop) break;
      WEFT_TRY_STATUS(write_metrics());
      if (count == 0) io_.wait(clock_.now() + turn_ns, port::Wake::arrival);
    }
    if (!common_.quiet) show();
    written_ = {};
    return write_metrics();
  }

 private:
  void show() { fmt::print(stderr, "weft respond: {}\n", summary(responder_, io_.dropped())); }
  Status write_metrics() {
    const port::Instant now = clock_.now();
    if (args_.metrics.empty() || (written_.ns != 0 && now - written_ < metrics_every_ns)) return {};
    written_ = now;
    return write_file(args_.metrics, probe::to_prometheus(responder_, io_.dropped()));
  }

  const Common& common_;
  const RespondArgs& args_;
  probe::Responder& responder_;
  adapt::live::UdpIo& io_;
  Signals& signals_;
  port::Clock& clock_;
  probe::ProbeServer server_;
  port::Instant written_;
};

int respond_command(const Common& common, const RespondArgs& args) {
  const auto options = read_options(args);
  if (!options) return report(options.error());
  auto signals = Signals::open();
  if (!signals) return report(signals.error());
  adapt::live::SystemClock clock;
  auto io = open_ports(args, clock);
  if (!io) return report(io.error());
  if (const Status watched = io->watch(signals->fd()); !watched) return report(watched.error());
  if (!common.quiet)
    fmt::print(stderr, "weft respond: listening on {}{}\n", probe::to_text(io->ports().front()),
               io->ports().size() > 1 ? fmt::format(" and {} more", io->ports().size() - 1) : "");
  adapt::live::prefer_early_turns();
  probe::Responder responder(*options);
  const Status served = RespondServer(common, args, responder, *io, *signals, clock).serve();
  return served ? done : report(served.error());
}

}  // namespace

void add_respond(Commands& commands) {
  const auto [c, args] = commands.add<RespondArgs>(
      "respond", "Answer authenticated probes until stopped by a signal", respond_command);
  c.add_option("listen", args.listen, "ADDRESS, ADDRESS:PORT or ADDRESS:FIRST-LAST")
      ->capture_default_str();
  c.add_option("--key", args.key, "File with the key shared with the probers")->required();
  c.add_option("--max-age", args.age,
               "Reject requests whose time of day differs by more than this; 0 disables the check");
  c.add_option("--source-rate", args.source_rate, "Answers per second per source address")
      ->check(CLI::Range(1.0, 1e9));
  c.add_option("--metrics", args.metrics, "File for counts in Prometheus format");
}

}  // namespace weft::cli
