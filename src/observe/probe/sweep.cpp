#include "observe/probe/sweep.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.hpp"

namespace weft::observe::probe {
namespace {

constexpr std::uint16_t udp_header_bytes = 8;
constexpr int sends_per_step = 16;

}  // namespace

std::size_t sweep_bytes(std::uint8_t ttl, std::uint32_t round) {
  return wire_bytes + (ttl - 1u) + std::size_t{sweep_ttl_max} * round;
}

std::optional<SweepMark> sweep_mark(std::uint16_t udp_length) {
  if (udp_length < udp_header_bytes + wire_bytes) return std::nullopt;
  const std::uint32_t code = udp_length - udp_header_bytes - static_cast<std::uint32_t>(wire_bytes);
  const SweepMark mark{static_cast<std::uint8_t>(code % sweep_ttl_max + 1), code / sweep_ttl_max};
  if (mark.round >= sweep_rounds_max) return std::nullopt;
  return mark;
}

Sweep::Sweep(const SweepOptions& options, std::vector<Flow> flows,
             std::span<const std::uint16_t> source_ports, port::ProbeIo& io, port::Clock& clock)
    : options_(options),
      flows_(std::move(flows)),
      io_(io),
      clock_(clock),
      states_(flows_.size()),
      next_at_(clock.now()),
      wake_at_(next_at_),
      incoming_(port::batch_max) {
  WEFT_CHECK(options_.ttl_max >= 1 && options_.ttl_max <= sweep_ttl_max);
  WEFT_CHECK(options_.rounds >= 1 && options_.rounds <= sweep_rounds_max);
  for (std::uint32_t i = 0; i < flows_.size(); ++i) {
    states_[i].hops.resize(options_.ttl_max);
    states_[i].rounds_answered.resize(options_.ttl_max);
    flow_of_[{source_ports[flows_[i].port], flows_[i].target}] = i;
  }
}

void Sweep::step() {
  const port::Instant now = clock_.now();
  take_answers();
  take_complaints();
  for (int i = 0; i < sends_per_step && !sent_all_ && next_at_ <= now; ++i)
    if (!send_next(now)) stop();
  done_ = sent_all_ && now >= end_;
  wake_at_ = sent_all_ ? std::min(end_, now + 10 * ns_per_ms) : std::max(next_at_, now);
}

void Sweep::stop() {
  if (std::exchange(sent_all_, true)) return;
  end_ = clock_.now() + options_.wait_ns;
}

// Round by round, hop by hop, flow by flow, so that one router's complaints are far apart. False
// when all were sent.
bool Sweep::send_next(port::Instant now) {
  const std::uint64_t flows = flows_.size(), per_round = flows * options_.ttl_max;
  for (; next_ < per_round * options_.rounds; ++next_) {
    const auto flow = static_cast<std::uint32_t>(next_ % flows);
    const SweepMark mark{static_cast<std::uint8_t>(next_ / flows % options_.ttl_max + 1),
                         static_cast<std::uint32_t>(next_ / per_round)};
    if (mark.ttl > states_[flow].reached) continue;
    send(flow, mark);
    ++next_;
    // No bursts: what is behind is not made up for.
    next_at_ =
        std::max(next_at_, now + -ns_per_ms) + static_cast<std::int64_t>(1e9 / options_.rate);
    return true;
  }
  return false;
}

void Sweep::send(std::uint32_t id, SweepMark mark) {
  const Flow& flow = flows_[id];
  State& state = states_[id];
  std::array<std::byte, wire_bytes + std::size_t{sweep_ttl_max} * sweep_rounds_max> bytes{};
  const Message message{.dscp = flow.dscp,
                        .session = options_.session,
                        .flow = id,
                        .sequence = ++state.sequence,
                        .probe = sweep_bytes(mark.ttl, mark.round) + udp_header_bytes,
                        .sent = clock_.wall().ns};
  encode(message, options_.key, std::span(bytes).first<wire_bytes>());
  const port::Outgoing out{.port = flow.port,
                           .local = flow.local,
                           .to = flow.target,
                           .dscp = flow.dscp,
                           .ttl = mark.ttl,
                           .payload = std::span(bytes).first(sweep_bytes(mark.ttl, mark.round))};
  if (io_.send({&out, 1}).sent == 1) ++state.hops[mark.ttl - 1u].sent;
}

void Sweep::take_answers() {
  std::size_t count = 0;
  do {
    count = io_.receive(incoming_);
    for (std::size_t i = 0; i < count; ++i) {
      const port::Incoming& in = incoming_[i];
      Message reply;
      if (in.size > request_bytes_max || decode(in.payload(), options_.key, reply) != Fault::none ||
          reply.kind != Kind::reply || reply.session != options_.session ||
          reply.flow >= flows_.size() || reply.probe > UINT16_MAX ||
          in.from != flows_[reply.flow].target)
        continue;
      if (const auto mark = sweep_mark(static_cast<std::uint16_t>(reply.probe)))
        note(reply.flow, *mark, in.from.address, true);
    }
  } while (count == incoming_.size());
}

void Sweep::take_complaints() {
  std::array<port::Complaint, port::batch_max> complaints;
  std::size_t count = 0;
  do {
    count = io_.complaints(complaints);
    for (std::size_t i = 0; i < count; ++i) {
      const port::Complaint& complaint = complaints[i];
      const auto flow = flow_of_.find({complaint.source_port, complaint.to});
      const auto mark = sweep_mark(complaint.udp_length);
      if (flow == flow_of_.end() || !mark) continue;
      const bool is_target = complaint.kind == port::Complaint::Kind::unreachable &&
                             complaint.from == complaint.to.address;
      note(flow->second, *mark, complaint.from, is_target);
    }
  } while (count == complaints.size());
}

void Sweep::note(std::uint32_t flow, SweepMark mark, std::uint32_t from, bool is_target) {
  if (mark.ttl > options_.ttl_max || mark.round >= options_.rounds) return;
  State& state = states_[flow];
  const std::size_t at = mark.ttl - 1u;
  const std::uint32_t bit = 1u << mark.round;
  if (state.hops[at].sent == 0 || (state.rounds_answered[at] & bit) != 0) return;
  state.rounds_answered[at] |= bit;
  if (is_target) state.reached = std::min(state.reached, mark.ttl);
  Hop& hop = state.hops[at];
  ++hop.answered;
  WEFT_CHECK(hop.answered <= options_.rounds);
  if (hop.address == 0) hop.address = from;
  if (hop.address != from) ++hop.others;
}

std::vector<SweptFlow> Sweep::results() const {
  std::vector<SweptFlow> out;
  for (const State& state : states_) {
    SweptFlow flow;
    flow.reached = state.reached <= options_.ttl_max;
    WEFT_CHECK(state.reached > 0 && state.hops.size() == options_.ttl_max);
    std::size_t length = flow.reached ? state.reached : options_.ttl_max;
    // Without a target, hops behind the last one that ever answered tell nothing.
    while (!flow.reached && length > 0 && state.hops[length - 1].answered == 0) --length;
    flow.hops.assign(state.hops.begin(), state.hops.begin() + static_cast<std::ptrdiff_t>(length));
    if (flow.reached && flow.hops.back().loss() > 0) {
      const double enough = flow.hops.back().loss() / 2;
      flow.suspect = static_cast<std::uint32_t>(length);
      while (flow.suspect > 1 && flow.hops[flow.suspect - 2].loss() >= enough) --flow.suspect;
    }
    out.push_back(std::move(flow));
  }
  return out;
}

}  // namespace weft::observe::probe
