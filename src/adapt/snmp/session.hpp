// One agent, asked over UDP by net-snmp. Internal to the room; the library's own header stays in
// the .cpp. All of the room belongs to one thread: the library keeps users in one list.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "adapt/snmp/credentials.hpp"
#include "adapt/snmp/value.hpp"
#include "base/result.hpp"

namespace weft::adapt::snmp {

using VarBinds = std::vector<std::pair<Oid, Value>>;

// Sets the library up, once: no configuration, MIB or state files are read or written, nothing is
// logged.
void start_library();

struct Reply {
  enum class What : std::uint8_t {
    answer,
    engine,   // a v3 agent's id, in `engine`
    silence,  // after all retries
    refusal   // `error` says why: user, password, level
  };
  What what = What::silence;
  int error_status = 0;  // of an answer, as RFC 3416 numbers them
  VarBinds values;
  std::string engine, error;
};

class Session {
 public:
  struct Options {
    std::chrono::milliseconds timeout{1'000};  // before each retry
    int retries = 2;
  };
  // Of v3 with an empty `engine` only discover() works. Does not wait. Fails: Errc::io,
  // Errc::value.
  static Result<Session> open(const Endpoint& agent, const Credentials& credentials,
                              const std::string& engine, const Options& options);
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  ~Session();

  // One request at a time. Fails: Errc::io.
  Status discover();
  Status get(std::span<const Oid> oids);
  Status get_bulk(std::span<const Oid> oids, int repetitions);

  int fd() const;
  // Takes what came, and gives up what waited too long.
  void pump();
  std::optional<Reply> take();

 private:
  struct Impl;
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft::adapt::snmp
