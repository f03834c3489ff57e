#include "app/agent/agent.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <iterator>
#include <span>
#include <utility>

#include "adapt/live/host_counters.hpp"
#include "adapt/live/log_tail.hpp"
#include "adapt/live/system_clock.hpp"
#include "app/agent/agent_state.hpp"
#include "base/file.hpp"
#include "observe/detect/detector.hpp"
#include "observe/telemetry/syslog_reader.hpp"
#include "operate/health/book.hpp"
#include "os/log.hpp"

namespace weft::app {
namespace {

namespace detect = observe::detect;
namespace live = adapt::live;
namespace telemetry = observe::telemetry;
using model::NodeId;

constexpr int turn_ms = 50;
constexpr std::size_t log_bytes_a_turn = std::size_t{1} << 20;
constexpr std::ptrdiff_t piece_lines = 500;
// Stamps have whole seconds, and a line takes its time to the file: what is no older counts as of
// now. What is older was written while nobody watched.
constexpr std::int64_t fresh_ns = 5 * ns_per_s / 2;
constexpr std::int64_t mark_every_ns = ns_per_s;
constexpr std::chrono::seconds farewell{2};

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
  Agent(const AgentSettings& settings, telemetry::Inventory& inventory,
        std::optional<live::Uplink>& uplink)
      : settings_(settings),
        inventory_(inventory),
        uplink_(uplink),
        state_(load_state(uplink, clock_.wall())),
        reader_(inventory, settings.catalogue, {}),
        counters_({.device = settings.name, .root = {}}),
        detector_(settings.fabric, settings.rules, {.ports_per_card = settings.ports_per_card}),
        rates_(state_.speeds),
        open_(settings.logs.size()) {
    for (const std::string& path : settings.logs)
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
      if (wall_now_.ns >= measured_.ns + settings_.interval_ns || wall_now_ < measured_) measure();
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
    if (!settings_.quiet) show();
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
            reader_.take(line, wall_now_, settings_.name);
            places.emplace_back(i, place);
          });
    model::RecordSet set = reader_.take_records();
    for (std::size_t i = 0; i < places.size(); ++i)
      take_record(set, set.rows[i], places[i].first, places[i].second);
    return is_any;
  }

  void take_record(model::RecordSet& set, const model::Record& row, std::size_t log,
                   const live::LogPlace& place) {
    std::string id = fmt::format("{}-{}-{:x}.{:x}", settings_.name, state_.origin, place.generation,
                                 place.offset);
    set.ids[row.id] = id;
    const std::uint64_t serial =
        open_.add(log, place, std::move(id), model::to_json(settings_.fabric, set, row));
    detect::Event event = detect::event_of(row, serial);
    event.t =
        row.t.ns > wall_now_.ns - fresh_ns ? monotonic_now_ : Timestamp{row.t.ns - clock_step_ns()};
    detector_.take(event);
  }

  void measure() {
    measured_ = wall_now_;
    std::vector<operate::health::RateWatch::Reading> speeds;
    for (const port::Sample& sample : counters_.read(monotonic_now_)) take_sample(sample, speeds);
    if (is_blocked_) return;  // nothing could be told
    for (const auto& change : rates_.take(speeds, wall_now_)) tell_rate(change);
    state_.speeds = rates_.most();
    beat();
  }

  void take_sample(const port::Sample& sample,
                   std::vector<operate::health::RateWatch::Reading>& speeds) {
    model::Entity entity = model::entity(settings_.device);
    if (!sample.component.empty()) {
      const model::LinkId link = inventory_.port(settings_.device, sample.component);
      const NodeId nic = inventory_.nic(settings_.device, sample.component);
      if (link.valid())
        entity = model::port_of(link);
      else if (nic.valid())
        entity = model::entity(nic);
      else if (is_of_interface(sample.metric))
        return;  // of an interface that is no part of the fabric: loopback, bridges, management
    }
    if (sample.metric == port::Metric::speed_bps)
      if (const double nominal = nominal_bps(entity); nominal > 0)
        speeds.push_back({entity, nominal, sample.value});
    detector_.take(detect::event_of(sample, entity));
  }
  // 0: of what has no cable of the fabric.
  double nominal_bps(const model::Entity& part) const {
    if (part.kind == model::EntityKind::port)
      return static_cast<double>(settings_.fabric.rate(model::LinkId(part.id)).bps);
    for (const model::LinkId link : settings_.fabric.out(NodeId(part.id)))
      if (settings_.fabric.on_wire(link))
        return static_cast<double>(settings_.fabric.rate(link).bps);
    return 0;
  }
  // What path health is made of (operate/health/book.hpp).
  void tell_rate(const operate::health::RateWatch::Change& change) {
    const auto& [part, share, is_back] = change;
    model::RecordSet set;
    model::Record row;
    row.t = row.until = row.received = wall_now_;
    row.entity = part;
    row.source = model::Source::agent;
    using enum model::EventKind;
    row.kind = share < 1 ? link_slow : is_back ? link_speed_ok : info;
    row.value = share;
    row.id = set.add_id(next_id());
    row.attrs = set.add_attributes({{"rate_share", fmt::format("{:.4g}", share)}});
    lines_.push_back(model::to_json(settings_.fabric, set, row));
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
    row.entity = model::entity(settings_.device);
    row.source = model::Source::agent;
    row.id = set.add_id(next_id());
    row.attrs = set.add_attributes(std::move(attributes));
    lines_.push_back(model::to_json(settings_.fabric, set, row));
  }

  std::string next_id() {
    return fmt::format("{}-{}-{}", settings_.name, state_.origin, ++state_.sequence);
  }

  void tell(const detect::Detector::Output& out) {
    model::RecordSet set;
    for (detect::Detection detection : out.detections) {
      detection.t.ns += clock_step_ns();
      detection.told.ns += clock_step_ns();
      const model::Record& row =
          add_record(set, detection, detector_.rules()[detection.rule], next_id(),
                     [this](std::uint64_t serial) { return open_.id_of(serial); });
      lines_.push_back(model::to_json(settings_.fabric, set, row));
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
        log(LogLevel::warning, "weft agent", "log reading suspended: " + sent.error().text());
    } else if (std::exchange(is_blocked_, false)) {
      log(LogLevel::info, "weft agent", "log reading resumed");
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

  const AgentSettings& settings_;
  telemetry::Inventory& inventory_;
  std::optional<live::Uplink>& uplink_;
  live::SystemClock clock_;
  AgentState state_;
  telemetry::SyslogReader reader_;
  live::HostCounters counters_;
  detect::Detector detector_;
  operate::health::RateWatch rates_;
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

}  // namespace

Status run_agent(const AgentSettings& settings, telemetry::Inventory& inventory,
                 std::optional<live::Uplink>& uplink, live::Signals& signals) {
  return Agent(settings, inventory, uplink).run(signals);
}

}  // namespace weft::app
