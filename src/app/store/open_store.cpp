#include "app/store/open_store.hpp"

#include <filesystem>

#include "adapt/postgres/image.hpp"
#include "adapt/postgres/store.hpp"
#include "adapt/sqlite/image.hpp"
#include "adapt/sqlite/store.hpp"

namespace weft::app {
namespace {

Status check_exists(const std::string& where) {
  if (is_postgres(where) || std::filesystem::exists(where)) return {};
  return fail(Errc::io, {where, 0, 0}, "there is no such store",
              "name what --store of weft serve is");
}

}  // namespace

bool is_postgres(const std::string& where) {
  return where.starts_with("postgres://") || where.starts_with("postgresql://") ||
         where.find('=') != std::string::npos;
}

Result<std::unique_ptr<port::Store>> open_existing_store(const std::string& where) {
  WEFT_TRY_STATUS(check_exists(where));
  return open_store(where);
}

Result<std::unique_ptr<port::StoreImage>> open_store_image(const std::string& where) {
  WEFT_TRY_STATUS(check_exists(where));
  if (is_postgres(where)) return adapt::postgres::open_postgres_image(where);
  return adapt::sqlite::open_sqlite_image(where);
}

Result<std::unique_ptr<port::Store>> open_store(const std::string& where) {
  if (is_postgres(where)) return adapt::postgres::open_postgres(where);
  return adapt::sqlite::open_sqlite(where);
}

}  // namespace weft::app
