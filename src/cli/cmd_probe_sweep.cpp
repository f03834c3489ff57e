// `weft probe --sweep`: the way of each flow, hop by hop.
#include <fmt/format.h>

#include "adapt/live/signals.hpp"
#include "adapt/live/system_clock.hpp"
#include "adapt/live/udp_io.hpp"
#include "base/json_text.hpp"
#include "cli/cli.hpp"
#include "cli/probe_args.hpp"
#include "cli/probe_key.hpp"
#include "cli/probe_work.hpp"
#include "observe/probe/sweep.hpp"
#include "observe/probe/targets.hpp"

namespace weft::cli {
namespace {

namespace probe = observe::probe;
using adapt::live::Signals;

// A hop's name where the fabric knows its address, else the address, "*" for none.
std::string hop_name(const ProbeWork& work, const probe::Hop& hop) {
  if (hop.address == 0) return "*";
  const std::string name = work.name_of ? work.name_of(hop.address) : "";
  return name.empty() ? ipv4_text(hop.address) : name;
}

std::string table_of(const ProbeWork& work, const std::vector<probe::SweptFlow>& flows) {
  using Align = Table::Align;
  Table table({{"to", Align::left},
               {"port"},
               {"hop"},
               {"at", Align::left},
               {"sent"},
               {"answered"},
               {"loss %"},
               {"", Align::left}});
  for (std::size_t i = 0; i < flows.size(); ++i)
    for (std::size_t h = 0; h < flows[i].hops.size(); ++h) {
      const probe::Hop& hop = flows[i].hops[h];
      std::string note = flows[i].suspect == h + 1 ? "loses from here on" : "";
      if (hop.others > 0) note += fmt::format(" {} from elsewhere", hop.others);
      table.add({work.infos[i].dst, fmt::format("{}", work.infos[i].source_port),
                 fmt::format("{}", h + 1), hop_name(work, hop), fmt::format("{}", hop.sent),
                 fmt::format("{}", hop.answered), fmt::format("{:.3g}", 100 * hop.loss()), note});
    }
  return table.text();
}

std::string json_of(const ProbeWork& work, const probe::FlowInfo& info, const probe::Flow& flow,
                    const probe::SweptFlow& swept, Timestamp now) {
  JsonList hops;
  for (const probe::Hop& hop : swept.hops)
    hops.add(JsonObject()
                 .add("at", hop_name(work, hop))
                 .add("sent", hop.sent)
                 .add("answered", hop.answered));
  const SeenPath path = work.path_of ? work.path_of(info, swept) : SeenPath{};
  return JsonObject()
             .add("t", now)
             .add("src", info.src)
             .add("dst", info.dst)
             .add("sport", info.source_port)
             .add("dport", flow.target.port)
             .add("class", info.traffic_class)
             .add("forward", path.is_whole ? std::optional(path.links) : std::nullopt)
             .add("seen", path.is_whole ? std::nullopt : std::optional(path.links))
             .add("reached", swept.reached)
             .add("suspect_hop", swept.suspect)
             .add("hops", hops)
             .text() +
         "\n";
}

}  // namespace

int probe_sweep_command(const Common& common, const ProbeArgs& args) {
  probe::SweepOptions options{.session = random_number(),
                              .ttl_max = static_cast<std::uint8_t>(args.ttl_max),
                              .rate = args.rate.value_or(1'000)};
  const auto key = read_probe_key(args.key);
  if (!key) return report(key.error());
  options.key = *key;
  if (args.count > probe::sweep_rounds_max || args.classes.size() > 1 || options.rate <= 0)
    return report({Errc::value,
                   {"--sweep", 0, 0},
                   "a sweep needs one class, a rate, and at most 16 probes per hop and port",
                   "change --class, --rate or --count",
                   {}});
  if (args.count > 0) options.rounds = static_cast<std::uint32_t>(args.count);
  auto work = load_probe_work(common, args);
  if (!work) return report(work.error());
  auto signals = Signals::open();
  if (!signals) return report(signals.error());
  adapt::live::SystemClock clock;
  auto io =
      adapt::live::UdpIo::open({.ports = work->ports,
                                .send_stamps = port::Stamp::none,
                                .complaints = adapt::live::UdpIoOptions::Complaints::heard,
                                .use = args.answers ? adapt::live::UdpIoOptions::Ports::raw
                                                    : adapt::live::UdpIoOptions::Ports::bound},
                               clock);
  if (!io) return report(io.error());
  std::vector<std::uint16_t> source_ports;
  for (const port::Endpoint& own : io->ports()) source_ports.push_back(own.port);
  adapt::live::prefer_exact_timers();
  // A route that changes while the sweep runs may change any of its paths.
  const Timestamp begin = clock.wall();
  probe::Sweep sweep(options, work->flows, source_ports, *io, clock);
  while (!sweep.done()) {
    sweep.step();
    if (signals->take() == Signals::Seen::stop) sweep.stop();
    io->wait(sweep.wake_at(), port::Wake::timer);
  }
  const auto results = sweep.results();
  // Ports that answers go to need not be open: there a hop that was seen is a result.
  bool reached = false;
  for (const probe::SweptFlow& flow : results)
    reached = reached || flow.reached || (args.answers && !flow.hops.empty());
  if (common.json) {
    for (std::size_t i = 0; i < results.size(); ++i)
      fmt::print("{}", json_of(*work, work->infos[i], work->flows[i], results[i], begin));
  } else {
    fmt::print("{}", table_of(*work, results));
  }
  return reached ? done : work_failed;
}

}  // namespace weft::cli
