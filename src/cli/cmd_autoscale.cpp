#include <fmt/format.h>
#include <poll.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "adapt/live/http_client.hpp"
#include "adapt/live/http_post.hpp"
#include "adapt/live/signals.hpp"
#include "adapt/live/system_clock.hpp"
#include "base/file.hpp"
#include "base/json_text.hpp"
#include "base/markup.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "os/log.hpp"
#include "plan/scale/live.hpp"
#include "serve/external_metrics.hpp"
#include "serve/web.hpp"

namespace weft::cli {
namespace {

namespace live = adapt::live;
namespace scale = plan::scale;

struct AutoscaleArgs {
  std::string config, listen = "127.0.0.1:8631";
  std::string tokens, certificate, key, client_ca, jwt_keys, audience;
  bool once = false;
};

constexpr std::string_view replicas_metric = "weft_replicas";
constexpr std::int64_t history_ns =
    std::int64_t{15} * 24 * ns_per_hour;           // asked of Prometheus at the start
constexpr std::int64_t range_steps_most = 10'000;  // Prometheus gives 11,000 at a time
constexpr std::chrono::milliseconds prometheus_timeout{10'000};

// A service's scaler, and when it asks Prometheus next.
struct Scaled {
  std::unique_ptr<scale::LiveScaler> scaler;
  Timestamp next;
  std::atomic<std::uint64_t> failures = 0;
};

class Autoscaler {
 public:
  Autoscaler(const Common& common, const AutoscaleArgs& args) : common_(common), args_(args) {}

  Status run() {
    WEFT_TRY(const Config yaml, load_yaml(args_.config));
    WEFT_TRY(config_, scale::read_live(yaml));
    for (const scale::LiveSettings& service : config_.services) {
      WEFT_TRY(auto scaler, open(service));
      services_.emplace_back(std::make_unique<Scaled>())->scaler = std::move(scaler);
    }
    WEFT_TRY_STATUS(connect());
    if (args_.once) return print();
    WEFT_TRY(live::Signals signals, live::Signals::open(live::Signals::Hangup::is_kept));
    WEFT_TRY_STATUS(listen());
    pollfd waiting{signals.fd(), POLLIN, 0};
    using Seen = live::Signals::Seen;
    for (Seen seen = Seen::none; seen != Seen::stop; seen = signals.take()) {
      if (seen == Seen::hangup) reload();
      for (const auto& service : services_) ask(*service);
      ::poll(&waiting, 1, 1'000);
    }
    web_->stop();
    return {};
  }

 private:
  static void say(LogLevel level, std::string_view line) { log(level, "weft autoscale", line); }

  void reload() {
    const Status done = web_->reload();
    if (done)
      say(LogLevel::info, "tokens, keys and certificates reloaded");
    else
      say(LogLevel::error,
          "not reloaded, what was read before stays in use: " + done.error().text());
  }

  Result<std::unique_ptr<scale::LiveScaler>> open(const scale::LiveSettings& settings) const {
    observe::forecast::Series history;
    if (!settings.series.empty()) {
      const std::string path =
          (std::filesystem::path(args_.config).parent_path() / settings.series).string();
      WEFT_TRY(std::string text, read_file(path));
      if (text.starts_with("\x1f\x8b")) {
        WEFT_TRY(text, gunzip(text, path));
      }
      WEFT_TRY(history,
               observe::forecast::read_series(text, path, observe::forecast::SeriesKind::demand));
    }
    return scale::LiveScaler::open(settings, std::move(history));
  }

  Status connect() {
    if (config_.prometheus.empty()) return {};
    if (!config_.token_file.empty()) {
      WEFT_TRY(prometheus_token_, live::read_secret(config_.token_file));
    }
    WEFT_TRY(live::HttpClient client,
             live::open_service({config_.prometheus, "prometheus"}, {.ca = config_.ca_file},
                                prometheus_timeout));
    prometheus_.emplace(std::move(client));
    return {};
  }

  // The samples since the last one, where a step is over.
  void ask(Scaled& service) {
    const scale::LiveSettings& settings = service.scaler->settings();
    const Timestamp now = clock_.wall();
    if (settings.query.empty() || now < service.next) return;
    service.next.ns = (now.ns / settings.step_ns + 1) * settings.step_ns;
    for (bool is_more = true; is_more;) {
      const auto asked = ask_range(*service.scaler, now);
      if (!asked) {
        ++service.failures;
        return say(LogLevel::warning, fmt::format("{}: {}", settings.name, asked.error().text()));
      }
      is_more = *asked;
    }
  }

  // Whether there is more to ask for.
  Result<bool> ask_range(scale::LiveScaler& scaler, Timestamp now) {
    const scale::LiveSettings& settings = scaler.settings();
    const auto last = scaler.last();
    std::int64_t& asked = asked_until_[&scaler];
    const std::int64_t start =
        std::max(asked, last ? last->ns + settings.step_ns
                             : (now.ns - history_ns) / settings.step_ns * settings.step_ns);
    if (start > now.ns) return false;
    const std::int64_t end = std::min(now.ns, start + (range_steps_most - 1) * settings.step_ns);
    const auto seconds = [](std::int64_t ns) { return static_cast<double>(ns) / ns_per_s; };
    const std::string path = fmt::format(
        "/api/v1/query_range?query={}&start={:.3f}&end={:.3f}&step={:.3f}",
        percent_encoded(settings.query), seconds(start), seconds(end), seconds(settings.step_ns));
    WEFT_TRY(const std::string text,
             live::get_text(*prometheus_, path, prometheus_token_, prometheus_timeout));
    WEFT_TRY(const auto samples, scale::read_range_answer(text, config_.prometheus));
    WEFT_TRY_STATUS(scaler.push(samples));
    // Later samples may still come for the end of what was asked; nothing is asked for twice
    // before it.
    const bool is_more = end < now.ns;
    if (is_more) asked = end + settings.step_ns;
    return is_more;
  }

  Status print() {
    for (const auto& service : services_) ask(*service);
    Table table({{"service", Table::Align::left},
                 {"last demand", Table::Align::left},
                 {"demand"},
                 {"site", Table::Align::left},
                 {"replicas"}});
    JsonList items;
    for (const auto& service : services_) {
      const scale::LiveSettings& settings = service->scaler->settings();
      // A history alone is judged as of its end.
      const Timestamp now =
          settings.query.empty() ? service->scaler->last().value_or(Timestamp{}) : clock_.wall();
      WEFT_TRY(const auto wish, service->scaler->wish(now));
      for (const auto& [site, count] : wish.replicas) {
        table.add({settings.tenant + "/" + settings.name, to_text(wish.t),
                   fmt::format("{:g}", wish.demand), site, std::to_string(count)});
        items.add(JsonObject()
                      .add("tenant", settings.tenant)
                      .add("service", settings.name)
                      .add("site", site)
                      .add("t", wish.t)
                      .add("demand", wish.demand)
                      .add("replicas", count));
      }
    }
    fmt::print("{}", common_.json ? items.text() + "\n" : table.text());
    return {};
  }

  Status listen() {
    serve::ApiOptions options{.listen = args_.listen,
                              .certificate = args_.certificate,
                              .key = args_.key,
                              .client_ca = args_.client_ca,
                              .tokens = args_.tokens,
                              .jwt_keys = args_.jwt_keys,
                              .audience = args_.audience};
    options.log = say;
    serve::ExternalMetricSource source{
        .names = {std::string(replicas_metric)},
        .read = [this](auto tenant, auto name) { return read(tenant, name); },
        .push = [this](auto tenant, auto service, auto csv) { return push(tenant, service, csv); },
        .metrics = [this] { return metrics(); }};
    WEFT_TRY(web_, serve::Web::listen(
                       std::move(options), [&](const serve::ApiOptions&, serve::Meters& meters,
                                               const std::atomic<bool>&) {
                         return serve::external_metric_routes(std::move(source), meters);
                       }));
    return {};
  }

  Result<std::vector<serve::ExternalMetric>> read(std::string_view tenant,
                                                  std::string_view name) const {
    if (name != replicas_metric)
      return fail(Errc::unknown, {}, fmt::format("there is no metric {}", quote(name)),
                  fmt::format("ask for {}", replicas_metric));
    std::vector<serve::ExternalMetric> out;
    std::optional<Error> stale;
    for (const auto& service : services_) {
      const scale::LiveSettings& settings = service->scaler->settings();
      if (settings.tenant != tenant) continue;
      const auto wish = service->scaler->wish(clock_.wall());
      if (!wish) {
        stale = wish.error();
        continue;
      }
      for (const auto& [site, count] : wish->replicas) {
        auto& metric = out.emplace_back(serve::ExternalMetric{
            .tenant = settings.tenant, .name = std::string(name), .t = wish->t, .value = count});
        metric.labels = {{"service", settings.name}};
        if (!site.empty()) metric.labels["site"] = site;
      }
    }
    if (out.empty() && stale) return std::unexpected(*std::move(stale));
    return out;
  }

  Result<std::size_t> push(std::string_view tenant, std::string_view name, std::string_view csv) {
    for (const auto& service : services_) {
      const scale::LiveSettings& settings = service->scaler->settings();
      if (settings.tenant != tenant || settings.name != name) continue;
      if (!settings.query.empty())
        return fail(Errc::value, {}, "the demand of this service is read from Prometheus",
                    "take query: away to push it");
      WEFT_TRY(const auto samples, scale::read_samples(csv, "body"));
      return service->scaler->push(samples);
    }
    return fail(Errc::unknown, {}, fmt::format("there is no service {}/{}", tenant, name));
  }

  std::string metrics() const {
    std::string wished =
        "# HELP weft_scaler_replicas Replicas asked for.\n# TYPE weft_scaler_replicas gauge\n";
    std::string failed =
        "# HELP weft_scaler_read_failures_total Times that demand could not be had.\n"
        "# TYPE weft_scaler_read_failures_total counter\n";
    for (const auto& service : services_) {
      const scale::LiveSettings& settings = service->scaler->settings();
      const std::string labels =
          fmt::format("tenant=\"{}\",service=\"{}\"", settings.tenant, settings.name);
      if (const auto wish = service->scaler->wish(clock_.wall()))
        for (const auto& [site, count] : wish->replicas)
          wished += fmt::format("weft_scaler_replicas{{{},site=\"{}\"}} {}\n", labels, site, count);
      failed += fmt::format("weft_scaler_read_failures_total{{{}}} {}\n", labels,
                            service->failures.load());
    }
    return wished + failed;
  }

  const Common& common_;
  const AutoscaleArgs& args_;
  mutable live::SystemClock clock_;  // read by routes, too: it has no state
  scale::LiveConfig config_;
  std::string prometheus_token_;
  std::optional<live::HttpClient> prometheus_;
  std::vector<std::unique_ptr<Scaled>> services_;
  std::map<const scale::LiveScaler*, std::int64_t> asked_until_;
  std::unique_ptr<serve::Web> web_;  // last: its routes use the others
};

Status run_autoscale(const Common& common, const AutoscaleArgs& args) {
  return Autoscaler(common, args).run();
}

}  // namespace

void add_autoscale(Commands& commands) {
  const auto [c, args] = commands.add<AutoscaleArgs>(
      "autoscale", "Tell Kubernetes how many replicas edge services need: external metrics API",
      run_autoscale);
  Commands::add_log_level(c);
  c.add_option("config", args.config, "YAML: services, and where their demand is read")->required();
  c.add_option("--listen", args.listen, "HOST:PORT or unix:PATH")->capture_default_str();
  c.add_flag("--once", args.once, "Print what is asked for, and end");
  c.add_option("--tokens", args.tokens, "File of tokens, identities, their roles and tenants");
  c.add_option("--cert", args.certificate, "Certificate, PEM");
  c.add_option("--key", args.key, "Its key, PEM");
  c.add_option("--client-ca", args.client_ca, "CA certificates for client certificates, PEM");
  c.add_option("--jwt-keys", args.jwt_keys, "Keys of JWT-SVIDs (JWKS) that are let in");
  c.add_option("--audience", args.audience, "Audience that JWT-SVIDs must be for");
}

}  // namespace weft::cli
