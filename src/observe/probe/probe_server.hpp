// Joins a responder's decisions to a network.
#pragma once

#include <cstdint>
#include <vector>

#include "observe/probe/responder.hpp"
#include "port/probe_io.hpp"

namespace weft::observe::probe {

// Receives, judges and answers in batches. An answer leaves by the port and from the address that
// its request came to, in the class that the request asked for.
class ProbeServer {
 public:
  // All must outlive the server.
  ProbeServer(Responder& responder, port::ProbeIo& io, port::Clock& clock);
  // Answers what is there now; returns how many datagrams that were. Bounded work.
  std::size_t step();
  std::uint64_t unsent() const { return unsent_; }  // answers that our own system refused

 private:
  void flush();

  Responder& responder_;
  port::ProbeIo& io_;
  port::Clock& clock_;
  std::vector<port::Incoming> incoming_;
  struct Reply {
    std::size_t in;  // place of the request in incoming_
    Message message;
  };
  std::vector<Reply> replies_;  // of one port
  std::vector<WireBytes> wires_;
  std::vector<port::Outgoing> outgoing_;
  std::uint64_t unsent_ = 0;
};

}  // namespace weft::observe::probe
