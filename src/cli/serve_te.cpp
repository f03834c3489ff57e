#include "cli/serve_te.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "adapt/linux_switch/switch_overlay.hpp"
#include "base/file.hpp"
#include "base/json_text.hpp"
#include "base/plural.hpp"
#include "base/text.hpp"
#include "observe/probe/targets.hpp"
#include "operate/te/flow_file.hpp"

namespace weft::cli {

namespace te = operate::te;
using adapt::overlay_lease;

namespace {

constexpr std::size_t decisions_kept = 64;
constexpr std::int64_t drains_every_ns = ns_per_s;
constexpr std::int64_t start_look_ns = 100'000'000;

model::State draining(const model::Fabric& fabric, std::span<const model::Entity> parts) {
  model::State out;
  constexpr model::Condition drains{.health = model::Health::draining};
  for (const model::Entity& part : parts) {
    using enum model::EntityKind;
    if (part.kind == cable) {
      const model::LinkId link = forward(model::CableId(part.id));
      out.set(link, drains);
      out.set(reverse(link), drains);
    } else if (part.kind == port) {
      out.set(model::LinkId(part.id), drains);
      out.set(model::reverse(model::LinkId(part.id)), drains);
    } else if (part.kind == node && fabric.is_switch(model::NodeId(part.id))) {
      out.set(model::NodeId(part.id), drains);
    }
  }
  return out;
}

}  // namespace

Result<TeSettings> read_te_settings(const Config& config) {
  TeSettings out;
  Errors errors;
  Reader reader(config, "te", errors);
  out.flows = reader.text("flows", "");
  if (out.flows.empty())
    reader.error(Errc::value, config.where, "te: names no flows",
                 "add flows: FILE, a CSV with src,dst and perhaps port, weight, priority, second");
  out.addresses = reader.text("addresses", "");
  out.split = reader.flag("split", false);
  out.only_hit = reader.flag("only_hit", false);
  out.damping.hold = reader.duration("hold", out.damping.hold);
  out.damping.hold_max =
      reader.duration("hold_max", std::max(out.damping.hold, out.damping.hold_max));
  out.damping.forget = reader.duration("forget", out.damping.forget);
  if (out.damping.hold <= Duration{} || out.damping.hold_max < out.damping.hold ||
      out.damping.forget <= Duration{} || out.damping.forget > 86'400_s)
    reader.error(Errc::value, config.where, "hold, hold_max or forget is out of range",
                 "hold must be above 0, hold_max at least hold, forget at most 24 h");
  reader.finish();
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return out;
}

Result<std::map<model::NodeId, std::uint32_t>> read_nic_addresses(const model::Fabric& fabric,
                                                                  const std::string& path) {
  std::map<model::NodeId, std::uint32_t> out;
  if (path.empty()) {
    for (const model::NodeId nic : fabric.nics()) out[nic] = fabric.address(nic);
    return out;
  }
  WEFT_TRY(const auto rows, observe::probe::read_address_rows(fabric, path));
  for (const auto& [node, address] : rows) out.emplace(node, address);
  for (const model::NodeId nic : fabric.nics())
    if (!out.contains(nic))
      return fail(Errc::value, {path, 0, 0}, fabric.name(nic) + " has no address here",
                  "add a row for each NIC, or leave the file out: 10.0.0.1 + number of the NIC");
  return out;
}

Result<ServedTe::Inputs> ServedTe::read(const model::Fabric& fabric, const TeSettings& settings) {
  Inputs out;
  WEFT_TRY(out.zone, route::find_zone(fabric));
  WEFT_TRY(const std::string text, read_file(settings.flows));
  WEFT_TRY(out.flows, te::read_flows_csv(fabric, text, settings.flows));
  WEFT_TRY(out.addresses, read_nic_addresses(fabric, settings.addresses));
  return out;
}

Result<std::unique_ptr<ServedTe>> ServedTe::open(Parts parts) {
  WEFT_TRY(Inputs inputs, read(parts.fabric, parts.settings));
  return std::make_unique<ServedTe>(std::move(parts), std::move(inputs));
}

ServedTe::ServedTe(Parts parts, Inputs inputs)
    : parts_(std::move(parts)),
      switches_({.fabric = parts_.fabric,
                 .zone = std::move(inputs.zone),
                 .addresses = std::move(inputs.addresses),
                 .epoch = fmt::format("{:x}", clock_.wall().ns),
                 .clock = clock_,
                 .lease_ns = overlay_lease.ps / ps_per_ns,
                 .wake =
                     [this] {
                       const std::scoped_lock lock(wake_mutex_);
                       is_woken_ = true;
                       changed_.notify_all();
                     }}),
      flows_(std::move(inputs.flows)),
      flow_count_(flows_.size()),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

ServedTe::~ServedTe() { switches_.close(); }

Time ServedTe::now() { return Time{} + Duration{(clock_.now() - begin_) * ps_per_ns}; }

void ServedTe::run(const std::stop_token& stop) {
  begin_ = clock_.now();
  while (!stop.stop_requested()) {
    take_drains();
    read_flows();
    if (!controller_) {
      if (switches_.all_known() || now() >= Time{} + overlay_lease) {
        const Status started = start();
        const std::scoped_lock lock(mutex_);
        if (!started && error_ != started.error().text()) {
          error_ = started.error().text();
          parts_.say(LogLevel::warning, "traffic engineering: " + error_);
        }
        is_started_ = started.has_value();
        if (started) error_.clear();
      }
    } else if (auto event = controller_->turn(now())) {
      keep(*std::move(event));
    }
    tell_silent();
    rest(stop);
  }
}

Status ServedTe::start() {
  if (controller_) {
    WEFT_TRY(te::Event first, controller_->start(flows_, now()));
    keep(std::move(first));
    return {};
  }
  te::LoopOptions options;
  options.damping = parts_.settings.damping;
  options.settings.split = parts_.settings.split;
  if (parts_.settings.only_hit) options.settings.others = route::Assignment::Others::stay;
  WEFT_TRY(te::Controller made,
           te::Controller::create(parts_.fabric, switches_, switches_, 1, options));
  WEFT_TRY(te::Event first, made.start(flows_, now()));
  controller_ = std::move(made);
  keep(std::move(first));
  return {};
}

void ServedTe::reload() {
  const std::scoped_lock lock(wake_mutex_);
  is_reload_ = is_woken_ = true;
  changed_.notify_all();
}

void ServedTe::read_flows() {
  {
    const std::scoped_lock lock(wake_mutex_);
    if (!std::exchange(is_reload_, false)) return;
  }
  const std::string& path = parts_.settings.flows;
  const auto text = read_file(path);
  auto flows =
      text ? te::read_flows_csv(parts_.fabric, *text, path) : std::unexpected(text.error());
  if (!flows)
    return parts_.say(LogLevel::warning,
                      "traffic engineering: flows stay as they were: " + flows.error().text());
  flows_ = *std::move(flows);
  const Status started = controller_ ? start() : Status();
  if (!started)
    return parts_.say(LogLevel::warning, "traffic engineering: " + started.error().text());
  parts_.say(LogLevel::info,
             fmt::format("traffic engineering: {}", counted(flows_.size(), "flow")));
  const std::scoped_lock lock(mutex_);
  flow_count_ = flows_.size();
}

void ServedTe::take_drains() {
  const port::Instant at = clock_.now();
  if (drains_read_ && at - *drains_read_ < drains_every_ns) return;
  drains_read_ = at;
  switches_.set_drained(draining(parts_.fabric, parts_.out_of_service()));
}

void ServedTe::keep(te::Event event) {
  Done done{
      .wall = {}, .at = begin_ + (event.at - Time{}).ps / ps_per_ns, .event = std::move(event)};
  done.wall = {clock_.wall().ns - (clock_.now() - done.at)};
  done.applied = switches_.applied();
  const te::Decision& d = done.event.step.decision;
  if (!d.refused.empty())
    parts_.say(LogLevel::warning, "traffic engineering: left to hashing: " + d.refused);
  const std::scoped_lock lock(mutex_);
  ++decisions_;
  refused_ += d.refused.empty() ? 0 : 1;
  done_.push_back(std::move(done));
  if (done_.size() > decisions_kept) done_.pop_front();
}

void ServedTe::tell_silent() {
  if (!controller_) return;
  std::vector<std::string> silent;
  for (const auto& one : switches_.switches())
    if (one.is_silent) silent.push_back(one.name);
  if (silent == silent_) return;
  silent_ = std::move(silent);
  if (silent_.empty()) return parts_.say(LogLevel::info, "traffic engineering: all agents report");
  constexpr std::size_t named = 5;
  const std::vector<std::string> first(
      silent_.begin(),
      silent_.begin() + static_cast<std::ptrdiff_t>(std::min(named, silent_.size())));
  parts_.say(LogLevel::warning,
             fmt::format("traffic engineering: {} silent ({}{}): their marks lapse after {:.0f} s, "
                         "BGP has the flows",
                         counted(silent_.size(), "switch"), fmt::join(first, ", "),
                         silent_.size() > named ? ", ..." : "", overlay_lease.seconds()));
}

// Until there is news, or something is due.
void ServedTe::rest(const std::stop_token& stop) {
  std::int64_t wait_ns = start_look_ns;
  if (controller_) wait_ns = (controller_->next_turn() - now()).ps / ps_per_ns;
  if (const auto late = switches_.answer_late()) wait_ns = std::min(wait_ns, *late - clock_.now());
  std::unique_lock lock(wake_mutex_);
  changed_.wait_for(lock, stop, std::chrono::nanoseconds(std::max<std::int64_t>(wait_ns, 0)),
                    [this] { return is_woken_; });
  is_woken_ = false;
}

std::string ServedTe::state() const {
  const auto switches = switches_.switches();
  const std::scoped_lock lock(mutex_);
  std::size_t marks = 0;
  std::vector<std::string> silent;
  JsonList rows, decisions;
  for (const auto& one : switches) {
    if (one.is_silent)
      silent.push_back(one.name);
    else
      marks += one.marks;
    JsonObject row;
    row.add("name", one.name)
        .add("rack", one.is_rack)
        .add("heard_s",
             one.heard_ns ? std::optional(static_cast<double>(*one.heard_ns) / 1e9) : std::nullopt,
             decimals(3))
        .add("silent", one.is_silent)
        .add("marks", one.marks)
        .add("wanted", one.wanted);
    rows.add(row.add_if("without_next_hop", one.without_hop).add_if("trouble", one.trouble));
  }
  for (const Done& done : done_) {
    const te::Decision& d = done.event.step.decision;
    std::vector<std::string> news;
    for (const port::LinkNews& link : done.event.news)
      news.push_back(parts_.fabric.name(link.cable) + (link.is_up ? " up" : " down"));
    const auto settled = switches_.settled(done.applied);
    decisions.add(JsonObject()
                      .add("t", done.wall)
                      .add("news", news)
                      .add("first", done.event.is_first)
                      .add("hit", d.hit)
                      .add("moved", d.moved)
                      .add("changes", done.event.step.changes)
                      .add("worst", d.judgement.worst)
                      .add("hashed", d.judgement.hashed)
                      .add("bound", d.bound)
                      .add("refused", d.refused)
                      .add("installed_s",
                           settled ? std::optional(std::max(
                                         0.0, static_cast<double>(*settled - done.at) / 1e9))
                                   : std::nullopt,
                           decimals(6)));
  }
  return JsonObject()
      .add("flows", flow_count_)
      .add("started", is_started_)
      .add_if("error", error_)
      .add("lease_s", overlay_lease.seconds())
      .add("marks", marks)
      .add("silent", silent)
      .add("cables_down", switches_.cables_down())
      .add("switches", rows)
      .add("decisions", decisions)
      .text();
}

std::string ServedTe::metrics() const {
  const auto switches = switches_.switches();
  std::size_t marks = 0, silent = 0, pending = 0;
  for (const auto& one : switches) {
    silent += one.is_silent ? 1 : 0;
    marks += one.is_silent ? 0 : one.marks;
    pending += one.trouble.empty() ? 0 : 1;
  }
  const std::scoped_lock lock(mutex_);
  double installed_s = 0;
  for (const Done& done : done_)
    if (const auto at = switches_.settled(done.applied); at && done.event.step.changes > 0)
      installed_s = std::max(0.0, static_cast<double>(*at - done.at) / 1e9);
  return fmt::format(
      "# HELP weft_te_flows Flows that traffic engineering places.\n"
      "# TYPE weft_te_flows gauge\nweft_te_flows {}\n"
      "# HELP weft_te_marks Marks that hold at switches; those of silent ones do not.\n"
      "# TYPE weft_te_marks gauge\nweft_te_marks {}\n"
      "# HELP weft_te_switches_silent Switches whose agent has not reported for a lease.\n"
      "# TYPE weft_te_switches_silent gauge\nweft_te_switches_silent {}\n"
      "# HELP weft_te_switches_in_trouble Switches that did not carry out their orders.\n"
      "# TYPE weft_te_switches_in_trouble gauge\nweft_te_switches_in_trouble {}\n"
      "# HELP weft_te_decisions_total Decisions.\n"
      "# TYPE weft_te_decisions_total counter\nweft_te_decisions_total {}\n"
      "# HELP weft_te_refused_total Of them: marks would have been worse than hashing.\n"
      "# TYPE weft_te_refused_total counter\nweft_te_refused_total {}\n"
      "# HELP weft_te_install_seconds From the last news with changes until all had them.\n"
      "# TYPE weft_te_install_seconds gauge\nweft_te_install_seconds {}\n",
      flow_count_, marks, silent, pending, decisions_, refused_, installed_s);
}

}  // namespace weft::cli
