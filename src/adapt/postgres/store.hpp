// port::Store in a PostgreSQL database, which several instances may share.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "port/store.hpp"

namespace weft::adapt::postgres {

// How long a connection may take to come about, and an answer of the server; then it counts as
// lost.
struct Patience {
  std::chrono::seconds connect{5};
  std::chrono::seconds answer{60};
};

// Opens the store in schema "weft" of the database that `conninfo` names (what libpq takes: "host=
// dbname=..." or "postgresql://..."; passwords are best left to ~/.pgpass), and makes it where
// there is none. Instances share it: all read, and the first that writes is the writer until it
// closes or loses its connection. Writing fails for the others, naming the writer; they take over
// when it is gone. One that lost its connection, and another took over, is superseded: it writes no
// more.
//
// A call that finds the server gone fails with Errc::io, the next connects again. A commit whose
// answer was lost is looked up as soon as the server can be reached, by the same call where that is
// at once: tried again as it was, before any other commit, it is not done twice.
//
// Fails: Errc::io (no server, no right), Errc::value (a conninfo that libpq cannot read),
// Errc::unsupported (written by a newer weft; a server that syncs nothing or has no UTF-8).
Result<std::unique_ptr<port::Store>> open_postgres(const std::string& conninfo,
                                                   Patience patience = {});

}  // namespace weft::adapt::postgres
