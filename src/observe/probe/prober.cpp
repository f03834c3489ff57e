#include "observe/probe/prober.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.hpp"

namespace weft::observe::probe {
namespace {

using port::batch_max;
using port::Instant;

// At high rates probes leave in groups, so that a group costs little: what is due in this time.
constexpr std::int64_t tick_ns = 200'000;
constexpr std::int64_t housekeeping_ns = 50 * ns_per_ms;
constexpr std::size_t batches_per_step = 4, receives_per_step = 32;
// After a pause, so much of the schedule is made up for; the rest is skipped.
constexpr double catch_up_s = 0.1;
constexpr std::int64_t make_up_ns = ns_per_ms;
constexpr double rate_unbounded = 400'000;  // that the ledger has room for
constexpr std::size_t ledger_max = std::size_t{1} << 24;

std::size_t ledger_capacity(const ProberOptions& options, std::size_t flows) {
  const double rate = options.rate > 0 ? options.rate : rate_unbounded;
  const double life_s = static_cast<double>(options.timeout_ns + options.late_ns) * 1e-9 + 0.2;
  const double wanted = rate * life_s + 4 * batch_max + static_cast<double>(flows);
  return static_cast<std::size_t>(std::min(wanted, static_cast<double>(ledger_max)));
}

}  // namespace

Prober::Prober(const ProberOptions& options, std::vector<Flow> flows, port::ProbeIo& io,
               port::Clock& clock)
    : options_(options),
      flows_(std::move(flows)),
      io_(io),
      clock_(clock),
      start_(clock.now()),
      states_(flows_.size()),
      ledger_(ledger_capacity(options, flows_.size())),
      incoming_(batch_max),
      wires_(batch_max) {
  WEFT_CHECK(!flows_.empty());
  WEFT_CHECK(options_.window_ns >= options_.timeout_ns + options_.late_ns);
  for (std::uint32_t i = 0; i < flows_.size(); ++i) {
    if (flows_[i].port >= ports_.size()) ports_.resize(flows_[i].port + std::size_t{1});
    ports_[flows_[i].port].flows.push_back(i);
  }
  std::erase_if(ports_, [](const Port& port) { return port.flows.empty(); });
  if (options_.direction == Direction::one_way)
    one_way_.emplace(flows_, options_.spare_ports, options_.timeout_ns + options_.late_ns,
                     options_.timeout_ns);
  slot_[0] = {clock.wall(), io.dropped()};
  wake_at_ = start_;
}

void Prober::step() {
  const Instant now = clock_.now();
  if (wake_is_due_ && now > wake_at_) {
    auto& slot = slot_[window_ % 2];
    slot.lateness_max_ns = std::max(slot.lateness_max_ns, now - wake_at_);
    counts_.lateness_max_ns = std::max(counts_.lateness_max_ns, slot.lateness_max_ns);
  }
  take_stamps();
  const bool overdue = phase_ == Phase::settling && now > stopped_at_ + patience_ns();
  if (take_answers() || overdue) {
    expire(now);
    if (phase_ == Phase::sending) roll_window(now);
    close_windows(now);
  }
  if (phase_ == Phase::sending && window_of(now) == window_) send_due(now);
  if (one_way_) send_questions(now);
  if (phase_ == Phase::settling && settled(now)) {
    // A window that has only just begun is none.
    const bool begun = window_ == 0 || slot_[window_ % 2].tried > 0;
    while (closed_ < window_ + (begun ? 1 : 0)) close_window(stopped_at_);
    phase_ = Phase::over;
  }
  plan_wake(now);
}

void Prober::stop() {
  if (phase_ != Phase::sending) return;
  phase_ = Phase::settling;
  stopped_at_ = clock_.now();
  wake_at_ = stopped_at_;
  if (one_way_) one_way_->ask(window_ % 2, stopped_at_);
}

std::optional<WindowReport> Prober::take_report() {
  if (reports_.empty()) return std::nullopt;
  WindowReport report = std::move(reports_.front());
  reports_.erase(reports_.begin());
  return report;
}

port::Wake Prober::wake() const {
  const bool soon = wake_is_due_ && io_.stamping() == port::Stamp::wanted;
  return soon && phase_ == Phase::sending ? port::Wake::timer : port::Wake::arrival;
}

std::uint64_t Prober::window_of(Instant when) const {
  return static_cast<std::uint64_t>((when - start_) / options_.window_ns);
}

Instant Prober::window_end(std::uint64_t window) const {
  return start_ + static_cast<std::int64_t>(window + 1) * options_.window_ns;
}

bool Prober::may_send(std::uint32_t flow) const {
  return options_.count == 0 || states_[flow].sequence < options_.count;
}

void Prober::take_stamps() {
  std::array<port::SendStamp, batch_max> stamps;
  for (std::size_t round = 0; round < receives_per_step; ++round) {
    const std::size_t count = io_.send_stamps(stamps);
    for (std::size_t i = 0; i < count; ++i)
      if (LedgerEntry* entry = ledger_.find(stamps[i].token)) entry->stamped = stamps[i].when;
    if (count < stamps.size()) return;
  }
}

// Whether nothing is left to take.
bool Prober::take_answers() {
  for (std::size_t round = 0; round < receives_per_step; ++round) {
    const std::size_t count = io_.receive(incoming_);
    for (std::size_t i = 0; i < count; ++i) take_answer(incoming_[i]);
    if (count < incoming_.size()) return true;
  }
  return false;
}

void Prober::take_answer(const port::Incoming& in) {
  Message reply;
  const Fault fault =
      in.size > request_bytes_max ? Fault::oversized : decode(in.payload(), options_.key, reply);
  if (fault != Fault::none) {
    const std::array<std::uint64_t*, 6> counters{
        nullptr,          &counts_.truncated, &counts_.oversized,
        &counts_.foreign, &counts_.damaged,   &counts_.forged};
    ++*counters[static_cast<std::size_t>(fault)];
    if (fault == Fault::damaged && !one_way_) take_damaged(in, reply);
    return;
  }
  if (reply.kind != Kind::reply) {
    ++counts_.requests;
    return;
  }
  if (reply.session != options_.session) {
    ++counts_.misplaced;
    return;
  }
  if (one_way_) return take_counts(in, reply);
  LedgerEntry* entry = ledger_.find(reply.probe);
  if (entry == nullptr) {
    ++(ledger_.is_future(reply.probe) ? counts_.future : counts_.stale);
    return;
  }
  if (!fits(in, reply, *entry)) {
    ++counts_.misplaced;
    return;
  }
  FlowState& flow = states_[entry->flow];
  FlowCounts& counts = counts_of(flow, entry->sent);
  if (entry->state == LedgerEntry::State::answered) {
    ++counts.duplicates;
    return;
  }
  ledger_.answer(reply.probe);
  note_responder(reply, flow, counts);
  note_round_trip(in, reply, *entry);
}

// An answer that the network changed on its way back: it has both numbers of the probe, comes from
// where the answer had to come from, and names the session or the flow, as one flip leaves them.
// Nothing else of it is believed.
void Prober::take_damaged(const port::Incoming& in, const Message& reply) {
  const LedgerEntry* const entry = ledger_.find(reply.probe);
  if (entry == nullptr || entry->state == LedgerEntry::State::answered) return;
  const Flow& flow = flows_[entry->flow];
  const bool is_ours = reply.session == options_.session || reply.flow == entry->flow;
  if (!is_ours || reply.sequence != entry->sequence || in.from != flow.target ||
      in.port != flow.port)
    return;
  ++counts_of(states_[entry->flow], entry->sent).damaged_back;
  ledger_.answer(reply.probe);
}

void Prober::take_counts(const port::Incoming& in, const Message& reply) {
  const OneWay::Answer answer = one_way_->take(in, reply);
  FlowCounts& counts = states_[answer.flow].windows[answer.slot];
  switch (answer.taken) {
    case OneWay::Taken::good:
      counts.overflows += answer.overflows;
      break;
    case OneWay::Taken::duplicate:
      ++counts.duplicates;
      break;
    case OneWay::Taken::stale:
      ++counts_.stale;
      break;
    case OneWay::Taken::future:
      ++counts_.future;
      break;
    case OneWay::Taken::misplaced:
      ++counts_.misplaced;
      break;
  }
}

bool Prober::fits(const port::Incoming& in, const Message& reply, const LedgerEntry& entry) const {
  const Flow& flow = flows_[entry.flow];
  return reply.flow == entry.flow && reply.sequence == entry.sequence && in.from == flow.target &&
         in.port == flow.port;
}

// Network time is what is left of the round trip without the responder's own.
void Prober::note_round_trip(const port::Incoming& in, const Message& reply,
                             const LedgerEntry& entry) {
  FlowCounts& counts = counts_of(states_[entry.flow], entry.sent);
  ++counts.answered;
  if (reply.dscp_seen != flows_[entry.flow].dscp) ++counts.remarked;
  const bool stamped = entry.stamped.ns != 0 && in.when;
  const Instant left = entry.stamped.ns != 0 ? entry.stamped : entry.sent;
  const std::int64_t around = in.when.value_or(clock_.now()) - left;
  // Unsigned, as nothing bounds what a key holder may write there.
  const auto dwell = static_cast<std::int64_t>(static_cast<std::uint64_t>(reply.responded) -
                                               static_cast<std::uint64_t>(reply.received));
  const bool plausible = around >= 0 && dwell >= 0 && dwell <= around;
  if (!plausible) {
    ++counts_.implausible;
    return;
  }
  if (around - dwell > options_.timeout_ns) ++counts.late;
  if (stamped || io_.stamping() == port::Stamp::none) counts.rtt.add(around - dwell);
}

// On which leg probes were lost: the responder says how many different numbers came up to the
// highest one.
void Prober::note_responder(const Message& reply, FlowState& flow, FlowCounts& counts) {
  const std::uint64_t known = reply.highest;
  const auto missing = static_cast<std::int64_t>(known - reply.count);
  const bool forgotten = flow.generation != 0 && reply.generation != flow.generation;
  if (known < flow.known) return;  // overtaken
  if (forgotten)
    flow.direction_unknown = true;
  else
    flow.pending += missing - flow.missing;
  if (flow.generation == 0 || forgotten) flow.damaged = 0;
  const std::uint32_t damaged = reply.damaged - flow.damaged;  // modulo 2^32, as it is counted
  if (damaged > UINT32_MAX / 2) return;                        // overtaken
  flow.damaged_pending += damaged;
  flow.damaged = reply.damaged;
  if (reply.overflows != flow.overflows && flow.generation != 0)
    counts.overflows += reply.overflows - flow.overflows;
  flow.known = known;
  flow.missing = missing;
  flow.generation = reply.generation;
  flow.overflows = reply.overflows;
}

// What had come by `drained` has been taken.
void Prober::expire(Instant drained) {
  const Instant aged = drained + -options_.timeout_ns;
  ledger_.expire(aged, aged + -options_.late_ns, [this](const LedgerEntry& entry) {
    FlowState& flow = states_[entry.flow];
    ++counts_of(flow, entry.sent).lost;
    flow.lost_last = std::max(flow.lost_last, entry.sequence);
  });
}

void Prober::send_due(Instant now) {
  const bool over = options_.duration_ns > 0 && now - start_ >= options_.duration_ns;
  std::size_t due = over ? 0 : std::min(due_now(now), batches_per_step * batch_max);
  while (due > 0) {
    const std::size_t asked = std::min({due, batch_max, ledger_.room()});
    const std::size_t taken = asked > 0 ? send_batch(asked) : 0;
    due -= taken;
    if (taken < asked || taken == 0) break;
  }
  if (over || next_port() == nullptr) stop();
}

std::size_t Prober::due_now(Instant now) {
  if (options_.rate <= 0) {
    const std::uint64_t busy = ledger_.in_flight();
    const std::uint64_t most = options_.in_flight_max;
    return busy + std::min<std::uint64_t>(batch_max, most) <= most
               ? static_cast<std::size_t>(most - busy)
               : 0;
  }
  const double passed = static_cast<double>(now - start_) * 1e-9 * options_.rate + 1;
  const double behind = std::max(1.0, options_.rate * catch_up_s);
  if (passed - slots_ > behind + 1) {
    const double skip = std::floor(passed - slots_ - behind);
    counts_.skipped += static_cast<std::uint64_t>(skip);
    slots_ += skip;
  }
  // No burst: what is behind is made up for at twice the pace, and not from far back.
  const double since =
      static_cast<double>(std::min(now - sent_at_, make_up_ns)) * 1e-9 * options_.rate;
  return static_cast<std::size_t>(
      std::max(0.0, std::floor(std::min(passed - slots_, std::max(1.0, 2 * since)))));
}

// The port whose flows have had fewest probes; nullptr when all have had their count.
Prober::Port* Prober::next_port() {
  Port* best = nullptr;
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    Port& port = ports_[(port_at_ + i) % ports_.size()];
    if (!std::ranges::any_of(port.flows, [this](std::uint32_t flow) { return may_send(flow); }))
      continue;
    if (best == nullptr || port.sent * best->flows.size() < best->sent * port.flows.size())
      best = &port;
  }
  port_at_ = (port_at_ + 1) % ports_.size();
  return best;
}

// What leaves together leaves by one port. Returns how many slots of the schedule it took.
std::size_t Prober::send_batch(std::size_t due) {
  Port* from = next_port();
  if (from == nullptr) return 0;
  // A batch belongs to one window, also when that ends just now.
  const Instant now = std::min(clock_.now(), window_end(window_) + -1);
  fill_batch(*from, due, now);
  const port::SendResult result = io_.send(outgoing_);
  commit(result.sent, now);
  const std::size_t taken = result.sent + result.refused;
  for (std::size_t i = result.sent; i < taken; ++i)
    ++counts_of(states_[batch_[i].flow], now).refused;
  from->sent += taken;
  slot_[window_ % 2].tried += taken;
  sent_at_ = now;
  slots_ += static_cast<double>(taken);
  return taken;
}

void Prober::fill_batch(Port& from, std::size_t due, Instant now) {
  outgoing_.clear();
  batch_.clear();
  Message message{.kind = one_way_ ? Kind::one_way : Kind::probe,
                  .session = options_.session,
                  .sent = clock_.wall().ns};
  // A flow that comes twice in one batch: the numbers are given out here, and kept by commit().
  for (std::size_t tries = 0; batch_.size() < due && tries < due + from.flows.size(); ++tries) {
    const std::uint32_t id = from.flows[from.next];
    from.next = (from.next + 1) % from.flows.size();
    if (!may_send(id)) continue;
    const Flow& flow = flows_[id];
    const std::uint64_t probe = sent_ + batch_.size();
    const bool wanted = !one_way_ && probe % options_.stamp_every == 0;
    const std::uint64_t sequence = ++states_[id].sequence;
    const OneWay::Mark mark =
        one_way_ ? one_way_->next_mark(id, window_ % 2) : OneWay::Mark{id, sequence};
    message.flow = mark.number;
    message.dscp = flow.dscp;
    message.sequence = mark.sequence;
    message.probe = probe;
    WireBytes& wire = wires_[batch_.size()];
    encode(message, options_.key, wire);
    const port::Stamp stamp = wanted ? port::Stamp::wanted : port::Stamp::none;
    outgoing_.push_back({.port = flow.port,
                         .local = flow.local,
                         .to = flow.target,
                         .dscp = flow.dscp,
                         .stamp = stamp,
                         .token = probe,
                         .payload = wire});
    batch_.push_back({.sequence = message.sequence, .sent = now, .flow = id, .stamp = stamp});
  }
}

// The first `sent` of the batch are on their way; the others give their numbers back.
void Prober::commit(std::size_t sent, Instant now) {
  sent_ += sent;
  for (std::size_t i = 0; i < sent; ++i) {
    FlowState& flow = states_[batch_[i].flow];
    ++counts_of(flow, now).sent;
    if (!one_way_) ledger_.push(batch_[i]);
  }
  for (std::size_t i = batch_.size(); i > sent; --i) {
    const std::uint32_t id = batch_[i - 1].flow;
    --states_[id].sequence;
    if (one_way_) one_way_->return_mark(id, window_ % 2);
  }
}

// A question that the system has no room for is asked again in the next round.
void Prober::send_questions(Instant now) {
  for (const OneWay::Question& question : one_way_->questions(now)) {
    const Message ask{.kind = Kind::ask,
                      .dscp = question.way.dscp,
                      .session = options_.session,
                      .flow = question.mark.number,
                      .sequence = question.mark.sequence,
                      .probe = question.id,
                      .sent = clock_.wall().ns};
    encode(ask, options_.key, wires_[0]);
    const port::Outgoing out{.port = question.way.port,
                             .local = question.way.local,
                             .to = flows_[question.flow].target,
                             .dscp = question.way.dscp,
                             .payload = wires_[0]};
    io_.send({&out, 1});
  }
}

void Prober::roll_window(Instant now) {
  const std::uint64_t window = window_of(now);
  if (window == window_) return;
  // After a long sleep whole windows may be missing; they had no probes.
  while (window_ < window) {
    if (window_ > closed_) close_window(window_end(closed_));
    if (one_way_) one_way_->ask(window_ % 2, now);
    ++window_;
    if (one_way_) one_way_->open(window_ % 2);
    slot_[window_ % 2] = {clock_.wall(), io_.dropped()};
  }
}

void Prober::close_windows(Instant now) {
  if (closed_ >= window_) return;
  const Instant end = window_end(closed_);
  const Instant settled_at = end + options_.timeout_ns + options_.late_ns;
  const bool open = !ledger_.empty() && ledger_.oldest().sent < end;
  // Who was late to begin asking takes the time that it needs, if need be until the next window
  // ends.
  if (one_way_ && !one_way_->settled(closed_ % 2, now)) return;
  if (now >= settled_at && !open) close_window(end);
}

void Prober::close_window(Instant end) {
  WEFT_CHECK(closed_ <= window_ && window_ - closed_ <= 1);  // two are open at most
  const std::size_t slot = closed_ % 2;
  const std::uint64_t dropped = io_.dropped();
  const Instant start = start_ + static_cast<std::int64_t>(closed_) * options_.window_ns;
  WindowReport report{.start = slot_[slot].start,
                      .length_ns = std::min(end, start + options_.window_ns) - start};
  report.dropped = dropped - slot_[slot].dropped_before;
  report.lateness_max_ns = slot_[slot].lateness_max_ns;
  const bool starved = report.dropped > 0 || report.lateness_max_ns > options_.late_ns;
  report.self = starved ? WindowReport::Self::starved : WindowReport::Self::well;
  report.flows.reserve(states_.size());
  for (std::uint32_t i = 0; i < states_.size(); ++i) {
    FlowCounts& counts = states_[i].windows[slot];
    if (one_way_)
      one_way_->finish(i, slot, counts);
    else
      finish_counts(states_[i], counts);
    report.flows.push_back(std::exchange(counts, {}));
  }
  if (one_way_) one_way_->close(slot);
  counts_.dropped = dropped;
  reports_.push_back(std::move(report));
  ++closed_;
}

// Credits what the responder missed to the window, as far as the window's losses allow. Some of it
// may be of windows before, whose direction was not known then: where these may have lost more or
// fewer on the way there, this one's direction is not known either.
void Prober::finish_counts(FlowState& flow, FlowCounts& counts) {
  counts.heard = counts.answered > 0;
  // Damaged ones were not answered, and would count as lost.
  counts.damaged_forward = std::min(flow.damaged_pending, counts.lost);
  flow.damaged_pending -= counts.damaged_forward;
  counts.lost -= counts.damaged_forward;
  const auto lost = static_cast<std::int64_t>(counts.lost);
  const bool forgotten = std::exchange(flow.direction_unknown, false);
  if (forgotten) flow.pending = flow.untold = 0;
  const bool is_told = flow.known >= flow.lost_last;
  if (lost > 0 && (forgotten || !is_told)) {
    counts.lost_forward.reset();
    if (!is_told) flow.untold += lost;
    return;
  }
  flow.pending =
      std::max<std::int64_t>(0, flow.pending - static_cast<std::int64_t>(counts.damaged_forward));
  const std::int64_t least = std::clamp<std::int64_t>(flow.pending - flow.untold, 0, lost);
  const std::int64_t most = std::min(flow.pending, lost);
  WEFT_CHECK(counts.answered + counts.lost + counts.damaged() <= counts.sent);
  counts.lost_forward.reset();
  if (least == most) counts.lost_forward = static_cast<std::uint64_t>(least);
  flow.pending -= least;
  if (flow.known > 0) flow.pending -= std::min(flow.pending, std::exchange(flow.untold, 0));
}

bool Prober::settled(Instant now) const {
  return one_way_ ? one_way_->settled(0, now) && one_way_->settled(1, now) : ledger_.open() == 0;
}

void Prober::plan_wake(Instant now) {
  wake_is_due_ = false;
  wake_at_ = now + housekeeping_ns;
  if (phase_ == Phase::settling) wake_at_ = now + ns_per_ms;
  if (phase_ != Phase::sending) return;
  if (ledger_.full()) {
    wake_at_ = now + ns_per_ms;
    return;
  }
  const Instant tick = now + tick_ns;
  Instant due = tick;
  if (options_.rate > 0) {
    const auto next = static_cast<std::int64_t>(std::ceil(slots_ / options_.rate * 1e9));
    // While behind, half a slot after the last one.
    due = std::max(start_ + next, sent_at_ + static_cast<std::int64_t>(0.5e9 / options_.rate));
    if (1e9 / options_.rate < static_cast<double>(tick_ns)) due = std::max(due, tick);
  }
  if (due < wake_at_) {
    wake_at_ = due;
    wake_is_due_ = true;
  }
}

}  // namespace weft::observe::probe
