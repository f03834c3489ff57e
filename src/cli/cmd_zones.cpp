#include <fmt/format.h>
#include <poll.h>

#include <CLI/CLI.hpp>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "adapt/live/signals.hpp"
#include "adapt/live/system_clock.hpp"
#include "app/zones/zone_list.hpp"
#include "app/zones/zone_report.hpp"
#include "app/zones/zone_view.hpp"
#include "base/config.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "os/log.hpp"
#include "serve/web.hpp"

namespace weft::cli {
namespace {

namespace live = adapt::live;

struct ZonesArgs {
  std::string file, listen;
  std::string tokens, certificate, key, client_ca;
};

// Each zone has a thread of its own, so that one that does not answer holds up no other.
class Zones {
 public:
  explicit Zones(app::ZoneList list) : list_(std::move(list)) {
    for (const app::Zone& zone : list_.zones)
      views_.push_back({.name = zone.name, .console = zone.console, .why = "not asked yet"});
  }

  // Until all were asked.
  void ask_once() {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < views_.size(); ++i)
      threads.emplace_back([this, i] { ask(i, app::ZoneClient(list_.zones[i], list_.timeout)); });
  }

  // Until the object is destroyed.
  void keep_asking() {
    for (std::size_t i = 0; i < views_.size(); ++i)
      threads_.emplace_back([this, i](const std::stop_token& stop) {
        app::ZoneClient client(list_.zones[i], list_.timeout);
        std::mutex mutex;
        std::condition_variable_any changed;
        std::unique_lock lock(mutex);
        while (!stop.stop_requested()) {
          client = ask(i, std::move(client));
          changed.wait_for(lock, stop, list_.every, [] { return false; });
        }
      });
  }

  std::vector<app::ZoneView> views() const {
    const std::scoped_lock lock(mutex_);
    return views_;
  }
  std::int64_t every_s() const { return std::max<std::int64_t>(list_.every.count() / 1'000, 1); }

 private:
  app::ZoneClient ask(std::size_t i, app::ZoneClient client) {
    live::SystemClock clock;
    app::ZoneView found = client.ask(clock.wall());
    const std::scoped_lock lock(mutex_);
    views_[i] = std::move(found);
    return client;
  }

  app::ZoneList list_;
  mutable std::mutex mutex_;
  std::vector<app::ZoneView> views_;
  std::vector<std::jthread> threads_;  // last: they use the others
};

serve::Reply text_reply(std::string body, std::string type) {
  serve::Reply out;
  out.body = std::move(body);
  out.type = std::move(type);
  return out;
}

std::vector<serve::Route> routes_of(const Zones& zones, serve::Meters& meters) {
  const auto route = [](std::string_view path, std::string_view id, std::string_view summary,
                        std::string_view type, auto answer) {
    return serve::Route{
        .method = "GET",
        .path = path,
        .id = id,
        .summary = summary,
        .role = serve::Role::read,
        .reply_type = type,
        .handler = [answer](const serve::Call&) -> Result<serve::Reply> { return answer(); }};
  };
  return {route("/", "readPage", "The zones, as a page", "text/html",
                [&zones] { return app::zone_page(zones.views(), zones.every_s()); }),
          route("/v1/zones", "listZones", "What the services of the zones say", "application/json",
                [&zones] {
                  live::SystemClock clock;
                  return text_reply(app::to_json(zones.views(), clock.wall()).text(),
                                    "application/json");
                }),
          route("/metrics", "readMetrics", "Prometheus text", "text/plain", [&zones, &meters] {
            return text_reply(app::zone_metrics(zones.views()) + meters.text(),
                              "text/plain; version=0.0.4; charset=utf-8");
          })};
}

Status serve_zones(const ZonesArgs& args, Zones& zones) {
  WEFT_TRY(live::Signals signals, live::Signals::open(live::Signals::Hangup::is_kept));
  const auto say = [](LogLevel level, std::string_view line) { log(level, "weft zones", line); };
  serve::ApiOptions options{.listen = args.listen,
                            .certificate = args.certificate,
                            .key = args.key,
                            .client_ca = args.client_ca,
                            .tokens = args.tokens};
  options.log = say;
  WEFT_TRY(const auto web,
           serve::Web::listen(std::move(options),
                              [&](const serve::ApiOptions&, serve::Meters& meters,
                                  const std::atomic<bool>&) { return routes_of(zones, meters); }));
  zones.keep_asking();
  pollfd waiting{signals.fd(), POLLIN, 0};
  using Seen = live::Signals::Seen;
  for (Seen seen = Seen::none; seen != Seen::stop; seen = signals.take()) {
    if (seen == Seen::hangup) {
      const Status done = web->reload();
      if (done)
        say(LogLevel::info, "tokens and certificates reloaded");
      else
        say(LogLevel::error,
            "not reloaded, what was read before stays in use: " + done.error().text());
    }
    ::poll(&waiting, 1, 1'000);
  }
  web->stop();
  return {};
}

// Prints; whether all are ready.
bool print_zones(const Common& common, Zones& zones) {
  zones.ask_once();
  const auto views = zones.views();
  live::SystemClock clock;
  if (common.json)
    fmt::print("{}\n", app::to_json(views, clock.wall()).text());
  else
    fmt::print("{}", app::to_table(views));
  return std::ranges::all_of(
      views, [](const app::ZoneView& zone) { return zone.state == app::ZoneState::ready; });
}

Result<bool> run_zones(const Common& common, const ZonesArgs& args) {
  WEFT_TRY(const Config yaml, load_yaml(args.file));
  WEFT_TRY(app::ZoneList list, app::read_zone_list(yaml, args.file));
  Zones zones(std::move(list));
  if (args.listen.empty()) return print_zones(common, zones);
  WEFT_TRY_STATUS(serve_zones(args, zones));
  return true;
}

int zones_command(const Common& common, const ZonesArgs& args) {
  const auto is_well = run_zones(common, args);
  if (!is_well) return report(is_well.error());
  return *is_well ? done : work_failed;
}

}  // namespace

void add_zones(Commands& commands) {
  const auto [c, args] = commands.add<ZonesArgs>(
      "zones", "The services of several zones at a glance: cases, repairs, capacity",
      zones_command);
  Commands::add_log_level(c);
  c.add_option("file", args.file, "YAML: zones, and the addresses of their services")->required();
  auto* const listen =
      c.add_option("--listen", args.listen, "HOST:PORT or unix:PATH of a page, JSON and metrics");
  c.add_option("--tokens", args.tokens, "File of tokens and their roles")->needs(listen);
  c.add_option("--cert", args.certificate, "Certificate, PEM")->needs(listen);
  c.add_option("--key", args.key, "Its key, PEM")->needs(listen);
  c.add_option("--client-ca", args.client_ca, "CA certificates for client certificates, PEM")
      ->needs(listen);
}

}  // namespace weft::cli
