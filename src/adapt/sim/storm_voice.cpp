#include "adapt/sim/storm_voice.hpp"

#include <algorithm>
#include <cmath>

#include "base/hash.hpp"

namespace weft::adapt::sim {

using model::NodeId;
using model::Source;
using observe::telemetry::Dialect;

namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr double delay_max_s = 8;
constexpr double drifting = 0.03;  // of the devices, with a clock up to 1.5 s off

std::int64_t floor_to(std::int64_t t, std::int64_t step) {
  const std::int64_t rest = t % step;
  return t - (rest < 0 ? rest + step : rest);
}

// Clocks by NTP are some milliseconds off; a few drift; and of some the zone was set wrongly.
std::vector<std::int64_t> draw_clocks(const StormContext& context, const StormOptions& options) {
  Rng rng = Rng(options.seed).stream("storm.clocks");
  std::vector<std::int64_t> clocks(context.fabric.node_count(), 0);
  for (std::int64_t& clock : clocks) {
    const double most = rng.uniform() < drifting ? 1.5 : 0.02;
    clock = static_cast<std::int64_t>((2 * rng.uniform() - 1) * most * 1e9);
  }
  for (std::uint32_t i = 0; i < options.wrong_clocks && !context.switches.empty(); ++i) {
    const NodeId device = context.switches[rng.below(context.switches.size())];
    const auto hours = static_cast<std::int64_t>(1 + rng.below(11));
    clocks[device.index()] = (rng.below(2) == 0 ? hours : -hours) * 3600 * ns_per_s;
  }
  return clocks;
}

}  // namespace

StormVoice::StormVoice(const StormContext& context, const StormOptions& options)
    : context_(context), options_(options), clock_(draw_clocks(context, options)) {
  const auto names = storm_dialects(context.fabric, options);
  for (const auto& role : context.fabric.roles()) {
    const auto known = names.find(role.name);
    dialect_of_role_.push_back(known == names.end() ? Dialect::host : known->second);
  }
}

void StormVoice::turn_to(std::uint32_t fault, std::uint64_t stream) {
  fault_ = fault;
  rng_ = Rng(options_.seed).stream("storm.voice").stream(stream);
}

bool StormVoice::streams(NodeId device) const {
  const Dialect made = dialect(device);
  return made == Dialect::sonic || made == Dialect::eos || made == Dialect::junos ||
         made == Dialect::nxos;
}

bool StormVoice::has_bfd(NodeId device) const {
  const Dialect made = dialect(device);
  return made == Dialect::junos || made == Dialect::frr;
}

std::int64_t StormVoice::poll_at(NodeId device, std::int64_t t) const {
  const auto phase = static_cast<std::int64_t>(mix64(device.value) % poll_step);
  const std::int64_t last = floor_to(t - phase, poll_step) + phase;
  return last < t ? last + poll_step : last;
}

void StormVoice::say(Source source, const Span& span, NodeId speaker, const StormWord& word) {
  StormLine line;
  line.t = options_.start.ns + span.t;
  line.until = options_.start.ns + span.until;
  line.entity = word.entity;
  line.speaker = speaker;
  line.stray = word.stray;
  line.change = word.change;
  line.fault = fault_;
  line.salt = static_cast<std::uint32_t>(rng_.next() >> 32);
  line.value = word.value;
  line.kind = word.kind;
  line.source = source;
  line.reason = word.reason;
  const bool is_lost = chance(options_.lost);
  const bool is_doubled = chance(options_.doubled);
  const std::int64_t again = ns_between(0, 3);
  if (is_lost) return;
  line.received = floor_to(options_.start.ns + span.delay, 1'000);
  lines_.push_back(line);
  if (!is_doubled) return;
  line.received = floor_to(line.received + again, 1'000);
  lines_.push_back(line);
}

// Relays queue: a floor of milliseconds, an exponential tail, now and then a retry of seconds.
void StormVoice::log(NodeId speaker, std::int64_t t, const StormWord& word) {
  double delay = between(0.001, 0.04) - 0.15 * std::log(1 - rng_.uniform());
  if (chance(0.03)) delay += between(0.5, 6);
  const auto late = static_cast<std::int64_t>(std::min(delay, delay_max_s) * 1e9);
  const std::int64_t stamp = floor_to(options_.start.ns + own_clock(speaker, t),
                                      observe::telemetry::stamp_step_ns(dialect(speaker))) -
                             options_.start.ns;
  say(Source::syslog, {stamp, stamp, t + late}, speaker, word);
}

void StormVoice::stream(NodeId device, std::int64_t t, const StormWord& word) {
  if (!streams(device)) return;
  const std::int64_t late = ns_between(0.005, 0.08) + (chance(0.01) ? ns_between(0.2, 2) : 0);
  const std::int64_t stamp = floor_to(own_clock(device, t), ms);
  say(Source::gnmi, {stamp, stamp, t + late}, device, word);
}

void StormVoice::sample(NodeId device, std::int64_t t, const StormWord& word) {
  if (!streams(device)) return;
  const std::int64_t end = floor_to(t, sample_step) + sample_step;
  const std::int64_t stamp = floor_to(own_clock(device, end), ms);
  say(Source::gnmi, {stamp - sample_step, stamp, end + ns_between(0.01, 0.3)}, device, word);
}

void StormVoice::poll(NodeId device, std::int64_t t, const StormWord& word) {
  const std::int64_t at = floor_to(poll_at(device, t), ms);
  say(Source::snmp, {at - poll_step, at, at + ns_between(0.05, 1.5)}, {}, word);
}

// A poller says so when the retries have run out.
void StormVoice::miss(NodeId device, std::int64_t t, const StormWord& word) {
  const std::int64_t at = floor_to(poll_at(device, t), ms);
  say(Source::snmp, {at - poll_step, at, at + ns_between(3, 6)}, {}, word);
}

void StormVoice::probe(std::int64_t t, const StormWord& word) {
  const std::int64_t from = floor_to(t, window_step);
  say(Source::probe, {from, from + window_step, from + window_step + ns_between(1, 4)}, {}, word);
}

void StormVoice::agent(NodeId host, std::int64_t t, const StormWord& word) {
  const std::int64_t stamp = floor_to(own_clock(host, t), ms);
  say(Source::agent, {stamp, stamp, t + ns_between(0.02, 1.2)}, host, word);
}

void StormVoice::agent_sample(NodeId host, std::int64_t t, const StormWord& word) {
  const std::int64_t end = floor_to(t, sample_step) + sample_step;
  const std::int64_t stamp = floor_to(own_clock(host, end), ms);
  say(Source::agent, {stamp - sample_step, stamp, end + ns_between(0.02, 1.2)}, host, word);
}

// A beat each 10 s; three missing ones make silence, which began after the last that came.
void StormVoice::heartbeat(std::int64_t t, const StormWord& word) {
  const std::int64_t last = floor_to(t, sample_step);
  say(Source::agent, {last, last + 3 * sample_step, last + 3 * sample_step + ns_between(0.1, 1)},
      {}, word);
}

void StormVoice::out_of_band(std::int64_t t, const StormWord& word) {
  const std::int64_t end = floor_to(t, sample_step) + sample_step;
  say(Source::oob, {end - sample_step, end, end + ns_between(0.2, 2)}, {}, word);
}

}  // namespace weft::adapt::sim
