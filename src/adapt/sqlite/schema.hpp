// Making and updating the tables.
#pragma once

#include <span>
#include <string>

#include "adapt/sqlite/database.hpp"
#include "base/result.hpp"

namespace weft::adapt::sqlite {

// Brings the database at `path` to version steps.size(): from nothing, or from an older version,
// each step whole or not at all. `steps` are those of port::store_migrations.
// Fails: Errc::io, also where the file is another program's database (it is left as it is);
// Errc::unsupported where a newer weft wrote it.
Status migrate(Database& db, const std::string& path, std::span<const std::string> steps);

// Changes nothing: whether the database at `path` is a store of this version.
// Fails: Errc::io, Errc::unknown (an empty file), Errc::unsupported (an older or newer one).
Status check_current(Database& db, const std::string& path);

}  // namespace weft::adapt::sqlite
