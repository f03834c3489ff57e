#include "observe/probe/probe_server.hpp"

namespace weft::observe::probe {

using port::batch_max;

// Answers that share a time of departure: the last one leaves some 10 us after it.
constexpr std::size_t group_max = 8;

ProbeServer::ProbeServer(Responder& responder, port::ProbeIo& io, port::Clock& clock)
    : responder_(responder), io_(io), clock_(clock), incoming_(batch_max), wires_(batch_max) {}

std::size_t ProbeServer::step() {
  const std::size_t count = io_.receive(incoming_);
  const port::Instant now = clock_.now();
  const Timestamp wall = clock_.wall();
  for (std::size_t i = 0; i < count; ++i) {
    const bool other_port =
        !replies_.empty() && incoming_[replies_.front().in].port != incoming_[i].port;
    if (other_port || replies_.size() == group_max) flush();
    Reply reply{.in = i};
    if (responder_.take(incoming_[i], now, wall, reply.message) == Verdict::answered)
      replies_.push_back(reply);
  }
  flush();
  return count;
}

// The time of departure is read as late as can be.
void ProbeServer::flush() {
  if (replies_.empty()) return;
  outgoing_.clear();
  const port::Instant now = clock_.now();
  const Timestamp wall = clock_.wall();
  for (std::size_t i = 0; i < replies_.size(); ++i) {
    auto& [at, message] = replies_[i];
    const port::Incoming& in = incoming_[at];
    Responder::stamp(message, in, now, wall);
    encode(message, responder_.key(), wires_[i]);
    outgoing_.push_back({.port = in.port,
                         .local = in.local,
                         .to = in.from,
                         .dscp = message.dscp,
                         .payload = wires_[i]});
  }
  // What there is no room for is dropped: probers count it, and none waits for us.
  std::span<const port::Outgoing> left(outgoing_);
  while (!left.empty()) {
    const port::SendResult result = io_.send(left);
    if (result.sent + result.refused == 0) break;
    unsent_ += result.refused;
    left = left.subspan(result.sent + result.refused);
  }
  unsent_ += left.size();
  replies_.clear();
}

}  // namespace weft::observe::probe
