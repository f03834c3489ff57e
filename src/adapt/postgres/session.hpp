// One connection to a server.
#pragma once

#include <libpq-fe.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "adapt/postgres/store.hpp"
#include "adapt/postgres/wire.hpp"
#include "base/result.hpp"

namespace weft::adapt::postgres {

// Where to connect, and how.
struct Target {
  std::string conninfo;
  std::string application;  // what the server calls the connection: at most 63 bytes
  Patience patience;
};

// Fails: Errc::value. Says nothing of the text, which may hold a password.
Status check_conninfo(const std::string& conninfo);

struct Prepared {
  const char* name;
  const char* sql;
};

// Used by one thread at a time. No call waits longer than the target's patience.
class Session {
 public:
  // Connects, with the settings that the store relies on. Fails: Errc::io, Errc::unsupported.
  static Result<Session> connect(const Target& target);

  // SQL of one or more statements; the first column of the last row as text, "" for none.
  Result<std::string> script(const std::string& sql);
  Status prepare(std::span<const Prepared> statements);
  // Runs prepared statements in order and in one round trip; what each gave. A statement that fails
  // ends them, and the transaction that they are in.
  Result<std::vector<Rows>> run(std::span<const Call> calls);

  // The server cannot be reached, or has not answered in time. Nothing else will work any more.
  bool lost() const { return connection_ == nullptr; }
  const std::string& where() const { return where_; }  // database and host

 private:
  using Deadline = std::chrono::steady_clock::time_point;
  struct Close {
    void operator()(PGconn* connection) const { PQfinish(connection); }
  };
  explicit Session(PGconn* connection, Patience patience)
      : connection_(connection), patience_(patience) {}

  Status check_server();
  std::optional<std::string> wait(Deadline deadline);
  Result<std::vector<Rows>> answers();
  Result<std::vector<Rows>> in_pipeline(const std::function<bool()>& send);
  std::unexpected<Error> lose(std::string_view reason);
  std::unexpected<Error> refusal(const PGresult* result) const;
  Status leave_transaction();

  std::unique_ptr<PGconn, Close> connection_;
  Patience patience_;
  std::string where_;
};

}  // namespace weft::adapt::postgres
