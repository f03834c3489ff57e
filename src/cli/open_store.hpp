// The store that --store names.
#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"
#include "port/store.hpp"

namespace weft::cli {

// An SQLite file, or PostgreSQL: "postgresql://...", "host=... dbname=...". Fails: Errc::io.
Result<std::unique_ptr<port::Store>> open_store(const std::string& where);
// To read what is there: a missing file is not made but an error.
Result<std::unique_ptr<port::Store>> open_existing_store(const std::string& where);

}  // namespace weft::cli
