// Traps and informs from the network: who is known is heard, everybody else is counted.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "adapt/snmp/credentials.hpp"
#include "adapt/snmp/trap.hpp"
#include "base/result.hpp"
#include "port/clock.hpp"

namespace weft::adapt::snmp {

struct TrapUser {
  Credentials credentials;  // of v3
  // The sender's engine id in hexadecimal digits, for traps; "": ours, for informs.
  std::string engine;
};

struct TrapReceiverOptions {
  Endpoint listen{"127.0.0.1", 162};
  std::vector<std::string> communities;  // of v2c; none: no v2c at all
  std::vector<TrapUser> users;
};

struct TrapReceiverCounts {
  std::uint64_t heard = 0, informs = 0;
  std::uint64_t duplicates = 0;  // the same again from the same sender: a lost answer
  std::uint64_t refused = 0;     // version, community, or level below the user's
  std::uint64_t unauthentic =
      0;                        // v3 that net-snmp refused: user, engine, digest, time, decryption
  std::uint64_t malformed = 0;  // without snmpTrapOID.0 where that must stand
  std::uint64_t dropped = 0;    // more than 10,000 that nobody took
};

// The library tells what it refused of v3 for the process as a whole: one receiver a process.
class TrapReceiver {
 public:
  // The clock must outlive the receiver. Fails: Errc::io (address taken, no right), Errc::value.
  static Result<TrapReceiver> open(const TrapReceiverOptions& options, port::Clock& clock);
  TrapReceiver(TrapReceiver&&) noexcept;
  TrapReceiver& operator=(TrapReceiver&&) noexcept;
  ~TrapReceiver();

  // Takes what came, and acknowledges informs. Does not wait.
  void step();
  // Waits until something comes, at most until then.
  void wait(port::Instant until);
  std::optional<Trap> take();
  TrapReceiverCounts counts() const;
  int fd() const;

 private:
  struct Impl;
  explicit TrapReceiver(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft::adapt::snmp
