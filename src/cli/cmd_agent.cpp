#include "cli/cmd_agent.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <deque>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

#include "adapt/live/host_counters.hpp"
#include "adapt/live/log_tail.hpp"
#include "adapt/live/signals.hpp"
#include "adapt/live/system_clock.hpp"
#include "adapt/live/uplink.hpp"
#include "base/file.hpp"
#include "cli/agent_state.hpp"
#include "cli/cli.hpp"
#include "cli/telemetry_files.hpp"
#include "observe/detect/detector.hpp"
#include "observe/telemetry/syslog_reader.hpp"

namespace weft::cli {
namespace {

namespace detect = observe::detect;
namespace live = adapt::live;
namespace telemetry = observe::telemetry;
using model::NodeId;

constexpr int turn_ms = 50;
constexpr std::size_t log_bytes_a_turn = std::size_t{1} << 20;
constexpr std::size_t logs_max = 64;
constexpr std::ptrdiff_t piece_lines = 500;
// Stamps have whole seconds, and a line takes its time to the file: what is no older counts as of
// now. What is older was written while nobody watched.
constexpr std::int64_t fresh_ns = 5 * ns_per_s / 2;
constexpr std::int64_t mark_every_ns = ns_per_s;
constexpr std::chrono::seconds farewell{2};

// What the agent works with, from its options.
struct Setup {
  model::Fabric fabric;
  NodeId device;
  std::string name;
  detect::Rules rules;
  telemetry::Catalogue catalogue = telemetry::Catalogue::built_in();
  std::int64_t interval_ns = ns_per_s;
};

Result<detect::Rules> load_rules(const AgentArgs& args) {
  if (args.rules.empty()) return detect::default_rules();
  WEFT_TRY(const Config config, load_yaml(args.rules));
  return detect::read_rules(config);
}

Result<Setup> load_setup(const Common& common, const AgentArgs& args) {
  WEFT_TRY(detect::Rules rules, load_rules(args));
  WEFT_TRY(const Duration interval, parse_duration({args.interval, {"--interval", 0, 0}}));
  if (interval < 100_us * 1000 || interval > 3600_s)
    return fail(Errc::value, {"--interval", 0, 0}, "must be from 100 ms to 1 h",
                "write e.g. \"1 s\"");
  if (args.logs.size() > logs_max)
    return fail(Errc::value, {"--log", 0, 0},
                fmt::format("{} logs, more than {}", args.logs.size(), logs_max), "follow fewer");
  WEFT_TRY(model::Fabric fabric, load_fabric(common, args.fabric));
  WEFT_TRY(const NodeId device, fabric.find_node({args.device, {"--device", 0, 0}}));
  if (!fabric.is_switch(device) && fabric.kind(device) != model::NodeKind::host)
    return fail(Errc::value, {"--device", 0, 0},
                fmt::format("{} is neither a switch nor a host", quote(args.device)),
                "specify the device on which the agent runs");
  Setup out{.fabric = std::move(fabric), .device = device, .name = {}, .rules = std::move(rules)};
  out.name = out.fabric.name(device);
  out.interval_ns = interval.ps / ps_per_ns;
  WEFT_TRY(out.catalogue, load_catalogue(args.catalogue));
  return out;
}

// Nobody where the records go to standard output.
Result<std::optional<live::Uplink>> open_uplink(const Common& common, const AgentArgs& args) {
  if (args.to.empty()) {
    if (common.json) return std::optional<live::Uplink>{};
    return fail(Errc::value, {"--to", 0, 0}, "no destination for the agent",
                "specify the service with --to, or use --json for standard output");
  }
  live::UplinkOptions options{
      .url = args.to,
      .tls = {.ca = args.ca, .certificate = args.certificate, .key = args.key},
      .spool = {.directory = args.spool}};
  WEFT_TRY(const Bytes size, parse_bytes({args.spool_size, {"--spool-size", 0, 0}}));
  if (size < 1_MiB || size > 1024_GiB)
    return fail(Errc::value, {"--spool-size", 0, 0}, "must be from 1 MiB to 1 TiB",
                "write e.g. \"256 MiB\"");
  options.spool.bytes_max = static_cast<std::uint64_t>(size.count);
  if (!args.token.empty()) {
    constexpr std::uint64_t token_bytes_max = 4096;
    WEFT_TRY(const std::string token, read_file(args.token, token_bytes_max));
    options.token = trim(token);
    if (options.token.empty() ||
        !std::ranges::all_of(options.token, [](char c) { return c > ' ' && c <= '~'; }))
      return fail(Errc::parse, {args.token, 0, 0}, "not a token", "it must be one ASCII word");
  }
  WEFT_TRY(live::Uplink uplink, live::Uplink::open(std::move(options)));
  return std::optional(std::move(uplink));
}

std::string boot_id() {
  const auto text = read_file("/proc/sys/kernel/random/boot_id", 64);
  constexpr std::size_t digits = 8;
  return text && text->size() >= digits ? text->substr(0, digits) : std::string("00000000");
}

AgentState load_state(const std::optional<live::Uplink>& uplink, Timestamp now) {
  if (uplink)
    if (auto state = AgentState::read(uplink->mark())) return *std::move(state);
  return AgentState::fresh(boot_id(), now);
}

class Agent {
 public:
  Agent(const Common& common, const AgentArgs& args, const Setup& setup,
        telemetry::Inventory& inventory, std::optional<live::Uplink>& uplink)
      : common_(common),
        setup_(setup),
        inventory_(inventory),
        uplink_(uplink),
        state_(load_state(uplink, clock_.wall())),
        reader_(inventory, setup.catalogue, {}),
        counters_({.device = setup.name, .root = {}}),
        detector_(setup.fabric, setup.rules, {.ports_per_card = args.ports_per_card}),
        open_(args.logs.size()) {
    for (const std::string& path : args.logs)
      tails_.emplace_back(path, state_.logs[path], state_.generation);
    for (const detect::Rule& rule : detector_.rules())
      if (rule.suppress.any()) wait_ns_ = std::max(wait_ns_, rule.wait_ns);
  }

  // Until a signal ends it.
  Status run(live::Signals& signals) {
    for (;;) {
      read_clock();
      const live::Signals::Seen seen = signals.take();
      if (seen == live::Signals::Seen::stop) break;
      if (seen == live::Signals::Seen::show) show();
      const bool is_any = read_logs();
      if (wall_now_.ns >= measured_.ns + setup_.interval_ns || wall_now_ < measured_) measure();
      detector_.advance(monotonic_now_);
      tell(detector_.poll());
      hand_over();
      if (std::ferror(stdout) != 0) return fail(Errc::io, {}, "cannot write to standard output");
      pollfd wanted{.fd = signals.fd(), .events = POLLIN, .revents = 0};
      ::poll(&wanted, 1, is_any ? 0 : turn_ms);
    }
    tell(detector_.finish());
    marked_ = {};
    hand_over();
    if (uplink_) uplink_->flush(farewell);
    if (!common_.quiet) show();
    return {};
  }

 private:
  // Detection goes by a clock that begins with the time of day and never steps.
  void read_clock() {
    wall_now_ = clock_.wall();
    const port::Instant instant = clock_.now();
    if (moved_.ns == 0) {
      moved_ = instant;
      monotonic_now_ = wall_now_;
    }
    monotonic_now_.ns += instant - std::exchange(moved_, instant);
  }
  std::int64_t clock_step_ns() const { return wall_now_.ns - monotonic_now_.ns; }

  // While the spool is full nothing is read: the logs keep what they have.
  bool read_logs() {
    if (is_blocked_) return false;
    bool is_any = false;
    std::vector<std::pair<std::size_t, live::LogPlace>> places;
    for (std::size_t i = 0; i < tails_.size(); ++i)
      is_any |=
          tails_[i].read(log_bytes_a_turn, [&](std::string_view line, const live::LogPlace& place) {
            reader_.take(line, wall_now_, setup_.name);
            places.emplace_back(i, place);
          });
    model::RecordSet set = reader_.take_records();
    for (std::size_t i = 0; i < places.size(); ++i)
      take_record(set, set.rows[i], places[i].first, places[i].second);
    return is_any;
  }

  void take_record(model::RecordSet& set, const model::Record& row, std::size_t log,
                   const live::LogPlace& place) {
    std::string id =
        fmt::format("{}-{}-{:x}.{:x}", setup_.name, state_.origin, place.generation, place.offset);
    set.ids[row.id] = id;
    const std::uint64_t serial =
        open_.add(log, place, std::move(id), model::to_json(setup_.fabric, set, row));
    detect::Event event = detect::event_of(row, serial);
    event.t =
        row.t.ns > wall_now_.ns - fresh_ns ? monotonic_now_ : Timestamp{row.t.ns - clock_step_ns()};
    detector_.take(event);
  }

  void measure() {
    measured_ = wall_now_;
    for (const port::Sample& sample : counters_.read(monotonic_now_)) take_sample(sample);
    if (!is_blocked_) beat();
  }

  void take_sample(const port::Sample& sample) {
    model::Entity entity = model::entity(setup_.device);
    if (!sample.component.empty()) {
      const model::LinkId link = inventory_.port(setup_.device, sample.component);
      const NodeId nic = inventory_.nic(setup_.device, sample.component);
      if (link.valid())
        entity = model::port_of(link);
      else if (nic.valid())
        entity = model::entity(nic);
      else if (is_of_interface(sample.metric))
        return;  // of an interface that is no part of the fabric: loopback, bridges, management
    }
    detector_.take(detect::event_of(sample, entity));
  }
  static bool is_of_interface(port::Metric metric) {
    return metric < port::Metric::bgp_established || metric == port::Metric::rdma_errors ||
           metric == port::Metric::speed_bps;
  }

  // A sign of life, with what would be wrong with the agent itself.
  void beat() {
    model::Attributes attributes{{"heartbeat", "1"},
                                 {"lines", fmt::format("{}", reader_.counts().lines)},
                                 {"waiting", fmt::format("{}", open_.size())}};
    if (uplink_) {
      const auto counts = uplink_->counts();
      attributes.emplace_back("spool_bytes", fmt::format("{}", counts.waiting_bytes));
      attributes.emplace_back("refused", fmt::format("{}", counts.refused));
    }
    model::RecordSet set;
    model::Record row;
    row.t = row.until = row.received = wall_now_;
    row.entity = model::entity(setup_.device);
    row.source = model::Source::agent;
    row.id = set.add_id(next_id());
    row.attrs = set.add_attributes(std::move(attributes));
    lines_.push_back(model::to_json(setup_.fabric, set, row));
  }

  std::string next_id() {
    return fmt::format("{}-{}-{}", setup_.name, state_.origin, ++state_.sequence);
  }

  void tell(const detect::Detector::Output& out) {
    model::RecordSet set;
    for (detect::Detection detection : out.detections) {
      detection.t.ns += clock_step_ns();
      detection.told.ns += clock_step_ns();
      const model::Record& row =
          add_record(set, detection, detector_.rules()[detection.rule], next_id(),
                     [this](std::uint64_t serial) { return open_.id_of(serial); });
      lines_.push_back(model::to_json(setup_.fabric, set, row));
    }
    for (const std::uint64_t serial : out.singles)
      if (std::string json = open_.take(serial); !json.empty()) lines_.push_back(std::move(json));
    for (const std::uint64_t serial : out.folded)
      open_.fold(serial, monotonic_now_.ns + 2 * wait_ns_ + ns_per_s);
    open_.forget_folded(monotonic_now_.ns);
  }

  void hand_over() {
    if (!uplink_) {
      for (const std::string& line : lines_) fmt::print("{}\n", line);
      if (!lines_.empty()) std::fflush(stdout);
      lines_.clear();
      return;
    }
    const bool is_time = wall_now_.ns >= marked_.ns + mark_every_ns || wall_now_ < marked_;
    if ((lines_.empty() || is_blocked_) && !is_time) return;
    marked_ = wall_now_;
    const Status sent = send();
    if (!sent) {
      if (!std::exchange(is_blocked_, true))
        fmt::print(stderr, "weft agent: log reading suspended: {}\n", sent.error().text());
    } else if (std::exchange(is_blocked_, false)) {
      fmt::print(stderr, "weft agent: log reading resumed\n");
    }
  }

  // All lines, in pieces that fit into a spool with little room. Only the last says how far the
  // logs were read: lines that are read again after a crash in between have their ids again.
  Status send() {
    while (std::ssize(lines_) > piece_lines) {
      WEFT_TRY_STATUS(uplink_->send(std::span(lines_).first(piece_lines), state_.text()));
      lines_.erase(lines_.begin(), lines_.begin() + piece_lines);
    }
    auto logs = state_.logs;
    for (std::size_t i = 0; i < tails_.size(); ++i)
      logs[tails_[i].path()] = open_.places(i, tails_[i]);
    std::swap(state_.logs, logs);
    std::string mark = state_.text();
    if (lines_.empty() && mark == mark_) return {};
    if (Status sent = uplink_->send(lines_, mark); !sent) {
      std::swap(state_.logs, logs);
      return sent;
    }
    mark_ = std::move(mark);
    lines_.clear();
    return {};
  }

  void show() const {
    std::string out = telemetry::to_text(reader_.counts());
    for (const live::LogTail& tail : tails_) {
      const auto& counts = tail.counts();
      out += fmt::format(
          "{}: {} lines, {} too long and cut, replaced {} times, truncated {} times, {} lost\n",
          tail.path(), counts.lines, counts.cut, counts.replaced, counts.shortened, counts.lost);
    }
    const auto& seen = detector_.counts();
    out += fmt::format("detection: {} events, {} too late, {} evicted early\n", seen.events,
                       seen.late, seen.evicted + seen.hurried);
    if (uplink_) {
      const auto counts = uplink_->counts();
      const std::string trouble = uplink_->trouble();
      out += fmt::format("service: {} lines acknowledged, {} rejected, {} pending{}{}\n",
                         counts.acknowledged, counts.refused,
                         human(Bytes{static_cast<std::int64_t>(counts.waiting_bytes)}),
                         trouble.empty() ? "" : "; last error: ", trouble);
    }
    fmt::print(stderr, "{}", out);
  }

  const Common& common_;
  const Setup& setup_;
  telemetry::Inventory& inventory_;
  std::optional<live::Uplink>& uplink_;
  live::SystemClock clock_;
  AgentState state_;
  telemetry::SyslogReader reader_;
  live::HostCounters counters_;
  detect::Detector detector_;
  std::deque<live::LogTail> tails_;
  OpenRecords open_;
  std::int64_t wait_ns_ = 0;
  std::vector<std::string> lines_;  // to be handed over
  std::string mark_;
  bool is_blocked_ = false;
  Timestamp wall_now_, measured_, marked_;
  Timestamp monotonic_now_;  // as detection goes
  port::Instant moved_;      // when that was last moved on
};

Status run_agent(const Common& common, const AgentArgs& args) {
  WEFT_TRY(const Setup setup, load_setup(common, args));
  WEFT_TRY(telemetry::Inventory inventory, load_inventory(setup.fabric, args.inventory));
  WEFT_TRY(live::Signals signals, live::Signals::open());  // before there are threads
  WEFT_TRY(std::optional<live::Uplink> uplink, open_uplink(common, args));
  return Agent(common, args, setup, inventory, uplink).run(signals);
}

}  // namespace

void add_agent(CLI::App& command, AgentArgs& args) {
  command.add_option("--fabric", args.fabric, "Scenario or fabric file");
  command.add_option("--device", args.device, "Switch or host on which the agent runs");
  command.add_option("--log", args.logs, "Log file to follow; may be repeated");
  command.add_option("--rules", args.rules, "YAML file merged over the built-in detections");
  command.add_flag("--show-rules", args.show_rules, "Print the built-in detections");
  command.add_option("--interval", args.interval, "Interval between heartbeats and counter reads");
  command.add_option("--to", args.to, "Service: https://HOST[:PORT] or unix:/PATH");
  command.add_option("--token", args.token, "File with the token for the service");
  command.add_option("--ca", args.ca, "Certificates to trust instead of the system's");
  command.add_option("--cert", args.certificate, "Client certificate, if the service requires one");
  command.add_option("--key", args.key, "Key of --cert");
  command.add_option("--spool", args.spool,
                     "Directory for lines that the service has not acknowledged");
  command.add_option("--spool-size", args.spool_size, "Maximum size of the spool");
  command.add_option("--inventory", args.inventory, "CSV with addresses of devices and ports");
  command.add_option("--catalogue", args.catalogue, "YAML with additional log messages");
  command.add_option("--ports-per-card", args.ports_per_card, "Ports per line card")
      ->check(CLI::Range(1, 4096));
}

int agent_command(const Common& common, const AgentArgs& args) {
  if (args.show_rules) {
    fmt::print("{}", detect::default_rules_text());
    return done;
  }
  for (const auto& [option, value] :
       {std::pair{"--fabric", &args.fabric}, std::pair{"--device", &args.device}})
    if (value->empty())
      return report({Errc::value, {option, 0, 0}, "is required", "see weft agent --help", {}});
  const Status status = run_agent(common, args);
  return status ? done : report(status.error());
}

}  // namespace weft::cli
