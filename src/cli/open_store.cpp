#include "cli/open_store.hpp"

#include <filesystem>

#include "adapt/postgres/store.hpp"
#include "adapt/sqlite/store.hpp"

namespace weft::cli {
namespace {

bool is_postgres(const std::string& where) {
  return where.starts_with("postgres://") || where.starts_with("postgresql://") ||
         where.find('=') != std::string::npos;
}

}  // namespace

Result<std::unique_ptr<port::Store>> open_existing_store(const std::string& where) {
  if (!is_postgres(where) && !std::filesystem::exists(where))
    return fail(Errc::io, {where, 0, 0}, "there is no such store",
                "name what --store of weft serve is");
  return open_store(where);
}

Result<std::unique_ptr<port::Store>> open_store(const std::string& where) {
  if (is_postgres(where)) return adapt::postgres::open_postgres(where);
  return adapt::sqlite::open_sqlite(where);
}

}  // namespace weft::cli
