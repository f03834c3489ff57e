#include <fmt/format.h>
#include <poll.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "adapt/lab/device_state.hpp"
#include "adapt/lab/extras.hpp"
#include "adapt/lab/lab.hpp"
#include "adapt/lab/netns.hpp"
#include "adapt/live/alertmanager.hpp"
#include "adapt/live/command_device_state.hpp"
#include "adapt/live/job_feed.hpp"
#include "adapt/live/signals.hpp"
#include "adapt/live/syslog_listener.hpp"
#include "adapt/live/system_clock.hpp"
#include "adapt/live/tickets.hpp"
#include "adapt/live/webhook.hpp"
#include "app/rehearse/outcomes.hpp"
#include "app/store/fabric_mark.hpp"
#include "app/store/open_store.hpp"
#include "base/file.hpp"
#include "base/json_line.hpp"
#include "base/json_text.hpp"
#include "base/plural.hpp"
#include "base/text.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "cli/serve_config.hpp"
#include "cli/serve_health.hpp"
#include "cli/serve_nats.hpp"
#include "cli/serve_te.hpp"
#include "cli/serve_traces.hpp"
#include "cli/serve_watch.hpp"
#include "cli/serve_world.hpp"
#include "cli/te_zone.hpp"
#include "cli/telemetry_files.hpp"
#include "cli/vendor_link.hpp"
#include "observe/sli/objectives.hpp"
#include "observe/telemetry/alertmanager.hpp"
#include "observe/telemetry/catalogue.hpp"
#include "observe/telemetry/inventory.hpp"
#include "operate/jobs/effects.hpp"
#include "operate/repair/policy.hpp"
#include "operate/repair/what_if.hpp"
#include "operate/snapshot/export.hpp"
#include "operate/snapshot/snapshot.hpp"
#include "operate/triage/learned.hpp"
#include "operate/triage/rules.hpp"
#include "os/log.hpp"
#include "os/service_manager.hpp"
#include "serve/api.hpp"
#include "serve/controller_thread.hpp"
#include "serve/settings.hpp"
#include "serve/sli_view.hpp"

namespace weft::cli {
namespace {

struct ServeArgs {
  std::string fabric, config;
  std::string section;  // the key of the configuration file that holds it; "": the whole file
  bool is_check = false;
  std::string store = "weft.db";  // a file, or postgres://... or "host=... dbname=..."
  std::string listen = "127.0.0.1:8630";
  std::vector<std::string> syslog;  // udp://, tcp:// and tls:// addresses
  std::string inventory, catalogue;
  std::string tokens, certificate, key, client_ca;
  std::string lab;                  // the lab whose fabric is served; its actuator and syslog
  std::string snapshots;            // directory; empty: none are taken
  std::string traces;               // directory; empty: none are kept
  std::vector<std::string> health;  // files for the table of path health
  std::string world;                // scenario whose network is simulated, in place of a real one
  double speed = 0;                 // of its time; 0: as fast as it goes
  std::uint32_t probe_flows = 4;    // over each link, in it
  std::uint32_t probe_routes = 0;   // over each transit route
  std::string span;                 // so long; empty: until it is stopped
};

namespace jobs = operate::jobs;
namespace lab = adapt::lab;
namespace live = adapt::live;
namespace repair = operate::repair;
namespace snapshot = operate::snapshot;
namespace telemetry = observe::telemetry;
namespace triage = operate::triage;

// For requests that are under way at a stop; the loop needs some of the time that is left to it.
constexpr std::chrono::milliseconds api_farewell{2'000};
constexpr std::size_t te_connections = 2;  // of each switch's agent

// Ends the process with status 0 when an orderly stop takes too long: a command that hangs, or a
// store that does not answer. Nothing is lost by it, because the next start begins from what is
// durable, as after a crash.
class StopDeadline {
 public:
  explicit StopDeadline(std::function<void()> report)
      : thread_([report = std::move(report)](const std::stop_token& stop) {
          std::mutex mutex;
          std::condition_variable_any changed;
          std::unique_lock lock(mutex);
          changed.wait_for(lock, stop, limit, [] { return false; });
          if (stop.stop_requested()) return;
          report();
          std::_Exit(0);
        }) {}

 private:
  static constexpr std::chrono::milliseconds limit{4'500};
  std::jthread thread_;
};

// Everything that the service is made of, in the order in which it comes up.
class Server {
 public:
  Server(const Common& common, const ServeArgs& args) : common_(common), args_(args) {}

  // Reads every file, and neither opens the store nor listens.
  Status load() {
    WEFT_TRY(config_, read_serve_config(args_.config, args_.section));
    WEFT_TRY_STATUS(load_scenario());
    fabric_ = &setup_->fabric;
    if (config_.actuator)
      if (const auto actuator = make_actuator(*fabric_, *config_.actuator); !actuator)
        return std::unexpected(actuator.error());
    if (config_.te)
      if (const auto te = ServedTe::read(*fabric_, *config_.te); !te)
        return std::unexpected(te.error());
    return load_names();
  }

  Status run() {
    WEFT_TRY_STATUS(load());  // a signal meanwhile ends it at once: a file may be a pipe
    WEFT_TRY(live::Signals signals, live::Signals::open(live::Signals::Hangup::is_kept));
    live::prefer_early_turns();  // seconds count, also on a busy machine; its threads inherit it
    WEFT_TRY_STATUS(ask_for_jobs());
    settled_ = std::make_unique<triage::Context>(*fabric_, config_.rules, config_.relations);
    provisional_ = std::make_unique<triage::Context>(
        *fabric_, serve::provisional_rules(config_.rules, config_.controller.provisional),
        config_.relations);
    WEFT_TRY(store_, app::open_store(args_.store));
    if (!wait_for_turn(signals)) {
      say("stopped while another service was at work");
      return {};
    }
    if (!args_.world.empty()) {
      WEFT_TRY_STATUS(begin_world());
    }
    WEFT_TRY_STATUS(app::check_fabric(*store_, app::mark_of(*fabric_, name_),
                                      app::IfChanged::refuse, clock().wall()));
    controller_ = std::make_unique<serve::Controller>(
        serve::Controller::Context{*fabric_, *inventory_, catalogue_, *settled_, *provisional_},
        config_.controller, config_.policy, *store_);
    bool is_stopped = false;  // by a signal, before it was ready
    const Status restored = controller_->restore(clock().wall(), [&] {
      manager_.alive();
      return is_stopped = signals.take() == live::Signals::Seen::stop;
    });
    if (is_stopped) {
      say("stopped before it was ready");
      return {};
    }
    WEFT_TRY_STATUS(restored);
    cases_at_start_ = controller_->open_cases().size();  // from now on the controller is the loop's
    WEFT_TRY(serve::Effectors hands, make_hands());
    loop_ = std::make_unique<serve::ControllerThread>(
        *controller_, clock(), bus_, std::move(hands),
        [this](Timestamp from, Timestamp to, std::uint64_t event) {
          return serve::sli_view(*fabric_, config_.objectives, *store_, from, to, event);
        },
        serve::ThreadLimits{}, world_.get());
    WEFT_TRY_STATUS(begin_health());
    WEFT_TRY_STATUS(begin_traces());
    WEFT_TRY_STATUS(begin_te());
    WEFT_TRY_STATUS(listen());
    wait_for_end(signals);
    stop();
    if (is_superseded())
      return fail(Errc::io, {args_.store, 0, 0},
                  "another service took over while this one had no connection to the store",
                  "start it again, as systemd does: it waits until the other ends");
    return tell_world();
  }

  // Whether another service took over its store.
  bool is_superseded() const { return store_ != nullptr && store_->is_superseded(); }

 private:
  port::Clock& clock() {
    if (world_) return world_->world().clock();
    return clock_;
  }

  // Only one service at a time writes to a store: until that is this one it knows nothing, and
  // listens to nobody. False: it is to stop.
  bool wait_for_turn(live::Signals& signals) const {
    constexpr int look_ms = 500;
    std::string told;
    for (;;) {
      const Status claimed = store_->claim();
      if (claimed) return true;
      if (const std::string why = claimed.error().what; why != told) {
        told = why;
        say("standby, takes over when it can: " + why);
        manager_.ready("standby: " + why);
      }
      manager_.alive();
      pollfd waiting{signals.fd(), POLLIN, 0};
      ::poll(&waiting, 1, look_ms);
      if (signals.take() == live::Signals::Seen::stop) return false;
    }
  }

  // A service that nothing happens to would not notice that it lost the store to another.
  void stay_writer(const std::stop_token& stop) const {
    constexpr std::chrono::seconds every{1};
    std::mutex mutex;
    std::condition_variable_any changed;
    std::unique_lock lock(mutex);
    while (!stop.stop_requested()) {
      static_cast<void>(store_->claim());  // trouble shows at the next commit
      changed.wait_for(lock, stop, every, [] { return false; });
    }
  }

  // A world begins anew: what a store knows of another one would be taken for its past.
  Status begin_world() {
    WEFT_TRY(const auto before, store_->audit(1, "", 1));
    if (!before.empty())
      return fail(Errc::infeasible, {args_.store, 0, 0},
                  "the store has been used, and a simulated network begins anew",
                  "name a new one with --store");
    std::int64_t span_ns = 0;
    if (!args_.span.empty()) {
      WEFT_TRY(span_ns, read_span_ns(args_.span, "--for"));
      if (span_ns <= 0)
        return fail(Errc::value, {"--for", 0, 0}, "must be more than 0",
                    "leave it out to go on until you stop it");
    }
    if (has_unused_sections())
      say(fmt::format(
          "the network is simulated: notify:, actuator:, snapshots:, te:, nats: and jobs: of {} "
          "were checked and are not used",
          args_.config));
    const bool has_jobs = described_.kind != Config::Kind::null;
    WEFT_TRY(world_, ServedWorld::create({.setup = *setup_,
                                          .faults = faults_,
                                          .jobs = has_jobs ? what_if_.get() : nullptr,
                                          .traced = has_jobs ? traced_jobs() : TracedJobs(),
                                          .model = config_.world,
                                          .seed = seed_,
                                          .flows = te_flows_,
                                          .probe_flows = args_.probe_flows,
                                          .probe_routes = args_.probe_routes},
                                         {.speed = args_.speed, .span_ns = span_ns}));
    return {};
  }

  using TracedJobs = std::vector<adapt::sim::TracedJob>;
  TracedJobs traced_jobs() const {
    TracedJobs out;
    for (const plan::PlacedJob& job : jobs_.collectives)
      out.push_back({job.job.name, job.job.ranks});
    for (const plan::PlacedGraph& job : jobs_.graphs) out.push_back({job.name, job.ranks});
    return out;
  }

  // What became of its faults, where it came to its end.
  Status tell_world() {
    if (!world_ || !world_->is_over()) return {};
    loop_.reset();  // the last orders
    WEFT_TRY(const app::Outcomes found, app::outcomes(*fabric_, world_->world().net(), *store_));
    if (common_.json) {
      JsonObject out = app::to_json(found);
      if (world_->world().te() != nullptr) out.add("te", world_->te_json());
      fmt::print("{}\n", out.text());
    } else {
      fmt::print("{}{}", app::to_table(found), world_->te_table());
    }
    return {};
  }

  Status load_scenario() {
    if (args_.fabric.empty() && args_.world.empty())
      return fail(Errc::value, {"--fabric", 0, 0}, "no network is given",
                  "name its file with --fabric, or a scenario to simulate with --world");
    WEFT_TRY(const model::LoadOptions options, common_.load_options());
    const std::string& path = args_.world.empty() ? args_.fabric : args_.world;
    WEFT_TRY(model::ScenarioFile file, model::load_scenario(path, options));
    model::Scenario& scenario = file.variants.front();
    // A world has kinds of faults that runs have not, and reads them itself.
    if (Config* faults = scenario.root.find("faults"); faults != nullptr && !args_.world.empty())
      faults_ = std::exchange(*faults, Config());
    WEFT_TRY(plan::Setup setup, plan::read_setup(scenario));
    setup_ = std::make_unique<plan::Setup>(std::move(setup));
    if (const Config* name = scenario.root.find("name")) name_ = name->text;
    described_ = scenario.section("jobs");
    seed_ = scenario.seed;
    if (described_.kind != Config::Kind::null) {
      WEFT_TRY(jobs_, plan::read_jobs(*setup_, described_, seed_));
    }
    what_if_ = std::make_unique<repair::WhatIf>(*setup_, jobs_, seed_);
    if (!args_.world.empty() && setup_->routing.scheme == "te") {
      WEFT_TRY(const std::vector<TeGroup> groups, te_groups_of_jobs(scenario, *setup_));
      te_flows_ = te_merged(groups);
      if (setup_->routing.te_split)
        say("routing.te.split has no effect in a simulated network: QPs are separate flows",
            LogLevel::warning);
      if (te_flows_.empty())
        return fail(Errc::infeasible, setup_->routing.where,
                    "no job of the scenario sends anything over the network, and te has no flows",
                    "add jobs, or remove scheme: te");
    }
    return {};
  }

  Status ask_for_jobs() {
    if (!config_.jobs) return {};
    jobs::NodeNames names(*fabric_);
    if (const std::string& path = config_.jobs->names; !path.empty()) {
      WEFT_TRY(const std::string csv, read_file(path));
      WEFT_TRY_STATUS(names.add_csv(csv, path));
    }
    if (!args_.world.empty()) return {};  // its jobs are those of the scenario
    job_feed_ = std::make_unique<live::JobFeed>(*config_.jobs, std::move(names));
    return {};
  }

  jobs::Cluster cluster() const { return {*setup_, described_, seed_}; }

  Result<std::vector<model::Entity>> entities(const std::vector<std::string>& names) const {
    std::vector<model::Entity> out;
    for (const std::string& name : names) {
      WEFT_TRY(const model::Entity entity, model::find_entity(*fabric_, {name, {}}));
      out.push_back(entity);
    }
    return out;
  }

  // Of the jobs that the scheduler lists, or where it did not answer for long, of those that the
  // scenario has.
  Result<repair::Forecast> forecast(const repair::Order& order) const {
    WEFT_TRY(const auto out, entities(order.out));
    WEFT_TRY(const auto drain, entities({order.entity}));
    if (job_feed_)
      if (const auto state = job_feed_->state(); !state.is_stale) {
        if (state.jobs->empty()) return repair::Forecast{};
        WEFT_TRY(const repair::Impact impact,
                 jobs::predict(cluster(), jobs::work_of(cluster(), *state.jobs), out, drain[0]));
        return impact.forecast();
      }
    WEFT_TRY(const repair::Impact impact, what_if_->predict(out, drain));
    return impact.forecast();
  }

  // Of the jobs that run, those that the scenario describes; read again when the scheduler has been
  // asked again. Of one thread.
  std::vector<operate::health::Call> calls() {
    namespace health = operate::health;
    if (!job_feed_) {
      if (!calls_read_) calls_ = health::calls_of(*fabric_, jobs_);
      calls_read_ = Timestamp{};
      return calls_;
    }
    const auto state = job_feed_->state();
    if (state.is_stale || !state.jobs) return {};
    if (calls_read_ == state.read) return calls_;
    calls_.clear();
    for (const jobs::RunningJob& job : *state.jobs)
      if (const jobs::Work work = jobs::work_of(cluster(), {&job, 1}); work.is_known)
        std::ranges::move(health::calls_of(*fabric_, work.jobs), std::back_inserter(calls_));
    calls_read_ = state.read;
    return calls_;
  }

  Status begin_health() {
    WEFT_TRY(health_, ServedHealth::open({.setup = *setup_,
                                          .seed = seed_,
                                          .files = args_.health,
                                          .conditions = [this] { return loop_->link_conditions(); },
                                          .calls = [this] { return calls(); },
                                          .say = [](LogLevel level,
                                                    std::string_view line) { say(line, level); }}));
    return {};
  }

  // The names of the jobs that run on a host: by the scheduler's list, else by the scenario.
  // Fails: Errc::io while the list is not to be relied on.
  Result<std::vector<std::string>> jobs_on(std::uint32_t host) const {
    std::vector<std::string> out;
    if (job_feed_) {
      const auto state = job_feed_->state();
      if (state.is_stale)
        return fail(Errc::io, {},
                    (state.jobs ? "the list of jobs is stale, last read at " + to_text(state.read)
                                : std::string("the list of jobs has not been read yet")) +
                        (state.error.empty() ? "" : ": " + state.error),
                    "say whose trace it is by ?job= (weft agent --job)");
      for (const jobs::RunningJob& job : *state.jobs)
        if (std::ranges::find(job.hosts, host) != job.hosts.end()) out.push_back(job.id);
      return out;
    }
    const auto add = [&](const std::string& name, const std::vector<model::NodeId>& ranks) {
      const auto is_there = [&](model::NodeId gpu) {
        return fabric_->host_of(gpu) == fabric_->hosts()[host];
      };
      if (std::ranges::any_of(ranks, is_there)) out.push_back(name);
    };
    for (const plan::PlacedJob& job : jobs_.collectives) add(job.job.name, job.job.ranks);
    for (const plan::PlacedGraph& job : jobs_.graphs) add(job.name, job.ranks);
    return out;
  }

  Status begin_traces() {
    if (args_.traces.empty()) return {};
    config_.traces.limits.ranks_max = fabric_->gpus().size();
    names_ = std::make_unique<jobs::NodeNames>(job_feed_ ? job_feed_->names()
                                                         : jobs::NodeNames(*fabric_));
    WEFT_TRY(traces_,
             ServedTraces::open(
                 {.fabric = *fabric_,
                  .names = *names_,
                  .folder = args_.traces,
                  .settings = config_.traces,
                  .probes = [this] { return loop_->recent_evidence(); },
                  .jobs_on = [this](std::uint32_t host) { return jobs_on(host); },
                  .hand_on = [this](std::vector<std::string> lines) -> Status {
                    WEFT_TRY(const serve::Receipt receipt,
                             loop_->accept("record", std::move(lines), ""));
                    if (receipt.state == serve::Receipt::State::durable) return {};
                    return fail(Errc::io, {}, "too much is queued");
                  },
                  .say = [](LogLevel level, std::string_view line) { say(line, level); }}));
    return {};
  }

  Status begin_te() {
    if (!config_.te || world_) return {};
    WEFT_TRY(te_, ServedTe::open(
                      {.fabric = *fabric_,
                       .settings = *config_.te,
                       .out_of_service = [this] { return loop_->out_of_service(); },
                       .say = [](LogLevel level, std::string_view line) { say(line, level); }}));
    return {};
  }

  std::string jobs_json() const {
    const auto state = job_feed_->state();
    JsonList items;
    if (state.jobs)
      for (const jobs::RunningJob& job : *state.jobs)
        items.add(jobs::to_json(job, job_feed_->names()));
    return JsonObject()
        .add("from", live::to_text(config_.jobs->from))
        .add("read", state.jobs ? std::optional(state.read) : std::nullopt)
        .add("stale", state.is_stale)
        .add("error", state.error.empty() ? std::nullopt : std::optional(state.error))
        .add("items", items)
        .text();
  }

  Result<std::string> jobs_of_case(std::string_view document) const {
    WEFT_TRY(const JsonLine line, JsonLine::parse(document, {"the case"}));
    const std::string part = line.node().member("cause").member("entity").text().value_or("");
    WEFT_TRY(const std::string view, loop_->view(serve::View::capacity));
    WEFT_TRY(const JsonLine capacity, JsonLine::parse(view, {"capacity"}));
    Errors errors;
    std::vector<std::string> out_names = capacity.texts("out", errors);
    std::erase(out_names, part);
    WEFT_TRY(const auto out, entities(out_names));
    WEFT_TRY(const auto suspects, entities(capacity.texts("suspected", errors)));
    if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
    const auto state = job_feed_->state();
    const std::vector<jobs::RunningJob> running =
        state.jobs ? *state.jobs : std::vector<jobs::RunningJob>();
    jobs::Effects effects;
    if (!part.empty()) {
      WEFT_TRY(const auto entity, entities({part}));
      WEFT_TRY(effects, jobs::effects_of(cluster(), running, out, suspects, entity[0]));
    }
    return JsonObject()
        .add("from", live::to_text(config_.jobs->from))
        .add("part", part)
        .add_all(jobs::to_json(effects, running, job_feed_->names()))
        .add("stale", state.is_stale)
        .text();
  }

  std::string job_metrics() const {
    const auto state = job_feed_->state();
    return fmt::format(
        "# HELP weft_jobs_running Jobs that the scheduler listed last.\n"
        "# TYPE weft_jobs_running gauge\nweft_jobs_running {}\n"
        "# HELP weft_jobs_read_timestamp_seconds When the scheduler last listed its jobs.\n"
        "# TYPE weft_jobs_read_timestamp_seconds gauge\nweft_jobs_read_timestamp_seconds {}\n"
        "# HELP weft_jobs_read_failures_total Times that the scheduler's list could not be had.\n"
        "# TYPE weft_jobs_read_failures_total counter\nweft_jobs_read_failures_total {}\n",
        state.jobs ? state.jobs->size() : 0, state.read.ns / ns_per_s, state.failures);
  }

  Status load_names() {
    WEFT_TRY(telemetry::Inventory inventory, load_inventory(*fabric_, args_.inventory));
    inventory_ = std::make_unique<telemetry::Inventory>(std::move(inventory));
    if (!args_.lab.empty()) {
      WEFT_TRY(const lab::Lab found, lab::open_lab(args_.lab));
      WEFT_TRY_STATUS(inventory_->add_csv(lab::inventory_csv(found.fabric, found.plan), args_.lab));
    }
    WEFT_TRY(catalogue_, load_catalogue(args_.catalogue));
    return {};
  }

  Result<serve::Effectors> make_hands() {
    serve::Effectors out;
    out.forecast = [this](const repair::Order& order) { return forecast(order); };
    if (world_) {
      out.actuator = &world_->world();
      out.notifiers.push_back(&world_->people());
    } else if (!args_.lab.empty()) {
      if (config_.actuator)
        return fail(Errc::value, {args_.config, 0, 0},
                    "actuator: and --lab are mutually exclusive: each defines how to drain",
                    "remove --lab or actuator:");
      WEFT_TRY(actuator_, make_lab_actuator(args_.lab));
    } else if (config_.actuator) {
      WEFT_TRY(actuator_, make_actuator(*fabric_, *config_.actuator));
    }
    if (actuator_) out.actuator = actuator_.get();
    if (!world_) make_notifiers();
    for (const auto& notifier : notifiers_) out.notifiers.push_back(notifier.get());
    if (!args_.snapshots.empty()) {
      WEFT_TRY_STATUS(open_taker());
      out.snapshot = [this](const repair::Order& order, const model::Case& c,
                            const std::vector<std::string>& open) {
        return take_snapshot(order, c, open);
      };
    } else if (config_.devices) {
      return fail(Errc::value, {args_.config, 0, 0},
                  "snapshots: defines how devices are queried, but not where snapshots are kept",
                  "add --snapshots DIRECTORY");
    }
    return out;
  }

  void make_notifiers() {
    for (const auto& settings : config_.webhooks)
      notifiers_.push_back(
          std::make_unique<live::WebhookNotifier>(settings, std::make_shared<live::SystemClock>()));
    for (const auto& settings : config_.alertmanagers)
      notifiers_.push_back(std::make_unique<live::AlertmanagerNotifier>(settings));
    for (const auto& settings : config_.tickets)
      notifiers_.push_back(std::make_unique<live::TicketNotifier>(settings));
  }

  // Nobody is to be called, and no program run, for what did not happen.
  bool has_unused_sections() const {
    return config_.jobs || config_.te || config_.nats || config_.actuator || config_.devices ||
           !config_.webhooks.empty() || !config_.alertmanagers.empty() || !config_.tickets.empty();
  }

  Result<std::vector<std::string>> read_alerts(std::string_view body) {
    const std::scoped_lock lock(alerts_mutex_);
    WEFT_TRY_STATUS(alerts_->read(body, clock().wall()));
    const model::RecordSet set = alerts_->take_records();
    std::vector<std::string> lines;
    for (const model::Record& row : set.rows) lines.push_back(model::to_json(*fabric_, set, row));
    return lines;
  }

  Status open_taker() {
    snapshot::Settings settings{.directory = args_.snapshots};
    std::shared_ptr<port::DeviceState> devices;
    if (!args_.lab.empty() && config_.devices)
      return fail(
          Errc::value, {args_.config, 0, 0},
          "snapshots: and --lab are mutually exclusive: each defines how devices are queried",
          "remove --lab or snapshots:");
    if (!args_.lab.empty()) {
      WEFT_TRY(lab::LabDeviceState found, lab::LabDeviceState::create(args_.lab));
      devices = std::make_shared<lab::LabDeviceState>(std::move(found));
    } else if (world_) {
      devices = std::shared_ptr<port::DeviceState>(std::shared_ptr<void>(), &world_->world());
    } else if (config_.devices) {
      settings.limits.patience = config_.devices->patience;
      devices = std::make_shared<live::CommandDeviceState>(*fabric_, *config_.devices);
    } else {
      return fail(Errc::unsupported, {"--snapshots", 0, 0},
                  "no method is given for querying devices",
                  "use --lab, or add snapshots: to the --config file");
    }
    taker_ = std::make_unique<snapshot::Taker>(std::move(devices), settings);
    return {};
  }

  Result<std::string> take_snapshot(const repair::Order& order, const model::Case& c,
                                    const std::vector<std::string>& open) {
    WEFT_TRY(const snapshot::Taken taken,
             taker_->take(*fabric_, c, "repair of " + order.entity, clock().wall(), open));
    for (const std::string& path : taken.removed)
      say("an old snapshot was deleted to make room: " + path, LogLevel::warning);
    return JsonObject()
        .add("case", c.id)
        .add("path", taken.path)
        .add("bytes", taken.bytes)
        .add("sha256", taken.sha256)
        .add("manifest", JsonText{taken.manifest})
        .text();
  }

  Result<std::string> vendor_copy(std::string_view document) const {
    WEFT_TRY(const JsonLine line, JsonLine::parse(document, {"the snapshot"}));
    Errors errors;
    const std::string path = line.text("path", {}, errors);
    if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
    WEFT_TRY(const snapshot::Snapshot original, snapshot::load(path));
    WEFT_TRY(const snapshot::Export copy, snapshot::export_copy(original, config_.vendor->redact));
    return snapshot::pack(copy.snapshot);
  }

  Status listen() {
    serve::ApiOptions options{.listen = args_.listen,
                              .certificate = args_.certificate,
                              .key = args_.key,
                              .client_ca = args_.client_ca,
                              .tokens = args_.tokens};
    options.limits.farewell = api_farewell;
    alerts_ = std::make_unique<telemetry::AlertReader>(*inventory_, config_.alerts,
                                                       fmt::format("alert-{}-", clock().wall().ns));
    options.alertmanager = [this](std::string_view body) { return read_alerts(body); };
    options.log = [](LogLevel level, std::string_view line) { say(line, level); };
    options.path_health = [this] { return health_->table(); };
    WEFT_TRY_STATUS(listen_to_syslog());
    options.metrics = [this] {
      return syslog_metrics(syslog_counts()) + (job_feed_ ? job_metrics() : "") +
             (traces_ ? traces_->metrics() : "") + (te_ ? te_->metrics() : "") +
             (nats_ ? nats_->metrics() : "");
    };
    if (te_) {
      options.limits.connections += te_connections * te_->switch_count();
      options.te.report = [this](std::string_view name, std::string_view body, std::int64_t wait_ns,
                                 auto answer) {
        te_->report(name, body, wait_ns, std::move(answer));
      };
      options.te.state = [this] { return te_->state(); };
    }
    if (config_.vendor) {
      options.vendor.is_ours = [this](std::string_view id, std::int64_t expires_s,
                                      std::string_view signature) {
        return is_vendor_link(config_.vendor->secret, id, expires_s, signature, clock_.wall());
      };
      options.vendor.copy = [this](std::string_view document) { return vendor_copy(document); };
    }
    if (traces_) {
      options.traces.keep = [this](std::string_view host, std::string_view name,
                                   std::string_view job, std::string_view packed) {
        return traces_->keep(host, name, job, packed);
      };
      options.traces.list = [this] { return traces_->list(); };
      options.traces.of_job = [this](std::string_view job) { return traces_->of_job(job); };
      options.traces.picture = [this](std::string_view job) { return traces_->picture(job); };
    }
    if (job_feed_) {
      options.jobs = [this] { return jobs_json(); };
      options.jobs_of_case = [this](std::string_view document) { return jobs_of_case(document); };
    }
    if (config_.nats && !world_)
      nats_ = std::make_unique<ServedNats>(*config_.nats, *loop_,
                                           [](std::string_view line) { say(line); });
    WEFT_TRY(api_, serve::Api::listen(std::move(options), *loop_, *store_, bus_));
    return {};
  }

  Status listen_to_syslog() {
    if (!args_.syslog.empty()) {
      live::SyslogOptions here{.listen = args_.syslog};
      // The API's too, so that they are no mistake where no syslog comes by TLS.
      if (std::ranges::any_of(args_.syslog,
                              [](const auto& at) { return at.starts_with("tls:"); })) {
        here.certificate = args_.certificate;
        here.key = args_.key;
        here.client_ca = args_.client_ca;
      }
      WEFT_TRY(syslog_, open_syslog(here));
    }
    if (args_.lab.empty()) return {};
    // The lab's switches send to the bridge of their own management network.
    WEFT_TRY(const lab::Lab found, lab::open_lab(args_.lab));
    if (found.options.syslog == lab::Extra::off) return {};
    return lab::run_in_netns(found.plan.management_netns, [this]() -> Status {
      WEFT_TRY(lab_syslog_,
               open_syslog({.listen = {fmt::format("udp://{}:{}", ipv4_text(lab::syslog_collector),
                                                   lab::syslog_port)}}));
      return {};
    });
  }

  Result<std::unique_ptr<live::SyslogListener>> open_syslog(const live::SyslogOptions& options) {
    using Message = live::SyslogListener::Message;
    using Verdict = live::SyslogListener::Verdict;
    return live::SyslogListener::open(options, [this](std::vector<Message>& messages) {
      std::vector<std::string> lines;
      for (const Message& message : messages)
        lines.push_back(
            fmt::format("@{} {} {}", message.received.ns, message.sender, message.text));
      const auto receipt = loop_->accept("captured", std::move(lines), "");
      return receipt && receipt->state == serve::Receipt::State::durable ? Verdict::taken
                                                                         : Verdict::busy;
    });
  }

  SyslogCounts syslog_counts() const {
    std::vector<SyslogCounts> out;
    for (const auto* syslog : {&syslog_, &lab_syslog_})
      if (*syslog) out.push_back((*syslog)->counts());
    return sum(out);
  }

  static void say(std::string_view line, LogLevel level = LogLevel::info) {
    log(level, "weft serve", line);
  }

  void wait_for_end(live::Signals& signals) {
    using Seen = live::Signals::Seen;
    const int look_ms = world_ ? 50 : 1'000;
    for (const auto* syslog : {&syslog_, &lab_syslog_})
      if (*syslog)
        for (const auto& port : (*syslog)->ports())
          say("listening at " + live::to_text(port.address));
    say(fmt::format("ready, {} open", counted(cases_at_start_, "case")));
    manager_.ready("at work");
    ServeWatch watch;
    const std::jthread still_writer([this](const std::stop_token& stop) { stay_writer(stop); });
    pollfd waiting{signals.fd(), POLLIN, 0};
    for (Seen seen = Seen::none; seen != Seen::stop; seen = signals.take()) {
      if (seen == Seen::hangup) reload();
      if (world_ && world_->is_over() && !args_.span.empty()) break;
      if (is_superseded()) break;
      if (loop_->health().is_alive) manager_.alive();
      for (const std::string& line : watch.news(clock().now(), loop_->health(), syslog_counts()))
        say(line);
      ::poll(&waiting, 1, look_ms);
    }
  }

  // Whatever brings lines ends first, all at the same time; the loop and its workers end when this
  // server is destroyed.
  void stop() {
    say("stopping");
    manager_.stopping();
    deadline_.emplace([] { say("stopped with work in progress; it resumes at the next start"); });
    std::vector<std::jthread> ends;
    for (auto* syslog : {&syslog_, &lab_syslog_})
      if (*syslog) ends.emplace_back([syslog] { (*syslog)->stop(); });
    if (te_) te_->close();
    api_->stop();
    nats_.reset();
    te_.reset();
    health_.reset();
    traces_.reset();
  }

  void reload() {
    if (const Status done = api_->reload(); done)
      say("tokens and certificates reloaded");
    else
      say("tokens and certificates not reloaded, the old ones stay in use: " + done.error().text(),
          LogLevel::error);
    if (te_) te_->reload();
  }

  const Common& common_;
  const ServeArgs& args_;
  ServiceManager manager_;
  std::optional<StopDeadline> deadline_;  // of all below: it ends after them
  live::SystemClock clock_;
  std::size_t cases_at_start_ = 0;
  ServeConfig config_;
  std::unique_ptr<plan::Setup> setup_;
  std::string name_;  // of the scenario
  Config described_;  // the scenario's jobs:
  Config faults_;     // and its faults:, where it is simulated
  std::uint64_t seed_ = 1;
  plan::Jobs jobs_;  // as the scenario has them
  std::unique_ptr<repair::WhatIf> what_if_;
  const model::Fabric* fabric_ = nullptr;
  std::unique_ptr<telemetry::Inventory> inventory_;
  telemetry::Catalogue catalogue_ = telemetry::Catalogue::built_in();
  std::unique_ptr<triage::Context> settled_, provisional_;
  std::unique_ptr<port::Store> store_;
  std::vector<operate::te::Flow> te_flows_;  // of a world with scheme te
  std::unique_ptr<ServedWorld> world_;
  std::unique_ptr<serve::Controller> controller_;
  std::unique_ptr<port::Actuator> actuator_;
  std::vector<std::unique_ptr<port::Notifier>> notifiers_;
  std::unique_ptr<telemetry::AlertReader> alerts_;
  std::mutex alerts_mutex_;
  std::unique_ptr<snapshot::Taker> taker_;
  serve::Bus bus_;
  std::unique_ptr<live::JobFeed> job_feed_;
  std::unique_ptr<serve::ControllerThread> loop_;
  std::vector<operate::health::Call> calls_;  // of the thread of health_, as calls_read_
  std::optional<Timestamp> calls_read_;
  std::unique_ptr<ServedHealth> health_;
  std::unique_ptr<jobs::NodeNames> names_;
  std::unique_ptr<ServedTraces> traces_;
  std::unique_ptr<ServedTe> te_;
  std::unique_ptr<serve::Api> api_;
  std::unique_ptr<live::SyslogListener> syslog_, lab_syslog_;
  std::unique_ptr<ServedNats> nats_;
};

int serve_command(const Common& common, const ServeArgs& args) {
  Server server(common, args);
  const Status status = args.is_check ? server.load() : server.run();
  if (status) return done;
  const int out = report(status.error());
  return server.is_superseded() ? work_failed : out;
}

}  // namespace

void add_serve(Commands& commands) {
  const auto [command, args] = commands.add<ServeArgs>(
      "serve", "Run all of operations as one service: cases, repairs, SLI minutes, HTTP API",
      serve_command);
  Commands::add_log_level(command);
  auto* const fabric = command.add_option("--fabric", args.fabric, "Scenario or fabric file");
  auto* const world = command.add_option(
      "--world", args.world, "Scenario to simulate: its network, faults, jobs, and people");
  fabric->excludes(world);
  command.add_option("--for", args.span, "With --world: so long, then print what became of faults")
      ->needs(world);
  command.add_option("--speed", args.speed, "With --world: simulated seconds a second (no limit)")
      ->needs(world)
      ->check(
          [](const std::string& text) -> std::string {
            const auto speed = parse_number({text, {}});
            return speed && *speed > 0 ? "" : fmt::format("{} is not more than 0", quote(text));
          },
          "more than 0");
  command
      .add_option("--probe-flows", args.probe_flows,
                  "With --world: distinct flows of probes over each link")
      ->needs(world)
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command
      .add_option("--probe-routes", args.probe_routes,
                  "With --world: distinct flows to each host over each switch on the way")
      ->needs(world)
      ->check(CLI::Range(0, 64))
      ->capture_default_str();
  command.add_option(
      "--config", args.config,
      "YAML: rules, relations, policy, objectives, provisional, localise, keep, actuator, "
      "snapshots, notify, alerts, jobs, traces, te, nats, vendor");
  command.add_option("--section", args.section,
                     "Key of --config that holds these, e.g. operate of a site file");
  command.add_flag("--check", args.is_check, "Only read the files and report errors in them");
  command.add_option("--store", args.store, "SQLite file, or postgresql://...")
      ->capture_default_str();
  command.add_option("--listen", args.listen, "HOST:PORT or unix:PATH of the API")
      ->capture_default_str();
  command.add_option("--syslog", args.syslog, "udp://, tcp:// or tls://ADDRESS:PORT to receive on");
  command.add_option("--inventory", args.inventory,
                     "CSV for raw syslog: address,device[,interface][,zone]");
  command.add_option("--catalogue", args.catalogue, "YAML with additional raw syslog messages");
  command.add_option("--tokens", args.tokens, "File of tokens and their roles");
  command.add_option("--cert", args.certificate, "Certificate of the API, PEM");
  command.add_option("--key", args.key, "Its key, PEM");
  command.add_option("--client-ca", args.client_ca, "CA certificates for client certificates, PEM");
  command.add_option("--lab", args.lab, "Running lab to use for drains, snapshots and syslog")
      ->excludes(world);
  command.add_option("--snapshots", args.snapshots, "Directory for snapshots");
  command.add_option("--traces", args.traces, "Directory for traces of running jobs")
      ->excludes(world);
  command.add_option(
      "--health", args.health,
      "File for the table of path health, e.g. /dev/shm/weft-health; may be repeated");
}

}  // namespace weft::cli
