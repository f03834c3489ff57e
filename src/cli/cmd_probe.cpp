#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "adapt/live/signals.hpp"
#include "adapt/live/system_clock.hpp"
#include "adapt/live/udp_io.hpp"
#include "base/file.hpp"
#include "cli/cli.hpp"
#include "cli/probe_args.hpp"
#include "cli/probe_key.hpp"
#include "cli/probe_work.hpp"
#include "observe/probe/prober.hpp"
#include "observe/probe/results.hpp"
#include "observe/probe/targets.hpp"

namespace weft::cli {
namespace {

namespace probe = observe::probe;
using adapt::live::Signals;

Result<std::int64_t> read_span_within(const std::string& text, const char* option, Duration least,
                                      Duration most) {
  WEFT_TRY(const Duration span, parse_duration({text, {option, 0, 0}}));
  if (span < least || span > most)
    return fail(Errc::value, {option, 0, 0}, fmt::format("{} is out of range", quote(text)),
                fmt::format("use {} to {}", to_text(least), to_text(most)));
  return span.ps / ps_per_ns;
}

// Above this rate not every probe gets a send stamp: one costs half as much as a probe.
constexpr double stamps_per_s = 50'000, default_rate = 1'000;

std::uint32_t stamp_every(const ProbeArgs& args) {
  if (args.stamp_every > 0) return args.stamp_every;
  const double asked = args.rate.value_or(default_rate);
  const double rate = asked > 0 ? asked : 200'000;
  return static_cast<std::uint32_t>(std::max(1.0, rate / stamps_per_s));
}

Result<probe::ProberOptions> read_options(const ProbeArgs& args) {
  probe::ProberOptions options;
  WEFT_TRY(options.key, read_probe_key(args.key));
  options.session = random_number();
  options.direction = args.one_way ? probe::Direction::one_way : probe::Direction::two_way;
  options.rate = args.rate.value_or(default_rate);
  options.count = args.count;
  options.stamp_every = stamp_every(args);
  if (!args.duration.empty()) {
    WEFT_TRY(options.duration_ns, read_span_within(args.duration, "--duration", 1_us, 8'640'000_s));
  }
  WEFT_TRY(options.timeout_ns, read_span_within(args.timeout, "--timeout", 10_us, 60_s));
  WEFT_TRY(options.late_ns, read_span_within(args.late, "--late", 1_us, 60_s));
  WEFT_TRY(options.window_ns, read_span_within(args.window, "--window", 1_us, 86'400_s));
  if (options.window_ns < options.timeout_ns + options.late_ns)
    return fail(Errc::value, {"--window", 0, 0}, "a window must be at least --timeout plus --late",
                "make it longer");
  if (args.one_way && options.rate <= 0)
    return fail(Errc::value, {"--rate", 0, 0}, "one-way probes have no answers to pace by",
                "set a rate");
  return options;
}

// With fewer own ports than this, one-way probing opens more: counts of a flow that loses
// everything are asked for by other source ports.
constexpr std::size_t asking_ports_min = 8;

std::vector<std::uint32_t> add_spare_ports(ProbeWork& work) {
  std::vector<std::uint32_t> out;
  for (std::size_t i = 0; work.ports.size() < asking_ports_min; ++i) {
    out.push_back(static_cast<std::uint32_t>(work.ports.size()));
    work.ports.push_back({work.ports[i].address, 0});
  }
  return out;
}

class Run {
 public:
  Run(const Common& common, const ProbeArgs& args, probe::Prober& prober, ProbeWork& work,
      adapt::live::UdpIo& io, Signals& signals)
      : common_(common),
        args_(args),
        prober_(prober),
        direction_(args.one_way ? probe::Direction::one_way : probe::Direction::two_way),
        results_(std::move(work.infos)),
        io_(io),
        signals_(signals) {}

  Status run() {
    while (!prober_.done()) {
      prober_.step();
      WEFT_TRY_STATUS(take_reports());
      if (signals_.take() == Signals::Seen::stop) prober_.stop();
      if (!prober_.done()) io_.wait(prober_.wake_at(), prober_.wake());
    }
    WEFT_TRY_STATUS(take_reports());
    return {};
  }

  int finish() const {
    if (!common_.json) fmt::print("{}", results_.table(direction_));
    const std::string around = probe::to_text(prober_.counts());
    if (!around.empty()) fmt::print(stderr, "weft: note: {}\n", around);
    const probe::FlowCounts sum = results_.sum();
    if (sum.refused > 0)
      fmt::print(stderr,
                 "weft: error: the operating system could not send {} probes; check the routes\n",
                 sum.refused);
    return sum.sent > 0 && sum.answered > 0 ? done : work_failed;
  }

 private:
  Status take_reports() {
    while (const auto window = prober_.take_report()) {
      results_.add(*window);
      const probe::Suppressed suppressed = find_suppressed(window->flows, results_.infos());
      for (const std::string& host : suppressed.hosts)
        fmt::print(
            stderr,
            "weft: note: {} is dead or does not respond; its results are not used as evidence\n",
            host);
      if (window->self == probe::WindowReport::Self::starved)
        fmt::print(stderr, "weft: note: this host was too busy; the window is not usable\n");
      if (common_.json) {
        fmt::print("{}", to_json_lines(*window, results_.infos(), suppressed, direction_));
        std::fflush(stdout);
      }
      if (!args_.metrics.empty())
        WEFT_TRY_STATUS(write_file(args_.metrics, results_.to_prometheus(prober_.counts())));
    }
    return {};
  }

  const Common& common_;
  const ProbeArgs& args_;
  probe::Prober& prober_;
  probe::Direction direction_;
  probe::Results results_;
  adapt::live::UdpIo& io_;
  Signals& signals_;
};

}  // namespace

int probe_command(const Common& common, const ProbeArgs& args) {
  if (args.make_plan) return probe_plan_command(common, args);
  if (args.twin) return probe_twin_command(common, args);
  if (args.sweep) return probe_sweep_command(common, args);
  auto options = read_options(args);
  if (!options) return report(options.error());
  auto work = load_probe_work(common, args);
  if (!work) return report(work.error());
  if (!args.rate) options->rate = work->rate > 0 ? work->rate : default_rate;
  if (args.one_way) options->spare_ports = add_spare_ports(*work);
  auto signals = Signals::open();
  if (!signals) return report(signals.error());
  adapt::live::SystemClock clock;
  auto io = adapt::live::UdpIo::open({.ports = work->ports}, clock);
  if (!io) return report(io.error());
  if (const Status watched = io->watch(signals->fd()); !watched) return report(watched.error());
  adapt::live::prefer_exact_timers();
  adapt::live::prefer_early_turns();
  probe::Prober prober(*options, work->flows, *io, clock);
  Run run(common, args, prober, *work, *io, *signals);
  if (const Status ran = run.run(); !ran) return report(ran.error());
  return run.finish();
}

}  // namespace weft::cli
