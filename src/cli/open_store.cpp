#include "cli/open_store.hpp"

#include "adapt/postgres/store.hpp"
#include "adapt/sqlite/store.hpp"

namespace weft::cli {

Result<std::unique_ptr<port::Store>> open_store(const std::string& where) {
  if (where.starts_with("postgres://") || where.starts_with("postgresql://") ||
      where.find('=') != std::string::npos)
    return adapt::postgres::open_postgres(where);
  return adapt::sqlite::open_sqlite(where);
}

}  // namespace weft::cli
