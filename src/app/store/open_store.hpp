// The store that --store names.
#pragma once

#include <memory>
#include <string>

#include "base/result.hpp"
#include "port/store.hpp"
#include "port/store_image.hpp"

namespace weft::app {

// Whether --store names a PostgreSQL database, and no file.
bool is_postgres(const std::string& where);

// An SQLite file, or PostgreSQL: "postgresql://...", "host=... dbname=...". Fails: Errc::io.
Result<std::unique_ptr<port::Store>> open_store(const std::string& where);
// To read what is there: a missing file is not made but an error.
Result<std::unique_ptr<port::Store>> open_existing_store(const std::string& where);
// All of it at this moment, beside a service that writes to it. Fails as the adapters' do.
Result<std::unique_ptr<port::StoreImage>> open_store_image(const std::string& where);

}  // namespace weft::app
