#include "observe/probe/responder.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weft::observe::probe {
namespace {

constexpr std::uint64_t window_bits = 64;

Verdict verdict_of(Fault fault) {
  switch (fault) {
    case Fault::truncated:
      return Verdict::truncated;
    case Fault::oversized:
      return Verdict::oversized;
    case Fault::damaged:
      return Verdict::damaged;
    case Fault::forged:
      return Verdict::forged;
    default:
      return Verdict::foreign;
  }
}

void fill_counts(Message& reply, const SequenceWindow* window) {
  reply.highest = window != nullptr ? window->highest : 0;
  reply.count = window != nullptr ? window->count : 0;
  reply.generation = window != nullptr ? window->generation : 0;
  reply.damaged = window != nullptr ? window->damaged : 0;
}

}  // namespace

std::string_view to_text(Verdict verdict) {
  constexpr std::array<std::string_view, verdict_count> names{
      "answered", "counted", "truncated", "oversized", "foreign", "damaged",
      "forged",   "reply",   "replayed",  "stale",     "future",  "limited"};
  return names[static_cast<std::size_t>(verdict)];
}

bool SequenceWindow::take(std::uint64_t sequence) {
  if (sequence > highest) {
    const std::uint64_t ahead = sequence - highest;
    seen = ahead < window_bits ? (seen << ahead) | 1 : 1;
    highest = sequence;
  } else {
    const std::uint64_t back = highest - sequence;
    if (back >= window_bits || (seen >> back & 1) != 0) return false;
    seen |= std::uint64_t{1} << back;
  }
  ++count;
  return true;
}

Responder::Responder(const ResponderOptions& options)
    : options_(options),
      flows_(options.flows_max, options.salt),
      sources_(options.sources_max, mix64(options.salt)),
      askers_(options.askers_max, mix64(options.salt + 1)) {}

Verdict Responder::take(const port::Incoming& in, port::Instant now, Timestamp wall,
                        Message& reply) {
  const Verdict verdict = judge(in, now, wall, reply);
  ++counts_[static_cast<std::size_t>(verdict)];
  return verdict;
}

Verdict Responder::judge(const port::Incoming& in, port::Instant now, Timestamp wall,
                         Message& message) {
  // Cut datagrams are longer than any request.
  if (in.size > request_bytes_max) return Verdict::oversized;
  if (const Fault fault = decode(in.payload(), options_.key, message); fault != Fault::none) {
    if (fault == Fault::damaged) note_damage(in, message);
    return verdict_of(fault);
  }
  if (message.kind == Kind::reply) return Verdict::reply;
  if (options_.age_max_ns > 0) {
    // Unsigned: any 64 bits may stand there.
    const auto age = static_cast<std::int64_t>(static_cast<std::uint64_t>(wall.ns) -
                                               static_cast<std::uint64_t>(message.sent));
    if (age > options_.age_max_ns) return Verdict::stale;
    if (age < -options_.age_max_ns) return Verdict::future;
  }
  const Message request = message;
  if (!note(in, request, message)) return Verdict::replayed;
  if (request.kind == Kind::one_way) return Verdict::counted;
  if (!within_rate(in.from.address, now)) return Verdict::limited;
  message.kind = Kind::reply;
  message.dscp_seen = in.dscp;
  message.overflows = in.dropped;
  return Verdict::answered;
}

bool Responder::note(const port::Incoming& in, const Message& request, Message& reply) {
  if (request.kind == Kind::ask) return note_question(request, reply);
  const auto [entry, is_new] = flows_.at({request.session, request.flow});
  if (is_new) {
    entry->generation = ++generation_ == 0 ? ++generation_ : generation_;
    entry->address = in.from.address;
  }
  if (entry->address != in.from.address || !entry->take(request.sequence)) return false;
  fill_counts(reply, entry);
  return true;
}

// Of a flow that is known and sends from there: what the damage spared names it. Nothing else of
// the message is believed, and it is not answered. Questions are no probes.
void Responder::note_damage(const port::Incoming& in, const Message& request) {
  if (request.kind == Kind::ask) return;
  SequenceWindow* const flow = flows_.find({request.session, request.flow});
  if (flow != nullptr && flow->address == in.from.address) ++flow->damaged;
}

// A question about a flow may come by any port and from any address of the prober, but only once.
bool Responder::note_question(const Message& question, Message& reply) {
  if (!askers_.at({question.session}).value->take(question.probe)) return false;
  fill_counts(reply, flows_.find({question.session, question.flow}));
  return true;
}

bool Responder::within_rate(std::uint32_t address, port::Instant now) {
  const auto [bucket, is_new] = sources_.at({address});
  const double burst = std::max(1.0, options_.source_rate / 10);
  if (is_new) {
    bucket->tokens = burst;
  } else {
    const double passed = static_cast<double>(std::max<std::int64_t>(0, now - bucket->filled));
    bucket->tokens = std::min(burst, bucket->tokens + passed * 1e-9 * options_.source_rate);
  }
  bucket->filled = now;
  if (bucket->tokens < 1) return false;
  bucket->tokens -= 1;
  return true;
}

void Responder::stamp(Message& reply, const port::Incoming& in, port::Instant now, Timestamp wall) {
  const std::int64_t dwell = in.when ? std::max<std::int64_t>(0, now - *in.when) : 0;
  reply.responded = wall.ns;
  reply.received = wall.ns - dwell;
}

std::string to_prometheus(const Responder& responder, std::uint64_t overflows) {
  std::string out =
      "# HELP weft_respond_datagrams_total Datagrams by outcome.\n"
      "# TYPE weft_respond_datagrams_total counter\n";
  for (std::size_t i = 0; i < verdict_count; ++i) {
    const auto verdict = static_cast<Verdict>(i);
    out += fmt::format("weft_respond_datagrams_total{{verdict=\"{}\"}} {}\n", to_text(verdict),
                       responder.count(verdict));
  }
  out += fmt::format(
      "# HELP weft_respond_overflows_total Datagrams dropped by the full receive queue.\n"
      "# TYPE weft_respond_overflows_total counter\nweft_respond_overflows_total {}\n"
      "# HELP weft_respond_forgotten_flows_total Flows evicted to make room for others.\n"
      "# TYPE weft_respond_forgotten_flows_total counter\nweft_respond_forgotten_flows_total {}\n",
      overflows, responder.forgotten_flows());
  return out;
}

}  // namespace weft::observe::probe
