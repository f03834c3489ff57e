// Making and updating the tables, and the statements that use them.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "adapt/postgres/session.hpp"
#include "base/result.hpp"

namespace weft::adapt::postgres {

// The advisory lock that the writer holds, and whoever changes the schema.
inline constexpr std::int64_t writer_lock = 0x77656674'00000001;

// Brings schema "weft" to version steps.size(), all steps or none. Changes nothing, and needs no
// right to, where it is up to date. `steps` are those of port::store_migrations.
// Fails: Errc::io, also while an instance of an older weft writes; Errc::unsupported where a newer
// one has been.
Status migrate(Session& session, std::span<const std::string> steps);

// Changes nothing: whether there is a store of this version.
// Fails: Errc::io, Errc::unknown (none), Errc::unsupported (an older or newer one).
Status check_current(Session& session);

// A session on an up-to-date schema, with these statements.
Result<Session> connect_store(const Target& target, std::span<const Prepared> statements);

}  // namespace weft::adapt::postgres
